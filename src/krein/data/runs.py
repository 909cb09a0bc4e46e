"""Work on partitions: divide them into runs, assemble chunks, compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..compare.pairs import Array, Indices
from ..compare.workers import limit_blas_threads
from ..core.moments import ClassMoments
from ..measures import Measure, take
from ..measures.base import Objects, joined
from .chunk import Chunk, Counted, ProvenanceRange, aligned
from .dataset import FeatureBlock

Result = TypeVar("Result")
Cut = list[tuple[int, int, int]]
"""Runs of partitions: number, from, to."""


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
    """Put the chunk together and run the function on it."""
    return function(gather_chunk(start, cut, objects, labels, weights))


def gather_chunk(
    start: int,
    cut: Cut,
    objects: list[Any] | None,
    labels: list[Any],
    weights: list[Any] | None,
) -> Chunk:
    """Put a chunk together from what it takes of partitions."""
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
    """Return how many objects a partition holds."""
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
