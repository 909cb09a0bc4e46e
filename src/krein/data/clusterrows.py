"""Features that stay on a cluster: a pass sends vectors of basis length and gets sums back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare.workers import single_blas
from ..core.ordered import ordered_sum
from ..core.pcvm.rows import Array, Block, Labels, Rows, Term, add_sums, sums
from .client import alive, fetched
from .collection import FeatureBlock
from .columns import Counted
from .storedrows import Blocks, StoredFeatures, StoredRows
from .tree import share, tree_sum

Kept = Counted[FeatureBlock]


class ClusterFeatures(StoredFeatures):
    """Blocks of `step` rows each, kept by the workers that made them."""

    def __init__(
        self,
        client: Any,
        blocks: list[Any],
        step: int,
        shape: tuple[int, int],
        class_weights: Array | None,
    ) -> None:
        self.client, self.blocks, self.step, self.shape = client, blocks, step, shape
        self.class_weights = class_weights
        self._codes: NDArray[Any] | None = None
        self.mean = np.zeros(shape[1])

    def rows(self, recode: Labels, n_classes: int) -> ClusterRows:
        """Return the rows of one problem."""
        return ClusterRows(self, recode, n_classes)

    @property
    def codes(self) -> NDArray[Any]:  # type: ignore[override]
        """Class codes of all rows, fetched when first asked for."""
        if self._codes is None:
            found = self.client.map(block_codes, self.blocks, pure=False)
            self._codes = np.concatenate(fetched(self.client, found))
        return self._codes

    def put(self, made: Blocks) -> None:
        """Have workers make the features of each block and, with nobody else to ask for the
        values, forget those: no more than a block a thread is there twice.
        """
        client, shared = self.client, share(self.client, made)
        alive(client)
        threads = client.nthreads() or {}
        held = client.who_has(self.blocks)
        holders = [tuple(held.get(block.key, ())) for block in self.blocks]
        # in the same list, which `under` has from the values: whoever closes those closes us
        self.blocks[:] = [
            client.submit(
                make_features, block, shared, pure=False, workers=worker, allow_other_workers=True
            )
            for block, worker in zip(self.blocks, evenly(holders, threads), strict=True)
        ]

    def close(self) -> None:
        """Let the workers forget the blocks, those that `under` shares with us too."""
        self.blocks.clear()


def evenly(holders: Sequence[Sequence[str]], threads: Mapping[str, int]) -> list[str] | list[None]:
    """Return a worker for each block: one that has it, unless others would have less to do.

    None where there is no worker: the scheduler waits for one.

    Examples
    --------
    >>> from krein.data.clusterrows import evenly
    >>> evenly([("a",), ("a",), ("a",), ("a", "b"), ()], {"a": 1, "b": 1})
    ['a', 'a', 'a', 'b', 'b']
    """
    total = sum(threads.values())
    if total == 0:
        return [None] * len(holders)
    room = {worker: -(-len(holders) * n // total) for worker, n in threads.items()}
    found: dict[int, str] = {}

    def give(block: int, workers: Iterable[str]) -> None:
        found[block] = worker = max(workers, key=room.__getitem__)
        room[worker] -= 1

    for i, having in enumerate(holders):
        if able := [worker for worker in having if room.get(worker, 0) > 0]:
            give(i, able)
    for i in range(len(holders)):
        if i not in found:
            give(i, room)
    return [found[i] for i in range(len(holders))]


@dataclass(frozen=True)
class _Pass:
    """A term on the rows of one problem, over the blocks of one kept part."""

    term: Term
    blocks: Blocks
    block_rows: int

    def __call__(self, kept: FeatureBlock) -> list[Array]:
        # a pass is short beside the time that fresh memory for every block would take
        room = np.empty((min(self.block_rows, len(kept.F)), kept.F.shape[1]))

        def one(start: int) -> list[Array]:
            part = slice(start, start + self.block_rows)
            F = kept.F[part]
            return sums(self.term(self.blocks(F, kept.codes[part], out=room[: len(F)])))

        with single_blas():
            starts = range(0, len(kept.F), self.block_rows)
            total: list[Array] = ordered_sum(map(one, starts), add_sums)
        return total


class ClusterRows(StoredRows):
    """Rows whose features never leave the cluster, but for the few that `thinned` asks for."""

    kept: ClusterFeatures

    def __iter__(self) -> Iterator[Block]:
        raise TypeError("rows on a cluster are summed there: use total")

    def thinned(self, n_rows: int, without: Labels | None = None) -> Rows:
        """Return about `n_rows` of the rows, in memory; all where there are no more."""
        if n_rows < self.shape[0] or without is not None:
            return super().thinned(n_rows, without)
        everyone = np.arange(self.shape[0])
        return Rows(self.features(everyone), self.y, self.weight, n_classes=self.n_classes)

    def features(self, rows: Labels) -> Array:
        """Return the features of these rows, which ascend."""
        step, blocks = self.kept.step, self.kept.blocks
        edges = np.searchsorted(rows, np.arange(0, len(blocks) + 1) * step)
        wanted = [rows[a:b] - i * step for i, (a, b) in enumerate(pairwise(edges))]
        found = self.kept.client.map(block_rows_at, blocks, wanted, pure=False)
        return self.blocks.features(np.concatenate(fetched(self.kept.client, found)))

    def sum(self, term: Term) -> list[Array]:
        """Return Σ term(block), each block where it lies, merged as a tree."""
        client = self.kept.client
        shared = share(client, _Pass(term, self.blocks, self.block_rows))
        leaves = client.map(sum_block, self.kept.blocks, run=shared, pure=False)
        total: list[Array] = tree_sum(client, leaves, add_sums)
        return total


# Dask's dashboard shows these by name


def sum_block(kept: Kept, run: _Pass) -> list[Array]:
    """Return what a pass sums over one kept part."""
    return run(kept.value)


def make_features(kept: Kept, made: Blocks) -> Kept:
    """Return the features of one kept part, for its values."""
    return kept.holding(replace(kept.value, F=made.features(kept.value.F)))


def block_codes(kept: Kept) -> NDArray[Any]:
    """Return the class codes of one kept part."""
    return kept.value.codes


def block_rows_at(kept: Kept, places: Labels) -> Array:
    """Return some rows of one kept part."""
    return kept.value.F[places]
