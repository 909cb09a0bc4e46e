"""Landmarks with maximum entropy (De Brabanter et al. 2010; the paper's ENT).

The quadratic Rényi entropy of a subset L is −log(1ᵀ K_LL 1 / m²). It rises as the sum of K_LL
falls, so we minimise the sum. For a psd K it is ‖Σ_L φ‖²: we look for the subset whose mean is
closest to the origin. For an indefinite K the sum can be negative. It then has no logarithm, and no
entropy, but it can be minimised in the same way.

A dissimilarity is turned into k(x, y) = −½(d²(x, y) − d̄²(x) − d̄²(y) + d̄²), where means d̄² are taken
over all objects of a matrix, or over a random sample of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ..compare import Pairs
from ..core.calibration import Family
from ..core.shapes import Array, Codes, Indices
from .base import Rule, Selection, n_sketched
from .meb import number_of_landmarks


class Entropy(Rule):
    """A subset of fixed size, improved by random swaps while the sum of its similarities falls.

    This is equivalent to a rising Rényi entropy, which is defined only if the sum is positive.

    Parameters
    ----------
    n_landmarks : int or None, default=None
        Number of landmarks; None uses as many as `MEB` would choose.
    n_swaps : int or None, default=None
        Number of swaps to try; None tries 20 per landmark, at least 500.
    sketch : int or None, default=None
        Number of random objects that a dissimilarity is centred on. None uses all objects of a
        precomputed matrix, and 100 otherwise. Similarities are used as they are.

    Notes
    -----
    Each try costs O(m) time and m evaluations of the measure. Centring a dissimilarity takes
    N·sketch more.

    Examples
    --------
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> from krein.landmarks import Entropy
    >>> X, y = make_checkerboard(300, random_state=0)
    >>> len(IKFD("elm", landmarks=Entropy(20), random_state=0).fit(X, y).landmarks_)
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
        """Choose landmarks; the details contain the sum 1ᵀK_LL1 after every accepted swap (`sums`),
        and the `entropy` if all sums are positive."""
        m = number_of_landmarks(self.n_landmarks, pairs, codes, rng)
        tries = max(500, 20 * m) if self.n_swaps is None else self.n_swaps
        subset = rng.choice(len(pairs), size=m, replace=False)
        if m == len(pairs):
            return Selection(np.sort(subset), {"sums": [], "entropy": []})
        candidates = rng.integers(len(pairs), size=tries)
        places = rng.integers(m, size=tries)
        kernel = _Kernel.of(pairs, n_sketched(pairs, self.sketch), rng)
        path = _swap(kernel, subset, candidates, places)
        details: dict[str, list[float]] = {"sums": path}
        if min(path) > 0:
            details["entropy"] = [float(-np.log(v / m**2)) for v in path]
        return Selection(np.sort(subset), details)


@dataclass(frozen=True)
class _Kernel:
    """Similarities of pairs, computed from dissimilarities if `means` are given."""

    pairs: Pairs
    means: Array | None = None  # (N,), of d² to the objects that similarities are centred on
    grand_mean: float = 0.0

    @classmethod
    def of(cls, pairs: Pairs, size: int | None, rng: Generator) -> _Kernel:
        """Return the kernel; a dissimilarity is centred on `size` random objects."""
        if pairs.kind == "similarity":
            return cls(pairs)
        rows = np.arange(len(pairs))
        few = size is not None and size < len(rows)
        cols = np.sort(rng.choice(rows, size=size, replace=False)) if few else rows
        means = np.square(pairs.block(rows, cols)).mean(axis=1)
        return cls(pairs, means, float(means[cols].mean()))

    def block(self, rows: Indices, cols: Indices) -> Array:
        values = self.pairs.block(rows, cols)
        if self.means is None:
            return values
        shifts = self.means[rows][:, None] + self.means[cols] - self.grand_mean
        return -0.5 * (np.square(values) - shifts)

    def own(self, row: Indices) -> float:
        if self.means is None:
            return float(self.pairs.diagonal(row)[0])
        return float(self.means[row[0]] - 0.5 * self.grand_mean)


def _swap(kernel: _Kernel, subset: Indices, candidates: Indices, places: Indices) -> list[float]:
    """Improve `subset` in place; return 1ᵀK_LL1 after every accepted swap."""
    K = kernel.block(subset, subset)
    sums = K.sum(axis=1)
    total = float(sums.sum())
    path = [total]
    for new, out in zip(candidates, places, strict=True):
        if new in subset:
            continue
        others = np.arange(len(subset)) != out
        k = kernel.block(np.array([new]), subset)[0]
        own = kernel.own(np.array([new]))
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
