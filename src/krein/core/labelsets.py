"""Label sets: the labels that cannot be ruled out, with guaranteed coverage of the true label.

The nonconformity of a label is high if its log-odds are low: a(x, c) = −log(p_c / (1 − p_c)). The
p-value of label c ranks a(x, c) among the a(x_j, y_j) of held-out objects with their true labels
(`conformal`). The set contains the labels whose p-value exceeds 1 − coverage. With ranks
among all held-out objects, the set contains the true label with probability `coverage` overall;
with ranks among those of class c, also within each class (Vovk 2012). Sets based on the probability
of the label are the smallest on average (Sadinle, Lei & Wasserman 2019). A set may be empty if no
label fits the object.

Log-odds order labels as probabilities do, and still differ between objects whose probabilities
round to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .checks import Array
from .conformal import conformal_p, groups_of, in_group
from .family import Codes

GROUP_OBJECTS = 30
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
    >>> from krein.core.labelsets import log_odds
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
    >>> from krein.core.labelsets import LabelReference
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
        groups = groups_of(self.codes, self.n_classes, GROUP_OBJECTS) if by_class else everyone
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
