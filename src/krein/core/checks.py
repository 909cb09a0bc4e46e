"""Arrays and their shapes; checks of labels and landmarks, whose errors name the first invalid one.

Shapes and limits are written once, in the annotation of a field or an attribute:

    dual_coef: Annotated[Array, "m C"]
    codes: Annotated[Codes, "n", Within(0, below="C")]

A symbol stands for the same number everywhere in a model: `m` landmarks, `C` classes. Readers find
the shapes there, and a model file is checked against them when it is loaded (`krein.model.schema`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Codes = NDArray[Any]  # whole numbers 0…C−1, in any type
Kind = Literal["similarity", "dissimilarity"]


@dataclass(frozen=True)
class Within:
    """Limits on the numbers of an annotated field: `low` ≤ x ≤ `high`, and finite.

    With `below`, they are indices, smaller than the size that the symbol stands for. `infinite`
    names the infinities that are allowed.
    """

    low: float = -np.inf
    high: float = np.inf
    below: str | None = None
    infinite: tuple[float, ...] = ()


POSITIVE = Within(1e-300, 1e300)
TEMPERATURE = Within(1e-12, 1e12)
"""Scores times a temperature must not overflow; those found in fits are within e^±13."""
NON_NEGATIVE = Within(0.0)
SHARE = Within(0.0, 1.0)
ROW = Within(0)
"""A row of the training objects, whose number a model does not need to know."""
CODE = Within(0, below="C")
LOG = Within(infinite=(-np.inf,))
"""A logarithm: −∞ is the logarithm of 0."""

SYMMETRY_TOLERANCE = 1e-8
"""Largest |K − Kᵀ| relative to the largest |K| that counts as rounding."""


def weights_of(weights: Array | None, n: int) -> Array:
    """Return the weights of n objects, which are 1 if none are given."""
    return np.ones(n) if weights is None else weights


def first_missing(labels: Any) -> int | None:
    """Return the position of the first label that is None, NaN, NA or blank; None if there is none.

    Examples
    --------
    >>> from krein.core.checks import first_missing
    >>> first_missing(["en", "de", ""]), first_missing([1.0, 2.0])
    (2, None)
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "biu":
        return None
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "fUS":
        text = labels.dtype.kind != "f"
        found = np.char.str_len(np.char.strip(labels)) == 0 if text else np.isnan(labels)
        return int(np.argmax(found.ravel())) if found.any() else None
    if not hasattr(labels, "__iter__"):  # readable only as a NumPy array
        labels = np.asarray(labels, dtype=object)
    return next((row for row, label in enumerate(labels) if _is_missing(label)), None)


def _is_missing(label: Any) -> bool:
    if label is None:
        return True
    if isinstance(label, str | bytes):
        return not label.strip()
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # an array
        return False


def refuse_missing(labels: Any) -> None:
    """Raise a `ValueError` that names the first object without a label."""
    row = first_missing(labels)
    if row is not None:
        label = labels.ravel()[row] if isinstance(labels, np.ndarray) else labels[row]
        raise ValueError(
            f"y has no label for object {row}: found {label!r}; drop objects without a label, "
            "or label them"
        )


def check_labels(y: Any, n: int) -> NDArray[Any]:
    """Return the labels as a vector, or raise an error unless there are `n` of them."""
    refuse_missing(y)
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be a vector of labels; it has {y.ndim} dimension(s)")
    if len(y) != n:
        raise ValueError(f"y has {len(y)} labels for {n} objects")
    return y


def check_landmarks(indices: Any, n: int) -> Indices:
    """Return landmark indices into `n` objects: integers in range, without repeats."""
    indices = np.asarray(indices)
    if indices.ndim != 1 or len(indices) == 0:
        raise ValueError(f"landmarks must be a non-empty vector of indices; got {indices!r}")
    if indices.dtype.kind not in "iu":
        hint = "; np.flatnonzero(mask) turns a mask into indices" if indices.dtype == bool else ""
        raise ValueError(f"landmarks must be whole numbers; got {indices.dtype}{hint}")
    outside = (indices < 0) | (indices >= n)
    if outside.any():
        raise ValueError(f"landmark {indices[outside][0]} is out of range for {n} objects")
    values, first, counts = np.unique(indices, return_index=True, return_counts=True)
    if (counts > 1).any():
        repeated = values[counts > 1][np.argmin(first[counts > 1])]
        raise ValueError(f"landmark {repeated} is given more than once")
    return indices.astype(np.intp)
