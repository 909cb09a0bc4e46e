"""What a matrix of similarities must be, and where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

SYMMETRY_TOLERANCE = 1e-8
"""Largest |K − Kᵀ| relative to the largest |K| that counts as rounding."""

_ROWS = 1024  # rows looked at together, so that a check needs no second N×N matrix


def check_finite(K: NDArray[Any], name: str = "K") -> None:
    """Raise a `ValueError` that names the first entry that is NaN or infinite. O(N·m)."""
    for start in range(0, len(K), _ROWS):
        bad = ~np.isfinite(K[start : start + _ROWS])
        if bad.any():
            place = tuple(np.argwhere(bad)[0] + np.array([start] + [0] * (K.ndim - 1)))
            where = ", ".join(str(i) for i in place)
            raise ValueError(f"{name}[{where}] is {K[place]}; every value must be finite")


def check_matrix(K: Any, name: str = "K") -> Array:
    """Return `K` as a non-empty finite float matrix, or raise. O(N·m)."""
    if np.iscomplexobj(K):
        raise ValueError(f"{name}: complex data not supported; similarities are real numbers")
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2:
        raise ValueError(f"{name} must be a matrix; it has {K.ndim} dimension(s)")
    if K.size == 0:
        raise ValueError(f"{name} is empty: its shape is {K.shape}")
    check_finite(K, name)
    return K


def asymmetry(K: NDArray[Any]) -> tuple[float, tuple[int, int]]:
    """Return the largest |K_ij − K_ji| relative to max |K|, and where it is. O(N²), by rows."""
    largest, scale, place = 0.0, 0.0, (0, 0)
    for start in range(0, len(K), _ROWS):
        rows = np.asarray(K[start : start + _ROWS], dtype=np.float64)
        scale = max(scale, float(np.abs(rows).max()))
        difference = np.abs(rows - K[:, start : start + _ROWS].T)
        i, j = np.unravel_index(np.argmax(difference), difference.shape)
        if difference[i, j] > largest:
            largest, place = float(difference[i, j]), (int(i) + start, int(j))
    return (largest / scale if scale > 0 else 0.0), place


def check_symmetric(K: Any, name: str = "K", *, symmetrize: bool = False) -> Array:
    """Return `K` as a finite symmetric matrix, or say how far from symmetric it is.

    Asymmetry within rounding is left as it is. Beyond it, `symmetrize=True` returns the
    average (K + Kᵀ)/2; without it the asymmetry is an error. O(N²).
    """
    K = check_matrix(K, name)
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} must be square; its shape is {K.shape}")
    distance, (i, j) = asymmetry(K)
    if distance <= SYMMETRY_TOLERANCE:
        return K
    if symmetrize:
        return (K + K.T) / 2
    raise ValueError(
        f"{name} is not symmetric: {name}[{i}, {j}] = {K[i, j]:.6g} but "
        f"{name}[{j}, {i}] = {K[j, i]:.6g} ({distance:.1e} of the largest entry); "
        "symmetrize=True averages the two"
    )


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
