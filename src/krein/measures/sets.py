"""Sets of points, compared by the distances between their points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.shapes import Array
from .base import Measure, random_arrays
from .objects import Objects, RefusedObject, as_numbers, contains, unframed, unusable

_DISTANCES = 2**20
"""Number of distances between points kept at a time: 8 MB."""


def _groups(sizes: NDArray[np.intp], most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of sets with at most this many points in total, or single sets."""
    first, points = 0, 0
    for j, size in enumerate(sizes):
        if j > first and points + size > most:
            yield first, j
            first, points = j, 0
        points += int(size)
    yield first, len(sizes)


@dataclass(frozen=True)
class _PointSets(Measure):
    """Each object is an array of points, (points, d); the numbers of points may differ.

    O(|a|·|b|·d) per pair: one set against all points of all the others at once.
    """

    metric: str = "euclidean"

    kind = "dissimilarity"
    self_value = 0.0
    releases_gil = True
    block_pairs = 2**14
    averaged: ClassVar[bool] = False
    """Whether the nearest distances of points are averaged; otherwise the largest counts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric not in ("euclidean", "cityblock", "chebyshev"):
            raise ValueError(
                f"metric must be 'euclidean', 'cityblock' or 'chebyshev'; got {self.metric!r}"
            )

    def check(self, objects: Any) -> Objects:
        """Return a list of finite arrays (points, d), all of the same d."""
        sets: list[Array] = []
        for row, item in enumerate(unframed(objects)):
            points = as_numbers(item, "set", row)
            if points.ndim == 1:
                points = points[:, None]
            if points.ndim != 2:
                raise RefusedObject(
                    "set", row, f"has {points.ndim} axes; it must have 2, points and coordinates"
                )
            if points.size == 0:
                raise RefusedObject("set", row, "is empty")
            if sets and points.shape[1] != sets[0].shape[1]:
                raise RefusedObject(
                    "set",
                    row,
                    f"is in {points.shape[1]} dimensions, set 0 in {sets[0].shape[1]}",
                )
            if (bad := unusable(points)).any():
                point, axis = np.argwhere(bad)[0]
                raise RefusedObject("set", row, contains(points[point, axis], f"in point {point}"))
            sets.append(points)
        return sets

    def check_alike(self, A: Objects, B: Objects) -> None:
        """Raise an error if the sets have different dimensions."""
        if len(A) and len(B) and A[0].shape[1] != B[0].shape[1]:
            raise ValueError(
                f"sets in {A[0].shape[1]} dimensions cannot be compared with sets in "
                f"{B[0].shape[1]}"
            )

    def random_objects(
        self, objects: Objects, sizes: Array, rng: np.random.Generator
    ) -> Objects | None:
        """Return sets of these sizes, with points drawn from the given sets."""
        return random_arrays(np.concatenate(self._in_order(objects)), sizes, rng)

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances."""
        values = np.empty((len(A), len(B)))
        if values.size == 0:
            return values
        sizes = np.array([len(b) for b in B])
        for first, last in _groups(sizes, _DISTANCES // max(len(a) for a in A)):
            points = np.concatenate([np.asarray(B[j]) for j in range(first, last)])
            group = sizes[first:last]
            starts = np.concatenate([[0], np.cumsum(group)[:-1]])
            for row, a in zip(values, A, strict=True):
                D = cdist(a, points, self.metric)  # (points of a, points of all b)
                nearest_b = np.minimum.reduceat(D, starts, axis=1)  # (points of a, sets)
                nearest_a = D.min(axis=0)  # (points of all b,)
                if self.averaged:
                    there, back = nearest_b.mean(axis=0), np.add.reduceat(nearest_a, starts) / group
                else:
                    there, back = nearest_b.max(axis=0), np.maximum.reduceat(nearest_a, starts)
                row[first:last] = np.maximum(there, back)
        return values


@dataclass(frozen=True)
class Hausdorff(_PointSets):
    """max(max_x min_y ‖x − y‖, max_y min_x ‖x − y‖): the largest nearest distance.

    A metric on closed sets, dominated by outliers. A set is an array (points, d); sets may differ
    in their number of points. O(|a|·|b|·d) per pair.

    Parameters
    ----------
    metric : {"euclidean", "cityblock", "chebyshev"}, default="euclidean"
        The distance ‖x − y‖ between two points: ℓ₂, ℓ₁ or ℓ∞.

    See Also
    --------
    ModifiedHausdorff : Mean instead of maximum, robust against outliers.

    Examples
    --------
    >>> from krein.measures.sets import Hausdorff
    >>> sets = Hausdorff().check([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [4.0, 0.0]]])
    >>> Hausdorff().block(sets[:1], sets[1:])
    array([[3.]])
    """

    name = "hausdorff"


@dataclass(frozen=True)
class ModifiedHausdorff(_PointSets):
    """max(mean_x min_y ‖x − y‖, mean_y min_x ‖x − y‖) (Dubuisson & Jain 1994).

    Robust against outliers; not a metric. A set is an array (points, d); sets may differ in their
    number of points. O(|a|·|b|·d) per pair.

    Parameters
    ----------
    metric : {"euclidean", "cityblock", "chebyshev"}, default="euclidean"
        The distance ‖x − y‖ between two points: ℓ₂, ℓ₁ or ℓ∞.

    See Also
    --------
    Hausdorff : Maximum instead of mean, a metric.

    Examples
    --------
    >>> from krein.measures.sets import ModifiedHausdorff
    >>> measure = ModifiedHausdorff()
    >>> sets = measure.check([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [4.0, 0.0]]])
    >>> measure.block(sets[:1], sets[1:])
    array([[1.5]])
    """

    name = "modified-hausdorff"
    averaged = True
