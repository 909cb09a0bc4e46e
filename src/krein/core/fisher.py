"""Indefinite kernel Fisher discriminant from class moments (paper, sections 2.3 and 5.2).

The Fisher discriminant in pseudo-Euclidean space equals that in the associated Euclidean space
(Haasdonk & Pękalska 2008): in the quotient, Σ_b J and Σ_w J replace Σ_b and Σ_w, and with w' = Jw
the signs cancel. So it is linear discriminant analysis on the coordinates B, and needs only n_c,
Σb and Σbbᵀ.

Classes are Gaussian with one covariance Σ: with A Aᵀ = Σ⁻¹ and whitened means ν_c = (μ_c − μ̄)A,
    log p(c | b) = ν_c·(b − μ̄)A − ½‖ν_c‖² + log π_c + const.
Take two classes with equal priors, no shrinkage, and a scatter of full rank in the coordinates
(r ≤ n − 2). The difference of the two scores is then n − 2 times the paper's αᵀk(x) + b with
α = N⁺(m₊ − m₋) and b = −αᵀ(m₊ + m₋)/2, with the within-class *scatter* N and the means m of
the vectors k(x). If the scatter is singular, as in the dense case, the pseudo-inverse depends on
the coordinates. We use B and the paper uses k(x), so the two differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .checks import Array
from .covariance import Shrinkage, inverse_root
from .moments import ClassMoments
from .within import ChosenCovariance, WithinPath


@dataclass(frozen=True)
class LinearDiscriminant:
    """Scores (b − centre) coef + intercept, one per class (joint, or each against the rest)."""

    centre: Array  # (r,)
    coef: Array  # (r, C)
    intercept: Array  # (C,)
    shrinkage: Array  # (1,) joint, (C,) one against rest

    def scores(self, B: Array) -> Array:
        """Return (n, C) scores from coordinates B (n, r). O(n·r·C)."""
        return (B - self.centre) @ self.coef + self.intercept


def log_priors(weights: Array, priors: Array | None) -> Array:
    """Return log π (C,), from the class weights if no priors are given; −∞ for an absent class."""
    p = np.where(weights > 0, weights if priors is None else priors, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(p / p.sum())


def within_root(moments: ClassMoments, shrinkage: Shrinkage) -> tuple[Array, float]:
    """Return A with A Aᵀ = Σ⁻¹, Σ the shrunk shared covariance, and the shrinkage used. O(r³).

    If no class has any scatter, Σ is the mean total variance times I: an object is then assigned to
    the nearest class mean.
    """
    if isinstance(shrinkage, ChosenCovariance):
        A = WithinPath.of(moments, shrinkage.metric).root(shrinkage.amount)
        return A * np.sqrt(shrinkage.scale), shrinkage.amount
    n = moments.total
    mean = moments.sums.sum(axis=0) / n
    variance = max(float(np.trace(moments.pooled) / n - mean @ mean) / max(len(mean), 1), 0.0)
    freedom = n - (moments.weights > 0).sum()
    return inverse_root(moments.within(), freedom, shrinkage, variance)


def fit_fisher(
    moments: ClassMoments, *, shrinkage: Shrinkage = "oas", priors: Array | None = None
) -> LinearDiscriminant:
    """Return the joint discriminant of all classes. O(r³ + C·r²).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.fisher import fit_fisher
    >>> from krein.core.moments import ClassMoments
    >>> B = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = fit_fisher(ClassMoments.of(B, np.array([0, 0, 1, 1]), 2))
    >>> model.scores(np.array([[0.4], [4.4]])).argmax(axis=1)
    array([0, 1])
    """
    centre = moments.origin + moments.sums.sum(axis=0) / moments.total
    if isinstance(shrinkage, ChosenCovariance):
        path = WithinPath.of(moments, shrinkage.metric)
        means = path.coordinates(moments.means - centre)
        dual = shrinkage.scale * path.at(shrinkage.amount).apply(means)  # (C, s)
        offsets = log_priors(moments.weights, priors) + shrinkage.offsets
        return LinearDiscriminant(
            centre,
            path.back(dual).T,
            offsets - 0.5 * (means * dual).sum(axis=1),
            np.array([shrinkage.amount]),
        )
    A, rho = within_root(moments, shrinkage)
    whitened = (moments.means - centre) @ A  # (C, s)
    intercept = -0.5 * (whitened**2).sum(axis=1) + log_priors(moments.weights, priors)
    return LinearDiscriminant(centre, A @ whitened.T, intercept, np.array([rho]))


def fit_fisher_one_against_rest(
    moments: ClassMoments,
    *,
    shrinkage: Shrinkage | tuple[Shrinkage, ...] = "oas",
    priors: Array | None = None,
) -> LinearDiscriminant:
    """Return one discriminant for each class against the rest, from the same moments. O(C·r³).

    Scores are log-odds of the class against the rest. `shrinkage` may have one entry per class.
    """
    centre = moments.origin + moments.sums.sum(axis=0) / moments.total
    C = len(moments.weights)
    coef, intercept, rho = np.zeros((len(centre), C)), np.full(C, -np.inf), np.ones(C)
    for c in np.flatnonzero(moments.weights > 0).tolist():
        two = None if priors is None else np.array([1 - priors[c], priors[c]])
        own = shrinkage[c] if isinstance(shrinkage, tuple) else shrinkage
        binary = fit_fisher(moments.one_against_rest(c), shrinkage=own, priors=two)
        shift = (centre - binary.centre) @ binary.coef + binary.intercept
        coef[:, c] = binary.coef[:, 1] - binary.coef[:, 0]
        intercept[c] = shift[1] - shift[0]
        rho[c] = binary.shrinkage[0]
    return LinearDiscriminant(centre, coef, intercept, rho)
