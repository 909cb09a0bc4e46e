"""The sections of a report on unknown classes and on labels that may be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..evaluation import Evaluation, ModelResult

SHOWN = 12
"""Number of classes in the table, the hardest to recognise first; the rest can be expanded."""


def unknown_content(models: list[ModelResult]) -> dict[str, Any] | None:
    """Return how well the first two-look model recognises each class when it is unknown."""
    model = next((one for one in models if one.unknown is not None), None)
    if model is None:
        return None
    found = model.unknown
    assert found is not None
    order = np.argsort(found.auroc, kind="stable")
    rows = [
        {
            "class": str(model.classes[found.codes[k]]),
            "auroc": float(found.auroc[k]),
            "bar": round(max(0.0, 200 * (float(found.auroc[k]) - 0.5)), 1),
            "found": float(found.found[k]),
            "nearest": str(model.classes[found.nearest[k]]),
        }
        for k in order.tolist()
    ]
    return {
        "model": model.name,
        "mean": float(found.auroc.mean()),
        "found": float(found.found.mean()),
        "rows": rows[:SHOWN],
        "more": rows[SHOWN:],
        "n": found.n,
        "left_out": len(model.classes) - len(rows),
    }


def strange_content(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the objects whose labels may be wrong, according to the first two-look model."""
    model = next((one for one in evaluation.models.values() if one.unknown is not None), None)
    if model is None:
        return None
    return {
        "model": model.name,
        "rows": [
            {
                "name": evaluation.names[one.index],
                "label": str(evaluation.labels[one.index]),
                "p": one.probability,
                "other": str(model.classes[one.other]),
                "q": one.other_probability,
                "nearest": [
                    {"name": evaluation.names[i], "label": str(evaluation.labels[i])}
                    for i in one.nearest
                ],
            }
            for one in model.strange
        ],
    }
