"""Errors about files, in one line."""

from __future__ import annotations


def quoted(text: str, longest: int = 40) -> str:
    """Return the beginning of text from a file, in quotes, for a message.

    >>> quoted("a" * 100, 10)
    "'aaaaaaaaaa…'"
    """
    return repr(text if len(text) <= longest else text[:longest] + "…")


class DataError(ValueError):
    """Data that cannot be used: the message names the file, the line and the object.

    Examples
    --------
    >>> from krein.io import DataError, open_source
    >>> try:
    ...     open_source("no-such-file.fasta").read()
    ... except DataError as error:
    ...     print(error)
    ...
    no-such-file.fasta: there is no such file
    """
