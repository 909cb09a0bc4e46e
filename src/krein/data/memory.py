"""Objects that one process compares with several threads, and the case that all are in memory."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import add as plus
from typing import Any

import numpy as np

from ..compare.pairs import Array, Counter, Indices
from ..compare.workers import count_workers, in_order, progress
from ..core.moments import ClassMoments, OrderedSum, ordered_sum
from ..core.pcvm.rows import Features, FeaturesInMemory
from ..measures import Measure
from .dataset import (
    Add,
    Chunk,
    Dataset,
    FeatureBlock,
    Provenance,
    Sample,
    Term,
    Value,
    encode,
    join_labels,
)

SHARED_BYTES = 2**26
"""A pass over fewer bytes than this runs in one thread: starting more is not worth it."""

RESULT_BYTES = 2**30
"""Maximum number of bytes of block results that wait to be summed."""


@dataclass(eq=False, kw_only=True)
class Local(Dataset):
    """Objects that this process reads chunk by chunk, and that its threads compare."""

    measure: Measure
    labels: Any = None
    weights: Array | None = None
    n_jobs: int | None = None
    verbose: int | None = None
    folder: str | os.PathLike[str] | None = None  # of temporary files; None: the system's choice

    def __post_init__(self) -> None:
        self.labels = None if self.labels is None else np.asarray(self.labels)
        self.workers = count_workers(self.n_jobs, default_all=self.measure.releases_gil)

    @abstractmethod
    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time (None: as is convenient)."""

    def map(self, function: Callable[[Chunk], Value], *, objects: bool = True) -> Iterator[Value]:
        """Yield `function(chunk)` over all objects in order."""
        return map(function, self.chunks(None, objects=objects))

    def reduce(
        self, term: Term[Value], add: Add[Value], block_rows: int, n_pairs: int, counter: Counter
    ) -> Value:
        """Return Σ term(block) over all blocks, from threads, in the fixed order."""
        return ordered_sum(self.each(term, block_rows, n_pairs, counter), add)

    def each(
        self, term: Term[Value], block_rows: int, n_pairs: int, counter: Counter
    ) -> Iterator[Value]:
        """Yield `term(block)` over all blocks in order, from several threads."""
        total = self.survey().n_objects * n_pairs
        with progress(total, "comparing", self.verbose) as shown:
            for part in in_order(term, self.chunks(block_rows), self.workers):
                shown.advance(block_rows * n_pairs)
                counter.add(part.compared, part.reused)
                yield part.value


@dataclass(eq=False)
class Memory(Local):
    """Objects in memory, in the form that the measure expects."""

    most_sampled = None

    objects: Any
    provenance: Provenance | None = field(default=None, kw_only=True)
    check_comparisons: int | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.objects)

    def merge_copies(self) -> int:
        """Let identical objects with the same label count as one object of their total weight."""
        if self.measure.accepts == "values":
            return 0
        keys = self.measure.content_keys(self.objects)
        codes = encode(self.labels, self.survey().classes)
        _, first, place = np.unique(
            np.rec.fromarrays([keys, codes]), return_index=True, return_inverse=True
        )
        if len(first) < len(keys):
            total = np.bincount(place, weights=self.weights)
            self.weights = np.zeros(len(keys))
            self.weights[first] = total
            self._survey = None
        return len(keys) - len(first)

    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time (None: all at once)."""
        whole = Chunk(0, self.objects, self.labels, self.weights, self.provenance, checked=True)
        if size is None or size >= len(self):
            yield whole
        else:
            yield from whole.blocks(size)

    def keep(
        self, term: Term[FeatureBlock], width: int, block_rows: int, counter: Counter
    ) -> tuple[Features, ClassMoments]:
        """Keep the values in one array."""
        F = np.empty((len(self), width))
        moments: OrderedSum[ClassMoments] = OrderedSum(plus)
        labels, start = [], 0
        for block in self.each(term, block_rows, width, counter):
            F[start : start + len(block.F)] = block.F
            start += len(block.F)
            labels.append((block.codes, block.weights))
            moments.push(block.moments)
        codes, weights = join_labels(labels)
        result = 8 * len(self.survey().classes) * width**2  # one per worker may wait
        workers = max(1, min(self.workers, RESULT_BYTES // result))
        each = map if F.nbytes < SHARED_BYTES else partial(in_order, workers=workers)
        return FeaturesInMemory(F, codes.astype(np.intp), weights, each), moments.result()

    def take(self, indices: Indices, measure: Measure) -> Sample:
        """Return the objects at these positions; if these are all objects, nothing is copied."""
        if len(indices) < len(self):
            return super().take(indices, measure)
        objects = measure.among(self.objects, indices, indices, len(self))
        return Sample(indices, objects, self.labels)
