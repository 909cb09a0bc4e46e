"""iKFD as it was published, in its best form: in the columns k(x), with a ridge.

One class against the rest. With K the kernel matrix (N, N) of the training objects, k_i its
columns, and μ₊, μ₋ the mean columns of n₊ and n₋ objects,

    N = Σ_i k_i k_iᵀ − n₊ μ₊ μ₊ᵀ − n₋ μ₋ μ₋ᵀ,    α = (N + ρ I)⁻¹ (μ₊ − μ₋),

and the score of x is αᵀ k(x), with a bias half-way between the means. The paper writes N⁻¹, which
does not exist where N has not full rank; public implementations add ρ = 1 to kernels whose diagonal
is about 1. Of K̃ = C W⁺ Cᵀ every column lies in the span of C = Q R: there k̃_i is R W⁺ c_i, and
systems have as many unknowns as there are landmarks.
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
        """Let IKFD compare and choose landmarks; then solve one class after the other."""
        super().fit(X, y, sample_weight)
        codes = np.searchsorted(self.classes_, y)
        values = open_pairs(self.measure, X, n_jobs=1).block(np.arange(len(codes)), self.landmarks_)
        C = self.space_.similarities(values)
        W = self.space_.similarities(self.space_.landmark_values)
        unit = float(np.abs(np.diag(W)).mean()) or 1.0
        C, W = C / unit, W / unit
        dense = len(self.landmarks_) == len(codes)
        # k̃_i = Q (M c_i); without landmarks the columns themselves
        M = np.eye(len(codes)) if dense else qr(C, mode="r")[0][: len(W)] @ pinvh(W)
        coef, intercept = ridge_discriminants(C @ M.T, codes, len(self.classes_))
        self.dual_coef_ = M.T @ coef / unit
        self.intercept_ = intercept
        return self


def ridge_discriminants(
    Y: Any, codes: Any, n_classes: int, ridge: float = RIDGE
) -> tuple[Any, Any]:
    """Return α (r, C) and the bias (C,) of each class against the rest, rows Y (N, r) the columns.

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
