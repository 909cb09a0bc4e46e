"""Rows outside memory, for the passes of one fit: `FileRows` in a temporary file, `EngineRows` on a
cluster. `StoredRows` is what they share.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..compare.progress import Advance, progress, unseen
from ..compare.workers import in_order, limit_blas_threads
from ..core.moments import ordered_sum
from ..core.pcvm.rows import (
    BasisFunction,
    Block,
    Rows,
    RowTerm,
    add_sums,
    basis_values,
    mean_features,
    rows_per_block,
    sums,
)
from ..core.shapes import Array, Codes, Indices
from .chunks import Costed
from .dataset import FeatureBlock, RowLabels
from .engine import Engine, Task, aligned, tree_sum


@dataclass(frozen=True)
class BlockMaker:
    """How stored numbers and codes become a block of the rows of one problem."""

    function: BasisFunction
    mean: Array | None  # None if there is nothing to subtract
    recode: Codes | None  # None for the classes themselves

    def features(self, values: Array, out: Array | None = None) -> Array:
        """Return the features of these values, in `out` if it is given, which may be `values`."""
        F = basis_values(self.function, values, out)
        if self.mean is None:
            return F
        return np.subtract(F, self.mean, out=out if F is values else F)

    def __call__(
        self, values: Array, codes: NDArray[Any], weights: Array | None, out: Array | None = None
    ) -> Block:
        """Return the block of these values, class codes and weights."""
        s = 1.0 if weights is None else weights
        return Block(self.features(values, out), recoded(codes, self.recode), s)


def recoded(codes: NDArray[Any], recode: Codes | None) -> Codes:
    """Return the classes of one problem; without `recode`, the codes themselves."""
    return codes.astype(np.intp) if recode is None else recode[codes]


class StoredRows(Rows, ABC):
    """Rows whose features are stored elsewhere. Classes are computed when needed.

    The stored numbers are either values of the measure, whose basis function is applied on reading,
    or the features themselves, which is faster for a hundred passes.
    """

    labels: RowLabels
    function: BasisFunction = "similarity"
    recode: Codes | None = None

    def __init__(self, shape: tuple[int, int], n_classes: int) -> None:
        self.shape, self.n_classes, self.mean = shape, n_classes, np.zeros(shape[1])
        self.block_rows = rows_per_block(shape[1])
        self.replaced: list[Array] = []
        """For all views of the storage: the mean of the features that have replaced the values."""
        self.advance: Advance = unseen
        """Counts the passes over the rows, on a progress bar."""
        self._bar = ExitStack()

    @property
    def y(self) -> Codes:  # type: ignore[override]
        """Class of each row: 8 bytes each."""
        return recoded(self.labels.codes, self.recode)

    @property
    def weight(self) -> Array | None:  # type: ignore[override]
        """Weight of each row."""
        return self.labels.weights

    def recoded(self, recode: Codes, n_classes: int) -> Self:
        """Return the rows of the problem in which class c is class recode[c]."""
        found = copy(self)
        found.recode = recode if self.recode is None else recode[self.recode]
        found.n_classes = n_classes
        return found

    def under(self, function: BasisFunction, *, keep: bool = True) -> Self:
        """Return a centred function of these values. One pass; nothing is copied.

        Unless `keep`, a second pass overwrites the values with it, which makes later passes faster.
        """
        found = copy(self)
        found.function = function
        found.mean = mean_features(found)
        if not keep:
            found.replace_values()
            self.replaced.append(found.mean)
        return found

    @abstractmethod
    def replace_values(self) -> None:
        """Replace the values by their features."""

    def total(self, term: RowTerm) -> tuple[Array, ...]:
        """Return Σ term(block) over all blocks, in the fixed order, and count the pass."""
        found = self.sum(term)
        self.advance(1)
        return tuple(found)

    @abstractmethod
    def sum(self, term: RowTerm) -> list[Array]:
        """Return Σ term(block) over all blocks, in the fixed order."""

    @property
    def maker(self) -> BlockMaker:
        """The recipe for the blocks of these rows."""
        if not self.replaced:
            return BlockMaker(self.function, self.mean, self.recode)
        if self.replaced[0] is not self.mean:
            raise RuntimeError("these values have been replaced by their features")
        return BlockMaker("similarity", None, self.recode)

    def watch(self, verbose: int | None) -> None:
        """Show the number of passes on a progress bar until `close`."""
        self.advance = self._bar.enter_context(progress(None, "searching", verbose, "passes"))

    def close(self) -> None:
        """Release the storage."""
        self._bar.close()


class FileRows(StoredRows):
    """Features (N, r) as doubles on disk, class codes (N,) in memory, one or two bytes each.

    They are read block by block, once per pass, from several threads.

    The file has no name, so its space is freed however the process ends.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        n_classes: int,
        workers: int,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(shape, n_classes)
        self.workers = workers
        place = os.fspath(folder) if folder is not None else tempfile.gettempdir()
        os.makedirs(place, exist_ok=True)
        needed, free = 8 * shape[0] * shape[1], shutil.disk_usage(place).free
        if needed > free:
            raise OSError(
                f"{place}: {shape[0]:,} × {shape[1]} features need {needed / 1e9:.1f} GB during "
                f"the fit, but only {free / 1e9:.1f} GB are free; choose a larger disk with cache= "
                f"or TMPDIR, or use fewer landmarks"
            )
        self._file = tempfile.TemporaryFile(dir=place)  # noqa: SIM115 - closed by `close`
        self._lock = threading.Lock()
        self._parts: list[RowLabels] = []

    def append(self, block: FeatureBlock) -> None:
        """Write the next rows."""
        self._file.write(np.ascontiguousarray(block.F, dtype=np.float64).data)
        self._parts.append(block.labels)

    def finish(self) -> None:
        """Mark the file as complete."""
        self._file.flush()
        self.labels, self._parts = RowLabels.joined(self._parts), []
        n = len(self.labels.codes)
        if n != self.shape[0]:
            raise ValueError(
                f"{n} objects were read, but there were {self.shape[0]} before: "
                f"the file has changed in the meantime"
            )

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        """Return the stored numbers of some rows, in `out` if it is given and large enough.

        Thread-safe.
        """
        r = self.shape[1]
        F = np.empty((stop - start, r)) if out is None else out[: stop - start]
        if self._pread(F.reshape(-1).data, 8 * start * r) != F.nbytes:
            raise OSError("the file of features ends too early")
        return F

    def replace_values(self) -> None:
        """Overwrite the values with their features, from several threads."""
        (N, r), size, maker = self.shape, self.block_rows, self.maker

        def one(start: int) -> None:
            F = self.read(start, min(start + size, N))
            F = maker.features(F, out=F)
            if self._pwrite(F.reshape(-1).data, 8 * start * r) != F.nbytes:
                raise OSError("the file of features could not be written")

        for _ in in_order(one, range(0, N, size), self.workers):
            pass

    def close(self) -> None:
        """Free the disk space."""
        self._file.close()
        super().close()

    def _pread(self, data: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [data], offset)
        with self._lock:  # on Windows, all threads share one file position
            self._file.seek(offset)
            return int(self._file.readinto(data))

    def _pwrite(self, data: memoryview, offset: int) -> int:
        if hasattr(os, "pwritev"):
            return os.pwritev(self._file.fileno(), [data], offset)
        with self._lock:
            self._file.seek(offset)
            return int(self._file.write(data))

    def __iter__(self) -> Iterator[Block]:
        return map(self._block, range(0, self.shape[0], self.block_rows))

    def features(self, rows: Indices) -> Array:
        """Return the features of these rows."""
        found = np.concatenate([self.read(i, i + 1) for i in rows.tolist()])
        return self.maker.features(found)

    def sum(self, term: RowTerm) -> list[Array]:
        """Return Σ term(block), read from several threads."""
        # allocating fresh memory for every block would take longer than the pass
        room: SimpleQueue[Array] = SimpleQueue()
        for _ in range(self.workers):
            room.put(np.empty((self.block_rows, self.shape[1])))

        def one(start: int) -> list[Array]:
            buffer = room.get()
            try:
                return sums(term(self._block(start, buffer)))
            finally:
                room.put(buffer)

        parts = in_order(one, range(0, self.shape[0], self.block_rows), self.workers)
        return ordered_sum(parts, add_sums)

    def _block(self, start: int, buffer: Array | None = None) -> Block:
        stop = min(start + self.block_rows, self.shape[0])
        values = self.read(start, stop, buffer)
        codes, weights = self.labels.codes[start:stop], self.labels.weights
        weights = None if weights is None else weights[start:stop]
        return self.maker(values, codes, weights, out=values)


# -------------------------------------------------------------------------------------------------
# Rows that stay with an engine: a pass sends vectors of basis length and gets sums back.
# -------------------------------------------------------------------------------------------------


class EngineRows(StoredRows):
    """Blocks of `step` rows each, kept on the workers that computed them.

    Only the few features that `thinned` fetches leave them.
    """

    def __init__(
        self,
        engine: Engine,
        blocks: list[Task],
        step: int,
        shape: tuple[int, int],
        n_classes: int,
    ) -> None:
        super().__init__(shape, n_classes)
        self.engine, self.blocks, self.step = engine, blocks, step
        tasks = engine.submit(block_labels, [(block,) for block in blocks])
        self.labels = RowLabels.joined(engine.gather(tasks))

    def replace_values(self) -> None:
        """Have workers compute the features of each block and drop its values.

        At most one block per thread exists twice.
        """
        shared = self.engine.broadcast(self.maker)
        # change the list in place: all views share it, so closing the values closes the features
        self.blocks[:] = self.engine.submit(
            make_features, [(block, shared) for block in self.blocks], beside=list(self.blocks)
        )

    def close(self) -> None:
        """Release the blocks on the workers, for all views of them."""
        self.blocks.clear()
        super().close()

    def __iter__(self) -> Iterator[Block]:
        raise TypeError("rows on a cluster are summed there: use total")

    def thinned(self, n_rows: int, without: Indices | None = None) -> Rows:
        """Return about `n_rows` of the rows, in memory, or all if there are fewer."""
        if n_rows < self.shape[0] or without is not None:
            return super().thinned(n_rows, without)
        everyone = np.arange(self.shape[0])
        return Rows(self.features(everyone), self.y, self.weight, n_classes=self.n_classes)

    def features(self, rows: Indices) -> Array:
        """Return the features of these rows, given in ascending order."""
        step, blocks, engine = self.step, self.blocks, self.engine
        edges = np.searchsorted(rows, np.arange(0, len(blocks) + 1) * step)
        wanted = [rows[a:b] - i * step for i, (a, b) in enumerate(pairwise(edges))]
        found = engine.submit(block_rows_at, list(zip(blocks, wanted, strict=True)))
        return self.maker.features(np.concatenate(engine.gather(found)))

    def sum(self, term: RowTerm) -> list[Array]:
        """Return Σ term(block), computed where each block is stored and merged as a tree."""
        engine = self.engine
        shared = engine.broadcast((term, self.maker, self.block_rows))
        leaves = engine.submit(sum_block, [(block, shared) for block in self.blocks])
        total: list[Array] = tree_sum(engine, leaves, add_sums)
        return total


# functions that an engine runs; Dask's dashboard shows them by name


def sum_block(kept: Costed[FeatureBlock], shared: tuple[RowTerm, BlockMaker, int]) -> list[Array]:
    """Return the sum of a pass over one kept part: a term, how blocks are made, their size."""
    term, maker, block_rows = shared
    block, _ = kept
    values, codes, weights = aligned(block.F), block.codes, aligned(block.weights)
    # allocating fresh memory for every block would take longer than the pass
    room = np.empty((min(block_rows, len(values)), values.shape[1]))

    def one(start: int) -> list[Array]:
        part = slice(start, start + block_rows)
        F, some = values[part], None if weights is None else weights[part]
        return sums(term(maker(F, codes[part], some, out=room[: len(F)])))

    with limit_blas_threads():
        return ordered_sum(map(one, range(0, len(values), block_rows)), add_sums)


def make_features(kept: Costed[FeatureBlock], maker: BlockMaker) -> Costed[FeatureBlock]:
    """Return the features of one kept part, computed from its values."""
    block, cost = kept
    return replace(block, F=maker.features(aligned(block.F))), cost


def block_labels(kept: Costed[FeatureBlock]) -> RowLabels:
    """Return the class codes and the weights of one kept part."""
    block, _ = kept
    return block.labels


def block_rows_at(kept: Costed[FeatureBlock], places: Indices) -> Array:
    """Return some rows of one kept part."""
    F: Array = kept[0].F[places]
    return F
