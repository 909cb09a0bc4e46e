"""Pairs that several models share: each is compared once, when it is first needed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import TRIANGLE_ROWS, Pairs
from ..core.shapes import Array, Indices
from ..measures import take
from ..measures.base import Measure
from ..measures.features import FeatureMap
from ..measures.objects import Objects


class PairStore:
    """The values of compared pairs, by column; missing ones are compared when needed.

    For a symmetric measure, only one direction is compared. Memory: N values for each object that
    was ever a column, at most N². Precomputed values are read, not stored. Several threads may read
    blocks at the same time if these have no pair in common.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import open_pairs
    >>> from krein.evaluation.store import PairStore
    >>> store = PairStore(open_pairs("levenshtein", ["house", "mouse", "haus"]))
    >>> store.read(np.array([0, 1]), np.array([0, 1]))
    array([[0., 1.],
           [1., 0.]])
    >>> before = store.compared
    >>> store.read(np.array([1, 0]), np.array([1, 0]))
    array([[0., 1.],
           [1., 0.]])
    >>> store.compared == before  # nothing is compared twice
    True
    """

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.given = not pairs.measure.cacheable
        self.complete = self.given
        """Whether all pairs are known."""
        self.seconds = 0.0
        """Time spent comparing so far, summed over all threads."""
        self._columns: dict[int, Array] = {}
        self._diagonal = np.full(len(pairs), np.nan)
        self._lock = threading.RLock()

    @property
    def compared(self) -> int:
        """Number of pairs compared so far; 0 for precomputed values."""
        return 0 if self.given else self.pairs.evaluations

    @property
    def wall_seconds(self) -> float:
        """Approximate wall time spent on comparisons: thread time divided by workers."""
        return 0.0 if self.given else self.seconds / self.pairs.workers

    def among_all(self) -> Pairs:
        """Return the pairs of all objects, which are read from here."""
        pairs = self.pairs
        workers, verbose = pairs.workers, pairs.verbose
        return Pairs(Shared(self), np.arange(len(pairs)), n_jobs=workers, verbose=verbose)

    def compare_all(self) -> None:
        """Compare all pairs that are missing."""
        everyone = np.arange(len(self.pairs))
        self.among_all().block(everyone, everyone)
        self.complete = True

    def read(self, rows: Indices, cols: Indices) -> Array:
        """Return the values of `rows` × `cols`."""
        if self.given:
            return self.pairs.values(rows, cols)
        values = self._known(rows, cols)
        missing = np.isnan(values)
        if missing.any():
            start = time.perf_counter()
            self._compare(rows, cols, missing)
            with self._lock:
                self.seconds += time.perf_counter() - start
            values = self._known(rows, cols)
        return values

    def read_row(self, row: int, others: Indices) -> Array:
        """Return the values of one object with others.

        The store keeps N values per column, so for a symmetric measure the object is the column.
        """
        one = np.array([row])
        return self.read(others, one)[:, 0] if self.pairs.symmetric else self.read(one, others)[0]

    def diagonal(self, rows: Indices) -> Array:
        """Return the value of each object with itself."""
        with self._lock:
            missing = rows[np.isnan(self._diagonal[rows])]
            if len(missing):
                self._diagonal[missing] = self.pairs.diagonal(missing)
            return self._diagonal[rows]

    def _known(self, rows: Indices, cols: Indices) -> Array:
        """Return the known values, with NaN for the others (values of pairs are finite)."""
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
        for some, others in rectangles(missing):
            self._put(rows[some], cols[others], self.pairs.values(rows[some], cols[others]))

    def _compare_square(self, objects: Indices) -> None:
        """Compare objects with each other, in one direction per pair."""
        new = np.flatnonzero(np.isnan(self._known(objects, objects)).any(axis=1))
        for start in range(0, len(new), TRIANGLE_ROWS):
            rows = objects[new[start : start + TRIANGLE_ROWS]]
            for some, others in rectangles(np.isnan(self._known(rows, objects))):
                # each row is stored as a column, where later rows find the pair
                values = self.pairs.values(objects[others], rows[some])
                self._put(objects[others], rows[some], values)

    def _put(self, rows: Indices, cols: Indices, values: Array) -> None:
        n = len(self.pairs)
        with self._lock:
            for k, j in enumerate(cols.tolist()):
                column = self._columns.setdefault(j, np.full(n, np.nan))
                column[rows] = values[:, k]


def columns(
    pairs: Pairs, cols: Indices, *, rows: Indices | None = None, known: Array | None = None
) -> Array:
    """Return the values (n, m) of all objects, or some `rows`, to m others.

    `known` are the values between the others.
    """
    blocks = pairs.map_columns(lambda _, block: block, cols, rows=rows, known=known)
    return np.concatenate(list(blocks))


@dataclass(frozen=True)
class Shared(Measure):
    """The measure of a store, whose objects are indices. Every model is fitted with it.

    Each model counts the pairs that it would compare without a store; the store counts those that
    were really compared.
    """

    store: PairStore

    def __post_init__(self) -> None:
        """Copy the properties of the measure behind the store."""
        for name in ("kind", "psd", "releases_gil", "expensive", "block_pairs", "name"):
            object.__setattr__(self, name, getattr(self.store.pairs.measure, name))

    def check(self, objects: Any) -> Objects:
        """Return the indices of objects as an array."""
        return np.asarray(objects, dtype=np.intp)

    def at_hand(self, objects: Objects) -> bool:
        """Whether the values are precomputed, and in memory."""
        return self.store.pairs.at_hand

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the values from the store; missing ones are compared."""
        return self.store.read(np.asarray(A), np.asarray(B))

    def diagonal(self, A: Objects) -> Array:
        """Return the value of each object with itself."""
        return self.store.diagonal(np.asarray(A))

    def contents(self, objects: Objects) -> Objects | None:
        """Return the objects behind the indices; None for a matrix of values."""
        pairs = self.store.pairs
        if self.store.given:
            return None
        return pairs.measure.contents(take(pairs.objects, np.asarray(objects)))

    def feature_map(
        self, contents: Objects, rng: np.random.Generator, *, nearest: bool = False
    ) -> tuple[FeatureMap, Any] | None:
        """Return the features that suit the measure behind the store."""
        return self.store.pairs.measure.feature_map(contents, rng, nearest=nearest)

    def as_given(self, contents: Objects) -> Objects:
        """Return the objects in the form in which they were given."""
        return self.store.pairs.measure.as_given(contents)

    def content_keys(self, objects: Objects, first: int = 0) -> NDArray[np.uint64]:
        """Return the keys of the objects themselves, as for a model without a store."""
        pairs = self.store.pairs
        return pairs.measure.content_keys(take(pairs.objects, np.asarray(objects)), first)

    def __deepcopy__(self, memo: Any) -> Shared:
        return self  # models are cloned, the values are not


def rectangles(missing: NDArray[np.bool_]) -> list[tuple[Indices, Indices]]:
    """Divide missing pairs into blocks of rows × columns, grouping equal rows or equal columns."""
    by_rows, by_cols = _alike(missing), _alike(missing.T)
    if len(by_rows) <= len(by_cols):
        return by_rows
    return [(rows, cols) for cols, rows in by_cols]


def _alike(mask: NDArray[np.bool_]) -> list[tuple[Indices, Indices]]:
    """Group equal rows of a mask; return the rows of each group, and the columns that are set."""
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
