"""Labels and groups of objects: checked, and turned into numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import Indices
from ..measures.objects import is_missing

LABELS_AT_ONCE = 65_536
"""Number of labels that are handled together, so that memory does not grow with their number."""


def first_missing(labels: Any) -> int | None:
    """Return the position of the first label that is None, NaN, NA or blank; None if there is none.

    Examples
    --------
    >>> from krein.data.labelling import first_missing
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
    return next(
        (row for row, label in enumerate(labels) if is_missing(label) or _is_blank(label)), None
    )


def _is_blank(label: Any) -> bool:
    return isinstance(label, str | bytes) and not label.strip()


def refuse_missing(labels: Any) -> None:
    """Raise a `ValueError` that names the first object without a label."""
    row = first_missing(labels)
    if row is not None:
        label = labels.ravel()[row] if isinstance(labels, np.ndarray) else labels[row]
        raise ValueError(
            f"y has no label for object {row}: found {label!r}; drop objects without a label, "
            "or label them"
        )


def check_groups(groups: Any, n: int) -> Indices:
    """Return the group of each of `n` objects as the row of its first member.

    None puts every object in a group of its own.

    Examples
    --------
    >>> from krein.data.labelling import check_groups
    >>> check_groups(["a", "b", "a"], 3), check_groups(None, 3)
    (array([0, 1, 0]), array([0, 1, 2]))
    """
    if groups is None:
        return np.arange(n)
    listed = np.asarray(groups, dtype=object)
    if listed.shape != (n,):
        raise ValueError(
            f"groups has the shape {listed.shape}; it must contain one group per object, {n} in all"
        )
    for row, name in enumerate(listed.tolist()):
        if name is None or name != name or str(name).strip() in ("", "<NA>"):
            raise ValueError(
                f"object {row} has no group: give an object without relatives a group of its own"
            )
    names = np.array([str(name) for name in listed])
    _, first, code = np.unique(names, return_index=True, return_inverse=True)
    return first[code].astype(np.intp)


def check_labels(y: Any, n: int) -> NDArray[Any]:
    """Return the labels as a vector, or raise an error unless there are `n` of them."""
    refuse_missing(y)
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be a vector of labels; it has {y.ndim} dimension(s)")
    if len(y) != n:
        raise ValueError(f"y has {len(y)} labels for {n} objects")
    return y


def codes_of(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return the index of each label among the classes, in the smallest suitable type."""
    codes = np.empty(len(labels), dtype=np.min_scalar_type(max(len(classes) - 1, 0)))
    for i in range(0, len(labels), LABELS_AT_ONCE):
        part = labels[i : i + LABELS_AT_ONCE]
        found = np.searchsorted(classes, part).clip(max=len(classes) - 1)
        unseen = classes[found] != part
        if unseen.any():
            label = part[unseen].tolist()[0]
            raise ValueError(f"label {label!r} is not among the classes {classes.tolist()}")
        codes[i : i + LABELS_AT_ONCE] = found
    return codes


def first_equal(keys: Indices) -> Indices:
    """Return, for each number (N,), the position of the first one that is equal.

    >>> first_equal(np.array([7, 5, 7]))
    array([0, 1, 0])
    """
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    found: Indices = first[place]
    return found


def joined_groups(one: Indices, other: Indices) -> Indices:
    """Return groups (N,) of objects that are in one group by either of two divisions.

    >>> joined_groups(np.array([0, 0, 2, 3]), np.array([0, 1, 1, 3]))
    array([0, 0, 0, 3])
    """
    from scipy.sparse import coo_matrix  # unlike coo_array, with the index type csgraph needs
    from scipy.sparse.csgraph import connected_components

    n = len(one)
    rows, columns = np.tile(np.arange(n), 2), np.concatenate([one, other])
    graph = coo_matrix((np.ones(2 * n, dtype=bool), (rows, columns)), shape=(n, n))
    return first_equal(connected_components(graph, directed=False)[1])
