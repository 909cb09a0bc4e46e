"""Symmetric divergences of histograms, as distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from .base import Array, Objects
from .errors import RefusedObject
from .vectors import Vectors, as_matrix


@dataclass(frozen=True)
class _Histograms(Vectors):
    """Rows of counts or shares, normalised to sum 1 after adding `pseudocount` to each entry."""

    pseudocount: float = 0.0

    kind = "dissimilarity"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.pseudocount >= 0:
            raise ValueError(f"pseudocount must be at least 0; got {self.pseudocount}")

    def check(self, objects: Any) -> Objects:
        """Return the rows; negative entries and rows of zeros are refused."""
        X = as_matrix(objects, "histogram")
        if (X < 0).any():
            row, column = np.argwhere(X < 0)[0]
            raise RefusedObject("histogram", row, f"contains {X[row, column]:g} in column {column}")
        sums = X.sum(axis=1) + self.pseudocount
        if (sums == 0).any():
            raise RefusedObject("histogram", int(np.argmin(sums)), "contains only zeros")
        return X

    def diagonal(self, A: Objects) -> Array:
        """Return zeros."""
        return np.zeros(len(A))

    def _shares(self, A: Objects) -> Array:
        P = np.asarray(A) + self.pseudocount
        return P / P.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class SymmetricKL(_Histograms):
    """Square root of Jeffreys' divergence Σ (p − q)(log p − log q), which is KL(p‖q) + KL(q‖p).

    Rows of counts or shares are normalised to sum 1. The root is used because the divergence itself
    behaves like a squared distance, and dissimilarities are squared later. Uses BLAS, O(d) per
    pair.

    Parameters
    ----------
    pseudocount : float, default=0.0
        Added to each entry before rows are normalised, in the unit of the entries; at least 0.
        Every share must be positive, so data with zeros need one: 0.5 is common for counts.

    See Also
    --------
    JensenShannon : A bounded metric that also takes zeros.

    Examples
    --------
    >>> from krein.measures.histograms import SymmetricKL
    >>> measure = SymmetricKL()
    >>> counts = measure.check([[1, 1, 8], [8, 1, 1]])
    >>> measure.block(counts[:1], counts).round(3)
    array([[0.   , 1.706]])
    """

    name = "symmetric-kl"

    def check(self, objects: Any) -> Objects:
        """Return the rows; zeros are refused unless there is a pseudocount."""
        X = np.asarray(super().check(objects))
        if self.pseudocount == 0 and (X == 0).any():
            row, column = np.argwhere(X == 0)[0]
            raise RefusedObject(
                "histogram",
                row,
                f"contains 0 in column {column}, which makes it infinitely far from histograms "
                f"without that 0; a pseudocount, e.g. 0.5 for counts, avoids this",
            )
        return X

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances."""
        P, Q = self._shares(A), self._shares(B)
        p, q = np.log(P), np.log(Q)
        # Σ (p − q)(log p − log q) = p·log p + q·log q − p·log q − q·log p: one product
        D = np.hstack([P, p]) @ -np.hstack([q, Q]).T
        D += np.einsum("ij,ij->i", P, p)[:, None]
        D += np.einsum("ij,ij->i", Q, q)
        np.maximum(D, 0, out=D)
        return np.sqrt(D, out=D)


@dataclass(frozen=True)
class JensenShannon(_Histograms):
    """Square root of the Jensen–Shannon divergence H((p + q)/2) − (H(p) + H(q))/2, in nats.

    Rows of counts or shares are normalised to sum 1. A metric (Endres & Schindelin 2003), and
    Euclidean. O(d) per pair.

    Parameters
    ----------
    pseudocount : float, default=0.0
        Added to each entry before rows are normalised, in the unit of the entries; at least 0.
        Zeros need none. It pulls rows with few counts towards the uniform distribution.

    See Also
    --------
    SymmetricKL : Unbounded, and more sensitive to rare entries.

    Examples
    --------
    >>> from krein.measures.histograms import JensenShannon
    >>> measure = JensenShannon()
    >>> counts = measure.check([[1, 1, 0], [2, 2, 0], [0, 0, 5]])
    >>> measure.block(counts[:1], counts[1:]).round(3)
    array([[0.   , 0.833]])
    """

    name = "jensen-shannon"
    psd = True

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances."""
        return cdist(self._shares(A), self._shares(B), "jensenshannon")
