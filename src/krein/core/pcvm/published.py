"""PCVM as it was published, dense and with Nyström matrices, kept for the reproduction.

Source: sections 2.4 and 5.1 of the paper. Labels are t ∈ {−1, +1}; weights are w ≥ 0, and the label
is part of the basis function, Φ = K diag(t). Details that the paper leaves open follow the public
code: latent variables start from the labels, and pruning and stopping use 1e-3; its E-step before
the first cycle is left out. For more than two classes the paper describes one model for each class
against the rest; the public code has an extension with one for each pair of classes. Both are here.
The kernel is scaled to a mean diagonal of 1, which gives 1e-3 a meaning.

Its known weaknesses are kept here; `mode` does not share them. The M-step ignores the bounds and
sets negative weights to zero, so the posterior may fall. Results depend on the random start. The
second Nyström step, of Υ = I + (low rank), has a rank of 1 % of the weights and so cannot contain
the identity; `exact=True` inverts Υ exactly instead, at a cost that is linear in N too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, pinvh, qr

from ..shapes import Array, Indices
from ..space import gram_root
from .mode import hazard

MAX_CYCLES = 500
THRESHOLD = 1e-3
"""A weight below this is pruned; a cycle that changes no weight by more than this ends the run."""

FEW_WEIGHTS = 100
"""With fewer weights than this, the original update is used."""

MAX_STEP_LANDMARKS = 500
"""Maximum number of landmarks for Υ, which is otherwise 1 % of the number of weights."""

DIVERGED = 1e100
"""A run whose weights or bias exceed this has diverged; their squares would soon overflow."""


@dataclass(frozen=True)
class PublishedFit:
    """Signed weights of all N basis objects (zero where pruned), bias, and how the run ended."""

    weights: Array  # (N,)
    bias: float
    kept: Indices
    n_iter: int
    converged: bool
    reason: str


def _solve(A: Array, x: Array) -> Array:
    """Return (AᵀA + I)⁻¹ x by Cholesky. O(N n² + n³) for A (N, n)."""
    Upsilon = A.T @ A
    Upsilon[np.diag_indices_from(Upsilon)] += 1.0
    try:
        return np.asarray(cho_solve(cho_factor(Upsilon), x))
    except np.linalg.LinAlgError:
        # if weights diverge, the identity is lost in the rounding of AᵀA; still Υ ≥ I
        lam, U = eigh(Upsilon)
        return np.asarray(U @ ((U.T @ x) / np.maximum(lam, 1.0)))


def _original_update(Phi: Array, m: Array, v: Array) -> Array:
    """Return M (M ΦᵀΦ M + I)⁻¹ M v. O(N n² + n³) for n weights."""
    return m * _solve(Phi * m, m * v)


class _Dense:
    """Products with a kernel matrix, restricted to the basis objects not yet pruned."""

    def __init__(self, K: Array) -> None:
        self.K = K  # (N, N)

    def scores(self, kept: Indices, v: Array) -> Array:
        """Return K̂ v, (N,)."""
        return self.K[:, kept] @ v

    def weights(
        self, kept: Indices, m: Array, t: Array, h: Array, rng: np.random.Generator
    ) -> Array:
        """Return M Υ⁻¹ M Φ̂ᵀ h, Υ = M Φ̂ᵀΦ̂ M + I, Φ̂ = K̂ diag(t)."""
        Phi = self.K[:, kept]
        return _original_update(Phi * t, m, t * (Phi.T @ h))


class _LowRank:
    """The same products with a Nyström matrix K̃ = K1 K2."""

    def __init__(self, K1: Array, W: Array) -> None:
        self.K1 = K1  # (N, m)
        self.K2 = pinvh(W) @ K1.T  # (m, N)
        self.inner = self.K2 @ K1  # (m, m): K̃ᵀK̃ = K1 (K2 K1) K2

    def scores(self, kept: Indices, v: Array) -> Array:
        """Return K̂ v, (N,)."""
        return self.K1 @ (self.K2[:, kept] @ v)

    def weights(
        self, kept: Indices, m: Array, t: Array, h: Array, rng: np.random.Generator
    ) -> Array:
        """Return M Υ̃⁺ M Φ̂ᵀ h, where Υ̃ is the Nyström approximation of Υ for many weights."""
        n, v = len(kept), t * ((h @ self.K1) @ self.K2[:, kept])
        if n < FEW_WEIGHTS:
            return _original_update(self.K1 @ self.K2[:, kept] * t, m, v)
        # Υ̃ = C W⁺ Cᵀ on m* of the weights:
        # C = E + (K̂1 (K2 (K1 K̂2_[m*])) ∘ t tᵀ_[m*]) ∘ √2w ∘ √2wᵀ_[m*]
        chosen = np.sort(rng.choice(n, min(-(-n // 100), MAX_STEP_LANDMARKS), replace=False))
        C = self.K1[kept] @ (self.inner @ self.K2[:, kept[chosen]])
        C *= np.outer(m * t, (m * t)[chosen])
        C[chosen, np.arange(len(chosen))] += 1.0
        # C = UR, so the pseudo-inverse of Υ̃ is U (R W⁺ Rᵀ)⁺ Uᵀ
        U, R = qr(C, mode="economic")
        core = pinvh(R @ pinvh(C[chosen]) @ R.T)
        return m * (U @ (core @ (U.T @ (m * v))))


class _Exact(_LowRank):
    """A Nyström matrix, with the exact inverse of Υ from matrices of m×m.

    With K1 = Q R and QᵀQ = I, K̃ = Q Pᵀ for P = K1 W⁺ Rᵀ. Hence M Φ̂ᵀ = Z Qᵀ with Z = diag(m t) P̂,
    Υ = Z Zᵀ + I, and Woodbury's identity, in the form (Z Zᵀ + I)⁻¹ Z = Z (ZᵀZ + I)⁻¹, gives

    M Υ⁻¹ M Φ̂ᵀ h = M Z (ZᵀZ + I)⁻¹ Qᵀ h,    O(n m² + m³) for n weights.
    """

    def __init__(self, K1: Array, W: Array) -> None:
        super().__init__(K1, W)
        R, self.inverse = gram_root(K1.T @ K1)  # Q = K1 R⁺
        self.P = self.K2.T @ R.T  # (N, s)

    def weights(
        self, kept: Indices, m: Array, t: Array, h: Array, rng: np.random.Generator
    ) -> Array:
        """Return M Υ⁻¹ M Φ̂ᵀ h."""
        Z = (m * t)[:, None] * self.P[kept]
        return m * (Z @ _solve(Z, (h @ self.K1) @ self.inverse))


def fit_published(K: Array, t: Array, rng: np.random.Generator) -> PublishedFit:
    """Return PCVM on a full kernel matrix K (N, N). O(N³) per cycle."""
    return _run(_Dense(K), np.asarray(t, dtype=np.float64), rng)


def fit_published_nystrom(
    K1: Array, W: Array, t: Array, rng: np.random.Generator, *, exact: bool = False
) -> PublishedFit:
    """Return Ny-PCVM on landmark columns K1 (N, m) and W (m, m).

    Υ is approximated on m* = N/100 of the weights, at most 500, in O(N (m + m*) m*) per cycle; or
    inverted exactly, in O(N m²).
    """
    kernel = _Exact(K1, W) if exact else _LowRank(K1, W)
    return _run(kernel, np.asarray(t, dtype=np.float64), rng)


@dataclass(frozen=True)
class PublishedModels:
    """One model for each pair of classes c < d, whose positive scores favour d; or one for each
    class against the rest (with two classes, only one: the second against the first)."""

    weights: Array  # (N, models), on the objects' similarities
    bias: Array  # (models,)
    fits: tuple[PublishedFit, ...]


def fit_published_models(
    K1: Array,
    W: Array | None,
    codes: Indices,
    n_classes: int,
    rng: np.random.Generator,
    *,
    one_against_rest: bool = False,
    exact: bool = False,
) -> PublishedModels:
    """Return the published PCVM for every pair of classes, each fitted to their objects only.

    With `one_against_rest`, return one for every class, each fitted to all objects. With `exact`,
    Υ is inverted exactly.

    Parameters
    ----------
    K1 : array (N, N) or (N, m)
        Similarities to all objects, or to the landmarks.
    W : array (m, m) or None
        Similarities between the landmarks; None if K1 is the whole matrix.
    codes : array (N,)
        Classes of the objects.
    n_classes : int
    rng : Generator
        Source of the random start.
    one_against_rest, exact : bool, default=False

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.calibration import pair_log_shares
    >>> from krein.core.pcvm.published import fit_published_models
    >>> X, y = np.array([0.0, 0.1, 1.0, 1.1, 2.0, 2.1]), np.array([0, 0, 1, 1, 2, 2])
    >>> K = np.exp(-9 * (X[:, None] - X) ** 2)
    >>> found = fit_published_models(K, None, y, 3, np.random.default_rng(0))
    >>> pair_log_shares(K @ found.weights + found.bias).argmax(axis=1)
    array([0, 0, 1, 1, 2, 2])
    """
    unit = float(np.abs(np.diag(K1 if W is None else W)).mean()) or 1.0
    if one_against_rest and n_classes > 2:
        problems = [(np.arange(len(codes)), codes == c) for c in range(n_classes)]
    else:
        pairs = combinations(range(n_classes), 2)
        problems = [(np.flatnonzero((codes == c) | (codes == d)), codes == d) for c, d in pairs]
    fits, columns = [], []
    for rows, positive in problems:
        t = np.where(positive[rows], 1.0, -1.0)
        if W is None:
            fit = fit_published(K1[np.ix_(rows, rows)] / unit, t, rng)
        else:
            fit = fit_published_nystrom(K1[rows] / unit, W / unit, t, rng, exact=exact)
        column = np.zeros(len(codes))
        column[rows] = fit.weights / unit
        fits.append(fit)
        columns.append(column)
    bias = np.array([fit.bias for fit in fits])
    return PublishedModels(np.column_stack(columns), bias, tuple(fits))


def _run(kernel: _Dense | _LowRank, t: Array, rng: np.random.Generator) -> PublishedFit:
    N = len(t)
    kept = np.arange(N)
    # start as the public code does: the latent variables use the labels, and the weights
    # only enter the prior
    w = rng.random(N) + 0.2
    b = float(rng.standard_normal())
    H = 10 * rng.random(N) * t + rng.random(N)
    converged, reason = False, f"no convergence in {MAX_CYCLES} cycles"
    for n_iter in range(1, MAX_CYCLES + 1):
        th = t[kept]
        # M-step: w = M Υ⁻¹ M (ΦᵀH̄ − b Φᵀ1), M = diag(√2 w)
        w_new = kernel.weights(kept, np.sqrt(2) * w, th, H - b, rng)
        # b = t(1 + tNt)⁻¹t (1ᵀH̄ − 1ᵀΦw), t = √2 |b|
        tt = 2 * b**2
        rest = float(np.sum(H - kernel.scores(kept, th * w_new)))
        b = tt / (1 + tt * N) * rest
        if not (np.abs(w_new).max() < DIVERGED and abs(b) < DIVERGED):  # also catches nan
            reason = "the weights diverged"
            kept, w, b = kept[:0], w[:0], 0.0
            break
        change = float(np.abs(w_new - w).max())
        stay = w_new > THRESHOLD
        kept, w = kept[stay], w_new[stay]
        if len(kept) == 0:
            reason = "every weight was pruned"
            break
        if n_iter > 1 and change < THRESHOLD:
            converged, reason = True, f"no weight changed by more than {THRESHOLD}"
            break
        # E-step: H̄ = z + t φ(z)/Ψ(tz)
        z = kernel.scores(kept, t[kept] * w) + b
        H = z + t * hazard(t * z)
    weights = np.zeros(N)
    weights[kept] = t[kept] * w
    return PublishedFit(weights, b, kept, n_iter, converged, reason)


LEVEL = 30.0
"""If the common level of the similarities exceeds their differences by this factor, the published
algorithm hardly separates the classes: on protein + 100 (a factor of 87), the accuracy of its
dense form falls from 98.6 to 46.5 % (`paper/tried.py`)."""


def level_of(W: Array) -> float:
    """Return the common level of similarities W (m, m), in units of their largest difference.

    The published algorithm cannot remove a constant from the similarities: all basis functions are
    then nearly the same, and its prior lets only some of them survive.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.published import level_of
    >>> level_of(np.eye(2)), level_of(np.eye(2) + 1e6)
    (1.0, 2000001.0)
    """
    rows = W.mean(axis=1)
    rest = W - rows[:, None] - W.mean(axis=0) + rows.mean()
    differences = float(np.abs(rest).max(initial=0.0))
    return abs(float(W.mean())) / differences if differences > 0 else 0.0
