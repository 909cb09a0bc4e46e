"""Summarise an evaluation in a few sentences: the best model, its cost, and where it errs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .charts import percent

if TYPE_CHECKING:
    from ..evaluation import ModelResult
import base64
import struct
import zlib
from itertools import groupby
from typing import TYPE_CHECKING

from ..core.checks import Array
from ..measures.alignments import (
    ALIKE,
    GAP,
    OTHER,
    SAME,
    Curves,
    Letters,
    Numbers,
    Pictures,
    SideBySide,
    Words,
)
from .charts import Scale, path

if TYPE_CHECKING:
    from ..evaluation import Evaluation, ModelResult
import math
from typing import TYPE_CHECKING

from .charts import (
    RejectPoint,
    chosen_point,
    growth_chart,
    look_charts,
    reject_chart,
    reliability_chart,
    spectrum_chart,
)
from .objectmap import draw_map

if TYPE_CHECKING:
    from ..evaluation import Evaluation, ModelResult


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


# -------------------------------------------------------------------------------------------------
# Two objects side by side, as geometry and pieces of text; the template draws them.
# -------------------------------------------------------------------------------------------------

COLUMNS = 10
"""Number of letters per group; a line contains as many groups as fit."""

MOST_COLUMNS = 1200
"""Maximum number of alignment columns that are drawn."""

CLASSES = {SAME: "same", ALIKE: "alike", OTHER: "other", GAP: "gap"}

WIDTH, ROW, MARGIN = 640, 190, 10
LINKS = 36
"""Maximum number of lines that join corresponding times."""

POINTS, CHANNELS, FEATURES = 800, 3, 8
"""Maximum number of curve points, channels and features that are drawn."""

PIXELS = 256
"""Maximum side of a picture in pixels; larger ones are subsampled."""


def compared(beside: SideBySide | None, columns: list[str] | None = None) -> dict[str, Any]:
    """Return the data with which the template draws two objects side by side.

    `columns` are the names of the features of vectors.
    """
    if beside is None:
        return {"kind": "none"}
    if isinstance(beside, Letters):
        return _letters(beside)
    if isinstance(beside, Curves):
        return _curves(beside)
    if isinstance(beside, Pictures):
        return _pictures(beside)
    if isinstance(beside, Numbers):
        return _numbers(beside, columns)
    assert isinstance(beside, Words)
    return {"kind": "words", "first": beside.first, "second": beside.second}


def _letters(found: Letters) -> dict[str, Any]:
    groups = []
    i, j = found.starts
    for start in range(0, min(len(found.marks), MOST_COLUMNS), COLUMNS):
        part = slice(start, start + COLUMNS)
        first, second, marks = found.first[part], found.second[part], found.marks[part]
        runs, at = [], 0
        for mark, letters in groupby(marks):
            n = len(list(letters))
            middle = ("·" if mark == OTHER else " " if mark == GAP else mark) * n
            run = slice(at, at + n)
            runs.append((CLASSES[mark], _visible(first[run]), middle, _visible(second[run])))
            at += n
        groups.append({"i": i + 1, "j": j + 1, "runs": runs})
        # the mark distinguishes a gap from a real letter
        i += sum(m != GAP or x != found.gap for x, m in zip(first, marks, strict=True))
        j += sum(m != GAP or y != found.gap for y, m in zip(second, marks, strict=True))
    n = len(found.marks)
    return {
        "kind": "letters",
        "told": _told(found),
        "groups": groups,
        "numbered": n > COLUMNS,
        "left_out": max(n - MOST_COLUMNS, 0),
        "alike": ALIKE in found.marks,
    }


def _told(found: Letters) -> str:
    """Return a sentence on how much two strings have in common."""
    n, same, gaps = len(found.marks), found.marks.count(SAME), found.marks.count(GAP)
    if n == 0:
        return "No parts of the two are similar enough to be aligned."
    told = f"Identity {percent(found.identity)}: {same:,} of {n:,} columns have the same letter"
    told += f", {gaps:,} have a gap." if gaps else "."
    used = [n - sum(m == GAP and x == found.gap for x, m in zip(row, found.marks, strict=True))
            for row in (found.first, found.second)]  # fmt: skip
    if tuple(used) != found.lengths:
        shares = [percent(a / b) for a, b in zip(used, found.lengths, strict=True)]
        told += f" The alignment covers {shares[0]} of this object "
        told += f"and {shares[1]} of the known one."
    if found.reversed:
        told += " This object is shown as its reverse complement."
    return told


def _visible(text: str) -> str:
    """Return text with blanks and control characters made visible.

    >>> _visible("a b" + chr(9))
    'a␣b␉'
    """
    return "".join(
        "␣" if c == " " else chr(0x2400 + ord(c)) if ord(c) < 32 else c if c.isprintable() else "�"
        for c in text
    )


def _curves(found: Curves) -> dict[str, Any]:
    channels = found.first.shape[1]
    n = max(len(found.first), len(found.second))
    x = Scale(0, max(n - 1, 1), MARGIN, WIDTH - MARGIN)
    panels = []
    for c in range(min(channels, CHANNELS)):
        a, b = found.first[:, c], found.second[:, c]
        low, high = float(min(a.min(), b.min())), float(max(a.max(), b.max()))
        half = (ROW - 3 * MARGIN) / 2
        top = Scale(low, high, MARGIN + half, MARGIN)
        bottom = Scale(low, high, ROW - MARGIN, ROW - MARGIN - half)
        chosen = np.unique(np.linspace(0, len(found.path) - 1, LINKS).astype(int))
        links = [
            path([x(int(i)), x(int(j))], [top(float(a[i])), bottom(float(b[j]))])
            for i, j in (found.path[chosen].tolist() if len(found.path) else [])
        ]
        panels.append(
            {"links": "".join(links), "first": _curve(a, x, top), "second": _curve(b, x, bottom)}
        )
    more = f" {CHANNELS} of {channels} channels are shown." if channels > CHANNELS else ""
    above = f"Above, this object with {len(found.first):,} samples"
    below = f"below, the known one with {len(found.second):,}"
    how = "Thin lines join corresponding times." if len(found.path) else ""
    return {
        "kind": "curves",
        "panels": panels,
        "width": WIDTH,
        "height": ROW,
        "told": f"{above}; {below}, on the same scale. {how}{more}",
    }


def _curve(values: Array, x: Scale, y: Scale) -> str:
    at = np.unique(np.linspace(0, len(values) - 1, POINTS).astype(int))
    return path([x(int(i)) for i in at], [y(float(values[i])) for i in at])


def _pictures(found: Pictures) -> dict[str, Any]:
    step = max(1, -(-max(found.first.shape) // PIXELS))
    first, second = found.first[::step, ::step], found.second[::step, ::step]
    low = float(min(first.min(), second.min()))
    span = float(max(first.max(), second.max())) - low or 1.0
    apart = np.abs(first - second)
    return {
        "kind": "pictures",
        "height": first.shape[0],
        "width": first.shape[1],
        "images": [
            ("this object", png((first - low) / span)),
            ("the known one", png((second - low) / span)),
            ("difference", png(apart / span)),
        ],
    }


def png(shares: Array) -> str:
    """Return a grey picture as a data URI: 0 is white, 1 is black.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.report.content import png
    >>> png(np.eye(2))[:22]
    'data:image/png;base64,'
    """
    grey = np.rint(255 * (1 - np.clip(shares, 0, 1))).astype(np.uint8)
    height, width = grey.shape
    rows = np.hstack([np.zeros((height, 1), dtype=np.uint8), grey]).tobytes()  # filter 0 each

    def chunk(name: bytes, data: bytes) -> bytes:
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    packed = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + packed).decode()


def _numbers(found: Numbers, columns: list[str] | None) -> dict[str, Any]:
    apart = found.first - found.second
    order = np.argsort(-np.abs(apart), kind="stable")
    shown = order[:FEATURES]
    names = columns or [f"column {i}" for i in range(len(apart))]
    if len(shown) == len(order):
        shown = np.sort(shown)
        told = f"All {len(order)} numbers."
    else:
        told = f"The {len(shown)} of {len(order):,} numbers that differ most."
    return {
        "kind": "numbers",
        "told": told,
        "rows": [
            (names[i], f"{found.first[i]:.4g}", f"{found.second[i]:.4g}", f"{apart[i]:+.3g}")
            for i in shown
        ],
    }


# -------------------------------------------------------------------------------------------------
# The sections of a report on unknown classes and on labels that may be wrong.
# -------------------------------------------------------------------------------------------------

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


# -------------------------------------------------------------------------------------------------
# The content of a report as plain values: sentences, tables, geometry. The template formats it.
# -------------------------------------------------------------------------------------------------

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
