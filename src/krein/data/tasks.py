"""Functions that an engine runs: assemble chunks from partitions, compare them, merge their sums.

Dask's dashboard shows them by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add as plus
from typing import Any, TypeVar

import numpy as np

from ..compare.pairs import Array, Indices
from ..compare.workers import limit_blas_threads
from ..core.moments import ClassMoments
from ..core.ordered import FAN, ordered_sum
from ..measures import Measure, take
from ..measures.base import Objects
from .chunk import Chunk, Counted, CountedSum, ProvenanceRange, aligned, joined
from .dataset import FeatureBlock
from .engines import Engine, Task

Result = TypeVar("Result")
Add = Callable[[Any, Any], Any]
Cut = list[tuple[int, int, int]]
"""Runs of objects: number of the partition, first object, end (exclusive)."""


@dataclass(frozen=True)
class Partition:
    """One partition of a collection, by its number."""

    number: int

    def where(self, i: int) -> str:
        """Return the partition and the number of the object in it."""
        return f"partition {self.number}, object {i}"


def compare_chunk(
    function: Callable[[Chunk], Result],
    start: int,
    cut: Cut,
    objects: list[Any] | None,
    labels: list[Any],
    weights: list[Any] | None,
) -> Result:
    """Assemble the chunk and run the function on it."""
    return function(gather_chunk(start, cut, objects, labels, weights))


def gather_chunk(
    start: int,
    cut: Cut,
    objects: list[Any] | None,
    labels: list[Any],
    weights: list[Any] | None,
) -> Chunk:
    """Assemble a chunk from parts of partitions."""
    given = None if objects is None else [as_objects(part) for part in objects]
    told = [np.asarray(as_objects(part)) for part in labels]
    heavy = None
    if weights is not None and weights[0] is not None:
        heavy = [np.asarray(as_objects(part), dtype=np.float64) for part in weights]
    for i, (p, a, b) in enumerate(cut):
        for what, found in (("objects", given), ("labels", told), ("weights", heavy)):
            if found is not None and len(found[i]) != b - a:
                raise ValueError(
                    f"partition {p}: {b - a} {what} were expected, but {len(found[i])} were "
                    f"found; X and y must match, and must not change while they are read"
                )
    return Chunk(
        start,
        None if given is None else joined(given),
        joined(told),
        None if heavy is None else joined(heavy),
        tuple(ProvenanceRange(Partition(p), a, b - a) for p, a, b in cut),
        size=sum(b - a for _, a, b in cut),
    )


def cut_partition(part: Any, a: int, b: int) -> Any:
    """Return some objects of a partition."""
    return as_objects(part)[a:b]


def as_objects(part: Any) -> Any:
    """Return a partition as an array or a list."""
    if isinstance(part, np.ndarray):
        return aligned(part)
    return aligned(part.to_numpy()) if hasattr(part, "to_numpy") else list(part)


def count_objects(part: Any) -> int:
    """Return the number of objects in a partition."""
    return len(as_objects(part))


def block_moments(block: Counted[FeatureBlock]) -> Counted[ClassMoments]:
    """Return the moments of one kept part."""
    return block.holding(block.value.moments)


def compare_objects(
    everything: tuple[Measure, Objects], rows: Indices, cols: Indices, swapped: bool
) -> Array:
    """Return the values of some objects with others."""
    measure, objects = everything
    A, B = take(objects, rows), take(objects, cols)
    with limit_blas_threads():
        return measure.block(B, A) if swapped else measure.block(A, B)


@dataclass(frozen=True)
class SumBlocks:
    """The sum of a function over the blocks of a chunk."""

    function: Callable[[Chunk], Any]
    block_rows: int
    add: Callable[[Any, Any], Any]

    def __call__(self, chunk: Chunk) -> Any:
        """Return the sum for a chunk."""
        with limit_blas_threads():
            return ordered_sum(map(self.function, chunk.blocks(self.block_rows)), self.add)


@dataclass(frozen=True)
class JoinBlocks:
    """The values of a chunk, compared block by block."""

    function: Callable[[Chunk], Counted[FeatureBlock]]
    block_rows: int

    def __call__(self, chunk: Chunk) -> Counted[FeatureBlock]:
        """Return the values of a chunk, with their moments."""
        with limit_blas_threads():
            found = [self.function(block) for block in chunk.blocks(self.block_rows)]
        blocks = [part.value for part in found]
        total = ordered_sum((part.holding(0) for part in found), CountedSum(plus))
        weights = None
        if blocks[0].weights is not None:
            weights = np.concatenate([block.weights for block in blocks])
        return total.holding(
            FeatureBlock(
                np.concatenate([block.F for block in blocks]),
                np.concatenate([block.codes for block in blocks]),
                weights,
                ordered_sum((block.moments for block in blocks), plus),
            )
        )


@dataclass(frozen=True)
class Timed:
    """The number of seconds that a function takes per object of a chunk."""

    function: Callable[[Chunk], Counted[Any]]

    def __call__(self, chunk: Chunk) -> Counted[float]:
        """Run the function on a chunk, and return the seconds."""
        start = time.perf_counter()
        with limit_blas_threads():
            found = self.function(chunk)
        return found.holding((time.perf_counter() - start) / len(chunk))


def branches(engine: Engine, tasks: Sequence[Task], add: Add) -> list[Task]:
    """Return the sums of `FAN` results each, merged where they are stored."""
    parts = [list(tasks[i : i + FAN]) for i in range(0, len(tasks), FAN)]
    return engine.submit(merge_branch, [(add, part) for part in parts])


def tree_sum(engine: Engine, tasks: Sequence[Task], add: Add) -> Any:
    """Return the sum of the results in the fixed order, merged on the engine `FAN` at a time."""
    while len(tasks) > FAN:
        tasks = branches(engine, tasks, add)
    return ordered_sum(engine.gather(tasks), add)


def merge_branch(add: Add, parts: list[Any]) -> Any:
    """Return the sum of a branch of tasks."""
    return ordered_sum(parts, add)
