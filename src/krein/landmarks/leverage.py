"""Landmarks drawn by ridge leverage, which favours objects that others cannot replace."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq

from ..compare import Pairs
from ..core.calibration import Family
from ..core.shapes import Array, Codes
from ..core.space import landmark_basis
from .base import Rule, Selection, n_sketched, similarities
from .meb import number_of_landmarks


class Leverage(Rule):
    """Objects drawn in proportion to their ridge leverage scores, estimated from a sketch.

    l_i = b_iᵀ (BᵀB + γI)⁻¹ b_i in the pseudo-Euclidean coordinates B of a random sketch, treated as
    Euclidean, with γ such that Σ l_i is the number of landmarks.

    Parameters
    ----------
    n_landmarks : int or None, default=None
        Number of landmarks; None uses as many as `MEB` would choose.
    sketch : int, default=100
        Number of random columns of K for estimating the scores: N·sketch evaluations.

    Examples
    --------
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> from krein.landmarks import Leverage
    >>> X, y = make_checkerboard(300, random_state=0)
    >>> len(IKFD("elm", landmarks=Leverage(20), random_state=0).fit(X, y).landmarks_)
    20
    """

    def __init__(self, n_landmarks: int | None = None, sketch: int = 100) -> None:
        self.n_landmarks = n_landmarks
        self.sketch = sketch

    def select(
        self, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
    ) -> Selection:
        """Choose landmarks; the details contain the `scores` (N,) of all objects."""
        m = number_of_landmarks(self.n_landmarks, pairs, codes, rng)
        all_rows = np.arange(len(pairs))
        size = min(n_sketched(pairs, self.sketch) or len(pairs), len(pairs))
        cols = np.sort(rng.choice(len(pairs), size=size, replace=False))
        C = similarities(pairs, all_rows, cols)
        scores = ridge_leverage(landmark_basis(C[cols]).coordinates(C), m)
        # an object without leverage may still be needed to reach the number
        p = scores + 1e-12 * max(scores.max(), 1.0)
        chosen = rng.choice(len(pairs), size=m, replace=False, p=p / p.sum())
        return Selection(np.sort(chosen), {"scores": scores})


def ridge_leverage(B: Array, m: int) -> Array:
    """Return b_iᵀ(BᵀB + γI)⁻¹b_i (N,), γ such that they sum to m (less if rank ≤ m). O(N·r²)."""
    lam, V = np.linalg.eigh(B.T @ B)
    lam = np.maximum(lam, 0.0)
    top = lam.max(initial=0.0)
    if top == 0:
        return np.zeros(len(B))

    def excess(log_gamma: float) -> float:
        return float((lam / (lam + np.exp(log_gamma))).sum() - m)

    low, high = np.log(top) - 30.0, np.log(top) + 30.0
    gamma = np.exp(low if excess(low) <= 0 else brentq(excess, low, high))
    projected = B @ V
    return (projected**2 / (lam + gamma)).sum(axis=1)
