"""Fewer basis functions at the same quality: backward elimination around the posterior mode.

The prior is flat at zero, so only the sign constraint makes weights vanish, and many of those that
remain contribute next to nothing. Around the mode the loss is ½ xᵀHx. Removing basis function j and
moving the others to their new optimum costs x_j² / (2 [H⁻¹]_jj) (optimal brain surgeon, Hassibi &
Stork 1993). It is removed if that is below the price of its weights (half a unit each; one in
Akaike's criterion), and if the leave-one-out loss stays within one standard error of the full
model's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .covariance import inverse_root, off_bound, prior_curvature
from .laplace import Candidate, compare
from .mode import PCVMFit, fit_pcvm
from .prior import Prior
from .rows import Rows

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

PRICE = 0.5
"""The log-likelihood that a weight must be worth to be kept."""


@dataclass(frozen=True)
class Pruned:
    """The sparse model, and how it was found.

    `path` contains for each round the number of basis functions, the leave-one-out loss minus the
    full model's, and the standard error of this difference, both summed over the rows.
    """

    fit: PCVMFit
    path: tuple[tuple[int, float, float], ...]


@dataclass(frozen=True)
class Kept:
    """The scaled weights of kept basis functions, and their covariance, one score at a time."""

    kept: NDArray[np.intp]
    x: Array  # (C, k)
    covariance: Array  # (C, k, k), zero for weights on their bound

    @classmethod
    def of(cls, model: Candidate) -> Kept:
        """Return the kept weights of a model. Solves C systems of size k.

        The curvature of the prior is EM's α, that of the Gaussian that touches it: a weight has to
        move all the way to zero, but the second derivative is valid only for small moves.
        """
        fit = model.fit
        kept = fit.kept
        x = fit.scaled[kept].T
        C, k = x.shape
        covariance = np.zeros((C, k, k))
        for c, H in enumerate(model.curvature.each):
            T = off_bound(fit, model.Q, c)
            G = T.T @ H @ T
            on = np.flatnonzero(x[c])
            root = inverse_root(G, prior_curvature(fit, c, secant=True))
            assert root is not None
            covariance[c][np.ix_(on, on)] = (root @ root.T)[:-1, :-1]
        return cls(kept, x, covariance)


def _order(around: Kept) -> list[int]:
    """Return what to remove, in order, while each costs less than its price. O(C k²) each."""
    x, S = around.x.copy(), around.covariance.copy()
    left = np.ones(x.shape[1], dtype=bool)
    out: list[int] = []
    while left.sum() > 1:
        d = np.maximum(np.einsum("cjj->cj", S), 0.0)
        on = d > 0
        cost = np.sum(np.divide(x**2, 2 * d, out=np.zeros_like(x), where=on), axis=0)
        net = np.where(left, cost - PRICE * on.sum(axis=0), np.inf)
        j = int(np.argmin(net))
        if net[j] > 0:
            break
        out.append(j)
        left[j] = False
        for c in np.flatnonzero(on[:, j]):
            # condition the Gaussian on x_j = 0
            s = S[c, :, j] / S[c, j, j]
            x[c] -= s * x[c, j]
            S[c] -= np.outer(s, S[c, j])
            S[c, j, :] = S[c, :, j] = x[c, j] = 0.0
    return out


def prune_pcvm(
    rows: Rows,
    basis_classes: Labels,
    Q: Array | None,
    fit: PCVMFit,
    *,
    prior: Prior,
    tol: float | None = None,
) -> Pruned:
    """Return a model with fewer basis functions whose leave-one-out loss is not clearly worse.

    A round removes basis functions whose price exceeds their cost in the quadratic model, at most
    half of them, and refits from there. If the loss rises too far, the round is undone, and from
    then on each round goes halfway to the number that was too small. Hence there are O(log r)
    rounds, however many rows there are, each with a warm-started fit and two passes of O(N r² C),
    or O(N r² C²) with joint covariances of the scores.
    """
    full = Candidate.of(rows, fit, Q)
    around, path = Kept.of(full), [(len(fit.kept), 0.0, 0.0)]
    too_few = 0
    while order := _order(around)[: max(0, len(fit.kept) - too_few) // 2]:
        allowed = np.zeros(len(fit.weights), dtype=bool)
        allowed[fit.kept] = True
        allowed[around.kept[order]] = False
        trial = fit_pcvm(
            rows, basis_classes, Q, link=fit.link, prior=prior, allowed=allowed,
            start=(fit.weights, fit.bias), tol=tol,
        )  # fmt: skip
        candidate = Candidate.of(rows, trial, Q)
        more, error = compare(rows, full, candidate)
        if more <= error:
            fit, around = trial, Kept.of(candidate)
            path.append((len(fit.kept), more, error))
        else:
            too_few = int(allowed.sum())
    return Pruned(fit, tuple(path))
