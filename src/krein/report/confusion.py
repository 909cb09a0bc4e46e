"""Which classes are confused with which: what a person can look at, for 2 classes or 7,000.

Up to 30 classes, the whole matrix is shown. Beyond that, the matrix contains the classes that are
confused most; if labels are paths, one more for each rank above; and a list of all classes can be
searched in the browser.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, find

from ..core.ranks import Ranks
from ..core.shapes import Indices

if TYPE_CHECKING:
    from ..evaluation import ModelResult

MATRIX_CLASSES = 30
"""Number of classes of a confusion matrix."""

FREQUENT = 10
"""Number of confusions that are listed."""

PILED, TIMES_EXPECTED, FEWEST_ERRORS = 1 / 3, 2.0, 5
"""Errors are concentrated in a class if it has at least a third of them, twice as many as expected
from its size, and at least five."""


def confusion_matrix(table: csr_array, names: list[str]) -> dict[str, Any]:
    """Return the rows of the matrix of all classes, or of the 30 that are confused most.

    Each cell has a count and a colour strength. `elsewhere` counts predictions of classes that are
    not shown.
    """
    shown = np.arange(len(names)) if len(names) <= MATRIX_CLASSES else most_confused(table)
    sizes, answered = table.sum(axis=1).tolist(), table.sum(axis=0).tolist()
    rows: list[dict[str, Any]] = []
    inside = table[shown][:, shown].toarray()
    for k, counts in zip(shown.tolist(), inside.tolist(), strict=True):
        size, right = sizes[k], counts[len(rows)]
        cells = []
        for j, count in enumerate(counts):
            share, own = count / size if size else 0.0, j == len(rows)
            # errors are rare: the square root makes one in a hundred visible
            strength = round(92 * (share if own else math.sqrt(share)))
            cells.append({"count": count, "strength": strength, "right": own})
        rows.append(
            {
                "name": names[k],
                "cells": cells,
                "recall": right / size if size else None,
                "precision": right / answered[k] if answered[k] else None,
                "elsewhere": size - sum(counts),
            }
        )
    return {"rows": rows, "all": len(shown) == len(names)}


def most_confused(table: csr_array) -> Indices:
    """Return the classes of the most frequent confusions, up to 30, in order.

    Of equally frequent ones, those of classes with many errors come first.
    """
    wrong = errors(table)
    number = wrong.sum(axis=0) + wrong.sum(axis=1)
    true, taken, count = find(wrong)
    order = np.lexsort((taken, true, -number[true] - number[taken], -count))
    classes = np.column_stack([true[order], taken[order]]).ravel()
    first = np.sort(np.unique(classes, return_index=True)[1])[:MATRIX_CLASSES]
    return np.sort(classes[first])


def matrices_by_rank(table: csr_array, ranks: Ranks) -> list[dict[str, Any]]:
    """Return the confusion matrix of each rank above the classes, with its share of errors."""
    found = []
    for rank, (nodes, parents) in enumerate(zip(ranks.nodes, ranks.parents, strict=True)):
        if not 1 < len(nodes) < table.shape[0]:
            continue
        true, taken, count = find(table)
        cells = parents[true], parents[taken]
        above = csr_array((count, cells), shape=(len(nodes), len(nodes)))
        matrix = confusion_matrix(above, nodes)
        wrong = int(errors(above).sum())
        found.append({"rank": rank + 1, "nodes": len(nodes), "errors": wrong, **matrix})
    return found


def errors(table: csr_array) -> csr_array:
    """Return a confusion matrix without its diagonal."""
    true, taken, count = find(table)
    other = true != taken
    return csr_array((count[other], (true[other], taken[other])), shape=table.shape)


def frequent_confusions(table: csr_array, names: list[str]) -> list[dict[str, Any]]:
    """Return the most frequent confusions, with the true class first."""
    sizes = table.sum(axis=1)
    true, taken, count = find(errors(table))
    order = np.lexsort((taken, true, -count))[:FREQUENT]
    return [
        {
            "true": names[true[k]],
            "taken": names[taken[k]],
            "count": int(count[k]),
            "size": int(sizes[true[k]]),
        }
        for k in order.tolist()
    ]


def piled_errors(table: csr_array, names: list[str]) -> dict[str, Any] | None:
    """Return the class that errors are concentrated in, as the true or as the predicted class."""
    wrong = errors(table)
    total, shares = int(wrong.sum()), table.sum(axis=1) / table.sum()
    if total < FEWEST_ERRORS or len(names) < 3:
        return None
    found = []
    for side, by_class in (("labelled", wrong), ("answered", csr_array(wrong.T))):
        counts = by_class.sum(axis=1)
        c = int(counts.argmax())
        if counts[c] >= max(FEWEST_ERRORS, PILED * total, TIMES_EXPECTED * shares[c] * total):
            others = by_class[[c]].toarray()[0]
            found.append(
                {
                    "side": side,
                    "class": names[c],
                    "count": int(counts[c]),
                    "errors": total,
                    "share": counts[c] / total,
                    "size": float(shares[c]),
                    "other": names[int(others.argmax())],
                    "others": int(others.max()),
                }
            )
    return max(found, key=lambda piled: piled["count"], default=None)


def class_figures(model: ModelResult) -> dict[str, list[int]]:
    """Return the figures of each class, for the list that can be searched.

    These are the numbers of objects, of correct predictions and of all predictions, and the class
    that is most often predicted for its objects by mistake, −1 if none is.
    """
    table = model.confusion
    taken: Indices = np.full(len(model.classes), -1)
    true, other, count = find(errors(table))
    order = np.lexsort((-other, count))  # the last one of each class is the most frequent
    taken[true[order]] = other[order]
    return {
        "size": table.sum(axis=1).tolist(),
        "right": table.diagonal().tolist(),
        "answered": table.sum(axis=0).tolist(),
        "other": taken.tolist(),
    }
