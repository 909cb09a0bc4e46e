"""Features that stay with an engine: a pass sends vectors of basis length and gets sums back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare.workers import limit_blas_threads
from ..core.ordered import ordered_sum
from ..core.pcvm.rows import Array, Block, Labels, Rows, Term, add_sums, sums
from .chunk import Counted, aligned
from .dataset import FeatureBlock
from .engines import Engine, Task
from .features import BlockMaker, StoredFeatures, StoredRows
from .tasks import tree_sum

Kept = Counted[FeatureBlock]


class KeptFeatures(StoredFeatures):
    """Blocks of `step` rows each, kept on the workers that computed them."""

    def __init__(
        self, engine: Engine, blocks: list[Task], step: int, shape: tuple[int, int]
    ) -> None:
        self.engine, self.blocks, self.step, self.shape = engine, blocks, step, shape
        self._about: tuple[NDArray[Any], Array | None] | None = None
        self.mean = np.zeros(shape[1])

    def rows(self, recode: Labels, n_classes: int) -> KeptRows:
        """Return the rows of one problem."""
        return KeptRows(self, recode, n_classes)

    @property
    def codes(self) -> NDArray[Any]:  # type: ignore[override]
        """Class codes of all rows, fetched on first use."""
        return self._fetched()[0]

    @property
    def weights(self) -> Array | None:  # type: ignore[override]
        """Weights of all rows, fetched on first use."""
        return self._fetched()[1]

    def _fetched(self) -> tuple[NDArray[Any], Array | None]:
        if self._about is None:
            tasks = self.engine.submit(block_labels, [(block,) for block in self.blocks])
            found = self.engine.gather(tasks)
            weights = None
            if found[0][1] is not None:
                weights = np.concatenate([part for _, part in found])
            self._about = np.concatenate([codes for codes, _ in found]), weights
        return self._about

    def put(self, made: BlockMaker) -> None:
        """Have workers compute the features of each block and drop its values.

        At most one block per thread exists twice.
        """
        shared = self.engine.broadcast(made)
        # change the list in place: `under` shares it, so closing the values closes the features
        self.blocks[:] = self.engine.submit(
            make_features, [(block, shared) for block in self.blocks], beside=list(self.blocks)
        )

    def close(self) -> None:
        """Release the blocks on the workers, including those shared through `under`."""
        self.blocks.clear()
        super().close()


@dataclass(frozen=True)
class _Pass:
    """A term on the rows of one problem, over the blocks of one kept part."""

    term: Term
    blocks: BlockMaker
    block_rows: int

    def __call__(self, kept: FeatureBlock) -> list[Array]:
        values, weights = aligned(kept.F), kept.weights
        # allocating fresh memory for every block would take longer than the pass
        room = np.empty((min(self.block_rows, len(values)), values.shape[1]))

        def one(start: int) -> list[Array]:
            part = slice(start, start + self.block_rows)
            F = values[part]
            heavy = None if weights is None else aligned(weights)[part]
            return sums(self.term(self.blocks(F, kept.codes[part], heavy, out=room[: len(F)])))

        with limit_blas_threads():
            starts = range(0, len(values), self.block_rows)
            total: list[Array] = ordered_sum(map(one, starts), add_sums)
        return total


class KeptRows(StoredRows):
    """Rows whose features stay on the engine, except for the few that `thinned` fetches."""

    kept: KeptFeatures

    def __iter__(self) -> Iterator[Block]:
        raise TypeError("rows on a cluster are summed there: use total")

    def thinned(self, n_rows: int, without: Labels | None = None) -> Rows:
        """Return about `n_rows` of the rows, in memory, or all if there are fewer."""
        if n_rows < self.shape[0] or without is not None:
            return super().thinned(n_rows, without)
        everyone = np.arange(self.shape[0])
        return Rows(self.features(everyone), self.y, self.weight, n_classes=self.n_classes)

    def features(self, rows: Labels) -> Array:
        """Return the features of these rows, given in ascending order."""
        step, blocks, engine = self.kept.step, self.kept.blocks, self.kept.engine
        edges = np.searchsorted(rows, np.arange(0, len(blocks) + 1) * step)
        wanted = [rows[a:b] - i * step for i, (a, b) in enumerate(pairwise(edges))]
        found = engine.submit(block_rows_at, list(zip(blocks, wanted, strict=True)))
        return self.blocks.features(np.concatenate(engine.gather(found)))

    def sum(self, term: Term) -> list[Array]:
        """Return Σ term(block), computed where each block is stored and merged as a tree."""
        engine = self.kept.engine
        shared = engine.broadcast(_Pass(term, self.blocks, self.block_rows))
        leaves = engine.submit(sum_block, [(block, shared) for block in self.kept.blocks])
        total: list[Array] = tree_sum(engine, leaves, add_sums)
        return total


# Dask's dashboard shows these functions by name


def sum_block(kept: Kept, run: _Pass) -> list[Array]:
    """Return the sum of a pass over one kept part."""
    return run(kept.value)


def make_features(kept: Kept, made: BlockMaker) -> Kept:
    """Return the features of one kept part, computed from its values."""
    return kept.holding(replace(kept.value, F=made.features(aligned(kept.value.F))))


def block_labels(kept: Kept) -> tuple[NDArray[Any], Array | None]:
    """Return the class codes and the weights of one kept part."""
    return kept.value.codes, kept.value.weights


def block_rows_at(kept: Kept, places: Labels) -> Array:
    """Return some rows of one kept part."""
    return kept.value.F[places]
