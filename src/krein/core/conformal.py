"""Conformal p-values: how a score ranks among those of objects drawn in the same way.

Unusual objects have large scores. Let a₁ … a_n be the scores of held-out objects, and a the score
of a new one. If the new object comes from the same distribution, its rank among all n + 1 is
uniform, so

    p = (1 + #{j : a_j ≥ a}) / (n + 1)

is at most t with probability at most t, whatever the score (Vovk, Gammerman & Shafer 2005). Here,
held-out scores come from models fitted without the object, and from comparisons with all other
training objects, so ranks are uniform up to the effect of one training object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .checks import Array
from .family import Codes


def conformal_p(reference: Array, scores: Array, weights: Array | None = None) -> Array:
    """Return the p-value of each score among the held-out scores. O((n + q) log n).

    An object of weight w counts as w objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import conformal_p
    >>> conformal_p(np.array([1.0, 2.0, 3.0]), np.array([0.0, 3.0, 9.0]))
    array([1.  , 0.5 , 0.25])
    """
    order = np.argsort(reference, kind="stable")
    w = np.ones(len(reference)) if weights is None else weights[order]
    above = np.append(np.cumsum(w[::-1])[::-1], 0.0)  # the weight of the i-th and all after it
    first = np.searchsorted(reference[order], scores, side="left")
    found: Array = (1.0 + above[first]) / (1.0 + above[0])
    return found


def groups_of(codes: np.ndarray, n_classes: int, least: int) -> np.ndarray:
    """Return the group (C,) of each class: its own if it has at least `least` held-out objects.

    The other classes share group −1 if they have `least` objects together. Otherwise they get −2,
    which stands for all objects.
    """
    counts = np.bincount(codes, minlength=n_classes)
    small = counts < least
    shared = -1 if counts[small].sum() >= least else -2
    return np.where(small, shared, np.arange(n_classes))


def in_group(group: int, groups_of_objects: np.ndarray) -> np.ndarray:
    """Return a mask of the objects that form the reference of a group."""
    return groups_of_objects == group if group != -2 else np.ones(len(groups_of_objects), bool)


# -------------------------------------------------------------------------------------------------
# Novelty detection: is an object farther from the known objects than they are from each other?
#
# The score is the mean of the `NEAREST` smallest dissimilarities among all exact comparisons of
# an object, with landmarks and candidates, or minus the mean of the largest similarities. The
# p-value ranks the score among those of held-out objects, none of which is compared with itself
# (`conformal`). The reference of an object consists of the held-out objects with the same
# *predicted* label. New objects have a predicted label too, so the p-values are valid for every
# label that has its own reference.
# -------------------------------------------------------------------------------------------------

NEAREST = 3
"""A single neighbour may be an outlier; many neighbours may be more than a small class has."""

NOVELTY_GROUP = 500
"""A label with at least this many held-out objects has its own p-values. With 100 objects, p-values
cannot be below 1 %, so novel objects would rank behind objects with more common labels."""


def novelty_scores(apart: Array, kind: Literal["similarity", "dissimilarity"]) -> Array:
    """Return the score (n,) of objects with these squared dissimilarities (n, k), nearest first.

    For a similarity s, the "squared dissimilarities" are −2s, as in `evidence.squared`.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import novelty_scores
    >>> novelty_scores(np.array([[1.0, 4.0, 9.0, 1e6]]), "dissimilarity")
    array([2.])
    """
    near = apart[:, :NEAREST]
    near = np.sqrt(near) if kind == "dissimilarity" else near / 2
    return near.mean(axis=1)


@dataclass(frozen=True)
class NoveltyReference:
    """The scores and predicted labels of held-out objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import NoveltyReference
    >>> reference = NoveltyReference(np.arange(99.0), np.zeros(99, dtype=int), None, 2)
    >>> reference.p_values(np.array([50.0, 1000.0]), np.array([0, 1]))
    array([0.5 , 0.01])
    """

    scores: Array  # (n,)
    predicted: Codes  # (n,)
    weights: Array | None
    n_classes: int

    def p_values(self, scores: Array, predicted: Codes) -> Array:
        """Return the p-value (q,) of new objects with these scores and predicted classes."""
        groups = groups_of(self.predicted, self.n_classes, NOVELTY_GROUP)
        own, asked = groups[self.predicted], groups[predicted]
        found = np.ones(len(scores))
        for group in np.unique(asked):
            here, there = in_group(group, own), asked == group
            weights = None if self.weights is None else self.weights[here]
            found[there] = conformal_p(self.scores[here], scores[there], weights)
        return found

    @property
    def smallest(self) -> float:
        """The smallest p-value that an object of any class can have."""
        n = float(len(self.scores) if self.weights is None else self.weights.sum())
        return 1.0 / (n + 1.0)


def status_of(
    confidence: Array, novelty: Array, ambiguous_below: float, novel_below: float
) -> NDArray[np.str_]:
    """Return "novel", "ambiguous" or "known" for each object, from its probability and p-value.

    `confidence` is the largest probability. "Novel" takes precedence over "ambiguous", because
    doubt between classes presupposes that one of them is correct.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import status_of
    >>> status_of(np.array([0.9, 0.6, 0.9]), np.array([0.5, 0.5, 0.001]), 0.8, 0.01)
    array(['known', 'ambiguous', 'novel'], dtype='<U9')
    """
    status = np.where(confidence < ambiguous_below, "ambiguous", "known").astype("<U9")
    status[novelty <= novel_below] = "novel"
    return status


# -------------------------------------------------------------------------------------------------
# Label sets: the labels that cannot be ruled out, with guaranteed coverage of the true label.
#
# The nonconformity of a label is high if its log-odds are low: a(x, c) = −log(p_c / (1 − p_c)).
# The p-value of label c ranks a(x, c) among the a(x_j, y_j) of held-out objects with their true
# labels (`conformal`). The set contains the labels whose p-value exceeds 1 − coverage. With ranks
# among all held-out objects, the set contains the true label with probability `coverage` overall;
# with ranks among those of class c, also within each class (Vovk 2012). Sets based on the
# probability of the label are the smallest on average (Sadinle, Lei & Wasserman 2019). A set may
# be empty if no label fits the object.
#
# Log-odds order labels as probabilities do, and still differ between objects whose probabilities
# round to 1.
# -------------------------------------------------------------------------------------------------

LABEL_GROUP = 30
"""A class with at least this many held-out objects has its own p-values, in steps of about 3 %.
Classes that share p-values reach the coverage jointly, not individually: on Swiss-Prot, the
coverage of some of the 40 classes was off by 8 %."""

ROUNDING = 1e-12
"""Slack for rounding: 2/10 must not exceed 1 − 0.8, which rounds to slightly less than 0.2."""


def log_odds(log_proba: Array) -> Array:
    """Return log(p_c / (1 − p_c)) for each class (n, C), from log-probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import log_odds
    >>> np.exp(log_odds(np.log([[0.8, 0.2]])))
    array([[4.  , 0.25]])
    """
    rows, best = np.arange(len(log_proba)), log_proba.argmax(axis=1)
    others = log_proba.copy()
    others[rows, best] = -np.inf
    found = log_proba - np.log1p(-np.exp(others))  # p_c ≤ ½ except for the best class
    found[rows, best] = log_proba[rows, best] - logsumexp(others, axis=1)
    return found


@dataclass(frozen=True)
class LabelReference:
    """The log-odds of the true labels of held-out objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.conformal import LabelReference
    >>> reference = LabelReference(np.arange(9.0), np.zeros(9, dtype=int), None, 2)
    >>> reference.sets(np.array([[5.0, -5.0], [0.5, -0.5]]), coverage=0.8, by_class=False)
    array([[ True, False],
           [False, False]])
    """

    odds: Array  # (n,)
    codes: Codes  # (n,)
    weights: Array | None
    n_classes: int

    def p_values(self, odds: Array, *, by_class: bool) -> Array:
        """Return the p-value (q, C) of each label, from log-odds (q, C)."""
        everyone = np.full(self.n_classes, -2)
        groups = groups_of(self.codes, self.n_classes, LABEL_GROUP) if by_class else everyone
        own = groups[self.codes]
        found = np.empty(odds.shape)
        for c, group in enumerate(groups):
            here = in_group(group, own)
            weights = None if self.weights is None else self.weights[here]
            found[:, c] = conformal_p(-self.odds[here], -odds[:, c], weights)
        return found

    def sets(self, odds: Array, *, coverage: float, by_class: bool) -> NDArray[np.bool_]:
        """Return a mask (q, C) of the labels that cannot be ruled out."""
        p = self.p_values(odds, by_class=by_class)
        found: NDArray[np.bool_] = p > 1 - coverage + ROUNDING
        return found
