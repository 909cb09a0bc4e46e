"""The two ways into blocks: objects among themselves, and new objects against landmarks."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal

import numpy as np

from ..measures import Measure, get_measure
from ..measures.base import Objects
from ..measures.function import FunctionMeasure, sample_symmetry
from .cache import BlockCache, was_made
from .matrix import as_matrix, check_square, is_mapped
from .matrixpairs import MatrixPairs
from .pairs import Indices, ObjectPairs, Pairs

PRECOMPUTED: dict[str, Literal["similarity", "dissimilarity"]] = {
    "precomputed": "similarity",
    "precomputed-distance": "dissimilarity",
}


def is_precomputed(measure: Any) -> bool:
    """Whether `measure` says that X is a matrix of values.

    Examples
    --------
    >>> from krein.compare import is_precomputed
    >>> is_precomputed("precomputed-distance"), is_precomputed("dtw")
    (True, False)
    """
    return isinstance(measure, str) and measure in PRECOMPUTED


def open_pairs(
    measure: Any,
    X: Any,
    *,
    measure_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    cache: str | PathLike[str] | None = None,
    verbose: int = 0,
    symmetrize: bool = False,
) -> Pairs:
    """Return the pairs of the objects X among themselves, checked and ready to be compared.

    - `measure`: a name out of `krein.measures.available()`, a `Measure`, a function of two
      objects, or "precomputed" / "precomputed-distance" with X the N×N matrix: an array, a
      memory map, or the path of an `.npy` file, which is read by block. Where X is `Pairs`
      already they are returned as they are, and no parameter is looked at.
    - `n_jobs`: workers. None: all processors for measures that release Python's lock, this
      process alone for a plain function. -1: all processors.
    - `cache`: a folder that keeps every finished block of one measure (one of another measure is
      refused); a later run compares only blocks that are missing. Blocks are known by the
      contents of their objects, so that one folder serves folds, refits and predictions, and
      reused as wholes, where the same rows meet the same columns. A function is known by its code
      and all that it holds, but not by what it reads from its module: name another folder when
      that changes. Not used with a matrix.
    - `verbose`: above 0, a progress bar where standard error is a terminal.
    - `symmetrize`: average both directions of a measure or matrix that is not symmetric. Of new
      objects a matrix holds one direction alone: `open_new_pairs` takes its n × N values as they
      are.

    A plain function is tried on up to 8 pairs in both directions, which are counted; not where
    the cache shows that it was tried before.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import open_pairs
    >>> pairs = open_pairs("levenshtein", ["house", "mouse", "haus"])
    >>> pairs.block(np.arange(3), np.array([0]))
    array([[0.],
           [1.],
           [2.]])
    >>> pairs.evaluations
    3
    """
    if isinstance(X, Pairs):
        return X
    if is_precomputed(measure):
        _no_params(measure, measure_params)
        kind, matrix = PRECOMPUTED[measure], as_matrix(_some(X))
        check_square(matrix, kind, symmetrize=symmetrize)
        return MatrixPairs(
            matrix,
            kind,
            n_jobs=n_jobs,
            verbose=verbose,
            symmetrize=symmetrize,
            watch=is_mapped(matrix),
        )
    chosen = get_measure(measure, measure_params)
    objects = _objects(chosen, X)
    _refuse_asymmetric(chosen, symmetrize)
    spent = 0
    if isinstance(chosen, FunctionMeasure) and not symmetrize and not was_made(cache):
        spent, asymmetry = sample_symmetry(chosen, objects)
        if asymmetry:
            raise ValueError(
                f"the function {chosen.called()} is not symmetric: {asymmetry}; "
                "symmetrize=True takes the average of both, at twice the comparisons"
            )
    average = symmetrize and _may_differ(chosen)
    pairs = ObjectPairs(
        chosen,
        objects,
        n_jobs=n_jobs,
        cache=None if cache is None else BlockCache(cache, chosen, average),
        verbose=verbose,
        symmetrize=average,
    )
    pairs.evaluations += spent
    return pairs


def open_new_pairs(
    measure: Any,
    X: Any,
    landmarks: Objects | Indices,
    *,
    n_train: int | None = None,
    measure_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    cache: str | PathLike[str] | None = None,
    verbose: int = 0,
    symmetrize: bool = False,
) -> Pairs:
    """Return the pairs of new objects X (rows) with the landmarks (columns 0 … m − 1).

    `landmarks` are the landmark objects, as `measure.check` returned them. Where the measure is
    "precomputed" or "precomputed-distance" they are the indices of the landmarks among the
    `n_train` training objects, and X is n × n_train (scikit-learn's shape) or n × m, the
    landmark columns alone. So it is where X is `Pairs` of the new objects with all training
    objects. The other parameters are those of `open_pairs`.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import open_new_pairs
    >>> pairs = open_new_pairs("levenshtein", ["louse"], ["house", "maus"])
    >>> pairs.block(np.arange(1), np.arange(2))
    array([[1., 3.]])
    """
    if isinstance(X, Pairs):
        return X.part(np.arange(len(X)), np.asarray(landmarks, dtype=np.intp))
    if is_precomputed(measure):
        _no_params(measure, measure_params)
        matrix, columns = as_matrix(_some(X)), np.asarray(landmarks, dtype=np.intp)
        n, width = matrix.shape
        if width != n_train and width != len(columns):
            full = "" if n_train is None else f"n × {n_train} (all training objects) or "
            raise ValueError(
                f"a precomputed matrix of new objects is {full}n × {len(columns)} "
                f"(the landmarks alone); got {n} × {width}"
            )
        return MatrixPairs(
            matrix,
            PRECOMPUTED[measure],
            columns=columns if width == n_train else None,
            n_jobs=n_jobs,
            verbose=verbose,
            watch=True,
        )
    chosen = get_measure(measure, measure_params)
    objects = _objects(chosen, X)
    chosen.check_alike(objects, landmarks)
    _refuse_asymmetric(chosen, symmetrize)
    average = symmetrize and _may_differ(chosen)
    return ObjectPairs(
        chosen,
        objects,
        landmarks,
        n_jobs=n_jobs,
        cache=None if cache is None else BlockCache(cache, chosen, average),
        verbose=verbose,
        symmetrize=average,
    )


def _objects(measure: Measure, X: Any) -> Objects:
    """Return the objects in the measure's form, one for every row of X and at least one."""
    objects = measure.check(_some(X))
    given = _rows(X)
    if given is not None and len(objects) != given:
        raise ValueError(
            f"X has {given} rows, of which the measure {measure.name!r} made {len(objects)} objects"
        )
    if len(objects) == 0:
        raise ValueError("there are no objects to compare")
    return objects


def _some(X: Any) -> Any:
    """Return X unless it is empty, which every measure would tell in words of its own."""
    if _rows(X) == 0:
        raise ValueError("there are no objects to compare")
    return X


def _rows(X: Any) -> int | None:
    """Return how many objects X holds; None where that shows only as they are read."""
    if isinstance(X, str | bytes | PathLike):
        return None
    shape = getattr(X, "shape", None)
    if shape:
        return int(shape[0])
    try:
        return len(X)
    except TypeError:
        return None


def _may_differ(measure: Measure) -> bool:
    """Whether a with b may be another value than b with a: what `symmetrize` is for."""
    return isinstance(measure, FunctionMeasure) or not measure.symmetric


def _refuse_asymmetric(measure: Measure, symmetrize: bool) -> None:
    if not measure.symmetric and not symmetrize:
        raise ValueError(
            f"the measure {measure.name!r} is not symmetric; symmetrize=True takes the average "
            "of both directions, at twice the comparisons"
        )


def _no_params(measure: str, params: dict[str, Any] | None) -> None:
    if params:
        raise ValueError(f"measure_params mean nothing with measure={measure!r}: {params}")
