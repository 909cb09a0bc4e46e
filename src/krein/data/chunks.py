"""Chunks of objects, and their comparison with the landmarks.

A `Chunk` is a run of consecutive objects that knows where each of them came from, for `ObjectError`
and `ForeignObjectWarning`. `LandmarkColumns` compares chunks with the landmarks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Counter, Pairs, averages, compare_each, open_cache, with_known
from ..core.shapes import Array, Indices
from ..measures import Measure, PairError, RefusedObject
from ..measures.objects import Objects, take

Value = TypeVar("Value")


class ObjectError(ValueError):
    """An object that cannot be compared; the message says where it comes from and why.

    Attributes
    ----------
    where : str
        Description of the object, or of the pair: "words.csv, line 3, string 'haus'".
    reason : str
        Why it cannot be compared.
    row : int or None
        Number of the object among all objects, or in its partition if predictions are lazy. None
        if the object is not known.
    kind : str or None
        What the measure calls such an object ("sequence"), if it refused this one by itself.

    Examples
    --------
    >>> from krein import IKFD
    >>> from krein.data import ObjectError
    >>> def closeness(a, b):
    ...     return 1 / abs(a + b)
    >>> try:
    ...     IKFD(closeness, landmarks=[0, 2]).fit([1.0, -3.0, 3.0, 4.0] + 20 * [5.0], 12 * [0, 1])
    ... except ObjectError as error:
    ...     print(error)
    ...     print(error.row)
    object 1, with landmark 1 (object 2): closeness raised ZeroDivisionError: float division by zero
    1
    """

    def __init__(
        self, where: str, reason: str, row: int | None = None, kind: str | None = None
    ) -> None:
        super().__init__(where, reason, row, kind)  # so that it can be sent to other processes
        self.where, self.reason, self.row, self.kind = where, reason, row, kind

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


Provenance = Callable[[int], str]
"""Describes where the i-th of some objects comes from. It can be pickled: a bound method, or a
partial of one of the following functions."""


def where_numbered(what: str, first: int, i: int) -> str:
    """Describe the i-th object by its number: "partition 4, object 17"."""
    return f"{what} {first + i}"


def where_shifted(provenance: Provenance, first: int, i: int) -> str:
    """Describe the i-th object after this many."""
    return provenance(first + i)


def where_in_runs(runs: Sequence[tuple[Provenance, int]], i: int) -> str:
    """Describe the i-th object of several runs, given with their lengths."""
    for provenance, n in runs:
        if i < n:
            return provenance(i)
        i -= n
    raise IndexError("there are fewer objects")


def where_picked(chunk: Chunk, places: Indices, i: int) -> str:
    """Return where the i-th of some objects of a chunk comes from."""
    return chunk.where(int(places[i]))


@dataclass(frozen=True)
class Chunk:
    """Objects `start`, `start` + 1, …, with labels and weights if there are any."""

    start: int
    objects: Any  # None if only labels were requested
    labels: Any = None
    weights: Array | None = None
    provenance: Provenance | None = None  # None for objects in memory
    checked: bool = False  # whether the objects are in the measure's form

    def __len__(self) -> int:
        return len(self.labels if self.objects is None else self.objects)

    def where(self, i: int) -> str:
        """Return a description of where the i-th object comes from."""
        return f"object {self.start + i}" if self.provenance is None else self.provenance(i)

    def cut(self, a: int, b: int) -> Chunk:
        """Return the objects from the a-th up to the b-th of the chunk."""
        return replace(
            self,
            start=self.start + a,
            objects=None if self.objects is None else self.objects[a:b],
            labels=None if self.labels is None else self.labels[a:b],
            weights=None if self.weights is None else self.weights[a:b],
            provenance=self.provenance and partial(where_shifted, self.provenance, a),
        )

    def picked(self, places: Indices) -> Chunk:
        """Return some of the objects, without labels."""
        where = partial(where_picked, self, places)
        return Chunk(self.start, take(self.objects, places), provenance=where, checked=self.checked)

    def blocks(self, block_rows: int) -> Iterator[Chunk]:
        """Yield the objects in order, `block_rows` at a time."""
        for a in range(0, len(self), block_rows):
            yield self.cut(a, min(a + block_rows, len(self)))

    @classmethod
    def joined(cls, chunks: Sequence[Chunk]) -> Chunk:
        """Return consecutive labelled chunks as one, without weights."""
        return cls(
            chunks[0].start,
            joined([chunk.objects for chunk in chunks]),
            np.concatenate([chunk.labels for chunk in chunks]),
            provenance=partial(where_in_runs, [(chunk.where, len(chunk)) for chunk in chunks]),
        )

    def in_form(
        self, measure: Measure, places: Indices | None = None, *, part: bool = True
    ) -> Objects:
        """Return the objects (at `places`) in the measure's form; an error names the refused one.

        With `part=False`, these are all objects, and a warning of the measure may count them.
        """
        objects = self.objects if places is None else take(self.objects, places)
        if self.checked:
            return objects
        try:
            return measure.check_part(objects) if part else measure.check(objects)
        except (TypeError, ValueError) as error:
            i, refusal = _refused(measure, objects, error)
            if i is None:
                raise ObjectError(f"from {self.where(0)} on", str(error)) from error
            i = i if places is None else int(places[i])
            if not isinstance(refusal, RefusedObject):
                raise ObjectError(self.where(i), str(refusal), self.start + i) from error
            reason = f"this {refusal.kind} {refusal.reason}"
            raise ObjectError(self.where(i), reason, self.start + i, refusal.kind) from error


def _refused(measure: Measure, objects: Any, error: Exception) -> tuple[int | None, Exception]:
    """Return the position of the object that a measure refused, and the error about it alone."""
    if isinstance(error, RefusedObject):
        return error.row, error
    # the measure did not name the object: find the first one that it refuses on its own
    for i in range(len(objects)):
        try:
            measure.check(objects[i : i + 1])
        except (TypeError, ValueError) as alone:
            return i, alone
    return None, error


def joined(parts: Sequence[Any]) -> Any:
    """Return several sequences of objects as one: arrays and lists are concatenated, others added.

    Examples
    --------
    >>> from krein.data.chunks import joined
    >>> joined([["a"], ["b", "c"]])
    ['a', 'b', 'c']
    """
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    if isinstance(parts[0], list | tuple | np.ndarray):
        return [item for part in parts for item in part]
    return reduce(add, parts)


Costed = tuple[Value, Counter]
"""A value, and the comparisons that it has cost. Tasks return this."""

Term = Callable[[Chunk], Costed[Value]]
"""Computes the term of one block in a pass over all objects."""

Add = Callable[[Value, Value], Value]

Predict = Callable[[Chunk], NDArray[Any]]
"""Computes one result, or a row of results, for each object of a chunk."""


def add_costed(add: Add[Value], a: Costed[Value], b: Costed[Value]) -> Costed[Value]:
    """Return a + b, using `add` for the values."""
    (one, cost), (other, more) = a, b
    return add(one, other), Counter(cost.compared + more.compared, cost.reused + more.reused)


@dataclass
class LandmarkColumns:
    """The landmarks that objects are compared with: takes a chunk, returns its values (n, m).

    `indices` are the landmarks' rows among all objects; the objects at `compared_rows` have been
    compared before, with these `compared` values. It can be sent to other processes; a cache is
    opened where it is used, once per process.
    """

    measure: Measure
    landmarks: Objects  # in the model's form
    indices: Indices  # (m,)
    compared_rows: Indices  # (k,)
    compared: Array  # (k, m)
    symmetrize: bool = False
    cache: str | os.PathLike[str] | None = None
    n_jobs: int | None = 1
    until: float | None = None  # when to stop, on the monotonic clock
    _opened: Any = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_opened": None}

    def __len__(self) -> int:
        return len(self.indices)

    def values(self, chunk: Chunk, places: Indices | None = None) -> Costed[Array]:
        """Return the values of the chunk to the landmarks; an error names the object.

        With `places`, return only those of the objects at these positions.
        """
        cols = np.arange(len(self))
        places = np.arange(len(chunk)) if places is None else places

        def compare(pairs: Pairs) -> Array:
            if len(self.compared_rows) == 0:
                return pairs.values(places, cols)
            return with_known(
                chunk.start + places,
                self.compared_rows,
                self.compared,
                lambda new: pairs.values(places[new], cols),
            )

        return self._counted(chunk, compare)

    def each(self, chunk: Chunk, places: Indices, columns: Indices) -> Costed[Array]:
        """Return the values (n, k) of the objects at `places` of the chunk, each with its own k."""
        return self._counted(chunk, lambda pairs: compare_each(pairs, places, columns), known=True)

    def _counted(
        self, chunk: Chunk, compare: Callable[[Pairs], Array], *, known: bool = False
    ) -> Costed[Array]:
        """Return the values that `compare` takes from the pairs of a chunk with the landmarks.

        An error for a pair that cannot be compared names both objects.
        """
        objects = chunk.in_form(self.measure)
        try:
            landmarks = self.measure.landmarks_for(objects, self.landmarks, known=known)
        except ValueError as error:
            if chunk.provenance is None:
                raise
            raise ObjectError(chunk.where(0), str(error)) from error
        if self.cache is not None and self._opened is None:
            self._opened = open_cache(self.cache, self.measure, self.symmetrize)
        pairs = Pairs(
            self.measure,
            objects,
            landmarks,
            n_jobs=self.n_jobs,
            cache=self._opened,
            symmetrize=averages(self.measure, self.symmetrize),
            until=self.until,
        )
        try:
            values = compare(pairs)
        except PairError as error:
            i, j, column = error.row, error.col, "known object" if known else "landmark"
            where = f"{chunk.where(i)}, with {column} {j} (object {self.indices[j]})"
            raise ObjectError(where, error.reason, chunk.start + i) from error
        return values, pairs.counter
