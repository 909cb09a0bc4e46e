"""The eigendecomposition of a Nyström matrix against the bare product CᵀC."""

from __future__ import annotations

import numpy as np

from krein.core.space import NystromMatrix, landmark_basis

from .timing import best_times, exponent, peak_memory, row


def problem(N: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(m, m))
    lam = rng.normal(size=m) * np.linspace(3, 0.1, m)
    Q = np.linalg.qr(A)[0]
    W = (Q * lam) @ Q.T
    coefficients = rng.normal(size=(N, m)) / np.sqrt(m)
    coefficients[:m] = np.eye(m)
    return coefficients @ W, (W + W.T) / 2


def run() -> list[dict]:
    N, m = 200_000, 100
    C, W = problem(N, m)

    def bare() -> np.ndarray:
        return C.T @ C

    def eigen() -> np.ndarray:
        return NystromMatrix(C, landmark_basis(W)).eigenvalues

    def with_vectors() -> np.ndarray:
        return NystromMatrix(C, landmark_basis(W)).eigenvectors()

    reference, values, vectors = best_times(bare, eigen, with_vectors, repeats=5)
    copies = peak_memory(with_vectors) / C.nbytes
    sizes = [50_000, 100_000, 200_000]
    times = []
    for size in sizes:
        part = np.ascontiguousarray(C[:size])
        times += best_times(
            lambda part=part: NystromMatrix(part, landmark_basis(W)).eigenvalues, repeats=5
        )
    return [
        row(
            "eigenvalues / CᵀC",
            values / reference,
            "at most 4",
            f"N = {N:,}, m = {m}: {values:.3f} s against {reference:.3f} s; "
            f"{vectors:.3f} s with eigenvectors",
        ),
        row("memory, eigenvectors included", copies, "below 2", "in copies of C"),
        row("exponent in N", exponent(sizes, times), "about 1", f"N = {sizes}", unit=""),
    ]
