"""Objects read from files by chunks, as often as needed."""

from __future__ import annotations

import mmap
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Indices
from ..compare.progress import progress
from ..compare.workers import count_workers, in_order
from ..core.moments import ClassMoments
from ..core.ordered import OrderedSum
from ..core.pcvm.rows import Array
from ..measures.base import Objects
from .collection import Candidates, Collection, FeatureBlock, Work
from .columns import Counted, CountedSum
from .featurefile import FeatureFile
from .piece import Origin, Piece, joined
from .storedrows import StoredFeatures

Result = TypeVar("Result")

CHUNK = 4096
"""Objects read together where nothing else says how many."""

CHUNK_BYTES = 2**24
"""Bytes of a memory map that are read together."""

ROWS_BETWEEN_FORGETTING = 512
"""Rows of a memory map that are looked up together: with each the system may map 64 kB around."""


class Streamed(Collection):
    """Objects in files. The next chunk is read while threads compare those before it."""

    def __init__(
        self,
        *,
        n_jobs: int | None = None,
        threads: bool = True,
        verbose: int = 0,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.n_jobs = n_jobs
        self.workers = count_workers(n_jobs, default_all=threads)
        self.verbose = verbose
        self.folder = folder

    @abstractmethod
    def pieces(self, size: int | None, *, objects: bool = True) -> Iterator[Piece]:
        """Yield all objects in order, `size` at a time (None: as is convenient)."""

    def parts(self, term: Callable[[Piece], Result], *, objects: bool = True) -> Iterator[Result]:
        """Yield `term(piece)` over all objects in order."""
        return map(term, self.pieces(None, objects=objects))

    def total(
        self,
        term: Callable[[Piece], Counted[Result]],
        grid: int,
        add: Callable[[Result, Result], Result],
        work: Work,
    ) -> Counted[Result]:
        """Return Σ term(piece) over all blocks, from threads, in the fixed order."""
        total = OrderedSum(CountedSum(add))
        for part in self._each(term, grid, work):
            total.push(part)
        return total.result()

    def features(
        self,
        term: Callable[[Piece], Counted[FeatureBlock]],
        width: int,
        grid: int,
        work: Work,
        class_weights: Array | None,
    ) -> tuple[StoredFeatures, Counted[ClassMoments]]:
        """Write the features to a file of N·width doubles, which vanishes with the fit."""
        kept = FeatureFile((work.n_objects, width), class_weights, self.workers, self.folder)
        total: OrderedSum[Counted[ClassMoments]] = OrderedSum(CountedSum(add))
        try:
            for part in self._each(term, grid, work):
                kept.append(part.value.F, part.value.codes)
                total.push(part.holding(part.value.moments))
            kept.finish()
        except BaseException:
            kept.close()
            raise
        return kept, total.result()

    def _each(
        self, term: Callable[[Piece], Counted[Result]], grid: int, work: Work
    ) -> Iterator[Counted[Result]]:
        with progress(work.n_objects * work.pairs, "comparing", self.verbose) as shown:
            for part in in_order(term, self.pieces(grid), self.workers):
                shown.advance(part.objects * work.pairs)
                yield part


class SourceCollection(Streamed):
    """The objects of a `krein.io` source, with its labels or with those given."""

    def __init__(self, source: Any, y: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.source = source
        self.y = None if y is None else np.asarray(y)

    def pieces(self, size: int | None, *, objects: bool = True) -> Iterator[Piece]:
        """Yield the chunks of the source."""
        start = 0
        for chunk in self.source.chunks(size or CHUNK):
            n = len(chunk.objects)
            labels = chunk.labels if self.y is None else self.y[start : start + n]
            if labels is not None and len(labels) != n:
                raise ValueError(f"{chunk.where(len(labels))}: there are no more labels in y")
            yield Piece(start, chunk.objects, labels, (Origin(chunk, 0, n),))
            forget_pages(getattr(self.source, "array", None))
            start += n
        if self.y is not None and start != len(self.y):
            raise ValueError(f"{start} objects but {len(self.y)} labels")

    def in_memory(self, most: int) -> tuple[Objects, Any] | None:
        """Return all objects where they are no more than `most`, or can be read once only."""
        objects, labels, n = [], [], 0
        once = not getattr(self.source, "rereadable", True)
        for piece in self.pieces(None):
            n += len(piece)
            if n > most and not once:
                return None
            if piece.labels is None:
                raise ValueError(f"{piece.where(0)}: there are no labels to learn from")
            objects.append(piece.objects)
            labels.append(np.asarray(piece.labels))
        if n == 0:
            raise ValueError("there are no objects to learn from")
        return joined(objects), np.concatenate(labels)


@dataclass(frozen=True)
class _MappedRows:
    path: str
    first: int

    def where(self, i: int) -> str:
        return f"{self.path}, row {self.first + i}"


class MappedCollection(Streamed):
    """Rows of an array in a file, and labels in memory or in another file.

    Pages that were looked at are forgotten, lest they count as this process's memory.
    """

    reads_rows = True

    def __init__(self, X: NDArray[Any], y: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.X = X
        self.y = None if y is None else y if isinstance(y, np.ndarray) else np.asarray(y)
        if self.y is not None and self.y.shape != (len(X),):
            raise ValueError(f"{len(X)} objects but labels of shape {self.y.shape}")
        self.path = str(getattr(X, "filename", None) or "the array")

    def pieces(self, size: int | None, *, objects: bool = True) -> Iterator[Piece]:
        """Yield the rows, `size` at a time."""
        row_bytes = max(1, self.X.nbytes // max(1, len(self.X)))
        size = size or max(1, CHUNK_BYTES // row_bytes)
        for start in range(0, len(self.X), size):
            stop = min(start + size, len(self.X))
            labels = None if self.y is None else np.asarray(self.y[start:stop])
            rows = self._read(start, stop) if objects else None
            origin = Origin(_MappedRows(self.path, start), 0, stop - start)
            yield Piece(start, rows, labels, (origin,))

    def rows(self, indices: Indices) -> Candidates:
        """Return the rows at these places, without reading others."""
        found = np.empty((len(indices), *self.X.shape[1:]), dtype=self.X.dtype)
        for start in range(0, len(indices), ROWS_BETWEEN_FORGETTING):
            part = slice(start, start + ROWS_BETWEEN_FORGETTING)
            found[part] = self.X[indices[part]]
            forget_pages(self.X)
        return Candidates(indices, found, np.asarray(self.y)[indices])

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        found = np.array(self.X[start:stop])
        forget_pages(self.X)
        return found


def forget_pages(array: Any) -> None:
    """Have the pages of a mapped file that were looked at no longer count as our memory.

    They stay in the system's cache, and come back when they are looked at again. Not where they
    may have been changed for this process alone.
    """
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and getattr(array, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
