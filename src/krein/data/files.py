"""Objects in files: read in chunks, as often as needed, while threads compare earlier ones."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import add as plus
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Array, Indices
from ..core.moments import ClassMoments
from ..core.ordered import OrderedSum
from ..core.pcvm.rows import Features
from ..measures import Measure
from .chunk import Chunk, Counted, CountedSum, ProvenanceRange
from .dataset import FeatureBlock, Sample
from .features import FeatureFile
from .memory import Local

CHUNK = 4096
"""Default number of objects read at a time."""

LABELS = 2**16
"""Number of labels of a memory map that are processed together."""

CHUNK_BYTES = 2**24
"""Number of bytes of a memory map that are read at once."""

ROWS_BETWEEN_RELEASES = 512
"""Number of rows of a memory map that are looked up together. For each row, the system may map the
64 kB around it."""


class Files(Local):
    """Base class of data sets in files, whose values are kept in a file as well."""

    def __init__(
        self,
        labels: NDArray[Any] | None,
        weights: Array | None,
        *,
        folder: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(labels, weights, **options)
        self.folder = folder

    def keep(
        self, function: Callable[[Chunk], Counted[FeatureBlock]], width: int, block_rows: int
    ) -> tuple[Features, Counted[ClassMoments]]:
        """Write the values to a file of N·width doubles, which is deleted after the fit."""
        n = self.survey().n_objects
        kept = FeatureFile((n, width), self.workers, self.folder)
        total: OrderedSum[Counted[ClassMoments]] = OrderedSum(CountedSum(plus))
        try:
            for part in self.each(function, block_rows, width):
                kept.append(part.value)
                total.push(part.holding(part.value.moments))
            kept.finish()
            kept.watch(self.verbose)
        except BaseException:
            kept.close()
            raise
        return kept, total.result()


class SourceFile(Files):
    """The objects of a `krein.io` source, with its own labels or the given ones."""

    def __init__(
        self, source: Any, labels: Any = None, weights: Array | None = None, **options: Any
    ) -> None:
        super().__init__(None if labels is None else np.asarray(labels), weights, **options)
        self.source = source

    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield the chunks of the source."""
        start = 0
        for chunk in self.source.chunks(size or CHUNK):
            n = len(chunk.objects)
            part = slice(start, start + n)
            labels = chunk.labels if self.labels is None else self.labels[part]
            if labels is not None and len(labels) != n:
                raise ValueError(f"{chunk.where(len(labels))}: there are no more labels in y")
            weights = None if self.weights is None else self.weights[part]
            if weights is not None and len(weights) != n:
                raise ValueError(f"{chunk.where(len(weights))}: there are no more weights")
            labels = None if labels is None else np.asarray(labels)
            yield Chunk(
                start, chunk.objects, labels, weights, (ProvenanceRange(chunk, 0, n),), size=n
            )
            release_pages(getattr(self.source, "array", None))
            start += n
        for name, given in (("labels", self.labels), ("weights", self.weights)):
            if given is not None and start != len(given):
                raise ValueError(f"{start} objects but {len(given)} {name}")


@dataclass(frozen=True)
class _MappedRows:
    path: str
    first: int

    def where(self, i: int) -> str:
        return f"{self.path}, row {self.first + i}"


class MappedFile(Files):
    """Rows of an array in a file, and labels in memory or in another file.

    Pages are released after use, so that they do not count as this process's memory.
    """

    def __init__(
        self, X: NDArray[Any], labels: Any = None, weights: Array | None = None, **options: Any
    ) -> None:
        given = labels if isinstance(labels, np.ndarray) or labels is None else np.asarray(labels)
        super().__init__(given, weights, **options)
        self.X = X
        if self.labels is not None and self.labels.shape != (len(X),):
            raise ValueError(f"{len(X)} objects but labels of shape {self.labels.shape}")
        self.path = str(getattr(X, "filename", None) or "the array")

    def chunks(self, size: int | None, *, objects: bool = True) -> Iterator[Chunk]:
        """Yield the rows, `size` at a time."""
        row_bytes = max(1, self.X.nbytes // max(1, len(self.X)))
        size = size or (max(1, CHUNK_BYTES // row_bytes) if objects else LABELS)
        for start in range(0, len(self.X), size):
            stop = min(start + size, len(self.X))
            labels = None if self.labels is None else np.asarray(self.labels[start:stop])
            weights = None if self.weights is None else self.weights[start:stop]
            rows = self._read(start, stop) if objects else None
            origin = ProvenanceRange(_MappedRows(self.path, start), 0, stop - start)
            yield Chunk(start, rows, labels, weights, (origin,), size=stop - start)

    def take(self, indices: Indices, measure: Measure) -> Sample:
        """Return the rows at these positions, without reading others."""
        found = np.empty((len(indices), *self.X.shape[1:]), dtype=self.X.dtype)
        for start in range(0, len(indices), ROWS_BETWEEN_RELEASES):
            part = slice(start, start + ROWS_BETWEEN_RELEASES)
            found[part] = self.X[indices[part]]
            release_pages(self.X)
        objects = measure.among(measure.check(found), indices, indices, len(self.X))
        return Sample(indices, objects, np.asarray(self.labels)[indices])

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        found = np.array(self.X[start:stop])
        release_pages(self.X)
        return found


def release_pages(array: Any) -> None:
    """Release the pages of a mapped file that were read, so that they do not count as our memory.

    They stay in the system's cache and are mapped again on access. Pages that may have been changed
    by this process are kept.
    """
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and getattr(array, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
