"""Left-out scores for many classes, where the coupling between classes is computed per row.

If p are the probabilities of a row, the curvature of its loss is diag(p) − p pᵀ: the first part
treats each class separately, the second has rank one. So H = A − U Uᵀ, where A has one block per
class and U one column per row, and by Woodbury

    H⁻¹ = A⁻¹ + A⁻¹ U M⁻¹ Uᵀ A⁻¹,    M = I − Uᵀ A⁻¹ U = I − Σ_c p_c p_cᵀ ∘ X_c A_c⁻¹ X_cᵀ.

M has one row per object, whereas H has one per weight (Rasmussen & Williams 2006, section 3.5).
Most classes are very improbable for most objects. An entry of p below a threshold is treated as
uncoupled: it adds p_c(1 − p_c) to A and nothing to U, and costs almost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from .cavity import HIGH_LEVERAGE, without_row
from .covariance import inverse_root, off_bound, prior_curvature
from .mode import PCVMFit
from .softmax import softmax, softmax_root

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]

THRESHOLDS = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""Thresholds below which probabilities are not coupled; the lowest with few couplings is used."""

PART_BYTES = 2**27
"""Memory for the couplings of the rows that are processed together."""

_JITTER = 1e-10
"""Added to M, which with the prior's secant is positive definite except for rounding."""

COUPLED_PER_ROW = 8
"""The threshold rises if the mean number of classes coupled per row exceeds this."""


def coupled_classes(P: Array, y: Labels) -> Mask:
    """Return which classes (n, C) are coupled in each row: its own class and the likely ones.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.coupled import coupled_classes
    >>> coupled_classes(np.array([[0.9, 0.0999, 0.0001]]), np.array([0]))
    array([[ True,  True, False]])
    """
    for least in THRESHOLDS:
        coupled: Mask = least < P
        coupled[np.arange(len(P)), y] = True
        if coupled.sum() <= COUPLED_PER_ROW * len(P):
            break
    return coupled


def coupled_left_out(F: Array, y: Labels, s: Array, each: Array, fit: PCVMFit) -> Array:
    """Return the left-out scores (n, C) of each row.

    Parameters
    ----------
    F : array (n, r)
        Features, in memory.
    y : array (n,)
        Classes.
    s : array (n,)
        Weight that is removed with each row.
    each : array (n,)
        Weight of the row in the curvature.
    fit : PCVMFit
        A fit with the softmax link.

    Notes
    -----
    O(n r² C + n³ + k n²) time with k couplings, k ≤ 8 n. Memory is 8 (2 n² + n r C) bytes plus two
    parts of `PART_BYTES`.
    """
    Z = fit.scores(F)
    P = softmax(Z)
    on = coupled_classes(P, y)
    every = np.arange(len(y))
    left = np.empty_like(Z)
    high = every
    exact = _Coupled.of(F, each, fit, P, on, secant=False)
    if exact is not None:
        leverage = np.empty(len(y))
        for part in _parts(every, on):
            left[part], leverage[part] = exact.without(part, Z, P, on, y, s)
        high = np.flatnonzero(leverage > HIGH_LEVERAGE)
    if len(high):
        del exact
        firm = _Coupled.of(F, each, fit, P, on, secant=True)
        assert firm is not None
        for part in _parts(high, on):
            left[part] = firm.without(part, Z, P, on, y, s)[0]
    return left


def _parts(rows: Labels, on: Mask) -> list[Labels]:
    """Return the rows in parts whose couplings, n numbers each, take at most PART_BYTES."""
    places = np.cumsum(8 * len(on) * (on[rows].sum(axis=1) + 1)) // PART_BYTES
    return [part for part in np.split(rows, np.flatnonzero(np.diff(places)) + 1) if len(part)]


@dataclass(frozen=True)
class _Coupled:
    """The factors of H⁻¹."""

    E: list[Array]  # C arrays (·, n): X_c A_c⁻¹ X_cᵀ = E_cᵀ E_c
    U: Array  # (n, C), zero where a class is not coupled
    L: Array  # (n, n), L Lᵀ = M

    @classmethod
    def of(
        cls, F: Array, each: Array, fit: PCVMFit, P: Array, on: Mask, *, secant: bool
    ) -> _Coupled | None:
        """Return H⁻¹ with the prior's curvature or secant, or None if H is indefinite."""
        n, C = P.shape
        U = np.where(on, P, 0.0) * np.sqrt(each)[:, None]
        A = np.where(on, P, P * (1 - P)) * each[:, None]
        M, E = np.eye(n), []
        for c in range(C):
            T = off_bound(fit, None, c, bias=c > 0)
            X = F @ T[:-1] + T[-1]
            prior = prior_curvature(fit, c, bias=c > 0, secant=secant)
            root = inverse_root((X * A[:, c, None]).T @ X, prior)
            if root is None:
                return None
            E.append(root.T @ X.T)
            J = np.flatnonzero(on[:, c])
            EJ = E[c][:, J]
            M[np.ix_(J, J)] -= np.outer(U[J, c], U[J, c]) * (EJ.T @ EJ)
        if secant:
            M[np.diag_indices(n)] += _JITTER
        try:
            return cls(E, U, cholesky(M, lower=True))
        except LinAlgError:
            if secant:
                raise
            return None

    def without(
        self, rows: Labels, Z: Array, P: Array, on: Mask, y: Labels, s: Array
    ) -> tuple[Array, Array]:
        """Return the left-out scores of these rows, and their leverage."""
        N, n = len(Z), len(rows)
        Z, P, on, y, s = Z[rows], P[rows], on[rows], y[rows], s[rows]
        C = Z.shape[1]
        starts = np.concatenate([[0], np.cumsum(on.sum(axis=1))])
        place = starts[:-1, None] + np.cumsum(on, axis=1) - 1
        V = np.zeros((n, C, C))
        B = np.zeros((N, starts[-1]))  # one column per coupling: L⁻¹ (u_c ∘ X_c A_c⁻¹ x_ic)
        for c in range(C):
            own, all_of = np.flatnonzero(on[:, c]), np.flatnonzero(self.U[:, c])
            K = self.E[c][:, all_of].T @ self.E[c][:, rows[own]]
            B[np.ix_(all_of, place[own, c])] = self.U[all_of, c, None] * K
            V[own, c, c] = np.square(self.E[c][:, rows[own]]).sum(axis=0)
        B = solve_triangular(self.L, B, lower=True, overwrite_b=True)
        for i in range(n):
            part, S = B[:, starts[i] : starts[i + 1]], np.flatnonzero(on[i])
            V[i][np.ix_(S, S)] += part.T @ part
        p = np.where(on, P, 0.0)
        residual = p.copy()
        residual[np.arange(n), y] -= 1.0
        left, q, leverage = without_row(Z, V, residual * s[:, None], softmax_root(p, s))
        # the other classes affect an uncoupled class through M
        pull = np.empty((N, n))
        for i in range(n):
            pull[:, i] = B[:, starts[i] : starts[i + 1]] @ q[i, on[i]]
        pull = solve_triangular(self.L, pull, lower=True, trans=1, overwrite_b=True)
        for c in range(C):
            other, all_of = np.flatnonzero(~on[:, c]), np.flatnonzero(self.U[:, c])
            K = self.E[c][:, all_of].T @ self.E[c][:, rows[other]]
            K *= self.U[all_of, c, None]
            left[other, c] += np.einsum("ji,ji->i", K, pull[np.ix_(all_of, other)])
        return left, leverage
