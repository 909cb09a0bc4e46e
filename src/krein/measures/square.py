"""A matrix of values as the user gives it: read, and checked tile by tile."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Array, Kind, unframed

TILE = 1024
HUGE = 1e150
"""What is larger, or as small, cannot be squared in double precision."""

SAMPLED_TILES = 64
"""Pairs of tiles looked at in a memory map, which may take hours to read as a whole."""

SYMMETRY_TOLERANCE = 1e-8
"""Largest |K − Kᵀ| relative to the largest |K| that counts as rounding."""


def as_matrix(given: Any) -> NDArray[Any]:
    """Return the matrix: an array as it is, a memory map as it is, an `.npy` file mapped."""
    if isinstance(given, str | PathLike):
        path = Path(given)
        if path.suffix != ".npy":
            raise ValueError(f"{path}: a matrix file is an .npy file here")
        given = np.load(path, mmap_mode="r", allow_pickle=False)
    given = unframed(given)
    if not isinstance(given, np.ndarray):
        if hasattr(given, "toarray"):
            raise TypeError("a sparse matrix leaves open what its missing entries mean; fill it")
        given = np.asarray(given)
    if given.dtype == object:
        given = np.asarray(given, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"a matrix of values has two axes; got an array of {given.ndim}")
    if not (np.issubdtype(given.dtype, np.number) or given.dtype == bool):
        raise TypeError(f"a matrix of values is made of numbers; got {given.dtype}")
    if np.issubdtype(given.dtype, np.complexfloating):
        raise ValueError("Complex data not supported: values of a measure are real")
    return given


def check_square(
    matrix: NDArray[Any], kind: Kind, *, symmetrize: bool = False, sample: bool = False
) -> None:
    """Raise where the matrix is not square, not finite, not symmetric, or a negative distance.

    Rounding does not count as asymmetry: that of the matrix's own type, eight units in the last
    place of its largest entry. O(N²) time, two tiles of memory. With `sample` some tiles are looked
    at; the rest is checked as it is read.
    """
    n, columns = matrix.shape
    if n != columns:
        raise ValueError(
            f"to fit, a precomputed matrix is square, each object with each; got {n} × {columns}"
        )
    largest, worst, where = 0.0, 0.0, (0, 0)
    for i, j in _tiles(n, sample):
        upper = np.asarray(matrix[i : i + TILE, j : j + TILE], dtype=np.float64)
        lower = np.asarray(matrix[j : j + TILE, i : i + TILE], dtype=np.float64)
        for tile, (top, left) in ((upper, (i, j)), (lower, (j, i))):
            wrong = find_wrong(tile, kind)
            if wrong is not None:
                _refuse_entry(tile[wrong], (top + wrong[0], left + wrong[1]))
        largest = max(largest, abs(upper).max(), abs(lower).max())
        if largest > HUGE:
            raise _off_scale(largest)
        if symmetrize:
            continue
        difference = abs(upper - lower.T)
        if difference.max() > worst:
            worst = difference.max()
            row, column = np.unravel_index(int(difference.argmax()), difference.shape)
            where = (i + int(row), j + int(column))
    if 0 < largest < 1 / HUGE:
        raise _off_scale(largest)
    rounding = 8 * np.finfo(matrix.dtype).eps if matrix.dtype.kind == "f" else 0.0
    if worst > max(SYMMETRY_TOLERANCE, rounding) * largest:
        a, b = where
        # as text, every digit of the type is there: two numbers that differ look different
        raise ValueError(
            f"the matrix is not symmetric: entry ({a}, {b}) is {matrix[a, b]!s} but entry "
            f"({b}, {a}) is {matrix[b, a]!s}, {worst / largest:.1e} of the largest entry apart; "
            "symmetrize=True takes the average of both"
        )


def _off_scale(largest: float) -> ValueError:
    return ValueError(
        f"the largest value of the matrix is {largest:.3g}: products of such values are lost, "
        f"for numbers end near 1e±308; multiply the matrix by {1 / max(largest, 1e-300):.0e} first"
    )


def find_wrong(values: Array, kind: Kind) -> tuple[int, int] | None:
    """Return the place of an entry that is not finite, or negative where it is a distance."""
    # one pass and no temporary array where all is well: a sum is finite unless a term is not
    finite = bool(np.isfinite(values.sum())) or bool(np.isfinite(values).all())
    if finite and not (kind == "dissimilarity" and values.size and values.min() < 0):
        return None
    i, j = np.argwhere(~np.isfinite(values) if not finite else values < 0)[0]
    return int(i), int(j)


def _refuse_entry(value: float, place: tuple[int, int]) -> None:
    if np.isfinite(value):
        raise ValueError(f"entry {place} of the distance matrix is negative: {value:g}")
    raise ValueError(f"entry {place} of the matrix is {value} (NaN or infinity)")


def _tiles(n: int, sample: bool) -> Iterator[tuple[int, int]]:
    """Yield the corners of the tiles on and above the diagonal, or of a sample of them."""
    starts = range(0, n, TILE)
    count = len(starts) * (len(starts) + 1) // 2
    if not sample or count <= SAMPLED_TILES:
        for i in starts:
            for j in range(i, n, TILE):
                yield i, j
        return
    random = np.random.default_rng(0)
    for _ in range(SAMPLED_TILES):
        i, j = sorted(int(k) for k in random.choice(len(starts), 2))
        yield starts[i], starts[j]
