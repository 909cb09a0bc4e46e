"""Pairs of objects and their values, compared when they are asked for and counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..measures import Measure, take
from ..measures.base import Array, Objects

Result = TypeVar("Result")
Indices = NDArray[np.intp]

BLOCK_BYTES = 8 * 2**20
"""Values of one block: large enough for BLAS, small enough to stay near the processor."""


class Pairs(ABC):
    """Row objects against column objects: values of the measure by block, each pair counted.

    While fitting, rows and columns are the same objects; while predicting, the rows are new
    objects and the columns the landmarks.
    """

    kind: Literal["similarity", "dissimilarity"]
    symmetric: bool
    psd: bool | None
    evaluations: int
    """How many pairs were compared so far."""
    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return the (len(rows), len(cols)) values, counted."""

    @abstractmethod
    def diagonal(self, rows: Indices) -> Array:
        """Return the value of each object with itself, counted."""

    def map_columns(
        self,
        function: Callable[[Indices, Array], Result],
        cols: Indices,
        *,
        rows: Indices | None = None,
        core: Array | None = None,
    ) -> Iterator[Result]:
        """Yield `function(row indices, block)` over all rows against `cols`, in row order.

        One pass; a block is forgotten once `function` has seen it. `core`, where given, holds
        the values of the objects `cols` with each other: their rows are not compared again.
        """
        chosen = np.arange(len(self)) if rows is None else np.asarray(rows)
        place = np.full(len(self), -1, dtype=np.intp)
        if core is not None:
            place[cols] = np.arange(len(cols))
        for start in range(0, len(chosen), self.block_rows(len(cols))):
            part = chosen[start : start + self.block_rows(len(cols))]
            known = place[part] >= 0
            values = np.empty((len(part), len(cols)))
            if core is not None and known.any():
                values[known] = core[place[part[known]]]
            if not known.all():
                values[~known] = self.block(part[~known], cols)
            yield function(part, values)

    def block_rows(self, n_cols: int) -> int:
        """How many rows make a block against `n_cols` columns."""
        return max(1, BLOCK_BYTES // (8 * max(1, n_cols)))


class ObjectPairs(Pairs):
    """Objects compared by a measure when they are asked for."""

    def __init__(self, measure: Measure, objects: Objects, others: Objects | None = None) -> None:
        self.measure = measure
        self.objects = objects
        self.others = objects if others is None else others
        self.kind = measure.kind
        self.symmetric = measure.symmetric
        self.psd = measure.psd
        self.shape = (len(self.objects), len(self.others))
        self.evaluations = 0

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return the values of `rows` × `cols`."""
        self.evaluations += len(rows) * len(cols)
        return self.measure.block(take(self.objects, rows), take(self.others, cols))

    def diagonal(self, rows: Indices) -> Array:
        """Return the value of each object with itself."""
        self.evaluations += len(rows)
        return self.measure.diagonal(take(self.objects, rows))


class MatrixPairs(Pairs):
    """Values that somebody has computed already. Reading an entry counts as comparing a pair."""

    def __init__(
        self, matrix: NDArray[Any], kind: Literal["similarity", "dissimilarity"] = "similarity"
    ) -> None:
        self.matrix = matrix
        self.kind = kind
        self.symmetric = True
        self.psd = None
        self.shape = (matrix.shape[0], matrix.shape[1])
        self.evaluations = 0

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return the entries `rows` × `cols`."""
        self.evaluations += len(rows) * len(cols)
        return np.asarray(self.matrix[np.ix_(rows, cols)], dtype=np.float64)

    def diagonal(self, rows: Indices) -> Array:
        """Return the diagonal entries of `rows`."""
        self.evaluations += len(rows)
        return np.asarray(self.matrix[rows, rows], dtype=np.float64)
