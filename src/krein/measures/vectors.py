"""Measures of rows of numbers, with BLAS where possible: kernels of vectors, balls, histograms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from ..core.shapes import Array
from .base import Measure
from .objects import Objects, RefusedObject, as_stack, contains, unframed, unusable

_ROWS = 2**14  # checked together, so that checking a memory map needs little memory


def as_matrix(objects: Any, what: str = "vector") -> Array:
    """Return `objects` as a float matrix, or raise an error that says what is wrong."""
    objects = unframed(objects)
    if getattr(getattr(objects, "dtype", None), "kind", "") == "c":
        raise ValueError(f"Complex data not supported: {what}s are rows of real numbers")
    try:
        X = as_stack(objects, what)
    except RefusedObject:
        raise
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{what}s must be rows of numbers, all of the same length: {error}"
        ) from None
    if X.ndim != 2:
        raise ValueError(f"{what}s must be a 2-dimensional array, one row each; got {X.ndim}-d")
    for start in range(0, len(X), _ROWS):
        bad = unusable(X[start : start + _ROWS])
        if bad.any():
            row, column = np.argwhere(bad)[0] + np.array([start, 0])
            raise RefusedObject(what, row, contains(X[row, column], f"in column {column}"))
    return X


@dataclass(frozen=True)
class Vectors(Measure):
    """A function of two rows of numbers. O(d) per pair."""

    releases_gil = True
    expensive = False
    accepts = "vectors"

    def check(self, objects: Any) -> Objects:
        """Return a finite float matrix."""
        return as_matrix(objects)

    def check_alike(self, A: Objects, B: Objects) -> None:
        """Raise an error if the vectors have different lengths."""
        d, e = np.shape(A)[1], np.shape(B)[1]
        if d != e:
            raise ValueError(f"vectors of {d} numbers cannot be compared with vectors of {e}")


def _squares(A: Array) -> Array:
    return np.einsum("ij,ij->i", A, A)


@dataclass(frozen=True)
class ELM(Vectors):
    """Arcsine kernel of the infinite extreme learning machine (Frénay & Verleysen 2011).

    k(p, q) = 2/π · arcsin((1 + p·q) / √((1/(2σ²) + 1 + p·p)(1/(2σ²) + 1 + q·q)))

    Parameters
    ----------
    sigma : float, default=10.0
        Standard deviation σ of the random weights of the machine; above 0. Small values make the
        kernel nearly linear; for large ones, only the angle between (1, p) and (1, q) matters.

    See Also
    --------
    RBF : Gaussian kernel, which depends on distances.
    Linear : Inner product.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.vectors import ELM
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> ELM().block(X, X).round(3)
    array([[0.936, 0.39 ],
           [0.39 , 0.963]])
    """

    sigma: float = 10.0

    name = "elm"
    kind = "similarity"
    psd = True
    positive = ("sigma",)

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the kernel block."""
        A, B = np.asarray(A), np.asarray(B)
        a, b = self._scale(A), self._scale(B)
        # scaling the factors is (n + m)·d work; scaling the product would be n·m
        product = np.column_stack([A, np.ones(len(A))]) / a[:, None]
        product = product @ (np.column_stack([B, np.ones(len(B))]) / b[:, None]).T
        np.clip(product, -1, 1, out=product)  # rounding errors for long vectors
        np.arcsin(product, out=product)
        product *= 2 / np.pi
        return product

    def diagonal(self, A: Objects) -> Array:
        """Return k(p, p) for every row."""
        A = np.asarray(A)
        share = (1 + _squares(A)) / self._scale(A) ** 2
        return 2 / np.pi * np.arcsin(np.minimum(share, 1))

    def _scale(self, A: Array) -> Array:
        return np.sqrt(1 / (2 * self.sigma**2) + 1 + _squares(A))


@dataclass(frozen=True)
class RBF(Vectors):
    """Gaussian kernel k(p, q) = exp(−γ‖p − q‖²).

    Parameters
    ----------
    gamma : float or None, default=None
        The factor γ on squared distances; above 0. The larger it is, the faster similarity falls
        off with distance. None uses 1/d for vectors of d numbers.

    See Also
    --------
    ELM : Kernel that needs little tuning.
    TL1 : Indefinite kernel that is exactly 0 beyond a distance.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.vectors import RBF
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> RBF().block(X, X).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    gamma: float | None = None

    name = "rbf"
    kind = "similarity"
    psd = True
    self_value = 1.0
    positive = ("gamma",)

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the kernel block."""
        A, B = np.asarray(A), np.asarray(B)
        gamma = 1 / A.shape[1] if self.gamma is None else self.gamma
        # ‖p − q‖² = p·p − 2 p·q + q·q: differences of large numbers if the data are far from the
        # origin, so both sides are centred first
        centre = B.mean(axis=0) if len(B) else 0.0
        A, B = A - centre, B - centre
        K = A @ B.T
        K *= 2
        K -= _squares(A)[:, None]
        K -= _squares(B)
        np.minimum(K, 0, out=K)
        K *= gamma
        return np.exp(K, out=K)


@dataclass(frozen=True)
class Linear(Vectors):
    """Inner product k(p, q) = p·q.

    See Also
    --------
    Sigmoid : Inner product passed through tanh.
    RBF : Gaussian kernel, which depends on distances.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.vectors import Linear
    >>> Linear().block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    name = "linear"
    kind = "similarity"
    psd = True

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the inner products."""
        return np.asarray(A) @ np.asarray(B).T

    def diagonal(self, A: Objects) -> Array:
        """Return p·p for every row."""
        return _squares(np.asarray(A))


@dataclass(frozen=True)
class Sigmoid(Vectors):
    """k(p, q) = tanh(γ p·q + c), in general indefinite.

    Parameters
    ----------
    gamma : float or None, default=None
        The factor γ on inner products. None uses 1/d for vectors of d numbers.
    offset : float, default=1.0
        The constant c, added to the scaled inner product.

    See Also
    --------
    Linear : Inner product.
    ELM : Positive semi-definite kernel of a neural network.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.vectors import Sigmoid
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> Sigmoid().block(X, X).round(3)
    array([[0.762, 0.762],
           [0.762, 0.964]])
    """

    gamma: float | None = None
    offset: float = 1.0

    name = "sigmoid"
    kind = "similarity"

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the values."""
        A = np.asarray(A)
        return self._tanh(A @ np.asarray(B).T, A.shape[1])

    def diagonal(self, A: Objects) -> Array:
        """Return k(p, p) for every row."""
        A = np.asarray(A)
        return self._tanh(_squares(A), A.shape[1])

    def _tanh(self, products: Array, d: int) -> Array:
        products *= 1 / d if self.gamma is None else self.gamma
        products += self.offset
        return np.tanh(products, out=products)


@dataclass(frozen=True)
class Manhattan(Vectors):
    """k(p, q) = −‖p − q‖₁: indefinite, with a zero diagonal.

    See Also
    --------
    TL1 : Truncated, so that far pairs have the similarity 0.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.vectors import Manhattan
    >>> Manhattan().block(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[-7.]])
    """

    name = "manhattan"
    kind = "similarity"
    psd = False
    self_value = 0.0

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the negative distances."""
        K = cdist(A, B, "cityblock")
        return np.negative(K, out=K)


@dataclass(frozen=True)
class Euclidean(Vectors):
    """Euclidean distance ‖p − q‖₂; for single numbers, their absolute difference.

    See Also
    --------
    Manhattan : Negative ℓ₁ distance, a similarity.
    krein.measures.Combined : Adds distances of several columns.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.vectors import Euclidean
    >>> Euclidean().block(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[5.]])
    """

    name = "euclidean"
    kind = "dissimilarity"
    psd = True
    self_value = 0.0

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances."""
        return cdist(A, B, "euclidean")


@dataclass(frozen=True)
class TL1(Vectors):
    """Truncated ℓ₁ kernel max(ρ − ‖p − q‖₁, 0) (Huang et al. 2018), indefinite from d = 2.

    Parameters
    ----------
    rho : float or None, default=None
        The ℓ₁ distance ρ from which the kernel is 0, in the unit of the vectors; above 0. None uses
        0.7·d for vectors of d numbers, which the authors recommend for data scaled to [0, 1].

    See Also
    --------
    Manhattan : Negative ℓ₁ distance, not truncated.
    RBF : Gaussian kernel, positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.vectors import TL1
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> TL1().block(X, X).round(3)
    array([[1.4, 0. ],
           [0. , 1.4]])
    """

    rho: float | None = None

    name = "tl1"
    kind = "similarity"
    positive = ("rho",)

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the values."""
        K = cdist(A, B, "cityblock")
        np.subtract(self._rho(A), K, out=K)
        return np.maximum(K, 0, out=K)

    def diagonal(self, A: Objects) -> Array:
        """Return ρ for every row."""
        return np.full(len(A), float(self._rho(A)))

    def _rho(self, A: Objects) -> float:
        return 0.7 * np.shape(A)[1] if self.rho is None else self.rho


@dataclass(frozen=True)
class Balls(Vectors):
    """Gap between the surfaces of two balls, max(0, ‖c − c′‖ − r − r′) (Pękalska & Duin 2005).

    A ball is a row: its centre, then its radius. Far from Euclidean: the triangle inequality fails
    for any ball that lies between two others. O(d) per pair.

    See Also
    --------
    krein.datasets.make_balls : Generate balls whose classes differ only in size.

    Examples
    --------
    >>> from krein.measures.vectors import Balls
    >>> balls = [[0.0, 0.0, 1.0], [5.0, 0.0, 2.0]]  # centre, then radius
    >>> Balls().block(balls, balls)
    array([[0., 2.],
           [2., 0.]])
    """

    name = "balls"
    kind = "dissimilarity"
    psd = False
    self_value = 0.0  # a ball touches itself

    def check(self, objects: Any) -> Objects:
        """Return a finite float matrix with non-negative radii in the last column."""
        X = as_matrix(objects, "ball")
        if X.shape[1] < 2:
            raise ValueError(f"a ball consists of a centre and a radius; got {X.shape[1]} numbers")
        if (X[:, -1] < 0).any():
            row = int(np.argmax(X[:, -1] < 0))
            raise RefusedObject("ball", row, f"has the negative radius {X[row, -1]:g}")
        return X

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances."""
        A, B = np.asarray(A), np.asarray(B)
        D = cdist(A[:, :-1], B[:, :-1])
        D -= A[:, -1:]
        D -= B[:, -1]
        return np.maximum(D, 0, out=D)


@dataclass(frozen=True)
class _Histograms(Vectors):
    """Rows of counts or shares, normalised to sum 1 after adding `pseudocount` to each entry."""

    pseudocount: float = 0.0

    kind = "dissimilarity"
    self_value = 0.0

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
    >>> from krein.measures.vectors import SymmetricKL
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
            reason = f"contains 0 in column {column}, which makes it infinitely far from histograms"
            remedy = " without that 0; a pseudocount, e.g. 0.5 for counts, avoids this"
            raise RefusedObject("histogram", row, reason + remedy)
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
    >>> from krein.measures.vectors import JensenShannon
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
