"""Objects in memory, and the code shared with objects in files: one process, several threads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from operator import add as plus
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Array, Indices
from ..compare.workers import count_workers, in_order, progress
from ..core.moments import ClassMoments, OrderedSum
from ..core.pcvm.rows import Features, FeaturesInMemory
from ..measures import Measure
from .dataset import Chunk, Counted, CountedSum, Dataset, FeatureBlock, ProvenanceRange, Sample

Result = TypeVar("Result")

SHARED_BYTES = 2**26
"""A pass over fewer bytes than this runs in one thread: starting more is not worth it."""

RESULT_BYTES = 2**30
"""Maximum number of bytes of block results that wait to be summed."""


class Local(Dataset):
    """Objects that this process reads chunk by chunk, and that its threads compare."""

    def __init__(
        self,
        labels: NDArray[Any] | None,
        weights: Array | None,
        *,
        measure: Measure,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.labels, self.weights = labels, weights
        self.measure = measure
        self.n_jobs = n_jobs
        self.workers = count_workers(n_jobs, default_all=measure.releases_gil)
        self.verbose = verbose

    @abstractmethod
    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time (None: as is convenient)."""

    def map(self, function: Callable[[Chunk], Result], *, objects: bool = True) -> Iterator[Result]:
        """Yield `function(chunk)` over all objects in order."""
        return map(function, self.chunks(None, objects=objects))

    def reduce(
        self,
        function: Callable[[Chunk], Counted[Result]],
        add: Callable[[Result, Result], Result],
        block_rows: int,
        n_pairs: int,
    ) -> Counted[Result]:
        """Return Σ function(block) over all blocks, from threads, in the fixed order."""
        total = OrderedSum(CountedSum(add))
        for part in self.each(function, block_rows, n_pairs):
            total.push(part)
        return total.result()

    def each(
        self, function: Callable[[Chunk], Counted[Result]], block_rows: int, n_pairs: int
    ) -> Iterator[Counted[Result]]:
        """Yield `function(block)` over all blocks in order, from several threads."""
        total = self.survey().n_objects * n_pairs
        with progress(total, "comparing", self.verbose) as shown:
            for part in in_order(function, self.chunks(block_rows), self.workers):
                shown.advance(part.objects * n_pairs)
                yield part


class Memory(Local):
    """Objects in memory, in the form that the measure expects."""

    most_sampled = None

    def __init__(
        self,
        objects: Any,
        labels: NDArray[Any] | None = None,
        weights: Array | None = None,
        *,
        provenance: tuple[ProvenanceRange, ...] = (),
        spent: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(labels, weights, **options)
        self.objects, self.provenance, self.spent = objects, provenance, spent

    def __len__(self) -> int:
        return len(self.objects)

    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time (None: all at once)."""
        n = len(self)
        whole = Chunk(
            0, self.objects, self.labels, self.weights, self.provenance, checked=True, size=n
        )
        if size is None or size >= n:
            yield whole
            return
        yield from whole.blocks(size)

    def keep(
        self, function: Callable[[Chunk], Counted[FeatureBlock]], width: int, block_rows: int
    ) -> tuple[Features, Counted[ClassMoments]]:
        """Keep the values in one array."""
        n = len(self)
        F, codes = np.empty((n, width)), np.empty(n, dtype=np.intp)
        weights: Array | None = None
        total: OrderedSum[Counted[ClassMoments]] = OrderedSum(CountedSum(plus))
        start = 0
        for part in self.each(function, block_rows, width):
            block = part.value
            rows = slice(start, start + len(block.F))
            F[rows], codes[rows] = block.F, block.codes
            if block.weights is not None:
                weights = np.empty(n) if weights is None else weights
                weights[rows] = block.weights
            total.push(part.holding(block.moments))
            start = rows.stop
        result = 8 * len(self.survey().classes) * width**2  # one per worker may wait
        workers = max(1, min(self.workers, RESULT_BYTES // result))
        each = map if F.nbytes < SHARED_BYTES else partial(in_order, workers=workers)
        return FeaturesInMemory(F, codes, weights, each), total.result()

    def take(self, indices: Indices, measure: Measure) -> Sample:
        """Return the objects at these positions; if these are all objects, nothing is copied."""
        if len(indices) < len(self):
            return super().take(indices, measure)
        assert self.labels is not None
        objects = measure.among(self.objects, indices, indices, len(self))
        return Sample(indices, objects, self.labels)
