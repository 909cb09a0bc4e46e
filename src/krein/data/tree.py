"""What travels on a cluster: one item to all workers, and sums, merged as a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..core.ordered import FAN, ordered_sum
from .client import fetched

Result = TypeVar("Result")


def share(client: Any, item: Any, worker: str | None = None) -> Any:
    """Return `item` as the future of a task that gives it: a worker fetches it once, and keeps it.

    Not scattered: what was scattered is lost with the worker that holds it. With `worker`, its
    address, preferably there.
    """
    with large_tasks():
        return client.submit(
            hand_out, item, pure=False, workers=worker, allow_other_workers=worker is not None
        )


def large_tasks() -> Any:
    """Have Dask say nothing of landmarks and labels that tasks are made of, above 10 MB of them.

    They pass through the scheduler once.
    """
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})


def branches(client: Any, futures: list[Any], add: Callable[[Any, Any], Any]) -> list[Any]:
    """Return the sums of `FAN` results each, merged on the cluster."""
    return [
        client.submit(merge_branch, add, futures[i : i + FAN], pure=False)
        for i in range(0, len(futures), FAN)
    ]


def tree_sum(client: Any, futures: list[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Return the sum of the results in the fixed order, merged on the cluster `FAN` at a time."""
    while len(futures) > FAN:
        futures = branches(client, futures, add)
    return ordered_sum(fetched(client, futures), add)


# Dask's dashboard shows these by name


def hand_out(item: Result) -> Result:
    """Return what every worker is to have."""
    return item


def merge_branch(add: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """Return the sum of a branch of tasks."""
    return ordered_sum(parts, add)
