"""The bytes of one element of a MATLAB file, plain or decompressed, one piece at a time."""

from __future__ import annotations

import io
import lzma
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..measures.base import TimesFirst
from ..wording import parameter
from .labels import USUAL_LABELS, Labels, Unlabelled, as_labels, find_labels, is_label_file
from .npy import ArrayFormatError, check_characters, read_header, read_values
from .source import NOUNS, Chunk, Kind, Record, RecordSource, Source, whole
from .streams import (
    STDIN,
    DataError,
    array_limit,
    bare_name,
    cell_limit,
    open_bytes,
    quoted,
    read_lines,
    shown,
    size_of,
    too_large,
    too_many,
)
from .tables import USUAL_NAMES

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


# -------------------------------------------------------------------------------------------------
# MATLAB files of version 4 and 5 to 7, read in plain Python: damage is an error, never a crash.
#
# A file is a list of elements: a tag with type and length, then the bytes. An array is an element
# that contains others: flags, dimensions, name, values. The names and sizes of all arrays are read
# first. The values of an array are read when needed, after its size has been checked against the
# limit. Arrays of numbers and of characters, and cell arrays of strings, are supported; everything
# else is skipped.
#
# Source: MAT-File Format (The MathWorks, R2023b).
# -------------------------------------------------------------------------------------------------

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
            f"{size_of(reader.limit)}; if this is intended, raise {parameter('max_size')}"
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


# -------------------------------------------------------------------------------------------------
# Arrays from `.npy`, `.npz` and `.mat` files: matrices of values, vectors, series.
#
# A square array with two axes is a matrix of values; any other array with two axes contains
# vectors; one with three axes (objects, times, channels) contains series. `format` overrides
# these rules. Nothing in a file is unpickled.
# -------------------------------------------------------------------------------------------------


class ArraySource(Source):
    """Objects along the first axis of an array, which is in memory or memory-mapped."""

    def __init__(
        self,
        path: str,
        kind: Kind,
        array: NDArray[Any],
        labels: Labels,
        own: list[str] | None = None,
        names: list[str] | None = None,
        called: str = "",
    ) -> None:
        self.path, self.kind, self.array, self.labels = path, kind, array, labels
        self.own, self.names, self.called = own, names, called

    def __len__(self) -> int:
        return len(self.array)

    @property
    def understood(self) -> str:
        """How the file was interpreted."""
        size = " × ".join(str(k) for k in self.array.shape)
        what = {
            "matrix": f"a matrix of {size} values",
            "vectors": f"{size} numbers, one vector per row",
            "series": f"{size} numbers: series (objects × times × channels)",
        }[self.kind]
        return what + (f" in the array {self.called!r}" if self.called else "")

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time."""
        if size < 1:
            raise ValueError(f"a chunk must contain at least one object; got size={size}")
        for first in range(0, len(self.array), size):
            yield self._chunk(np.array(self.array[first : first + size]), first)
        self.labels.finish(len(self.array))

    def read(self) -> Chunk:
        """Return all objects; a memory map stays one."""
        chunk = whole([self._chunk(self.array, 0)])
        self.labels.finish(len(chunk))
        return chunk

    def _chunk(self, objects: NDArray[Any], first: int) -> Chunk:
        n = len(objects)
        stop = first + n
        names = self.names
        chunk = Chunk(
            names=[str(i) for i in range(first, stop)] if names is None else names[first:stop],
            objects=objects,
            labels=None,
            first=first,
            path=self.shown,
            kind=self.kind,
        )
        if not (self.kind == "matrix" and isinstance(objects, np.memmap)):
            self._refuse_missing(chunk)  # a mapped matrix is checked as it is read
        own = [None] * n if self.own is None else self.own[first:stop]
        part = Unlabelled(chunk.names, [""] * n, own, first, chunk.where)
        return replace(chunk, labels=self.labels.of(part))

    def _refuse_missing(self, chunk: Chunk) -> None:
        for start in range(0, len(chunk), 4096):
            part = np.asarray(chunk.objects[start : start + 4096], dtype=np.float64)
            if np.isfinite(part.sum()) or np.isfinite(part).all():
                continue
            row, *place = (int(k) for k in np.argwhere(~np.isfinite(part))[0])
            value = part[(row, *place)]
            at = ", ".join(str(k) for k in place)
            raise DataError(
                f"{chunk.where(start + row)}: the value at ({at}) is {value}; fill it in, or "
                f"remove the {NOUNS[self.kind]}"
            )


def open_arrays(
    path: str,
    written: str,
    meant: str | None,
    objects: str | None,
    labels: str | None,
    names: str | None,
    label_pattern: str | None,
    max_size: int | None = None,
) -> ArraySource:
    """Open a `.npy`, `.npz` or `.mat` file."""
    if path == STDIN:
        raise DataError(f"{written} is read from a file, not from standard input")
    if written == "npy":
        if objects is not None or names is not None:
            raise ValueError(
                f"{path} contains one unnamed array: leave out {parameter('objects')} and "
                f"{parameter('names')}"
            )
        array = load_npy(path, max_size)
        kind = _kind(array, meant, path)
        return ArraySource(path, kind, array, find_labels(labels, label_pattern, max_size))
    beside = labels
    with _members(path, written, max_size) as arrays:
        key = _pick(arrays, objects, meant, path)
        about = arrays[key]
        kind = _kind(about, meant, f"{path}, array {key!r}")
        n, own, called = about.shape[0], None, None
        if labels is not None and labels not in arrays and not is_label_file(labels):
            raise DataError(f"{path}: there is no array {labels!r}; it contains {_listed(arrays)}")
        if labels is None or labels in arrays:
            beside = None
            lists = {k: v for k, v in arrays.items() if k != key and _is_list(v, n)}
            own_key = labels if labels is not None else _usual(lists, (*USUAL_LABELS, "y"))
            if own_key is not None and not (labels is None and label_pattern is not None):
                own = as_labels(arrays[own_key].read(), f"{path}, array {own_key!r}")
                _same_length(own, n, path, own_key, key)
            name_key = names if names is not None else _usual(lists, USUAL_NAMES)
            if name_key is not None:
                if name_key not in arrays:
                    raise DataError(f"{path}: there is no array {name_key!r}; {_listed(arrays)}")
                called = as_labels(arrays[name_key].read(), f"{path}, array {name_key!r}")
                _same_length(called, n, path, name_key, key)
        array = about.read()
    found = find_labels(beside, label_pattern, max_size)
    return ArraySource(path, kind, array, found, own, called, key)


def _kind(array: Any, meant: str | None, what: str) -> Kind:
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what}: contains {array.dtype}, not real numbers")
    if array.ndim not in (2, 3) or array.shape[0] == 0 or array.size == 0:
        raise DataError(
            f"{what}: has the shape {array.shape}; a matrix or vectors have two axes, series three"
        )
    if array.ndim == 3:
        if meant in ("matrix", "vectors"):
            raise DataError(
                f"{what}: has three axes {array.shape}, so it cannot be read as {meant}"
            )
        return "series"
    if meant in ("matrix", "vectors", "series"):
        return meant  # type: ignore[return-value]
    return "matrix" if array.shape[0] == array.shape[1] else "vectors"


def load_npy(path: str, max_size: int | None = None) -> NDArray[Any]:
    """Return the array of an `.npy` file, memory-mapped unless it is compressed."""
    packed = path.lower() != bare_name(path)
    try:
        with open_bytes(path) if packed else open(path, "rb") as file:
            header = read_header(file)
            if packed:
                limit = array_limit(path, max_size)
                if header.nbytes > limit:
                    raise too_large(path, header.nbytes, limit)
                found = read_values(file, header)
                check_characters(found, path)
                return found
        if header.nbytes == 0:
            return np.empty(header.shape, header.dtype)
        if header.length + header.nbytes > os.path.getsize(path):
            raise ArrayFormatError(f"it ends before {header.nbytes:,} bytes of values; truncated?")
        order: Literal["F", "C"] = "F" if header.fortran else "C"
        return np.memmap(path, header.dtype, "r", header.length, header.shape, order)
    except (ArrayFormatError, OverflowError) as error:
        raise _unreadable(path, "npy", error) from error


@dataclass(frozen=True)
class _Member:
    """An array of an archive: its description, and a function that reads its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int
    read: Callable[[], NDArray[Any]]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


_Members = Mapping[str, Any]
"""Arrays that have been described but not read yet: `_Member` or `MatArray`."""


@contextmanager
def _members(path: str, written: str, max_size: int | None) -> Iterator[_Members]:
    """Yield the arrays of a file by name, without reading them."""
    try:
        with _sought(path, max_size) as file:
            limit = array_limit(path, max_size)
            if written == "mat":
                yield open_mat(file, limit)
                return
            if not zipfile.is_zipfile(file):
                raise ArrayFormatError("it does not begin like a .npz file")
            with zipfile.ZipFile(file) as archive:
                yield _npz_members(archive, limit, path)
    except DataError:
        raise
    except MatFormatError as error:
        raise explained(path, error) from error
    # zipfile and zlib raise different errors for encrypted, unsupported and damaged files
    except (
        ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError,
        NotImplementedError, KeyError, OverflowError,
    ) as error:  # fmt: skip
        if isinstance(error, OSError) and error.filename is not None:
            raise  # it cannot be opened; damaged files may seek to before their start
        raise _unreadable(path, written, error) from error


def _sought(path: str, max_size: int | None) -> IO[bytes]:
    """Return a seekable file; a file that is compressed once more is read into memory."""
    if path.lower() == bare_name(path):
        return open(path, "rb")
    limit = array_limit(path, max_size)
    with open_bytes(path) as file:
        contents = file.read(limit + 1)
    if len(contents) > limit:
        raise too_large(f"{path}, unpacked", None, limit)
    return io.BytesIO(contents)


def _npz_members(archive: zipfile.ZipFile, limit: int, path: str) -> dict[str, _Member]:
    """Return the arrays that can be read without running code."""
    found = {}
    for info in archive.infolist():
        with archive.open(info) as file:
            try:
                header = read_header(file)
            except ArrayFormatError:
                continue  # a member that is not an array, or pickled objects
        read = partial(_read_member, archive, info, limit, path)
        name = info.filename.removesuffix(".npy")
        found[name] = _Member(header.shape, header.dtype, header.nbytes, read)
    return found


def _read_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int, path: str
) -> NDArray[Any]:
    with archive.open(info) as file:
        header = read_header(file)
        if header.nbytes > limit:
            raise too_large(f"{path}, array {info.filename!r}", header.nbytes, limit)
        found = read_values(file, header)
        file.read(1)  # at the end, the archive verifies its checksum
    check_characters(found, path)
    return found


def _unreadable(path: str, written: str, error: Exception) -> DataError:
    return DataError(f"{shown(path)}: cannot be read as .{written}: {error}")


def _pick(arrays: _Members, objects: str | None, meant: str | None, path: str) -> str:
    """Return the name of the array that contains the objects."""
    if not arrays:
        raise DataError(f"{path}: contains no arrays that can be read without running code")
    if objects is not None:
        if objects not in arrays:
            raise DataError(f"{path}: there is no array {objects!r}; it contains {_listed(arrays)}")
        return objects
    possible = [
        key
        for key, array in arrays.items()
        if array.dtype.kind in "biuf" and array.ndim in (2, 3) and min(array.shape) > 1
    ]
    if meant == "matrix":
        possible = [key for key in possible if arrays[key].ndim == 2]
    if len(possible) == 1:
        return possible[0]
    if not possible:
        raise DataError(f"{path}: no array has the shape of objects; it contains {_listed(arrays)}")
    raise DataError(
        f"{path}: which array contains the objects? There are {_listed(arrays)}; use "
        f"{parameter('objects', 'NAME')}"
    )


def _listed(arrays: _Members) -> str:
    return ", ".join(
        f"{key!r} ({' × '.join(map(str, array.shape)) or 'one value'})"
        for key, array in arrays.items()
    )


def _is_list(array: Any, n: int) -> bool:
    return array.size == n and array.ndim <= 2 and max(array.shape, default=0) == n


def _usual(lists: Mapping[str, Any], usual: tuple[str, ...]) -> str | None:
    found = [key for key in lists if key.lower() in usual]
    return found[0] if len(found) == 1 else None


def _same_length(values: list[str], n: int, path: str, key: str, objects: str) -> None:
    if len(values) != n:
        raise DataError(
            f"{path}: the array {key!r} contains {len(values)} values for the {n} objects of "
            f"{objects!r}"
        )


# -------------------------------------------------------------------------------------------------
# Time series in the text format `.ts` of the UEA archive.
#
#     @problemName Gestures
#     @univariate false
#     @classLabel true wave point
#     @data
#     0.1,0.2,0.3:1.5,1.4,1.2:wave
#
# Channels are separated by colons, values by commas; the label comes last. Lengths may differ.
# -------------------------------------------------------------------------------------------------


class SeriesFile(RecordSource):
    """Series of a `.ts` file, each an array (times, channels)."""

    def __init__(self, path: str, labels: Labels, max_size: int | None = None) -> None:
        super().__init__(path, "series", labels, max_size)

    @property
    def understood(self) -> str:
        """How the file was interpreted."""
        return "time series in .ts format"

    def records(self) -> Iterator[Record]:
        """Yield the series with their lines."""
        labelled, inside, number_of_series, channels = False, False, 0, 0
        declared: list[str] = []
        for line, text in enumerate(read_lines(self.path, self.max_size), 1):
            text = text.strip()
            if not text or text[0] in "#%":
                continue
            if not inside:
                words = text.split()
                key = words[0].lower()
                if key == "@data":
                    inside = True
                elif not key.startswith("@"):
                    raise DataError(
                        f"{self.shown}, line {line}: a .ts file has lines of '@…' and then "
                        f"'@data'; got {text[:20]!r}"
                    )
                elif key == "@timestamps" and words[-1].lower() == "true":
                    raise DataError(
                        f"{self.shown}, line {line}: series with time stamps are not supported; "
                        f"resample them to equal steps"
                    )
                elif key in ("@classlabel", "@targetlabel"):
                    labelled = len(words) > 1 and words[1].lower() == "true"
                    declared = words[2:] if key == "@classlabel" else []
                continue
            where = f"{self.shown}, line {line}, series {number_of_series}"
            limit = cell_limit(self.max_size)
            if text.count(",") + text.count(":") > limit:
                raise too_many(where, text.count(",") + text.count(":"), limit)
            parts = text.split(":")
            label = parts.pop().strip() if labelled else None
            if not parts:
                raise DataError(f"{where}: contains only a label, or no label")
            if label and declared and label not in declared:
                listed = quoted(", ".join(declared[:20]), 80)[1:-1]
                raise DataError(
                    f"{where}: ends in {quoted(label)}, which is not one of the labels that "
                    f"@classLabel names ({listed}); is its label missing?"
                )
            one = _series_values(parts, where)
            if channels and one.shape[1] != channels:
                raise DataError(
                    f"{where}: has {one.shape[1]} channels, but series 0 has {channels}"
                )
            channels = one.shape[1]
            yield Record(None, one, label, line)
            number_of_series += 1
        if not inside:
            raise DataError(f"{self.shown}: has no line '@data'")


def _series_values(parts: list[str], where: str) -> Any:
    """Return the (times, channels) values of one series."""
    columns = []
    for channel, part in enumerate(parts):
        cells = part.split(",")
        try:
            column = np.array(cells, dtype=np.float64)
        except ValueError:
            column = np.full(len(cells), np.nan)
        if not np.isfinite(column).all():
            _refuse(cells, f"{where}: " + (f"channel {channel}, " if len(parts) > 1 else ""))
        columns.append(column)
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise DataError(f"{where}: its channels have different lengths, {sorted(lengths)}")
    return np.stack(columns, axis=1).view(TimesFirst)


def _refuse(cells: list[str], about: str) -> None:
    """Raise an error for the first cell that is not a finite number."""
    for time, cell in enumerate(cells):
        value = cell.strip()
        if value.lower() in ("?", "nan", "na", ""):
            raise DataError(
                f"{about}time {time}: the value is missing ({quoted(value)}); fill it in"
            )
        try:
            finite = np.isfinite(float(value))
        except ValueError:
            raise DataError(f"{about}time {time}: {quoted(value)} is not a number") from None
        if not finite:
            raise DataError(f"{about}time {time}: {quoted(value)} is not finite")
