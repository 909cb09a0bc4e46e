"""Compare every object with its own candidates, for the second look."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..measures import Measure, PairError, take
from ..measures.base import Array, Objects
from .pairs import Indices, Pairs, check_finite
from .progress import progress
from .workers import in_order, in_process


def compare_each(pairs: Pairs, rows: Indices, cols: Indices) -> Array:
    """Return the values (n, k) of `rows[i]` with the objects `cols[i]`, distributed and counted.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import open_pairs
    >>> from krein.compare.each import compare_each
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
        values[part] = _compared(pairs, rows[part], cols[part])

    with progress(values.size, "looking again", pairs.verbose) as shown:
        for _ in in_order(run, range(0, len(rows), size), pairs.workers):
            shown.advance(size * cols.shape[1])
    return values


def _compared(pairs: Pairs, rows: Indices, cols: Indices) -> Array:
    """Return the values of some rows, in the calling thread or in another process."""
    found = pairs.stored.load(rows, cols)
    if found is not None:
        pairs.counter.add(reused=found.size)
        return found
    used, places = np.unique(cols, return_inverse=True)
    A, B, places = take(pairs.objects, rows), take(pairs.others, used), places.reshape(cols.shape)
    in_processes = pairs.workers > 1 and not pairs.measure.releases_gil

    def compare(function: Callable[..., Array]) -> Array:
        if in_processes:
            return in_process(function, pairs.measure, A, B, places, workers=pairs.workers)
        return function(pairs.measure, A, B, places)

    try:
        values = compare(each)
        if pairs.symmetrize:
            values = (values + compare(each_swapped)) / 2
        check_finite(pairs.measure, values)
    except PairError as error:
        col = int(cols[error.row, error.col])
        raise PairError(int(rows[error.row]), col, error.reason) from error
    pairs.counter.add(compared=values.size * (2 if pairs.symmetrize else 1))
    pairs.stored.store(values, rows, cols)
    return values


def each(measure: Measure, A: Objects, B: Objects, places: Indices) -> Array:
    """Return the values of each of A with some of B; runs in another process."""
    return measure.each(A, B, places)


def each_swapped(measure: Measure, A: Objects, B: Objects, places: Indices) -> Array:
    """Return the values in the other direction: some of B, each with one of A."""
    values = np.empty(places.shape)
    for i, row in enumerate(places):
        try:
            values[i] = measure.block(take(B, row), take(A, np.array([i])))[:, 0]
        except PairError as error:
            raise PairError(i, error.row, error.reason) from error
    return values
