"""Evidence from somebody else's search: a list of hits per object instead of comparisons.

    p(c | x) ∝ exp(a log π_c + w(x) e_c(x)),   a, w ≥ 0,

where π are the class frequencies of the known objects, e is the evidence of the hits, and the trust
w rises with the score of the best hit. Lists have different lengths: a hit that is missing is not
at distance 0 but beyond what the search reports. So it has no vote, and counts as the worst hit of
all where a number is needed. All terms of a held-out object are computed without the
objects of its own group, which at least contains the object itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar

import numpy as np

from .evidence import PRIOR_MASS, Evidence, Neighbours
from .shapes import CODE, NON_NEGATIVE, ROW, Array, Codes, Indices, Mask, Within


def nearest_hits(
    starts: Indices,
    columns: Indices,
    apart: Array,
    k: int,
    without: tuple[Indices, Indices] | None = None,
    numbers: Array | None = None,
) -> tuple[Array, Indices]:
    """Return the k nearest hits of each object: squared dissimilarities and columns (n, k).

    Lists are as in a CSR matrix: those of object i are `starts[i]:starts[i + 1]`. `without` gives
    the group of each object (n,) and of each column (N,): hits within a group are excluded, and so
    are columns that stand for no object by their `numbers` (N,). Missing hits are at an infinite
    distance, in column 0. Ties go to the lower column. O(h log h) for h hits.

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
    if numbers is not None and not numbers.all():
        fair = numbers[columns] > 0
        rows, columns, apart = rows[fair], columns[fair], apart[fair]
    order = np.lexsort((columns, apart, rows))
    rows = rows[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = place < k
    order, rows, place = order[kept], rows[kept], place[kept]
    found, where = np.full((n, k), np.inf), np.zeros((n, k), dtype=np.intp)
    found[rows, place], where[rows, place] = apart[order], columns[order]
    return found, where


MOST = 1000
"""Maximum number of hits that provide evidence."""


@dataclass(frozen=True)
class KnownHits:
    """Known objects that somebody else has searched, so that none has to be compared."""

    indices: Annotated[Indices, "n_known", ROW]  # among all training objects
    codes: Annotated[Codes, "n_known", CODE]
    numbers: Annotated[Array, "n_known", NON_NEGATIVE]  # how many objects each one stands for
    k: Annotated[int, Within(1, MOST)]  # hits that provide evidence
    farthest: float
    """The squared dissimilarity of the worst hit, which stands for a hit that is missing."""
    score: str = ""
    """The column of a table that the values come from; empty if they do not come from a table."""

    n_candidates: ClassVar[int] = 0

    @property
    def n_found(self) -> int:
        """Number of hits that are taken."""
        return self.k

    def neighbours(
        self,
        starts: Indices,
        columns: Indices,
        apart: Array,
        without: tuple[Indices, Indices] | None = None,
    ) -> tuple[Neighbours, Indices]:
        """Return the best hits of objects with these lists, and which objects (n, k) they are."""
        found, where = nearest_hits(starts, columns, apart, self.k, without, self.numbers)
        places = np.broadcast_to(np.arange(where.shape[1]), where.shape)
        near = Neighbours(found, self.codes[where], places, self.numbers[where], self.farthest)
        return near, where


KNOTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 1.0)
"""Ranks of the best hit between which the trust in hits changes linearly. Below some score, hits
are found by chance and uninformative: trust falls more steeply there than one ramp can.
`make bench BENCH=hits` compares both on simulated families."""


class HitEvidence(Evidence):
    """Turns hits into terms of the cascade: evidence, times a trust that rises with the best hit.

    Let r be the share of held-out objects whose best hit is no better: the closeness with a tail of
    1. The terms are e, and e·ρ_j for J ramps ρ_j(r) that rise from 0 to √J between two `KNOTS`. So
    their weights, which are not negative, are a trust that is piecewise linear and never falls. The
    height √J lets J ramps together be as free as a single term: the prior holds each weight alone.
    """

    tails = (1.0,)

    def terms(self, near: Neighbours, n_classes: int) -> list[Array]:
        """Return all terms (n, C)."""
        evidence, r = near.evidence(n_classes, self.bandwidth), self.closeness(near.least)
        ramps = [np.clip((r - low) / (high - low), 0.0, 1.0) for low, high in pairwise(KNOTS)]
        height = np.sqrt(len(ramps))
        return [evidence, *(evidence * (height * ramp)[:, None] for ramp in ramps)]


def log_class_shares(
    codes: Codes,
    numbers: Array,
    n_classes: int,
    without: tuple[Indices, Indices] | None = None,
) -> Array:
    """Return log π (C,) of known objects with these classes and numbers (N,).

    `without` gives the groups of some objects (n,) and of the known ones (N,). The result is then
    log π (n, C) for each of these objects, without the known objects of its own group.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.hits import log_class_shares
    >>> codes = np.array([0, 0, 1])
    >>> np.exp(log_class_shares(codes, np.ones(3), 2)).round(3)
    array([0.643, 0.357])
    >>> np.exp(log_class_shares(codes, np.ones(3), 2, (np.array([0]), np.arange(3)))).round(3)
    array([[0.5, 0.5]])
    """
    least = PRIOR_MASS / n_classes
    sizes = np.bincount(codes, weights=numbers, minlength=n_classes) + least
    if without is None:
        return np.log(sizes / sizes.sum())
    asked, groups = without
    found = np.tile(sizes, (len(asked), 1))
    rows, own = members(asked, groups)
    np.subtract.at(found, (rows, codes[own]), numbers[own])
    found = np.maximum(found, least)  # rounding
    return np.log(found / found.sum(axis=1, keepdims=True))


def members(asked: Indices, groups: Indices) -> tuple[Indices, Indices]:
    """Return all pairs of an object of `asked` (n,) and a member of its group among `groups` (N,).

    >>> members(np.array([7, 5]), np.array([5, 7, 7]))
    (array([0, 0, 1]), array([1, 2, 0]))
    """
    order = np.argsort(groups, kind="stable")  # the members of a group are consecutive
    first = np.searchsorted(groups[order], asked, side="left")
    number = np.searchsorted(groups[order], asked, side="right") - first
    rows = np.repeat(np.arange(len(asked)), number)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(number) - number, number)
    return rows, order[first[rows] + place]


def can_be_held_out(
    codes: Codes, groups: Indices, known_codes: Codes, known_groups: Indices
) -> Mask:
    """Return which objects (n,) have a known object of their class outside their own group.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.hits import can_be_held_out
    >>> codes, groups = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 2, 2, 4])
    >>> can_be_held_out(codes, groups, codes, groups)
    array([ True,  True, False, False, False])
    """
    rows, own = members(groups, known_groups)
    related = np.bincount(rows, weights=known_codes[own] == codes[rows], minlength=len(codes))
    there = np.bincount(known_codes, minlength=int(codes.max(initial=0)) + 1)[codes]
    found: Mask = there > related
    return found
