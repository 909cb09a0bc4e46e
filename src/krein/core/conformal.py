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

import numpy as np

from .checks import Array


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
