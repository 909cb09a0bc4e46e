"""Evidence from somebody else's search: a list of hits per object instead of comparisons.

    p(c | x) ∝ exp(a log π_c + (b + b′ q(x)) e_c(x)),   a, b, b′ ≥ 0,

where π are the class frequencies of the known objects, e the evidence of the hits and q how close
the best hit is, as in a second look. Lists have different lengths: a hit that is missing is not at
distance 0 but beyond what the search reports, so it has no vote, and counts as the farthest value
of the table where a number is needed. All terms of a held-out object are computed without the
objects of its own group, which at least contains the object itself.
"""

from __future__ import annotations

import numpy as np

from .shapes import Array, Codes, Indices, Mask

SMOOTHING = 0.5
"""Objects that each class has in addition, so that a class is never impossible."""


def nearest_hits(
    starts: Indices,
    columns: Indices,
    apart: Array,
    k: int,
    without: tuple[Indices, Indices] | None = None,
) -> tuple[Array, Indices]:
    """Return the k nearest hits of each object: squared dissimilarities and columns (n, k).

    Lists are as in a CSR matrix: those of object i are `starts[i]:starts[i + 1]`. `without` gives
    the group of each object (n,) and of each column (N,): hits within a group are excluded. Missing
    hits are at an infinite distance, in column 0. Ties go to the lower column. O(h log h) for h
    hits.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.hits import nearest_hits
    >>> starts, columns = np.array([0, 3, 3]), np.array([2, 0, 1])
    >>> nearest_hits(starts, columns, np.array([4.0, 1.0, 9.0]), 2)
    (array([[ 1.,  4.],
           [inf, inf]]), array([[0, 2],
           [0, 0]]))
    """
    n = len(starts) - 1
    rows = np.repeat(np.arange(n), np.diff(starts))
    if without is not None:
        fair = without[0][rows] != without[1][columns]
        rows, columns, apart = rows[fair], columns[fair], apart[fair]
    order = np.lexsort((columns, apart, rows))
    rows = rows[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = place < k
    order, rows, place = order[kept], rows[kept], place[kept]
    found, where = np.full((n, k), np.inf), np.zeros((n, k), dtype=np.intp)
    found[rows, place], where[rows, place] = apart[order], columns[order]
    return found, where


def log_sizes_of_classes(
    codes: Codes,
    numbers: Array,
    n_classes: int,
    rows: Indices | None = None,
    groups: Indices | None = None,
) -> Array:
    """Return log π (C,) of known objects with these classes and numbers (N,).

    With `rows` (n,), return it for each of these objects (n, C), without the objects of its own
    group among `groups` (N,), by default the object itself.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.hits import log_sizes_of_classes
    >>> codes = np.array([0, 0, 1])
    >>> np.exp(log_sizes_of_classes(codes, np.ones(3), 2)).round(3)
    array([0.625, 0.375])
    >>> np.exp(log_sizes_of_classes(codes, np.ones(3), 2, rows=np.array([0]))).round(3)
    array([[0.5, 0.5]])
    """
    sizes = np.bincount(codes, weights=numbers, minlength=n_classes) + SMOOTHING
    if rows is None:
        return np.log(sizes / sizes.sum())
    groups = np.arange(len(codes)) if groups is None else groups
    found = np.tile(sizes, (len(rows), 1))
    order = np.argsort(groups, kind="stable")  # the objects of a group are consecutive
    ordered = groups[order]
    first = np.searchsorted(ordered, groups[rows], side="left")
    n_own = np.searchsorted(ordered, groups[rows], side="right") - first
    of = np.repeat(np.arange(len(rows)), n_own)
    own = order[np.arange(len(of)) - np.repeat(np.cumsum(n_own) - n_own, n_own) + first[of]]
    np.subtract.at(found, (of, codes[own]), numbers[own])
    found = np.maximum(found, SMOOTHING)  # rounding
    return np.log(found / found.sum(axis=1, keepdims=True))


def can_be_held_out(codes: Codes, groups: Indices) -> Mask:
    """Return which objects have another object of their class outside their own group.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.hits import can_be_held_out
    >>> can_be_held_out(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 2, 2, 4]))
    array([ True,  True, False, False, False])
    """
    both = np.stack([codes, groups], axis=1)
    _, place, n_own = np.unique(both, axis=0, return_inverse=True, return_counts=True)
    found: Mask = np.bincount(codes)[codes] > n_own[place.ravel()]
    return found
