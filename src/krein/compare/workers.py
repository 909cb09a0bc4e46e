"""Workers: threads whose results come in order, and processes for functions that hold the lock."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
from multiprocessing import parent_process
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BLOCKS_AHEAD = 2
"""Number of blocks, beyond one per worker, that may be started or finished; this bounds memory."""

_here = threading.local()
_starting, _limiting = threading.Lock(), threading.Lock()
_limits: list[Any] = []  # the limit of BLAS threads in force, once for each caller inside


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_workers(n_jobs: int | None, *, default_all: bool) -> int:
    """Return the number of workers that `n_jobs` stands for.

    None means all processors if `default_all`, otherwise one; in a worker process started by
    another library (such as scikit-learn), None means one. -1 means all, -2 all but one.
    """
    if n_jobs is None:
        return processors() if default_all and parent_process() is None else 1
    if n_jobs != int(n_jobs) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}")
    return int(n_jobs) if n_jobs > 0 else max(1, processors() + 1 + int(n_jobs))


@lru_cache(1)
def _blas_libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # finding them takes milliseconds


@contextmanager
def limit_blas_threads() -> Iterator[None]:
    """Limit BLAS to one thread while any caller is inside, in whatever order they leave."""
    with _limiting:
        limit = _limits[0] if _limits else _blas_libraries().limit(limits=1, user_api="blas")
        _limits.append(limit)
    try:
        yield
    finally:
        with _limiting:
            _limits.pop()
            if not _limits:
                limit.restore_original_limits()


def in_order(
    task: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Yield `task(item)` in the order of the items, from `workers` threads.

    At most `workers + BLOCKS_AHEAD` results wait at a time. A single item, and any call from inside
    a task, runs in the calling thread. Items are taken one by one, in the calling thread, while the
    workers are busy with earlier ones. BLAS is limited to one thread, whatever the number of
    workers: otherwise our threads and those of BLAS would compete for the processors, and rounding
    would depend on the number of workers.
    """
    if getattr(_here, "busy", False):
        yield from map(task, items)
        return
    queue = iter(items)
    first = list(islice(queue, 2))
    everything = chain(first, queue)
    with limit_blas_threads():
        if workers == 1 or len(first) <= 1:
            yield from map(task, everything)
            return
        pool = ThreadPoolExecutor(workers, thread_name_prefix="krein")
        waiting: deque[Future[Result]] = deque()
        try:
            for item in everything:
                waiting.append(pool.submit(_busy, task, item))
                if len(waiting) == workers + BLOCKS_AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _busy(task: Callable[[Item], Result], item: Item) -> Result:
    _here.busy = True
    return task(item)


def in_process(function: Callable[..., Result], *arguments: Any, workers: int) -> Result:
    """Return `function(*arguments)` as computed by one of `workers` processes.

    The processes are started once and kept for a while; the function may be a lambda.
    """
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    with _starting:
        # as long as joblib keeps them: a process that ends just when a task arrives can lose it
        executor = get_reusable_executor(max_workers=workers, timeout=300)
        future = executor.submit(function, *arguments)
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a worker process died while comparing objects (killed, or out of memory); use "
            "n_jobs=1 to compare in this process"
        ) from error
