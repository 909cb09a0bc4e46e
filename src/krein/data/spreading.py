"""A file to a cluster: read once here, each chunk handed to the workers once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .client import alive
from .streamed import CHUNK
from .tree import share


def spread(source: Any, client: Any, size: int = CHUNK) -> tuple[Any, Any]:
    """Return the objects and the labels of a source as two `dask.bag`s on the cluster.

    No more than a chunk is in memory here. Each partition is a task whose result is the chunk, so
    that it outlives the worker that holds it. Workers get one after the other: left to itself the
    scheduler gives whatever takes no time to the first of them.

    Parameters
    ----------
    source : krein.io.Source
        With labels.
    client : distributed.Client
    size : int, default=4096
        Objects of a partition.

    Returns
    -------
    X, y : dask.bag.Bag
    """
    import dask
    import dask.bag as db

    objects, labels = [], []
    workers: Iterator[str] = iter(())
    for chunk in source.chunks(size):
        alive(client)
        worker = next(workers, None)
        if worker is None:  # once round; those that came meanwhile get theirs
            workers = iter(client.nthreads())
            worker = next(workers, None)
        if chunk.labels is None:
            raise ValueError(f"{chunk.where(0)}: there are no labels to learn from")
        # wrapped: a bag made of bare futures does not hold on to them
        objects.append(dask.delayed(share(client, chunk.objects, worker)))
        labels.append(dask.delayed(share(client, chunk.labels, worker)))
    return db.from_delayed(objects), db.from_delayed(labels)
