"""Summarise an evaluation in a few sentences: the best model, its cost, and where it errs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .charts import percent

if TYPE_CHECKING:
    from ..evaluation import ModelResult

Sentence = list[tuple[str, bool]]  # pieces of text, and whether they are stressed

VISIBLE = 0.0005
"""Accuracies that differ by less than this are printed with the same digits."""

PILED, TIMES, FEWEST = 1 / 3, 2.0, 5
"""Errors are concentrated in a class if it has at least a third of them, twice as many as expected
from its size, and at least five."""


def headline(models: list[ModelResult], best: ModelResult) -> list[Sentence]:
    """Return the opening sentences: the best log-loss, a more accurate model, a cheaper one."""
    found = [_best(best, alone=len(models) == 1)]
    accurate = max(models, key=lambda model: float(model.fold_accuracy.mean()))
    if accurate.fold_accuracy.mean() > best.fold_accuracy.mean() + VISIBLE:
        found.append(
            [
                (accurate.name, True),
                (" is more accurate, with ", False),
                (percent(accurate.fold_accuracy.mean(), 1), True),
                (f" at {_comparisons(accurate)}, but its probabilities are worse (log-loss "
                 f"{accurate.fold_log_loss.mean():.3f}).", False),
            ]
        )  # fmt: skip
    cheaper = _cheaper(models, best)
    if cheaper is not None and cheaper is not accurate:
        found.append(
            [
                (cheaper.name, True),
                (f" needs only {_comparisons(cheaper)} and labels ", False),
                (percent(cheaper.fold_accuracy.mean(), 1), True),
                (" correctly.", False),
            ]
        )
    free = [model for model in models if model.comparisons == 0]
    if free and len(free) < len(models):
        found.append(_worth(free[0], best, accurate))
    return found


def _best(best: ModelResult, *, alone: bool) -> Sentence:
    right = percent(best.fold_accuracy.mean(), 1)
    if alone:
        start: Sentence = [(best.name, True), (" labels ", False)]
    else:
        start = [
            (best.name, True),
            (" has the lowest log-loss, ", False),
            (f"{best.fold_log_loss.mean():.3f}", True),
            (", and labels ", False),
        ]
    return [
        *start, (right, True), (" of unseen objects correctly, with ", False),
        (_comparisons(best), True), (" per prediction.", False),
    ]  # fmt: skip


def _worth(free: ModelResult, best: ModelResult, accurate: ModelResult) -> Sentence:
    """Return a sentence on whether comparisons pay off against a model without any."""
    how = free.title.removesuffix(", no comparisons")
    if free is best:
        return [
            ("No comparison is needed here", True),
            (f": {free.name} ({how}) makes none.", False),
        ]
    told = (
        f" ({how}) makes no comparisons and labels {percent(free.fold_accuracy.mean(), 1)} "
        f"correctly, with a log-loss of {free.fold_log_loss.mean():.3f}"
    )
    if free is accurate:
        return [
            ("If only labels matter, no comparison is needed", True), (": ", False),
            (free.name, True), (told + ".", False),
        ]  # fmt: skip
    return [("Comparisons pay off", True), (": ", False), (free.name, True), (told + ".", False)]


def _cheaper(models: list[ModelResult], best: ModelResult) -> ModelResult | None:
    """Return the best model with at most half the comparisons of the best overall."""
    found = [model for model in models if 0 < model.comparisons <= best.comparisons / 2]
    return min(found, key=lambda model: float(model.fold_log_loss.mean()), default=None)


def _comparisons(model: ModelResult) -> str:
    if model.comparisons == 0:
        return "no comparisons"
    return f"{model.comparisons:,.0f} comparisons"


def piled_errors(model: ModelResult) -> dict[str, Any] | None:
    """Return the class that errors are concentrated in, as the true or as the predicted class."""
    confusion = model.confusion
    errors = confusion.copy()
    np.fill_diagonal(errors, 0)
    total = int(errors.sum())
    if total < FEWEST or len(confusion) < 3:
        return None
    found = []
    for axis, side in ((1, "labelled"), (0, "answered")):
        counts = errors.sum(axis=axis)
        shares = confusion.sum(axis=1) / confusion.sum()
        c = int(counts.argmax())
        if counts[c] >= max(FEWEST, PILED * total, TIMES * shares[c] * total):
            other = errors[c] if axis == 1 else errors[:, c]
            found.append(
                {
                    "side": side,
                    "class": str(model.classes[c]),
                    "count": int(counts[c]),
                    "errors": total,
                    "share": counts[c] / total,
                    "size": float(shares[c]),
                    "other": str(model.classes[int(other.argmax())]),
                    "others": int(other.max()),
                }
            )
    return max(found, key=lambda piled: piled["count"], default=None)
