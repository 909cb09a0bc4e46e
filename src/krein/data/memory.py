"""Objects that one process compares with several threads, and the case that all are in memory."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from operator import add as plus
from typing import Any

import numpy as np

from ..compare.pairs import Array, Counter, Indices
from ..compare.workers import count_workers, in_order, progress
from ..core.moments import ClassMoments, OrderedSum, ordered_sum
from ..core.pcvm.rows import Features, FeaturesInMemory
from ..measures import Measure
from .dataset import Add, Chunk, Dataset, FeatureBlock, Origin, PassTerm, Sample, Value

SHARED_BYTES = 2**26
"""A pass over fewer bytes than this runs in one thread: starting more is not worth it."""

RESULT_BYTES = 2**30
"""Maximum number of bytes of block results that wait to be summed."""


class Local(Dataset):
    """Objects that this process reads chunk by chunk, and that its threads compare.

    `folder` is where temporary files go; None for the system's choice.
    """

    def __init__(
        self,
        labels: Any,
        weights: Array | None,
        *,
        measure: Measure,
        n_jobs: int | None = None,
        verbose: int = 0,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.labels = None if labels is None else np.asarray(labels)
        self.weights, self.measure = weights, measure
        self.n_jobs, self.verbose, self.folder = n_jobs, verbose, folder
        self.workers = count_workers(n_jobs, default_all=measure.releases_gil)

    @abstractmethod
    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time (None: as is convenient)."""

    def map(self, function: Callable[[Chunk], Value], *, objects: bool = True) -> Iterator[Value]:
        """Yield `function(chunk)` over all objects in order."""
        return map(function, self.chunks(None, objects=objects))

    def reduce(
        self,
        term: PassTerm[Value],
        add: Add[Value],
        block_rows: int,
        n_pairs: int,
        counter: Counter,
    ) -> Value:
        """Return Σ term(block) over all blocks, from threads, in the fixed order."""
        return ordered_sum(self.each(term, block_rows, n_pairs, counter), add)

    def each(
        self, term: PassTerm[Value], block_rows: int, n_pairs: int, counter: Counter
    ) -> Iterator[Value]:
        """Yield `term(block)` over all blocks in order, from several threads."""
        total = self.survey().n_objects * n_pairs
        with progress(total, "comparing", self.verbose) as shown:
            for part in in_order(term, self.chunks(block_rows), self.workers):
                shown.advance(block_rows * n_pairs)
                counter.add(part.compared, part.reused)
                yield part.value


class Memory(Local):
    """Objects in memory, in the form that the measure expects."""

    most_sampled = None

    def __init__(
        self,
        objects: Any,
        labels: Any = None,
        weights: Array | None = None,
        *,
        origin: Origin | None = None,
        check_comparisons: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(labels, weights, **options)
        self.objects, self.origin, self.check_comparisons = objects, origin, check_comparisons

    def __len__(self) -> int:
        return len(self.objects)

    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time (None: all at once)."""
        whole = Chunk(0, self.objects, self.labels, self.weights, self.origin, checked=True)
        if size is None or size >= len(self):
            yield whole
        else:
            yield from whole.blocks(size)

    def keep(
        self, term: PassTerm[FeatureBlock], width: int, block_rows: int, counter: Counter
    ) -> tuple[Features, ClassMoments]:
        """Keep the values in one array."""
        n = len(self)
        F, codes = np.empty((n, width)), np.empty(n, dtype=np.intp)
        weights: Array | None = None
        moments: OrderedSum[ClassMoments] = OrderedSum(plus)
        start = 0
        for block in self.each(term, block_rows, width, counter):
            rows = slice(start, start + len(block.F))
            F[rows], codes[rows] = block.F, block.codes
            if block.weights is not None:
                weights = np.empty(n) if weights is None else weights
                weights[rows] = block.weights
            moments.push(block.moments)
            start = rows.stop
        result = 8 * len(self.survey().classes) * width**2  # one per worker may wait
        workers = max(1, min(self.workers, RESULT_BYTES // result))
        each = map if F.nbytes < SHARED_BYTES else partial(in_order, workers=workers)
        return FeaturesInMemory(F, codes, weights, each), moments.result()

    def take(self, indices: Indices, measure: Measure) -> Sample:
        """Return the objects at these positions; if these are all objects, nothing is copied."""
        if len(indices) < len(self):
            return super().take(indices, measure)
        assert self.labels is not None
        objects = measure.among(self.objects, indices, indices, len(self))
        return Sample(indices, objects, self.labels)
