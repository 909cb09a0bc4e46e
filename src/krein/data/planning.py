"""Divide work on a cluster into tasks: few enough to schedule, enough to keep all workers busy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.ordered import FAN
from ..core.pcvm.rows import rows_per_block

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


@dataclass(frozen=True)
class Work:
    """The work of one pass: number of objects, and pairs and seconds per object (0 if unknown)."""

    n_objects: int
    pairs: int
    seconds: float = 0.0


def count_tasks(work: float, threads: int) -> float:
    """Return the best number of tasks for some seconds of work.

    Tasks take about `TASK_SECONDS`, with several per thread, but there are no more than the
    scheduler can hand out while the threads work. If even one task per thread is too many for that,
    their number n minimises work/n + `SCHEDULING_SECONDS`·n.

    Examples
    --------
    >>> from krein.data.planning import count_tasks
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
    >>> from krein.data.planning import rows_per_task
    >>> rows_per_task(10**7, 1e-5, 2621, 100, threads=2) // 2621
    64
    """
    wanted = n_objects / max(count_tasks(n_objects * seconds, threads), n_partitions, 1)
    step = block_rows
    while step * np.sqrt(FAN) < wanted:
        step *= FAN
    return step


def rows_to_keep(work: Work, width: int, threads: int) -> int:
    """Return the number of rows of features per block that stays on the cluster.

    A block is a whole branch of the blocks of a pass. Among these sizes, this one minimises the
    time for comparing the rows once and passing over them `PASSES` times, with one task per block.
    Many small blocks keep the scheduler busy; few large ones leave some threads with one block more
    than others. Blocks stay within `FEATURE_BYTES`, and within `LONGEST_SECONDS` of comparing,
    unless even the smallest does not.

    Examples
    --------
    >>> from krein.data.planning import rows_to_keep
    >>> from krein.data.planning import Work
    >>> [rows_to_keep(Work(100_000, 500, 1e-5), 500, threads) for threads in (2, 4, 8)]
    [33536, 33536, 4192]
    """
    seconds = work.seconds + PASSES * 8 * width / BYTES_PER_SECOND

    def cost(step: int) -> float:
        blocks = -(-work.n_objects // step)
        rounds = -(-blocks // threads)
        scheduling = blocks * SCHEDULING_SECONDS / 5  # one task each instead of five
        return rounds * step * seconds + PASSES * scheduling

    most = min(FEATURE_BYTES / (8 * width), LONGEST_SECONDS / max(work.seconds, 1e-9))
    steps = [rows_per_block(width)]
    while FAN * steps[-1] <= min(most, FAN * work.n_objects):
        steps.append(FAN * steps[-1])
    return min(steps, key=cost)
