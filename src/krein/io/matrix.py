"""Arrays from `.npy`, `.npz` and `.mat` files: matrices of values, vectors, series.

A square array with two axes is a matrix of values; any other array with two axes contains vectors;
one with three axes (objects, times, channels) contains series. `format` overrides these rules.
Nothing in a file is unpickled.
"""

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

from .compression import STDIN, bare_name, open_bytes, shown
from .errors import DataError
from .labels import USUAL_LABELS, Labels, Unlabelled, as_labels, find_labels, is_label_file
from .layout import USUAL_NAMES
from .limits import array_limit, too_large
from .mat import MatFormatError, explained, open_mat
from .npy import ArrayFormatError, check_characters, read_header, read_values
from .source import NOUNS, Chunk, Kind, Source, whole


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
            raise ValueError(f"{path} contains one unnamed array: leave out objects= and names=")
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
        f"{path}: which array contains the objects? There are {_listed(arrays)}; use objects=NAME"
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
