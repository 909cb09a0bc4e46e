"""Pairs of objects: row objects against column objects, compared in blocks, counted and cached."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from copy import copy
from os import PathLike
from typing import Any

import numpy as np

from ..core.shapes import Array, Indices
from ..measures import Measure, PairError, get_measure, take
from ..measures.base import checked_objects
from ..measures.objects import Objects, refuse_unordered
from .cache import BlockCache, object_digests, was_made
from .progress import progress
from .workers import Result, count_workers, in_order, in_process

Evaluate = Callable[[Indices, Indices, bool], Array]
"""Computes the values of rows × columns; with True, of columns × rows."""

VALUES_BYTES = 2 * 2**20
"""Maximum size of a block: large enough for BLAS, small enough for the processor's cache."""

TRIANGLE_ROWS = 32
"""Number of rows per step when half of a symmetric block is compared."""

PART_SECONDS = 0.05
"""If time is limited, the clock is checked about this often."""


class OutOfTime(TimeoutError):
    """Comparisons were stopped, because the time given to them is over."""


class Counter:
    """Counts compared pairs and values read from a cache; thread-safe.

    A task returns its result and a counter of what it has cost; the caller adds that to its own.
    """

    def __init__(self, compared: int = 0, reused: int = 0) -> None:
        self.compared, self.reused = compared, reused
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, int]:
        return {"compared": self.compared, "reused": self.reused}

    def __setstate__(self, state: dict[str, int]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def reset(self) -> None:
        """Start at 0."""
        with self._lock:
            self.compared = self.reused = 0

    def add(self, compared: int = 0, reused: int = 0) -> None:
        """Add to the counts."""
        with self._lock:
            self.compared += compared
            self.reused += reused

    def include(self, cost: Counter) -> None:
        """Add the counts of a task."""
        self.add(cost.compared, cost.reused)


class Pairs:
    """Row objects against column objects: values of the measure in blocks, with every pair counted.

    While landmarks are chosen, rows and columns are the same objects; while fitting and
    predicting, the columns are the landmarks.

    `n_jobs` is the number of workers: threads if the measure releases Python's lock, processes
    otherwise (None: all processors, or one process). `cache` is a store of finished blocks; values
    read from it count as `reused`. `symmetrize` averages both directions of a measure that is not
    symmetric, at twice the comparisons. `evaluate` compares a block on another machine. Past
    `until`, on the monotonic clock, `OutOfTime` is raised between two parts of a block. `psd` says
    whether the values are positive semi-definite, if the measure does not declare it.

    Examples
    --------
    >>> from krein.compare import open_pairs
    >>> pairs = open_pairs("linear", [[1.0, 2.0], [3.0, 4.0]])
    >>> len(pairs), pairs.kind
    (2, 'similarity')
    """

    def __init__(
        self,
        measure: Measure,
        objects: Objects,
        others: Objects | None = None,
        *,
        n_jobs: int | None = None,
        cache: BlockCache | None = None,
        verbose: int | None = None,
        symmetrize: bool = False,
        evaluate: Evaluate | None = None,
        counter: Counter | None = None,
        until: float | None = None,
        psd: bool | None = None,
    ) -> None:
        self.measure = measure
        self.objects = objects
        self.others = objects if others is None else others
        self.kind, self.psd = measure.kind, measure.psd if psd is None else psd
        self.symmetric = measure.symmetric or symmetrize
        self.shape = (len(self.objects), len(self.others))
        self.at_hand = measure.at_hand(objects)
        """Whether all values are already in memory."""
        self.workers = count_workers(n_jobs, default_all=measure.releases_gil)
        self.verbose = verbose
        self.symmetrize = symmetrize
        self.evaluate = evaluate
        self.counter = counter or Counter()
        self.until = until
        self.cache = cache
        if cache is not None:
            self.row_digests = object_digests(self.objects)
            same = self.others is self.objects
            self.col_digests = self.row_digests if same else object_digests(self.others)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def evaluations(self) -> int:
        """Number of pairs compared so far."""
        return self.counter.compared

    def elsewhere(self, evaluate: Evaluate, workers: int) -> Pairs:
        """Return the same pairs, compared by `evaluate` on other machines."""
        found = copy(self)
        found.evaluate, found.workers = evaluate, workers
        return found

    def part(self, rows: Indices) -> Pairs:
        """Return the pairs among some of the objects; they are counted here too."""
        return Pairs(
            self.measure,
            take(self.objects, rows),
            n_jobs=self.workers,
            cache=self.cache,
            verbose=self.verbose,
            symmetrize=self.symmetrize,
            counter=self.counter,
        )

    def block_rows(self, n_cols: int) -> int:
        """Return the number of rows per block against `n_cols` columns."""
        return block_rows(self.measure, n_cols)

    def map_columns(
        self,
        function: Callable[[Indices, Array], Result],
        cols: Indices,
        *,
        rows: Indices | None = None,
        known: Array | None = None,
    ) -> Iterator[Result]:
        """Yield `function(row indices, block)` over all rows against `cols`, in row order.

        Makes one pass; a block is discarded once `function` has seen it. `known`, if given,
        contains the values between the objects `cols`, whose rows are not compared again. Several
        threads may share the work, and `function` runs in them: it must not write to data that
        other calls read or write. The blocks, and so the results, do not depend on the number of
        threads. Memory: a few blocks per thread. BLAS runs in one thread until the last result has
        been consumed.
        """
        cols = np.asarray(cols, dtype=np.intp)
        n = len(self) if rows is None else len(rows)
        size = self.block_rows(len(cols))

        def run(start: int) -> tuple[int, Result]:
            # indices are created block by block, so that nothing grows with the number of rows
            stop = min(start + size, n)
            part = np.arange(start, stop) if rows is None else np.asarray(rows[start:stop])
            if known is None:
                values = self.values(part, cols)
            else:
                values = with_known(part, cols, known, lambda new: self.values(part[new], cols))
            return len(part), function(part, values)

        with progress(n * len(cols), "comparing", self.verbose) as advance:
            for done, result in in_order(run, range(0, n, size), self.workers):
                advance(done * len(cols))
                yield result

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return the values of `rows` × `cols`, computed by the workers.

        If both are the same objects and the measure is symmetric, only a little more than half of
        the pairs are compared, and the others are mirrored.
        """
        rows, cols = np.asarray(rows, dtype=np.intp), np.asarray(cols, dtype=np.intp)
        same = self.others is self.objects and np.array_equal(rows, cols)
        n = len(rows)
        mirrored = same and self.symmetric and n > TRIANGLE_ROWS and self.measure.mirrored
        size = self.block_rows(len(cols))
        if mirrored:
            size = min(size, max(TRIANGLE_ROWS, -(-n // 16)))
        elif n <= size:
            return self.values(rows, cols)
        values = np.empty((n, len(cols)))

        def run(start: int) -> None:
            stop = min(start + size, n)
            if not mirrored:
                values[start:stop] = self.values(rows[start:stop], cols)
                return
            step = self._with_corner(rows[start:stop], rows[start:])
            corner = step[:, : stop - start]
            low = np.tril_indices(stop - start, -1)
            corner[low] = corner.T[low]
            values[start:stop, start:] = step
            values[stop:, start:stop] = step[:, stop - start :].T

        starts = range(0, n, size)
        numbers = [min(size, n - k) * (n - k if mirrored else len(cols)) for k in starts]
        with progress(sum(numbers), "comparing", self.verbose) as advance:
            for _, number in zip(in_order(run, starts, self.workers), numbers, strict=True):
                advance(number)
        return values

    def diagonal(self, rows: Indices) -> Array:
        """Return the value of each object with itself, counted."""
        rows = np.asarray(rows, dtype=np.intp)
        if self.others is not self.objects:
            raise ValueError("rows and columns are different objects: there is no diagonal")

        def compare(swapped: bool) -> Array:
            return np.asarray(self.measure.diagonal(take(self.objects, rows)), dtype=np.float64)

        return self._counted(compare, rows, None)

    def values(self, rows: Indices, cols: Indices) -> Array:
        """Return one block (n, m), counted, in the calling thread."""

        def compare(part: slice, swapped: bool) -> Array:
            try:
                if self.evaluate is not None:
                    values = self.evaluate(rows, cols[part], swapped)
                else:
                    A, B = take(self.objects, rows), take(self.others, cols[part])
                    values = self._call(self.measure.block, *((B, A) if swapped else (A, B)))
            except PairError as error:
                row, col = (error.col, error.row) if swapped else (error.row, error.col)
                raise PairError(row, part.start + col, error.reason) from error
            return values.T if swapped else values

        return self._counted(lambda swapped: self._in_parts(compare, cols, swapped), rows, cols)

    def _with_corner(self, rows: Indices, cols: Indices) -> Array:
        """Return one block whose columns begin with its rows, at fewer comparisons if possible."""
        if self.symmetrize or self.evaluate is not None or self.until is not None:
            return self.values(rows, cols)
        compared = 0

        def compare(swapped: bool) -> Array:
            nonlocal compared
            A, B = take(self.objects, rows), take(self.others, cols)
            values, compared = self._call(self.measure.corner_block, A, B)
            return values

        return self._counted(compare, rows, cols, lambda: compared)

    def values_each(self, rows: Indices, cols: Indices) -> Array:
        """Return the values (n, k) of `rows[i]` with the objects `cols[i]`, counted, in the calling
        thread."""

        def compare(part: slice, swapped: bool) -> Array:
            wanted = cols[:, part]
            used, places = np.unique(wanted, return_inverse=True)
            A, B = take(self.objects, rows), take(self.others, used)
            places = places.reshape(wanted.shape)
            try:
                if swapped:
                    return self._call(_each_swapped, self.measure, A, B, places)
                return self._call(self.measure.each, A, B, places)
            except PairError as error:
                raise PairError(error.row, part.start + error.col, error.reason) from error

        return self._counted(lambda swapped: self._in_parts(compare, cols, swapped), rows, cols)

    def _in_parts(
        self, compare: Callable[[slice, bool], Array], cols: Indices, swapped: bool
    ) -> Array:
        """Return the values to all columns: at once, or part by part if time is limited.

        The first part is one column; parts grow while they are fast.
        """
        n = cols.shape[-1]
        if self.until is None:
            return compare(slice(0, n), swapped)
        found, start, size = [], 0, 1
        while start < n:
            began = time.monotonic()
            if began > self.until:
                raise OutOfTime("the time for these comparisons is over")
            found.append(compare(slice(start, start + size), swapped))
            start += size
            size = 2 * size if time.monotonic() - began < PART_SECONDS else max(1, size // 2)
        return np.concatenate(found, axis=1)

    def _counted(
        self,
        compare: Callable[[bool], Array],
        rows: Indices,
        cols: Indices | None,
        number: Callable[[], int] | None = None,
    ) -> Array:
        """Return values from the cache, or compare, check, count and store them.

        `cols` are the columns (m,) of a block or (n, k) of each row, or None for the diagonal.
        `compare(swapped)` returns the values in one direction, or in the other. `number` tells how
        many pairs it has compared, by default all.
        """
        if self.cache is not None:
            key, shape = self._key(self.cache, rows, cols)
            found = self.cache.load(key, shape)
            if found is not None:
                self.counter.add(reused=found.size)
                return found
        both = self.symmetrize and cols is not None
        try:
            values = (compare(False) + compare(True)) / 2 if both else compare(False)
            check_finite(self.measure, values)
        except PairError as error:
            if cols is None:
                col = rows[error.row]
            else:
                col = cols[error.row, error.col] if cols.ndim == 2 else cols[error.col]
            raise PairError(int(rows[error.row]), int(col), error.reason) from error
        n = values.size if number is None else number()
        self.counter.add(compared=n * (2 if both else 1))
        if self.cache is not None:
            self.cache.store(key, values)
        return values

    def _key(
        self, cache: BlockCache, rows: Indices, cols: Indices | None
    ) -> tuple[str, tuple[int, ...]]:
        """Return the key of values in the cache, and their shape."""
        digests = self.row_digests[rows]
        if cols is None:
            return cache.key("diagonal", digests), rows.shape
        if cols.ndim == 2:
            return cache.key("each", digests, self.col_digests[cols.ravel()]), cols.shape
        return cache.key("block", digests, self.col_digests[cols]), (len(rows), len(cols))

    def _call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return `function(*arguments)`, from another process if threads would not help."""
        if self.workers > 1 and not self.measure.releases_gil:
            return in_process(function, *arguments, workers=self.workers)
        return function(*arguments)


def try_symmetry(
    measure: Measure, objects: Objects, symmetrize: bool, cache: str | PathLike[str] | None
) -> tuple[Objects, int]:
    """Return the objects, and the number of pairs compared to check that both directions agree.

    No pairs are compared if a cache shows that this has been checked before.
    """
    if cache is not None and measure.cacheable and was_made(cache):
        return objects, 0
    return measure.check_symmetry(objects, symmetrize)


def averages(measure: Measure, symmetrize: bool) -> bool:
    """Whether to compare both directions: if requested, unless they are known to be equal."""
    return symmetrize and not (measure.symmetric and measure.one_direction)


def open_cache(
    folder: str | PathLike[str] | None, measure: Measure, symmetrize: bool
) -> BlockCache | None:
    """Return the store of finished blocks; None without a cache or for precomputed values."""
    if folder is None or not measure.cacheable:
        return None
    return BlockCache(folder, measure, averages(measure, symmetrize))


def block_rows(measure: Measure, n_cols: int) -> int:
    """Return the number of rows per block against `n_cols` columns."""
    return max(1, min(VALUES_BYTES // 8, measure.block_pairs) // max(1, n_cols))


def check_finite(measure: Measure, values: Array) -> None:
    """Raise a `PairError` for the first value that is not finite."""
    # one pass and no temporary array: a sum is finite unless one of its terms is not
    if not np.isfinite(values.sum()) and not np.isfinite(values).all():
        place = tuple(np.argwhere(~np.isfinite(values))[0])
        reason = f"the measure {measure.name!r} gave {values[place]}"
        raise PairError(int(place[0]), int(place[-1]), reason)


def with_known(
    rows: Indices, cols: Indices, known: Array, compare: Callable[[Indices], Array]
) -> Array:
    """Return the values (n, m) of `rows`; `known` contains those of the rows `cols`.

    `compare(places)` returns the values of the rows at these positions, which are not among `cols`.
    """
    order = np.argsort(cols)
    place = order[np.searchsorted(cols, rows, sorter=order).clip(max=len(cols) - 1)]
    found = cols[place] == rows
    if not found.any():
        return compare(np.arange(len(rows)))
    values = np.empty((len(rows), known.shape[1]))
    values[found] = known[place[found]]
    if not found.all():
        values[~found] = compare(np.flatnonzero(~found))
    return values


def compare_each(pairs: Pairs, rows: Indices, cols: Indices) -> Array:
    """Return the values (n, k) of `rows[i]` with the objects `cols[i]`, distributed and counted.

    The second look uses it: every object is compared with its own candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import open_pairs
    >>> from krein.compare.pairs import compare_each
    >>> pairs = open_pairs("levenshtein", ["house", "mouse", "haus", "maus"])
    >>> compare_each(pairs, np.array([0, 2]), np.array([[1], [3]]))
    array([[1.],
           [1.]])
    """
    values = np.empty(cols.shape)
    size = pairs.block_rows(cols.shape[1])
    size = max(1, min(size, -(-len(rows) // (4 * pairs.workers))))

    def run(start: int) -> None:
        part = slice(start, start + size)
        values[part] = pairs.values_each(rows[part], cols[part])

    with progress(values.size, "looking again", pairs.verbose) as advance:
        for _ in in_order(run, range(0, len(rows), size), pairs.workers):
            advance(size * cols.shape[1])
    return values


def _each_swapped(measure: Measure, A: Objects, B: Objects, places: Indices) -> Array:
    """Return the values in the other direction: some of B, each with one of A."""
    values = np.empty(places.shape)
    for i, row in enumerate(places):
        try:
            values[i] = measure.block(take(B, row), take(A, np.array([i])))[:, 0]
        except PairError as error:
            raise PairError(i, error.row, error.reason) from error
    return values


def open_pairs(
    measure: Any,
    X: Any,
    *,
    measure_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    cache: str | PathLike[str] | None = None,
    verbose: int | None = None,
    symmetrize: bool = False,
) -> Pairs:
    """Return the pairs of the objects X among themselves, checked and ready to be compared.

    A plain function is checked on up to 8 pairs in both directions, which are counted, unless the
    cache shows that it has been checked before.

    Parameters
    ----------
    measure : str, Measure or callable
        A name from `krein.measures.available()`, a `Measure`, a function of two objects, or
        "precomputed" / "precomputed-distance".
    X : sequence of objects
        For a precomputed measure, the N×N matrix: an array, a memory map, or the path of an `.npy`
        file, which is read by block.
    measure_params : dict, optional
        Parameters of a measure given by name.
    n_jobs : int or None
        Workers. None: all processors for measures that release Python's lock, one process for a
        plain function. -1: all processors.
    cache : path, optional
        A folder for the finished blocks of one measure (a folder of another measure is refused); a
        later run compares only missing blocks. Blocks are identified by the contents of their
        objects, so one folder serves folds, refits and predictions. A block is reused only as a
        whole, when the same rows meet the same columns. A function is identified by its code and
        everything it closes over, but not by what it reads from its module: use another folder if
        that changes. Not used with a matrix.
    verbose : int or None
        If standard error is a terminal, None shows a progress bar for work that takes longer than
        two seconds, 1 always shows one, and 0 never does. If it is not, 1 announces how many pairs
        will be compared, and about how long it will take, if that is longer than ten seconds.
    symmetrize : bool
        Average both directions of a measure or matrix that is not symmetric. For new objects, a
        matrix contains only one direction: `open_new_pairs` uses its n × N values unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import open_pairs
    >>> pairs = open_pairs("levenshtein", ["house", "mouse", "haus"])
    >>> pairs.block(np.arange(3), np.array([0]))
    array([[0.],
           [1.],
           [2.]])
    >>> pairs.evaluations
    3
    """
    refuse_unordered(X)  # before the measure looks at the objects
    chosen = get_measure(measure, measure_params).decide(X)
    objects = checked_objects(chosen, X)
    all_rows = np.arange(len(objects))
    objects = chosen.among(objects, all_rows, all_rows, len(objects))
    objects, spent = try_symmetry(chosen, objects, symmetrize, cache)
    return Pairs(
        chosen,
        objects,
        n_jobs=n_jobs,
        cache=open_cache(cache, chosen, symmetrize),
        verbose=verbose,
        symmetrize=averages(chosen, symmetrize),
        counter=Counter(spent),
    )


def open_new_pairs(
    measure: Any,
    X: Any,
    landmarks: Any,
    *,
    measure_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    cache: str | PathLike[str] | None = None,
    verbose: int | None = None,
    symmetrize: bool = False,
) -> Pairs:
    """Return the pairs of new objects X (rows) with the landmarks (columns 0 … m − 1).

    `landmarks` are the landmark objects, in the form that the measure stores: `landmark_objects_`
    of a fitted model, or what `measure.check` returned. The other parameters are the same as in
    `open_pairs`.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import open_new_pairs
    >>> pairs = open_new_pairs("levenshtein", ["louse"], ["house", "maus"])
    >>> pairs.block(np.arange(1), np.arange(2))
    array([[1., 3.]])
    """
    chosen = get_measure(measure, measure_params).decide(landmarks)
    objects = checked_objects(chosen, X)
    if not chosen.symmetric:
        chosen.check_symmetry(objects, symmetrize)
    return Pairs(
        chosen,
        objects,
        chosen.landmarks_for(objects, landmarks),
        n_jobs=n_jobs,
        cache=open_cache(cache, chosen, symmetrize),
        verbose=verbose,
        symmetrize=averages(chosen, symmetrize),
    )
