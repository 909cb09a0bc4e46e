"""The model file: a tree of plain values and arrays in one file, written whole or not at all.

A `.krein` file is a NumPy `.npz` archive of arrays without pickles. The member `header` holds
JSON: the format, the package version, the tree with each array replaced by its name, and a
SHA-256 of every array; the member `seal` holds the SHA-256 of the header. Reading runs nothing
from the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .atomic import written_whole

FORMAT = 1
_MAGIC = "krein model"


class ModelFileError(ValueError):
    """A file that is no krein model, or one that cannot be trusted."""


def write_model(path: str | os.PathLike[str], tree: dict[str, Any], version: str) -> None:
    """Write the tree to `path`: to a temporary name beside it, synced, then renamed.

    The tree may hold dicts, lists, tuples, sets, strings, bytes, numbers, booleans, None, and
    arrays of numbers, booleans, strings or these.
    """
    arrays: dict[str, NDArray[Any]] = {}
    header = json.dumps(
        {
            "magic": _MAGIC,
            "format": FORMAT,
            "version": version,
            "tree": _plain(tree, arrays, "model"),
            "sha256": {name: _digest(array) for name, array in arrays.items()},
        },
        ensure_ascii=True,
        allow_nan=True,
    ).encode()
    arrays["header"] = np.frombuffer(header, dtype=np.uint8)
    arrays["seal"] = np.frombuffer(hashlib.sha256(header).digest(), dtype=np.uint8)
    with written_whole(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks like a model: an archive with a header and a seal."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {"header.npy", "seal.npy"} <= set(archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def read_versions(path: str | os.PathLike[str]) -> tuple[str, int]:
    """Return the version of krein that wrote a model file, and the format of the file."""
    with np.load(path, allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
    return str(header["version"]), int(header["format"])


def read_model(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the tree of a model file, every part of it checked."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            members = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # zipfile, zlib and struct each raise their own on damaged bytes
        raise ModelFileError(f"{path} is no krein model, or is damaged") from error
    if "header" not in members or "seal" not in members:
        raise ModelFileError(f"{path} is no krein model: it has no header")
    text = members.pop("header").tobytes()
    if hashlib.sha256(text).digest() != members.pop("seal").tobytes():
        raise ModelFileError(f"{path} is damaged: its header does not match its checksum")
    try:
        return _read(json.loads(text), members, path)
    except ModelFileError:
        raise
    # sealed, and yet not what krein writes
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path} is no model of krein: its header is odd") from error


def _read(header: Any, members: dict[str, Any], path: str | os.PathLike[str]) -> dict[str, Any]:
    if not isinstance(header, dict) or header.get("magic") != _MAGIC:
        raise ModelFileError(f"{path} is no krein model")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by krein {header['version']} in format {header['format']}; "
            f"this version reads up to format {FORMAT}: upgrade krein to load it"
        )
    for name, digest in header["sha256"].items():
        if name not in members or _digest(members[name]) != digest:
            raise ModelFileError(f"{path} is damaged: {name} does not match its checksum")
    tree = _rebuilt(header["tree"], members)
    if not isinstance(tree, dict):
        raise ModelFileError(f"{path} is no model of krein: it names no estimator")
    return tree


def _digest(array: NDArray[Any]) -> str:
    content = np.ascontiguousarray(array)
    return hashlib.sha256(
        f"{content.dtype.str}{array.shape}".encode() + content.tobytes()
    ).hexdigest()


def _plain(value: Any, arrays: dict[str, NDArray[Any]], name: str) -> Any:
    """Return `value` as JSON, its arrays put into `arrays` under names that say where."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {
                "objects": [_plain(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]
            }
        if value.dtype.kind not in "biufUS":
            raise TypeError(f"{name}: an array of {value.dtype} cannot be saved")
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        if all(type(key) is str for key in value):
            plain = {key: _plain(item, arrays, f"{name}.{key}") for key, item in value.items()}
            return {"dict": plain}
        pairs = [
            [_plain(key, arrays, f"{name}.key{i}"), _plain(item, arrays, f"{name}.{i}")]
            for i, (key, item) in enumerate(value.items())
        ]
        return {"pairs": pairs}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if type(value) in (set, frozenset):
        items = [_plain(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]
        return {type(value).__name__: items}
    if type(value) is tuple:
        return {"tuple": [_plain(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]}
    if type(value) is list:
        return {"list": [_plain(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]}
    raise TypeError(f"{name}: a {type(value).__name__} cannot be saved in a model file")


def _rebuilt(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "dict":
        return {key: _rebuilt(item, arrays) for key, item in content.items()}
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "pairs":
        return {_rebuilt(key, arrays): _rebuilt(item, arrays) for key, item in content}
    items = [_rebuilt(item, arrays) for item in content]
    if kind == "objects":
        out = np.empty(len(items), dtype=object)
        out[:] = items
        return out
    return {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}[kind](items)
