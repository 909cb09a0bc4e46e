"""A market of named matrices, each hard in its own way. Tests run over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    """A symmetric matrix and landmarks; `exact` if rank(W) = rank(K)."""

    name: str
    K: np.ndarray
    landmarks: np.ndarray
    exact: bool = True

    @property
    def C(self) -> np.ndarray:
        return self.K[:, self.landmarks]

    @property
    def W(self) -> np.ndarray:
        return self.K[np.ix_(self.landmarks, self.landmarks)]

    @property
    def codes(self) -> np.ndarray:
        """Two or three classes, the last one tiny."""
        n = len(self.K)
        codes = np.arange(n) % 2
        codes[-max(1, n // 10) :] = 2
        return codes


def with_eigenvalues(lam, n, seed=0):
    """A random n×n matrix with these non-zero eigenvalues."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, len(lam))))
    K = (Q * np.asarray(lam, dtype=float)) @ Q.T
    return (K + K.T) / 2


def build(seed=0, n=40):
    rng = np.random.default_rng(seed)
    some = np.sort(rng.choice(n, size=12, replace=False))
    psd = with_eigenvalues([9, 5, 3, 2, 1, 0.5], n, seed)
    indefinite = with_eigenvalues([9, -7, 5, -3, 2, 0.5, -0.1], n, seed)
    pairs = with_eigenvalues([4, -4, 4, -4, 1, -1, 1, -1], n, seed)
    duplicated = indefinite[np.ix_(np.arange(n) // 2, np.arange(n) // 2)]
    zero_row = indefinite.copy()
    zero_row[3], zero_row[:, 3] = 0.0, 0.0
    near_zero_core = np.kron(np.array([[1e-9, 1.0], [1.0, 1e-9]]), psd[: n // 2, : n // 2])
    first_half = np.arange(n // 4)
    everyone = np.arange(n)
    return [
        Case("psd", psd, some),
        Case("indefinite", indefinite, some),
        Case("± pairs", pairs, some),
        Case("rank deficient core", with_eigenvalues([3, -2], n, seed), some),
        Case("duplicates", duplicated, np.arange(0, 16)),
        Case("zero row", zero_row, np.array([3, *some[some != 3]])),
        Case("scaled by 1e-6", 1e-6 * indefinite, some),
        Case("scaled by 1e6", 1e6 * indefinite, some),
        Case("full rank, all landmarks", with_eigenvalues(rng.normal(size=n), n, seed), everyone),
        Case(
            "full rank, some landmarks", with_eigenvalues(rng.normal(size=n), n, seed), some, False
        ),
        Case("near-zero core", near_zero_core, first_half, False),
        Case("zero", np.zeros((n, n)), some),
        Case("one row", np.array([[-2.0]]), np.array([0])),
    ]


MARKET = build()
EXACT = [case for case in MARKET if case.exact]
