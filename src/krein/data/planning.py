"""Divide work on a cluster into tasks: few enough to schedule, enough to keep all workers busy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.ordered import FAN
from ..core.pcvm.rows import rows_per_block

TASK_SECONDS = 2.0
"""What a task is to take: a scheduler spends some milliseconds on each."""

SCHEDULING_SECONDS = 0.02
"""What the scheduler spends on the five tasks around a chunk, one after the other."""

TASKS_PER_THREAD = 8
"""So many at least, lest some workers wait for the last."""

FEATURE_BYTES = 2**28
"""Features of one block that stays on the cluster, at most."""

LONGEST_SECONDS = 120.0
"""What a task may take that compares such a block: so long nothing of it is told or saved."""

PASSES = 100
"""So often a search goes over what stays, about."""

BYTES_PER_SECOND = 1e9
"""Of features, that a thread goes over in a pass, about."""


@dataclass(frozen=True)
class Work:
    """What one pass takes: how many objects, for each so many pairs and seconds, 0 if unknown."""

    n_objects: int
    pairs: int
    seconds: float = 0.0


def count_tasks(work: float, threads: int) -> float:
    """Return into how many tasks some seconds of work are best cut.

    Of `TASK_SECONDS` each, and some for every thread. But no more than the scheduler hands out
    while the threads work; and where even one for every thread is too many for that, n of them with
    the least of work/n + `SCHEDULING_SECONDS`·n.

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
    """Return how many objects make a task: a whole branch of blocks that takes seconds.

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
    """Return how many rows of features make a block that stays on the cluster.

    A whole branch of the blocks of a pass: of these sizes the one with the least time to compare
    the rows once and to go over them `PASSES` times, a task for each block. Many small ones keep
    the scheduler busy, of few large ones some threads have one more than others. None is above
    `FEATURE_BYTES` or takes longer than `LONGEST_SECONDS` to compare, where there is a smaller one.

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
        scheduling = blocks * SCHEDULING_SECONDS / 5  # one task each, not the five around a chunk
        return rounds * step * seconds + PASSES * scheduling

    most = min(FEATURE_BYTES / (8 * width), LONGEST_SECONDS / max(work.seconds, 1e-9))
    steps = [rows_per_block(width)]
    while FAN * steps[-1] <= min(most, FAN * work.n_objects):
        steps.append(FAN * steps[-1])
    return min(steps, key=cost)
