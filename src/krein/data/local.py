"""Objects that this process reads itself: in memory, in files, or in memory maps.

While a chunk is read, threads compare earlier ones. Values that a fit needs for several passes stay
in memory, or are written to a temporary file.
"""

from __future__ import annotations

import mmap
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import add as plus
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Counter
from ..compare.progress import progress
from ..compare.workers import count_workers, in_order
from ..core.moments import ClassMoments, OrderedSum, ordered_sum
from ..core.pcvm.rows import Rows
from ..core.shapes import Array, Indices
from ..measures import Measure, take
from .chunks import Add, Chunk, Provenance, Term, Value, where_numbered
from .dataset import Dataset, FeatureBlock, Labelled, RowLabels
from .labelling import LABELS_AT_ONCE
from .storedrows import FileRows

CHUNK = 4096
"""Default number of objects read at a time."""

CHUNK_BYTES = 2**24
"""Number of bytes of a memory map that are read at once."""

ROWS_BETWEEN_RELEASES = 512
"""Number of rows of a memory map that are looked up together. For each row, the system may map the
64 kB around it."""

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
        with progress(total, "comparing", self.verbose) as advance:
            for value, cost in in_order(term, self.chunks(block_rows), self.workers):
                advance(block_rows * n_pairs)
                counter.include(cost)
                yield value

    def keep(
        self, term: Term[FeatureBlock], width: int, block_rows: int, counter: Counter
    ) -> tuple[Rows, ClassMoments]:
        """Write the values to a file of N·width doubles, which is deleted after the fit."""
        found = self.survey()
        shape = found.n_objects, width
        kept = FileRows(shape, len(found.classes), self.workers, self.folder)
        moments: OrderedSum[ClassMoments] = OrderedSum(plus)
        try:
            for block in self.each(term, block_rows, width, counter):
                kept.append(block)
                moments.push(block.moments)
            kept.finish()
            kept.watch(self.verbose)
        except BaseException:
            kept.close()
            raise
        return kept, moments.result()


@dataclass(eq=False)
class Memory(Local):
    """Objects in memory, in the form that the measure expects."""

    objects: Any
    provenance: Provenance | None = field(default=None, kw_only=True)
    check_comparisons: int | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.objects)

    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time (None: all at once)."""
        whole = Chunk(0, self.objects, self.labels, self.weights, self.provenance, checked=True)
        if size is None or size >= len(self):
            yield whole
        else:
            yield from whole.blocks(size)

    def keep(
        self, term: Term[FeatureBlock], width: int, block_rows: int, counter: Counter
    ) -> tuple[Rows, ClassMoments]:
        """Keep the values in one array."""
        F = np.empty((len(self), width))
        moments: OrderedSum[ClassMoments] = OrderedSum(plus)
        labels, start = [], 0
        for block in self.each(term, block_rows, width, counter):
            F[start : start + len(block.F)] = block.F
            start += len(block.F)
            labels.append(block.labels)
            moments.push(block.moments)
        rows = RowLabels.joined(labels)
        C = len(self.survey().classes)
        result = 8 * C * width**2  # one per worker may wait
        workers = max(1, min(self.workers, RESULT_BYTES // result))
        each = map if F.nbytes < SHARED_BYTES else partial(in_order, workers=workers)
        return Rows(F, rows.codes, rows.weights, n_classes=C, each=each), moments.result()

    def take(self, indices: Indices, measure: Measure) -> Labelled:
        """Return the objects at these positions; if these are all objects, nothing is copied."""
        if len(indices) == len(self):
            return self.objects, self.labels
        return take(self.objects, indices), self.labels[indices]


@dataclass(eq=False)
class SourceFile(Local):
    """The objects of a `krein.io` source, with its own labels or the given ones."""

    source: Any

    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield the chunks of the source."""
        start = 0
        for chunk in self.source.chunks(size or CHUNK):
            n = len(chunk.objects)
            part = slice(start, start + n)
            labels = chunk.labels if self.labels is None else self.labels[part]
            weights = None if self.weights is None else self.weights[part]
            for what, given in (("labels in y", labels), ("weights", weights)):
                if given is not None and len(given) != n:
                    raise ValueError(f"{chunk.where(len(given))}: there are no more {what}")
            labels = None if labels is None else np.asarray(labels)
            yield Chunk(start, chunk.objects, labels, weights, chunk.where)
            release_pages(getattr(self.source, "array", None))
            start += n
        for what, given in (("labels", self.labels), ("weights", self.weights)):
            if given is not None and start != len(given):
                raise ValueError(f"{start} objects but {len(given)} {what}")


@dataclass(eq=False)
class MappedFile(Local):
    """Rows of an array in a file, and labels in memory or in another file.

    Pages are released after use, so that they do not count as this process's memory.
    """

    X: NDArray[Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels is not None and self.labels.shape != (len(self.X),):
            raise ValueError(f"{len(self.X)} objects but labels of shape {self.labels.shape}")
        self.path = str(getattr(self.X, "filename", None) or "the array")

    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield the rows, `size` at a time."""
        row_bytes = max(1, self.X.nbytes // max(1, len(self.X)))
        size = size or (max(1, CHUNK_BYTES // row_bytes) if objects else LABELS_AT_ONCE)
        for start in range(0, len(self.X), size):
            part = slice(start, start + size)
            labels = None if self.labels is None else np.asarray(self.labels[part])
            weights = None if self.weights is None else self.weights[part]
            rows = np.array(self.X[part]) if objects else None
            release_pages(self.X)
            provenance = partial(where_numbered, f"{self.path}, row", start)
            yield Chunk(start, rows, labels, weights, provenance)

    def take(self, indices: Indices, measure: Measure) -> Labelled:
        """Return the rows at these positions, without reading others."""
        found = np.empty((len(indices), *self.X.shape[1:]), dtype=self.X.dtype)
        for start in range(0, len(indices), ROWS_BETWEEN_RELEASES):
            part = slice(start, start + ROWS_BETWEEN_RELEASES)
            found[part] = self.X[indices[part]]
            release_pages(self.X)
        objects = measure.among(measure.check(found), indices, indices, len(self.X))
        return objects, np.asarray(self.labels)[indices]


def release_pages(array: Any) -> None:
    """Release the pages of a mapped file that were read, so that they do not count as our memory.

    They stay in the system's cache and are mapped again on access. Pages that may have been changed
    by this process are kept.
    """
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and getattr(array, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
