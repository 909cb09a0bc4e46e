"""Dask collections: their partitions, files distributed over a cluster, and lazy predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..measures.likeness import Likeness
from .chunk import Chunk, ObjectError, ProvenanceRange, is_dask
from .daskengine import DaskEngine, current_client
from .daskworkers import alive
from .files import CHUNK
from .otherkind import warn_of_partition
from .partitioned import Partitioned
from .tasks import Partition, as_objects


class DaskCollection(Partitioned):
    """A `dask.bag`, a series or frame of `dask.dataframe`, or a `dask.array`, with labels.

    Labels and weights are other collections with the same partitions, or arrays in memory.
    """

    def __init__(self, X: Any, y: Any, weights: Any = None, *, verbose: int = 0) -> None:
        if y is None:
            raise ValueError("a Dask collection X needs labels y")
        known = getattr(X, "chunks", None)
        lengths = None
        if known is not None and not np.isnan(known[0]).any():
            lengths = [int(n) for n in known[0]]
        self._stack = ExitStack()
        try:
            engine = DaskEngine(self._stack.enter_context(current_client()))
            super().__init__(
                engine,
                partitions(X),
                partitions(y) if is_dask(y) else np.asarray(y),
                partitions(weights) if is_dask(weights) else weights,
                lengths=lengths,
                verbose=verbose,
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the client if it is our own."""
        self._stack.close()


def partitions(collection: Any) -> list[Any]:
    """Return the partitions of a collection, as tasks."""
    if getattr(collection, "ndim", 1) > 1 and hasattr(collection, "rechunk"):
        collection = collection.rechunk(dict.fromkeys(range(1, collection.ndim), -1))
    return list(np.ravel(np.asarray(collection.to_delayed(), dtype=object)))


def spread(source: Any, client: Any, size: int = CHUNK) -> tuple[Any, Any]:
    """Return the objects and the labels of a source as two `dask.bag`s on the cluster.

    At most one chunk is in memory here. Each partition is a task whose result is the chunk, so it
    survives the loss of its worker. Partitions are assigned to workers in turn: by default,
    the scheduler would give tasks that take no time to the first worker.

    Parameters
    ----------
    source : krein.io.Source
        A source with labels.
    client : distributed.Client
    size : int, default=4096
        Number of objects per partition.

    Returns
    -------
    X, y : dask.bag.Bag
    """
    import dask
    import dask.bag as db

    objects, labels = [], []
    engine = DaskEngine(client)
    workers: Iterator[str] = iter(())
    for chunk in source.chunks(size):
        alive(client)
        worker = next(workers, None)
        if worker is None:  # the next round includes workers that have joined meanwhile
            workers = iter(client.nthreads())
            worker = next(workers, None)
        if chunk.labels is None:
            raise ValueError(f"{chunk.where(0)}: there are no labels to learn from")
        # wrapped: a bag of bare futures would not keep them alive
        objects.append(dask.delayed(engine.broadcast(chunk.objects, worker)))
        labels.append(dask.delayed(engine.broadcast(chunk.labels, worker)))
    return db.from_delayed(objects), db.from_delayed(labels)


def map_lazily(
    X: Any,
    function: Callable[[Chunk], NDArray[Any]],
    shape: tuple[int, ...],
    dtype: Any,
    likeness: Likeness | None = None,
) -> Any:
    """Return a `dask.array` of the results of `function` for the objects of X, by partition.

    `shape` and `dtype` are those of one object's result.
    """
    import dask
    import dask.array as da

    shared = dask.delayed(function, pure=False)
    known = getattr(X, "chunks", None)
    parts = partitions(X)
    lengths = list(known[0]) if known is not None else [np.nan] * len(parts)
    empty = np.empty((0, *shape), dtype=dtype)
    run = dask.delayed(predict_partition, pure=False)
    return da.concatenate(
        [
            da.from_delayed(run(shared, p, part, empty, likeness), (n, *shape), dtype=dtype)
            for p, (part, n) in enumerate(zip(parts, lengths, strict=True))
        ],
        allow_unknown_chunksizes=True,
    )


def predict_partition(
    function: Callable[[Chunk], NDArray[Any]],
    number: int,
    part: Any,
    empty: NDArray[Any],
    likeness: Likeness | None = None,
) -> NDArray[Any]:
    """Return the result of the function for a partition."""
    objects = as_objects(part)
    n = len(objects)
    if n == 0:
        return empty
    chunk = Chunk(0, objects, provenance=(ProvenanceRange(Partition(number), 0, n),), size=n)
    warn_of_partition(likeness, chunk)
    try:
        return function(chunk)
    except ObjectError:
        raise
    except ValueError as error:
        raise ObjectError(f"partition {number}: {error}") from error
