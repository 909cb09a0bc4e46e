"""Pairs whose values somebody has computed already."""

from __future__ import annotations

import threading
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..measures.base import Array
from .matrix import find_wrong, is_mapped, refuse_entry
from .pairs import Indices, Pairs
from .workers import count_workers


class MatrixPairs(Pairs):
    """Values that somebody has computed already. Reading an entry counts as comparing a pair.

    The matrix may be of any real type, and a memory map (`mapped`): entries are read, and turned
    into float64, block by block. `symmetrize` averages both directions as they are read; `watch`
    refuses NaN, infinity and negative distances in what is read. `rows` and `columns`, where given,
    are those of the matrix that the ones here stand for.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import MatrixPairs
    >>> MatrixPairs(np.eye(3)).block(np.array([0, 1]), np.array([1]))
    array([[0.],
           [1.]])
    """

    def __init__(
        self,
        matrix: NDArray[Any],
        kind: Literal["similarity", "dissimilarity"] = "similarity",
        *,
        rows: Indices | None = None,
        columns: Indices | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        symmetrize: bool = False,
        watch: bool = False,
    ) -> None:
        self.matrix = matrix
        self.mapped = is_mapped(matrix)
        self.kind = kind
        self.symmetric = True
        self.psd = None
        self.rows, self.columns = rows, columns
        self.shape = (
            matrix.shape[0] if rows is None else len(rows),
            matrix.shape[1] if columns is None else len(columns),
        )
        self.evaluations = 0
        self.workers = count_workers(n_jobs, default_all=True)
        self.verbose = verbose
        self.symmetrize = symmetrize
        self.watch = watch
        self._lock = threading.Lock()

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return the entries `rows` × `cols`."""
        rows, cols = np.asarray(rows, dtype=np.intp), np.asarray(cols, dtype=np.intp)
        size = self.block_rows(len(cols))
        if len(rows) <= size:
            return self._values(rows, cols)
        values = np.empty((len(rows), len(cols)))
        for start in range(0, len(rows), size):
            values[start : start + size] = self._values(rows[start : start + size], cols)
        return values

    def diagonal(self, rows: Indices) -> Array:
        """Return the diagonal entries of `rows`."""
        with self._lock:
            self.evaluations += len(rows)
        if self.rows is not None:
            rows = self.rows[rows]
        values = np.asarray(self.matrix[rows, rows], dtype=np.float64)
        if self.watch:
            wrong = find_wrong(values[:, None], self.kind)
            if wrong is not None:
                row = int(rows[wrong[0]])
                refuse_entry(values[wrong[0]], (row, row))
        return values

    def _values(self, rows: Indices, cols: Indices) -> Array:
        with self._lock:
            self.evaluations += len(rows) * len(cols)
        if self.rows is not None:
            rows = self.rows[rows]
        if self.columns is not None:
            cols = self.columns[cols]
        values = np.asarray(self.matrix[np.ix_(rows, cols)], dtype=np.float64)
        if self.symmetrize:
            values = (values + self.matrix[np.ix_(cols, rows)].T) / 2
        if self.watch:
            wrong = find_wrong(values, self.kind)
            if wrong is not None:
                i, j = wrong
                refuse_entry(values[i, j], (int(rows[i]), int(cols[j])))
        return values

    def part(self, rows: Indices, cols: Indices) -> MatrixPairs:
        """Return some rows and columns of the matrix, without a copy."""
        return MatrixPairs(
            self.matrix,
            self.kind,
            rows=rows if self.rows is None else self.rows[rows],
            columns=cols if self.columns is None else self.columns[cols],
            n_jobs=self.workers,
            verbose=self.verbose,
            symmetrize=self.symmetrize,
            watch=self.watch,
        )
