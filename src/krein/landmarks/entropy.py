"""Landmarks with maximum entropy (De Brabanter et al. 2010; the paper's ENT).

The quadratic Rényi entropy of a subset L is −log(1ᵀ K_LL 1 / m²). It rises as the sum of
K_LL falls: 1ᵀK_LL1 = ‖Σ_L φ‖², so we look for the subset whose mean is closest to the origin. For
an indefinite K, that sum can be negative and has no logarithm; then φ are the rows of K, whose
products K Kᵀ are psd.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ..compare import Pairs
from ..core.checks import Array, Indices
from ..core.family import Family
from .base import Codes, Rule, Selection, n_sketched, sketch
from .meb import number_of_landmarks


class Entropy(Rule):
    """A subset of fixed size, improved by random swaps while its Rényi entropy rises.

    Parameters
    ----------
    n_landmarks : int or None, default=None
        Number of landmarks; None uses as many as `MEB` would choose.
    n_swaps : int or None, default=None
        Number of swaps to try; None tries 20 per landmark, at least 500.
    sketch : int or None, default=None
        For an indefinite measure, the rows of K are restricted to this many random columns. None
        uses all columns of a precomputed matrix, and 100 columns of other measures.

    Notes
    -----
    Each try costs O(m), and m evaluations of a psd measure. Other measures are evaluated N·sketch
    times in all.

    Examples
    --------
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> from krein.landmarks import Entropy
    >>> X, y = make_checkerboard(300, random_state=0)
    >>> len(IKFD(landmarks=Entropy(20), random_state=0).fit(X, y).landmarks_)
    20
    """

    def __init__(
        self, n_landmarks: int | None = None, n_swaps: int | None = None, sketch: int | None = None
    ) -> None:
        self.n_landmarks = n_landmarks
        self.n_swaps = n_swaps
        self.sketch = sketch

    def select(
        self, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
    ) -> Selection:
        """Choose landmarks; the details contain the `entropy` after every accepted swap."""
        m = number_of_landmarks(self.n_landmarks, pairs, codes, rng)
        tries = max(500, 20 * m) if self.n_swaps is None else self.n_swaps
        subset = rng.choice(len(pairs), size=m, replace=False)
        if m == len(pairs):
            return Selection(np.sort(subset), {"entropy": []})
        candidates = rng.integers(len(pairs), size=tries)
        places = rng.integers(m, size=tries)
        if pairs.psd and pairs.kind == "similarity":
            path = _swap_kernel(pairs, subset, candidates, places)
        else:
            X = sketch(pairs, np.arange(len(pairs)), n_sketched(pairs, self.sketch), rng)
            path = _swap_rows(X, subset, candidates, places)
        return Selection(np.sort(subset), {"entropy": [-np.log(v / m**2) for v in path if v > 0]})


def _swap_kernel(
    pairs: Pairs, subset: Indices, candidates: Indices, places: Indices
) -> list[float]:
    """Improve `subset` in place; return 1ᵀK_LL1 after every accepted swap."""
    K = pairs.block(subset, subset)
    sums = K.sum(axis=1)
    total = float(sums.sum())
    path = [total]
    for new, out in zip(candidates, places, strict=True):
        if new in subset:
            continue
        others = np.arange(len(subset)) != out
        k = pairs.block(np.array([new]), subset)[0]
        own = float(pairs.diagonal(np.array([new]))[0])
        # the sum loses twice the old row and gains twice the new row
        change = -2 * sums[out] + K[out, out] + 2 * k[others].sum() + own
        if change < 0:
            k[out] = own
            sums += np.where(others, k - K[:, out], 0.0)
            sums[out] = k.sum()
            K[out], K[:, out] = k, k
            subset[out] = new
            total += change
            path.append(total)
    return path


def _swap_rows(X: Array, subset: Indices, candidates: Indices, places: Indices) -> list[float]:
    """Do the same for K Kᵀ, from the rows of K: update Σ_L x and compare its length."""
    mean = X[subset].sum(axis=0)
    best = float(mean @ mean)
    path = [best]
    for new, out in zip(candidates, places, strict=True):
        if new in subset:
            continue
        trial = mean - X[subset[out]] + X[new]
        length = float(trial @ trial)
        if length < best:
            mean, best = trial, length
            subset[out] = new
            path.append(best)
    return path
