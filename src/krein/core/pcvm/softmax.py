"""The softmax link of the joint PCVM: p(y = c | z) = exp(z_c) / Σ_d exp(z_d)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


def softmax(Z: Array) -> Array:
    """Return exp(z_c) / Σ_d exp(z_d) for every row, without overflow."""
    P = Z - Z.max(axis=1, keepdims=True)
    np.exp(P, out=P)
    P /= P.sum(axis=1, keepdims=True)
    return P


def softmax_root(P: Array, s: Array | float) -> Array:
    """Return R (n, C, C) with R Rᵀ = s (diag p − p pᵀ), for p ≥ 0 whose sum τ is at most 1.

    R = √s diag(√p) (I − a √p √pᵀ), where (1 − aτ)² = 1 − τ.
    """
    tau = P.sum(axis=1)
    a = np.divide(
        1 - np.sqrt(np.maximum(1 - tau, 0.0)), tau, out=np.full_like(tau, 0.5), where=tau > 0
    )
    v = np.sqrt(P)
    inner = np.eye(P.shape[1]) - a[:, None, None] * v[:, :, None] * v[:, None, :]
    root = np.sqrt(s) * np.ones(len(P))
    found: Array = (root[:, None] * v)[:, :, None] * inner
    return found


class Softmax:
    """C classes, C scores per row: log p(y | z) = z_y − log Σ_d exp(z_d)."""

    name = "softmax"

    def n_scores(self, n_classes: int) -> int:
        """Return the number of scores per row: one per class."""
        return n_classes

    def loss_residual(self, Z: Array, y: Labels, s: Array | float) -> tuple[float, Array]:
        """Return −Σ s log p(y | z) and its gradient in the scores, s (p − e_y). O(n C)."""
        rows = np.arange(len(Z))
        G = Z - Z.max(axis=1, keepdims=True)
        own = G[rows, y]
        np.exp(G, out=G)
        total = G.sum(axis=1)
        loss = float(np.sum(s * (np.log(total) - own)))
        G /= total[:, None]
        G[rows, y] -= 1.0
        if np.ndim(s):
            G *= np.asarray(s)[:, None]
        else:
            G *= s
        return loss, G

    def hessian(self, F: Array, Z: Array, y: Labels, s: Array | float) -> Array:
        """Return Σ s (diag p − p pᵀ) ⊗ (f, 1)(f, 1)ᵀ, classes outermost. O(n (r C)²)."""
        n, C = Z.shape
        width = F.shape[1] + 1
        P = softmax(Z)
        F1 = np.column_stack([F, np.ones(n)])
        root = np.sqrt(s) * np.ones(n)
        A = (P * root[:, None])[:, :, None] * F1[:, None, :]
        A = A.reshape(n, C * width)
        H = -(A.T @ A)
        for c in range(C):
            part = slice(c * width, (c + 1) * width)
            D = F1 * (root * np.sqrt(P[:, c]))[:, None]
            H[part, part] += D.T @ D
        return H

    def class_hessian(self, F: Array, Z: Array, y: Labels, s: Array | float, c: int) -> Array:
        """Return a diagonal block of the Hessian, Σ s p_c (1 − p_c) (f, 1)(f, 1)ᵀ, O(n r²)."""
        p = softmax(Z)[:, c]
        root = np.sqrt(p * (1 - p) * s)
        A = np.column_stack([F, np.ones(len(F))]) * root[:, None]
        return A.T @ A

    def curvature_root(self, Z: Array, y: Labels, s: Array | float) -> Array:
        """Return R (n, C, C) with R Rᵀ = s (diag p − p pᵀ). O(n C²)."""
        P = softmax(Z)
        return softmax_root(P, s)

    def curvatures(self, Z: Array, y: Labels, s: Array | float) -> Array:
        """Return the diagonal of each row's Hessian, s p_c (1 − p_c)."""
        P = softmax(Z)
        found: Array = (s * np.ones(len(Z)))[:, None] * P * (1 - P)
        return found

    def losses(self, Z: Array, y: Labels) -> Array:
        """Return −log p(y | z) of each row."""
        Z = Z - Z.max(axis=1, keepdims=True)
        own = Z[np.arange(len(Z)), y]
        return np.log(np.exp(Z).sum(axis=1)) - own

    def start(self, shares: Array) -> Array:
        """Return the biases of a model without weights: the logarithms of the shares, centred."""
        logs = np.log(shares)
        return logs - logs.mean()

    def probabilities(self, Z: Array) -> Array:
        """Return (n, C) class probabilities."""
        return softmax(Z)
