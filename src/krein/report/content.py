"""The content of a report as plain values: sentences, tables, geometry. The template formats it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.ranks import Ranks, find_separator, rank_names, rank_path, short_labels
from ..core.shapes import Array, Indices
from ..evaluation.groups import keep_together
from ..evaluation.heldout import log_losses
from . import charts
from .charts import RejectPoint, chosen_point, percent
from .confusion import (
    MATRIX_CLASSES,
    class_figures,
    confusion_matrix,
    frequent_confusions,
    matrices_by_rank,
    piled_errors,
)
from .objectmap import draw_map

if TYPE_CHECKING:
    from ..evaluation import Evaluation, ModelResult

LISTED = 10
"""Number of objects in each list."""

SHOWN = 12
"""Number of unknown classes in the table, the hardest to recognise first; the rest can be
expanded."""

CONFIDENT = 0.8
"""Predictions of at least this probability are confident, the others are doubtful."""

MAPPED_CLASSES = 60
"""With more classes, the map shows the names of an upper rank, or the largest classes."""

SIZES = (1, 2, 5, 10, 100)
"""Numbers of objects from which on the sizes of many classes are counted together."""

TEXT = 40
"""Number of letters of an object that are shown instead of its row."""

CLEAR_ERRORS = 1.96
"""Number of standard errors from which on a difference between two models is clear."""


def report_content(
    evaluation: Evaluation, *, title: str | None, command: str | None, threshold: float | None
) -> dict[str, Any]:
    """Return everything that the template fills in."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be a probability from 0 to 1; got {threshold}")
    naming, summary = Naming.of(evaluation), evaluation.summary()
    return {
        **_opening(evaluation, summary, title),
        **_classes(evaluation, summary["class_sizes"], naming),
        **_models(evaluation, naming, threshold),
        **_looks(evaluation, naming),
        **_map(evaluation, naming),
        "command": command,
        "spectrum": evaluation.spectrum and charts.spectrum_chart(evaluation.spectrum.eigenvalues),
        "duplicates": _duplicates(evaluation, naming),
        "remedy": evaluation.near_copies
        and keep_together(evaluation.near_copies, evaluation.settings["groups"]),
        "settings": _settings(evaluation),
        "percent": percent,
        "seconds": readable_seconds,
    }


@dataclass(frozen=True)
class Naming:
    """What classes and objects are called in the report.

    Taxonomy labels are shown by their last rank, with the whole path on hover.
    """

    short: dict[str, str]  # what each label is shown as
    tree: Ranks | None  # if labels are paths
    rank_titles: list[str]
    objects: list[str]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Naming:
        """Return the names in an evaluation."""
        paths = [str(label) for label in evaluation.classes.tolist()]
        short = dict(zip(paths, short_labels(paths), strict=True))
        separator = evaluation.ranks[0] if evaluation.ranks else find_separator(paths)
        tree, titles = None, []
        if separator is not None:
            tree = Ranks.of(paths, separator)
            titles = rank_names([rank_path(path, separator) for path in paths])
        titles = [title.replace("_", " ") for title in titles]
        return cls(short, tree, titles, _shown_names(evaluation))

    @property
    def paths(self) -> list[str]:
        """The labels."""
        return list(self.short)

    @property
    def classes(self) -> list[str]:
        """What the labels are shown as."""
        return list(self.short.values())


def _opening(evaluation: Evaluation, summary: dict[str, Any], title: str | None) -> dict[str, Any]:
    """Return what was evaluated, and what it amounts to."""
    n, given = summary["objects"], evaluation.pairs.given
    hits = evaluation.spectrum is None
    what = "a given matrix" if given and not hits else evaluation.settings["measure"]
    trained_on = evaluation.n_train or n - n / summary["folds"]
    return {
        "title": title or f"{n:,} objects under {what}",
        "summary": summary,
        "n": n,
        "what": what,
        "headline": headline(evaluation),
        # all pairs; of a matrix, those of the training objects, averaged over the folds
        "scale": trained_on**2 if given else evaluation.pairs.all,
        "trained_on": trained_on,
    }


def _classes(evaluation: Evaluation, sizes: list[int], naming: Naming) -> dict[str, Any]:
    """Return the classes and their sizes, and the figures of the best model at each rank."""
    best = evaluation.best
    shares = np.array([size / sum(sizes) for size in sizes if size])
    return {
        "classes": naming.classes,
        "label": partial(label_markup, dict(zip(naming.classes, naming.paths, strict=True))),
        "many": len(naming.classes) > MATRIX_CLASSES,
        "sizes": class_sizes(sizes),
        "guess": float(-shares @ np.log(shares)),  # the log-loss of predicting the frequencies
        "ranks": evaluation.by_rank and evaluation.by_rank[best.name],
        "rank_titles": naming.rank_titles,
        "ranks_learned": best.learned_ranks is not None,
        "rank_above": evaluation.ranks and evaluation.ranks[1],
    }


def _models(evaluation: Evaluation, naming: Naming, threshold: float | None) -> dict[str, Any]:
    """Return the figures of the models, and the charts that compare them."""
    models = list(evaluation.models.values())
    chosen = [chosen_point(model, threshold) for model in models]
    return {
        "models": [
            _model(evaluation, model, point, naming)
            for model, point in zip(models, chosen, strict=True)
        ],
        "best": models.index(evaluation.best),
        "confident": CONFIDENT,
        "whiskers": _whiskers(models),
        "reliability": charts.reliability_chart(models),
        "reject": charts.reject_chart(models, chosen),
        "given_threshold": threshold is not None,
        "growth": charts.growth_chart(models),
        "slowest": max(sum(model.seconds.values()) for model in models) or 1.0,
    }


def _looks(evaluation: Evaluation, naming: Naming) -> dict[str, Any]:
    """Return what the looks found; unknown classes are those of the first model that has them."""
    models = list(evaluation.models.values())
    two = next((model for model in models if model.unknown is not None), None)
    return {
        "looks": charts.look_charts(models),
        "looked_at": max((m.looks.n for m in models if m.looks is not None), default=0),
        "worth": next((model for model in models if model.worth is not None), None),
        "unknown": two and _unknown_classes(two, naming.short),
        "suspect_labels": two and _suspect_labels(evaluation, two, naming),
    }


def _map(evaluation: Evaluation, naming: Naming) -> dict[str, Any]:
    """Return the map of the objects, and the data with which the script describes its points."""
    models, mapped = list(evaluation.models.values()), evaluation.map
    paths, classes = naming.paths, naming.classes
    codes = np.searchsorted(evaluation.classes, evaluation.labels[mapped.objects])
    landmarks = np.flatnonzero(np.isin(mapped.objects, mapped.landmarks)).tolist()
    groups, group_names, grouped_by = map_groups(codes, classes, naming.tree, naming.rank_titles)
    others = len(group_names) - 1 if grouped_by == "size" else None
    drawn = draw_map(mapped, groups, group_names, others)
    return {
        "map": drawn,
        "found": mapped,
        "mapped_groups": groups.tolist(),
        "group_names": group_names,
        "grouped_by": grouped_by,
        "groups_left_out": len(classes) - len(group_names) + 1,
        "landmarks": landmarks,
        "data": {
            "names": [naming.objects[i] for i in mapped.objects],
            "classes": paths,
            "short": None if classes == paths else classes,
            "x": drawn.xy[:, 0].tolist(),
            "y": drawn.xy[:, 1].tolist(),
            "code": codes.tolist(),
            "group": groups.tolist() if grouped_by else None,
            "landmark": landmarks,
            "models": [_predictions(model, mapped.objects) for model in models],
            "figures": [class_figures(m) for m in models]
            if len(classes) > MATRIX_CLASSES
            else None,
        },
    }


def _shown_names(evaluation: Evaluation) -> list[str]:
    """Return the names of the objects; strings without a name are shown themselves.

    Names are none if they are numbers of rows: they rise from object to object.
    """
    numbers = [re.fullmatch(r"(?:row )?(\d{1,15})", name) for name in evaluation.names]
    rows = [int(number[1]) for number in numbers if number is not None]
    rising = len(rows) == len(numbers) and all(np.diff(rows) > 0)
    if evaluation.texts is None or not rising:
        return evaluation.names
    found = []
    for name, row, text in zip(evaluation.names, rows, evaluation.texts, strict=True):
        cut = text if len(text) <= TEXT else f"{text[: TEXT - 1]}…"
        found.append(f"{cut} (row {row})" if text.strip() else name)
    return found


def map_groups(
    codes: Indices, classes: list[str], tree: Ranks | None, rank_titles: list[str]
) -> tuple[Indices, list[str], str | None]:
    """Return the group (n,) of each object on the map, the names of the groups, and what they are.

    Up to 60 classes, these are the groups. With more, the groups are the names of the lowest rank
    with at most that many ("order"); or else the largest classes, and all others as the last group
    ("size").
    """
    if len(classes) <= MAPPED_CLASSES:
        return codes, classes, None
    for rank in reversed(range(0 if tree is None else len(tree))):
        assert tree is not None
        if 1 < len(tree.nodes[rank]) <= MAPPED_CLASSES:
            return tree.parents[rank][codes], short_labels(tree.nodes[rank]), rank_titles[rank]
    sizes = np.bincount(codes, minlength=len(classes))
    largest = np.sort(np.argsort(-sizes, kind="stable")[: MAPPED_CLASSES // 2])
    group = np.full(len(classes), len(largest))
    group[largest] = np.arange(len(largest))
    return group[codes], [*(classes[c] for c in largest), "all other classes"], "size"


def class_sizes(sizes: list[int]) -> list[tuple[str, int]]:
    """Return how many classes have how many objects.

    >>> class_sizes([1, 1, 0, 3, 250])
    [('none', 1), ('1', 2), ('2 to 4', 1), ('100 or more', 1)]
    """
    found = [("none", sum(size == 0 for size in sizes))]
    for low, high in zip(SIZES, (*SIZES[1:], None), strict=True):
        number = sum(low <= size and (high is None or size < high) for size in sizes)
        text = f"{low} or more" if high is None else f"{low} to {high - 1}"
        found.append((str(low) if high == low + 1 else text, number))
    return [(text, number) for text, number in found if number]


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


def paired_difference(a: Array, b: Array, groups: Indices | None) -> tuple[float, float]:
    """Return the mean of a − b over the same objects, and its standard error.

    Objects of a group depend on each other: their differences are summed before they are squared.
    """
    apart = a - b
    mean = float(apart.mean())
    parts = apart - mean if groups is None else np.bincount(groups, weights=apart - mean)
    return mean, float(np.sqrt((parts**2).sum())) / len(apart)


def headline(evaluation: Evaluation) -> list[Any]:
    """Return the opening sentences, with markup: the best model by log-loss, a more accurate one, a
    cheaper one, and whether comparisons pay off.

    One model is said to be better than another only if the difference on the same objects is clear.
    """
    models, best = list(evaluation.models.values()), evaluation.best
    groups = None if evaluation.groups is None else evaluation.groups[: len(best.labels)]

    def gain(model: ModelResult) -> tuple[float, float]:
        """Return how much lower the log-loss of the best model is, with its standard error."""
        one, other = (log_losses(m.probabilities, m.codes) for m in (best, model))
        return paired_difference(other, one, groups)

    lowest = "" if len(models) == 1 else " has the lowest log-loss, <b>{loss}</b>, and"
    found = [
        _sentence(
            f"<b>{{name}}</b>{lowest} labels <b>{{right}}</b> of unseen objects correctly, with "
            "<b>{comparisons}</b> per prediction.",
            best,
        )
    ]
    accurate = max(models, key=lambda model: float(model.fold_accuracy.mean()))
    more, error = paired_difference(
        accurate.right.astype(np.float64), best.right.astype(np.float64), groups
    )
    if more > CLEAR_ERRORS * error:
        but = "but its probabilities are worse (log-loss {loss})."
        text = f"<b>{{name}}</b> is more accurate, with <b>{{right}}</b> at {{comparisons}}, {but}"
        found.append(_sentence(text, accurate))
    else:
        accurate = best
    cheap = [model for model in models if 0 < model.comparisons <= best.comparisons / 2]
    cheaper = min(cheap, key=lambda model: float(model.fold_log_loss.mean()), default=None)
    if cheaper is not None and cheaper is not accurate:
        text = "<b>{name}</b> needs only {comparisons} and labels <b>{right}</b> correctly."
        found.append(_sentence(text, cheaper))
    free = next((model for model in models if model.comparisons == 0), None)
    if free is not None and len(models) > 1:
        less, error = gain(free)
        how = (
            ": the model <b>{name}</b> makes no comparisons and labels {right} correctly, with a "
            f"log-loss of {{loss}}, {less:.3f} ± {error:.3f} higher."
        )
        text = "<b>Comparisons pay off</b>" + how
        if free is best:
            text = "<b>No comparison is needed here</b>: the model {name} makes none."
        elif free is accurate:
            text = "<b>If only labels matter, no comparison is needed</b>" + how
        elif less < CLEAR_ERRORS * error:
            text = "<b>Whether comparisons pay off is not clear</b>" + how
        found.append(_sentence(text, free))
    return found


def _sentence(text: str, model: ModelResult) -> Any:
    """Return a sentence with the name and the figures of a model filled in, and escaped."""
    from markupsafe import Markup

    n = model.comparisons
    return Markup(text).format(
        name=model.name,
        right=percent(model.fold_accuracy.mean(), 1),
        loss=f"{model.fold_log_loss.mean():.3f}",
        comparisons="no comparisons" if n == 0 else f"{n:,.0f} comparisons",
    )


def _model(
    evaluation: Evaluation, model: ModelResult, point: RejectPoint | None, naming: Naming
) -> dict[str, Any]:
    """Return the figures of one model, its errors, and the objects to look at."""
    bins, sure, table = model.reliability, model.confidence, model.confusion
    classes, tree = naming.classes, naming.tree if len(naming.classes) > MATRIX_CLASSES else None
    surprising = np.flatnonzero(~model.right & (sure >= CONFIDENT))
    surprising = surprising[np.argsort(-sure[surprising], kind="stable")][:LISTED]
    unsure = np.flatnonzero(sure < CONFIDENT)
    margins = sure[unsure] - _runners_up(model, unsure)[1]
    doubtful = unsure[np.argsort(margins, kind="stable")][:LISTED]

    def objects(rows: Indices) -> list[dict[str, Any]]:
        return [_object(evaluation, model, i, naming) for i in rows.tolist()]

    return {
        **model.summary(),
        "point": point,
        "matrix": confusion_matrix(table, classes),
        "by_rank": [] if tree is None else matrices_by_rank(table, tree),
        "confusions": frequent_confusions(table, classes),
        "piled": piled_errors(table, classes),
        "doubtful": objects(doubtful),
        "surprising": objects(surprising),
        "surest_error": float(sure[~model.right].max(initial=0.0)),
        "bins": [
            (*bins.edges[i : i + 2], int(bins.count[i]), bins.confidence[i], bins.accuracy[i])
            for i in np.flatnonzero(bins.count)
        ],
        "wrong": np.flatnonzero(~model.right[evaluation.map.objects]).tolist(),
    }


def _runners_up(model: ModelResult, rows: Indices) -> tuple[Indices, Array]:
    """Return the second most probable class of some objects, and its probability."""
    codes, found = np.zeros(len(rows), dtype=np.intp), np.zeros(len(rows))
    for start in range(0, len(rows), 512):  # a few at a time, to save memory
        some = slice(start, start + 512)
        P = model.probabilities[rows[some]]
        P[np.arange(len(P)), model.answers[rows[some]]] = -1.0
        codes[some], found[some] = P.argmax(axis=1), P.max(axis=1)
    return codes, found


def _object(evaluation: Evaluation, model: ModelResult, i: int, naming: Naming) -> dict[str, Any]:
    """Return an object with its true class, and the two most probable ones."""
    place = np.searchsorted(evaluation.map.objects, i)
    mapped = place < len(evaluation.map.objects) and evaluation.map.objects[place] == i
    second, q = _runners_up(model, np.array([i]))
    own, classes = int(model.codes[i]), naming.classes
    return {
        "name": naming.objects[i],
        "place": int(place) if mapped else None,
        "true": classes[own],
        "first": classes[model.answers[i]],
        "p": float(model.confidence[i]),
        "second": classes[second[0]],
        "q": float(q[0]),
        "own": float(model.probabilities[i, own]),
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
    """Return how well a model recognises each class when it is unknown."""
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


def _suspect_labels(evaluation: Evaluation, model: ModelResult, naming: Naming) -> dict[str, Any]:
    """Return the objects whose labels may be wrong, according to a model with a second look."""
    return {
        "model": model.name,
        "rows": [
            {
                "name": naming.objects[one.index],
                "label": naming.short[str(evaluation.labels[one.index])],
                "p": one.probability,
                "other": naming.short[str(model.classes[one.other])],
                "q": one.other_probability,
                "nearest": _labelled(evaluation, one.nearest, naming),
            }
            for one in model.suspect_labels
        ],
    }


def _labelled(evaluation: Evaluation, objects: Any, naming: Naming) -> list[dict[str, str]]:
    """Return the names and labels of some objects."""
    labels = evaluation.labels
    return [{"name": naming.objects[i], "label": naming.short[str(labels[i])]} for i in objects]


def _duplicates(evaluation: Evaluation, naming: Naming) -> dict[str, Any] | None:
    found = evaluation.duplicates
    if found is None or not found.groups:
        return None
    labels = evaluation.labels
    conflicting_first = sorted(found.groups, key=lambda g: len(set(labels[g].tolist())) == 1)
    return {
        "objects": sum(len(group) for group in found.groups),
        "groups": len(found.groups),
        "conflicting": found.conflicting,
        "listed": [
            _labelled(evaluation, group[:6], naming) for group in conflicting_first[:LISTED]
        ],
    }


def _predictions(model: ModelResult, objects: Any) -> dict[str, Any]:
    """Return the predictions of some objects, with probabilities in percent."""
    percents = (100 * model.confidence[objects]).round().astype(int).tolist()
    return {"name": model.name, "taken": model.answers[objects].tolist(), "p": percents}


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
