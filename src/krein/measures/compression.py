"""Compare any two byte strings by how well they compress together."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.shapes import Array
from ..wording import kind_of
from .base import Measure
from .objects import Objects, RefusedObject, RefusedType, unframed


def _lzma(text: bytes) -> bytes:
    # raw, because a container's header would dominate a short text; the window covers all of it
    window = min(max(1 << max(len(text) - 1, 1).bit_length(), 4096), 1 << 26)
    chain = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": window}]
    return lzma.compress(text, format=lzma.FORMAT_RAW, filters=chain)


_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "lzma": _lzma,
    "bz2": lambda text: bz2.compress(text, 9),
    "zlib": lambda text: zlib.compress(text, 9),
}


@dataclass(frozen=True)
class Compression(Measure):
    """Normalised compression distance (Cilibrasi & Vitányi 2005).

    (C(xy) − min(C(x), C(y))) / max(C(x), C(y)), C the length after compression: near 0 for texts
    with the same content, near 1 for unrelated ones. C(xy) and C(yx) differ by a few bytes; to make
    the distance symmetric, the two are joined in the order of their contents. Objects are bytes or
    strings (as UTF-8). Costs one compression of |x| + |y| bytes per pair. The distance of an object
    to itself is slightly above 0.

    Parameters
    ----------
    compressor : {"lzma", "bz2", "zlib"}, default="lzma"
        The compressor. "lzma" finds repetitions anywhere in a text, "bz2" within blocks of 900 kB.
        "zlib" is fast, but looks back only 32 kB, so it misses what two longer texts share.

    See Also
    --------
    krein.measures.strings.Levenshtein : Number of edits; better suited to short strings.

    Examples
    --------
    >>> from krein.measures.compression import Compression
    >>> texts = Compression().check(["to be or not to be", "to be or not to bee", "xyzzy"])
    >>> near, far = Compression().block(texts[:1], texts[1:])[0]
    >>> bool(near < far)
    True
    """

    compressor: str = "lzma"

    name = "compression"
    kind = "dissimilarity"
    releases_gil = True
    block_pairs = 2**10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.compressor not in _COMPRESSORS:
            raise ValueError(
                f"unknown compressor {self.compressor!r}; choose one of {', '.join(_COMPRESSORS)}"
            )

    def check(self, objects: Any) -> Objects:
        """Return a list of bytes."""
        if isinstance(objects, str | bytes):
            raise TypeError("got a single text; pass a list of texts")
        objects = unframed(objects)
        if isinstance(objects, np.ndarray):
            objects = objects.ravel().tolist() if objects.size == len(objects) else list(objects)
        texts = []
        for row, item in enumerate(objects):
            if isinstance(item, str):
                try:
                    texts.append(item.encode("utf-8"))
                except UnicodeEncodeError as error:
                    where = f"contains {item[error.start]!r} at position {error.start + 1}"
                    reason = f"{where}, a lone surrogate, which UTF-8 cannot encode; remove it"
                    raise RefusedObject("text", row, reason) from None
            elif isinstance(item, bytes | bytearray | memoryview):
                texts.append(bytes(item))
            else:
                raise RefusedType("text", row, f"is {kind_of(item)}, not a string or bytes")
            if not texts[-1]:
                raise RefusedObject("text", row, "is empty")
        return texts

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances."""
        compress = _COMPRESSORS[self.compressor]
        a = np.array([_length(self.compressor, x) for x in A], dtype=np.float64)[:, None]
        b = np.array([_length(self.compressor, y) for y in B], dtype=np.float64)
        joint = np.empty((len(A), len(B)))
        for i, x in enumerate(A):
            for j, y in enumerate(B):
                joint[i, j] = len(compress(x + y if x <= y else y + x))
        return np.maximum((joint - np.minimum(a, b)) / np.maximum(a, b), 0)


@lru_cache(maxsize=2**14)
def _length(compressor: str, text: bytes) -> int:
    """Return C(x), cached because landmarks occur in every block."""
    return len(_COMPRESSORS[compressor](text))
