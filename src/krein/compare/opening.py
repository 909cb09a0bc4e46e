"""Open pairs for the user's objects: among themselves, or new ones with landmarks."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from ..measures import get_measure
from ..measures.base import checked_objects
from .pairs import Counter, Pairs, averages, open_cache, try_symmetry


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

    A plain function is checked on up to 8 pairs in both directions, which are counted, unless the
    cache shows that it has been checked before.

    Parameters
    ----------
    measure : str, Measure or callable
        A name from `krein.measures.available()`, a `Measure`, a function of two objects, or
        "precomputed" / "precomputed-distance".
    X : sequence of objects
        For a precomputed measure, the N×N matrix: an array, a memory map, or the path of an `.npy`
        file, which is read by block.
    measure_params : dict, optional
        Parameters of a measure given by name.
    n_jobs : int or None
        Workers. None: all processors for measures that release Python's lock, one process for a
        plain function. -1: all processors.
    cache : path, optional
        A folder for the finished blocks of one measure (a folder of another measure is refused); a
        later run compares only missing blocks. Blocks are identified by the contents of their
        objects, so one folder serves folds, refits and predictions. A block is reused only as a
        whole, when the same rows meet the same columns. A function is identified by its code and
        everything it closes over, but not by what it reads from its module: use another folder if
        that changes. Not used with a matrix.
    verbose : int
        Above 0, show a progress bar if standard error is a terminal.
    symmetrize : bool
        Average both directions of a measure or matrix that is not symmetric. For new objects, a
        matrix contains only one direction: `open_new_pairs` uses its n × N values unchanged.

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
    chosen = get_measure(measure, measure_params).decide(X)
    objects = checked_objects(chosen, X)
    everyone = np.arange(len(objects))
    objects = chosen.among(objects, everyone, everyone, len(objects))
    objects, spent = try_symmetry(chosen, objects, symmetrize, cache)
    return Pairs(
        chosen,
        objects,
        n_jobs=n_jobs,
        cache=open_cache(cache, chosen, symmetrize),
        verbose=verbose,
        symmetrize=averages(chosen, symmetrize),
        counter=Counter(spent),
    )


def open_new_pairs(
    measure: Any,
    X: Any,
    landmarks: Any,
    *,
    measure_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    cache: str | PathLike[str] | None = None,
    verbose: int = 0,
    symmetrize: bool = False,
) -> Pairs:
    """Return the pairs of new objects X (rows) with the landmarks (columns 0 … m − 1).

    `landmarks` are the landmark objects, in the form that the measure stores: `landmark_objects_`
    of a fitted model, or what `measure.check` returned. The other parameters are the same as in
    `open_pairs`.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import open_new_pairs
    >>> pairs = open_new_pairs("levenshtein", ["louse"], ["house", "maus"])
    >>> pairs.block(np.arange(1), np.arange(2))
    array([[1., 3.]])
    """
    chosen = get_measure(measure, measure_params).decide(landmarks)
    objects = checked_objects(chosen, X)
    if not chosen.symmetric:
        chosen.check_symmetry(objects, symmetrize)
    return Pairs(
        chosen,
        objects,
        chosen.landmarks_for(objects, landmarks),
        n_jobs=n_jobs,
        cache=open_cache(cache, chosen, symmetrize),
        verbose=verbose,
        symmetrize=averages(chosen, symmetrize),
    )
