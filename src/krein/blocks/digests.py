"""Fingerprints of objects: equal contents, equal fingerprint, in any process."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..measures.base import Objects

SIZE = 16
"""Bytes of a fingerprint."""

Digests = NDArray[np.uint8]  # (N, SIZE)


def object_digests(objects: Objects) -> Digests:
    """Return one fingerprint an object, (N, SIZE) bytes. O(total size of the objects)."""
    digests = b"".join(_digest(item) for item in objects)
    return np.frombuffer(digests, dtype=np.uint8).reshape(len(objects), SIZE)


def _digest(item: Any) -> bytes:
    digest = hashlib.blake2b(digest_size=SIZE)
    _feed(digest, item)
    return digest.digest()


def _feed(digest: Any, item: Any) -> None:
    """Add the type and the contents of `item`, so that 1, "1" and [1] differ."""
    if isinstance(item, str):
        _add(digest, b"s", item.encode("utf-8", "surrogatepass"))
    elif isinstance(item, bytes | bytearray):
        _add(digest, b"b", bytes(item))
    elif isinstance(item, np.ndarray) and item.dtype != object:
        _add(digest, b"a", f"{item.dtype.str}{item.shape}".encode())
        digest.update(np.ascontiguousarray(item).data)
    elif isinstance(item, bool | int | float | complex | np.generic | None):
        _add(digest, b"n", repr(item).encode())
    elif isinstance(item, list | tuple | np.ndarray):
        _add(digest, b"l", str(len(item)).encode())
        for part in item:
            _feed(digest, part)
    elif isinstance(item, Mapping):
        _add(digest, b"m", str(len(item)).encode())
        for key in sorted(item, key=_digest):
            _feed(digest, key)
            _feed(digest, item[key])
    elif isinstance(item, Set):
        _add(digest, b"u", b"".join(sorted(_digest(part) for part in item)))
    else:
        try:
            contents = pickle.dumps(item, protocol=4)
        except Exception as error:
            raise TypeError(
                f"a cache has to recognise objects by their contents, and a "
                f"{type(item).__name__} cannot be written down: {error}"
            ) from error
        _add(digest, b"p", contents)


def _add(digest: Any, tag: bytes, contents: bytes) -> None:
    digest.update(tag + len(contents).to_bytes(8, "little"))
    digest.update(contents)
