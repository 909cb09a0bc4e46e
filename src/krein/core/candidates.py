"""Candidates: training objects with similar landmark values and features.

Similar objects have similar values to every landmark. The first look has computed these values
anyway, so they serve as coordinates in which neighbours can be searched without comparing any
further pair. Values are replaced by their signed square roots, which spreads the small ones. Each
column is then standardised, and the rows are projected onto their leading principal directions.
The features of look zero, if there are any, provide as many coordinates. Both parts have a total
variance of 1. On words, proteins, peptides, gestures and 16S genes, candidates from both provide
better evidence than those from the values alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from .evidence import Neighbours
from .shapes import CODE, COUNT, NON_NEGATIVE, ROW, Array, Codes, Indices, Within

DIMENSIONS = 128
"""Dimensions of the search: 512 bytes per object, and 26 MFLOP per query among 10⁵ objects. With
features, half of them come from the features."""

SHORTLIST = 2
"""The single-precision search proposes this many times the wanted number of candidates. They are
then ordered in double precision, so the result does not depend on how queries are batched."""

TILE_BYTES = 2**25
"""Maximum size of the squared distances of one batch of queries."""


Points = NDArray[np.float32]
"""Coordinates of objects (n, r) in the search for candidates."""


def no_points(n: int) -> Points:
    """Return points (n, 0) of objects without features."""
    return np.empty((n, 0), dtype=np.float32)


def signed_roots(values: Array) -> Array:
    """Return √|v| with the sign of v."""
    return np.copysign(np.sqrt(np.abs(values)), values)


def nearest_points(
    points: Points,
    queries: Points,
    k: int,
    *,
    without: tuple[Indices, Indices] | None = None,
    norms: NDArray[np.float32] | None = None,
) -> tuple[Indices, Array]:
    """Return the `k` points nearest to each query (n, k), nearest first, and their distances.

    `without` gives the group of each query (n,) and of each point (N,): points of a query's own
    group, such as the query itself, are excluded. All queries get the same number of points, so
    the largest of these groups limits it. Ties go to the point that comes first. O(N·r) per query
    in single precision, through one matrix product per batch. Pass `norms=squared_norms(points)`
    if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.candidates import nearest_points
    >>> points = np.array([[0.0], [1.0], [5.0]], dtype=np.float32)
    >>> nearest_points(points, points[:1], 2, without=(np.array([0]), np.arange(3)))
    (array([[1, 2]]), array([[1., 5.]]))
    """
    N = len(points)
    excluded = 0 if without is None else max(1, most_in_one_group(*without))
    k = max(0, min(k, N - excluded))
    found, distances = np.empty((len(queries), k), dtype=np.intp), np.empty((len(queries), k))
    if k == 0:
        return found, distances
    if norms is None:
        norms = squared_norms(points)
    size = max(1, TILE_BYTES // (4 * max(N, 1)))
    for start in range(0, len(queries), size):
        part = slice(start, start + size)
        Q = queries[part]
        apart = norms - 2 * (Q @ points.T)  # ‖p‖² − 2 p·q: the same order as ‖p − q‖²
        if without is not None:
            apart[without[0][part, None] == without[1]] = np.inf
        listed = min(SHORTLIST * k, N - max(excluded, 1))  # never an excluded point, at infinity
        short = np.argpartition(apart, listed, axis=1)[:, : max(listed, k)]
        short.sort(axis=1)
        exact = np.empty(short.shape)
        for i, (row, q) in enumerate(zip(short, Q.astype(np.float64), strict=True)):
            exact[i] = np.sqrt(np.square(points[row] - q).sum(axis=1))
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        found[part] = np.take_along_axis(short, order, axis=1)
        distances[part] = np.take_along_axis(exact, order, axis=1)
    return found, distances


def most_in_one_group(queries: Indices, points: Indices) -> int:
    """Return the number of points in the largest group that a query belongs to."""
    names, sizes = np.unique(points, return_counts=True)
    return int(sizes[np.isin(names, queries)].max(initial=0))


def squared_norms(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ‖p‖² of each point (N,)."""
    found: NDArray[np.float32] = np.einsum("ij,ij->i", points, points)
    return found


def principal_directions(values: Array, most: int) -> tuple[Array, Array]:
    """Return the mean (m,) of the signed roots of values (n, m), and their directions (m, r).

    Directions are divided by the deviation of each column, and by that of the points along them.
    O(n·m² + m³).
    """
    F = signed_roots(values)
    centre = F.mean(axis=0)
    Z = F - centre
    deviation = np.sqrt(np.square(Z).mean(axis=0))
    least = 1e-12 * deviation.max(initial=0.0)
    scale = np.where(deviation > least, deviation, np.inf)  # a constant is uninformative
    Z /= scale
    r = min(Z.shape[1], most)
    variances, V = np.linalg.eigh(Z.T @ Z / len(Z))
    total = float(variances[::-1][:r].sum())
    scale *= np.sqrt(total) if total > 0 else 1.0
    return centre, V[:, ::-1][:, :r] / scale[:, None]


@dataclass(frozen=True)
class KnownObjects:
    """Training objects that may be candidates, without the landmarks that are compared anyway.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.candidates import KnownObjects, no_points
    >>> values = np.array([[0.0, 4.0], [1.0, 9.0], [4.0, 0.0], [4.1, 0.1]])
    >>> rows, each, pair = np.arange(4), np.ones(4), np.ones(2)
    >>> known = KnownObjects.of(rows, rows, each, pair, rows[:2], values, no_points(4), 2, 3)
    >>> known.candidates(values[2:3], no_points(1))[0]
    array([[2, 3]])
    """

    indices: Annotated[Indices, "n_known", ROW]  # among all training objects
    codes: Annotated[Codes, "n_known", CODE]
    numbers: Annotated[Array, "n_known", NON_NEGATIVE]  # how many objects each one stands for
    landmark_numbers: Annotated[Array, "m", NON_NEGATIVE]
    landmark_order: Annotated[Indices, "m", Within(0, below="m")]
    """The landmarks in the order of their contents, which decides between equally similar ones."""
    centre: Annotated[Array, "m"]
    directions: Annotated[Array, "m directions"]
    """Map the signed roots of values to points of total variance 1."""
    points: Annotated[Points, "n_known coordinates"]
    n_candidates: Annotated[int, COUNT]  # compared in a second look, if there are as many
    k: Annotated[int, Within(1, 2**53)]  # neighbours that provide evidence, including landmarks

    @classmethod
    def of(
        cls,
        indices: Indices,
        codes: Codes,
        numbers: Array,
        landmark_numbers: Array,
        landmark_order: Indices,
        values: Array,
        others: Points,
        n_candidates: int,
        k: int,
    ) -> KnownObjects:
        """Return the objects with these values (n, m), and with points (n, s) of their features."""
        most = DIMENSIONS // 2 if others.shape[1] else DIMENSIONS
        some = values if len(values) else np.zeros((1, values.shape[1]))
        centre, directions = principal_directions(some, most)
        found = cls(
            indices,
            codes,
            numbers,
            landmark_numbers,
            landmark_order,
            centre,
            directions,
            others,
            n_candidates,
            k,
        )
        return replace(found, points=found.points_of(values, others))

    def points_of(self, values: Array, others: Points) -> Points:
        """Return the points (n, r + s) of objects with these values, and points of their features.

        O(n·m·r).
        """
        own = ((signed_roots(values) - self.centre) @ self.directions).astype(np.float32)
        return np.hstack([own, others])

    def candidates(
        self,
        values: Array,
        others: Points,
        without: tuple[Indices, Indices] | None = None,
    ) -> tuple[Indices, Array]:
        """Return the candidates (n, k) of objects with these values, and their distances.

        `others` (n, s) are the points of their features, and `without` gives the groups of the
        objects and of all known ones, as in `nearest_points`.
        """
        points = self.points_of(values, others)
        return nearest_points(
            self.points, points, self.n_candidates, without=without, norms=self._norms
        )

    @property
    def n_found(self) -> int:
        """Number of candidates that a search finds."""
        return min(self.n_candidates, len(self.indices))

    @cached_property
    def _norms(self) -> NDArray[np.float32]:
        """Squared norms of the points, for every search."""
        return squared_norms(self.points)

    def neighbours(
        self, apart: Array, landmark_codes: Codes, found: Array, candidates: Indices
    ) -> Neighbours:
        """Return the nearest objects among landmarks and candidates.

        `apart` (n, m) and `found` (n, k) are squared dissimilarities to the landmarks and to the
        candidates, or −2s for similarities.
        """
        order = self.landmark_order
        codes = np.broadcast_to(landmark_codes[order], apart.shape)
        numbers = np.broadcast_to(self.landmark_numbers[order], apart.shape)
        others = found, self.codes[candidates], self.numbers[candidates]
        near = Neighbours.nearest([(apart[:, order], codes, numbers), others], self.k)
        assert near.columns is not None
        places = np.append(order, len(order) + np.arange(candidates.shape[1]))
        return replace(near, columns=places[near.columns])

    def without_class(self, c: int) -> KnownObjects:
        """Return the objects of the other classes."""
        kept = np.flatnonzero(self.codes != c)
        return replace(
            self,
            indices=self.indices[kept],
            codes=self.codes[kept],
            numbers=self.numbers[kept],
            points=self.points[kept],
        )
