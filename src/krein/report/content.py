"""The content of a report as plain values: sentences, tables, geometry. The template formats it."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.ranks import short_labels
from . import charts
from .charts import RejectPoint, chosen_point, percent
from .objectmap import draw_map

if TYPE_CHECKING:
    from ..evaluation import Evaluation, ModelResult

LISTED = 10
"""Number of objects in each list."""

SHOWN = 12
"""Number of unknown classes in the table, the hardest to recognise first; the rest can be
expanded."""

VISIBLE = 0.0005
"""Accuracies that differ by less than this are printed with the same digits."""

PILED, TIMES, FEWEST = 1 / 3, 2.0, 5
"""Errors are concentrated in a class if it has at least a third of them, twice as many as expected
from its size, and at least five."""


def report_content(
    evaluation: Evaluation, *, title: str | None, command: str | None, threshold: float | None
) -> dict[str, Any]:
    """Return everything that the template fills in."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be a probability from 0 to 1; got {threshold}")
    models = list(evaluation.models.values())
    summary = evaluation.summary()
    n, given = summary["objects"], evaluation.pairs.given
    # taxonomy labels are shown by their last rank, with the whole path on hover
    paths = summary["classes"]
    classes = short_labels(paths)
    short = dict(zip(paths, classes, strict=True))
    chosen = [chosen_point(model, threshold) for model in models]
    what = "a given matrix" if given else evaluation.settings["measure"]
    ranks = evaluation.ranks
    shares = np.array([size / n for size in summary["class_sizes"] if size])
    trained_on = evaluation.n_train or n - n / summary["folds"]
    mapped = evaluation.map
    codes = np.searchsorted(evaluation.classes, evaluation.labels[mapped.objects])
    landmarks = np.flatnonzero(np.isin(mapped.objects, mapped.landmarks)).tolist()
    drawn = draw_map(mapped, codes, classes)
    # the first two-look model tells about unknown classes and suspect labels
    two_looks = next((model for model in models if model.unknown is not None), None)
    return {
        "title": title or f"{n:,} objects under {what}",
        "command": command,
        "summary": summary,
        "n": n,
        "what": what,
        "best": models.index(evaluation.best),
        "headline": headline(models, evaluation.best),
        "ranks": None if ranks is None else evaluation.best.by_rank(*ranks),
        "rank_above": None if ranks is None else ranks[1],
        "models": [
            _model(evaluation, model, point, short)
            for model, point in zip(models, chosen, strict=True)
        ],
        "whiskers": _whiskers(models),
        "classes": classes,
        "label": partial(label_markup, dict(zip(classes, paths, strict=True))),
        "longest_class": max(len(name) for name in classes),
        "reliability": charts.reliability_chart(models),
        "reject": charts.reject_chart(models, chosen),
        "spectrum": charts.spectrum_chart(evaluation.spectrum.eigenvalues),
        "growth": charts.growth_chart(models),
        "looks": charts.look_charts(models),
        "looked_at": max((m.looks.n for m in models if m.looks is not None), default=0),
        "worth": next((model for model in models if model.worth is not None), None),
        "unknown": two_looks and _unknown_classes(two_looks, short),
        "suspect_labels": two_looks and _suspect_labels(evaluation, two_looks, short),
        "map": drawn,
        "found": mapped,
        "mapped_codes": codes.tolist(),
        "landmarks": landmarks,
        "duplicates": _duplicates(evaluation, short),
        "data": {  # with which the script describes each point of the map
            "names": [evaluation.names[i] for i in mapped.objects],
            "classes": paths,
            "x": drawn.xy[:, 0].tolist(),
            "y": drawn.xy[:, 1].tolist(),
            "code": codes.tolist(),
            "landmark": landmarks,
            "models": [_predictions(model, mapped.objects) for model in models],
        },
        "percent": percent,
        "seconds": readable_seconds,
        "settings": _settings(evaluation),
        "given_threshold": threshold is not None,
        "guess": float(-shares @ np.log(shares)),  # the log-loss of predicting the frequencies
        # all pairs; of a matrix, those of the training objects, averaged over the folds
        "scale": trained_on**2 if given else (n + (evaluation.n_train or 0)) ** 2,
        "trained_on": trained_on,
        "slowest": max(sum(model.seconds.values()) for model in models) or 1.0,
    }


def label_markup(paths: dict[str, str], label: str) -> Any:
    """Return a label that may be broken at separators, with its whole path on hover."""
    from markupsafe import Markup

    path = paths.get(label, label)
    shown = breakable(label)
    return shown if path == label else Markup('<span title="{}">{}</span>').format(path, shown)


SHORT = 18
"""Names with up to this many letters are not broken."""


def breakable(text: str) -> Any:
    """Return escaped text that may be broken after separators such as _ and /."""
    from markupsafe import Markup, escape

    if len(text) <= SHORT:
        return escape(text)
    parts = re.split(r"(?<=[_+/|.:;,-])(?=.)", text)
    return Markup("<wbr>").join(escape(part) for part in parts)


def readable_seconds(seconds: float) -> str:
    """Return a duration as readable text.

    >>> [readable_seconds(s) for s in (0.004, 3.21, 75, 7330)]
    ['4 ms', '3.2 s', '1 min 15 s', '2 h 2 min']
    """
    if seconds < 0.0005:
        return "0"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def headline(models: list[ModelResult], best: ModelResult) -> list[Any]:
    """Return the opening sentences, with markup: the best model by log-loss, a more accurate one, a
    cheaper one, and whether comparisons pay off."""
    lowest = "" if len(models) == 1 else " has the lowest log-loss, <b>{loss}</b>, and"
    found = [
        _sentence(
            f"<b>{{name}}</b>{lowest} labels <b>{{right}}</b> of unseen objects correctly, with "
            "<b>{comparisons}</b> per prediction.",
            best,
        )
    ]
    accurate = max(models, key=lambda model: float(model.fold_accuracy.mean()))
    if accurate.fold_accuracy.mean() > best.fold_accuracy.mean() + VISIBLE:
        but = "but its probabilities are worse (log-loss {loss})."
        text = f"<b>{{name}}</b> is more accurate, with <b>{{right}}</b> at {{comparisons}}, {but}"
        found.append(_sentence(text, accurate))
    cheap = [model for model in models if 0 < model.comparisons <= best.comparisons / 2]
    cheaper = min(cheap, key=lambda model: float(model.fold_log_loss.mean()), default=None)
    if cheaper is not None and cheaper is not accurate:
        text = "<b>{name}</b> needs only {comparisons} and labels <b>{right}</b> correctly."
        found.append(_sentence(text, cheaper))
    free = [model for model in models if model.comparisons == 0]
    if free and len(free) < len(models):
        text = (
            ": <b>{name}</b> ({how}) makes no comparisons and labels {right} correctly, with a "
            "log-loss of {loss}."
        )
        if free[0] is best:
            text = "<b>No comparison is needed here</b>: {name} ({how}) makes none."
        elif free[0] is accurate:
            text = "<b>If only labels matter, no comparison is needed</b>" + text
        else:
            text = "<b>Comparisons pay off</b>" + text
        found.append(_sentence(text, free[0]))
    return found


def _sentence(text: str, model: ModelResult) -> Any:
    """Return a sentence with the name and the figures of a model filled in, and escaped."""
    from markupsafe import Markup

    n = model.comparisons
    return Markup(text).format(
        name=model.name,
        how=model.title.removesuffix(", no comparisons"),
        right=percent(model.fold_accuracy.mean(), 1),
        loss=f"{model.fold_log_loss.mean():.3f}",
        comparisons="no comparisons" if n == 0 else f"{n:,.0f} comparisons",
    )


def _model(
    evaluation: Evaluation, model: ModelResult, point: RejectPoint | None, short: dict[str, str]
) -> dict[str, Any]:
    """Return the figures of one model, its errors, and the objects to look at."""
    bins = model.reliability
    ranked, surest = np.sort(model.probabilities, axis=1), model.probabilities.max(axis=1)
    doubtful = np.argsort(ranked[:, -1] - ranked[:, -2], kind="stable")[:LISTED]
    confident = np.argsort(-np.where(model.right, -1.0, surest), kind="stable")[:LISTED]
    return {
        **model.summary(),
        "point": point,
        "confusion": _confusion(model),
        "confusions": _confusions(model, short),
        "piled": piled_errors(model, short),
        "doubtful": [_object(evaluation, model, i, short) for i in doubtful.tolist()],
        "surprising": [
            _object(evaluation, model, i, short) for i in confident.tolist() if not model.right[i]
        ],
        "bins": [
            (*bins.edges[i : i + 2], int(bins.count[i]), bins.confidence[i], bins.accuracy[i])
            for i in np.flatnonzero(bins.count)
        ],
        "wrong": np.flatnonzero(~model.right[evaluation.map.objects]).tolist(),
    }


def _confusion(model: ModelResult) -> list[dict[str, Any]]:
    """Return the rows of the matrix, with the count and colour strength of each cell."""
    rows, answered = [], model.confusion.toarray().sum(axis=0).tolist()
    for k, counts in enumerate(model.confusion.toarray().tolist()):
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


def _confusions(model: ModelResult, short: dict[str, str]) -> list[dict[str, Any]]:
    """Return the most frequent confusions, with the true class first."""
    table = model.confusion.toarray()
    sizes = table.sum(axis=1)
    counts = table - np.diag(np.diag(table))
    order = np.argsort(-counts, axis=None, kind="stable")[:LISTED]
    pairs = [divmod(int(place), len(counts)) for place in order]
    return [
        {
            "true": short[str(model.classes[i])],
            "taken": short[str(model.classes[j])],
            "count": int(counts[i, j]),
            "size": int(sizes[i]),
        }
        for i, j in pairs
        if counts[i, j]
    ]


def piled_errors(model: ModelResult, short: dict[str, str]) -> dict[str, Any] | None:
    """Return the class that errors are concentrated in, as the true or as the predicted class.

    `short` are the labels as shown.
    """
    confusion = model.confusion.toarray()
    errors = confusion - np.diag(np.diag(confusion))
    total, shares = int(errors.sum()), confusion.sum(axis=1) / confusion.sum()
    if total < FEWEST or len(confusion) < 3:
        return None
    found = []
    for side, table in (("labelled", errors), ("answered", errors.T)):
        counts = table.sum(axis=1)
        c = int(counts.argmax())
        if counts[c] >= max(FEWEST, PILED * total, TIMES * shares[c] * total):
            found.append(
                {
                    "side": side,
                    "class": short[str(model.classes[c])],
                    "count": int(counts[c]),
                    "errors": total,
                    "share": counts[c] / total,
                    "size": float(shares[c]),
                    "other": short[str(model.classes[int(table[c].argmax())])],
                    "others": int(table[c].max()),
                }
            )
    return max(found, key=lambda piled: piled["count"], default=None)


def _object(
    evaluation: Evaluation, model: ModelResult, i: int, short: dict[str, str]
) -> dict[str, Any]:
    P = model.probabilities[i]
    first, second = np.argsort(-P, kind="stable")[:2]
    place = np.searchsorted(evaluation.map.objects, i)
    mapped = place < len(evaluation.map.objects) and evaluation.map.objects[place] == i
    return {
        "name": evaluation.names[i],
        "place": int(place) if mapped else None,
        "true": short[str(model.labels[i])],
        "first": short[str(model.classes[first])],
        "p": float(P[first]),
        "second": short[str(model.classes[second])],
        "q": float(P[second]),
        "own": float(P[np.searchsorted(model.classes, model.labels[i])]),
        "right": bool(model.right[i]),
    }


def _whiskers(models: list[ModelResult]) -> list[dict[str, float]]:
    """Return the accuracies as dots with whiskers, on a common scale from 0 to 100."""
    ends = []
    for accuracy in (model.fold_accuracy for model in models):
        mean, spread = float(accuracy.mean()), float(accuracy.std())
        ends.append((mean - spread, mean, mean + spread))
    low = min(start for start, _, _ in ends)
    span = max(max(stop for _, _, stop in ends) - low, 0.01)

    def place(value: float) -> float:
        return round(6 + 88 * (value - low) / span, 1)

    return [{"from": place(a), "at": place(b), "to": place(c)} for a, b, c in ends]


def _unknown_classes(model: ModelResult, short: dict[str, str]) -> dict[str, Any]:
    """Return how well a two-look model recognises each class when it is unknown."""
    found = model.unknown
    assert found is not None
    rows = [
        {
            "class": short[str(model.classes[found.codes[k]])],
            "auroc": float(found.auroc[k]),
            "found": float(found.found[k]),
            "nearest": short[str(model.classes[found.nearest[k]])],
        }
        for k in np.argsort(found.auroc, kind="stable").tolist()
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


def _suspect_labels(
    evaluation: Evaluation, model: ModelResult, short: dict[str, str]
) -> dict[str, Any]:
    """Return the objects whose labels may be wrong, according to a two-look model."""
    return {
        "model": model.name,
        "rows": [
            {
                "name": evaluation.names[one.index],
                "label": short[str(evaluation.labels[one.index])],
                "p": one.probability,
                "other": short[str(model.classes[one.other])],
                "q": one.other_probability,
                "nearest": _labelled(evaluation, one.nearest, short),
            }
            for one in model.suspect_labels
        ],
    }


def _labelled(evaluation: Evaluation, objects: Any, short: dict[str, str]) -> list[dict[str, str]]:
    """Return the names and labels of some objects."""
    return [
        {"name": evaluation.names[i], "label": short[str(evaluation.labels[i])]} for i in objects
    ]


def _duplicates(evaluation: Evaluation, short: dict[str, str]) -> dict[str, Any] | None:
    found = evaluation.duplicates
    if found is None or not found.groups:
        return None
    labels = evaluation.labels
    conflicting_first = sorted(found.groups, key=lambda g: len(set(labels[g].tolist())) == 1)
    return {
        "objects": sum(len(group) for group in found.groups),
        "groups": len(found.groups),
        "conflicting": found.conflicting,
        "listed": [_labelled(evaluation, group[:6], short) for group in conflicting_first[:LISTED]],
    }


def _predictions(model: ModelResult, objects: Any) -> dict[str, Any]:
    """Return the predictions of some objects, with probabilities in percent."""
    P = model.probabilities[objects]
    percents = (100 * P.max(axis=1)).round().astype(int).tolist()
    return {"name": model.name, "taken": P.argmax(axis=1).tolist(), "p": percents}


def _settings(evaluation: Evaluation) -> list[tuple[str, str]]:
    s = evaluation.settings
    rows = [("measure", s["measure"])]
    rows += [(f"measure, {name}", value) for name, value in s["measure_params"].items()]
    # without settings for all models, each has its own, which its title names
    chosen = [str(s[name]) for name in ("landmarks", "n_landmarks") if s[name] is not None]
    rows += [("landmarks", ", ".join(chosen))] if chosen else []
    grouped = ""
    if evaluation.groups is not None:
        n_groups = int(evaluation.groups.max()) + 1
        grouped = f", {n_groups:,} groups kept together ({s['groups']})"
    folds = f"{s['folds']}, stratified and shuffled{grouped}"
    if evaluation.n_train is not None:
        folds = f"none: {evaluation.n_train:,} training objects and separate test objects"
    if s.get("class_weight") is not None:
        rows.append(("class weights", s["class_weight"]))
    rows += [
        ("folds", folds),
        ("seed (random_state)", str(s["random_state"])),
        ("both directions averaged (symmetrize)", "yes" if s["symmetrize"] else "no"),
    ]
    return rows + [(name, version) for name, version in s["versions"].items()]
