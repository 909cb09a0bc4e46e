"""The covariance of a row's scores around PCVM's posterior mode.

It is the inverse curvature of the objective in the weights off their bounds: the Hessian of the
likelihood with all blocks between classes, plus the second derivative of the prior. The latter is
negative for large weights, where the prior is concave. Using EM's α instead, the curvature of the
Gaussian that touches the prior, would constrain the weights too strongly and find only 0.6 to 0.9
of the optimism seen in refits (`tests/core/test_pcvm_left_out.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cholesky, eigh, qr, solve_triangular

from .cavity import HIGH_LEVERAGE, without_row, without_row_each
from .mode import PCVMFit
from .rows import Block, Link, Rows, class_hessian, hessian

Array = NDArray[np.float64]

JOINT_LIMIT = 1200
"""Up to this many weights (features times classes) the joint covariance of the scores is used. Its
matrix has one row per weight, and costs their square in additions per row of data. Beyond that,
scores are treated as independent."""

_JITTER = 1e-10
"""Share of the diagonal added to a curvature, which is singular: adding a constant to all scores
changes nothing."""


@dataclass(frozen=True)
class JointCovariance:
    """Covariance B of (weights, bias) of all scores; that of a row's scores is (f, 1) B (f, 1)ᵀ."""

    B: Array  # (C, r+1, C, r+1)

    def of(self, F: Array) -> Array:
        """Return V (n, C, C). O(n r² C²)."""
        C = len(self.B)
        F1 = np.column_stack([F, np.ones(len(F))])
        V = np.empty((len(F), C, C))
        for c in range(C):
            for d in range(c + 1):
                V[:, c, d] = V[:, d, c] = np.einsum("nr,nr->n", F1 @ self.B[c, :, d], F1)
        return V

    def without(self, Z: Array, block: Block, link: Link) -> tuple[Array, Array]:
        """Return each row's scores by the model without it, and its leverage."""
        own = block.s / block.drawn
        G = link.loss_residual(Z, block.y, own)[1]
        R = link.curvature_root(Z, block.y, own)
        left, _, leverage = without_row(Z, self.of(block.F), G, R)
        return left, leverage


@dataclass(frozen=True)
class SeparateCovariances:
    """Variances of one score at a time: exact for one score, an approximation for more."""

    roots: tuple[Array, ...]  # C arrays (r+1, ·): the variance of a score is ‖(f, 1) root‖²

    def of(self, F: Array) -> Array:
        """Return the variance of each score (n, C). O(n r² C)."""
        found = [np.square(F @ R[:-1] + R[-1]).sum(axis=1) for R in self.roots]
        return np.column_stack(found)

    def without(self, Z: Array, block: Block, link: Link) -> tuple[Array, Array]:
        """Return each row's scores by the model without it, and its leverage."""
        own = block.s / block.drawn
        G = link.loss_residual(Z, block.y, own)[1]
        return without_row_each(Z, self.of(block.F), G, link.curvatures(Z, block.y, own))


@dataclass(frozen=True)
class ScoreCovariance:
    """The covariance with the prior's second derivative, and with its secant to zero."""

    exact: JointCovariance | SeparateCovariances
    secant: JointCovariance | SeparateCovariances

    def left_out(self, Z: Array, block: Block, link: Link) -> Array:
        """Return each row's scores by the model without it."""
        left, leverage = self.exact.without(Z, block, link)
        high = np.flatnonzero(leverage > HIGH_LEVERAGE)
        if len(high):
            left[high] = self.secant.without(Z[high], block.part(high), link)[0]
        return left


@dataclass(frozen=True)
class LossCurvature:
    """Second derivative of the loss at a fit, with respect to the feature weights and the bias."""

    joint: Array | None  # (C, r+1, C, r+1); None if scores are treated one at a time
    each: tuple[Array, ...]  # C arrays (r+1, r+1): its diagonal blocks

    @classmethod
    def of(
        cls, rows: Rows, fit: PCVMFit, Q: Array | None = None, *, limit: int = JOINT_LIMIT
    ) -> LossCurvature:
        """Make one pass of O(N (r C)²) up to `limit` weights, otherwise C passes of O(N r²)."""
        C, width = fit.weights.shape[1], rows.shape[1] + 1
        V = fit.weights if Q is None else Q @ fit.weights
        if C == 1 or C * width > limit:
            each = (class_hessian(rows, fit.link, V, fit.bias, c) for c in range(C))
            return cls(None, tuple(each))
        H = hessian(rows, fit.link, V, fit.bias).reshape(C, width, C, width)
        return cls(H, tuple(H[c, :, c] for c in range(C)))


def score_covariance(
    curvature: LossCurvature, fit: PCVMFit, Q: Array | None = None
) -> ScoreCovariance:
    """Return the covariance of the scores: joint if the curvature is, else one score at a time.

    Solves a system with one unknown per weight off its bound, or C smaller ones, each twice.
    """
    C, width = len(curvature.each), len(curvature.each[0])
    if curvature.joint is None:
        roots = []
        for c, H in enumerate(curvature.each):
            T = off_bound(fit, Q, c)
            G = T.T @ H @ T
            priors = (prior_curvature(fit, c, secant=secant) for secant in (False, True))
            found = [T @ root for root in inverse_roots(G, *priors)]
            roots.append(
                [R if R.shape[1] <= width else qr(R.T, mode="r")[0][:width].T for R in found]
            )
        exact, secant = (SeparateCovariances(tuple(R)) for R in zip(*roots, strict=True))
        return ScoreCovariance(exact, secant)
    T = block_diag(*(off_bound(fit, Q, c, bias=c > 0) for c in range(C)))
    priors = (
        np.concatenate([prior_curvature(fit, c, bias=c > 0, secant=secant) for c in range(C)])
        for secant in (False, True)
    )
    G = T.T @ curvature.joint.reshape(C * width, -1) @ T
    joint = [T @ root for root in inverse_roots(G, *priors)]
    return ScoreCovariance(*(JointCovariance((R @ R.T).reshape(C, width, C, width)) for R in joint))


def off_bound(fit: PCVMFit, Q: Array | None, c: int, *, bias: bool = True) -> Array:
    """Return T (r+1, ·), which maps the unknowns of score c to its feature weights and bias.

    The unknowns are the scaled weights off their bounds and the bias of centred features. One of
    several softmax scores needs no bias: adding a constant to all of them changes nothing.
    """
    mean = fit.feature_mean
    r = len(mean)
    on = np.flatnonzero(fit.scaled[:, c])
    n = len(on)
    unit = fit.weights[on, c] / fit.scaled[on, c]  # 1 / deviation
    T = np.zeros((r + 1, n + bias))
    T[:-1, :n] = (np.eye(r)[:, on] if Q is None else Q[:, on]) * unit
    T[-1, :n] = -mean @ T[:-1, :n]
    T[-1, n:] = 1.0
    return T


def prior_curvature(fit: PCVMFit, c: int, *, bias: bool = True, secant: bool = False) -> Array:
    """Return the prior's second derivative in the unknowns of score c; 0 for the bias.

    Alternatively, return the secant to zero, EM's α: (derivative at u − derivative at 0) / u.
    """
    found = (fit.precision if secant else fit.curvature)[:, c][fit.scaled[:, c] != 0]
    return np.append(found, 0.0) if bias else found


def inverse_roots(G: Array, prior: Array, secant: Array) -> tuple[Array, Array]:
    """Return R with R Rᵀ = (G + diag(prior))⁻¹, for both priors.

    At a mode the first sum is positive semi-definite, but the search may have stopped early.
    """
    firm = inverse_root(G, secant)
    assert firm is not None
    if np.array_equal(prior, secant):
        return firm, firm
    exact = inverse_root(G, prior)
    return firm if exact is None else exact, firm


def inverse_root(G: Array, prior: Array) -> Array | None:
    """Return R with R Rᵀ = (G + diag(prior))⁻¹, or None if the sum is not positive definite."""
    n = len(G)
    A = G.copy()
    A[np.diag_indices(n)] += prior + _JITTER * np.diag(G) + np.finfo(float).tiny
    try:
        return solve_triangular(cholesky(A), np.eye(n))
    except LinAlgError:
        if (prior < 0).any():
            return None
    lam, U = eigh(A)  # semi-definite except for rounding
    return U / np.sqrt(np.maximum(lam, _JITTER * lam[-1]))
