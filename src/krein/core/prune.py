"""Landmarks that a Fisher discriminant does not need: backward elimination on the moments.

In similarity coordinates c = k(x, L) the classes have means M (C, m) and a shared covariance Σ.
What a set of landmarks tells about the classes is Wilks' criterion log|I + Q| with
Q = M̂ Σ⁻¹ M̂ᵀ, M̂_c = √π_c (μ_c − μ̄). Leaving out landmark j takes v vᵀ from Q, where
v = β_j / √P_jj, P = Σ⁻¹ and β = P M̂ᵀ: in closed form, for every j at once, and P and β of what
is left come by a rank-one update. Were j of no use, −n·log(1 − vᵀ(I+Q)⁻¹v) would be χ² with C − 1
degrees of freedom (Rao's test for additional information), so a landmark stays while that exceeds
(C − 1)·log n: the Bayesian information criterion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .checks import Array, Indices
from .covariance import Shrinkage
from .fisher import LinearDiscriminant, within_root
from .moments import ClassMoments
from .space import LandmarkSpace


@dataclass(frozen=True)
class PrunedDiscriminant:
    """Scores similarities(kept) @ dual_coef + intercept."""

    kept: Indices  # (s,): places among the landmarks, ascending
    dual_coef: Array  # (s, C)
    intercept: Array  # (C,)
    criterion: Array  # log|I + Q| before the first landmark was dropped and after each


def prune_landmarks(
    space: LandmarkSpace,
    moments: ClassMoments,
    discriminant: LinearDiscriminant,
    shrinkage: Shrinkage,
    *,
    penalty: float | None = None,
) -> PrunedDiscriminant:
    """Drop landmarks from a joint discriminant while the information criterion allows. O(m³).

    `discriminant` is `fit_fisher(moments, shrinkage=shrinkage)`. A landmark stays while it adds
    more than `penalty` to n·log|I + Q|, by default (C − 1)·log n.
    """
    root = within_root(moments, shrinkage)[0]  # A Aᵀ = Σ⁻¹ in coordinates b
    T_plus = space.basis.to_similarities()  # (r, m): c = b T⁺
    # Σ in similarity coordinates; a ridge at rounding level stands for what W cannot tell apart
    sqrt_covariance = np.linalg.pinv(root) @ T_plus  # (s, m), its Gram matrix is Σ
    covariance = sqrt_covariance.T @ sqrt_covariance
    scale = float(np.trace(covariance)) / len(covariance)
    covariance += 1e-9 * scale * np.eye(len(covariance))
    if space.centre is not None:
        # similarities made of dissimilarities add up to a constant; only contrasts Σβ = 0 can
        # do without the other landmarks, so the direction 1 is made too costly to use
        covariance += 1e6 * scale * np.ones_like(covariance)
    prior = moments.weights / moments.total
    means = (moments.means - discriminant.centre) @ T_plus  # (C, m)
    M = np.sqrt(prior)[:, None] * means
    n, n_classes = moments.total, int((moments.weights > 0).sum())
    limit = ((n_classes - 1) * np.log(n) if penalty is None else penalty) / n
    P = np.linalg.inv(covariance)
    beta = P @ M.T  # (m, C)
    Q = M @ beta
    kept = np.arange(len(P))
    path = [float(np.linalg.slogdet(np.eye(len(Q)) + Q)[1])]
    while len(kept) > 1:
        v = beta / np.sqrt(np.diag(P))[:, None]
        loss = -np.log1p(-_quadratic(v, np.eye(len(Q)) + Q))
        j = int(np.argmin(loss))
        if loss[j] >= limit:
            break
        Q = Q - np.outer(v[j], v[j])
        rest = np.arange(len(kept)) != j
        beta = beta[rest] - np.outer(P[rest, j], beta[j]) / P[j, j]
        P = P[np.ix_(rest, rest)] - np.outer(P[rest, j], P[j, rest]) / P[j, j]
        kept = kept[rest]
        path.append(path[-1] - float(loss[j]))
    # once more from scratch, so that rounding of the updates stays out of the model
    P = np.linalg.inv(covariance[np.ix_(kept, kept)])
    coef = P @ means[:, kept].T
    if space.centre is not None:
        coef -= np.outer(P.sum(axis=1) / P.sum(), coef.sum(axis=0))  # Σβ = 0 to rounding
    with np.errstate(divide="ignore"):
        log_prior = discriminant.intercept + 0.5 * np.einsum(
            "cr,rc->c", moments.means - discriminant.centre, discriminant.coef
        )
    intercept = log_prior - 0.5 * np.einsum("cm,mc->c", means[:, kept], coef)
    intercept = intercept - discriminant.centre @ T_plus[:, kept] @ coef
    return PrunedDiscriminant(kept, coef, intercept + _recentred(space, kept, coef), np.array(path))


def _quadratic(v: Array, Q: Array) -> Array:
    """vᵀ Q⁻¹ v for every row, kept below 1 where rounding would lift it."""
    return np.minimum(np.einsum("ic,ic->i", v, np.linalg.solve(Q, v.T).T), 1 - 1e-12)


def _recentred(space: LandmarkSpace, kept: Indices, coef: Array) -> Array:
    """What the intercept gains when similarities are centred on the kept landmarks alone."""
    if space.centre is None:
        return np.zeros(coef.shape[1])
    restricted = space.restricted(kept).centre
    assert restricted is not None
    return 0.5 * (space.centre.column_means[kept] - restricted.column_means) @ coef
