"""Pseudo-Euclidean embedding V = U|Λ|^½ of objects given by similarities (paper, eq. 1).

K = V J Vᵀ with J = diag(±1). Indefinite kernel PCA is the same after centring, which in
coordinates is a shift of the origin: B − 1b̄ᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .checks import Array
from .nystrom import LandmarkBasis, landmark_basis, signed_eigen
from .spectrum import RANK_TOLERANCE


@dataclass(frozen=True)
class Embedding:
    """Principal pseudo-Euclidean axes: v(x) = (b(x) − b̄) A, largest |λ| first."""

    eigenvalues: Array  # (s,), signed
    mean: Array  # (r,): b̄, zero if not centred
    A: Array  # (r, s)

    @property
    def signs(self) -> Array:
        """The diagonal of J: +1 or −1 for each axis."""
        return np.sign(self.eigenvalues)

    def coordinates(self, B: Array) -> Array:
        """Return V (n, s) from landmark coordinates B (n, r). O(n·r·s)."""
        return (B - self.mean) @ self.A


def embed(
    G: Array,
    signs: Array,
    *,
    mean: Array | None = None,
    n_components: int | None = None,
) -> Embedding:
    """Return the embedding of K̃ = B J Bᵀ from G = BᵀB and J. O(r³).

    For the axes of the centred matrix (indefinite kernel PCA), pass the `mean` b̄, and as G the
    scatter about it: `ClassMoments.within`, since the difference G − N b̄b̄ᵀ would lose digits.
    `n_components` keeps the largest |λ|.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.embedding import embed
    >>> embed(np.diag([4.0, 9.0]), np.array([1.0, -1.0]), n_components=1).eigenvalues
    array([-9.])
    """
    eigen = signed_eigen(G, signs)
    values, P = eigen.values[:n_components], eigen.P[:, :n_components]
    # eigenvectors are B P; V = B P |Λ|^½
    return Embedding(
        values, np.zeros(len(G)) if mean is None else mean, P * np.sqrt(np.abs(values))
    )


def embed_dense(K: Array, *, tol: float = RANK_TOLERANCE) -> tuple[Array, Array]:
    """Return V = U|Λ|^½ (N, r) and the signs of a symmetric matrix K. O(N³).

    This is the landmark basis if every object is a landmark: K T = U Λ |Λ|^(−½) = V J.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.embedding import embed_dense
    >>> V, signs = embed_dense(np.diag([4.0, -9.0]))
    >>> (V * signs) @ V.T
    array([[ 4.,  0.],
           [ 0., -9.]])
    """
    basis: LandmarkBasis = landmark_basis(K, tol=tol)
    return basis.coordinates(K) * basis.signs, basis.signs
