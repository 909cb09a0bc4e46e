"""Arrays out of `.npy`, `.npz` and `.mat` files: matrices of values, vectors, series.

The rules: a square array of two axes is a matrix of values, another one of two axes holds vectors,
one of three axes (objects, times, channels) holds series; `format` overrules them. Nothing in a
file is unpickled.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .compression import STDIN, bare_name, open_bytes, shown
from .errors import DataError
from .labels import USUAL_LABELS, Labels, Unlabelled, as_labels, find_labels, is_label_file
from .layout import USUAL_NAMES
from .source import NOUNS, Chunk, Kind, Source, whole


class ArraySource(Source):
    """Objects along the first axis of an array in memory, or mapped there from a file."""

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
        """What the file was taken for."""
        size = " × ".join(str(k) for k in self.array.shape)
        what = {
            "matrix": f"a matrix of {size} values",
            "vectors": f"{size} numbers, a vector a row",
            "series": f"{size} numbers: series (objects × times × channels)",
        }[self.kind]
        return what + (f" in the array {self.called!r}" if self.called else "")

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time."""
        if size < 1:
            raise ValueError(f"a chunk holds at least one object; got size={size}")
        for first in range(0, len(self.array), size):
            yield self._chunk(np.array(self.array[first : first + size]), first)
        self.labels.finish(len(self.array))

    def read(self) -> Chunk:
        """Return all objects; a file that is mapped stays so."""
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
            self._refuse_missing(chunk)  # of a mapped matrix, blocks are looked at as they are read
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
                f"{chunk.where(start + row)}: the value at ({at}) is {value}; fill it in, or take "
                f"the {NOUNS[self.kind]} out"
            )


def open_arrays(
    path: str,
    written: str,
    meant: str | None,
    objects: str | None,
    labels: str | None,
    names: str | None,
    label_pattern: str | None,
) -> ArraySource:
    """Open a `.npy`, `.npz` or `.mat` file."""
    if path == STDIN:
        raise DataError(f"{written} is read from a file, not from standard input")
    if written == "npy":
        if objects is not None or names is not None:
            raise ValueError(
                f"{path} holds one array without a name: leave objects= and names= out"
            )
        array = load_npy(path)
        kind = _kind(array, meant, path)
        return ArraySource(path, kind, array, find_labels(labels, label_pattern))
    arrays = _load_npz(path) if written == "npz" else _load_mat(path)
    key = _pick(arrays, objects, meant, path)
    array = arrays[key]
    kind = _kind(array, meant, f"{path}, array {key!r}")
    n, own, called = len(array), None, None
    if labels is not None and labels not in arrays and not is_label_file(labels):
        raise DataError(f"{path}: no array is called {labels!r}; there are {_listed(arrays)}")
    if labels is None or labels in arrays:
        lists = {k: v for k, v in arrays.items() if k != key and _is_list(v, n)}
        own_key = labels if labels is not None else _usual(lists, (*USUAL_LABELS, "y"))
        if own_key is not None and not (labels is None and label_pattern is not None):
            own = as_labels(arrays[own_key], f"{path}, array {own_key!r}")
            _same_length(own, n, path, own_key, key)
        name_key = names if names is not None else _usual(lists, USUAL_NAMES)
        if name_key is not None:
            if name_key not in arrays:
                raise DataError(f"{path}: no array is called {name_key!r}; {_listed(arrays)}")
            called = as_labels(arrays[name_key], f"{path}, array {name_key!r}")
            _same_length(called, n, path, name_key, key)
    beside = labels if labels is not None and labels not in arrays else None
    return ArraySource(path, kind, array, find_labels(beside, label_pattern), own, called, key)


def _kind(array: NDArray[Any], meant: str | None, what: str) -> Kind:
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what}: holds {array.dtype}, not real numbers")
    if array.ndim not in (2, 3) or array.shape[0] == 0 or array.size == 0:
        raise DataError(
            f"{what}: has the shape {array.shape}; a matrix or vectors have two axes, series three"
        )
    if array.ndim == 3:
        if meant in ("matrix", "vectors"):
            raise DataError(f"{what}: has three axes {array.shape}, so it is no {meant}")
        return "series"
    if meant in ("matrix", "vectors", "series"):
        return meant  # type: ignore[return-value]
    return "matrix" if array.shape[0] == array.shape[1] else "vectors"


def load_npy(path: str) -> NDArray[Any]:
    """Return the array of an `.npy` file, mapped unless it is packed."""
    try:
        if path.lower() != bare_name(path):
            with open_bytes(path) as file:
                found = np.load(io.BytesIO(file.read()), allow_pickle=False)
        else:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
    except DataError:
        raise
    except (ValueError, EOFError, OSError) as error:
        raise _unreadable(path, "npy", error) from error
    if not isinstance(found, np.ndarray):
        raise DataError(f"{path}: is an archive of arrays; rename it to .npz")
    return found


def _unpacked(path: str) -> IO[bytes]:
    """Return a file to seek in; one that is packed once more, in memory."""
    if path.lower() == bare_name(path):
        return open(path, "rb")
    with open_bytes(path) as file:
        return io.BytesIO(file.read())


def _load_npz(path: str) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with _unpacked(path) as file, np.load(file, allow_pickle=False) as archive:
            for key in archive.files:
                try:
                    found = archive[key]
                except ValueError as error:
                    if "pickle" not in str(error):
                        raise
                    continue
                if isinstance(found, np.ndarray):  # else a member that is no .npy
                    arrays[key] = found
    except DataError:
        raise
    # zipfile, zlib and NumPy each raise their own: encrypted, packed otherwise, damaged
    except (
        ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, AttributeError, TypeError,
        RuntimeError,
    ) as error:  # fmt: skip
        raise _unreadable(path, "npz", error) from error
    return arrays


def _load_mat(path: str) -> dict[str, NDArray[Any]]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        with open_bytes(path) as file:
            found = loadmat(io.BytesIO(file.read()), appendmat=False, chars_as_strings=True)
    except NotImplementedError as error:
        raise DataError(
            f"{path}: is a MATLAB file of version 7.3 (HDF5), which is not read; in MATLAB, "
            "save(…, '-v7') writes one that is"
        ) from error
    except (MatReadError, ValueError, TypeError, OSError, EOFError, KeyError) as error:
        raise _unreadable(path, "mat", error) from error
    arrays = {}
    for key, value in found.items():
        if not key.startswith("__") and isinstance(value, np.ndarray):
            arrays[key] = _uncelled(value)
    return arrays


def _uncelled(value: NDArray[Any]) -> NDArray[Any]:
    """Return a cell array of strings as an array of strings."""
    if value.dtype == object and value.size:
        cells = [np.ravel(cell) for cell in value.ravel()]
        if all(cell.dtype.kind == "U" and cell.size == 1 for cell in cells):
            return np.array([str(cell[0]) for cell in cells])
    return value


def _unreadable(path: str, written: str, error: Exception) -> DataError:
    reason = str(error)
    if "Object arrays cannot be loaded" in reason or "Python objects" in reason:
        reason = "it holds pickled objects, which may run code"
    elif "pickle" in reason:  # what NumPy says of all that it does not know
        reason = "it does not begin as such a file does (or is pickled, which may run code)"
    return DataError(f"{shown(path)}: cannot be read as .{written}: {reason}")


def _pick(
    arrays: Mapping[str, NDArray[Any]], objects: str | None, meant: str | None, path: str
) -> str:
    """Return the name of the array that holds the objects."""
    if not arrays:
        raise DataError(f"{path}: holds no arrays that can be read without running code")
    if objects is not None:
        if objects not in arrays:
            raise DataError(f"{path}: no array is called {objects!r}; there are {_listed(arrays)}")
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
        raise DataError(f"{path}: no array in it can hold objects; there are {_listed(arrays)}")
    raise DataError(
        f"{path}: which array holds the objects? There are {_listed(arrays)}; say objects=NAME"
    )


def _listed(arrays: Mapping[str, NDArray[Any]]) -> str:
    return ", ".join(
        f"{key!r} ({' × '.join(map(str, array.shape)) or 'one value'})"
        for key, array in arrays.items()
    )


def _is_list(array: NDArray[Any], n: int) -> bool:
    return array.size == n and array.ndim <= 2 and max(array.shape, default=0) == n


def _usual(lists: Mapping[str, Any], usual: tuple[str, ...]) -> str | None:
    found = [key for key in lists if key.lower() in usual]
    return found[0] if len(found) == 1 else None


def _same_length(values: list[str], n: int, path: str, key: str, objects: str) -> None:
    if len(values) != n:
        raise DataError(
            f"{path}: the array {key!r} holds {len(values)} values for the {n} objects of "
            f"{objects!r}"
        )
