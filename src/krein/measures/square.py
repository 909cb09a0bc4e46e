"""A precomputed matrix: read, and checked tile by tile."""

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
"""Larger values, and values below the inverse, cannot be squared in double precision."""

SAMPLED_TILES = 64
"""Number of pairs of tiles checked in a memory map, which may take hours to read completely."""

SYMMETRY_TOLERANCE = 1e-8
"""Largest |K − Kᵀ| relative to the largest |K| that counts as rounding."""


def as_matrix(given: Any) -> NDArray[Any]:
    """Return the matrix: arrays and memory maps unchanged, `.npy` files memory-mapped."""
    if isinstance(given, str | PathLike):
        path = Path(given)
        if path.suffix != ".npy":
            raise ValueError(f"{path}: a matrix file must be an .npy file")
        given = np.load(path, mmap_mode="r", allow_pickle=False)
    given = unframed(given)
    if not isinstance(given, np.ndarray):
        if hasattr(given, "toarray"):
            raise TypeError(
                "the missing entries of a sparse matrix have no defined value; convert "
                "it to a dense one"
            )
        given = np.asarray(given)
    if given.dtype == object:
        given = np.asarray(given, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"a matrix of values must have two axes; got an array of {given.ndim}")
    if not (np.issubdtype(given.dtype, np.number) or given.dtype == bool):
        raise TypeError(f"a matrix of values must consist of numbers; got {given.dtype}")
    if np.issubdtype(given.dtype, np.complexfloating):
        raise ValueError("Complex data not supported: values of a measure are real")
    return given


def check_square(
    matrix: NDArray[Any], kind: Kind, *, symmetrize: bool = False, sample: bool = False
) -> None:
    """Raise an error if the matrix is not square, not finite, not symmetric, or has negative
    distances.

    Rounding errors of the matrix's own type do not count as asymmetry: eight units in the last
    place of its largest entry. O(N²) time, two tiles of memory. With `sample`, only some tiles are
    checked; the rest is checked as it is read.
    """
    n, columns = matrix.shape
    if n != columns:
        raise ValueError(
            f"for fit, a precomputed matrix must be square, with a row and a column per object; "
            f"got {n} × {columns}"
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
        # with all digits of the type, so that two different numbers look different
        raise ValueError(
            f"the matrix is not symmetric: entry ({a}, {b}) is {matrix[a, b]!s} but entry "
            f"({b}, {a}) is {matrix[b, a]!s}, {worst / largest:.1e} of the largest entry apart; "
            "symmetrize=True uses the average of both"
        )


def _off_scale(largest: float) -> ValueError:
    return ValueError(
        f"the largest value of the matrix is {largest:.3g}: products of such values overflow or "
        f"underflow (the limits are near 1e±308); multiply the matrix by "
        f"{1 / max(largest, 1e-300):.0e} first"
    )


def find_wrong(values: Array, kind: Kind) -> tuple[int, int] | None:
    """Return the position of an entry that is not finite, or of a negative distance."""
    # one pass and no temporary array in the normal case: a sum is finite unless a term is not
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
