"""Evidence: what the labels of the nearest known objects tell about an object.

Let d₁² ≤ d₂² ≤ … be the squared dissimilarities of an object to known objects, from exact
comparisons. For similarities they are −2s, because the object's own term cancels below. With
weights w_j = exp(−½ (d_j² − d₁²)/h²) the evidence of class c is

    e_c = log((Σ_{j of class c} w_j + ½/C) / (Σ_j w_j + ½)),

where a known object that stands for several, such as copies, has as many votes.

The bandwidth adapts to the object: h² = f (d_K² − d₁²), where K is the `LOCAL_NEIGHBOUR`-th
neighbour. So the evidence is unitless, and works equally well where objects are dense and where
they are sparse. It does not depend on how near the nearest object is, yet the label of a near copy
deserves more trust than that of a remote relative: the closeness ranks d₁² among those of held-out
objects, which is unitless too. The evidence, and the evidence times the closeness, are two terms of
the cascade.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .cascade import fit_terms
from .moments import weights_of
from .shapes import POSITIVE, SHARE, Array, Codes, Indices, Kind, Mask, Within

BANDWIDTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Values of f to try: from the nearest neighbour alone to a vote of all candidates."""

LOCAL_NEIGHBOUR = 10
"""The bandwidth of an object is set by its distance to this neighbour."""

TAILS = (0.1, 0.05, 0.2, 0.4, 1.0)
"""Values of `tail` to try: the share of held-out objects that are too remote for closeness 1. The
first one is used while bandwidths are compared."""

PRIOR_MASS = 0.5
"""Weight of a pseudo-object spread over all classes, which bounds the evidence of neighbours, and
that of class sizes."""


def squared(values: Array, kind: Kind) -> Array:
    """Return squared dissimilarities, up to a constant per row, from values of the measure."""
    return np.square(values) if kind == "dissimilarity" else -2.0 * values


def class_evidence(
    apart: Array,
    codes: Codes,
    n_classes: int,
    bandwidth: float,
    numbers: Array | None = None,
) -> Array:
    """Return the evidence (n, C) of neighbours with squared dissimilarities and classes (n, k).

    `numbers` (n, k) tells how many objects each neighbour stands for. A neighbour at an infinite
    distance has no vote. O(n·k log k + n·C).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.evidence import class_evidence
    >>> apart, codes = np.array([[0.1, 0.2, 3.0]]), np.array([[0, 0, 1]])
    >>> np.exp(class_evidence(apart, codes, 2, 1.0)).round(2)
    array([[0.72, 0.28]])
    """
    n, k = apart.shape
    found = np.full((n, n_classes), PRIOR_MASS / n_classes)
    if k:
        nearest = apart.min(axis=1, keepdims=True)
        gap = apart - np.where(np.isfinite(nearest), nearest, 0.0)
        widest = np.where(np.isfinite(gap), gap, 0.0).max(axis=1)
        K = min(LOCAL_NEIGHBOUR, k - 1)
        local = np.partition(gap, K, axis=1)[:, K]
        local = np.where(np.isfinite(local), local, widest)
        # neighbours at the same distance, e.g. copies, have equal votes
        h2 = bandwidth * np.where(local > 0, local, np.maximum(widest, 1.0))
        weights = np.exp(-0.5 * gap / h2[:, None])
        if numbers is not None:
            weights *= numbers
        np.add.at(found, (np.repeat(np.arange(n), k), codes.ravel()), weights.ravel())
    return np.log(found / found.sum(axis=1, keepdims=True))


FAR = 1e300
"""Squared dissimilarity to a neighbour that does not exist."""


@dataclass(frozen=True)
class Neighbours:
    """Exact comparisons with known objects: squared dissimilarities and class codes (n, k)."""

    apart: Array
    codes: Codes
    columns: Indices | None = None  # (n, k): positions among the compared objects of all groups
    numbers: Array | None = None  # (n, k): how many objects each one stands for; None for one each
    farthest: float = np.inf
    """What a missing neighbour counts as, where a number is needed."""

    @classmethod
    def nearest(cls, parts: Sequence[tuple[Array, Codes, Array]], k: int) -> Neighbours:
        """Return the k nearest of several groups of compared objects, nearest first.

        A group consists of squared dissimilarities, class codes and numbers.
        """
        apart = np.concatenate([part for part, _, _ in parts], axis=1)
        codes = np.concatenate([part for _, part, _ in parts], axis=1)
        numbers = np.concatenate([part for _, _, part in parts], axis=1)
        order = np.argsort(apart, axis=1, kind="stable")[:, :k]
        return cls(
            np.take_along_axis(apart, order, axis=1),
            np.take_along_axis(codes, order, axis=1),
            order,
            np.take_along_axis(numbers, order, axis=1),
        )

    @property
    def least(self) -> Array:
        """The squared dissimilarity to the nearest object (n,); 0 if there is none."""
        found = self.filled.min(axis=1, initial=self.farthest)
        return np.where(np.isfinite(found), found, 0.0)

    @property
    def filled(self) -> Array:
        """The squared dissimilarities (n, k), none beyond what a missing neighbour counts as."""
        return np.minimum(self.apart, self.farthest)

    def spread(self, rows: Indices, n: int) -> Neighbours:
        """Return the neighbours of n objects, of which these are the rows; the others have none."""
        if len(rows) == n:
            return self
        k = self.apart.shape[1]
        apart, codes = np.full((n, k), FAR), np.zeros((n, k), dtype=np.intp)
        apart[rows], codes[rows] = self.apart, self.codes
        columns, numbers = np.zeros((n, k), dtype=np.intp), np.ones((n, k))
        if self.columns is not None:
            columns[rows] = self.columns
        if self.numbers is not None:
            numbers[rows] = self.numbers
        return Neighbours(apart, codes, columns, numbers, self.farthest)

    def at(self, rows: NDArray[Any]) -> Neighbours:
        """Return the neighbours of some of the objects."""
        columns, numbers = (None if x is None else x[rows] for x in (self.columns, self.numbers))
        return Neighbours(self.apart[rows], self.codes[rows], columns, numbers, self.farthest)

    def evidence(self, n_classes: int, bandwidth: float) -> Array:
        """Return the evidence of these objects (n, C)."""
        return class_evidence(self.apart, self.codes, n_classes, bandwidth, self.numbers)


@dataclass(frozen=True)
class Evidence:
    """Turns neighbours into terms of the cascade: evidence, and evidence times closeness.

    The closeness tells how near the nearest known object is: 1 at usual distances, towards 0 for
    remote objects. Let r(d²) be the share of held-out objects whose nearest known object is at
    least as far away. The closeness is min(r/tail, 1), interpolated linearly between the held-out
    objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.evidence import Evidence
    >>> evidence = Evidence.of(0.1, np.arange(10.0), tail=0.4)
    >>> evidence.closeness(np.array([0.0, 5.0, 7.0, 8.0, 99.0])).round(2)
    array([1.  , 1.  , 0.75, 0.5 , 0.25])
    """

    bandwidth: Annotated[float, POSITIVE]
    apart: Annotated[Array, "ranks", Within(ascending=True)]  # squared dissimilarities
    share: Annotated[Array, "ranks", SHARE]  # the closeness there

    tails: ClassVar[tuple[float, ...]] = TAILS

    @classmethod
    def of(
        cls, bandwidth: float, nearest: Array, tail: float, weights: Array | None = None
    ) -> Self:
        """Return the evidence, given squared dissimilarities (n,) of held-out objects."""
        apart, place = np.unique(nearest, return_inverse=True)
        at_least = np.cumsum(np.bincount(place, weights_of(weights, len(nearest)))[::-1])[::-1]
        share = np.minimum(at_least / (tail * at_least[0]), 1.0)
        first = max(int(np.count_nonzero(share == 1.0)) - 1, 0)  # all before it are 1
        return cls(bandwidth, apart[first:], share[first:])

    def closeness(self, nearest: Array) -> Array:
        """Return the closeness (n,) from the squared dissimilarities to the nearest object."""
        found: Array = np.interp(nearest, self.apart, self.share)
        return found

    def terms(self, near: Neighbours, n_classes: int) -> list[Array]:
        """Return both terms (n, C)."""
        evidence = near.evidence(n_classes, self.bandwidth)
        return [evidence, evidence * self.closeness(near.least)[:, None]]

    @classmethod
    def learn(
        cls,
        before: Sequence[Array],
        codes: Codes,
        near: Neighbours,
        weights: Array | None,
        n: float,
    ) -> Self:
        """Return the evidence with the least held-out loss, in a pool with the terms `before`.

        `near` are the neighbours of held-out objects, without the objects themselves; `n` tells how
        many objects these are worth. Bandwidths are compared first, then tails.
        """
        C, nearest = before[0].shape[1], near.least

        def attempt(bandwidth: float, tail: float) -> tuple[float, Self]:
            trial = cls.of(bandwidth, nearest, tail, weights)
            return fit_terms([*before, *trial.terms(near, C)], codes, weights, n)[1], trial

        first, *others = cls.tails
        tried: list[tuple[float, Self]] = [attempt(bandwidth, first) for bandwidth in BANDWIDTHS]
        best: tuple[float, Self] = min(tried, key=itemgetter(0))
        tried = [best, *(attempt(best[1].bandwidth, tail) for tail in others)]
        return min(tried, key=itemgetter(0))[1]


VOTERS = 30
"""Number of nearest objects that provide evidence, among all that an object was compared with."""


def nearest_landmarks(apart: Array, landmark_codes: Codes) -> Neighbours:
    """Return the nearest landmarks, from squared dissimilarities (n, m) to all of them."""
    k = max(1, min(apart.shape[1] - 1, VOTERS))
    codes, numbers = np.broadcast_to(landmark_codes, apart.shape), np.ones(apart.shape)
    return Neighbours.nearest([(apart, codes, numbers)], k)


def apart_from(values: Array, kind: Kind, own: Mask) -> Array:
    """Return squared dissimilarities (n, m) to the landmarks; ∞ to those of an object's own group.

    `own` (n, m) tells which these are: the object itself, if it is a landmark, and its relatives.
    """
    return np.where(own, np.inf, squared(values, kind))
