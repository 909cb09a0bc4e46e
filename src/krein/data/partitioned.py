"""Objects in partitions that an engine stores: functions are sent to the partitions, sums come
back.

Blocks are the same as in an in-memory fit, counted from the first object. A task handles a run of
blocks that is a whole branch of the tree of sums, about one partition or less. If a partition ends
inside the run, the remaining objects are sent to it. Results therefore do not depend on partitions,
workers, or the loss of a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import add as plus
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Array, Indices, Pairs
from ..compare.progress import progress
from ..core.moments import ClassMoments
from ..core.ordered import OrderedSum
from ..core.pcvm.rows import Features
from .chunk import Chunk, Counted, CountedSum, ObjectError
from .dataset import Dataset, FeatureBlock
from .engines import Call, Engine, Task, TaskKilledError
from .keptfeatures import KeptFeatures
from .planning import Work, rows_per_task, rows_to_keep
from .suspects import find_fatal
from .tasks import (
    Cut,
    JoinBlocks,
    SumBlocks,
    Timed,
    block_moments,
    branches,
    compare_chunk,
    compare_objects,
    count_objects,
    cut_partition,
    gather_chunk,
    tree_sum,
)

Result = TypeVar("Result")

PILOT = 32
"""Number of objects compared to estimate the time per object."""


class Partitioned(Dataset):
    """Partitions of objects, and labels and weights in the same partitions or in memory.

    `objects` are tasks, or anything else that the engine accepts as an argument. If `labels` and
    `weights` are lists, they contain one such item per partition; otherwise they are arrays over
    all objects.
    """

    n_jobs = 1

    def __init__(
        self,
        engine: Engine,
        objects: Sequence[Any],
        labels: Sequence[Any] | NDArray[Any],
        weights: Sequence[Any] | Array | None = None,
        *,
        lengths: Sequence[int] | None = None,
        verbose: int = 0,
    ) -> None:
        self.engine, self.verbose = engine, verbose
        self.parts = {"objects": objects, "labels": labels, "weights": weights}
        for name in ("labels", "weights"):
            given = self.parts[name]
            if isinstance(given, list) and len(given) != len(objects):
                raise ValueError(
                    f"X has {len(objects)} partitions and {name} have {len(given)}: partition "
                    f"the {name} like X"
                )
        if lengths is None:
            of = labels if isinstance(labels, list) else objects
            lengths = engine.gather(engine.submit(count_objects, [(part,) for part in of]))
        self.starts = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.intp))])
        for name in ("labels", "weights"):
            given = self.parts[name]
            if isinstance(given, np.ndarray) and len(given) != self.starts[-1]:
                raise ValueError(f"{self.starts[-1]} objects but {len(given)} {name}")

    def map(self, function: Callable[[Chunk], Result], *, objects: bool = True) -> Iterator[Result]:
        """Yield `function(partition)` in order, each computed where the partition is stored."""
        cuts: list[Cut] = [[(p, 0, int(n))] for p, n in enumerate(np.diff(self.starts))]
        yield from self.engine.gather(self._tasks(function, cuts, objects))

    def reduce(
        self,
        function: Callable[[Chunk], Counted[Result]],
        add: Callable[[Result, Result], Result],
        block_rows: int,
        n_pairs: int,
    ) -> Counted[Result]:
        """Return Σ function(block) over all blocks, in the fixed order.

        Branches are merged on the engine and fetched when finished, so little is lost if a worker
        dies.
        """
        N = int(self.starts[-1])
        pilot = self._pilot(function)
        n_parts = int(np.count_nonzero(np.diff(self.starts)))
        step = rows_per_task(N, pilot.value, block_rows, n_parts, self.engine.threads)
        cuts = self.cuts(step)
        leaves = self._tasks(SumBlocks(function, block_rows, CountedSum(add)), cuts)
        n = len(leaves)
        total = OrderedSum(CountedSum(add))
        early: dict[int, Any] = {}
        following = n
        leaves += branches(self.engine, leaves, CountedSum(add))
        with (
            progress(N * n_pairs, "comparing", self.verbose) as shown,
            self._naming(function, cuts),
        ):
            for i, task in self.engine.completed(leaves):
                if i < n:
                    shown.advance((min((i + 1) * step, N) - i * step) * n_pairs)
                    continue
                (early[i],) = self.engine.gather([task])
                while following in early:
                    total.push(early.pop(following))
                    following += 1
        found = total.result()
        compared = found.compared + pilot.compared
        return Counted(found.value, found.objects, compared, found.reused + pilot.reused)

    def keep(
        self, function: Callable[[Chunk], Counted[FeatureBlock]], width: int, block_rows: int
    ) -> tuple[Features, Counted[ClassMoments]]:
        """Keep the values of every task on the worker that ran it."""
        N = int(self.starts[-1])
        pilot = self._pilot(function)
        step = rows_to_keep(Work(N, width, pilot.value), width, self.engine.threads)
        cuts = self.cuts(step)
        blocks = self._tasks(JoinBlocks(function, block_rows), cuts)
        with (
            progress(N * width, "comparing", self.verbose) as shown,
            self._naming(function, cuts),
        ):
            for i, _ in self.engine.completed(list(blocks)):
                shown.advance((min((i + 1) * step, N) - i * step) * width)
        moments = self.engine.submit(block_moments, [(block,) for block in blocks])
        total = tree_sum(self.engine, moments, CountedSum(plus))
        kept = KeptFeatures(self.engine, blocks, step, (N, width))
        kept.watch(self.verbose)
        compared = total.compared + pilot.compared
        return kept, Counted(total.value, total.objects, compared, total.reused + pilot.reused)

    def run_pairs(self, pairs: Pairs) -> Pairs:
        """Have the engine compare the pairs of a sample, if that is worth a task."""
        if not pairs.measure.expensive:
            return pairs
        engine, shared = self.engine, self.engine.broadcast((pairs.measure, pairs.objects))

        def evaluate(rows: Indices, cols: Indices, swapped: bool) -> Array:
            task = engine.submit(compare_objects, [(shared, rows, cols, swapped)])
            (values,) = engine.gather(task)
            found: Array = values
            return found

        return Pairs(
            pairs.measure,
            pairs.objects,
            n_jobs=2 * engine.threads,  # local threads only wait for remote ones
            cache=pairs.cache,
            verbose=pairs.verbose,
            symmetrize=pairs.symmetrize,
            evaluate=evaluate,
            counter=pairs.counter,
        )

    def cuts(self, step: int) -> list[Cut]:
        """Return the parts of partitions that make up each run of `step` objects."""
        return [self._cut(begin, begin + step) for begin in range(0, int(self.starts[-1]), step)]

    def _cut(self, begin: int, end: int) -> Cut:
        """Return the parts of partitions with the objects from `begin` up to `end`."""
        starts = self.starts
        first = int(np.searchsorted(starts, begin, side="right")) - 1
        last = int(np.searchsorted(starts, min(end, starts[-1]), side="left"))
        return [
            (p, max(begin - int(starts[p]), 0), min(end, int(starts[p + 1])) - int(starts[p]))
            for p in range(first, last)
            if starts[p + 1] > starts[p]
        ]

    def _pilot(self, function: Callable[[Chunk], Counted[Any]]) -> Counted[float]:
        """Return the estimated number of seconds per object, from the first objects."""
        found: Counted[float]
        cuts = [self._cut(0, PILOT)]
        with self._naming(function, cuts):
            (found,) = self.engine.gather(self._tasks(Timed(function), cuts))
        return found

    @contextmanager
    def _naming(self, function: Callable[[Chunk], Any], cuts: list[Cut]) -> Iterator[None]:
        """Name the object that crashed workers, if it can be found."""
        try:
            yield
        except TaskKilledError as error:
            if error.number is None or error.number >= len(cuts):
                raise
            cut = cuts[error.number]
            names = ("objects", "labels", "weights")
            parts = [[self._slice(name, run) for run in cut] for name in names]
            start = int(self.starts[cut[0][0]]) + cut[0][1]
            tasks = self.engine.submit(gather_chunk, [(start, cut, *parts)])
            (chunk,) = self.engine.gather(tasks)
            fatal = find_fatal(function, chunk)
            where = ", ".join(f"partition {p}, objects {a} to {b - 1}" for p, a, b in cut)
            if fatal is not None:
                raise ObjectError(
                    f"{chunk.where(fatal)}: crashes the process that compares it; remove it"
                ) from error
            raise ObjectError(f"{where}: {error}") from error

    def _tasks(
        self, function: Callable[[Chunk], Any], cuts: list[Cut], objects: bool = True
    ) -> list[Task]:
        """Start `function` on the chunk of each cut."""
        shared = self.engine.broadcast(function)
        calls = []
        for cut in cuts:
            start = int(self.starts[cut[0][0]]) + cut[0][1]
            names = ("objects", "labels", "weights") if objects else ("labels", "weights")
            given = {name: [self._slice(name, run) for run in cut] for name in names}
            parts = [given.get(name) for name in ("objects", "labels", "weights")]
            calls.append((shared, start, cut, *parts))
        return self.engine.submit(compare_chunk, calls)

    def _slice(self, name: str, run: tuple[int, int, int]) -> Any:
        """Return the objects, labels or weights of a run: a part of an array, a task or a call."""
        parts, (p, a, b) = self.parts[name], run
        if parts is None:
            return None
        if isinstance(parts, np.ndarray):
            return parts[self.starts[p] + a : self.starts[p] + b]
        whole = a == 0 and b == self.starts[p + 1] - self.starts[p]
        return parts[p] if whole else Call(cut_partition, (parts[p], a, b))
