"""The softmax link of the joint PCVM: p(y = c | z) = exp(z_c) / Σ_d exp(z_d)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

_LEAST = 1e-8
"""Of 1 − leverage, which is positive but for rounding."""


def softmax(Z: Array) -> Array:
    """Return exp(z_c) / Σ_d exp(z_d) for every row, without overflow."""
    P = Z - Z.max(axis=1, keepdims=True)
    np.exp(P, out=P)
    P /= P.sum(axis=1, keepdims=True)
    return P


class Softmax:
    """C classes, C scores a row: log p(y | z) = z_y − log Σ_d exp(z_d)."""

    name = "softmax"

    def n_scores(self, n_classes: int) -> int:
        """Return the number of scores a row: one a class."""
        return n_classes

    def loss_residual(self, Z: Array, y: Labels, s: Array | float) -> tuple[float, Array]:
        """Return −Σ s log p(y | z) and its derivative by each score, s (p − e_y). O(n C)."""
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

    def left_out(self, Z: Array, h: Array, y: Labels, s: Array | float) -> Array:
        """Return the scores of each row under the model without that row, to first order.

        As for the probit link, one score at a time: z₋ = z + h g / (1 − h d).
        """
        weight = (s * np.ones(len(Z)))[:, None]
        P = softmax(Z)
        left = np.maximum(1.0 - h * weight * P * (1 - P), _LEAST)
        P[np.arange(len(Z)), y] -= 1.0
        return Z + h * weight * P / left

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
