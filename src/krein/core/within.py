"""The shared covariance of the classes, shrunk towards a target by any amount.

With S the within-class scatter of ν degrees of freedom and a target metric diag(t),
    Σ(ρ) = (1 − ρ) S/ν + ρ γ̄/ν diag(t),   γ̄ = tr(diag(t)⁻¹ S) / r.
One eigendecomposition of diag(t)^(−½) S diag(t)^(−½) serves every amount ρ. If every object is a
landmark, even that is not needed: BᵀB is then diagonal, and S is that diagonal minus one rank-one
term per class.

Targets in the coordinates B, where W = UΛUᵀ contains the similarities between the landmarks:
- "similarities", t = 1/|Λ|: the identity in the coordinates k(x, L), a ridge on similarities;
- "identity", t = 1: the identity in B, which is |W| in k(x, L);
- "landmarks", t = |Λ|: the scatter of the landmarks themselves;
- "diagonal", t = diag S: variances are kept, correlations shrunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .checks import Array
from .moments import ClassMoments
from .spectrum import RANK_TOLERANCE

Target = Literal["similarities", "identity", "landmarks", "diagonal"]
TARGETS: tuple[Target, ...] = ("similarities", "identity", "landmarks", "diagonal")

_DIAGONAL = 1e-12
"""Off-diagonal entries up to this share of the largest entry are rounding."""


@dataclass(frozen=True)
class ChosenCovariance:
    """A covariance chosen by its left-out loss: Σ(amount) / scale, and class offsets.

    `offsets` (C,) are added to the scores. Only the quadratic discriminant uses `pseudo_objects`:
    in each class covariance, the shared one counts as this many objects.
    """

    target: Target
    metric: Array  # (r,): the diagonal of the target
    amount: float  # ρ
    scale: float
    offsets: Array  # (C,)
    pseudo_objects: float = np.inf


def target_metric(target: Target, lam: Array, moments: ClassMoments) -> Array:
    """Return the diagonal t (r,) of a target, from the eigenvalues of W and the moments."""
    if target == "similarities":
        return 1 / np.abs(lam)
    if target == "landmarks":
        return np.abs(lam)
    if target == "diagonal":
        diagonal = np.diag(moments.within())
        return np.maximum(diagonal, RANK_TOLERANCE * max(float(diagonal.max(initial=0)), 0.0))
    return np.ones(len(lam))


@dataclass(frozen=True)
class Precision:
    """Σ⁻¹ = diag(inverse) + PᵀP in the coordinates of a path, and the share of S in Σ."""

    inverse: Array  # (s,)
    P: Array  # (k, s)
    share: float  # (1 − ρ)/ν: removing a uuᵀ from S removes share · a uuᵀ from Σ

    def apply(self, V: Array) -> Array:
        """Return V Σ⁻¹ for rows V (n, s). O(n·s·k)."""
        return V * self.inverse + (V @ self.P.T) @ self.P

    def products(self, V: Array, W: Array) -> Array:
        """Return vᵢ Σ⁻¹ wᵢᵀ for rows V and W (n, s). O(n·s·k)."""
        diagonal = np.einsum("is,is,s->i", V, W, self.inverse)
        return diagonal + ((V @ self.P.T) * (W @ self.P.T)).sum(axis=1)


@dataclass(frozen=True)
class WithinPath:
    """S in coordinates where the target is the identity: diag(delta) − lowᵀ low.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.moments import ClassMoments
    >>> from krein.core.within import WithinPath
    >>> B = np.array([[0.0, 1.0], [2.0, 0.0], [9.0, 4.0], [9.0, 8.0]])
    >>> path = WithinPath.of(ClassMoments.of(B, np.array([0, 0, 1, 1]), 2), np.ones(2))
    >>> root = path.root(0.5)
    >>> (np.linalg.inv(root @ root.T)).round(6)  # half S/2, half the mean variance
    array([[ 1.8125, -0.25  ],
           [-0.25  ,  3.4375]])
    """

    scaling: Array  # (r,): t^(−½)
    rotation: Array | None  # (r, s); None for the identity
    delta: Array  # (s,)
    low: Array  # (k, s)
    freedom: float  # ν

    @classmethod
    def of(cls, moments: ClassMoments, metric: Array) -> WithinPath:
        """Return the path of these moments towards diag(metric). O(r³), or O(C·r) if dense."""
        scaling = 1 / np.sqrt(np.maximum(metric, np.finfo(float).tiny))
        freedom = max(moments.total - float((moments.weights > 0).sum()), 1.0)
        G = moments.gram() * scaling[:, None] * scaling
        diagonal = np.diag(G).copy()
        np.fill_diagonal(G, 0.0)
        if np.abs(G).max(initial=0.0) <= _DIAGONAL * diagonal.max(initial=0.0):
            safe = np.sqrt(np.where(moments.weights > 0, moments.weights, 1.0))
            low = moments.class_sums() / safe[:, None] * scaling
            return cls(scaling, None, diagonal, low[moments.weights > 0], freedom)
        S = moments.within() * scaling[:, None] * scaling
        gamma, V = np.linalg.eigh((S + S.T) / 2)
        return cls(scaling, V, np.maximum(gamma, 0.0), np.empty((0, len(gamma))), freedom)

    @property
    def mean(self) -> float:
        """γ̄: the mean eigenvalue of S where the target is the identity."""
        return float(self.delta.sum() - (self.low**2).sum()) / max(len(self.delta), 1)

    def coordinates(self, B: Array) -> Array:
        """Return rows B (n, r), centred or not, in the coordinates of the path. O(n·r²)."""
        scaled = B * self.scaling
        return scaled if self.rotation is None else scaled @ self.rotation

    def back(self, V: Array) -> Array:
        """Convert coefficients (n, s) of path coordinates to coefficients (n, r) of B."""
        return (V if self.rotation is None else V @ self.rotation.T) * self.scaling

    def at(self, amount: float) -> Precision:
        """Return Σ(ρ)⁻¹, or the pseudo-inverse of a singular Σ if ρ = 0. O(s·k²)."""
        share = (1 - amount) / self.freedom
        d = share * self.delta + amount * self.mean / self.freedom
        inverse = np.where(d > RANK_TOLERANCE * d.max(initial=0.0), 1 / np.where(d > 0, d, 1.0), 0)
        X = np.sqrt(share) * self.low * np.sqrt(inverse)
        # Woodbury: (D − MᵀM)⁻¹ = D⁻¹ + D⁻¹Mᵀ(I − M D⁻¹ Mᵀ)⁻¹ M D⁻¹
        theta, R = np.linalg.eigh(X @ X.T)
        rest = np.maximum(1 - theta, RANK_TOLERANCE)
        P = (R / np.sqrt(rest)).T @ X * np.sqrt(inverse)
        return Precision(inverse, P, share)

    def root(self, amount: float) -> Array:
        """Return A (r, s) with A Aᵀ = Σ(ρ)⁻¹ in the coordinates B. O(r²·s)."""
        found = self.at(amount)
        keep = found.inverse > 0
        # D⁻¹ + PᵀP = D^(−½)(I + YᵀY)D^(−½) with Y = P D^½
        Y = found.P[:, keep] / np.sqrt(found.inverse[keep])
        theta, R = np.linalg.eigh(Y @ Y.T)
        theta = np.maximum(theta, 0.0)
        grown = np.where(theta > 0, (np.sqrt(1 + theta) - 1) / np.where(theta > 0, theta, 1), 0.5)
        half = np.eye(int(keep.sum())) + Y.T @ ((R * grown) @ R.T) @ Y
        half = np.sqrt(found.inverse[keep])[:, None] * half
        inner = np.zeros((len(keep), half.shape[1]))
        inner[keep] = half
        return self.back(inner.T).T
