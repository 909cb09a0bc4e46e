"""Pairs that several models look at: no value is computed again for another of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..measures import take
from ..measures.base import Array
from .pairs import TRIANGLE_ROWS, Indices, ObjectPairs

Result = TypeVar("Result")


class PairStore:
    """The values of pairs that were compared, by column; what is missing is compared when asked.

    Of a symmetric measure one direction is compared and serves for both. Memory: N values for
    each object that was ever a column, N² at most. One request is served at a time; the workers
    of `pairs` share it out.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import PairStore, open_pairs
    >>> store = PairStore(open_pairs("levenshtein", ["house", "mouse", "haus"]))
    >>> first = store.part(np.array([0, 1]))
    >>> first.block(np.arange(2), np.arange(2))
    array([[0., 1.],
           [1., 0.]])
    >>> before = store.evaluations
    >>> store.part(np.array([1, 0])).block(np.arange(2), np.arange(2))
    array([[0., 1.],
           [1., 0.]])
    >>> store.evaluations == before  # nothing is compared twice
    True
    """

    def __init__(self, pairs: ObjectPairs) -> None:
        self.pairs = pairs
        self.seconds = 0.0
        """Time spent comparing so far."""
        self._columns: dict[int, Array] = {}
        self._diagonal = np.full(len(pairs), np.nan)
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def evaluations(self) -> int:
        """How many pairs were compared so far."""
        return self.pairs.evaluations

    def part(self, rows: Indices, cols: Indices | None = None) -> SharedPairs:
        """Return the pairs of the objects `rows` among themselves, or with the objects `cols`."""
        return SharedPairs(self, rows, cols)

    def read(self, rows: Indices, cols: Indices) -> Array:
        """Return the values of `rows` × `cols`."""
        with self._lock:
            values = self._known(rows, cols)
            missing = np.isnan(values)
            if missing.any():
                start = time.perf_counter()
                self._compare(rows, cols, missing)
                self.seconds += time.perf_counter() - start
                values = self._known(rows, cols)
        return values

    def diagonal(self, rows: Indices) -> Array:
        """Return the value of each object with itself."""
        with self._lock:
            missing = rows[np.isnan(self._diagonal[rows])]
            if len(missing):
                start = time.perf_counter()
                self._diagonal[missing] = self.pairs.diagonal(missing)
                self.seconds += time.perf_counter() - start
            return self._diagonal[rows]

    def _known(self, rows: Indices, cols: Indices) -> Array:
        """Return the values that are there, NaN for the others: those of a pair are finite."""
        found = np.full((len(cols), len(rows)), np.nan)
        for k, j in enumerate(cols.tolist()):
            column = self._columns.get(j)
            if column is not None:
                found[k] = column[rows]
        if self.pairs.symmetric:
            for k in np.flatnonzero(np.isnan(found).any(axis=0)).tolist():
                mirror = self._columns.get(int(rows[k]))
                if mirror is not None:
                    found[:, k] = np.where(np.isnan(found[:, k]), mirror[cols], found[:, k])
        return np.ascontiguousarray(found.T)

    def _compare(self, rows: Indices, cols: Indices, missing: NDArray[np.bool_]) -> None:
        if self.pairs.symmetric:
            both = np.intersect1d(rows, cols)
            if len(both) > 1:
                self._compare_square(both)
                missing = np.isnan(self._known(rows, cols))
        for some, others in _rectangles(missing):
            self._put(rows[some], cols[others], self.pairs.block(rows[some], cols[others]))

    def _compare_square(self, objects: Indices) -> None:
        """Compare objects with each other, one direction of a pair alone."""
        missing = np.isnan(self._known(objects, objects))
        new = np.flatnonzero(missing.any(axis=1))
        if len(new) == 0:
            return
        if missing[np.ix_(new, new)].all():
            values = self.pairs.block(objects[new], objects[new])
            self._put(objects[new], objects[new], values)
            return
        for start in range(0, len(new), TRIANGLE_ROWS):
            rows = objects[new[start : start + TRIANGLE_ROWS]]
            for some, others in _rectangles(np.isnan(self._known(rows, objects))):
                # each row becomes a column, so that later rows find the pair there
                self._put(
                    objects[others], rows[some], self.pairs.block(objects[others], rows[some])
                )

    def _put(self, rows: Indices, cols: Indices, values: Array) -> None:
        n = len(self.pairs)
        if values.shape == (n, n) and self.pairs.symmetric and np.array_equal(rows, np.arange(n)):
            self._columns = {j: values[:, k] for k, j in enumerate(cols.tolist())}  # no copy
            return
        for k, j in enumerate(cols.tolist()):
            column = self._columns.setdefault(j, np.full(n, np.nan))
            column[rows] = values[:, k]


class SharedPairs(ObjectPairs):
    """Some objects of a store as if they had been opened alone; values come out of the store.

    `evaluations` counts what is asked for here, as it would without a store: the cost of a model
    that stands for itself. What was really compared is counted by the store.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import PairStore, open_pairs
    >>> store = PairStore(open_pairs("levenshtein", ["house", "mouse", "haus"]))
    >>> store.part(np.array([0]), np.array([1, 2])).block(np.arange(1), np.arange(2))
    array([[1., 2.]])
    """

    def __init__(self, store: PairStore, rows: Indices, cols: Indices | None = None) -> None:
        root = store.pairs
        self.store = store
        self.rows = np.asarray(rows, dtype=np.intp)
        self.cols = self.rows if cols is None else np.asarray(cols, dtype=np.intp)
        super().__init__(
            root.measure,
            take(root.objects, self.rows),
            None if cols is None else take(root.objects, self.cols),
            n_jobs=root.workers,
            symmetrize=root.symmetrize,
        )

    def part(self, rows: Indices, cols: Indices) -> SharedPairs:
        """Return the pairs of some rows with some columns."""
        return SharedPairs(self.store, self.rows[rows], self.cols[cols])

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return the values of `rows` × `cols`; what is missing is compared at once."""
        self.store.read(self.rows[rows], self.cols[cols])
        return super().block(rows, cols)

    def diagonal(self, rows: Indices) -> Array:
        """Return the value of each object with itself."""
        self._count(evaluated=len(rows))
        return self.store.diagonal(self.rows[rows])

    def map_columns(
        self,
        function: Callable[[Indices, Array], Result],
        cols: Indices,
        *,
        rows: Indices | None = None,
        core: Array | None = None,
    ) -> Iterator[Result]:
        """Yield as `Pairs.map_columns` does; what is missing is compared at once, before."""
        cols = np.asarray(cols, dtype=np.intp)
        asked = np.arange(len(self)) if rows is None else np.asarray(rows)
        if core is not None:
            asked = asked[~np.isin(asked, cols)]
        self.store.read(self.rows[asked], self.cols[cols])
        yield from super().map_columns(function, cols, rows=rows, core=core)

    def _compare(self, rows: Indices, cols: Indices) -> Array:
        values = self.store.read(self.rows[rows], self.cols[cols])
        self._count(evaluated=values.size * (2 if self.symmetrize else 1))
        return values


def _rectangles(missing: NDArray[np.bool_]) -> list[tuple[Indices, Indices]]:
    """Cut what is missing into blocks of rows × columns, by rows or by columns that are alike."""
    by_rows, by_cols = _alike(missing), _alike(missing.T)
    if len(by_rows) <= len(by_cols):
        return by_rows
    return [(rows, cols) for cols, rows in by_cols]


def _alike(mask: NDArray[np.bool_]) -> list[tuple[Indices, Indices]]:
    """Group the rows of a mask that are equal: the rows, and the columns where they hold."""
    open_ = np.flatnonzero(mask.any(axis=1))
    if len(open_) == 0:
        return []
    _, first, group = np.unique(
        np.packbits(mask[open_], axis=1), axis=0, return_index=True, return_inverse=True
    )
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group))
    return [
        (open_[rows], np.flatnonzero(mask[open_[k]]))
        for rows, k in zip(np.split(order, ends[:-1]), first, strict=True)
    ]
