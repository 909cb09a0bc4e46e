"""MATLAB files of version 4 and 5 to 7, read in plain Python: damage is an error, never a crash.

A file is a list of elements: a tag with type and length, then the bytes. An array is an element
that contains others: flags, dimensions, name, values. The names and sizes of all arrays are read
first. The values of an array are read when needed, after its size has been checked against the
limit. Arrays of numbers and of characters, and cell arrays of strings, are supported; everything
else is skipped.

Source: MAT-File Format (The MathWorks, R2023b).
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .limits import size_of
from .matstreams import READ_BYTES, Inflated, MatFormatError, Section

_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8",
          13: "u8", 16: "u1", 17: "u2", 18: "u4"}  # fmt: skip
_CODECS = {2: "latin-1", 16: "utf-8", 4: "utf-16", 17: "utf-16", 18: "utf-32"}
_MATRIX, _COMPRESSED = 14, 15
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8",
            15: "u8"}  # fmt: skip
_CELL, _CHARACTERS = 1, 4
_COMPLEX = 0x08
_V4_TYPES = ("f8", "f4", "i4", "i2", "u2", "u1")
_LONGEST_NAME = 4096


@dataclass(frozen=True)
class MatArray:
    """An array of a file: its description, and a function that reads its values."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int  # size of the values in memory
    read: Callable[[], NDArray[Any]]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)


class NewerVersion(MatFormatError):
    """A file of version 7.3, which is HDF5."""


def open_mat(file: IO[bytes], limit: int) -> dict[str, MatArray]:
    """Return the arrays of a file by name, without reading their values.

    Arrays of more than `limit` bytes are refused when they are read. The file must be
    seekable, and must stay open while the result is in use.
    """
    start = file.read(128)
    if len(start) < 20:
        raise MatFormatError("it ends within its header; the file is truncated")
    found = _scan4(file, limit) if 0 in start[:4] else _scan5(file, start, limit)
    return {array.name: array for array in found}


def _scan5(file: IO[bytes], start: bytes, limit: int) -> Iterator[MatArray]:
    order = {b"IM": "<", b"MI": ">"}.get(start[126:128])
    if order is None:
        raise MatFormatError("it does not begin like a MATLAB file")
    if int.from_bytes(start[124:126], "little" if order == "<" else "big") >> 8 == 2:
        raise NewerVersion("it is of version 7.3")
    place, end = 128, file.seek(0, io.SEEK_END)
    while place < end:
        file.seek(place)
        tag = file.read(8)
        if len(tag) < 8:
            raise MatFormatError("it ends within an element; the file is truncated")
        kind, length = np.frombuffer(tag, f"{order}u4").tolist()
        if place + 8 + length > end:
            raise MatFormatError("an element is longer than the file; the file is truncated")
        if kind in (_MATRIX, _COMPRESSED):
            opened = _Element(file, place + 8, length, kind == _COMPRESSED, order, limit)
            array = opened.array()
            if array is not None:
                yield array
        place += 8 + length + (-length % 8 if kind != _COMPRESSED else 0)


@dataclass(frozen=True)
class _Element:
    """A top-level element that contains an array."""

    file: IO[bytes]
    place: int
    length: int
    compressed: bool
    order: str
    limit: int

    def reader(self) -> _Reader:
        """Return the bytes of the array, from its flags on."""
        self.file.seek(self.place)
        if not self.compressed:
            return _Reader(Section(self.file, self.length), self.order, self.length, self.limit)
        stream = _Reader(Inflated(self.file, self.length), self.order, 8, self.limit)
        kind, length, _ = stream.tag()
        if kind != _MATRIX:
            raise MatFormatError("a compressed element does not contain an array")
        stream.left = length
        return stream

    def array(self) -> MatArray | None:
        """Return the description of the array; None if its kind is not supported."""
        about = _about(self.reader())
        if about is None:
            return None

        def read() -> NDArray[Any]:
            reader = self.reader()
            again = _about(reader)
            assert again is not None
            return _values(reader, again)

        return MatArray(about.name, about.shape, about.dtype, about.nbytes, read)


class _Reader:
    """Elements within an array, read in order; none extends beyond its parent."""

    def __init__(self, stream: Any, order: str, left: int, limit: int) -> None:
        self.stream, self.order, self.left, self.limit = stream, order, left, limit

    def exactly(self, n: int) -> bytes:
        """Return the next n bytes."""
        if n > self.left:
            raise MatFormatError("an element is longer than its parent")
        if n > self.limit:
            raise MatFormatError(f"an element has {size_of(n)}, more than {size_of(self.limit)}")
        parts = []
        self.left -= n
        while n:
            part = self.stream.read(min(n, READ_BYTES))
            if not part:
                raise MatFormatError("an element ends too early; the file is truncated")
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def tag(self) -> tuple[int, int, bool]:
        """Return type and length of the next element, and whether its bytes are in the tag."""
        first = int(np.frombuffer(self.exactly(4), f"{self.order}u4")[0])
        if first >> 16:
            if first >> 16 > 4:
                raise MatFormatError("a short element has more than 4 bytes")
            return first & 0xFFFF, first >> 16, True
        return first, int(np.frombuffer(self.exactly(4), f"{self.order}u4")[0]), False

    def element(self) -> tuple[int, bytes]:
        """Return type and bytes of the next element."""
        kind, length, short = self.tag()
        found = self.exactly(length)
        self.exactly(4 - length if short else min(-length % 8, self.left))
        return kind, found

    def within(self) -> _Reader:
        """Return a reader of the next element, which contains an array."""
        kind, length, _ = self.tag()
        if kind != _MATRIX or length > self.left:
            raise MatFormatError("a cell does not contain an array")
        self.left -= length
        return _Reader(self.stream, self.order, length, self.limit)

    def skip(self) -> None:
        """Skip the rest."""
        while self.left:
            self.exactly(min(self.left, READ_BYTES))


@dataclass(frozen=True)
class _About:
    """The description of an array, which precedes its values."""

    name: str
    of: int  # class
    dimensions: tuple[int, ...]
    shape: tuple[int, ...]  # as it is returned
    dtype: np.dtype[Any]
    nbytes: int


def _about(reader: _Reader) -> _About | None:
    kind, flags = reader.element()
    if kind != 6 or len(flags) != 8:
        raise MatFormatError("an array has no flags")
    word = int(np.frombuffer(flags, f"{reader.order}u4")[0])
    of, complex_ = word & 0xFF, bool((word >> 8) & _COMPLEX)
    if of not in _CLASSES and of not in (_CELL, _CHARACTERS):
        return None
    kind, raw = reader.element()
    if kind not in (5, 6) or not 8 <= len(raw) <= 4 * 32 or len(raw) % 4:
        raise MatFormatError("an array has no dimensions")
    dimensions = tuple(np.frombuffer(raw, f"{reader.order}i4").tolist())
    if min(dimensions) < 0:
        raise MatFormatError("an array has a negative dimension")
    _, raw = reader.element()
    if len(raw) > _LONGEST_NAME:
        raise MatFormatError("the name of an array is too long")
    name, n = raw.decode("utf-8", "replace"), math.prod(dimensions)
    if of == _CELL:
        return _About(name, of, dimensions, (n,), np.dtype("U"), 64 * n)
    if of == _CHARACTERS:
        return _About(name, of, dimensions, (dimensions[0],), np.dtype("U"), 4 * n)
    dtype = np.dtype(_CLASSES[of] if not complex_ else "c16")
    return _About(name, of, dimensions, dimensions, dtype, n * dtype.itemsize)


def _values(reader: _Reader, about: _About) -> NDArray[Any]:
    if about.nbytes > reader.limit:
        raise MatFormatError(
            f"the array {about.name!r} would take {size_of(about.nbytes)}, more than "
            f"{size_of(reader.limit)}; if this is intended, raise max_size="
        )
    if about.of == _CELL:
        return np.array([_cell(reader, about) for _ in range(about.shape[0])], dtype=np.str_)
    if about.dtype.kind == "c":
        raise MatFormatError(f"the array {about.name!r} contains complex numbers")
    kind, raw = reader.element()
    if about.of == _CHARACTERS:
        return _strings(_text(kind, raw, reader.order), about.dimensions)
    if kind not in _TYPES or len(raw) != math.prod(about.dimensions) * int(_TYPES[kind][1]):
        raise MatFormatError(f"the {len(raw):,} bytes of array {about.name!r} do not fit its shape")
    values = np.frombuffer(raw, f"{reader.order}{_TYPES[kind]}").astype(about.dtype)
    return values.reshape(about.dimensions, order="F")


def _cell(reader: _Reader, about: _About) -> str:
    inner = reader.within()
    found = _about(inner) if inner.left else None
    if found is None or found.of != _CHARACTERS or found.shape[0] > 1:
        raise MatFormatError(f"the cell array {about.name!r} contains cells that are not strings")
    kind, raw = inner.element()
    inner.skip()
    return _text(kind, raw, inner.order)[: math.prod(found.dimensions)]


def _text(kind: int, raw: bytes, order: str) -> str:
    codec = _CODECS.get(kind)
    if codec is None:
        raise MatFormatError("characters have an unknown type")
    if codec.startswith("utf-") and codec != "utf-8":
        codec += "-le" if order == "<" else "-be"
    try:
        return raw.decode(codec)
    except UnicodeDecodeError as error:
        raise MatFormatError(f"characters are damaged ({error})") from None


def _strings(text: str, dimensions: tuple[int, ...]) -> NDArray[Any]:
    """Return the rows of an array of characters, which is stored by column, as strings."""
    if len(text) != math.prod(dimensions) or len(dimensions) > 2:
        raise MatFormatError("characters do not fit their dimensions")
    rows = dimensions[0]
    return np.array([text[i::rows] for i in range(rows)], dtype=np.str_)


def _scan4(file: IO[bytes], limit: int) -> Iterator[MatArray]:
    place, end = 0, file.seek(0, io.SEEK_END)
    while place < end:
        file.seek(place)
        head = file.read(20)
        if len(head) < 20:
            raise MatFormatError("it ends within an array; the file is truncated")
        order = "<" if 0 <= int.from_bytes(head[:4], "little") < 5000 else ">"
        kind, rows, columns, imaginary, length = np.frombuffer(head, f"{order}i4").tolist()
        thousands, (number, content) = kind // 1000, divmod(kind % 100, 10)
        sound = thousands in (0, 1) and kind % 1000 < 100 and number < len(_V4_TYPES)
        if not sound or rows < 0 or columns < 0 or not 0 < length <= _LONGEST_NAME:
            raise MatFormatError("it does not begin like a MATLAB file, or is damaged")
        name = file.read(length).rstrip(b"\0").decode("latin-1")
        dtype = np.dtype(f"{order}{_V4_TYPES[number]}")
        size = rows * columns * dtype.itemsize
        first = place + 20 + length
        place = first + size * (2 if imaginary else 1)
        if place > end:
            raise MatFormatError("an array is longer than the file; the file is truncated")
        if content in (0, 1) and not imaginary:
            text = content == 1
            shape = (rows,) if text else (rows, columns)
            made = np.dtype("U") if text else dtype.newbyteorder("=")
            yield MatArray(
                name, shape, made, size, _V4Values(file, first, rows, columns, dtype, text, limit)
            )


@dataclass(frozen=True)
class _V4Values:
    """Reads the values of an array of version 4."""

    file: IO[bytes]
    first: int
    rows: int
    columns: int
    dtype: np.dtype[Any]
    text: bool
    limit: int

    def __call__(self) -> NDArray[Any]:
        size = self.rows * self.columns * self.dtype.itemsize
        if size > self.limit:
            raise MatFormatError(f"an array has {size_of(size)}, more than {size_of(self.limit)}")
        self.file.seek(self.first)
        flat = np.frombuffer(self.file.read(size), self.dtype)
        if not self.text:
            made = flat.astype(self.dtype.newbyteorder("="))
            return made.reshape((self.rows, self.columns), order="F")
        if not bool(((flat >= 0) & (flat < 0xD800)).all()):
            raise MatFormatError("characters are damaged")
        return _strings("".join(map(chr, flat.astype(int))), (self.rows, self.columns))


def explained(path: str, error: MatFormatError) -> DataError:
    """Return the error for a file, in one line."""
    if isinstance(error, NewerVersion):
        return DataError(
            f"{path}: is a MATLAB file of version 7.3 (HDF5), which is not supported; in MATLAB, "
            "save(…, '-v7') writes one that is"
        )
    return DataError(f"{path}: cannot be read as .mat: {error}")
