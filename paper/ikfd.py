"""iKFD as published and as public implementations solve it: on the columns k(x), with a ridge.

Each class is fitted against the rest. With K the kernel matrix (N, N) of the training objects,
k_i its columns, and μ₊, μ₋ the mean columns of the n₊ and n₋ objects of the two sides,

    N = Σ_i k_i k_iᵀ − n₊ μ₊ μ₊ᵀ − n₋ μ₋ μ₋ᵀ,    α = (N + ρ I)⁻¹ (μ₊ − μ₋),

and the score of x is αᵀ k(x), with a bias half-way between the means. The paper writes N⁻¹, which
does not exist if N is rank-deficient; public implementations use ρ = 1 for kernels whose diagonal
is about 1. All columns of K̃ = C W⁺ Cᵀ are in the span of C = Q R. In the basis Q, k̃_i is R W⁺ c_i,
so the linear systems have only as many unknowns as there are landmarks.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import pinvh, qr

from krein import IKFD
from krein.compare import open_pairs

RIDGE = 1.0


class PublishedIKFD(IKFD):
    """The published iKFD (landmarks="all") and Ny-iKFD."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Let IKFD compare objects and choose landmarks; then solve for each class in turn."""
        super().fit(X, y, sample_weight)
        codes = np.searchsorted(self.classes_, y)
        values = open_pairs(self.measure, X, n_jobs=1).block(np.arange(len(codes)), self.landmarks_)
        C = self.space_.similarities(values)
        W = self.space_.similarities(self.space_.landmark_values)
        unit = float(np.abs(np.diag(W)).mean()) or 1.0
        C, W = C / unit, W / unit
        dense = len(self.landmarks_) == len(codes)
        # k̃_i = Q (M c_i); the dense method uses the columns themselves
        M = np.eye(len(codes)) if dense else qr(C, mode="r")[0][: len(W)] @ pinvh(W)
        coef, intercept = ridge_discriminants(C @ M.T, codes, len(self.classes_))
        self.dual_coef_ = M.T @ coef / unit
        self.intercept_ = intercept
        return self


def ridge_discriminants(
    Y: Any, codes: Any, n_classes: int, ridge: float = RIDGE
) -> tuple[Any, Any]:
    """Return α (r, C) and the biases (C,), each class against the rest; row i of Y (N, r) is k_i.

    >>> Y = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> alpha, bias = ridge_discriminants(Y, np.array([0, 0, 1]), 2)
    >>> (Y @ alpha + bias).argmax(axis=1)
    array([0, 0, 1])
    """
    scatter = Y.T @ Y
    scatter[np.diag_indices_from(scatter)] += ridge
    alpha, bias = [], []
    for c in range(n_classes):
        own = codes == c
        sides = [(int(side.sum()), Y[side].mean(axis=0)) for side in (own, ~own)]
        N = scatter - sum(n * np.outer(mean, mean) for n, mean in sides)
        a = np.linalg.solve(N, sides[0][1] - sides[1][1])
        alpha.append(a)
        bias.append(-0.5 * float(a @ (sides[0][1] + sides[1][1])))
    return np.column_stack(alpha), np.array(bias)
