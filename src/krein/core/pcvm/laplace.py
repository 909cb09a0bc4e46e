"""The surroundings of PCVM's posterior mode: leave-one-out loss, and the scale of the prior.

Around the mode the posterior of the weights is taken as Gaussian, one score at a time (for two
classes exactly Laplace's approximation), on the weights that are off their bounds. A row's score
then has variance h = (f, 1) B (f, 1)ᵀ, and the model without that row differs, to first order, by
h g/(1 − h d) in its score: leave-one-out loss for the price of one pass (Opper & Winther 2000;
Rahnama Rad & Maleki 2020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, qr, solve_triangular

from .mode import PCVMFit, fit_pcvm
from .prior import GammaPrior
from .rows import Block, Link, Rows, class_hessian, column_statistics

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

SCALE_ROWS = 20_000
"""The scale of the prior is chosen on about this many rows: enough to tell tenfold steps apart."""

SCALE_TOLERANCE = 1e-5
"""Of the fits that choose the scale, per row."""

MAX_FACTOR = 4
"""The scale is sought up to this many tenfold steps from the half-Cauchy prior, either way."""


@dataclass(frozen=True)
class LaplaceApproximation:
    """A Gaussian a score: over the kept scaled weights, and over features with a one."""

    kept: NDArray[np.intp]
    x: Array  # (C, k)
    covariance: Array  # (C, k, k), zero for weights on their bound
    roots: tuple[Array, ...]  # C of (r+1, ·): variance of a score is ‖(f, 1) root‖²

    def variance(self, F: Array) -> Array:
        """Return the variance of each score of each row. O(n r k C)."""
        found = [np.square(F @ R[:-1] + R[-1]).sum(axis=1) for R in self.roots]
        return np.column_stack(found)


def laplace_approximation(rows: Rows, fit: PCVMFit, Q: Array | None = None) -> LaplaceApproximation:
    """Return the Gaussian around a mode. C passes of O(N r²), and C systems of size k."""
    mean = column_statistics(rows, full=False).mean
    kept = fit.kept
    x = fit.scaled[kept].T
    C, k = x.shape
    covariance = np.zeros((C, k, k))
    roots = []
    for c in range(C):
        inverse, root = _root(rows, fit, Q, mean, c)
        on = np.flatnonzero(x[c])
        covariance[c][np.ix_(on, on)] = (inverse @ inverse.T)[:-1, :-1]
        roots.append(root)
    return LaplaceApproximation(kept, x, covariance, tuple(roots))


def score_variances(rows: Rows, fit: PCVMFit) -> Array:
    """Return the variance of each score of each row (n, C), in memory of one score's curvature."""
    mean = column_statistics(rows, full=False).mean
    found = []
    for c in range(fit.weights.shape[1]):
        root = _root(rows, fit, None, mean, c)[1]
        parts = [np.square(block.F @ root[:-1] + root[-1]).sum(axis=1) for block in rows]
        found.append(np.concatenate(parts))
    return np.column_stack(found)


def _root(rows: Rows, fit: PCVMFit, Q: Array | None, mean: Array, c: int) -> tuple[Array, Array]:
    """Return square roots of the covariance of score c, of scaled weights and bias (n+1, n+1) and
    of features with a one (r+1, ·).
    """
    V = fit.weights if Q is None else Q @ fit.weights
    H = class_hessian(rows, fit.link, V, fit.bias, c)
    r = len(H) - 1
    on = np.flatnonzero(fit.scaled[:, c])
    n = len(on)
    # T maps (x, bias of centred features) to (V, b)
    unit = fit.weights[on, c] / fit.scaled[on, c]  # 1 / deviation
    T = np.zeros((r + 1, n + 1))
    T[:-1, :-1] = (np.eye(r)[:, on] if Q is None else Q[:, on]) * unit
    T[-1, :-1] = -mean @ T[:-1, :-1]
    T[-1, -1] = 1.0
    G = T.T @ H @ T
    # EM's α and not the prior's curvature, which is negative for large weights: measured against
    # ten folds the loss with α is close, with the curvature far off
    G[np.arange(n), np.arange(n)] += fit.precision[on, c]
    G[np.diag_indices_from(G)] += 1e-10 * np.diag(G) + np.finfo(float).tiny
    inverse = solve_triangular(cholesky(G), np.eye(n + 1))
    root = T @ inverse
    return inverse, root if n <= r else qr(root.T, mode="r")[0][: r + 1].T


@dataclass(frozen=True)
class Candidate:
    """A model whose leave-one-out loss can be asked for."""

    V: Array
    b: Array
    laplace: LaplaceApproximation
    link: Link

    @classmethod
    def of(cls, rows: Rows, fit: PCVMFit, Q: Array | None = None) -> Candidate:
        """Return the candidate of a fit."""
        V = fit.weights if Q is None else Q @ fit.weights
        return cls(V, fit.bias, laplace_approximation(rows, fit, Q), fit.link)

    def losses(self, block: Block) -> Array:
        """Return the leave-one-out loss of each row of a block."""
        Z = block.F @ self.V + self.b
        left = self.link.left_out(Z, self.laplace.variance(block.F), block.y, block.s)
        return self.link.losses(left, block.y)


def leave_one_out(rows: Rows, one: Candidate) -> float:
    """Return the mean leave-one-out loss a row. One pass of O(N r k C)."""

    def term(block: Block) -> tuple[Array, ...]:
        s = block.s * np.ones(len(block.y))
        return s @ one.losses(block), s.sum()

    loss, total = rows.total(term)
    return float(loss / total)


def compare(rows: Rows, one: Candidate, other: Candidate) -> tuple[float, float]:
    """Return by how much `other` loses more than `one`, summed over the rows, and its error."""

    def term(block: Block) -> tuple[Array, ...]:
        s = block.s * np.ones(len(block.y))
        d = other.losses(block) - one.losses(block)
        return s @ d, s @ d**2, s.sum()

    first, second, total = (float(v) for v in rows.total(term))
    return first, float(np.sqrt(max(second - first**2 / total, 0.0)))


@dataclass(frozen=True)
class ScaleChoice:
    """The prior, the fit on the rows that chose it, and (2b, leave-one-out loss) on the way."""

    prior: GammaPrior
    fit: PCVMFit
    path: tuple[tuple[float, float], ...]


def choose_scale(
    rows: Rows,
    basis_classes: Labels,
    Q: Array | None = None,
) -> ScaleChoice:
    """Return the scale of the prior, by tenfold steps of b, with the least leave-one-out loss.

    For two classes: with many scores, taken one at a time, the loss left-one-out is too coarse
    to compare priors, though not to compare models under one prior.

    The weights' size is not the user's to know: ten for an easy problem with few landmarks, a
    tenth for a hundred objects with as many basis functions. Some three to five fits, each from
    the one before, on at most about SCALE_ROWS rows.
    """
    rows = rows.thinned(SCALE_ROWS)

    def attempt(k: int, start: PCVMFit | None) -> tuple[PCVMFit, Candidate]:
        fit = fit_pcvm(
            rows,
            basis_classes,
            Q,
            tol=SCALE_TOLERANCE,
            prior=GammaPrior(0.5, 0.5 * 10.0**k),
            start=None if start is None else (start.weights, start.bias),
        )
        return fit, Candidate.of(rows, fit, Q)

    best, (fit, candidate) = 0, attempt(0, None)
    path = [(1.0, leave_one_out(rows, candidate))]
    for direction in (1, -1):
        k, last = best, fit
        while abs(k) < MAX_FACTOR:
            k += direction
            last, trial = attempt(k, last)
            more, error = compare(rows, candidate, trial)
            path.append((10.0**k, leave_one_out(rows, trial)))
            # a weaker prior must be better by a standard error, a stronger one better
            if more > (-error if direction > 0 else 0.0):
                break
            best, fit, candidate = k, last, trial
        if best > 0:
            break
    return ScaleChoice(GammaPrior(0.5, 0.5 * 10.0**best), fit, tuple(path))
