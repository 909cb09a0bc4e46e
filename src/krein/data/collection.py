"""Collections of Dask: data sets, files distributed over a cluster, and lazy predictions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chunks import Chunk, ObjectError, Predict, where_numbered
from .dask import DaskEngine, check_connection, current_client
from .foreign import ForeignObjects, ObjectProfile
from .local import CHUNK
from .partitioned import Partitioned, as_objects


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask is not imported to find out.

    Examples
    --------
    >>> from krein.data.collection import is_dask
    >>> is_dask(["house", "mouse"])
    False
    """
    return any(
        base.__module__.partition(".")[0] in ("dask", "dask_expr") for base in type(X).__mro__
    )


class DaskCollection(Partitioned):
    """A `dask.bag`, a series or frame of `dask.dataframe`, or a `dask.array`, with labels.

    Labels and weights are other collections with the same partitions, or arrays in memory. If they
    and the objects have an index, they are matched by it; otherwise by position.
    """

    def __init__(self, X: Any, y: Any, weights: Any = None, *, verbose: int | None = None) -> None:
        if y is None:
            raise ValueError("a Dask collection X needs labels y")
        lengths = known_lengths(X)
        with ExitStack() as stack:
            super().__init__(
                DaskEngine(current_client(stack)),
                partitions(X),
                partitions_like(X, y, "y") if is_dask(y) else np.asarray(in_order_of(X, y, "y")),
                partitions_like(X, weights, "sample_weight") if is_dask(weights) else weights,
                lengths=None if np.isnan(lengths).any() else lengths,
                verbose=verbose,
            )
            self._stack = stack.pop_all()  # closed by `close`

    def close(self) -> None:
        """Close the client if it is our own."""
        self._stack.close()


def known_lengths(collection: Any) -> list[Any]:
    """Return the number of objects in each partition, nan where it is unknown."""
    chunks = getattr(collection, "chunks", None)
    return [np.nan] * collection.npartitions if chunks is None else list(chunks[0])


def partitions(collection: Any) -> list[Any]:
    """Return the partitions of a collection, as tasks."""
    if getattr(collection, "ndim", 1) > 1 and hasattr(collection, "rechunk"):
        collection = collection.rechunk(dict.fromkeys(range(1, collection.ndim), -1))
    return list(np.ravel(np.asarray(collection.to_delayed(), dtype=object)))


def partitions_like(X: Any, collection: Any, name: str) -> list[Any]:
    """Return the partitions of labels or weights, as tasks, each in the order of the objects."""
    parts = partitions(collection)
    if not _indexed(X) or not _indexed(collection) or len(parts) != X.npartitions:
        return parts  # Partitioned refuses another number of partitions
    import dask

    reorder = dask.delayed(in_order_of)
    return [
        reorder(index, part, name) for index, part in zip(partitions(X.index), parts, strict=True)
    ]


def _indexed(X: Any) -> bool:
    """Whether X is a frame or a series of Dask, whose objects have an index."""
    return is_dask(X) and hasattr(X, "divisions") and hasattr(X, "index")


def in_order_of(X: Any, labels: Any, name: str) -> Any:
    """Return labels of pandas in the order of X, an index or a collection with one.

    Labels without an index are returned unchanged. If the indices differ by more than their order,
    it is unknown which label belongs to which object.

    Examples
    --------
    >>> import pandas as pd
    >>> from krein.data.collection import in_order_of
    >>> in_order_of(pd.Index([7, 8]), pd.Series(["b", "a"], index=[8, 7]), "y").tolist()
    ['a', 'b']
    """
    if not hasattr(labels, "reindex") or (is_dask(X) and not _indexed(X)):
        return labels
    index = X.index.compute() if is_dask(X) else X
    if labels.index.equals(index):
        return labels
    if labels.index.is_unique and index.is_unique and len(index) == len(labels):
        found = labels.index.get_indexer(index)
        if (found >= 0).all():
            return labels.iloc[found]
    raise ValueError(
        f"X and {name} have different indices, so they cannot be matched: give {name} the index of "
        f"X in each partition, or pass an array without an index to match by position"
    )


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
        check_connection(client)
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
    X: Any, function: Predict, shape: tuple[int, ...], dtype: Any, profile: ObjectProfile | None
) -> Any:
    """Return a `dask.array` of the results of `function` for the objects of X, by partition.

    `shape` and `dtype` are those of one object's result.
    """
    import dask
    import dask.array as da

    shared = dask.delayed(function, pure=False)
    empty = np.empty((0, *shape), dtype=dtype)
    run = dask.delayed(predict_partition, pure=False)
    return da.concatenate(
        [
            da.from_delayed(run(shared, p, part, empty, profile), (n, *shape), dtype=dtype)
            for p, (part, n) in enumerate(zip(partitions(X), known_lengths(X), strict=True))
        ],
        allow_unknown_chunksizes=True,
    )


def predict_partition(
    function: Predict, number: int, part: Any, empty: NDArray[Any], profile: ObjectProfile | None
) -> NDArray[Any]:
    """Return the result of the function for a partition, and warn about its foreign objects.

    A warning on a worker reaches the client, too.
    """
    chunk = Chunk(
        0, as_objects(part), provenance=partial(where_numbered, f"partition {number}, object", 0)
    )
    if len(chunk) == 0:
        return empty
    foreign = ForeignObjects(profile)
    foreign.add(chunk)
    if foreign.rows:
        from distributed import warn

        warn(foreign.warning())
    try:
        return function(chunk)
    except ObjectError:
        raise
    except ValueError as error:
        raise ObjectError(f"partition {number}", str(error)) from error
