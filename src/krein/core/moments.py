"""Sums over the data: class moments, and the fixed order in which terms are added up.

Class moments are the result of one pass: counts, sums and products per class. Moments of chunks
merge by addition, across threads and machines, and their size does not depend on the number of
objects. They contain everything that IKFD, IKQD, the Nyström eigendecomposition and SMSS need.

Floating-point sums depend on their order. `OrderedSum` adds in the order of a tree with `FAN`
branches over the terms 0, 1, 2, …, where each node is the sum of its branches from left to right. A
run of `FAN`ᵏ terms that begins at a multiple of `FAN`ᵏ is a whole branch: it can be summed on
another machine and added as one term of the tree above without changing a digit. So the results of
one thread, many threads, a file read in chunks and a cluster are bit-identical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from .shapes import Array


def gram(B: Array) -> Array:
    """Return BᵀB. O(n·r²), half the work of a general product.

    NumPy detects that both factors are the same array and uses the symmetric rank-k product. SciPy
    has another BLAS, whose threads would compete for the same processors.
    """
    return B.T @ B


def class_totals(rows: Array, codes: NDArray[Any], n_classes: int) -> Array:
    """Return the sum (C, r) of the rows of each class. O(n·r)."""
    found = np.zeros((n_classes, rows.shape[1]))
    if len(rows):
        order = np.argsort(codes, kind="stable")
        ascending = codes[order]
        starts = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
        found[ascending[starts]] = np.add.reduceat(rows[order], starts, axis=0)
    return found


@dataclass(frozen=True)
class ClassMoments:
    """Weights n_c, sums Σw(b−o) and products Σw(b−o)(b−o)ᵀ about a fixed origin o.

    The origin matters only for accuracy: a scatter is a difference of products, and loses digits if
    the mean is large compared with the spread. Choose an origin near the data (the mean of the
    landmarks), and use the same one for every chunk.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.moments import ClassMoments
    >>> B = np.array([[0.0], [2.0], [10.0]])
    >>> moments = ClassMoments.of(B, np.array([0, 0, 1]), 2)
    >>> moments.means.ravel(), moments.within()
    (array([ 1., 10.]), array([[2.]]))
    """

    origin: Annotated[Array, "r"]
    weights: Annotated[Array, "C"]  # Σw per class
    sums: Annotated[Array, "C r"]  # about the origin
    products: Annotated[Array, "r r"] | Annotated[Array, "C r r"]
    """Over all classes, or per class; about the origin."""

    @classmethod
    def of(
        cls,
        B: Array,
        codes: NDArray[Any],
        n_classes: int,
        *,
        origin: Array | None = None,
        sample_weight: Array | None = None,
        by_class: bool = False,
    ) -> ClassMoments:
        """Return the moments of a chunk: coordinates B (n, r), class codes 0…C−1 (n,).

        O(n·r²) time and O(C·r + r²) memory beyond one copy of the chunk (C·r² by class).
        """
        r = B.shape[1]
        origin = np.zeros(r) if origin is None else origin
        centred = B - origin
        root = None if sample_weight is None else np.sqrt(sample_weight)
        if root is not None:
            centred *= root[:, None]
        sums = class_totals(centred if root is None else centred * root[:, None], codes, n_classes)
        weights = np.bincount(codes, weights=sample_weight, minlength=n_classes).astype(float)
        if by_class:
            products = np.stack([gram(centred[codes == c]) for c in range(n_classes)])
        else:
            products = gram(centred)
        return cls(origin, weights, sums, products)

    def __add__(self, other: ClassMoments) -> ClassMoments:
        if not np.array_equal(self.origin, other.origin):
            raise ValueError("moments about different origins cannot be merged")
        by_class = self.products.ndim == other.products.ndim == 3
        return ClassMoments(
            self.origin,
            self.weights + other.weights,
            self.sums + other.sums,
            self.products + other.products if by_class else self.pooled + other.pooled,
        )

    def __sub__(self, other: ClassMoments) -> ClassMoments:
        """Return the moments of all objects except those in `other`."""
        return self + ClassMoments(other.origin, -other.weights, -other.sums, -other.products)

    @property
    def total(self) -> float:
        """Σw over all objects."""
        return float(self.weights.sum())

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the within-class scatter: Σw − C for C classes; at least 1."""
        return max(self.total - float((self.weights > 0).sum()), 1.0)

    @property
    def centre(self) -> Array:
        """The mean of all objects (r,)."""
        return self.origin + self.sums.sum(axis=0) / self.total

    @property
    def variance(self) -> float:
        """The total variance tr Σw(b−b̄)(b−b̄)ᵀ / Σw, of all objects about their mean."""
        mean = self.sums.sum(axis=0) / self.total
        return max(float(np.trace(self.pooled)) / self.total - float(mean @ mean), 0.0)

    @property
    def means(self) -> Array:
        """Class means (C, r); the origin for a class without weight."""
        safe = np.where(self.weights > 0, self.weights, 1.0)
        return self.origin + self.sums / safe[:, None]

    @property
    def pooled(self) -> Array:
        """Products over all classes (r, r), about the origin."""
        return self.products if self.products.ndim == 2 else self.products.sum(axis=0)

    def gram(self) -> Array:
        """Return G = Σw b bᵀ about zero. O(r²)."""
        shift = np.outer(self.sums.sum(axis=0), self.origin)
        return self.pooled + shift + shift.T + self.total * np.outer(self.origin, self.origin)

    def class_sums(self) -> Array:
        """Return Σw b of each class (C, r), about zero."""
        return self.sums + self.weights[:, None] * self.origin

    def within(self) -> Array:
        """Return the within-class scatter Σ_c Σ_i w(b−μ_c)(b−μ_c)ᵀ. O(C·r²)."""
        deviation = self.sums / np.sqrt(np.where(self.weights > 0, self.weights, 1.0))[:, None]
        return self.pooled - deviation.T @ deviation

    def within_class(self, c: int) -> Array:
        """Return the scatter of class `c` about its own mean; needs per-class products."""
        n = self.weights[c] if self.weights[c] > 0 else 1.0
        return self.products[c] - np.outer(self.sums[c], self.sums[c]) / n

    def one_against_rest(self, c: int) -> ClassMoments:
        """Return the moments of the two-class problem rest (0) against class `c` (1). O(C·r)."""
        rest = np.arange(len(self.weights)) != c
        return ClassMoments(
            self.origin,
            np.array([self.weights[rest].sum(), self.weights[c]]),
            np.stack([self.sums[rest].sum(axis=0), self.sums[c]]),
            self.pooled,
        )

    def transform(self, P: Array) -> ClassMoments:
        """Return the moments of b P, for P (r, s). O(r²·s)."""
        return ClassMoments(self.origin @ P, self.weights, self.sums @ P, P.T @ (self.products @ P))


ROUNDING = 1e-9
"""A class of which no larger share is left has no objects left."""

Summand = TypeVar("Summand")

FAN = 8
"""Branches per node. Memory grows with the logarithm, to this base, of the number of terms."""


class OrderedSum(Generic[Summand]):
    """A running sum that takes its terms in order, and stores one partial sum per tree level."""

    def __init__(self, add: Callable[[Summand, Summand], Summand]) -> None:
        self._add = add
        self._sums: list[Summand | None] = []
        self._counts: list[int] = []

    def push(self, term: Summand) -> None:
        """Add the next term."""
        level = 0
        while True:
            if level == len(self._sums):
                self._sums.append(None)
                self._counts.append(0)
            so_far = self._sums[level]
            term = term if so_far is None else self._add(so_far, term)
            self._counts[level] += 1
            if self._counts[level] < FAN:
                self._sums[level] = term
                return
            self._sums[level], self._counts[level] = None, 0
            level += 1

    def result(self) -> Summand:
        """Return the sum."""
        total: Summand | None = None
        for part in self._sums:
            if part is not None:
                total = part if total is None else self._add(part, total)
        if total is None:
            raise ValueError("there is nothing to sum")
        return total


def ordered_sum(terms: Iterable[Summand], add: Callable[[Summand, Summand], Summand]) -> Summand:
    """Return the sum of the terms in the fixed order.

    `add(a, b)` may change and return `a`, which is never used again.

    Examples
    --------
    >>> from operator import add
    >>> terms = [0.1 * k for k in range(100)]
    >>> branches = [ordered_sum(terms[i : i + FAN], add) for i in range(0, 100, FAN)]
    >>> ordered_sum(branches, add) == ordered_sum(terms, add)
    True
    """
    total = OrderedSum(add)
    for term in terms:
        total.push(term)
    return total.result()


def weights_of(weights: Array | None, n: int) -> Array:
    """Return the weights of n objects, which are 1 if none are given."""
    return np.ones(n) if weights is None else weights
