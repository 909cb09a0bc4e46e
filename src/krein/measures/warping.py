"""Corresponding times of two series: the path behind an elastic distance.

All elastic distances are minimal sums over paths on a grid,

    D[i, j] = min(D[i−1, j−1] + match[i, j], D[i−1, j] + down[i, j], D[i, j−1] + right[i, j]),

and differ in the costs of the steps. The kernels of `elastic` compute only the values, for many
pairs at a time. Here the whole grid is kept, for a single pair that a person looks at. The cells of
an antidiagonal depend only on the two antidiagonals before it, so they are computed together:
O(n·m) in n + m steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .base import Array

MOST_CELLS = 4_000_000
"""Maximum number of cells of a grid: two series of 2,000 times."""


@dataclass(frozen=True)
class Steps:
    """The cost of each step on the grid (n, m), and its first cell."""

    start: float
    match: Array
    down: Array
    right: Array


def dtw_steps(a: Array, b: Array, samples: float, share: float) -> Steps:
    """Return the steps of dynamic time warping; outside the band their cost is infinite."""
    cost = np.square(a[:, None] - b[None]).sum(axis=2)
    n, m = cost.shape
    longer = max(n, m)
    band = int(min(float(longer), max(samples + share * longer, float(abs(n - m)))))
    apart = np.abs(np.arange(n)[:, None] - np.arange(m))
    cost[apart > band] = np.inf
    return Steps(float(cost[0, 0]), cost, cost, cost)


def erp_steps(a: Array, b: Array, gap: float) -> Steps:
    """Return the steps of the edit distance with real penalty; its grid starts before both."""
    match = np.full((len(a) + 1, len(b) + 1), np.inf)
    match[1:, 1:] = np.sqrt(np.square(a[:, None] - b[None]).sum(axis=2))
    down, right = np.full(match.shape, np.inf), np.full(match.shape, np.inf)
    down[1:] = np.sqrt(np.square(a - gap).sum(axis=1))[:, None]
    right[:, 1:] = np.sqrt(np.square(b - gap).sum(axis=1))
    return Steps(0.0, match, down, right)


def msm_steps(a: Array, b: Array, cost: float) -> Steps:
    """Return the steps of move-split-merge."""
    x, y = a[:, :1], b[:, 0][None]
    match = np.abs(x - y)
    down, right = np.full(match.shape, np.inf), np.full(match.shape, np.inf)
    down[1:] = cost + _outside(x[1:], x[:-1], y)
    right[:, 1:] = cost + _outside(y[:, 1:], x, y[:, :-1])
    return Steps(float(match[0, 0]), match, down, right)


def _outside(x: Array, y: Array, z: Array) -> Array:
    """Return the distance of x from the interval between y and z."""
    return np.maximum(np.maximum(np.minimum(y, z) - x, x - np.maximum(y, z)), 0.0)


def least_path(steps: Steps) -> tuple[float, NDArray[np.intp], NDArray[np.bool_]]:
    """Return the least sum, the cells (L, 2) of its path, and which of them are matches.

    Among paths of equal cost, the one with more matches is returned.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.warping import dtw_steps, least_path
    >>> a, b = np.array([[0.0], [1.0], [0.0]]), np.array([[0.0], [0.0], [1.0], [0.0]])
    >>> value, path, _ = least_path(dtw_steps(a, b, np.inf, 0.0))
    >>> value, path.tolist()
    (0.0, [[0, 0], [0, 1], [1, 2], [2, 3]])
    """
    n, m = steps.match.shape
    D = np.full((n + 1, m + 1), np.inf)  # with a border that no path crosses
    D[1, 1] = steps.start
    for total in range(1, n + m - 1):
        i = np.arange(max(0, total - m + 1), min(n, total + 1))
        D[i + 1, total - i + 1] = _reached(D, steps, i, total - i).min(axis=0)
    cells, matched = [(n - 1, m - 1)], []
    while cells[-1] != (0, 0):
        i, j = cells[-1]
        step = int(_reached(D, steps, np.array([i]), np.array([j])).argmin())
        matched.append(step == 0)
        cells.append(((i - 1, j - 1), (i - 1, j), (i, j - 1))[step])
    matched.append(True)
    return float(D[n, m]), np.array(cells[::-1], dtype=np.intp), np.array(matched[::-1])


def _reached(D: Array, steps: Steps, i: NDArray[np.intp], j: NDArray[np.intp]) -> Array:
    """Return the cost of reaching cells by a match, from above, and from the left (3, k)."""
    return np.stack(
        [
            D[i, j] + steps.match[i, j],
            D[i, j + 1] + steps.down[i, j],
            D[i + 1, j] + steps.right[i, j],
        ]
    )
