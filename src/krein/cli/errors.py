"""Translate errors of the library into messages of the command."""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPTIONS = {
    "objects": "--objects",
    "labels": "--labels",
    "names": "--names",
    "format": "--input-format",
    "symmetrize": "--symmetrize",
    "n_jobs": "--jobs",
    "n_landmarks": "--n-landmarks",
    "landmarks": "--landmarks",
    "measure": "--measure",
    "folds": "--folds",
    "max_size": "--max-size",
}
_WORD = re.compile(
    # quoted text is the user's own, unless it is the value of a parameter
    r"\b(?P<name>" + "|".join(_OPTIONS) + r")=(?P<value>True\b|'[^']*'|[\w-]+)?|'(?:[^'\\]|\\.)*'"
)
_PARAMS = re.compile(r"measure_params=\{'(\w+)': '?(\w+)'?\}")


def printable(text: str, longest: int = 60) -> str:
    """Return text from the data with control characters escaped, safe to print on a terminal."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


LONGEST = 280
"""Maximum length of a message; it begins with the problem and ends with the remedy."""


def told(error: BaseException, typed: Sequence[str] = ()) -> str:
    """Return the message of an error in one line, with options instead of Python parameters.

    Text that the user `typed` is repeated unchanged: a file may be called `labels=None.fasta`.
    """
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    message = " ".join(str(error).split())
    if isinstance(error, ArithmeticError):
        return "the numbers are too large or too small to compute with; rescale the data"
    if not isinstance(error, ValueError | TypeError | ImportError | OSError | RuntimeError):
        return f"{type(error).__name__}: {message} (--debug shows where)"
    kept = [re.escape(" ".join(word.split())) for word in typed if "=" in word]
    kept += [re.escape(word.partition("=")[2]) for word in typed if word.startswith("--")]
    own = "|".join(sorted((word for word in kept if word), key=len, reverse=True))
    parts = re.split(f"({own})", message) if own else [message]
    return "".join(part if i % 2 else _translated(part) for i, part in enumerate(parts))


def _translated(message: str) -> str:
    message = message.replace("krein.measures.available()", "krein fit --help")
    return _WORD.sub(_option, _PARAMS.sub(r"--measure-param \1=\2", message))


def one_line(message: str) -> str:
    """Return a message in the form shown on a terminal: one line, no control characters, limited
    length.

    >>> print(one_line("a" + chr(27) + "b" + chr(10) + "c"))
    a\\x1bb c
    """
    text = printable(" ".join(message.split()), 100_000)
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} … {text[-(LONGEST - half - 3) :]}"


def _option(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    if name is None:
        return found[0]
    if value is None or value == "True":
        return _OPTIONS[name]
    return f"{_OPTIONS[name]} {value.strip(chr(39))}"
