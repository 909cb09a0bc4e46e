"""Threads and processes that compute blocks, with results in order, and a progress bar."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import parent_process
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2
"""Number of blocks, beyond one per worker, that may be started or finished; this bounds memory."""

_here = threading.local()
_starting, _one_at_a_time = threading.Lock(), threading.Lock()


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


class _BlasLimit:
    """Limits BLAS to one thread while any caller is inside, in whatever order they leave."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.limits: Any = None
        self.libraries: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            if self.inside == 0:
                if self.libraries is None:  # finding them takes milliseconds
                    from threadpoolctl import ThreadpoolController

                    self.libraries = ThreadpoolController()
                self.limits = self.libraries.limit(limits=1, user_api="blas")
            self.inside += 1
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1
                if self.inside == 0:
                    self.limits.restore_original_limits()
                    self.limits = None


limit_blas_threads = _BlasLimit()


def in_order(
    task: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Yield `task(item)` in the order of the items, from `workers` threads.

    At most `workers + AHEAD` results wait at a time. A single item, and any call from inside a
    task, runs in the calling thread. Items are taken one by one, in the calling thread, while the
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
                if len(waiting) == workers + AHEAD:
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
        future = get_reusable_executor(max_workers=workers).submit(function, *arguments)
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a worker process died while comparing objects (killed, or out of memory); use "
            "n_jobs=1 to compare in this process"
        ) from error


PATIENCE = 2.0
"""Seconds after which a bar appears, unless the user has asked for one."""


class Progress:
    """Counts pairs or passes, and moves the bar if one is shown.

    The bar is made when the work has taken long enough.
    """

    def __init__(self, make: Callable[[], Any] | None = None, wait: float = 0.0) -> None:
        self.make, self.since = make, time.monotonic() + wait
        self.bar: Any = None
        self.done = 0

    def advance(self, more: int) -> None:
        """Record that this many more are done."""
        self.done += more
        if self.bar is None and self.make is not None and time.monotonic() >= self.since:
            self.bar = self.make()
            self.bar.start()
            more = self.done
        if self.bar is not None:
            self.bar.advance(self.bar.task_ids[0], more)


@contextmanager
def progress(
    total: int | None, what: str, verbose: int | None, unit: str = "pairs"
) -> Iterator[Progress]:
    """Show a bar with the number of pairs, their rate and the remaining time on standard error.

    If the total is None, the bar shows the number done and the elapsed time. It appears only if
    standard error is a terminal, and never inside another bar: at once if `verbose` is above 0,
    after two seconds if it is None, never if it is 0.
    """
    hidden = verbose is not None and verbose < 1
    if hidden or not sys.stderr.isatty() or not _one_at_a_time.acquire(blocking=False):
        yield Progress()
        return
    shown = Progress(lambda: _bar(total, what, unit), 0.0 if verbose is not None else PATIENCE)
    try:
        shown.advance(0)  # at once, if asked for
        yield shown
    finally:
        if shown.bar is not None:
            shown.bar.stop()
        _one_at_a_time.release()


def _bar(total: int | None, what: str, unit: str) -> Any:
    from rich import progress as rich
    from rich.console import Console
    from rich.text import Text

    class Rate(rich.ProgressColumn):
        def render(self, task: Any) -> Text:
            digits = 0 if (task.speed or 0) > 10 else 1
            return Text(f"{task.speed:,.{digits}f} {unit}/s" if task.speed else "", style="dim")

    known, count = total is not None, f"{{task.completed:,.0f}} {unit}"
    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn() if known else rich.TextColumn(count),
        Rate(),
        rich.TimeRemainingColumn() if known else rich.TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(what, total=total)
    return bar
