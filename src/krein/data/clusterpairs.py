"""Pairs of objects in memory that are compared on a cluster."""

from __future__ import annotations

from typing import Any

from ..compare import ObjectPairs
from ..compare.pairs import Indices
from ..measures import Measure, take
from ..measures.base import Array, Objects
from .client import fetched
from .tree import share


class ClusterPairs(ObjectPairs):
    """Objects that go to every worker once; a task names rows and columns alone.

    Counting, the cache, mirrored halves and the naming of failed pairs are those of `ObjectPairs`.
    """

    def __init__(self, pairs: ObjectPairs, client: Any, threads: int) -> None:
        super().__init__(
            pairs.measure,
            pairs.objects,
            cache=pairs.cache,
            verbose=pairs.verbose,
            symmetrize=pairs.symmetrize,
        )
        self.evaluations = pairs.evaluations
        self.client = client
        self.workers = 2 * threads  # threads here only wait for those there
        self._everything = share(client, (pairs.measure, pairs.objects))

    def _evaluate(self, rows: Indices, cols: Indices, swapped: bool = False) -> Array:
        task = self.client.submit(
            compare_candidates, self._everything, rows, cols, swapped, pure=False
        )
        (values,) = fetched(self.client, [task])
        return values


def compare_candidates(
    everything: tuple[Measure, Objects], rows: Indices, cols: Indices, swapped: bool
) -> Array:
    """Return the values of some candidates with others."""
    measure, objects = everything
    A, B = take(objects, rows), take(objects, cols)
    return measure.block(B, A) if swapped else measure.block(A, B)
