"""Candidates for a second look: training objects whose landmark values resemble a new object's.

Similar objects have similar values to every landmark. The first look has computed these values
anyway, so they serve as coordinates in which neighbours can be searched without comparing any
further pair. Values are replaced by their signed square roots, which spreads the small ones. Each
column is then standardised, and the rows are projected onto their leading principal directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .checks import Array, Indices

DIMENSIONS = 128
"""Dimensions of the search: 512 bytes per object, and 26 MFLOP per query among 10⁵ objects."""

SHORTLIST = 2
"""The single-precision search proposes this many times the wanted number of candidates. They are
then ordered in double precision, so the result does not depend on how queries are batched."""

TILE_BYTES = 2**25
"""Maximum size of the squared distances of one batch of queries."""


@dataclass(frozen=True)
class CandidateSpace:
    """Maps the values of objects to the landmarks (n, m) to points (n, r).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.candidates import CandidateSpace, nearest_points
    >>> values = np.array([[0.0, 4.0], [1.0, 9.0], [4.0, 0.0], [4.1, 0.1]])
    >>> space = CandidateSpace.of(values)
    >>> points = space.points(values)
    >>> nearest_points(points, points[2:3], 2)[0]
    array([[2, 3]])
    """

    centre: Array  # (m,)
    directions: Array  # (m, r), divided by the standard deviation of each column

    @classmethod
    def of(cls, values: Array) -> CandidateSpace:
        """Return the space of objects with these values (n, m). O(n·m² + m³)."""
        F = signed_roots(values)
        centre = F.mean(axis=0)
        Z = F - centre
        deviation = np.sqrt(np.square(Z).mean(axis=0))
        least = 1e-12 * deviation.max(initial=0.0)
        scale = np.where(deviation > least, deviation, np.inf)  # a constant is no information
        Z /= scale
        r = min(Z.shape[1], DIMENSIONS)
        _, V = np.linalg.eigh(Z.T @ Z)
        return cls(centre, V[:, ::-1][:, :r] / scale[:, None])

    def points(self, values: Array) -> NDArray[np.float32]:
        """Return the points (n, r) of objects with these values. O(n·m·r)."""
        return ((signed_roots(values) - self.centre) @ self.directions).astype(np.float32)


def signed_roots(values: Array) -> Array:
    """Return √|v| with the sign of v."""
    return np.copysign(np.sqrt(np.abs(values)), values)


def nearest_points(
    points: NDArray[np.float32],
    queries: NDArray[np.float32],
    k: int,
    *,
    without: Indices | None = None,
    norms: NDArray[np.float32] | None = None,
) -> tuple[Indices, Array]:
    """Return the `k` points nearest to each query (n, k), nearest first, and their distances.

    `without` gives one point per query to exclude, usually the query itself; −1 for none. Ties go
    to the point that comes first. O(N·r) per query in single precision, through one matrix product
    per batch. Pass `norms=squared_norms(points)` if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.candidates import nearest_points
    >>> points = np.array([[0.0], [1.0], [5.0]], dtype=np.float32)
    >>> nearest_points(points, points[:1], 2, without=np.array([0]))
    (array([[1, 2]]), array([[1., 5.]]))
    """
    N = len(points)
    k = max(0, min(k, N - (without is not None)))
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
        itself = np.full(len(Q), -1) if without is None else without[part]
        known = np.flatnonzero(itself >= 0)
        apart[known, itself[known]] = np.inf
        listed = min(SHORTLIST * k, N - 1)  # never the excluded point, at infinity
        short = np.argpartition(apart, listed, axis=1)[:, : max(listed, k)]
        short.sort(axis=1)
        exact = np.empty(short.shape)
        for i, (row, q) in enumerate(zip(short, Q.astype(np.float64), strict=True)):
            exact[i] = np.sqrt(np.square(points[row] - q).sum(axis=1))
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        found[part] = np.take_along_axis(short, order, axis=1)
        distances[part] = np.take_along_axis(exact, order, axis=1)
    return found, distances


def squared_norms(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ‖p‖² of each point (N,)."""
    found: NDArray[np.float32] = np.einsum("ij,ij->i", points, points)
    return found
