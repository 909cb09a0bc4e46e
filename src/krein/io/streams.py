"""Bytes, lines and rows of strangers' files: limits, compression and pipes.

Every reader takes its bytes from here. A few bytes of a compressed file can expand to gigabytes,
and a line need never end, so the sizes that a file claims are checked against limits before memory
is allocated; `max_size` raises the limits for larger objects. Compression is recognised by the
first bytes, not by the name: gzip, xz and bzip2 are supported, and zstd if its package is
installed. Text is UTF-8, with or without a byte order mark.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import math
import os
import re
import stat
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import IO, Any, Generic, TypeVar

from ..wording import parameter

zstd: Any = None
with suppress(ImportError):
    zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


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


class UnreadableObjectError(DataError):
    """One object that cannot be read or compared, among others that perhaps can."""


# -------------------------------------------------------------------------------------------------
# Limits
# -------------------------------------------------------------------------------------------------

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


def array_limit(path: str, max_size: int | None, ratio: int = ARRAY_RATIO) -> int:
    """Return the maximum number of bytes that the contents of a compressed file may have."""
    return max(ARRAY if max_size is None else max_size, ratio * os.path.getsize(path))


def check_cells(where: str, cells: int, max_size: int | None) -> None:
    """Raise an error if a record has too many cells."""
    limit = max(record_limit(max_size) // CELL, 1)
    if cells > limit:
        raise DataError(
            f"{where}: has {cells:,} values or more, above the limit of {limit:,}; if this is "
            f"intended, raise {parameter('max_size')}"
        )


def too_large(where: str, size: int | None, limit: int) -> DataError:
    """Return the error for something beyond its limit; `size` is None if it is unknown."""
    what = "is longer than" if size is None else f"would take {size_of(size)}, more than"
    remedy = f"if this is intended, raise {parameter('max_size')}"
    return DataError(f"{where}: {what} {size_of(limit)}; {remedy}")


# -------------------------------------------------------------------------------------------------
# Bytes, lines and rows from a file or standard input, plain or compressed
# -------------------------------------------------------------------------------------------------

STDIN = "-"
BOM = b"\xef\xbb\xbf"
LONGEST = 65_536
"""Maximum number of bytes needed to recognise a format."""

_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIXES = (".gz", ".xz", ".bz2", ".zst")

_ZSTD_ERROR: type[Exception] = EOFError if zstd is None else zstd.ZstdError
UNPACKING_ERRORS = (EOFError, zlib.error, lzma.LZMAError, _ZSTD_ERROR, OSError)
"""Errors that are raised while a damaged file is decompressed."""


def bare_name(path: str) -> str:
    """Return the path in lower case, without the suffix of a compressed file.

    >>> bare_name("Families.FASTA.gz")
    'families.fasta'
    """
    name = path.lower()
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def has_packed_suffix(path: str) -> bool:
    """Whether a name says that the file is compressed, which decides where a file is mapped."""
    return path.lower() != bare_name(path)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether the path is a pipe, a device or an open descriptor, not a file on disk."""
    name = os.fspath(path)
    if name.startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return os.path.exists(name)
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)
    except (OSError, ValueError):  # there is no such file, or a name with a null character
        return False


def read_once(path: str) -> bool:
    """Whether the path is standard input or a stream, which cannot be read a second time."""
    return path == STDIN or is_stream(path)


def refuse_stream(path: str | os.PathLike[str], what: str) -> None:
    """Raise an error if something that is read out of order does not come from a file on disk."""
    path = os.fspath(path)
    if read_once(path) and not os.path.isdir(path):
        raise DataError(
            f"{shown(path)}: {what} is read from a file on disk, not from a pipe; save "
            "it to a file first"
        )


FileState = tuple[int, int, int, int]


def file_state(path: str) -> FileState | None:
    """Return device, inode, size and modification time of a file; None for a stream or no file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    if is_stream(path):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def shown(path: str) -> str:
    """Return the name of the file for messages."""
    return "standard input" if path == STDIN else path


@contextmanager
def open_bytes(path: str) -> Iterator[IO[bytes]]:
    """Open a file, a pipe or standard input, and decompress it."""
    try:
        if read_once(path):
            try:
                yield _stream(path)
            finally:
                if path in _streams and _streams[path].top.ended:
                    close_stream(path)
        else:
            with open(path, "rb") as raw:
                _open_files[path] = raw
                try:
                    yield _unpacked(raw, path)
                finally:
                    _open_files[path] = None
    except UNPACKING_ERRORS as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the operating system
        raise _damaged(path, error) from error


_open_files: dict[str, IO[bytes] | None] = {}
"""Files that are being read, or None for those that were read to the end."""


def share_read(path: str) -> float | None:
    """Return the share of a file on disk that has been read; None if it is not read as bytes."""
    if path not in _open_files:
        return None
    raw = _open_files[path]
    try:
        return 1.0 if raw is None else raw.tell() / max(os.path.getsize(path), 1)
    except ValueError:  # it has just been closed
        return 1.0


class _PutBack(io.RawIOBase):
    """A stream of bytes that were read ahead, followed by the rest."""

    def __init__(self, start: bytes, rest: Any) -> None:
        self.start, self.rest = start, rest
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = getattr(self.rest, "read1", None) or self.rest.read  # a raw file reads once anyway
        part = self.start[: len(buffer)] or read(len(buffer))
        self.ended = not part
        self.start = self.start[len(part) :]
        buffer[: len(part)] = part
        return len(part)


@dataclass
class _Stream:
    """A stream that is being read: as opened, and decompressed behind what was put back."""

    opened: Any
    top: _PutBack
    file: IO[bytes]


_streams: dict[str, _Stream] = {}


def _stream(path: str) -> IO[bytes]:
    """Return a pipe or standard input, decompressed.

    It is the same stream each time, so that bytes read ahead are not lost.
    """
    opened: Any = None
    if path == STDIN:
        if sys.stdin is None or sys.stdin.buffer.closed:
            raise DataError("standard input is closed; pass a file instead")
        opened = sys.stdin.buffer
    kept = _streams.get(path)
    if kept is None or (path == STDIN and kept.opened is not opened):
        # unbuffered: a thread that waits for input must not hold a lock that Python needs to exit
        if opened is None:
            opened = io.FileIO(path)  # closed by `close_stream`
        raw = getattr(opened, "raw", opened)
        start = io.BufferedReader(_PutBack(_magic_bytes(raw), raw))
        kept = _kept(path, opened, b"", _unpacked(start, path))
    return kept.file


def _kept(path: str, opened: Any, start: bytes, rest: Any) -> _Stream:
    top = _PutBack(start, rest)
    _streams[path] = _Stream(opened, top, io.BufferedReader(top))
    return _streams[path]


def close_stream(path: str) -> None:
    """Forget what was read of a pipe, so that it is opened again; standard input stays open."""
    if path != STDIN and (kept := _streams.pop(path, None)) is not None:
        kept.opened.close()


def _magic_bytes(raw: Any) -> bytes:
    """Return the first bytes of a pipe, as many as are needed to recognise a compression.

    Bytes may arrive one by one. Reading stops as soon as they cannot be the start of a compressed
    file, because further ones may take long to arrive.
    """
    start = b""
    while any(magic.startswith(start) and magic != start for magic in _MAGIC):
        if not (part := raw.read(1)):
            break
        start += part
    return start


def beginning(path: str) -> bytes:
    """Return a file up to the end of its first line that is not blank, without consuming it.

    This waits for a pipe, because what has arrived so far may be half a line.
    """
    start = b""
    with open_bytes(path) as file:
        while len(start) < LONGEST and (part := file.readline(LONGEST - len(start))):
            start += part
            if part.endswith(b"\n") and start.removeprefix(BOM).strip():
                break
        if path in _streams:
            _kept(path, _streams[path].opened, start, file)
    return start.removeprefix(BOM)


def _damaged(path: str, error: Exception, after: str = "") -> DataError:
    reason = f"is damaged ({error})"
    if isinstance(error, EOFError):
        reason = "ends too early; it may have been truncated while it was copied"
    return DataError(f"{shown(path)}{after}: the compressed file {reason}")


def _unpacked(raw: Any, path: str) -> Any:
    start = raw.peek(6)[:6]
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
    if kind == "zstd" and zstd is None:
        raise DataError(
            f"{shown(path)}: is compressed with zstd: pip install backports.zstd, or use gzip, xz "
            "or bzip2"
        )
    if kind is None:
        return raw
    return {"gzip": gzip, "xz": lzma, "bzip2": bz2, "zstd": zstd}[kind].open(raw)


def expansion_limit(file: IO[bytes], path: str, max_size: int | None) -> float:
    """Return how many bytes of text an open file may contain: no limit if it is not compressed."""
    packed = not isinstance(file, io.BufferedReader)
    return array_limit(path, max_size, TEXT_RATIO) if packed else math.inf


def read_lines(path: str, max_size: int | None = None) -> Iterator[str]:
    """Yield the lines of a text with their line ends, decoded one by one; line numbers start at 1.

    A line is refused before more than `max_size` bytes of it are in memory, and a compressed file
    if it expands to implausibly more than its size.
    """
    line, limit, total = 0, record_limit(max_size), 0
    try:
        with open_bytes(path) as file:
            most = expansion_limit(file, path, max_size)
            while text := file.readline(limit + 1):
                line += 1
                total += len(text)
                if len(text) > limit:
                    raise too_large(f"{shown(path)}, line {line}", None, limit)
                if total > most:
                    raise too_large(f"{shown(path)}, unpacked", None, int(most))
                if line == 1:
                    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):
                        raise DataError(f"{shown(path)}: is in UTF-16; save it as UTF-8")
                    text = text.removeprefix(BOM)
                try:
                    yield text.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{shown(path)}, line {line}: byte 0x{text[error.start]:02x} is not UTF-8; "
                        f"is the file in another encoding? iconv -f latin1 -t utf-8 converts the "
                        f"most common one"
                    ) from None
    except DataError as error:
        if isinstance(error.__cause__, UNPACKING_ERRORS) and line:
            after = f", after line {line}"
            raise _damaged(path, error.__cause__, after) from error.__cause__
        raise


TableRow = tuple[int, list[str]]  # its first line, its cells


def read_rows(
    path: str, delimiter: str | None, *, empty: bool = False, max_size: int | None = None
) -> Iterator[TableRow]:
    """Yield the rows of a table with the line each begins on; empty lines only if requested.

    The default delimiter is the tab in a `.tsv` file, otherwise whichever of comma, semicolon and
    tab is most frequent in the first line.
    """
    lines = iter(read_lines(path, max_size))
    first = next(lines, None)
    if first is None:
        return
    if delimiter is None:
        bare = "".join(first.split('"')[::2])
        is_tsv = bare_name(path).endswith((".tsv", ".tab"))
        delimiter = "\t" if is_tsv else max(",;\t", key=bare.count)
    most = record_limit(max_size)
    line, size, cells = 1, 0, 0  # of the row that is being read, which may span several lines

    def limited() -> Iterator[str]:
        nonlocal size, cells
        for text in chain([first], lines):
            size += len(text)
            cells += text.count(delimiter)
            if size > most:
                raise too_large(f"{shown(path)}, the row on line {line}", None, most)
            check_cells(f"{shown(path)}, line {line}", cells, max_size)
            yield text

    csv.field_size_limit(most)
    reader = csv.reader(limited(), delimiter=delimiter, strict=True)
    while True:
        size = cells = 0
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{shown(path)}, line {line}: {error}") from None
        if row or empty:
            yield line, row
        line = reader.line_num + 1


# -------------------------------------------------------------------------------------------------
# Items of a pipe as they arrive, without waiting for more
# -------------------------------------------------------------------------------------------------

Item = TypeVar("Item")

WAIT = 0.2
"""Maximum seconds to wait for more items."""

AHEAD = 4096
"""Number of items read ahead."""


class BackgroundReader(Iterator[Item], Generic[Item]):
    """An iterator read by a separate thread, so that waiting for its items can be limited.

    An error of the iterator is raised once all items before it have been taken.

    Examples
    --------
    >>> from krein.io.streams import BackgroundReader
    >>> items = BackgroundReader("abcde")
    >>> items.take(3, wait=1.0), list(items)
    (['a', 'b', 'c'], ['d', 'e'])
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items
        self._read: deque[Item] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = self._closed = False
        self._error: BaseException | None = None

    def __next__(self) -> Item:
        found = self.take(1)
        if not found:
            raise StopIteration
        return found[0]

    def take(self, most: int, *, wait: float = 0.0, least: int = 1) -> list[Item]:
        """Return the next items: at most `most`, or fewer if they take longer than `wait` seconds.

        There is no time limit for the first `least` items. An empty list means that no items are
        left.
        """
        if self._thread is None:
            # ending must not wait for a read that blocks
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: len(self._read) >= min(least, most) or self._ended)
            until = time.monotonic() + wait
            while len(self._read) < most and not self._ended:
                left = until - time.monotonic()
                if left <= 0 or len(self._read) >= AHEAD:
                    break
                self._changed.wait(left)
            found = [self._read.popleft() for _ in range(min(most, len(self._read)))]
            self._changed.notify_all()
            if not found and self._error is not None:
                raise self._error
            return found

    def close(self) -> None:
        """Stop reading."""
        with self._changed:
            self._closed = self._ended = True
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            for item in self._items:
                with self._changed:
                    self._changed.wait_for(lambda: len(self._read) < AHEAD or self._closed)
                    if self._closed:
                        return
                    self._read.append(item)
                    self._changed.notify_all()
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
