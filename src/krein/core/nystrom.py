"""Nyström approximation of an indefinite matrix: K̃ = C W⁺ Cᵀ = B J Bᵀ.

Notation: C = K[:, L] (N, m), W = K[L, L] = U Λ Uᵀ, T = U|Λ|^(−½), J = sign Λ, B = C T.

Sources: section 3 of the paper. The paper decomposes the *squared* matrix, which cannot tell λ from
−λ and mixes their eigenvectors. Here the m×m matrix R J Rᵀ is decomposed, which preserves signs.
Truncation of the core: Nakatsukasa & Park 2023, *Randomized low-rank approximation for
symmetric indefinite matrices*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .checks import Array
from .moments import gram
from .spectrum import RANK_TOLERANCE, Signature

_CHUNK = 4096  # rows of C turned into coordinates together


@dataclass(frozen=True)
class LandmarkBasis:
    """Pseudo-Euclidean coordinates spanned by the landmarks: b(x) = k(x, L) T, signs J."""

    T: Array  # (m, r)
    signs: Array  # (r,): the diagonal of J, ±1
    lam: Array  # (r,): eigenvalues of W that were kept

    def coordinates(self, C: Array) -> Array:
        """Return B (n, r) from similarities C (n, m) to the landmarks. O(n·m·r)."""
        return C @ self.T

    def to_similarities(self) -> Array:
        """Return T⁺ (r, m) = |Λ|^½ Uᵀ: B T⁺ = C if W has full rank. O(m·r)."""
        return (self.T * np.abs(self.lam)).T


def landmark_basis(
    W: Array, *, tol: float = RANK_TOLERANCE, rank: int | None = None
) -> LandmarkBasis:
    """Return the basis of landmark similarities W (m, m), symmetric. O(m³).

    Keeps the eigenvalues with |λ| > tol·max|λ|, or the `rank` largest of them in |λ|. Truncation
    avoids the division by eigenvalues of W that are near zero although K has none there: use 1.5 to
    2 times as many landmarks as `rank`.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.nystrom import landmark_basis
    >>> basis = landmark_basis(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> basis.signs, basis.lam
    (array([-1.,  1.]), array([-2.,  2.]))
    """
    if rank is not None and (rank != int(rank) or rank < 1):
        raise ValueError(f"rank must be a positive integer or None; got {rank!r}")
    lam, U = np.linalg.eigh((W + W.T) / 2)  # exact: W is symmetric up to rounding
    order = np.argsort(-np.abs(lam), kind="stable")
    keep = order[np.abs(lam[order]) > tol * np.abs(lam).max()][:rank]
    lam, U = lam[keep], U[:, keep]
    return LandmarkBasis(T=U / np.sqrt(np.abs(lam)), signs=np.sign(lam), lam=lam)


@dataclass(frozen=True)
class SignedEigen:
    """Eigenvalues A of B J Bᵀ, largest |A| first, and P with eigenvectors B P."""

    values: Array  # (s,)
    P: Array  # (r, s)


def signed_eigen(G: Array, signs: Array, *, tol: float = RANK_TOLERANCE) -> SignedEigen:
    """Decompose K̃ = B J Bᵀ from G = BᵀB and J alone. O(r³).

    G = RᵀR; R J Rᵀ = V A Vᵀ is symmetric and has the non-zero eigenvalues of K̃; B R⁺ V are
    orthonormal eigenvectors. R comes from the eigendecomposition of G scaled to unit diagonal: the
    columns of B differ in size by up to √(λ_max/λ_min) of the core, and without the scaling the
    small ones would be lost in rounding. Eigenvalues |A| ≤ tol·max|A| are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.nystrom import signed_eigen
    >>> signed_eigen(np.diag([4.0, 9.0]), np.array([1.0, -1.0])).values
    array([-9.,  4.])
    """
    d = np.sqrt(np.maximum(np.diag(G), 0.0))
    if _is_diagonal(G):  # every object is a landmark: G = |Λ|
        A = d**2 * signs
        order = np.argsort(-np.abs(A), kind="stable")
        order = order[np.abs(A[order]) > tol * np.abs(A).max(initial=0.0)]
        P = np.zeros((len(G), len(order)))
        P[order, np.arange(len(order))] = 1 / d[order]
        return SignedEigen(A[order], P)
    inverse_d = np.divide(1.0, d, out=np.zeros_like(d), where=d > 0)
    E, Q = np.linalg.eigh(inverse_d[:, None] * G * inverse_d)
    keep = len(G) * np.finfo(float).eps * E.max(initial=0.0) < E
    E, Q = E[keep], Q[:, keep]
    R = np.sqrt(E)[:, None] * Q.T * d  # (s, r), G = RᵀR
    A, V = np.linalg.eigh((R * signs) @ R.T)
    order = np.argsort(-np.abs(A), kind="stable")
    order = order[np.abs(A[order]) > tol * np.abs(A).max(initial=0.0)]
    P = inverse_d[:, None] * (Q / np.sqrt(E)) @ V[:, order]
    return SignedEigen(A[order], P)


def _is_diagonal(G: Array) -> bool:
    """Whether all off-diagonal entries are rounding errors, in every row and column.

    They grow with the condition number of the core; their effect on eigenvalues is quadratic.
    """
    d = np.sqrt(np.maximum(np.diag(G), 0.0))
    off = np.abs(G) <= 1e-9 * np.outer(d, d)
    np.fill_diagonal(off, True)
    return bool(off.all())


@dataclass(frozen=True)
class NystromMatrix:
    """K̃ = B J Bᵀ stored as C and the landmark basis, without forming an N×N matrix or all of B.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.nystrom import NystromMatrix, landmark_basis
    >>> K = np.diag([3.0, -2.0, 0.0])
    >>> nystrom = NystromMatrix(K[:, :2], landmark_basis(K[:2, :2]))
    >>> nystrom.eigenvalues, nystrom.signature
    (array([ 3., -2.]), Signature(positive=1, negative=1, zero=1))
    """

    C: Array  # (N, m)
    basis: LandmarkBasis

    @cached_property
    def gram(self) -> Array:
        """G = BᵀB (r, r), in one pass over chunks of C. O(N·m·r)."""
        G = np.zeros((len(self.basis.signs),) * 2)
        for start in range(0, len(self.C), _CHUNK):
            G += gram(self.basis.coordinates(self.C[start : start + _CHUNK]))
        return G

    @cached_property
    def eigen(self) -> SignedEigen:
        """Signed eigenvalues and the map to eigenvectors. O(N·m·r + r³)."""
        return signed_eigen(self.gram, self.basis.signs)

    @property
    def eigenvalues(self) -> Array:
        """Non-zero eigenvalues of K̃ with their signs, largest |λ| first."""
        return self.eigen.values

    @property
    def signature(self) -> Signature:
        """(p, q, z) of K̃."""
        A = self.eigenvalues
        p = int((A > 0).sum())
        return Signature(p, len(A) - p, len(self.C) - len(A))

    def eigenvectors(self) -> Array:
        """Return orthonormal eigenvectors (N, s), in the order of `eigenvalues`. O(N·m·s)."""
        return self.C @ (self.basis.T @ self.eigen.P)

    def svd(self) -> tuple[Array, Array, Array]:
        """Return U (N, s), singular values |A| (s,) and Vᵀ (s, N): K̃ = U |A| Vᵀ."""
        U = self.eigenvectors()
        return U, np.abs(self.eigenvalues), (U * np.sign(self.eigenvalues)).T

    def apply(self, v: Array) -> Array:
        """Return K̃ v for v (N,) or (N, k). O(N·m·k)."""
        return self._expand(self._contract(v))

    def apply_square(self, v: Array) -> Array:
        """Return K̃² v = B (J G J) Bᵀ v. O(N·m·k)."""
        return self._expand((self.basis.signs * (self.gram @ self._contract(v)).T).T)

    def apply_pinv(self, v: Array) -> Array:
        """Return K̃⁺ v = Q A⁻¹ Qᵀ v with eigenvectors Q = C S. O(N·m·k)."""
        S = self.basis.T @ self.eigen.P
        return self.C @ (S @ (((self.C @ S).T @ v).T / self.eigenvalues).T)

    def row_sums(self) -> Array:
        """Return K̃ 1. O(N·m)."""
        return self.apply(np.ones(len(self.C)))

    def dense(self) -> Array:
        """Return K̃ as an (N, N) matrix. O(N²·m): for small N."""
        B = self.basis.coordinates(self.C)
        return (B * self.basis.signs) @ B.T

    def _contract(self, v: Array) -> Array:
        """J Bᵀ v, in the r coordinates."""
        return (self.basis.signs * (self.basis.T.T @ (self.C.T @ v)).T).T

    def _expand(self, u: Array) -> Array:
        """B u for u in the r coordinates."""
        return self.C @ (self.basis.T @ u)
