"""Kernels and kernel-like functions of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import Array, Measure, Objects


def _matrix(objects: Any) -> Array:
    """Return `objects` as a float matrix, or say what is wrong with it."""
    X = np.asarray(objects, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"vectors come as a 2-dimensional array, one row each; got {X.ndim}-d")
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(f"vector {row} holds {X[row, column]} in column {column}")
    return X


@dataclass(frozen=True)
class ELM(Measure):
    """Arcsine kernel of the infinite extreme learning machine.

    k(p, q) = 2/π · arcsin((1 + p·q) / √((1/(2σ²) + 1 + p·p)(1/(2σ²) + 1 + q·q)))
    """

    sigma: float = 10.0

    name = "elm"
    kind = "similarity"
    psd = True
    releases_gil = True

    def check(self, objects: Any) -> Objects:
        """Return a finite float matrix."""
        return _matrix(objects)

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the kernel block."""
        A, B = np.asarray(A), np.asarray(B)
        a, b = self._scale(A), self._scale(B)
        # scaling the factors is (n + m)·d work where scaling the product is n·m
        product = np.column_stack([A, np.ones(len(A))]) / a[:, None]
        product = product @ (np.column_stack([B, np.ones(len(B))]) / b[:, None]).T
        np.arcsin(product, out=product)
        product *= 2 / np.pi
        return product

    def diagonal(self, A: Objects) -> Array:
        """Return k(p, p) for every row."""
        A = np.asarray(A)
        return 2 / np.pi * np.arcsin((1 + np.einsum("ij,ij->i", A, A)) / self._scale(A) ** 2)

    def _scale(self, A: Array) -> Array:
        return np.sqrt(1 / (2 * self.sigma**2) + 1 + np.einsum("ij,ij->i", A, A))
