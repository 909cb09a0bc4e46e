"""Priors of PCVM's weights, for basis functions scaled to unit deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Prior(Protocol):
    """A prior of each weight, up to a constant: −log p, its derivatives, its EM precision."""

    def value(self, u: Array) -> float:
        """Return −log p(u), 0 at u = 0."""

    def gradient(self, u: Array) -> Array:
        """Return the derivative of −log p(u) with respect to each weight."""

    def curvature(self, u: Array) -> Array:
        """Return the second derivative, which may be negative."""

    def precision(self, u: Array) -> Array:
        """Return α of the Gaussian that touches the prior from below at u: the E-step."""


@dataclass(frozen=True)
class GammaPrior:
    """u ~ N(0, 1/α), α ~ Gamma(a, b): −log p(u) = (a + ½) log(1 + u²/2b).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.prior import GammaPrior
    >>> GammaPrior().precision(np.array([0.0, 1.0, 10.0]))
    array([2.        , 1.        , 0.01980198])
    """

    a: float = 0.5
    b: float = 0.5

    def value(self, u: Array) -> float:
        """Return −log p(u), 0 at u = 0."""
        return (self.a + 0.5) * float(np.log1p(u**2 / (2 * self.b)).sum())

    def gradient(self, u: Array) -> Array:
        """Return (2a + 1) u / (u² + 2b)."""
        return self.precision(u) * u

    def curvature(self, u: Array) -> Array:
        """Return (2a + 1)(2b − u²)/(u² + 2b)²."""
        return self.precision(u) * (2 * self.b - u**2) / (u**2 + 2 * self.b)

    def precision(self, u: Array) -> Array:
        """Return α = (2a + 1)/(u² + 2b)."""
        return (2 * self.a + 1) / (u**2 + 2 * self.b)
