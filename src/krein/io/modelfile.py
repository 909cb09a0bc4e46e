"""The model file: a tree of plain values and arrays in one file, written atomically.

A `.krein` file is a NumPy `.npz` archive of arrays without pickles. The member `header` contains
JSON: the format, the package version, the tree with each array replaced by its name, and a SHA-256
of every array. The member `seal` contains the SHA-256 of the header. Reading a file never runs code
from it.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..wording import article
from .npy import ArrayFormatError, check_characters, read_header, read_values
from .streams import (
    CELL,
    MIB,
    DataError,
    array_limit,
    is_stream,
    refuse_stream,
    size_of,
)
from .writing import atomic_write

FORMAT = 1
"""Number of the format that is written and read."""
_MAGIC = "krein model"
_HEADER = 16 * MIB
"""Size up to which a header is always accepted; parsed as JSON, it grows about twentyfold."""
_HEADER_RATIO = 10
"""The header may also be this multiple of the size of the file."""
_COLLISIONS = 16
"""Maximum number of different items of sets and mappings with the same hash. Numbers can be chosen
to have equal hashes, and each item would be compared with all others."""


class ModelFileError(ValueError):
    """A file that is not a krein model, or one that cannot be trusted."""


class _BeyondLimit(ValueError):
    """A part of a tree that would take far more memory or time than its size."""


def write_model(
    path: str | os.PathLike[str],
    tree: dict[str, Any],
    version: str,
    read_back: Callable[[str], None] | None = None,
) -> None:
    """Write the tree to `path`: under a temporary name next to it, synced, then renamed.

    The tree may contain dicts, lists, tuples, sets, strings, bytes, numbers, booleans, None, and
    arrays of numbers, booleans, strings or these. `read_back` is called with the temporary name; if
    it raises an error, nothing is written.
    """
    stored = _Stored({}, {})
    header = json.dumps(
        {
            "magic": _MAGIC,
            "format": FORMAT,
            "version": version,
            "tree": _plain(tree, stored, "model"),
            "sha256": {name: digest for digest, name in stored.names.items()},
        }
    ).encode()
    arrays = stored.arrays
    arrays["header"] = np.frombuffer(header, dtype=np.uint8)
    arrays["seal"] = np.frombuffer(hashlib.sha256(header).digest(), dtype=np.uint8)
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        file.flush()
        if read_back is not None and not is_stream(file.name):
            read_back(file.name)


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks like a model: an archive with a header and a seal."""
    if is_stream(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return {"header.npy", "seal.npy"} <= set(archive.namelist())
    # zipfile, zlib and struct raise different errors on damaged bytes
    except Exception:
        return False


def read_versions(path: str | os.PathLike[str], max_size: int | None = None) -> tuple[str, int]:
    """Return the version of krein that wrote a model file, and the format of the file."""
    with _opened(path) as archive:
        header = _header(archive, array_limit(archive.path, max_size))
        return str(header["version"])[:20], header["format"]


def read_model(path: str | os.PathLike[str], max_size: int | None = None) -> dict[str, Any]:
    """Return the tree of a model file, with every part checked.

    Only arrays listed in the header are unpacked, after checking their size: at most `max_size`
    bytes in total, by default 256 MiB or 20 times the size of the file, whichever is more.
    """
    with _opened(path) as archive:
        limit = array_limit(archive.path, max_size)
        header = _header(archive, limit)
        digests = dict(header["sha256"])
        for name in archive.members:
            if name not in digests and name not in ("header", "seal"):
                raise ModelFileError(
                    f"{archive.path}: contains {name[:60]!r}, which its header does not list"
                )
        arrays, most = dict[str, NDArray[Any]](), limit
        for name, digest in digests.items():
            damaged = f"{archive.path} is damaged: {name[:60]!r}"
            if name not in archive.members:
                raise ModelFileError(f"{damaged} is missing")
            arrays[name] = archive.read(name, limit)
            limit -= arrays[name].nbytes
            if _digest(arrays[name]) != digest:
                raise ModelFileError(f"{damaged} does not match its checksum")
        try:
            tree = _Rebuilding(arrays, most).value(header["tree"])
        except _BeyondLimit as error:
            raise ModelFileError(f"{archive.path}: {error}") from error
        if not isinstance(tree, dict):
            raise ModelFileError(
                f"{archive.path} is not a krein model: it does not name an estimator"
            )
        return tree


@dataclass(frozen=True)
class _Archive:
    """An open model file."""

    path: str
    archive: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]

    def read(self, name: str, limit: int) -> NDArray[Any]:
        """Return one array; its claimed size is checked before it is unpacked."""
        where = f"{self.path}: {name[:60]!r}"
        try:
            with self.archive.open(self.members[name]) as file:
                header = read_header(file)
                if header.dtype.kind not in "biufUS":
                    raise ModelFileError(f"{where} holds {header.dtype}")
                if header.nbytes > limit:
                    raise ModelFileError(
                        f"{where} would take {size_of(header.nbytes)}, more than the "
                        f"{size_of(limit)} left; if this is intended, use load(path, max_size=...)"
                    )
                array = read_values(file)
            check_characters(array, self.path)
        except (ArrayFormatError, DataError) as error:
            raise ModelFileError(f"{self.path} is damaged: {name[:60]!r}: {error}") from error
        return array


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[_Archive]:
    shown = os.fspath(path)
    try:
        refuse_stream(path, "a model")
    except DataError as error:
        raise ModelFileError(str(error)) from None
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                if "header" not in members or "seal" not in members:
                    raise ModelFileError(f"{shown} is not a krein model: it has no header")
                yield _Archive(shown, archive, members)
        except (ModelFileError, MemoryError):
            raise
        # zipfile, zlib and struct raise different errors, and so does JSON that krein did not write
        except Exception as error:
            raise ModelFileError(f"{shown} is not a krein model, or is damaged") from error


def _header(archive: _Archive, limit: int) -> dict[str, Any]:
    """Return the header, which lists the other members."""
    path = archive.path
    most = min(limit, max(_HEADER, _HEADER_RATIO * os.path.getsize(path)))
    text = archive.read("header", most).tobytes()
    if hashlib.sha256(text).digest() != archive.read("seal", 1024).tobytes():
        raise ModelFileError(f"{path} is damaged: its header does not match its checksum")
    values = sum(text.count(sign) for sign in (b",", b"[", b"{", b":"))
    if values * CELL > limit:
        raise ModelFileError(
            f"{path}: its header has {values:,} values or more, above the limit of "
            f"{limit // CELL:,}; if this is intended, use load(path, max_size=...)"
        )
    header = json.loads(text)
    if not isinstance(header, dict) or header.get("magic") != _MAGIC:
        raise ModelFileError(f"{path} is not a krein model")
    if header["format"] != FORMAT:
        raise ModelFileError(
            f"{path} was written by krein {str(header['version'])[:20]} in format "
            f"{str(header['format'])[:20]}; this version reads format {FORMAT}: "
            "upgrade krein to load it"
        )
    return header


def _digest(array: NDArray[Any]) -> str:
    content = np.ascontiguousarray(array)
    return hashlib.sha256(
        f"{content.dtype.str}{array.shape}".encode() + content.tobytes()
    ).hexdigest()


class _Hashed:
    """The items of all sets and mappings of a file, which may end up in one dictionary."""

    def __init__(self) -> None:
        self._first: dict[int, Any] = {}
        self._others: dict[int, list[Any]] = {}  # with the hash of another item

    def add(self, items: Iterable[Any]) -> None:
        """Raise an error if too many different items have the same hash."""
        for item in items:
            key = hash(item)
            first = self._first.setdefault(key, item)
            if first is item or first == item:
                continue
            others = self._others.setdefault(key, [])
            if item not in others:
                others.append(item)
            if len(others) >= _COLLISIONS:
                raise _BeyondLimit(
                    f"a set or mapping contains more than {_COLLISIONS} items of equal hash, such "
                    "as multiples of 2^61 − 1, which would make it slow"
                )


@dataclass(frozen=True)
class _Stored:
    """The arrays of a file; arrays with equal contents are stored once."""

    arrays: dict[str, NDArray[Any]]
    names: dict[str, str]  # by digest
    hashed: _Hashed = field(default_factory=lambda: _Hashed())

    def put(self, name: str, array: NDArray[Any]) -> str:
        """Store an array, and return the name under which its contents are stored."""
        first = self.names.setdefault(_digest(array), name)
        self.arrays.setdefault(first, array)
        return first


def _plain(value: Any, stored: _Stored, name: str) -> Any:
    """Return `value` as JSON, with its arrays stored under names that show where they belong."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return _plain_array(value, stored, name)
    if isinstance(value, dict):
        return _plain_mapping(value, stored, name)
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if type(value) in (list, tuple, set, frozenset):
        if type(value) in (set, frozenset):
            stored.hashed.add(value)
        items = [_plain(item, stored, f"{name}.{i}") for i, item in enumerate(value)]
        return {type(value).__name__: items}
    raise TypeError(f"{name}: {article(type(value).__name__)} cannot be saved in a model file")


def _plain_array(array: NDArray[Any], stored: _Stored, name: str) -> dict[str, Any]:
    if array.dtype == object:
        return {"objects": [_plain(item, stored, f"{name}.{i}") for i, item in enumerate(array)]}
    if array.dtype.kind not in "biufUS":
        raise TypeError(f"{name}: an array of {array.dtype} cannot be saved")
    if array.dtype.itemsize == 0:  # strings without letters, which readers refuse
        array = array.astype(f"{array.dtype.kind}1")
    return {"array": stored.put(name, array)}


def _plain_mapping(mapping: dict[Any, Any], stored: _Stored, name: str) -> dict[str, Any]:
    if all(type(key) is str for key in mapping):
        plain = {key: _plain(item, stored, f"{name}.{key}") for key, item in mapping.items()}
        return {"dict": plain}
    stored.hashed.add(mapping)
    pairs = [
        [_plain(key, stored, f"{name}.key{i}"), _plain(item, stored, f"{name}.{i}")]
        for i, (key, item) in enumerate(mapping.items())
    ]
    return {"pairs": pairs}


class _Rebuilding:
    """Builds the tree of a file again from its header and arrays.

    An array may be referred to more than once, but the code that uses it may copy it each time. So
    the further references together must stay within the limit, too.
    """

    def __init__(self, arrays: dict[str, NDArray[Any]], limit: int) -> None:
        self.arrays, self.left = arrays, limit
        self._used: set[str] = set()
        self._hashed = _Hashed()

    def value(self, plain: Any) -> Any:
        """Return the value of a part of the header."""
        if not isinstance(plain, dict):
            return plain
        ((kind, content),) = plain.items()
        if kind == "array":
            return self._array(content)
        if kind == "dict":
            return {key: self.value(item) for key, item in content.items()}
        if kind == "bytes":
            return bytes.fromhex(content)
        if kind == "pairs":
            pairs = [(self.value(key), self.value(item)) for key, item in content]
            self._hashed.add(key for key, _ in pairs)
            return dict(pairs)
        items = [self.value(item) for item in content]
        if kind == "objects":
            out = np.empty(len(items), dtype=object)
            out[:] = items
            return out
        if kind in ("set", "frozenset"):
            self._hashed.add(items)
        return {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}[kind](items)

    def _array(self, name: str) -> NDArray[Any]:
        found = self.arrays[name]
        if name in self._used:
            self.left -= found.nbytes
            if self.left < 0:
                raise _BeyondLimit(
                    f"the array {name[:60]!r} is referred to so often that copies would take more "
                    "than the limit; if this is intended, use load(path, max_size=...)"
                )
        self._used.add(name)
        return found
