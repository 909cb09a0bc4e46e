"""The content of a report as plain values: sentences, tables, geometry. The template formats it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .charts import (
    RejectPoint,
    chosen_point,
    growth_chart,
    percent,
    reject_chart,
    reliability_chart,
    spectrum_chart,
)
from .headline import headline, piled_errors
from .lookcharts import look_charts
from .objectmap import draw_map
from .unknown import strange_content, unknown_content

if TYPE_CHECKING:
    from ..evaluation import Evaluation, ModelResult

LISTED = 10
"""Number of objects in each list."""


def report_content(
    evaluation: Evaluation,
    *,
    title: str | None,
    command: str | None,
    threshold: float | None,
) -> dict[str, Any]:
    """Return everything that the template fills in."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be a probability from 0 to 1; got {threshold}")
    models = list(evaluation.models.values())
    best = models.index(evaluation.best)
    summary = evaluation.summary()
    classes = summary["classes"]
    chosen = [chosen_point(model, threshold) for model in models]
    measure = evaluation.settings["measure"]
    what = "a given matrix" if evaluation.pairs.given else measure
    codes = np.searchsorted(evaluation.classes, evaluation.labels)
    shown = evaluation.map.objects
    drawn = draw_map(evaluation.map, codes[shown], classes)
    return {
        "title": title or f"{len(evaluation.names):,} objects under {what}",
        "command": command,
        "summary": summary,
        "n": len(evaluation.names),
        "what": what,
        "best": best,
        "headline": headline(models, evaluation.best),
        "ranks": None if evaluation.ranks is None else evaluation.best.by_rank(*evaluation.ranks),
        "rank_above": None if evaluation.ranks is None else evaluation.ranks[1],
        "near_copies": summary["near_copies"],
        "models": [
            _model(evaluation, model, point) for model, point in zip(models, chosen, strict=True)
        ],
        "whiskers": _whiskers(models),
        "classes": classes,
        "longest_class": max(len(name) for name in classes),
        "reliability": reliability_chart(models),
        "reject": reject_chart(models, chosen),
        "spectrum": spectrum_chart(evaluation.spectrum.eigenvalues),
        "growth": growth_chart(models),
        "looks": look_charts(models),
        "looked_at": max((m.looks.n for m in models if m.looks is not None), default=0),
        "unknown": unknown_content(models),
        "strange": strange_content(evaluation),
        "map": drawn,
        "found": evaluation.map,
        "mapped_codes": codes[shown].tolist(),
        "landmarks": np.flatnonzero(np.isin(shown, evaluation.map.landmarks)).tolist(),
        "duplicates": _duplicates(evaluation),
        "data": _data(evaluation, models, drawn.xy, codes),
        "percent": percent,
        "seconds": told_seconds,
        "settings": _settings(evaluation),
        "given_threshold": threshold is not None,
        "guess": _guessing(summary["class_sizes"]),
        "scale": _fit_square(evaluation) if evaluation.pairs.given else len(codes) ** 2,
        "slowest": max(sum(model.seconds.values()) for model in models) or 1.0,
    }


def told_seconds(seconds: float) -> str:
    """Return a duration as readable text.

    >>> [told_seconds(s) for s in (0.004, 3.21, 75, 7330)]
    ['4 ms', '3.2 s', '1 min 15 s', '2 h 2 min']
    """
    if seconds < 0.0005:
        return "0"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60} min"


def _model(evaluation: Evaluation, model: ModelResult, point: RejectPoint | None) -> dict[str, Any]:
    told = model.summary()
    bins = model.reliability
    return {
        **told,
        "point": point,
        "confusion": _confusion(model),
        "confusions": _confusions(model),
        "piled": piled_errors(model),
        "doubtful": _doubtful(evaluation, model),
        "surprising": _surprising(evaluation, model),
        "bins": [
            {
                "from": bins.edges[i],
                "to": bins.edges[i + 1],
                "count": int(bins.count[i]),
                "confidence": bins.confidence[i],
                "accuracy": bins.accuracy[i],
            }
            for i in np.flatnonzero(bins.count)
        ],
        "wrong": np.flatnonzero(~model.right[evaluation.map.objects]).tolist(),
        "total": sum(told["seconds"].values()),
    }


def _confusion(model: ModelResult) -> list[dict[str, Any]]:
    """Return the rows of the matrix, with the count and colour strength of each cell."""
    rows = []
    answered = model.confusion.sum(axis=0).tolist()
    for k, counts in enumerate(model.confusion.tolist()):
        size = sum(counts)
        cells = []
        for j, count in enumerate(counts):
            share = count / size if size else 0.0
            # errors are rare: the square root makes one in a hundred visible
            strength = round(92 * (share if j == k else math.sqrt(share)))
            cells.append({"count": count, "strength": strength, "right": j == k})
        rows.append(
            {
                "size": size,
                "cells": cells,
                "recall": counts[k] / size if size else 0.0,
                "precision": counts[k] / answered[k] if answered[k] else None,
            }
        )
    return rows


def _confusions(model: ModelResult) -> list[dict[str, Any]]:
    """Return the most frequent confusions, with the true class first."""
    counts = model.confusion.copy()
    sizes = counts.sum(axis=1)
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:LISTED]
    pairs = [divmod(int(place), len(counts)) for place in order]
    return [
        {
            "true": str(model.classes[i]),
            "taken": str(model.classes[j]),
            "count": int(counts[i, j]),
            "size": int(sizes[i]),
        }
        for i, j in pairs
        if counts[i, j]
    ]


def _doubtful(evaluation: Evaluation, model: ModelResult) -> list[dict[str, Any]]:
    """Return the objects whose two most probable classes have the closest probabilities."""
    ranked = np.sort(model.probabilities, axis=1)
    margin = ranked[:, -1] - ranked[:, -2]
    order = np.argsort(margin, kind="stable")[:LISTED]
    return [_object(evaluation, model, int(i)) for i in order]


def _surprising(evaluation: Evaluation, model: ModelResult) -> list[dict[str, Any]]:
    """Return the errors about which the model was most confident."""
    sure = np.where(model.right, -1.0, model.probabilities.max(axis=1))
    order = np.argsort(-sure, kind="stable")[:LISTED]
    return [_object(evaluation, model, int(i)) for i in order if sure[i] >= 0]


def _object(evaluation: Evaluation, model: ModelResult, i: int) -> dict[str, Any]:
    P = model.probabilities[i]
    first, second = np.argsort(-P, kind="stable")[:2]
    place = np.searchsorted(evaluation.map.objects, i)
    mapped = place < len(evaluation.map.objects) and evaluation.map.objects[place] == i
    return {
        "name": evaluation.names[i],
        "place": int(place) if mapped else None,
        "true": str(model.labels[i]),
        "first": str(model.classes[first]),
        "p": float(P[first]),
        "second": str(model.classes[second]),
        "q": float(P[second]),
        "own": float(P[np.searchsorted(model.classes, model.labels[i])]),
        "right": bool(model.right[i]),
    }


def _guessing(sizes: list[int]) -> float:
    """Return the log-loss of predicting the class frequencies."""
    shares = np.array(sizes) / sum(sizes)
    return float(-shares @ np.log(shares))


def _fit_square(evaluation: Evaluation) -> float:
    """Return the number of all pairs of training objects, averaged over the folds."""
    n, folds = len(evaluation.names), int(evaluation.folds.max()) + 1
    return (n - n / folds) ** 2


def _whiskers(models: list[ModelResult]) -> list[dict[str, float]]:
    """Return the accuracies as dots with whiskers, on a common scale from 0 to 100."""
    means = [float(m.fold_accuracy.mean()) for m in models]
    spreads = [float(m.fold_accuracy.std()) for m in models]
    low = min(a - s for a, s in zip(means, spreads, strict=True))
    high = max(a + s for a, s in zip(means, spreads, strict=True))
    span = max(high - low, 0.01)

    def place(value: float) -> float:
        return round(6 + 88 * (value - low) / span, 1)

    return [
        {"at": place(a), "from": place(a - s), "to": place(a + s)}
        for a, s in zip(means, spreads, strict=True)
    ]


def _duplicates(evaluation: Evaluation) -> dict[str, Any] | None:
    found = evaluation.duplicates
    if found is None or not found.groups:
        return None
    labels = evaluation.labels
    conflicting = [g for g in found.groups if len(set(labels[g].tolist())) > 1]
    listed = (conflicting + [g for g in found.groups if len(set(labels[g].tolist())) == 1])[:LISTED]
    return {
        "objects": sum(len(group) for group in found.groups),
        "groups": len(found.groups),
        "conflicting": found.conflicting,
        "listed": [
            [{"name": evaluation.names[i], "label": str(labels[i])} for i in group[:6]]
            for group in listed
        ],
    }


def _data(evaluation: Evaluation, models: list[ModelResult], xy: Any, codes: Any) -> dict[str, Any]:
    """Return the data that the script needs to describe each point of the map."""
    shown = evaluation.map.objects
    return {
        "names": [evaluation.names[i] for i in shown],
        "classes": [str(name) for name in evaluation.classes.tolist()],
        "x": xy[:, 0].tolist(),
        "y": xy[:, 1].tolist(),
        "code": codes[shown].tolist(),
        "landmark": np.flatnonzero(np.isin(shown, evaluation.map.landmarks)).tolist(),
        "models": [
            {
                "name": model.name,
                "taken": model.probabilities[shown].argmax(axis=1).tolist(),
                "p": (100 * model.probabilities[shown].max(axis=1)).round().astype(int).tolist(),
            }
            for model in models
        ],
    }


def _grouped(evaluation: Evaluation) -> str:
    if evaluation.groups is None:
        return ""
    how = evaluation.settings["groups"]
    return f", {int(evaluation.groups.max()) + 1:,} groups kept together ({how})"


def _settings(evaluation: Evaluation) -> list[tuple[str, str]]:
    s = evaluation.settings
    rows = [("measure", s["measure"])]
    rows += [(f"measure, {name}", value) for name, value in s["measure_params"].items()]
    # without settings for all models, each has its own, which its title names
    chosen = [str(s[name]) for name in ("landmarks", "n_landmarks") if s[name] is not None]
    rows += [("landmarks", ", ".join(chosen))] if chosen else []
    rows += [
        ("folds", f"{s['folds']}, stratified and shuffled" + _grouped(evaluation)),
        ("seed (random_state)", str(s["random_state"])),
        ("both directions averaged (symmetrize)", "yes" if s["symmetrize"] else "no"),
    ]
    return rows + [(name, version) for name, version in s["versions"].items()]
