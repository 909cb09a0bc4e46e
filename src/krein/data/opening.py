"""From what a user hands to `fit` or `predict` to where the objects lie."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .collection import CANDIDATES, Collection


def is_source(X: Any) -> bool:
    """Whether X is read by chunks: a source out of `krein.io`, or one that is like it."""
    return callable(getattr(X, "chunks", None))


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask is not imported to find out.

    Examples
    --------
    >>> from krein.data import is_dask
    >>> is_dask(["house", "mouse"])
    False
    """
    return any(
        base.__module__.partition(".")[0] in ("dask", "dask_expr") for base in type(X).__mro__
    )


def is_elsewhere(X: Any, *, precomputed: bool = False) -> bool:
    """Whether the objects X are not in memory: a path, a source, a Dask collection.

    With `precomputed` a path is a matrix of values, which is read by block and is no collection.

    Examples
    --------
    >>> from krein.data import is_elsewhere
    >>> is_elsewhere("words.csv"), is_elsewhere("matrix.npy", precomputed=True)
    (True, False)
    >>> is_elsewhere(["house", "mouse"])
    False
    """
    path = isinstance(X, str | os.PathLike) and not precomputed
    return path or is_source(X) or is_dask(X)


def as_source(X: Any) -> Any:
    """Return X as a source: a path is opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from krein.data import as_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.csv")
    ...     _ = path.write_text("word,language\\nhouse,en\\nhaus,de\\n")
    ...     as_source(path).kind
    'strings'
    """
    if isinstance(X, str | os.PathLike):
        from ..io import open_source

        return open_source(X)
    return X


def open_collection(
    X: Any,
    y: Any = None,
    *,
    precomputed: bool = False,
    threads: bool = True,
    n_jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> Collection | None:
    """Return the collection that X is, or None where its objects are in memory.

    A path, a source, a memory map of more than `CANDIDATES` rows and a Dask collection are
    collections. `threads` says whether the measure gains from several.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.data import open_collection
    >>> open_collection(np.zeros((3, 2))) is None
    True
    """
    options = {"n_jobs": n_jobs, "threads": threads, "verbose": verbose, "folder": cache}
    if is_dask(X):
        from .clustered import Clustered

        return Clustered(X, y, verbose=verbose)
    if precomputed and not is_source(X):
        return None
    if is_elsewhere(X):
        from .streamed import SourceCollection

        return SourceCollection(as_source(X), y, **options)
    if isinstance(X, np.memmap) and X.ndim > 1 and len(X) > CANDIDATES:
        from .streamed import MappedCollection

        return MappedCollection(X, y, **options)
    return None
