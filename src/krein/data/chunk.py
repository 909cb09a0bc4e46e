"""Some consecutive objects, where each of them came from, and their values to the landmarks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ..compare.each import compare_each
from ..compare.pairs import Array, Indices, Pairs, averages, open_cache, with_known
from ..measures import Measure, PairError, RefusedObject
from ..measures.base import Objects

Value = TypeVar("Value")
Other = TypeVar("Other")


class ObjectError(ValueError):
    """An object that cannot be compared; the message says where it comes from and why.

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
    object 1, with landmark 1 (object 2): closeness raised ZeroDivisionError: float division by zero
    """


class Provenance(Protocol):
    """Where objects came from: a chunk of a file, a partition."""

    def where(self, i: int) -> str:
        """Return a description of where the i-th of its objects is."""


@dataclass(frozen=True)
class ProvenanceRange:
    """`count` objects of a chunk: those of `source` starting with number `first`."""

    source: Provenance
    first: int
    count: int


@dataclass(frozen=True)
class Chunk:
    """Objects `start`, `start` + 1, …, with labels and weights if there are any."""

    start: int
    objects: Any  # None if only labels were requested
    labels: Any = None
    weights: Array | None = None
    provenance: tuple[ProvenanceRange, ...] = ()  # empty for objects in memory
    checked: bool = False  # whether the objects are in the measure's form
    size: int = 0

    def __len__(self) -> int:
        return self.size

    def where(self, i: int) -> str:
        """Return a description of where the i-th object comes from."""
        number = self.start + i
        for run in self.provenance:
            if i < run.count:
                return run.source.where(run.first + i)
            i -= run.count
        return f"object {number}"

    def cut(self, a: int, b: int) -> Chunk:
        """Return the objects from the a-th up to the b-th of the chunk."""
        provenance, begin = [], 0
        for run in self.provenance:
            low, high = max(a, begin), min(b, begin + run.count)
            if low < high:
                first = run.first + low - begin
                provenance.append(ProvenanceRange(run.source, first, high - low))
            begin += run.count
        return replace(
            self,
            start=self.start + a,
            objects=None if self.objects is None else self.objects[a:b],
            labels=None if self.labels is None else self.labels[a:b],
            weights=None if self.weights is None else self.weights[a:b],
            provenance=tuple(provenance),
            size=b - a,
        )

    def blocks(self, block_rows: int) -> Iterator[Chunk]:
        """Yield the objects in order, `block_rows` at a time."""
        for a in range(0, len(self), block_rows):
            yield self.cut(a, min(a + block_rows, len(self)))

    def in_form(self, measure: Measure, *, part: bool = True) -> Objects:
        """Return the objects in the measure's form, or raise an error that names the refused one.

        With `part=False`, these are all objects, and a warning of the measure may count them.
        """
        if self.checked:
            return self.objects
        try:
            return measure.check_part(self.objects) if part else measure.check(self.objects)
        except RefusedObject as error:
            raise ObjectError(f"{self.where(error.row)}: {_reason(error)}") from error
        except (TypeError, ValueError) as error:
            # the measure did not name the object: find the first one that it refuses on its own
            for i in range(len(self)):
                try:
                    measure.check(self.objects[i : i + 1])
                except (TypeError, ValueError) as alone:
                    raise ObjectError(f"{self.where(i)}: {_reason(alone)}") from error
            raise ObjectError(f"from {self.where(0)} on: {error}") from error


def _reason(error: Exception) -> str:
    """Return the reason for refusing an object, without its position."""
    return f"this {error.kind} {error.reason}" if isinstance(error, RefusedObject) else str(error)


@dataclass(frozen=True)
class Counted(Generic[Value]):
    """A value and its cost: objects seen, pairs compared, values read from a cache."""

    value: Value
    objects: int
    compared: int
    reused: int = 0

    def holding(self, value: Other) -> Counted[Other]:
        """Return another value with the same cost."""
        return Counted(value, self.objects, self.compared, self.reused)


@dataclass(frozen=True)
class CountedSum(Generic[Value]):
    """Adds counted values, using `add` for the values; it can be sent to other processes."""

    add: Callable[[Value, Value], Value]

    def __call__(self, a: Counted[Value], b: Counted[Value]) -> Counted[Value]:
        """Return a + b."""
        return Counted(
            self.add(a.value, b.value),
            a.objects + b.objects,
            a.compared + b.compared,
            a.reused + b.reused,
        )


@dataclass
class LandmarkColumns:
    """The landmarks that objects are compared with: takes a chunk, returns its values (n, m).

    `indices` are the landmarks' rows among all objects; the values of the objects at `known_rows`
    are already known. It can be sent to other processes; a cache is opened where it is used, once
    per process.
    """

    measure: Measure
    landmarks: Objects  # in the model's form
    indices: Indices  # (m,)
    known_rows: Indices  # (k,)
    known: Array  # (k, m)
    symmetrize: bool = False
    cache: str | os.PathLike[str] | None = None
    n_jobs: int | None = 1
    _opened: Any = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_opened": None}

    def __len__(self) -> int:
        return len(self.indices)

    def values(self, chunk: Chunk) -> Counted[Array]:
        """Return the values of the chunk to the landmarks; an error names the object."""
        pairs = self._pairs(chunk)
        cols = np.arange(len(self))

        def compare(places: Indices) -> Array:
            return pairs.values(places, cols)

        with self._naming(chunk, "landmark"):
            if len(self.known_rows):
                rows = chunk.start + np.arange(len(chunk))
                values = with_known(rows, self.known_rows, self.known, compare)
            else:
                values = compare(np.arange(len(chunk)))
        return Counted(values, len(chunk), pairs.counter.compared, pairs.counter.reused)

    def each(self, chunk: Chunk, places: Indices, columns: Indices) -> Counted[Array]:
        """Return the values (n, k) of the objects at `places` of the chunk, each with its own k."""
        pairs = self._pairs(chunk)
        with self._naming(chunk, "known object"):
            values = compare_each(pairs, places, columns)
        return Counted(values, len(places), pairs.counter.compared, pairs.counter.reused)

    def _pairs(self, chunk: Chunk) -> Pairs:
        """Return the pairs of a chunk with the landmarks."""
        objects = chunk.in_form(self.measure)
        try:
            landmarks = self.measure.landmarks_for(objects, self.landmarks)
        except ValueError as error:
            if not chunk.provenance:
                raise
            raise ObjectError(f"{chunk.where(0)}: {error}") from error
        if self.cache is not None and self._opened is None:
            self._opened = open_cache(self.cache, self.measure, self.symmetrize)
        return Pairs(
            self.measure,
            objects,
            landmarks,
            n_jobs=self.n_jobs,
            cache=self._opened,
            symmetrize=averages(self.measure, self.symmetrize),
        )

    @contextmanager
    def _naming(self, chunk: Chunk, what: str) -> Iterator[None]:
        """Name both objects in the error for a pair that cannot be compared."""
        try:
            yield
        except PairError as error:
            other = f"{what} {error.col} (object {self.indices[error.col]})"
            told = f"{chunk.where(error.row)}, with {other}: {error.reason}"
            raise ObjectError(told) from error


def joined(parts: Sequence[Any]) -> Any:
    """Return several sequences of objects as one: arrays and lists are concatenated, others added.

    Examples
    --------
    >>> from krein.data.chunk import joined
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


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask is not imported to find out.

    Examples
    --------
    >>> from krein.data.chunk import is_dask
    >>> is_dask(["house", "mouse"])
    False
    """
    return any(
        base.__module__.partition(".")[0] in ("dask", "dask_expr") for base in type(X).__mro__
    )


def aligned(item: Any) -> Any:
    """Return contiguous, aligned arrays; anything else unchanged.

    An array from a message may start at any byte, and BLAS then rounds differently. Also handles
    dataclasses and lists of arrays, such as the sums of a pass.
    """
    if isinstance(item, np.ndarray):
        return item if item.dtype == object else np.require(item, requirements=["C", "A"])
    if isinstance(item, list | tuple) and len(item) and isinstance(item[0], np.ndarray):
        return type(item)(aligned(part) for part in item)
    if is_dataclass(item) and not isinstance(item, type):
        old = {part.name: getattr(item, part.name) for part in fields(item) if part.init}
        new = {name: aligned(part) for name, part in old.items()}
        moved = {name: part for name, part in new.items() if part is not old[name]}
        return replace(item, **moved) if moved else item
    return item
