"""Bytes and lines from a file or standard input, plain or compressed.

Compression is recognised by the first bytes, not by the name: gzip, xz and bzip2 are supported.
Text is UTF-8, with or without a byte order mark.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from .errors import DataError
from .limits import record_limit, text_limit, too_large

STDIN = "-"
BOM = b"\xef\xbb\xbf"
LONGEST = 65_536
"""Maximum number of bytes needed to recognise a format."""

_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIXES = (".gz", ".xz", ".bz2", ".zst")


def bare_name(path: str) -> str:
    """Return the path in lower case, without the suffix of a compressed file.

    >>> bare_name("Families.FASTA.gz")
    'families.fasta'
    """
    name = path.lower()
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def shown(path: str) -> str:
    """Return the name of the file for messages."""
    return "standard input" if path == STDIN else path


@contextmanager
def open_bytes(path: str) -> Iterator[IO[bytes]]:
    """Open a file or standard input, and decompress it."""
    try:
        if path == STDIN:
            yield _standard_input()
        else:
            with open(path, "rb") as raw:
                yield _unpacked(raw, path)
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the operating system
        raise damaged(path, error) from error


_stdin: tuple[Any, IO[bytes]] | None = None


def _standard_input() -> IO[bytes]:
    """Return standard input, decompressed; the same stream each time, so that bytes read ahead are
    not lost.
    """
    global _stdin
    if sys.stdin is None or sys.stdin.buffer.closed:
        raise DataError("standard input is closed; pass a file instead")
    stream: Any = sys.stdin.buffer
    if _stdin is None or _stdin[0] is not stream:
        # unbuffered: a thread that waits for input must not hold a lock that Python needs to exit
        raw = getattr(stream, "raw", stream)
        _stdin = (stream, _unpacked(_put_back(_magic_bytes(raw), raw), STDIN))
    return _stdin[1]


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
    global _stdin
    start = b""
    with open_bytes(path) as file:
        while len(start) < LONGEST and (part := file.readline(LONGEST - len(start))):
            start += part
            if part.endswith(b"\n") and start.removeprefix(BOM).strip():
                break
        if path == STDIN:
            assert _stdin is not None
            _stdin = (_stdin[0], _put_back(start, file))
    return start.removeprefix(BOM)


def _put_back(start: bytes, rest: Any) -> IO[bytes]:
    return io.BufferedReader(_PutBack(start, rest))


class _PutBack(io.RawIOBase):
    """A stream of bytes that were read ahead, followed by the rest."""

    def __init__(self, start: bytes, rest: Any) -> None:
        self.start, self.rest = start, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self.start[: len(buffer)] or self._more(len(buffer))
        self.start = self.start[len(part) :]
        buffer[: len(part)] = part
        return len(part)

    def _more(self, size: int) -> bytes:
        read = getattr(self.rest, "read1", None) or self.rest.read  # a raw file reads once anyway
        part: bytes = read(size)
        return part


def damaged(path: str, error: Exception, line: int | None = None) -> DataError:
    """Return the error for a compressed file that cannot be decompressed."""
    after = "" if line is None else f", after line {line}"
    if isinstance(error, EOFError):
        return DataError(
            f"{shown(path)}{after}: the compressed file ends too early; it may have been "
            f"truncated while it was copied"
        )
    return DataError(f"{shown(path)}{after}: the compressed file is damaged ({error})")


def _unpacked(raw: Any, path: str) -> Any:
    start = raw.peek(6)[:6]
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
    if kind == "gzip":
        return gzip.open(raw)
    if kind == "xz":
        return lzma.open(raw)
    if kind == "bzip2":
        return bz2.open(raw)
    if kind == "zstd":
        raise DataError(
            f"{shown(path)}: is compressed with zstd, which is not supported; use gzip, xz or bzip2"
        )
    return raw


def read_lines(path: str, max_size: int | None = None) -> Iterator[str]:
    """Yield the lines of a text with their line ends, decoded one by one; line numbers start at 1.

    A line is refused before more than `max_size` bytes of it are in memory, and a compressed file
    if it expands to implausibly more than its size.
    """
    line, limit = 0, record_limit(max_size)
    try:
        with open_bytes(path) as file:
            packed = isinstance(file, gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File)
            left = text_limit(path, max_size) if packed and path != STDIN else None
            while text := file.readline(limit + 1):
                line += 1
                if len(text) > limit:
                    raise too_large(f"{shown(path)}, line {line}", None, limit)
                if left is not None:
                    left -= len(text)
                    if left < 0:
                        raise too_large(
                            f"{shown(path)}, unpacked", None, text_limit(path, max_size)
                        )
                if line == 1:
                    text = _without_mark(text, path)
                try:
                    yield text.decode("utf-8")
                except UnicodeDecodeError as error:
                    byte = text[error.start]
                    raise DataError(
                        f"{shown(path)}, line {line}: byte 0x{byte:02x} is not UTF-8; is the file "
                        f"in another encoding? iconv -f latin1 -t utf-8 converts the most common "
                        f"one"
                    ) from None
    except DataError as error:
        if isinstance(error.__cause__, EOFError | zlib.error | lzma.LZMAError | OSError) and line:
            raise damaged(path, error.__cause__, line) from error.__cause__
        raise


def _without_mark(text: bytes, path: str) -> bytes:
    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{shown(path)}: is in UTF-16; save it as UTF-8")
    return text.removeprefix(BOM)
