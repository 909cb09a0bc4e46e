"""Check a Dask cluster: the scheduler, and workers that run the same version of krein."""

from __future__ import annotations

import sys
from typing import Any


def alive(client: Any) -> None:
    """Raise an error if the connection to the scheduler is lost: requests would wait for it."""
    if client.status != "running":
        raise lost(client)


def count_threads(client: Any) -> int:
    """Return the number of tasks that run at a time; raise an error if there are no workers."""
    alive(client)
    threads = running_threads(client)
    if not threads:
        raise ConnectionError(
            f"the Dask cluster at {address_of(client)} has no workers: start some, e.g. "
            f"dask worker {address_of(client)}"
        )
    return threads


def running_threads(client: Any) -> int:
    """Return the number of tasks that run at a time; 0 without workers."""
    try:
        return int(sum(client.nthreads().values()))
    except (OSError, TimeoutError) as error:  # including Dask's CommClosedError
        raise lost(client) from error


def check_workers(client: Any) -> None:
    """Raise an error if a worker lacks krein, or has another version of krein, Python or NumPy.

    Tasks are functions of krein, and results must be the same on all machines.
    """
    import numpy as np

    from ..version import __version__

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

    own = {"Python": "{}.{}".format(*sys.version_info), "numpy": np.__version__}
    own["krein"] = __version__
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
                    f"{version}: "
                    "install the same version on all machines"
                )


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
