"""Open the data that a user passes to `fit` or `predict`.

This code decides where objects live; beyond it, all data sets look the same. Only what needs all
objects in memory asks again: graphs of hits, and maps.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import try_symmetry
from ..compare.workers import count_workers, in_order
from ..core.shapes import Array
from ..measures import Measure
from ..measures.base import checked_objects
from ..measures.objects import excerpt, refuse_unordered
from .chunks import Chunk, Predict
from .collection import DaskCollection, is_dask, map_lazily
from .dataset import IN_MEMORY_OBJECTS, Dataset
from .foreign import ForeignObjects, ObjectProfile
from .labelling import check_labels
from .local import CHUNK, MappedFile, Memory, SourceFile

_STACK = 4
"""Stack levels from a warning here to the user's call of `predict` or `assess`."""


def in_memory(X: Any, measure: Measure) -> bool:
    """Whether X contains the objects themselves, and is not a path, a source or a Dask collection.

    A memory map of more than 20,000 rows is not in memory. Precomputed values in a file are a
    matrix, which is read block by block, and count as in memory.

    Examples
    --------
    >>> from krein.data import in_memory
    >>> from krein.measures import get_measure
    >>> words, matrix = get_measure("levenshtein"), get_measure("precomputed")
    >>> in_memory("words.csv", words), in_memory("matrix.npy", matrix), in_memory(["a"], words)
    (False, True, True)
    """
    path = isinstance(X, str | os.PathLike) and not measure.reads_files
    return not (path or callable(getattr(X, "chunks", None)) or is_dask(X) or _mapped(X, measure))


def is_empty(X: Any) -> bool:
    """Whether X is a list, an array or a frame without objects.

    Examples
    --------
    >>> from krein.data.opening import is_empty
    >>> is_empty([]), is_empty(["house"]), is_empty("words.csv")
    (True, False, False)
    """
    if isinstance(X, str | bytes | os.PathLike) or is_dask(X):
        return False
    if hasattr(X, "tocsr"):  # the length of a sparse matrix is ambiguous
        return bool(X.shape[0] == 0)
    try:
        return len(X) == 0
    except TypeError:  # a source, or not a collection of objects
        return False


def _mapped(X: Any, measure: Measure) -> bool:
    large = isinstance(X, np.memmap) and X.ndim > 1 and len(X) > IN_MEMORY_OBJECTS
    return large and not measure.reads_files


def open_data(
    X: Any,
    y: Any = None,
    sample_weight: Array | None = None,
    *,
    measure: Measure,
    n_jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    verbose: int | None = None,
    symmetrize: bool = False,
) -> Dataset:
    """Return the data set for X: a sequence of objects, a file, a memory map, or a collection.

    A file with at most 20,000 objects, or one that can be read only once, is read completely.

    Examples
    --------
    >>> from krein.data import open_data
    >>> from krein.measures import get_measure
    >>> data = open_data(["house", "haus"], ["en", "de"], measure=get_measure("levenshtein"))
    >>> data.survey().n_objects
    2
    """
    if is_dask(X):
        X = _in_columns(X, measure)
        return DaskCollection(X, y, sample_weight, verbose=verbose).decide_measure(measure)
    options: dict[str, Any] = {
        "labels": y,
        "weights": sample_weight,
        "n_jobs": n_jobs,
        "verbose": verbose,
    }
    if _mapped(X, measure):
        return MappedFile(X, measure=measure, folder=cache, **options).decide_measure(measure)
    if not in_memory(X, measure):
        file = SourceFile(as_source(X, measure), measure=measure, folder=cache, **options)
        return _read_whole(file, symmetrize) or file.decide_measure(measure)
    refuse_unordered(X)  # before the measure looks at the objects
    measure = measure.decide(X)
    objects = checked_objects(measure, X)
    options["labels"] = None if y is None else check_labels(y, len(objects))
    return _in_memory_dataset(objects, measure, symmetrize, cache, **options)


def _in_memory_dataset(
    objects: Any,
    measure: Measure,
    symmetrize: bool,
    cache: str | os.PathLike[str] | None,
    **options: Any,
) -> Memory:
    """Return objects in the measure's form as a data set; check the measure on them."""
    everyone = np.arange(len(objects))
    objects = measure.among(objects, everyone, everyone, len(objects))
    objects, compared = try_symmetry(measure, objects, symmetrize, cache)
    return Memory(objects, measure=measure, check_comparisons=compared, **options)


def _in_columns(X: Any, measure: Measure) -> Any:
    """Return a Dask frame of records with the columns of the measure, in its order."""
    if measure.columns is None or not hasattr(X, "columns"):
        return X
    missing = [name for name in measure.columns if name not in X.columns]
    if missing:
        known = ", ".join(repr(name) for name in X.columns[:12])
        raise ValueError(f"there is no column {missing[0]!r}; the columns are {known}")
    return X[list(measure.columns)]


def as_source(X: Any, measure: Measure, labels: str | None = None) -> Any:
    """Return X as a source: a path is opened, with the column or the file of its labels."""
    if isinstance(X, str) and X != "-" and not os.path.exists(X):
        raise ValueError(
            f"expected a list of objects or the path of a file; {excerpt(X, 40)} is a single "
            f"string, and there is no such file: for one object, pass a list of one"
        )
    if isinstance(X, str | os.PathLike):
        from ..io import open_source

        columns = None if measure.columns is None else list(measure.columns)
        return open_source(X, objects=columns, labels=labels)
    if labels is not None:
        raise ValueError(
            f"y={labels!r} names the labels in a file, so X must be its path; for a source, name "
            f"them in krein.io.open_source(path, labels={labels!r})"
        )
    return X


def _read_whole(file: SourceFile, symmetrize: bool) -> Memory | None:
    """Return the objects of a source in memory if they are few or can be read only once."""
    once = not getattr(file.source, "rereadable", True)
    chunks, n = [], 0
    for chunk in file.chunks(None):
        n += len(chunk)
        if n > IN_MEMORY_OBJECTS and not once:
            return None
        if chunk.labels is None:
            raise ValueError(f"{chunk.where(0)}: there are no labels to learn from")
        chunks.append(chunk)
    if n == 0:
        raise ValueError("there are no objects to learn from")
    whole = Chunk.joined(chunks)
    measure = file.measure.decide(whole.objects)
    return _in_memory_dataset(
        whole.in_form(measure, part=False),
        measure,
        symmetrize,
        file.folder,
        labels=whole.labels,
        weights=file.weights,
        n_jobs=file.n_jobs,
        verbose=file.verbose,
        provenance=whole.provenance,
    )


def map_objects(
    X: Any,
    function: Predict,
    *,
    measure: Measure,
    block_rows: int,
    shape: tuple[int, ...],
    dtype: Any,
    n_jobs: int | None = None,
    profile: ObjectProfile | None = None,
) -> Any:
    """Return the results of `function` for new objects: one array for objects in memory.

    For a source or a path, return an iterator with one array per chunk. For a Dask collection,
    return a lazy `dask.array`. `shape` and `dtype` are those of one object's result. Objects that
    do not match the profile of the training objects are named in a single warning, after the last
    object in memory or in a file; for a collection, there is one warning per partition.
    """
    if is_dask(X):
        return map_lazily(_in_columns(X, measure), function, shape, dtype, profile)
    workers = count_workers(n_jobs, default_all=measure.releases_gil)
    if _mapped(X, measure):
        chunks = MappedFile(X, measure=measure).chunks(IN_MEMORY_OBJECTS)
    elif in_memory(X, measure):
        chunks = iter([Chunk(0, checked_objects(measure, X), checked=True)])
    else:
        chunks = SourceFile(as_source(X, measure), measure=measure).chunks(CHUNK)

        def answer(chunk: Chunk) -> tuple[Chunk, NDArray[Any]]:
            return chunk, np.concatenate([function(block) for block in chunk.blocks(block_rows)])

        return _one_by_one(in_order(answer, chunks, workers), profile)
    foreign = ForeignObjects(profile)
    found: list[NDArray[Any]] = []
    for chunk in chunks:
        foreign.add(chunk)
        found += in_order(function, chunk.blocks(block_rows), workers)
    if foreign.rows:
        warnings.warn(foreign.warning(), stacklevel=_STACK)
    return np.concatenate(found)


def _one_by_one(
    answered: Iterator[tuple[Chunk, NDArray[Any]]], profile: ObjectProfile | None
) -> Iterator[NDArray[Any]]:
    """Yield the results of each chunk of a file, and warn after the last one."""
    foreign = ForeignObjects(profile)
    for chunk, found in answered:
        foreign.add(chunk)
        yield found
    if foreign.rows:
        warnings.warn(foreign.warning(), stacklevel=2)
