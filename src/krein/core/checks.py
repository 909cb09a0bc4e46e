"""What labels and landmarks must be, and where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

SYMMETRY_TOLERANCE = 1e-8
"""Largest |K − Kᵀ| relative to the largest |K| that counts as rounding."""


def check_labels(y: Any, n: int, name: str = "y") -> NDArray[Any]:
    """Return the labels as a vector of length `n`, or say how many there are."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"{name} must be a vector of labels; it has {y.ndim} dimension(s)")
    if len(y) != n:
        raise ValueError(f"{name} holds {len(y)} labels for {n} objects")
    return y


def check_landmarks(indices: Any, n: int) -> Indices:
    """Return landmark indices into `n` objects: whole, in range, none twice."""
    indices = np.asarray(indices)
    if indices.ndim != 1 or len(indices) == 0:
        raise ValueError(f"landmarks must be a non-empty vector of indices; got {indices!r}")
    if indices.dtype.kind not in "iu":
        hint = "; np.flatnonzero(mask) turns a mask into indices" if indices.dtype == bool else ""
        raise ValueError(f"landmarks must be whole numbers; got {indices.dtype}{hint}")
    outside = (indices < 0) | (indices >= n)
    if outside.any():
        raise ValueError(f"landmark {indices[outside][0]} is out of range for {n} objects")
    values, first, counts = np.unique(indices, return_index=True, return_counts=True)
    if (counts > 1).any():
        repeated = values[counts > 1][np.argmin(first[counts > 1])]
        raise ValueError(f"landmark {repeated} is given more than once")
    return indices.astype(np.intp)
