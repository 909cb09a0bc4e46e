"""Supervised matrix similarity score: how well a matrix separates classes (paper, section 4).

f(S) = Σ_c | mean similarity within class c − mean similarity of class c to the others |
s(K̂, K) = f(K̂) / f(K)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .shapes import Array


def margin(K: Array, codes: NDArray[Any], n_classes: int) -> float:
    """Return f(K) of a full matrix; codes 0…C−1 (N,). O(N²).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.smss import margin
    >>> margin(np.eye(4), np.array([0, 0, 1, 1]), 2)
    1.0
    """
    members = np.eye(n_classes)[codes]  # (N, C)
    return _margin(members.T @ (K @ members), members.sum(axis=0))


def margin_low_rank(class_sums: Array, signs: Array, counts: Array) -> float:
    """Return f(B J Bᵀ) from s_c = Bᵀ1_c (C, r), J and the class sizes. O(C²·r).

    1_cᵀ K̃ 1_d = s_cᵀ J s_d; the class sums come from one pass (`ClassMoments.class_sums`).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.smss import margin_low_rank
    >>> sums, signs = np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([1.0, 1.0])
    >>> margin_low_rank(sums, signs, np.array([2.0, 2.0]))
    2.0
    """
    return _margin((class_sums * signs) @ class_sums.T, counts)


def _margin(block_sums: Array, counts: Array) -> float:
    """f from the sums of similarities between classes (C, C). An absent class adds nothing."""
    n = counts.sum()
    present = counts > 0
    if present.sum() < 2:
        raise ValueError("the supervised matrix similarity score needs two classes or more")
    inner = np.diag(block_sums)[present]
    outer = block_sums.sum(axis=1)[present] - inner
    counts = counts[present]
    return float(np.abs(inner / counts**2 - outer / (counts * (n - counts))).sum())


def smss(f_approximation: float, f_original: float) -> float:
    """Return s(K̂, K) = f(K̂)/f(K); above 1 the margin between the classes has grown.

    Examples
    --------
    >>> from krein.core.smss import smss
    >>> smss(0.8, 1.0)
    0.8
    """
    if f_original == 0:
        raise ValueError("the score is undefined: the original matrix has margin 0 between classes")
    return f_approximation / f_original
