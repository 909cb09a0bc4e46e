"""Eigenvalues of an indefinite matrix: signature, negative mass and corrections.

Sources: sections 2.2 and 2.3 of the paper; Chen et al. 2009, *Similarity-based
classification*, for the corrections and their maps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from .checks import Array, Indices

RANK_TOLERANCE = 1e-10
"""|λ| up to this share of the largest |λ| counts as zero."""


class Signature(NamedTuple):
    """Number of positive, negative and vanishing eigenvalues."""

    positive: int
    negative: int
    zero: int


def signature(lam: Array, tol: float = RANK_TOLERANCE) -> Signature:
    """Return (p, q, z) of eigenvalues `lam`; |λ| ≤ tol·max|λ| counts as zero. O(n).

    >>> signature(np.array([2.0, -1.0, 0.0, 1e-14]))
    Signature(positive=1, negative=1, zero=2)
    """
    limit = tol * np.abs(lam).max(initial=0.0)
    p, q = int((lam > limit).sum()), int((lam < -limit).sum())
    return Signature(p, q, len(lam) - p - q)


def negative_mass(lam: Array) -> float:
    """Return the share of Σ|λ| that lies below zero: 0 for psd, ½ for ± pairs. O(n).

    >>> negative_mass(np.array([3.0, -1.0]))
    0.25
    """
    total = np.abs(lam).sum()
    return float(abs(lam[lam < 0].sum()) / total) if total > 0 else 0.0


@dataclass(frozen=True)
class SpectrumEstimate:
    """Eigenvalues, signature and negative mass of a principal submatrix, or of the whole matrix."""

    signature: Signature
    negative_mass: float
    n_sampled: int
    n: int
    eigenvalues: Array  # (n_sampled,), ascending

    @property
    def exact(self) -> bool:
        """Whether the submatrix was the whole matrix."""
        return self.n_sampled == self.n


def estimate_spectrum(
    block: Callable[[Indices, Indices], Array],
    n: int,
    *,
    size: int = 500,
    rng: np.random.Generator,
    tol: float = RANK_TOLERANCE,
) -> SpectrumEstimate:
    """Estimate signature and negative mass of an n×n matrix from a random submatrix.

    `block(rows, cols)` returns entries. Costs size² entries and O(size³). The eigenvalues of
    a principal submatrix interlace those of the matrix (Cauchy), so the p and q returned are
    lower bounds: one negative eigenvalue in the sample proves that the matrix is not psd. The
    negative mass is an estimate without a bound.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.spectrum import estimate_spectrum
    >>> rng = np.random.default_rng(0)
    >>> K = np.diag([3.0, -1.0])
    >>> found = estimate_spectrum(lambda rows, cols: K[np.ix_(rows, cols)], 2, rng=rng)
    >>> found.signature, found.negative_mass
    (Signature(positive=1, negative=1, zero=0), 0.25)
    """
    chosen = np.sort(rng.choice(n, size=min(size, n), replace=False))
    S = block(chosen, chosen)
    lam: Array = np.linalg.eigvalsh((S + S.T) / 2)  # type: ignore[assignment]
    return SpectrumEstimate(signature(lam, tol), negative_mass(lam), len(chosen), n, lam)


Correction = Literal["clip", "flip", "shift", "square"]


@dataclass(frozen=True)
class CorrectedMatrix:
    """A psd correction of an indefinite matrix, and the map that corrects new objects.

    `matrix` is the corrected training matrix; `map_new(k)` corrects the similarities k
    (n, N) of new objects to the training objects: k @ P with one P for all.
    """

    matrix: Array  # (N, N)
    P: Array  # (N, N)

    def map_new(self, k: Array) -> Array:
        """Return the corrected similarities of new objects. O(n·N²)."""
        return k @ self.P


def correct(K: Array, how: Correction, tol: float = RANK_TOLERANCE) -> CorrectedMatrix:
    """Make a symmetric matrix psd: K' = U f(Λ) Uᵀ. O(N³) time, O(N²) memory.

    clip f = max(λ, 0), flip f = |λ|, square f = λ², shift f = λ − min(λ_min, 0).
    The map for new objects is the linear one that takes the training rows to their corrected
    rows, P = U (f(Λ)/Λ) Uᵀ over the non-zero eigenvalues; k @ P extends it to any object.
    A shift also lifts the zero eigenvalues, along which no training row has a component. Only there
    do K @ P and K' differ.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.spectrum import correct
    >>> correct(np.diag([3.0, -1.0]), "clip").matrix
    array([[3., 0.],
           [0., 0.]])
    """
    lam, U = np.linalg.eigh(K)
    nonzero = np.abs(lam) > tol * np.abs(lam).max(initial=0.0)
    corrected = {
        "clip": lambda: np.maximum(lam, 0.0),
        "flip": lambda: np.abs(lam),
        "square": lambda: lam**2,
        "shift": lambda: lam - min(lam[0], 0.0),
    }
    if how not in corrected:
        raise ValueError(f"unknown correction {how!r}; choose one of {', '.join(corrected)}")
    f = corrected[how]()
    ratio = np.divide(f, lam, out=np.zeros_like(lam), where=nonzero)
    return CorrectedMatrix(matrix=(U * f) @ U.T, P=(U * ratio) @ U.T)
