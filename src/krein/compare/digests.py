"""Fingerprints of many objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..measures.base import Objects
from ..measures.contents import SIZE, fingerprint

Digests = NDArray[np.uint8]  # (N, SIZE)


def object_digests(objects: Objects) -> Digests:
    """Return one fingerprint per object, (N, SIZE) bytes. O(total size of the objects)."""
    digests = b"".join(fingerprint(item) for item in objects)
    return np.frombuffer(digests, dtype=np.uint8).reshape(len(objects), SIZE)
