"""Evidence for each label from the nearest known objects, after a few exact comparisons.

Let d₁² ≤ d₂² ≤ … be the squared dissimilarities of an object to its candidates, from exact
comparisons. For similarities they are −2s, because the object's own term cancels below. With
weights w_j = exp(−½ (d_j² − d₁²)/h²) the evidence of class c is

    e_c = log((Σ_{j of class c} w_j + ½/C) / (Σ_j w_j + ½)).

The bandwidth adapts to the object: h² = f (d_K² − d₁²), where K is the `LOCAL`-th neighbour. So the
evidence is unitless, and works equally well where objects are dense and where they are sparse.

The evidence does not depend on how near the nearest object is, yet the label of a near copy
deserves more trust than that of a remote relative. `Closeness` therefore ranks d₁² among those of
held-out objects, which is unitless too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .checks import Array
from .family import Codes

BANDWIDTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Values of f to try: from the nearest neighbour alone to a vote of all candidates."""

LOCAL = 10
"""The bandwidth of an object is set by its distance to this neighbour."""

TAILS = (0.05, 0.1, 0.2, 0.4, 1.0)
"""Values of `tail` to try: the share of held-out objects that are too remote for closeness 1."""

PRIOR_MASS = 0.5
"""Weight of a pseudo-neighbour spread over all classes, which bounds the evidence."""


def squared(values: Array, kind: Literal["similarity", "dissimilarity"]) -> Array:
    """Return squared dissimilarities, up to a constant per row, from values of the measure."""
    return np.square(values) if kind == "dissimilarity" else -2.0 * values


def class_evidence(apart: Array, codes: Codes, n_classes: int, bandwidth: float) -> Array:
    """Return the evidence (n, C) of neighbours with squared dissimilarities and classes (n, k).

    O(n·k log k + n·C).

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
        gap = apart - apart.min(axis=1, keepdims=True)
        local = np.partition(gap, min(LOCAL, k - 1), axis=1)[:, min(LOCAL, k - 1)]
        # neighbours at the same distance, e.g. copies, have equal votes
        h2 = bandwidth * np.where(local > 0, local, np.maximum(gap.max(axis=1), 1.0))
        weights = np.exp(-0.5 * gap / h2[:, None])
        np.add.at(found, (np.repeat(np.arange(n), k), codes.ravel()), weights.ravel())
    return np.log(found / found.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Closeness:
    """How near the nearest known object is: 1 at usual distances, towards 0 for remote objects.

    Let r(d²) be the share of held-out objects whose nearest known object is at least as far away.
    The closeness is min(r/tail, 1), interpolated linearly between the held-out objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.evidence import Closeness
    >>> Closeness.of(np.arange(10.0), tail=0.4)(np.array([0.0, 5.0, 7.0, 8.0, 99.0])).round(2)
    array([1.  , 1.  , 0.75, 0.5 , 0.25])
    """

    apart: Array  # (k,): squared dissimilarities, ascending
    share: Array  # (k,): the closeness there

    @classmethod
    def of(cls, nearest: Array, tail: float, weights: Array | None = None) -> Closeness:
        """Return the closeness, from squared dissimilarities (n,) of held-out objects."""
        w = np.ones(len(nearest)) if weights is None else weights
        apart, place = np.unique(nearest, return_inverse=True)
        at_least = np.cumsum(np.bincount(place, weights=w)[::-1])[::-1]
        share = np.minimum(at_least / (tail * at_least[0]), 1.0)
        first = max(int(np.count_nonzero(share == 1.0)) - 1, 0)  # all before it are 1
        return cls(apart[first:], share[first:])

    def __call__(self, nearest: Array) -> Array:
        """Return the closeness (n,) from the squared dissimilarities to the nearest object."""
        found: Array = np.interp(nearest, self.apart, self.share)
        return found
