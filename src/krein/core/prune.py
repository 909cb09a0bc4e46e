"""Backward elimination, on the moments, of landmarks that a Fisher discriminant does not need.

In similarity coordinates c = k(x, L) the classes have means M (C, m) and a shared covariance Σ.
The information of a set of landmarks about the classes is Wilks' criterion log|I + Q| with
Q = M̂ Σ⁻¹ M̂ᵀ, M̂_c = √π_c (μ_c − μ̄). Leaving out landmark j subtracts v vᵀ from Q, where
v = β_j / √P_jj, P = Σ⁻¹ and β = P M̂ᵀ. This is a closed form for all j at once, and a rank-one
update gives P and β of the remaining landmarks. If j were useless and Σ not shrunk,
−n·log(1 − vᵀ(I+Q)⁻¹v) would be χ² with C − 1 degrees of freedom (Rao's test for additional
information). A landmark is kept if this exceeds (C − 1)·log n, the Bayesian information criterion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import null_space, qr, svd

from .checks import Array, Indices
from .covariance import Shrinkage
from .fisher import LinearDiscriminant, within_root
from .left_out import LeftOutObjects, left_out_whitened
from .moments import ClassMoments
from .space import LandmarkSpace
from .within import ChosenCovariance

_FRESH = 20  # landmarks dropped between two inversions from scratch


@dataclass(frozen=True)
class PrunedLandmarks:
    """The landmarks that stay; `discriminant_on` returns the model that uses them alone."""

    kept: Indices  # (s,): positions among the landmarks, ascending
    criterion: Array  # log|I + Q| before the first landmark was dropped, and after each


def prune_landmarks(
    space: LandmarkSpace,
    moments: ClassMoments,
    discriminant: LinearDiscriminant,
    shrinkage: Shrinkage,
    *,
    penalty: float | None = None,
) -> PrunedLandmarks:
    """Drop landmarks from a joint discriminant while the information criterion allows. O(m³).

    `discriminant` is `fit_fisher(moments, shrinkage=shrinkage)`. A landmark stays while it adds
    more than `penalty` to n·log|I + Q|, by default (C − 1)·log n. The scale of a chosen covariance
    calibrates scores and is not part of Σ here.
    """
    plain = replace(shrinkage, scale=1.0) if isinstance(shrinkage, ChosenCovariance) else shrinkage
    S, means = _in_similarities(space, moments, discriminant, plain)
    prior = moments.weights / moments.total
    if not S.any():  # all objects have the same similarities, so one landmark is enough
        return PrunedLandmarks(np.arange(1), np.zeros(1))
    contrasts = space.centre is not None
    M = np.sqrt(prior)[:, None] * means
    n, n_classes = moments.total, int((prior > 0).sum())
    limit = ((n_classes - 1) * np.log(n) if penalty is None else penalty) / n
    kept = _independent(S, contrasts)
    path: list[float] = []
    stale = _FRESH
    while len(kept) > (2 if contrasts else 1):
        if stale >= _FRESH:  # invert afresh before rounding errors accumulate
            P = _inverse(S[:, kept], contrasts)
            beta = P @ M[:, kept].T  # (m, C)
            Q = M[:, kept] @ beta
            path = path or [float(np.linalg.slogdet(np.eye(len(Q)) + Q)[1])]
            stale = 0
        variance = np.maximum(np.diag(P), np.finfo(float).tiny)
        v = beta / np.sqrt(variance)[:, None]
        loss = -np.log1p(-_quadratic(v, np.eye(len(Q)) + Q))
        j = int(np.argmin(loss))
        if not loss[j] < limit:
            break
        Q = Q - np.outer(v[j], v[j])
        rest = np.arange(len(kept)) != j
        beta = beta[rest] - np.outer(P[rest, j], beta[j]) / variance[j]
        P = P[np.ix_(rest, rest)] - np.outer(P[rest, j], P[j, rest]) / variance[j]
        kept = kept[rest]
        path.append(path[-1] - float(loss[j]))
        # a landmark that costs almost nothing to drop has large entries in P: others lose digits
        lost = np.finfo(float).eps * variance[j] > 1e-8 * float(np.median(variance))
        stale = _FRESH if lost else stale + 1
    return PrunedLandmarks(kept, np.array(path))


def discriminant_on(
    kept: Indices,
    space: LandmarkSpace,
    moments: ClassMoments,
    discriminant: LinearDiscriminant,
    shrinkage: Shrinkage,
) -> tuple[Array, Array]:
    """Return weights (s, C) of the similarities to these landmarks alone, and intercepts. O(m³).

    `discriminant` is `fit_fisher(moments, shrinkage=shrinkage)`, with all landmarks.
    """
    S, means = _in_similarities(space, moments, discriminant, shrinkage)
    if not S.any():
        return np.zeros((len(kept), len(means))), discriminant.intercept
    coef = _inverse(S[:, kept], space.centre is not None) @ means[:, kept].T
    with np.errstate(divide="ignore"):
        log_prior = discriminant.intercept + 0.5 * np.einsum(
            "cr,rc->c", moments.means - discriminant.centre, discriminant.coef
        )
    intercept = log_prior - 0.5 * np.einsum("cm,mc->c", means[:, kept], coef)
    centre = discriminant.centre @ space.basis.to_similarities()[:, kept]
    return coef, intercept - centre @ coef + _recentred(space, kept, coef)


def left_out_on(
    kept: Indices,
    space: LandmarkSpace,
    moments: ClassMoments,
    discriminant: LinearDiscriminant,
    shrinkage: Shrinkage,
    objects: LeftOutObjects,
    landmarks: Indices,
) -> Array:
    """Return the left-out −½d² (n, C), from the similarities to these landmarks alone.

    `landmarks` (k,) gives the landmark of each object in `objects.places`. O(n·r·s).
    """
    S, means = _in_similarities(space, moments, discriminant, shrinkage)
    if not S.any():
        return np.zeros((len(objects), len(means)))
    root = _inverse_root(S[:, kept], space.centre is not None)  # (s, q)
    used = np.isin(landmarks, kept)
    part = replace(
        objects,
        B=objects.B @ (space.basis.to_similarities()[:, kept] @ root),
        removed=root[np.searchsorted(kept, landmarks[used])],
        places=objects.places[used],
    )
    amount, scale = float(discriminant.shrinkage[0]), 1.0
    if isinstance(shrinkage, ChosenCovariance):
        scale = shrinkage.scale
    share = (1 - amount) / max(moments.total - float((moments.weights > 0).sum()), 1.0)
    return left_out_whitened(part, means[:, kept] @ root, share / scale)


def _in_similarities(
    space: LandmarkSpace,
    moments: ClassMoments,
    discriminant: LinearDiscriminant,
    shrinkage: Shrinkage,
) -> tuple[Array, Array]:
    """Return S (s, m) with SᵀS = Σ, and the class means (C, m) relative to the centre."""
    root = within_root(moments, shrinkage)[0]  # A Aᵀ = Σ⁻¹ in coordinates b
    T_plus = space.basis.to_similarities()  # (r, m): c = b T⁺
    return np.linalg.pinv(root) @ T_plus, (moments.means - discriminant.centre) @ T_plus


def _inverse(S: Array, contrasts: bool) -> Array:
    """Return (SᵀS)⁻¹ (m, m), or its restriction to vectors that sum to zero. O(m³).

    Similarities computed from dissimilarities add up to a constant over all landmarks, so only
    contrasts (Σβ = 0) can be computed from a subset.

    Uses singular values, so that the condition of S is not squared.
    """
    root = _inverse_root(S, contrasts)
    return root @ root.T


def _inverse_root(S: Array, contrasts: bool) -> Array:
    """Return a root (m, s) of the result of `_inverse`."""
    m = S.shape[1]
    V = null_space(np.ones((1, m))) if contrasts else np.eye(m)
    _, sigma, Ut = svd(S @ V, full_matrices=True)
    sigma = np.append(sigma, np.zeros(V.shape[1] - len(sigma)))
    found: Array = V @ (Ut.T / np.maximum(sigma, 1e-12 * sigma[0]))
    return found


def _independent(S: Array, contrasts: bool) -> Indices:
    """Return a subset of landmarks that spans all of them, without redundant ones. O(m³)."""
    scale = float(np.abs(S).max())
    full = np.vstack([S, np.full(S.shape[1], scale)]) if contrasts else S
    R, order = qr(full, mode="r", pivoting=True)
    size = np.abs(np.diag(R))
    return np.sort(order[: int((size > 1e-10 * size[0]).sum())])


def _quadratic(v: Array, Q: Array) -> Array:
    """Return vᵀ Q⁻¹ v for each row v, kept below 1 despite rounding."""
    return np.minimum(np.einsum("ic,ic->i", v, np.linalg.solve(Q, v.T).T), 1 - 1e-12)


def _recentred(space: LandmarkSpace, kept: Indices, coef: Array) -> Array:
    """Return the change in the intercept if similarities are centred on the kept landmarks."""
    if space.centre is None:
        return np.zeros(coef.shape[1])
    restricted = space.restricted(kept).centre
    assert restricted is not None
    return 0.5 * (space.centre.column_means[kept] - restricted.column_means) @ coef
