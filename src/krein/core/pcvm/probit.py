"""The probit link of PCVM: p(y = 1 | z) = Ψ(z), Ψ the distribution function of N(0, 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

_FAR = -1e4
"""Below this λ(λ + z) = 1 − O(1/z²) is 1 to eight digits, and the difference λ + z loses more."""


def hazard(z: Array) -> Array:
    """Return λ(z) = φ(z)/Ψ(z), finite for every finite z.

    φ(z)/Ψ(z) = √(2/π) / erfcx(−z/√2): numerator and denominator share the factor exp(−z²/2), which
    underflows at z = −38; erfcx omits it. For large z the quotient is φ(z) itself.
    """
    z = np.asarray(z, dtype=np.float64)
    # erfcx(−z/√2) overflows to infinity near z = 38, where λ is 0 to machine precision
    with np.errstate(over="ignore"):
        return np.sqrt(2 / np.pi) / erfcx(-z / np.sqrt(2))


def curvature(z: Array) -> Array:
    """Return −d²/dz² log Ψ(z) = λ(z)(λ(z) + z), which lies between 0 and 1."""
    z = np.asarray(z, dtype=np.float64)
    lam = hazard(z)
    near = np.where(z < _FAR, 0.0, z)
    return np.clip(np.where(z < _FAR, 1.0, lam * (lam + near)), 0.0, 1.0)


class Probit:
    """Two classes, one score per row: log p(y | z) = log Ψ(t z), t = +1 for class 1, −1 for 0.

    Scores are (n, 1) so that two classes and more share one shape.
    """

    name = "probit"

    def n_scores(self, n_classes: int) -> int:
        """Return the number of scores per row: one, for two classes only."""
        if n_classes != 2:
            raise ValueError(f"the probit link is for two classes; got {n_classes}")
        return 1

    def loss_residual(self, Z: Array, y: Labels, s: Array | float) -> tuple[float, Array]:
        """Return −Σ s log Ψ(t z) and its gradient in the scores, −s t λ(t z). O(n)."""
        t = 2.0 * y - 1.0
        tz = t * Z[:, 0]
        loss = -float(np.sum(s * log_ndtr(tz)))
        return loss, (-s * t * hazard(tz))[:, None]

    def hessian(self, F: Array, Z: Array, y: Labels, s: Array | float) -> Array:
        """Return Σ s λ(λ + tz) (f, 1)(f, 1)ᵀ, (r+1) × (r+1): one product of n r² additions."""
        t = 2.0 * y - 1.0
        root = np.sqrt(s * curvature(t * Z[:, 0]))
        A = np.empty((F.shape[0], F.shape[1] + 1))
        np.multiply(F, root[:, None], out=A[:, :-1])
        A[:, -1] = root
        return A.T @ A

    def class_hessian(self, F: Array, Z: Array, y: Labels, s: Array | float, c: int) -> Array:
        """Return the Hessian of the only score."""
        return self.hessian(F, Z, y, s)

    def curvature_root(self, Z: Array, y: Labels, s: Array | float) -> Array:
        """Return R (n, 1, 1), the square root of the second derivative of each row's loss."""
        return np.sqrt(self.curvatures(Z, y, s))[:, :, None]

    def curvatures(self, Z: Array, y: Labels, s: Array | float) -> Array:
        """Return the second derivative of each row's loss with respect to its score (n, 1)."""
        t = 2.0 * y - 1.0
        return (s * curvature(t * Z[:, 0]))[:, None]

    def losses(self, Z: Array, y: Labels) -> Array:
        """Return −log p(y | z) of each row."""
        return -log_ndtr((2.0 * y - 1.0) * Z[:, 0])

    def start(self, shares: Array) -> Array:
        """Return the bias of a model without weights: Ψ⁻¹ of the share of class 1."""
        return ndtri(shares[1:2])

    def probabilities(self, Z: Array) -> Array:
        """Return (n, 2) class probabilities."""
        # both from ndtr: 1 − Ψ(z) would round a small probability to zero
        return np.column_stack([ndtr(-Z[:, 0]), ndtr(Z[:, 0])])
