"""Arrays from `.npy`, `.npz` and `.mat` files: matrices of values, vectors, series.

A square array with two axes is a matrix of values; any other array with two axes contains vectors;
one with three axes (objects, times, channels) contains series. `format` overrides these rules.

Nothing in a file is unpickled. The shapes and types of all arrays are read first; values are read
when they are needed, after their size has been checked against the limit.
"""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..wording import parameter
from .labels import USUAL_LABELS, Labels, is_label_file
from .layout import USUAL_NAMES
from .npy import (
    ArrayFormatError,
    ArrayHeader,
    as_labels,
    load_npy,
    read_header,
    unreadable_file,
    values_within,
)
from .source import NOUNS, ContentKind, NamedObjects, Options, Source, with_unique_names
from .streams import (
    UNPACKING_ERRORS,
    DataError,
    array_limit,
    has_packed_suffix,
    open_bytes,
    refuse_stream,
    too_large,
)

# -------------------------------------------------------------------------------------------------
# Files of several arrays
# -------------------------------------------------------------------------------------------------

Headers = Mapping[str, ArrayHeader]
ReadArrays = Callable[[list[str]], list[NDArray[Any]]]
Archive = tuple[Headers, ReadArrays]
"""The headers of all arrays by name, and a function that reads the values of some."""


@contextmanager
def open_archive(path: str, format: str, max_size: int | None = None) -> Iterator[Archive]:
    """Open a `.npz` or `.mat` file; no array may take more than the limit."""
    refuse_stream(path, "an archive")
    try:
        limit = array_limit(path, max_size)
        with (_open_npz if format == "npz" else _open_mat)(path, limit) as archive:
            yield archive
    except DataError:
        raise
    # zipfile and zlib raise different errors for encrypted, unsupported and damaged files
    except (
        *UNPACKING_ERRORS, zipfile.BadZipFile, ValueError, RuntimeError, KeyError, OverflowError,
    ) as error:  # fmt: skip
        if isinstance(error, OSError) and error.filename is not None:
            raise  # it cannot be opened; damaged files may seek to before their start
        raise unreadable_file(path, format, error) from error


def _unpacked(path: str, limit: int) -> bytes:
    """Return the contents of an archive that is compressed once more."""
    with open_bytes(path) as file:
        contents = file.read(limit + 1)
    if len(contents) > limit:
        raise too_large(f"{path}, unpacked", None, limit)
    return contents


@contextmanager
def _open_npz(path: str, limit: int) -> Iterator[Archive]:
    packed = has_packed_suffix(path)
    with io.BytesIO(_unpacked(path, limit)) if packed else open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ArrayFormatError("it does not begin like a .npz file")
        with zipfile.ZipFile(file) as archive:
            members, headers = {}, {}
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                with archive.open(info) as member:
                    try:
                        headers[name] = read_header(member)
                    except ArrayFormatError:
                        continue  # a member that is not an array, or pickled objects
                members[name] = info

            def read(names: list[str]) -> list[NDArray[Any]]:
                found = []
                for name in names:
                    with archive.open(members[name]) as member:
                        where = f"{path}, array {name!r}"
                        found.append(values_within(member, headers[name], where, limit))
                return found

            yield headers, read


_MAT_CLASSES = {
    "cell": "U1", "char": "U1", "logical": "u1", "double": "f8", "single": "f4",
    **{f"{sign}int{8 * k}": f"{sign or 'i'}{k}" for sign in ("", "u") for k in (1, 2, 4, 8)},
}  # fmt: skip
"""The classes of MATLAB that are supported; arrays of others are skipped."""

_SCIPY = """
import json, os, sys
import numpy as np
from scipy.io import loadmat, whosmat

def plain(name, array):
    if array.dtype != object:
        return array
    cells = array.flatten(order="F")
    if not all(cell.dtype.kind == "U" and cell.size <= 1 for cell in cells):
        sys.exit(f"the cell array {name!r} contains cells that are not strings")
    return np.array([cell.item() if cell.size else "" for cell in cells], dtype=str)

path, limit, target, names = json.load(sys.stdin)
try:
    import resource

    seconds = 5 + os.path.getsize(path) // 10**7
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (2**29 + 4 * limit, 2**29 + 4 * limit))
except (ImportError, ValueError):
    pass  # the system has no such limits, or lower ones
if names:
    arrays = loadmat(path, variable_names=names)
    np.savez(target, *[plain(name, arrays[name]) for name in names])
else:
    json.dump(whosmat(path), sys.stdout, default=int)
"""
"""Lists the arrays of a MATLAB file, or writes some to an `.npz` file as `arr_0`, `arr_1` …"""


@contextmanager
def _open_mat(path: str, limit: int) -> Iterator[Archive]:
    """Open a MATLAB file of version 4 to 7.

    SciPy reads it in a separate process with limited memory and time: damage may crash it, or make
    it allocate whatever the file claims.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.abspath(path), os.path.join(folder, "values.npz")
        if has_packed_suffix(path):
            source = os.path.join(folder, "unpacked.mat")
            Path(source).write_bytes(_unpacked(path, limit))
        with open(source, "rb") as file:
            if file.read(128)[124:] in (b"\x00\x02IM", b"\x02\x00MI"):
                raise DataError(
                    f"{path}: is a MATLAB file of version 7.3 (HDF5), which is not supported; in "
                    "MATLAB, save(…, '-v7') writes one that is"
                )

        def scipy(names: list[str]) -> bytes:
            done = subprocess.run(
                [sys.executable, "-P", "-c", _SCIPY],  # -P: no code from this folder
                input=json.dumps([source, limit, target, names]).encode(),
                capture_output=True,
                check=False,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
            if done.returncode:
                said = done.stderr.decode("utf-8", "replace").splitlines()
                raise ArrayFormatError(said[-1][:120] if said else "SciPy cannot read it")
            return done.stdout

        headers = {}
        for name, shape, matlab_class in json.loads(scipy([])):
            if not shape or min(shape) < 0:
                raise ArrayFormatError("an array has no dimensions, or a negative one")
            if matlab_class not in _MAT_CLASSES:
                continue
            if matlab_class in ("char", "cell"):  # each row or cell becomes a string
                shape = [shape[0] if matlab_class == "char" else math.prod(shape)]
            headers[name] = ArrayHeader(tuple(shape), np.dtype(_MAT_CLASSES[matlab_class]))

        def read(names: list[str]) -> list[NDArray[Any]]:
            for name in names:
                if headers[name].nbytes > limit:
                    raise too_large(f"{path}, array {name!r}", headers[name].nbytes, limit)
            scipy(names)
            with _open_npz(target, limit) as (_, values):
                return values([f"arr_{i}" for i in range(len(names))])

        yield headers, read


# -------------------------------------------------------------------------------------------------
# Objects from arrays
# -------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class ArraySource(Source):
    """Objects along the first axis of an array, which is in memory or memory-mapped."""

    path: str
    kind: ContentKind
    array: NDArray[Any]
    labels: Labels
    stated: list[str] | None = None  # labels in the same file
    names: list[str] | None = None
    array_name: str = ""

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
        return what + (f" in the array {self.array_name!r}" if self.array_name else "")

    def chunks(self, size: int) -> Iterator[NamedObjects]:
        """Yield all objects in order, `size` at a time."""
        if size < 1:
            raise ValueError(f"a chunk must contain at least one object; got size={size}")
        kept = 0
        for first in range(0, len(self.array), size):
            self._refuse_changes_on_disk()
            chunk = self._chunk(np.array(self.array[first : first + size]), first, kept)
            kept += len(chunk)
            if len(chunk):
                yield chunk
        self._refuse_changes_on_disk()
        self._count_left_out(len(self.array), kept)
        self.labels.finish(len(self.array))

    def read(self) -> NamedObjects:
        """Return all objects; a memory map stays one."""
        chunk = with_unique_names(self._chunk(self.array, 0, 0))
        self._count_left_out(len(self.array), len(chunk))
        self.labels.finish(len(self.array))
        return chunk

    def _refuse_changes_on_disk(self) -> None:
        if isinstance(self.array, np.memmap):
            self.refuse_changes()

    def _chunk(self, objects: NDArray[Any], first: int, kept: int) -> NamedObjects:
        stop = first + len(objects)
        names = self.names[first:stop] if self.names else [str(i) for i in range(first, stop)]
        chunk = NamedObjects(
            names, objects, labels=None, first=first, path=self.shown, kind=self.kind
        )
        if not (self.kind == "matrix" and isinstance(objects, np.memmap)):
            missing = dict(self._missing(chunk))  # a mapped matrix is checked as it is read
            if missing and not self.lenient:
                raise DataError(next(iter(missing.values())))
            chunk = replace(chunk, unreadable=missing)
        stated = [None] * len(objects) if self.stated is None else self.stated[first:stop]
        return chunk.with_labels(self.labels.of(chunk, stated), kept)

    def _missing(self, chunk: NamedObjects) -> Iterator[tuple[int, str]]:
        """Yield the objects that contain values that are not finite, and what they contain."""
        for start in range(0, len(chunk), 4096):
            part = np.asarray(chunk.objects[start : start + 4096], dtype=np.float64)
            if np.isfinite(part.sum()):
                continue
            finite = np.isfinite(part)
            for row in np.flatnonzero(~finite.all(axis=tuple(range(1, part.ndim)))).tolist():
                place = tuple(np.argwhere(~finite[row])[0].tolist())
                at = ", ".join(map(str, place))
                yield (
                    start + row,
                    f"{chunk.where(start + row)}: the value at ({at}) is {part[(row, *place)]}; "
                    f"fill it in, or remove the {NOUNS[self.kind]}",
                )


def open_arrays(path: str, format: str, options: Options) -> ArraySource:
    """Open a `.npy`, `.npz` or `.mat` file."""
    if format == "npy":
        if options.objects is not None or options.names is not None:
            raise ValueError(
                f"{path} contains one unnamed array: leave out {parameter('objects')} and "
                f"{parameter('names')}"
            )
        array = load_npy(path, options.max_size)
        kind = _kind(array, options.content, path)
        return ArraySource(path, kind, array, options.find_labels(options.labels))
    with open_archive(path, format, options.max_size) as (arrays, read):
        key = _pick(arrays, options, path)
        what = f"{path}, array {key!r}"
        kind = _kind(arrays[key], options.content, what)
        label_key, name_key, label_file = _lists(arrays, key, options, path)
        wanted = [k for k in (key, label_key, name_key) if k is not None]
        values = dict(zip(wanted, read(wanted), strict=True))
    _kind(values[key], options.content, what)  # only now does SciPy say if numbers are complex

    def strings(name: str | None) -> list[str] | None:
        if name is None:
            return None
        found, n = as_labels(values[name], f"{path}, array {name!r}"), len(values[key])
        if len(found) != n:
            raise DataError(
                f"{path}: the array {name!r} contains {len(found)} values for the {n} objects of "
                f"{key!r}"
            )
        return found

    found = options.find_labels(label_file)
    return ArraySource(path, kind, values[key], found, strings(label_key), strings(name_key), key)


def _lists(
    arrays: Headers, key: str, options: Options, path: str
) -> tuple[str | None, str | None, str | None]:
    """Return the arrays of labels and of names for the array `key`, and the file of labels.

    Each is None if there is none; labels are in an array or in a file.
    """
    labels, names = options.labels, options.names
    if names is not None and names not in arrays:
        raise DataError(f"{path}: there is no array {names!r}; {_listed(arrays)}")
    if labels is not None and labels not in arrays:
        if is_label_file(labels):
            return None, names, labels
        raise DataError(f"{path}: there is no array {labels!r}; it contains {_listed(arrays)}")
    n = arrays[key].shape[0]
    others = {k: v for k, v in arrays.items() if k != key and v.ndim <= 2}
    lists = [k for k, v in others.items() if v.size == n and n in v.shape]
    if labels is None and options.label_pattern is None:
        labels = _usual(lists, (*USUAL_LABELS, "y"))
    return labels, _usual(lists, USUAL_NAMES) if names is None else names, None


def _kind(array: Any, content: ContentKind | None, what: str) -> ContentKind:
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what}: contains {array.dtype}, not real numbers")
    if array.ndim not in (2, 3) or array.shape[0] == 0 or array.size == 0:
        raise DataError(
            f"{what}: has the shape {array.shape}; a matrix or vectors have two axes, series three"
        )
    if array.ndim == 3 and content in ("matrix", "vectors"):
        raise DataError(f"{what}: has three axes {array.shape}, so it cannot be read as {content}")
    if array.ndim == 3 or content is not None:
        return content or "series"
    return "matrix" if array.shape[0] == array.shape[1] else "vectors"


def _pick(arrays: Headers, options: Options, path: str) -> str:
    """Return the name of the array that contains the objects."""
    if not arrays:
        raise DataError(f"{path}: contains no arrays that can be read without running code")
    objects = options.objects
    if objects is not None:
        if objects not in arrays:
            raise DataError(f"{path}: there is no array {objects!r}; it contains {_listed(arrays)}")
        return objects
    axes = (2,) if options.content == "matrix" else (2, 3)
    possible = [
        key
        for key, array in arrays.items()
        if array.dtype.kind in "biuf" and array.ndim in axes and min(array.shape) > 1
    ]
    if len(possible) == 1:
        return possible[0]
    if not possible:
        raise DataError(f"{path}: no array has the shape of objects; it contains {_listed(arrays)}")
    raise DataError(
        f"{path}: which array contains the objects? There are {_listed(arrays)}; use "
        f"{parameter('objects', 'NAME')}"
    )


def _listed(arrays: Headers) -> str:
    return ", ".join(
        f"{key!r} ({' × '.join(map(str, array.shape)) or 'one value'})"
        for key, array in arrays.items()
    )


def _usual(lists: list[str], usual: tuple[str, ...]) -> str | None:
    found = [key for key in lists if key.lower() in usual]
    return found[0] if len(found) == 1 else None
