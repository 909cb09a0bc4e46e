"""Pairs of objects and their values, compared when they are asked for and counted."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..measures import Measure, PairError, take
from ..measures.base import Array, Objects
from .progress import progress
from .workers import count_workers, in_order, in_process

if TYPE_CHECKING:
    from .cache import BlockCache

Result = TypeVar("Result")
Indices = NDArray[np.intp]

BLOCK_BYTES = 2 * 2**20
"""Values of one block at most: large enough for BLAS, small enough to stay near the processor."""

TRIANGLE_ROWS = 32
"""Rows of a step where half a symmetric block is compared."""


class Pairs(ABC):
    """Row objects against column objects: values of the measure by block, each pair counted.

    While fitting, rows and columns are the same objects; while predicting, the rows are new
    objects and the columns the landmarks.

    Examples
    --------
    >>> from krein.compare import open_pairs
    >>> pairs = open_pairs("linear", [[1.0, 2.0], [3.0, 4.0]])
    >>> len(pairs), pairs.kind
    (2, 'similarity')
    """

    kind: Literal["similarity", "dissimilarity"]
    symmetric: bool
    psd: bool | None
    evaluations: int
    """How many pairs were compared so far."""
    reused: int = 0
    """How many values came out of the cache instead."""
    shape: tuple[int, int]
    mapped: bool = False
    """Whether values are read from a file: reading all of them may take hours."""
    workers: int = 1
    verbose: int = 0

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return the (len(rows), len(cols)) values, counted."""

    @abstractmethod
    def diagonal(self, rows: Indices) -> Array:
        """Return the value of each object with itself, counted."""

    @abstractmethod
    def _values(self, rows: Indices, cols: Indices) -> Array:
        """Return one block, counted, in the calling thread."""

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
        Several threads may share the work, and `function` runs in them: it must not write to
        what other calls of it read or write. The blocks, and so the numbers, are the same
        whatever the number of threads. Memory: a few blocks a thread. Until the last result has
        been taken BLAS runs in one thread.
        """
        cols = np.asarray(cols, dtype=np.intp)
        n = len(self) if rows is None else len(rows)
        size = self.block_rows(len(cols))
        order = np.argsort(cols)

        def run(start: int) -> tuple[int, Result]:
            # indices are made block by block: nothing here grows with the number of rows
            stop = min(start + size, n)
            part = np.arange(start, stop) if rows is None else np.asarray(rows[start:stop])
            if core is None:
                return len(part), function(part, self._values(part, cols))
            values = with_known(
                part, cols, core, lambda unknown: self._values(part[unknown], cols), order
            )
            return len(part), function(part, values)

        with progress(n * len(cols), "comparing", self.verbose) as shown:
            for done, result in in_order(run, range(0, n, size), self.workers):
                shown.advance(done * len(cols))
                yield result

    def block_rows(self, n_cols: int) -> int:
        """How many rows make a block against `n_cols` columns."""
        return max(1, BLOCK_BYTES // (8 * max(1, n_cols)))

    def part(self, rows: Indices, cols: Indices) -> Pairs:
        """Return the pairs of some rows with some columns, each numbered anew."""
        return SubsetPairs(self, rows, cols)


def with_known(
    rows: Indices,
    cols: Indices,
    core: Array,
    compare: Callable[[Indices], Array],
    order: Indices | None = None,
) -> Array:
    """Return the values (n, m) of `rows` to `cols`, of which `core` (m, m) holds those of `cols`.

    `compare(places)` gives the values of the rows at these places, which are no columns. `order`
    is what sorts the columns, where it is known already.
    """
    order = np.argsort(cols) if order is None else order
    place = order[np.searchsorted(cols, rows, sorter=order).clip(max=len(cols) - 1)]
    known = cols[place] == rows
    if not known.any():
        return compare(np.arange(len(rows)))
    values = np.empty((len(rows), len(cols)))
    values[known] = core[place[known]]
    if not known.all():
        values[~known] = compare(np.flatnonzero(~known))
    return values


class SubsetPairs(Pairs):
    """Some of the objects of other pairs, numbered anew; what they compare is counted there.

    `chosen` are the rows, and the columns too unless `others` names these.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import MatrixPairs, SubsetPairs
    >>> some = SubsetPairs(MatrixPairs(np.diag([1.0, 2.0, 3.0])), np.array([0, 2]))
    >>> some.block(np.arange(2), np.arange(2))
    array([[1., 0.],
           [0., 3.]])
    """

    def __init__(self, pairs: Pairs, chosen: Indices, others: Indices | None = None) -> None:
        self.pairs, self.chosen = pairs, np.asarray(chosen, dtype=np.intp)
        self.others = self.chosen if others is None else np.asarray(others, dtype=np.intp)
        self.kind, self.symmetric, self.psd = pairs.kind, pairs.symmetric, pairs.psd
        self.shape = (len(self.chosen), len(self.others))
        self.workers, self.verbose = pairs.workers, pairs.verbose
        self.mapped = pairs.mapped

    @property
    def evaluations(self) -> int:  # type: ignore[override]
        """How many pairs were compared so far, by all."""
        return self.pairs.evaluations

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return the values of `rows` × `cols`."""
        return self.pairs.block(self.chosen[rows], self.others[cols])

    def diagonal(self, rows: Indices) -> Array:
        """Return the value of each object with itself."""
        if self.others is not self.chosen:
            raise ValueError("rows and columns are different objects: there is no diagonal")
        return self.pairs.diagonal(self.chosen[rows])

    def _values(self, rows: Indices, cols: Indices) -> Array:
        return self.pairs._values(self.chosen[rows], self.others[cols])

    def block_rows(self, n_cols: int) -> int:
        """How many rows make a block against `n_cols` columns."""
        return self.pairs.block_rows(n_cols)


class ObjectPairs(Pairs):
    """Objects compared by a measure when they are asked for.

    `n_jobs` is the number of workers: threads where the measure releases Python's lock,
    processes where not (None: all processors, or this process alone). `cache` is a store of
    finished blocks; what it serves is counted as `reused`, not as evaluated. `symmetrize`
    averages both directions of a measure that is not symmetric, at twice the comparisons.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import ObjectPairs, open_pairs
    >>> pairs = open_pairs("levenshtein", ["house", "mouse"])
    >>> isinstance(pairs, ObjectPairs), pairs.diagonal(np.arange(2))
    (True, array([0., 0.]))
    """

    def __init__(
        self,
        measure: Measure,
        objects: Objects,
        others: Objects | None = None,
        *,
        n_jobs: int | None = None,
        cache: BlockCache | None = None,
        verbose: int = 0,
        symmetrize: bool = False,
    ) -> None:
        self.measure = measure
        self.objects = objects
        self.others = objects if others is None else others
        self.kind = measure.kind
        self.symmetric = measure.symmetric or symmetrize
        self.psd = measure.psd
        self.shape = (len(self.objects), len(self.others))
        self.evaluations = 0
        self.reused = 0
        self.workers = count_workers(n_jobs, default_all=measure.releases_gil)
        self.verbose = verbose
        self.symmetrize = symmetrize
        self.cache = cache
        self._lock = threading.Lock()
        if cache is not None:
            self._row_digests = cache.digests(self.objects)
            same = self.others is self.objects
            self._col_digests = self._row_digests if same else cache.digests(self.others)

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return the values of `rows` × `cols`, shared out among the workers.

        Where both are the same objects and the measure is symmetric, a little more than half
        of the pairs are compared, and the others are their mirror images.
        """
        rows, cols = np.asarray(rows, dtype=np.intp), np.asarray(cols, dtype=np.intp)
        same = self.others is self.objects and np.array_equal(rows, cols)
        if same and self.symmetric and len(rows) > TRIANGLE_ROWS:
            return self._triangle(rows)
        size = self.block_rows(len(cols))
        if len(rows) <= size:
            return self._values(rows, cols)
        values = np.empty((len(rows), len(cols)))

        def run(start: int) -> None:
            values[start : start + size] = self._values(rows[start : start + size], cols)

        self._share_out(run, range(0, len(rows), size), size, values.size)
        return values

    def diagonal(self, rows: Indices) -> Array:
        """Return the value of each object with itself."""
        rows = np.asarray(rows, dtype=np.intp)
        if self.others is not self.objects:
            raise ValueError("rows and columns are different objects: there is no diagonal")
        key = None
        if self.cache is not None:
            key = self.cache.key("diagonal", self._row_digests[rows])
            stored = self.cache.load(key, (len(rows),))
            if stored is not None:
                self._count(reused=len(rows))
                return stored
        try:
            values = np.asarray(self.measure.diagonal(take(self.objects, rows)), dtype=np.float64)
        except PairError as error:
            raise self._named(error, rows, rows) from error
        if not np.isfinite(values).all():
            i = int(np.argmin(np.isfinite(values)))
            failed = PairError(i, i, f"the measure {self.measure.name!r} gave {values[i]}")
            raise self._named(failed, rows, rows)
        self._count(evaluated=len(rows))
        if self.cache is not None and key is not None:
            self.cache.store(key, values)
        return values

    def block_rows(self, n_cols: int) -> int:
        """How many rows make a block: by memory, or by what the measure says is enough."""
        return min(super().block_rows(n_cols), max(1, self.measure.block_pairs // max(1, n_cols)))

    def _triangle(self, rows: Indices) -> Array:
        """Return rows × rows from steps of some rows against those from there on."""
        n = len(rows)
        size = min(self.block_rows(n), max(TRIANGLE_ROWS, -(-n // 16)))
        values = np.empty((n, n))

        def run(start: int) -> None:
            stop = min(start + size, n)
            step = self._values(rows[start:stop], rows[start:])
            corner = step[:, : stop - start]
            low = np.tril_indices(stop - start, -1)
            corner[low] = corner.T[low]
            values[start:stop, start:] = step
            values[stop:, start:stop] = step[:, stop - start :].T

        self._share_out(run, range(0, n, size), size, n * (n + size) // 2)
        return values

    def _share_out(self, run: Callable[[int], None], starts: range, size: int, total: int) -> None:
        with progress(total, "comparing", self.verbose) as shown:
            for _ in in_order(run, starts, self.workers):
                shown.advance(total // len(starts))

    def _values(self, rows: Indices, cols: Indices) -> Array:
        key = None
        if self.cache is not None:
            key = self.cache.key("block", self._row_digests[rows], self._col_digests[cols])
            stored = self.cache.load(key, (len(rows), len(cols)))
            if stored is not None:
                self._count(reused=stored.size)
                return stored
        values = self._compare(rows, cols)
        if self.cache is not None and key is not None:
            self.cache.store(key, values)
        return values

    def _compare(self, rows: Indices, cols: Indices) -> Array:
        try:
            values = self._evaluate(rows, cols)
        except PairError as error:
            raise self._named(error, rows, cols) from error
        if self.symmetrize:
            try:
                back = self._evaluate(rows, cols, swapped=True)
            except PairError as error:
                swapped = PairError(error.col, error.row, error.reason)
                raise self._named(swapped, rows, cols) from error
            values = (values + back.T) / 2
        # one pass and no temporary array: a sum is finite unless something in it is not
        if not np.isfinite(values.sum()) and not np.isfinite(values).all():
            i, j = (int(k) for k in np.argwhere(~np.isfinite(values))[0])
            failed = PairError(i, j, f"the measure {self.measure.name!r} gave {values[i, j]}")
            raise self._named(failed, rows, cols)
        self._count(evaluated=values.size * (2 if self.symmetrize else 1))
        return values

    def _evaluate(self, rows: Indices, cols: Indices, swapped: bool = False) -> Array:
        """Return the values of `rows` with `cols` or, swapped, of `cols` with `rows`."""
        A, B = take(self.objects, rows), take(self.others, cols)
        if swapped:
            A, B = B, A
        if self.workers > 1 and not self.measure.releases_gil:
            return in_process(_block, self.measure, A, B, workers=self.workers)
        return self.measure.block(A, B)

    def _named(self, error: PairError, rows: Indices, cols: Indices) -> PairError:
        """Return the error with the positions of the objects among all of them."""
        return PairError(int(rows[error.row]), int(cols[error.col]), error.reason)

    def _count(self, evaluated: int = 0, reused: int = 0) -> None:
        with self._lock:
            self.evaluations += evaluated
            self.reused += reused


def _block(measure: Measure, A: Objects, B: Objects) -> Array:
    return measure.block(A, B)
