"""The connection to a Dask cluster, and what is said when it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..compare.workers import processors

CONNECT_SECONDS = 5.0
"""How long a scheduler may take to answer."""


def connect(address: str, *, timeout: float = CONNECT_SECONDS) -> Any:
    """Return a client of the scheduler at `address`, or of a new local cluster for "local".

    The client is the one that `fit` then uses. A local cluster has a worker of one thread for
    each processor; its dashboard is told by `client.dashboard_link`. Closing the client closes it.

    Parameters
    ----------
    address : str
        "local", or the address of a scheduler: "tcp://host:8786".
    timeout : float, default=5
        Seconds to wait for the scheduler's answer.

    Raises
    ------
    ConnectionError
        Where no scheduler answers.

    Examples
    --------
    >>> from krein.data.client import connect
    >>> connect("host:8786")
    Traceback (most recent call last):
    ValueError: a cluster is 'local' or the address of a scheduler, as in tcp://host:8786; ...
    """
    distributed = _distributed()
    if address == "local":
        return distributed.Client(
            n_workers=processors(), threads_per_worker=1, dashboard_address="127.0.0.1:0"
        )
    if "://" not in address:
        raise ValueError(
            f"a cluster is 'local' or the address of a scheduler, as in tcp://host:8786; "
            f"got {address!r}"
        )
    try:
        return distributed.Client(address, timeout=timeout)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address} within {timeout:g} s ({error}); "
            "is it running, and reachable from here?"
        ) from error


@contextmanager
def current_client() -> Iterator[Any]:
    """Give the client that is there, or for the while threads of this process."""
    distributed = _distributed()
    try:
        client = distributed.default_client()
    except ValueError:
        with distributed.Client(
            processes=False,
            n_workers=1,
            threads_per_worker=processors(),
            dashboard_address="127.0.0.1:0",
            set_as_default=False,
        ) as own:
            yield own
        return
    yield client


def alive(client: Any) -> None:
    """Raise where the scheduler is lost: what is asked of it would wait for it to come back."""
    if client.status != "running":
        raise _lost(client)


def count_threads(client: Any) -> int:
    """Return how many tasks run at a time; raise where there is nobody to work."""
    alive(client)
    threads = sum(client.nthreads().values())
    if not threads:
        raise ConnectionError(
            f"the Dask cluster at {_address(client)} has no workers: start some, e.g. "
            f"dask worker {_address(client)}"
        )
    return int(threads)


def results(client: Any, futures: list[Any]) -> Iterator[tuple[int, Any]]:
    """Yield each future with its number, as they are finished, and let go of it.

    What failed there is raised here, and all others are given up.
    """
    from distributed import as_completed

    alive(client)
    number = {future.key: i for i, future in enumerate(futures)}
    with client.as_current():
        finished = as_completed(futures, loop=client.loop)
    del futures[:]  # a result that others have used may go
    try:
        for future in finished:
            if future.status != "finished":
                _raise(client, future)
            yield number[future.key], future
    except BaseException:
        _give_up(client, list(finished.futures))
        raise


def fetched(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of the futures, in their order; raise what failed there."""
    alive(client)
    try:
        found: list[Any] = client.gather(futures)
    except BaseException as error:
        _give_up(client, futures)
        raise _explained(client, error) from error
    return found


def _raise(client: Any, future: Any) -> None:
    """Raise what went wrong in a task."""
    try:
        future.result(timeout=10)
    except BaseException as error:
        raise _explained(client, error) from error


def _explained(client: Any, error: BaseException) -> BaseException:
    """Return the error of a task, or what it means where it is Dask's own."""
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    if isinstance(error, KilledWorker):
        return RuntimeError(
            f"a task was given up after {error.allowed_failures + 1} workers died with it: out of "
            "memory, most likely. Give the workers more memory, or cut the collection into "
            "smaller partitions"
        )
    if client.status != "running" or isinstance(error, CommClosedError | TimeoutError):
        return _lost(client)
    if isinstance(error, CancelledError):
        return RuntimeError(f"the cluster has given up what the fit needs: {error}")
    return error


def _give_up(client: Any, futures: list[Any]) -> None:
    if client.status == "running":
        client.cancel(list(futures), force=True)


def _lost(client: Any) -> ConnectionError:
    return ConnectionError(
        f"the connection to the Dask scheduler at {_address(client)} is lost. With cache= on "
        "storage that all workers share, a new cluster goes on where this one stopped"
    )


def _address(client: Any) -> str:
    scheduler = getattr(client, "scheduler", None)
    return str(getattr(scheduler, "address", None) or "an unknown address")


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            'a Dask collection needs dask.distributed: pip install "krein[dask]"'
        ) from error
    return distributed
