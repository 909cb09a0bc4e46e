"""A prior for which finding the posterior mode is a convex problem: an oracle for the search."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class FixedPrecision:
    """u ~ N(0, 1/α) with α known: the convex problem of one M-step."""

    alpha: np.ndarray  # broadcasts to (M, C)

    def value(self, u):
        """Return ½ Σ α u²."""
        return 0.5 * float(np.sum(self.alpha * u**2))

    def gradient(self, u):
        """Return α u."""
        return self.alpha * u

    def curvature(self, u):
        """Return α."""
        return self.precision(u)

    def precision(self, u):
        """Return α."""
        return np.broadcast_to(self.alpha, u.shape)
