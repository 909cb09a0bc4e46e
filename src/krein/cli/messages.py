"""Texts of limited length, safe to print on a terminal, whatever the data contain."""

from __future__ import annotations

MESSAGE_LENGTH = 280
"""Maximum length of a message; it begins with the problem and ends with the remedy."""


def printable(text: str, longest: int = 60) -> str:
    """Return text from the data with control characters escaped, safe to print on a terminal."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def shortened(label: str, longest: int = 30) -> str:
    """Return the end of a label, which distinguishes it from others more than its beginning.

    >>> shortened("Proteobacteria;Gammaproteobacteria;Vibrio", 20)
    '…oteobacteria;Vibrio'
    """
    text = printable(label, 10_000)
    return text if len(text) <= longest else "…" + text[-(longest - 1) :]


def one_line(message: str) -> str:
    """Return a message as one line of limited length, without control characters.

    >>> print(one_line("a" + chr(27) + "b" + chr(10) + "c"))
    a\\x1bb c
    """
    text = printable(" ".join(message.split()), 100_000)
    if len(text) <= MESSAGE_LENGTH:
        return text
    half = MESSAGE_LENGTH // 2
    return f"{text[:half]} … {text[-(MESSAGE_LENGTH - half - 3) :]}"


def message_of(error: BaseException) -> str:
    """Return the message of an error; an unexpected one is named, too."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, ArithmeticError):
        return "the numbers are too large or too small to compute with; rescale the data"
    if isinstance(error, ValueError | TypeError | ImportError | OSError | RuntimeError):
        return " ".join(str(error).split())
    return f"{type(error).__name__}: {error} (--debug shows where)"
