"""Limits on the size of a file's contents, checked before memory is allocated.

A few bytes of a compressed file can expand to gigabytes, and a line need never end. The sizes that
a file claims are checked against these limits first; `max_size` raises them for larger objects.
"""

from __future__ import annotations

import os
import re

from .errors import DataError

MIB = 2**20
RECORD = 32 * MIB
"""Maximum number of bytes of one line, one record or one cell."""
CELL = 128
"""Bytes that a cell counts as, which limits the number of cells: each becomes a Python object."""
ARRAY = 256 * MIB
"""Total size in bytes up to which the arrays of a compressed file are always accepted."""
ARRAY_RATIO = 20
"""The arrays may also expand to this multiple of the size of the compressed file."""
TEXT_RATIO = 100
"""The same multiple for compressed text, which is read in pieces."""


def parse_size(text: str) -> int:
    """Return a size in bytes: a number, with K, M or G for multiples of 1024.

    >>> parse_size("2G") == 2 * 1024**3
    True
    """
    found = re.fullmatch(r"(\d{1,18})([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    if found is None or int(found[1]) == 0:
        raise ValueError(f"a size must be a number of bytes, such as 500M or 2G; got {text!r}")
    return int(found[1]) * 1024 ** " KMG".index(found[2].upper() or " ")


def size_of(n: int) -> str:
    """Return a number of bytes as readable text.

    >>> size_of(3 * 2**30), size_of(64 * 2**20), size_of(1000)
    ('3 GiB', '64 MiB', '1,000 bytes')
    """
    for unit, name in ((2**30, "GiB"), (MIB, "MiB")):
        if n >= unit:
            return f"{n / unit:,.3g} {name}" if n < 1000 * unit else f"{n // unit:,} {name}"
    return f"{n:,} bytes"


def record_limit(max_size: int | None) -> int:
    """Return the maximum number of bytes of a line, a record or a cell."""
    return RECORD if max_size is None else max_size


def cell_limit(max_size: int | None) -> int:
    """Return the maximum number of cells of a record."""
    return max(record_limit(max_size) // CELL, 1)


def array_limit(path: str, max_size: int | None) -> int:
    """Return the maximum number of bytes of the arrays of a compressed file."""
    return _packed_limit(path, max_size, ARRAY_RATIO)


def text_limit(path: str, max_size: int | None) -> int:
    """Return the maximum number of bytes of text in a compressed file."""
    return _packed_limit(path, max_size, TEXT_RATIO)


def _packed_limit(path: str, max_size: int | None, ratio: int) -> int:
    return max(ARRAY if max_size is None else max_size, ratio * os.path.getsize(path))


def too_many(where: str, cells: int, limit: int) -> DataError:
    """Return the error for a record with too many cells."""
    return DataError(
        f"{where}: has {cells:,} values or more, above the limit of {limit:,}; if this is "
        f"intended, raise max_size="
    )


def too_large(where: str, size: int | None, limit: int) -> DataError:
    """Return the error for something beyond its limit; `size` is None if it is unknown."""
    what = "is longer than" if size is None else f"would take {size_of(size)}, more than"
    return DataError(f"{where}: {what} {size_of(limit)}; if this is intended, raise max_size=")
