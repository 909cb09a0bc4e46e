"""What PCVM is fitted to: basis functions of values, kept as rows, and passes over these rows.

A basis function is the similarity itself, or a power of a dissimilarity. −½ d² is the uncentred
similarity that corresponds to a squared dissimilarity. For vectors, a weighted sum of such
functions is a quadratic whose second-degree term is a multiple of ‖x‖². −d has a kink at every
basis object, and −√d a sharper one: the smaller the power, the more the near objects count. None of
them has a unit or a width to choose.

A pass sums a function over blocks of rows. It accesses the data only through `Rows.total`, so rows
in memory, on disk or on other machines differ only in that method. Its inputs are vectors of basis
length, and its outputs are sums. Blocks begin at multiples of `block_rows` and are summed in the
fixed order of `moments.ordered_sum`, so results are bit-identical wherever the rows are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from ..moments import ordered_sum, weights_of
from ..shapes import Array, Codes, Indices

BasisFunction = Literal["similarity", "-d²/2", "-d", "-√d"]


def basis_values(function: BasisFunction, values: Array, out: Array | None = None) -> Array:
    """Return the basis functions of values of the measure, in `out` if it is given.

    A similarity is not copied. PCVM places no conditions on its basis functions, so dissimilarities
    need not be centred, and predictions do not need landmarks with zero weight.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.rows import basis_values
    >>> basis_values("-d²/2", np.array([[0.0, 2.0]]))
    array([[-0., -2.]])
    """
    if function == "similarity":
        return values
    if function == "-d":
        return np.negative(values, out=out)
    if function == "-d²/2":
        squares = np.square(values, out=out)
        squares *= -0.5
        return squares
    below = values < 0  # possible with a user's own measure, e.g. for overlapping objects
    roots = np.abs(values, out=out)
    np.sqrt(roots, out=roots)
    np.negative(roots, out=roots)
    if below.any():
        roots[below] *= -1.0
    return roots


FEATURE_SIZES = (1e-145, 1e145)
"""Range of features whose squares, summed over many rows, neither overflow nor underflow."""

BLOCK_BYTES = 2 * 2**20
"""Size of the features of a block, which fits in cache: a pass reads it twice."""


@dataclass(frozen=True)
class Block:
    """Some rows: features F (n, r), class indices y (n,), weights s (n,) or one number.

    If the rows are a sample, `drawn` is the number of rows that each one represents. This is part
    of its weight, but it is still one observation.
    """

    F: Array
    y: Codes
    s: Array | float
    drawn: Array | float = 1.0

    @property
    def weights(self) -> Array:
        """The weight of each row (n,)."""
        return self.s * np.ones(len(self.y))

    def part(self, rows: Indices) -> Block:
        """Return some of its rows."""
        s, drawn = (v if np.ndim(v) == 0 else np.asarray(v)[rows] for v in (self.s, self.drawn))
        return Block(self.F[rows], self.y[rows], s, drawn)


def rows_per_block(width: int) -> int:
    """Return the number of rows of `width` features in a block."""
    return max(256, BLOCK_BYTES // (8 * max(1, width)))


def sums(parts: tuple[Array, ...]) -> list[Array]:
    """Return the result of a block as arrays that `add_sums` can change."""
    return [np.array(part, dtype=np.float64) for part in parts]


def add_sums(total: list[Array], more: list[Array]) -> list[Array]:
    """Add to the sums, in place."""
    for one, part in zip(total, more, strict=True):
        one += part
    return total


RowTerm = Callable[[Block], tuple[Array, ...]]
"""The term that a pass computes from one block."""

Each = Callable[[Callable[[Block], Any], Iterable[Block]], Iterable[Any]]
"""Applies a function to blocks, in sequence or in parallel: `map`, or a function that returns its
results in the same order."""


class Rows:
    """Features of N rows in memory, with their classes and weights, divided into blocks.

    At most one block is copied at a time. Several problems share the features (`recoded`), which
    may be values of the measure, or basis functions of them (`under`). A subclass whose features
    are not in memory overrides these methods, `features`, and `__iter__` or `total`.
    """

    mean: Array  # (r,): subtracted by `under`; 0 for values

    def __init__(
        self,
        F: Array,
        y: Codes,
        weight: Array | None = None,
        *,
        n_classes: int | None = None,
        block_rows: int | None = None,
        each: Each = map,
        drawn: Array | None = None,
    ) -> None:
        self.F = F
        self.drawn = drawn
        self.each = each
        self.y = np.asarray(y, dtype=np.intp)
        self.weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        self.shape, self.mean = (F.shape[0], F.shape[1]), np.zeros(F.shape[1])
        self.n_classes = int(self.y.max(initial=-1)) + 1 if n_classes is None else n_classes
        self.block_rows = block_rows or rows_per_block(F.shape[1])
        if len(self.y) != self.shape[0]:
            raise ValueError(f"{self.shape[0]} rows but {len(self.y)} labels")
        if self.weight is not None and self.weight.shape != (self.shape[0],):
            raise ValueError(f"{self.shape[0]} rows but weights of shape {self.weight.shape}")

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, self.shape[0], self.block_rows):
            part = slice(start, start + self.block_rows)
            s, drawn = (1.0 if v is None else v[part] for v in (self.weight, self.drawn))
            yield Block(self.F[part], self.y[part], s, drawn)

    def thinned(self, n_rows: int, without: Indices | None = None) -> Rows:
        """Return a sample of about `n_rows` rows, in proportion to class size.

        Each class keeps at least 50 rows, or all it has. The rows `without` are excluded first; the
        sampled rows of a class then weigh as much as all that remained.
        """
        if n_rows >= self.shape[0] and without is None:
            return self
        order = np.random.default_rng(0).permutation(self.shape[0])
        if without is not None:
            order = order[~np.isin(order, without)]
        y, N = self.y, len(order)
        order = order[np.argsort(y[order], kind="stable")]
        weight, drawn = weights_of(self.weight, self.shape[0]), np.ones(self.shape[0])
        part = []
        for members in np.split(order, np.cumsum(np.bincount(y[order]))[:-1]):
            some = members[: max(-(-n_rows * len(members) // N), min(len(members), 50))]
            drawn[some] = weight[members].sum() / max(weight[some].sum(), np.finfo(float).tiny)
            part.append(some)
        rows = np.sort(np.concatenate(part))
        weight = (weight * drawn)[rows]
        F, C = self.features(rows), self.n_classes
        return Rows(F, y[rows], weight, n_classes=C, drawn=drawn[rows])

    def features(self, rows: Indices) -> Array:
        """Return the features of these rows, given in ascending order, in memory."""
        return self.F if len(rows) == len(self.F) else self.F[rows]

    def total(self, term: RowTerm) -> tuple[Array, ...]:
        """Return Σ term(block) over all blocks, in the fixed order."""
        parts = self.each(lambda block: sums(term(block)), self)
        total: list[Array] = ordered_sum(parts, add_sums)
        return tuple(total)

    def recoded(self, recode: Codes, n_classes: int) -> Self:
        """Return the rows of the problem in which class c is class recode[c]; nothing is copied."""
        found = copy(self)
        found.y, found.n_classes = recode[self.y], n_classes
        return found

    def under(self, function: BasisFunction, *, keep: bool = True) -> Self:
        """Return a centred function of the features, as a copy.

        Unless `keep`, rows that are not in memory overwrite the features with it.
        """
        found = copy(self)
        found.F = basis_values(function, self.F)
        found.mean = mean_features(found)
        found.F = np.subtract(found.F, found.mean, out=None if found.F is self.F else found.F)
        return found

    def close(self) -> None:
        """Release the storage; memory is released with the object."""


def mean_features(rows: Rows) -> Array:
    """Return the weighted mean of the features (r,). One pass."""

    def term(block: Block) -> tuple[Array, ...]:
        return block.weights @ block.F, block.weights.sum()

    total, weight = rows.total(term)
    return total / weight


def column_statistics(rows: Rows, full: bool) -> tuple[Array, Array, Array]:
    """Return class weights (C,), mean (r,) and covariance (r, r) of the features.

    Unless `full`, only the variances (r,). Two passes of O(N r), or O(N r²) for all covariances.
    There are two passes because Σf² − (Σf)²/n loses all digits if the mean is large. Features are
    refused if their squares, or sums of squares, are outside the range of floating-point numbers.
    """
    C = rows.n_classes  # a term goes to other machines, and must not take the rows along

    def first(block: Block) -> tuple[Array, ...]:
        s = block.weights
        counts = np.bincount(block.y, weights=s, minlength=C)
        return counts.astype(np.float64), s @ block.F, s @ np.abs(block.F)

    class_weight, feature_sums, sizes = rows.total(first)
    total = float(class_weight.sum())
    mean = feature_sums / total
    size = float((sizes / total).max(initial=0.0))
    if not (size == 0 or FEATURE_SIZES[0] <= size <= FEATURE_SIZES[1]):  # also catches nan
        raise ValueError(
            f"basis functions have values of about {size:.1g}, whose squares are outside the range "
            "of floating-point numbers: multiply the values of the measure by a constant"
        )

    def second(block: Block) -> tuple[Array, ...]:
        X = block.F - mean
        if full:
            X *= np.sqrt(block.weights)[:, None]
            return (X.T @ X,)
        return (block.weights @ np.square(X, out=X),)

    return class_weight, mean, rows.total(second)[0] / total
