"""Objects in partitions that an engine stores: functions are sent to them, sums come back.

`Partitioned` divides the passes over a data set into tasks for any `Engine`. Blocks are the same as
in an in-memory fit, counted from the first object. A task handles a run of blocks that is a whole
branch of the tree of sums, about one partition or less. If a partition ends inside the run, the
remaining objects are sent to it. Results therefore do not depend on partitions, workers, or the
loss of a worker.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import add as plus
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Counter, Pairs
from ..compare.progress import progress
from ..compare.workers import limit_blas_threads
from ..core.moments import FAN, ClassMoments, OrderedSum, ordered_sum
from ..core.pcvm.rows import Rows, rows_per_block
from ..core.shapes import Array, Indices
from ..measures import Measure, take
from ..measures.objects import Objects
from .chunks import (
    Add,
    Chunk,
    Costed,
    ObjectError,
    Term,
    Value,
    add_costed,
    joined,
    where_in_runs,
    where_numbered,
)
from .dataset import Dataset, FeatureBlock, RowLabels
from .engine import Call, Engine, Task, TaskKilledError, aligned, branches, tree_sum
from .storedrows import EngineRows

# -------------------------------------------------------------------------------------------------
# Divide work into tasks: few enough to schedule, enough to keep all workers busy.
# -------------------------------------------------------------------------------------------------

TASK_SECONDS = 2.0
"""Target duration of a task: a scheduler spends a few milliseconds on each."""

SCHEDULING_SECONDS = 0.02
"""Time that the scheduler needs for the five tasks of a chunk, in sequence."""

TASKS_PER_THREAD = 8
"""Minimum number of tasks per thread, so that few workers wait for the last task."""

FEATURE_BYTES = 2**28
"""Maximum size of the features of one block that stays on the cluster."""

LONGEST_SECONDS = 120.0
"""Maximum duration of a task that compares such a block: until it ends, nothing is saved."""

PASSES = 100
"""Approximate number of passes that a fit makes over the stored features."""

BYTES_PER_SECOND = 1e9
"""Approximate number of bytes of features per second that a thread processes in a pass."""


def count_tasks(work: float, threads: int) -> float:
    """Return the best number of tasks for some seconds of work.

    Tasks take about `TASK_SECONDS`, with several per thread, but there are no more than the
    scheduler can hand out while the threads work. If even one task per thread is too many for that,
    their number n minimises work/n + `SCHEDULING_SECONDS`·n.

    Examples
    --------
    >>> from krein.data.partitioned import count_tasks
    >>> [round(count_tasks(1000.0, threads)) for threads in (2, 16, 128, 1024)]
    [500, 500, 391, 224]
    """
    wanted = max(TASKS_PER_THREAD * threads, work / TASK_SECONDS)
    if work <= 0:  # unknown
        return wanted
    limit = max(work / (threads * SCHEDULING_SECONDS), np.sqrt(work / SCHEDULING_SECONDS), 1.0)
    return float(min(wanted, limit))


def rows_per_task(
    n_objects: int, seconds: float, block_rows: int, n_partitions: int, threads: int
) -> int:
    """Return the number of objects per task: a whole branch of blocks that takes a few seconds.

    Examples
    --------
    >>> from krein.data.partitioned import rows_per_task
    >>> rows_per_task(10**7, 1e-5, 2621, 100, threads=2) // 2621
    64
    """
    wanted = n_objects / max(count_tasks(n_objects * seconds, threads), n_partitions, 1)
    step = block_rows
    while step * np.sqrt(FAN) < wanted:
        step *= FAN
    return step


def rows_to_keep(n_objects: int, seconds: float, width: int, threads: int) -> int:
    """Return the number of rows of features per block that stays on the cluster.

    A block is a whole branch of the blocks of a pass. Among these sizes, this one minimises the
    time for comparing the rows once, at this many seconds each, and passing over them `PASSES`
    times, with one task per block. Many small blocks keep the scheduler busy; few large ones leave
    some threads with one block more than others. Blocks stay within `FEATURE_BYTES`, and within
    `LONGEST_SECONDS` of comparing, unless even the smallest does not.

    Examples
    --------
    >>> from krein.data.partitioned import rows_to_keep
    >>> [rows_to_keep(100_000, 1e-5, 500, threads) for threads in (2, 4, 8)]
    [33536, 33536, 4192]
    """
    per_row = seconds + PASSES * 8 * width / BYTES_PER_SECOND

    def cost(step: int) -> float:
        blocks = -(-n_objects // step)
        rounds = -(-blocks // threads)
        scheduling = blocks * SCHEDULING_SECONDS / 5  # one task each instead of five
        return rounds * step * per_row + PASSES * scheduling

    most = min(FEATURE_BYTES / (8 * width), LONGEST_SECONDS / max(seconds, 1e-9))
    steps = [rows_per_block(width)]
    while FAN * steps[-1] <= min(most, FAN * n_objects):
        steps.append(FAN * steps[-1])
    return min(steps, key=cost)


# -------------------------------------------------------------------------------------------------
# Functions that an engine runs: assemble chunks from partitions, compare them, merge their sums.
#
# Dask's dashboard shows them by name.
# -------------------------------------------------------------------------------------------------

Cut = list[tuple[int, int, int]]
"""Runs of objects: number of the partition, first object, end (exclusive)."""


def run_on_chunk(function: Callable[[Chunk], Value], *parts: Any) -> Value:
    """Assemble a chunk from `parts`, the arguments of `gather_chunk`; run the function on it."""
    with limit_blas_threads():
        return function(gather_chunk(*parts))


def gather_chunk(
    start: int, cut: Cut, objects: list[Any] | None, labels: list[Any], weights: list[Any] | None
) -> Chunk:
    """Assemble a chunk from parts of partitions."""
    parts = {"objects": objects, "labels": labels, "weights": weights}
    found = {name: [as_objects(p) for p in given] for name, given in parts.items() if given}
    for i, (p, a, b) in enumerate(cut):
        for name, given in found.items():
            if len(given[i]) != b - a:
                raise ValueError(
                    f"partition {p}: {b - a} {name} were expected, but {len(given[i])} were "
                    f"found; X and y must match, and must not change while they are read"
                )
    runs = [(partial(where_numbered, f"partition {p}, object", a), b - a) for p, a, b in cut]
    return Chunk(
        start,
        joined(found["objects"]) if "objects" in found else None,
        joined([np.asarray(part) for part in found["labels"]]),
        joined([np.asarray(w, np.float64) for w in found["weights"]]) if weights else None,
        partial(where_in_runs, runs),
    )


def cut_partition(part: Any, a: int, b: int) -> Any:
    """Return some objects of a partition."""
    return as_objects(part)[a:b]


def as_objects(part: Any) -> Any:
    """Return a partition as an array or a list."""
    if isinstance(part, np.ndarray):
        return aligned(part)
    return aligned(part.to_numpy()) if hasattr(part, "to_numpy") else list(part)


def count_objects(part: Any) -> int:
    """Return the number of objects in a partition."""
    return len(as_objects(part))


def sum_blocks(term: Term[Value], block_rows: int, add: Add[Value], chunk: Chunk) -> Any:
    """Return the sum of a term over the blocks of a chunk."""
    return ordered_sum(map(term, chunk.blocks(block_rows)), partial(add_costed, add))


def join_blocks(term: Term[FeatureBlock], block_rows: int, chunk: Chunk) -> Costed[FeatureBlock]:
    """Return the values of a chunk, compared block by block, with their moments."""
    blocks, total = [], Counter()
    for block, cost in map(term, chunk.blocks(block_rows)):
        blocks.append(block)
        total.include(cost)
    labels = RowLabels.joined([block.labels for block in blocks])
    F = np.concatenate([block.F for block in blocks])
    moments = ordered_sum((block.moments for block in blocks), plus)
    return FeatureBlock(F, labels.codes, labels.weights, moments), total


def time_term(term: Term[Any], chunk: Chunk) -> Costed[float]:
    """Return the number of seconds that a term takes per object of a chunk."""
    start = time.perf_counter()
    _, cost = term(chunk)
    return (time.perf_counter() - start) / len(chunk), cost


def compare_objects(
    everything: tuple[Measure, Objects], rows: Indices, cols: Indices, swapped: bool
) -> Array:
    """Return the values of some objects with others."""
    measure, objects = everything
    A, B = take(objects, rows), take(objects, cols)
    with limit_blas_threads():
        return measure.block(B, A) if swapped else measure.block(A, B)


def block_moments(kept: Costed[FeatureBlock]) -> Costed[ClassMoments]:
    """Return the moments of one kept part."""
    block, cost = kept
    return block.moments, cost


# -------------------------------------------------------------------------------------------------
# Find the object that crashes the process that compares it, by trying them one by one.
#
# After several workers have died with the same task, the cluster abandons the task and reports
# only its name. Its objects are compared again in a separate process, which announces each one
# first; the last one announced before the process died is the culprit.
# -------------------------------------------------------------------------------------------------

SEARCH_SECONDS = 60.0
"""Maximum number of seconds for the search."""
SEARCH_BYTES = 4 * 2**30
"""Memory limit of the process: an object may crash it because of its size."""

_PROGRAM = "from krein.data.partitioned import compare_one_by_one; compare_one_by_one()"


def find_crashing_object(function: Callable[[Chunk], Any], chunk: Chunk) -> int | None:
    """Return the object of a chunk that crashes `function`; None if no crash can be reproduced."""
    import cloudpickle

    try:
        child = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            input=cloudpickle.dumps((function, chunk)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SEARCH_SECONDS,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    announced = child.stdout.split()
    if child.returncode == 0 or not announced or not announced[-1].isdigit():
        return None
    return int(announced[-1])


def compare_one_by_one() -> None:
    """Compare the objects of a chunk read from standard input, announcing each one first."""
    import pickle

    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (SEARCH_BYTES, SEARCH_BYTES))
    except (ImportError, ValueError, OSError):
        pass  # a system without such limits
    # trusted: the parent process has just written it
    function, chunk = pickle.loads(sys.stdin.buffer.read())
    for i in range(len(chunk)):
        print(i, flush=True)
        function(chunk.cut(i, i + 1))


# -------------------------------------------------------------------------------------------------
# The data set: passes over partitions.
# -------------------------------------------------------------------------------------------------

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
        verbose: int | None = None,
    ) -> None:
        self.engine, self.verbose = engine, verbose
        self.objects, self.labels, self.weights = objects, labels, weights
        for name, given in (("labels", labels), ("weights", weights)):
            if isinstance(given, list) and len(given) != len(objects):
                raise ValueError(
                    f"X has {len(objects)} partitions and {name} have {len(given)}: partition "
                    f"the {name} like X"
                )
        if lengths is None:
            parts = labels if isinstance(labels, list) else objects
            lengths = engine.gather(engine.submit(count_objects, [(part,) for part in parts]))
        self.starts = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.intp))])
        for name, given in (("labels", labels), ("weights", weights)):
            if isinstance(given, np.ndarray) and len(given) != self.starts[-1]:
                raise ValueError(f"{self.starts[-1]} objects but {len(given)} {name}")

    def map(self, function: Callable[[Chunk], Value], *, objects: bool = True) -> Iterator[Value]:
        """Yield `function(partition)` in order, each computed where the partition is stored."""
        cuts: list[Cut] = [[(p, 0, int(n))] for p, n in enumerate(np.diff(self.starts))]
        yield from self.engine.gather(self._tasks(function, cuts, objects=objects))

    def reduce(
        self, term: Term[Value], add: Add[Value], block_rows: int, n_pairs: int, counter: Counter
    ) -> Value:
        """Return Σ term(block) over all blocks, in the fixed order.

        Branches are merged on the engine and fetched when finished, so little is lost if a worker
        dies.
        """
        N, n_parts = int(self.starts[-1]), int(np.count_nonzero(np.diff(self.starts)))
        seconds = self._pilot(term, counter)
        cuts = self.cuts(rows_per_task(N, seconds, block_rows, n_parts, self.engine.threads))
        tasks = self._tasks(partial(sum_blocks, term, block_rows, add), cuts)
        tasks += branches(self.engine, tasks, partial(add_costed, add))
        total: OrderedSum[Value] = OrderedSum(add)
        waiting: dict[int, Costed[Value]] = {}
        following = len(cuts)  # the first branch comes after the last cut
        for i, task in self._finished(tasks, term, cuts, n_pairs):
            if i < len(cuts):
                continue
            (waiting[i],) = self.engine.gather([task])
            while following in waiting:
                branch, cost = waiting.pop(following)
                counter.include(cost)
                total.push(branch)
                following += 1
        return total.result()

    def keep(
        self, term: Term[FeatureBlock], width: int, block_rows: int, counter: Counter
    ) -> tuple[Rows, ClassMoments]:
        """Keep the values of every task on the worker that ran it."""
        N = int(self.starts[-1])
        step = rows_to_keep(N, self._pilot(term, counter), width, self.engine.threads)
        cuts = self.cuts(step)
        blocks = self._tasks(partial(join_blocks, term, block_rows), cuts)
        for _ in self._finished(list(blocks), term, cuts, width):
            pass
        moments = self.engine.submit(block_moments, [(block,) for block in blocks])
        total, cost = tree_sum(self.engine, moments, partial(add_costed, plus))
        counter.include(cost)
        n_classes = len(self.survey().classes)
        kept = EngineRows(self.engine, blocks, step, (N, width), n_classes)
        kept.watch(self.verbose)
        return kept, total

    def run_pairs(self, pairs: Pairs) -> Pairs:
        """Have the engine compare the pairs of a sample, if that is worth a task."""
        if not pairs.measure.expensive:
            return pairs
        engine, shared = self.engine, self.engine.broadcast((pairs.measure, pairs.objects))

        def evaluate(rows: Indices, cols: Indices, swapped: bool) -> Array:
            task = engine.submit(compare_objects, [(shared, rows, cols, swapped)])
            values: Array = engine.gather(task)[0]
            return values

        # local threads only wait for remote ones
        return pairs.elsewhere(evaluate, workers=2 * engine.threads)

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

    def _pilot(self, term: Term[Any], counter: Counter) -> float:
        """Return the estimated number of seconds per object, from the first objects."""
        cuts = [self._cut(0, PILOT)]
        try:
            ((seconds, cost),) = self.engine.gather(self._tasks(partial(time_term, term), cuts))
        except TaskKilledError as error:
            self._raise_named(error, term, cuts)
        counter.include(cost)
        return float(seconds)

    def _tasks(
        self, function: Callable[[Chunk], Any], cuts: list[Cut], *, objects: bool = True
    ) -> list[Task]:
        """Start `function` on the chunk of each cut."""
        shared = self.engine.broadcast(function)
        calls = [(shared, *self._parts_of(cut, objects=objects)) for cut in cuts]
        return self.engine.submit(run_on_chunk, calls)

    def _finished(
        self, tasks: list[Task], term: Term[Any], cuts: list[Cut], n_pairs: int
    ) -> Iterator[tuple[int, Task]]:
        """Yield tasks with their numbers as they finish, the first of them those of the cuts."""
        total = int(self.starts[-1]) * n_pairs
        try:
            with progress(total, "comparing", self.verbose) as advance:
                for i, task in self.engine.completed(tasks):
                    if i < len(cuts):
                        advance(total // len(cuts))
                    yield i, task
        except TaskKilledError as error:
            self._raise_named(error, term, cuts)

    def _raise_named(self, error: TaskKilledError, term: Term[Any], cuts: list[Cut]) -> NoReturn:
        """Raise an error that names the object that crashed workers, if it can be found."""
        if error.number is None or error.number >= len(cuts):
            raise error
        cut = cuts[error.number]
        (chunk,) = self.engine.gather(self.engine.submit(gather_chunk, [self._parts_of(cut)]))
        i = find_crashing_object(term, chunk)
        if i is None:
            where = ", ".join(f"partition {p}, objects {a} to {b - 1}" for p, a, b in cut)
            raise ObjectError(where, str(error)) from error
        reason = "crashes the process that compares it; remove it"
        raise ObjectError(chunk.where(i), reason, chunk.start + i) from error

    def _parts_of(self, cut: Cut, *, objects: bool = True) -> tuple[Any, ...]:
        """Return the arguments of `gather_chunk` for a cut, with or without its objects."""
        start = int(self.starts[cut[0][0]]) + cut[0][1]
        parts = [
            None if given is None else [self._slice(given, *run) for run in cut]
            for given in (self.objects if objects else None, self.labels, self.weights)
        ]
        return (start, cut, *parts)

    def _slice(self, given: Any, p: int, a: int, b: int) -> Any:
        """Return the objects, labels or weights of a run: a part of an array, a task or a call."""
        if isinstance(given, np.ndarray):
            return given[self.starts[p] + a : self.starts[p] + b]
        whole = a == 0 and b == self.starts[p + 1] - self.starts[p]
        return given[p] if whole else Call(cut_partition, (given[p], a, b))
