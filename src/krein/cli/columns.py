"""The columns of `krein predict`, in groups, with one function per group.

To add a group, write a function that returns a `Columns`, or None if the model cannot fill it, and
add a line to `columns_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..io import DataError
from .novelty import Asked, evidence_cells, evidence_names, set_cells

OK = "ok"


@dataclass(frozen=True)
class Batch:
    """Objects that were compared, and their predictions."""

    model: Any
    objects: Any
    probabilities: NDArray[np.float64]  # (n, C)
    order: NDArray[np.intp]  # (n, C): classes, the most probable first
    assessed: NDArray[Any]  # (n,): structured, with further predictions of the model

    @classmethod
    def of(cls, model: Any, objects: Any, assessed: NDArray[Any]) -> Batch:
        """Return the batch with its classes sorted by probability."""
        P = assessed["probabilities"]
        return cls(model, objects, P, np.argsort(-P, axis=1, kind="stable"), assessed)

    def place(self, k: int) -> tuple[list[int], list[float]]:
        """Return the k-th most probable class of each object and its probability; k from 0."""
        classes = self.order[:, k]
        rows = np.arange(len(classes))
        return classes.tolist(), self.probabilities[rows, classes].tolist()


class Columns(NamedTuple):
    """Names of columns, and their cells for each object."""

    names: tuple[str, ...]
    cells: Callable[[Batch], Sequence[Sequence[Any]]]


def columns_of(
    model: Any,
    *,
    top: int = 0,
    threshold: float | None = None,
    ranks: tuple[str, float] | None = None,
    every: bool = False,
    asked: Asked | None = None,
) -> list[Columns]:
    """Return the columns that a model can fill.

    With `every`, one of them contains the probabilities of all classes, and one the nearest known
    objects.
    """
    found = [
        label_columns(model),
        rejection_column(threshold),
        *(place_columns(model, k) for k in range(2, top + 1)),
        rank_columns(model, ranks),
        probabilities_column(model) if every else None,
        status_column(),
        novelty_column(model),
        set_column(model, asked),
        neighbours_column(asked) if every else evidence_columns(asked),
    ]
    return [columns for columns in found if columns is not None]


def _names(model: Any) -> list[str]:
    return [str(label) for label in model.classes_.tolist()]


def label_columns(model: Any) -> Columns | None:
    """The best label and the runner-up, each with its probability."""
    names = _names(model)

    def cells(batch: Batch) -> list[list[Any]]:
        (best, p), (second, q) = batch.place(0), batch.place(1)
        return [[names[a], x, names[b], y] for a, x, b, y in zip(best, p, second, q, strict=True)]

    return Columns(("label", "probability", "runner_up", "runner_up_probability"), cells)


def rejection_column(threshold: float | None) -> Columns | None:
    """Whether the best label is less probable than the threshold."""

    def cells(batch: Batch) -> list[list[Any]]:
        return [[threshold is not None and p < threshold] for p in batch.place(0)[1]]

    return Columns(("rejected",), cells)


def place_columns(model: Any, k: int) -> Columns | None:
    """The k-th most probable label; k counts from 1."""
    names = _names(model)
    if k > len(names):
        return None

    def cells(batch: Batch) -> list[list[Any]]:
        return [[names[c], p] for c, p in zip(*batch.place(k - 1), strict=True)]

    return Columns((f"label_{k}", f"probability_{k}"), cells)


def rank_columns(model: Any, ranks: tuple[str, float] | None) -> Columns | None:
    """The deepest rank of a hierarchical label that is probable enough."""
    if ranks is None:
        return None
    from ..core.ranks import Ranks

    separator, above = ranks
    try:
        tree = Ranks.of(_names(model), separator)
    except ValueError as error:
        raise DataError(f"--label-ranks: {error}") from error

    def cells(batch: Batch) -> list[list[Any]]:
        found = zip(*tree.deepest(batch.probabilities, above), strict=True)
        return [[node, float(p), int(rank)] for node, p, rank in found]

    return Columns(("rank_label", "rank_probability", "rank"), cells)


def probabilities_column(model: Any) -> Columns | None:
    """The probability of each class, by its label."""
    names = _names(model)

    def cells(batch: Batch) -> list[list[Any]]:
        return [[dict(zip(names, p, strict=True))] for p in batch.probabilities.tolist()]

    return Columns(("probabilities",), cells)


def status_column() -> Columns | None:
    """The status of a compared object: known, ambiguous or novel if the model can tell."""

    def cells(batch: Batch) -> list[list[Any]]:
        if "status" not in (batch.assessed.dtype.names or ()):
            return [[OK]] * len(batch.probabilities)
        return [[status] for status in batch.assessed["status"].tolist()]

    return Columns(("status",), cells)


def novelty_column(model: Any) -> Columns | None:
    """The p-value for "none of the classes"."""
    if not hasattr(model, "assess"):
        return None
    return Columns(("novelty",), lambda batch: [[p] for p in batch.assessed["novelty"].tolist()])


def set_column(model: Any, asked: Asked | None) -> Columns | None:
    """The labels that cannot be ruled out."""
    if asked is None or asked.sets is None:
        return None
    names = _names(model)
    return Columns(("set",), lambda batch: set_cells(batch.assessed, names))


def evidence_columns(asked: Asked | None) -> Columns | None:
    """The nearest known objects."""
    if asked is None or asked.evidence is None:
        return None
    n = asked.evidence
    return Columns(evidence_names(n), lambda batch: evidence_cells(batch.assessed, n))


def neighbours_column(asked: Asked | None) -> Columns | None:
    """The nearest known objects as a list: name (or row), label and value of the measure."""
    if asked is None or asked.evidence is None:
        return None

    def cells(batch: Batch) -> list[list[Any]]:
        return [
            [
                [
                    {"name": near.name or str(near.index), "label": str(near.label),
                     "value": near.value}
                    for near in why.nearest
                ]
            ]
            for why in batch.assessed["why"]
        ]  # fmt: skip

    return Columns(("evidence",), cells)
