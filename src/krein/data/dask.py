"""The engine on a Dask cluster, and the connection to its scheduler."""

from __future__ import annotations

import concurrent.futures
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from ..compare.workers import processors
from .engine import Call, Calls, Task, TaskKilledError, aligned

CONNECT_SECONDS = 5.0
"""Seconds to wait for a scheduler to answer."""
ALONE_SECONDS = 10.0
"""Seconds without workers before a warning."""
WAIT_SECONDS = 60.0
"""Seconds without workers before giving up; set by `krein.wait` in Dask's configuration."""
_LOOK_SECONDS = 1.0


def connect(address: str, *, timeout: float = CONNECT_SECONDS) -> Any:
    """Return a client of the scheduler at `address`, or of a new local cluster for "local".

    `fit` then uses this client. A local cluster has one single-threaded worker per processor;
    `client.dashboard_link` is the address of its dashboard. Closing the client closes the cluster.

    Parameters
    ----------
    address : str
        "local", or the address of a scheduler: "tcp://host:8786".
    timeout : float, default=5
        Seconds to wait for the scheduler's answer.

    Raises
    ------
    ConnectionError
        If no scheduler answers.

    Examples
    --------
    >>> from krein.data.dask import connect
    >>> connect("host:8786")
    Traceback (most recent call last):
    ValueError: a cluster must be 'local' or the address of a scheduler, such as tcp:...
    """
    distributed = _distributed()
    if address == "local":
        import dask

        # on one machine, give up when a second worker dies with the same task
        with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
            return distributed.Client(
                n_workers=processors(), threads_per_worker=1, dashboard_address="127.0.0.1:0"
            )
    if "://" not in address:
        raise ValueError(
            f"a cluster must be 'local' or the address of a scheduler, such as tcp://host:8786; "
            f"got {address!r}"
        )
    try:
        return distributed.Client(address, timeout=timeout)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address} within {timeout:g} s ({error}); "
            "is it running, and reachable from here?"
        ) from error


def current_client(stack: ExitStack) -> Any:
    """Return the current client, or one with threads of this process until the stack is closed."""
    distributed = _distributed()
    try:
        return distributed.default_client()
    except ValueError:
        own = distributed.Client(
            processes=False,
            n_workers=1,
            threads_per_worker=processors(),
            dashboard_address="127.0.0.1:0",
            set_as_default=False,
        )
        return stack.enter_context(own)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            'a Dask collection needs dask.distributed: pip install "krein[dask]"'
        ) from error
    return distributed


def lost(client: Any) -> ConnectionError:
    """Return the error for a scheduler that no longer answers."""
    return ConnectionError(
        f"the connection to the Dask scheduler at {address_of(client)} is lost. With cache= on "
        "storage that all workers share, a new cluster resumes where this one stopped"
    )


def address_of(client: Any) -> str:
    """Return the address of the scheduler."""
    scheduler = getattr(client, "scheduler", None)
    return str(getattr(scheduler, "address", None) or "an unknown address")


def check_connection(client: Any) -> None:
    """Raise an error if the connection to the scheduler is lost: requests would wait for it."""
    if client.status != "running":
        raise lost(client)


@contextmanager
def connected(client: Any) -> Iterator[None]:
    """Raise the same error whether the connection to the scheduler is lost before or meanwhile."""
    check_connection(client)
    try:
        yield
    except Exception as error:
        if client.status == "running":
            raise
        raise lost(client) from error


def count_threads(client: Any) -> int:
    """Return the number of tasks that run at a time; 0 without workers."""
    check_connection(client)
    try:
        return int(sum(client.nthreads().values()))
    except (OSError, TimeoutError) as error:  # including Dask's CommClosedError
        raise lost(client) from error


def check_workers(client: Any) -> None:
    """Raise an error if a worker lacks krein, or has another version of krein, Python or NumPy.

    Tasks are functions of krein, and results must be the same on all machines.
    """

    def versions() -> dict[str, str]:  # sent by value: krein may not be installed there
        import importlib
        import sys

        found = {"Python": "{}.{}".format(*sys.version_info)}
        for name in ("numpy", "krein"):
            try:
                found[name] = importlib.import_module(name).__version__
            except Exception as error:  # any error there is reported here
                found[name] = f"none ({type(error).__name__}: {error})"
        return found

    own = versions()
    try:
        there = client.run(versions, on_error="return")
    except (OSError, TimeoutError) as error:
        raise lost(client) from error
    for worker, found in there.items():
        if not isinstance(found, dict):
            raise RuntimeError(
                f"the worker at {worker} cannot run our tasks ({found}); it needs Python "
                f"{own['Python']} and krein {own['krein']}, like this machine"
            )
        for name, version in own.items():
            if found[name] != version:
                raise RuntimeError(
                    f"the worker at {worker} has {name} {found[name]}, but this machine has "
                    f"{version}: install the same version on all machines"
                )


# -------------------------------------------------------------------------------------------------
# The engine: tasks on the workers of a cluster.
# -------------------------------------------------------------------------------------------------


class DaskEngine:
    """Tasks on the workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        import dask

        self.client = client
        self.threads = count_threads(client)
        if not self.threads:
            raise ConnectionError(
                f"the Dask cluster at {address_of(client)} has no workers: start some, e.g. "
                f"dask worker {address_of(client)}"
            )
        self.wait = float(dask.config.get("krein.wait", WAIT_SECONDS))
        self._looked = self._seen = time.monotonic()  # for workers; with at least one
        self._warned = False
        check_workers(client)

    def _watch(self) -> None:
        """Warn if no worker is left, and give up after a while: Dask would wait forever."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        if count_threads(self.client):
            self._seen, self._warned = now, False
            return
        alone = now - self._seen
        if alone > self.wait:
            raise ConnectionError(
                f"the Dask cluster at {address_of(self.client)} has had no worker for "
                f"{alone:.0f} s; start some and run this again: with cache= on storage "
                f"that all workers share, it resumes where it stopped"
            )
        if alone > ALONE_SECONDS and not self._warned:
            self._warned = True
            warnings.warn(
                f"no worker is left on the Dask cluster at {address_of(self.client)}; waiting up "
                f"to {self.wait:.0f} s",
                RuntimeWarning,
                stacklevel=2,
            )

    def broadcast(self, item: Any, worker: str | None = None) -> Task:
        """Return `item` as the future of a task; each worker fetches it once.

        It is not scattered, because scattered data are lost with their worker. With `worker`, an
        address, it is preferably stored there.
        """
        with connected(self.client), large_tasks():
            return self.client.submit(
                hand_out, item, pure=False, workers=worker, allow_other_workers=worker is not None
            )

    def submit(
        self, function: Callable[..., Any], calls: Calls, beside: Sequence[Task] | None = None
    ) -> list[Task]:
        """Start the calls, all in one message. Arguments may be futures and delayed objects.

        With `beside`, each call starts on the worker that has that task's result, unless others
        have less to do.
        """
        import dask

        client = self.client
        with connected(client), large_tasks():
            if beside is None:
                lazy = dask.delayed(function, pure=False, traverse=True)
                found: list[Task] = client.compute([lazy(*map(_delayed, call)) for call in calls])
                return found
            held = client.who_has(list(beside))
            holders = [tuple(held.get(task.key, ())) for task in beside]
            workers = balanced(holders, client.nthreads() or {})
            return [
                client.submit(function, *call, pure=False, workers=worker, allow_other_workers=True)
                for call, worker in zip(calls, workers, strict=True)
            ]

    def completed(self, tasks: list[Task]) -> Iterator[tuple[int, Task]]:
        """Yield each task with its number when it is finished, and release it.

        Errors are raised here, and all other tasks are cancelled.
        """
        from distributed import as_completed

        client = self.client
        check_connection(client)
        number = {future.key: i for i, future in enumerate(tasks)}
        with client.as_current():
            finished = as_completed(tasks, loop=client.loop)
        del tasks[:]  # a result can be released once other tasks have used it
        try:
            while True:
                while not finished.has_ready() and not finished.is_empty():
                    with finished.thread_condition:
                        finished.thread_condition.wait(timeout=0.1)
                    self._watch()
                if finished.is_empty():
                    return
                future = next(finished)
                if future.status != "finished":
                    future.result(timeout=10)  # raises its error
                yield number[future.key], future
        except Exception as error:
            raise _explained(client, error, number) from error
        finally:
            _cancel(client, list(finished.futures))

    def gather(self, tasks: Sequence[Task]) -> list[Any]:
        """Return the aligned results of the tasks in order; errors are raised here."""
        client = self.client
        check_connection(client)
        number = {task.key: i for i, task in enumerate(tasks)}
        try:
            from asyncio import run_coroutine_threadsafe  # most commands need no cluster

            waiting = run_coroutine_threadsafe(
                client._gather(list(tasks)), client.loop.asyncio_loop
            )
            while not concurrent.futures.wait([waiting], timeout=_LOOK_SECONDS).done:
                self._watch()
            return [aligned(item) for item in waiting.result()]
        except BaseException as error:
            _cancel(client, list(tasks))
            raise _explained(client, error, number) from error


def _delayed(argument: Any) -> Any:
    """Return an argument of a task with every `Call` in it as a part of the task's graph."""
    import dask

    if isinstance(argument, Call):
        lazy = dask.delayed(argument.function, pure=False, traverse=False)
        return lazy(*map(_delayed, argument.arguments))
    return [_delayed(item) for item in argument] if isinstance(argument, list) else argument


def hand_out(item: Any) -> Any:
    """Return an item for every worker; Dask's dashboard shows this function by name."""
    return item


def large_tasks() -> Any:
    """Silence Dask's warning about tasks larger than 10 MB, which contain landmarks and labels.

    They pass through the scheduler only once.
    """
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})


def balanced(
    holders: Sequence[Sequence[str]], threads: Mapping[str, int]
) -> list[str] | list[None]:
    """Return a worker for each block: one that has it, unless others have less to do.

    All are None if there are no workers; the scheduler then waits for one.

    Examples
    --------
    >>> from krein.data.dask import balanced
    >>> balanced([("a",), ("a",), ("a",), ("a", "b"), ()], {"a": 1, "b": 1})
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


def _explained(client: Any, error: BaseException, number: Mapping[str, int]) -> BaseException:
    """Return the error of a task, translated if it is one of Dask's own."""
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    if isinstance(error, KilledWorker):
        return TaskKilledError(
            f"a task was abandoned after {error.allowed_failures + 1} workers died running it, "
            f"probably out of memory. Give the workers more memory, or divide the collection "
            f"into smaller partitions",
            number.get(str(error.task)),
        )
    if client.status != "running" or isinstance(error, CommClosedError | TimeoutError):
        return lost(client)
    if isinstance(error, CancelledError):
        return RuntimeError(f"the cluster has lost data that the fit needs: {error}")
    return error


def _cancel(client: Any, futures: list[Any]) -> None:
    if futures and client.status == "running":
        client.cancel(futures, force=True)
