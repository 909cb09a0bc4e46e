"""Check the input of `fit` and `predict`.

Objects are checked by their measure; only vectors and precomputed values are what scikit-learn
expects as well.
"""

from __future__ import annotations

import os
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_non_negative, validate_data

from ..core.shapes import Array
from ..data.dataset import Survey
from ..measures import Measure
from ..measures.objects import RefusedObject, as_stack, excerpt, unframed
from ..measures.precomputed import refuse_wrong
from ..wording import list_of_measures, parameter

MOST_OBJECTS = 1e15
"""In a larger sum of weights, single objects would be lost in rounding."""


def checked_values(estimator: Any, X: Any, measure: Measure, *, reset: bool, graphs: bool) -> Any:
    """Return a matrix of precomputed values, or a sparse one if the estimator takes `graphs`."""
    if isinstance(X, str | os.PathLike | np.memmap):
        return X  # read by block, and checked there
    strings = isinstance(X, list | tuple | np.ndarray) and getattr(X, "ndim", 1) == 1
    if strings and len(X) and isinstance(X[0], str):
        raise TypeError(
            f"{parameter('measure', repr(measure.name))} takes a matrix of values between "
            f"objects, not strings such as {excerpt(str(X[0]), 20)}; to compare strings, "
            f"use {parameter('measure', repr('levenshtein'))} or another of "
            f"{list_of_measures()}"
        )
    if hasattr(X, "tocsr"):
        if not graphs:
            raise TypeError(
                f"the missing entries of a sparse matrix have no value, and "
                f"{type(estimator).__name__} needs all of them: make it dense, or use "
                "KreinClassifier"
            )
        return X  # checked by the measure
    if not reset:
        _check_columns(estimator, X)
        # n × N or n × m; scikit-learn's error would not say which entry is wrong
        X = check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator)
        refuse_wrong(X, measure.kind)
        return X
    # entries are checked when they are read, with an error that names them
    return validate_data(estimator, X, reset=True, dtype=None, ensure_all_finite=False)


def checked_vectors(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return the rows of X as vectors of numbers."""
    types = getattr(X, "dtypes", None)  # of a frame
    kinds = [getattr(X, "dtype", None)] if types is None else list(types)
    if not all(getattr(kind, "kind", "O") in "fiub" for kind in kinds):
        try:
            as_stack(unframed(X), "vector")  # scikit-learn reads missing times as numbers
        except RefusedObject:
            raise
        except (TypeError, ValueError):
            pass  # scikit-learn's error says more
    try:
        return validate_data(estimator, X, reset=reset, dtype=np.float64)
    except ValueError as error:
        if np.iscomplexobj(X):
            raise
        try:
            np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            pass
        else:  # they are numbers, so another measure would not help
            raise error from None
        raise ValueError(
            f"{error}: the measure {estimator.measure!r} compares vectors of numbers; choose one "
            f"for these objects, e.g. {parameter('measure', repr('levenshtein'))} "
            f"({list_of_measures()} lists them)"
        ) from error


def _check_columns(estimator: Any, X: Any) -> None:
    """Refuse a frame of precomputed values whose columns are other objects than in fit."""
    names, given = getattr(estimator, "feature_names_in_", None), getattr(X, "columns", None)
    if names is None or given is None:
        return
    if len(given) == len(estimator.landmarks_) < len(names):
        names = names[estimator.landmarks_]
    if len(given) != len(names):
        return  # the measure says what is wrong
    other = np.flatnonzero(np.asarray(given, dtype=object) != names)
    if len(other):
        k = int(other[0])
        raise ValueError(
            f"column {k} of X is {given[k]!r}, but {names[k]!r} in fit: pass the columns in "
            "the order of the training objects, as X[clf.feature_names_in_]"
        )


def check_survey(name: str, found: Survey, classes: Any = None) -> Survey:
    """Return the survey for these classes; refuse labels that `name` cannot learn classes from."""
    if found.n_objects == 0:
        raise ValueError(f"there are no objects for {name} to learn from")
    if found.classes.dtype.kind not in "biuUS":  # whole numbers and strings are classes
        assert_all_finite(found.classes, input_name="y")
        check_classification_targets(found.classes)
    known = found if classes is None else found.among(np.unique(classes))
    if len(known.classes) < 2:
        raise ValueError(
            f"{name} needs at least two classes; y contains one class: "
            f"{known.classes.tolist()[0]!r}"
        )
    total = float(found.weights.sum())
    scaled = "weights count objects, so scale them to sum to about that number"
    if not total <= MOST_OBJECTS:
        raise ValueError(
            f"sample_weight sums to {total:.3g} for {found.n_objects} objects: {scaled}"
        )
    if classes is None:
        present = int(np.count_nonzero(found.weights > 0))
        if present < 2:
            raise ValueError(f"{name} needs at least two classes with sample_weight above 0")
        if total - present < 1 and found.weighted > present:
            raise ValueError(
                f"sample_weight sums to {total:.3g} for {found.n_objects} objects: {scaled}"
            )
    return known


def check_weights(weights: Any, n: int | None) -> Array:
    """Return the weights (n,) of objects, or raise an error; one number stands for all of them.

    `n` is None if the objects have not been counted yet.
    """
    if isinstance(weights, Number) and n is not None:
        weights = np.full(n, weights, dtype=np.float64)
    found: Array = check_array(
        weights, ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight"
    )
    if found.ndim != 1 or (n is not None and len(found) != n):
        wanted = "one number per object" if n is None else f"the shape ({n},)"
        raise ValueError(f"sample_weight has the shape {found.shape}; it must have {wanted}")
    if not found.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    check_non_negative(found, "`sample_weight`")
    return found


def check_multiclass(multiclass: str) -> None:
    """Refuse an unknown way to treat several classes."""
    if multiclass not in ("joint", "ovr"):
        raise ValueError(f"multiclass must be 'joint' or 'ovr'; got {multiclass!r}")
