"""The bytes of one element of a MATLAB file, plain or decompressed, one piece at a time."""

from __future__ import annotations

import zlib
from typing import IO

READ_BYTES = 2**20


class MatFormatError(ValueError):
    """Bytes that are not a MATLAB file, or a damaged one."""


class Section:
    """The next bytes of a file."""

    def __init__(self, file: IO[bytes], length: int) -> None:
        self.file, self.left = file, length

    def read(self, n: int) -> bytes:
        """Return up to n bytes, none at the end."""
        found = self.file.read(min(n, self.left))
        self.left -= len(found)
        return found


class Inflated:
    """The next bytes of a file, decompressed on demand."""

    def __init__(self, file: IO[bytes], length: int) -> None:
        self.section = Section(file, length)
        self.zlib = zlib.decompressobj()
        self.waiting = b""

    def read(self, n: int) -> bytes:
        """Return up to n bytes, none at the end."""
        while not self.zlib.eof:
            packed = self.waiting or self.section.read(READ_BYTES)
            try:
                found = self.zlib.decompress(packed, n)
            except zlib.error as error:
                raise MatFormatError(f"a compressed element is damaged ({error})") from error
            self.waiting = self.zlib.unconsumed_tail
            if found or not packed:
                return found
        return b""
