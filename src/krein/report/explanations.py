"""One page that explains why objects got their labels.

It shows what the features of each object say, marked in the object; the object side by side with
the nearest known ones; and what each landmark contributed to the score. `drawings` turns objects
into geometry and pieces of text, which the template draws.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.conformal import FOUND_BY_CHANCE
from ..core.ranks import RankAnswers, last_name, rank_names, rank_path, short_labels
from ..measures import take
from ..version import __version__
from .charts import percent
from .content import label_markup
from .drawings import marked, side_by_side, signed
from .page import part, template, write_page

if TYPE_CHECKING:
    from ..model.model import Model
    from ..model.parts import Explanation

LANDMARKS = 8
"""Number of landmarks whose contributions are drawn individually."""


@dataclass(frozen=True)
class ExplainedObjects:
    """The objects of a page, assessed by a model, with evidence."""

    names: list[str]
    objects: Any  # in the measure's form
    assessed: NDArray[Any]  # from `Model.assess(..., evidence=n, ranks=…)`
    unreadable: list[tuple[str, str]] = field(default_factory=list)  # name and reason
    left_out: int = 0  # number of objects that are not on the page


def write_explanations(
    model: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    names: Sequence[Any] | None = None,
    n: int = 3,
    max_objects: int = 50,
    title: str | None = None,
) -> None:
    """Write an HTML file that explains why objects got their labels, atomically.

    For each object, it shows the label, probability, status and novelty; what its own features say,
    marked in its letters or its curve; the nearest known objects next to the new one (the alignment
    of sequences, the warping path of series, the images, the letters that differ); and what each
    landmark contributed. The file is self-contained and opens offline. Names and labels are
    escaped, whatever they contain.

    Parameters
    ----------
    model : KreinClassifier or Model
        A fitted classifier, or the model that `krein.load` returned. Known objects have the
        names given with `name_objects`.
    X : sequence of objects
        In memory.
    path : path
        The file to write; an existing file is replaced.
    names : sequence of names, optional
        Names of the objects; default: "row 0", "row 1", …
    n : int, default=3
        Number of nearest known objects shown with each object.
    max_objects : int, default=50
        Maximum number of objects on the page; the first ones are shown.
    title : str, optional
        Heading of the page.

    Examples
    --------
    >>> from krein import KreinClassifier
    >>> from krein.report import write_explanations
    >>> words, labels = ["house", "mouse", "haus", "maus"], ["en", "en", "de", "de"]
    >>> model = KreinClassifier("levenshtein").fit(words, labels).name_objects(words)
    >>> write_explanations(model, ["louse"], "why.html")  # doctest: +SKIP
    """
    shown = take(X, slice(0, max_objects))
    called = [f"row {i}" for i in range(len(X))] if names is None else [str(one) for one in names]
    if len(called) != len(X):
        raise ValueError(f"{len(called)} names for {len(X)} objects")
    model = getattr(model, "model_", model)
    assessed = model.assess(shown, evidence=n, ranks=model.ranks is not None)
    left_out = len(X) - len(assessed)
    explained = ExplainedObjects(called[: len(assessed)], shown, assessed, left_out=left_out)
    write_explained(model, explained, path, title=title)


def write_explained(
    model: Any,
    explained: ExplainedObjects,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    command: str | None = None,
) -> None:
    """Write the page about objects that have been assessed."""
    text = template("explanations.html").render(
        page_content(model, explained, title, command),
        style=part("report.css"),
        own_style=part("explanations.css"),
        percent=percent,
        version=__version__,
    )
    write_page(path, text)


def page_content(
    classifier: Any, explained: ExplainedObjects, title: str | None, command: str | None
) -> dict[str, Any]:
    """Return everything that the template fills in.

    Only this function, `_explained_objects`, `_known_objects` and `_verdicts` know what a fitted
    model consists of.
    """
    model: Model = getattr(classifier, "model_", classifier)
    measure = model.measure
    paths = [str(name) for name in model.classes.tolist()]
    short = dict(zip(paths, short_labels(paths), strict=True))
    found = _explained_objects(model, explained, short)
    counts, n = Counter(one["status"] for one in found), len(found)
    many = f"Why {n:,} objects got their labels"
    return {
        "title": title or (many if n > 1 else "Why an object got its label"),
        "command": command,
        "objects": found,
        "label": partial(label_markup, {name: path for path, name in short.items()}),
        "counts": [(counts[name], name) for name in ("known", "ambiguous", "novel")],
        "unreadable": explained.unreadable,
        "left_out": explained.left_out,
        "n_classes": len(model.classes),
        "measure": measure.title,
        "similarity": measure.kind == "similarity",
        "n_landmarks": len(model.landmarks.indices),
        "novel_below": model.novel_below,
        "ambiguous_below": model.ambiguous_below,
        "smallest": 0.0 if model.reference is None else model.reference.smallest,
        "given": measure.accepts == "values",
    }


def _explained_objects(
    model: Model, explained: ExplainedObjects, short: dict[str, str]
) -> list[dict[str, Any]]:
    """Return the answer about each object, and what it rests on."""
    measure, landmarks, known = model.measure, model.landmarks, _known_objects(model)
    rows = [f"row {row}" for row in landmarks.indices.tolist()]
    named = rows if landmarks.names is None else landmarks.names
    labels = [short[str(model.classes[code])] for code in landmarks.codes.tolist()]
    columns = None if model.feature_names is None else model.feature_names.tolist()
    new: Any = [None] * len(explained.names)
    if measure.accepts != "values" and explained.names:
        with warnings.catch_warnings():  # the same as when the objects were assessed
            warnings.simplefilter("ignore")
            new = measure.check(explained.objects)
    whys: list[Explanation] = [row["why"] for row in explained.assessed]
    verdicts, found = _verdicts(model, explained.assessed, short), []
    for name, one, why, verdict in zip(explained.names, new, whys, verdicts, strict=True):
        nearest = []
        for near in why.nearest:
            pair = measure.side_by_side(one, known[near.index]) if near.index in known else None
            nearest.append(
                {
                    "name": near.name or f"row {near.index}",
                    "label": short[str(near.label)],
                    "same": bool(near.label == why.label),
                    "value": f"{near.value:.4g}",
                    "beside": side_by_side(pair, columns),
                }
            )
        parts = _contributions(why, named, labels, short)
        contents = None if why.along is None else measure.contents([one])
        own = None if contents is None else marked(contents[0], why)
        found.append({"name": name, "own": own, "nearest": nearest, **verdict, **parts})
    return found


def _known_objects(model: Model) -> dict[int, Any]:
    """Return the landmarks and the candidates of a model by row; none for precomputed values."""
    if model.measure.accepts == "values":
        return {}
    objects = dict(zip(model.landmarks.indices.tolist(), model.landmarks.objects, strict=True))
    second = model.second_look
    if second is not None:
        objects |= zip(second.known.indices.tolist(), second.objects, strict=True)
    return objects


def _verdicts(model: Model, assessed: Any, short: dict[str, str]) -> list[dict[str, Any]]:
    """Return the verdict on each object; labels that are paths are answered rank by rank."""
    found = [_verdict(row, model.classes, short) for row in assessed]
    if model.ranks is None or "rank_nodes" not in assessed.dtype.names:
        return found
    separator = model.ranks.separator
    names = rank_names([rank_path(str(label), separator) for label in model.classes])
    answers = RankAnswers.of_fields(assessed)
    depths = model.rank_depths(assessed, answers)
    given = [one["status"] for one in found]
    statuses = answers.statuses(given, depths, model.novel_below)
    reasons = answers.why_not_deeper(model.taxonomy, names, separator, depths, model.novel_below)
    for i, one in enumerate(found):
        one["status"], one["reason"] = statuses[i], reasons[i]
        one["ranks"] = [
            {
                "rank": name,
                "name": last_name(rank.nodes[answers.nodes[i, r, 0]], separator),
                "p": float(answers.probabilities[i, r, 0]),
                "novelty": float(answers.novelty[i, r]),
                "sure": r < depths[i],
            }
            for r, (name, rank) in enumerate(zip(names, model.taxonomy, strict=True))
            if answers.probabilities[i, r, 0] > 0
        ]
        one["answer"] = one["ranks"][depths[i] - 1] if depths[i] else None
    return found


def _verdict(row: Any, classes: NDArray[Any], short: dict[str, str]) -> dict[str, Any]:
    """Return the two most probable labels of an object, its status and its novelty."""
    P = row["probabilities"]
    first, second = np.argsort(-P, kind="stable")[:2].tolist()
    return {
        "status": str(row["status"]),
        "label": short[str(classes[first])],
        "p": float(P[first]),
        "runner_up": short[str(classes[second])],
        "q": float(P[second]),
        "novelty": float(row["novelty"]),
        "by_chance": float(row["chance"]) > FOUND_BY_CHANCE,
        "ranks": [],
        "answer": None,
        "reason": None,
    }


def _contributions(
    why: Explanation, names: Any, labels: Any, short: dict[str, str]
) -> dict[str, Any]:
    """Return the parts of the score, the largest contributions first, with their bar lengths.

    `names` and `labels` are those of the landmarks.
    """
    order = np.argsort(-np.abs(why.contributions), kind="stable")
    order = order[:0] if why.sure else order
    shown, others = order[:LANDMARKS].tolist(), order[LANDMARKS:]
    parts = [(str(names[k]), str(labels[k]), float(why.contributions[k])) for k in shown]
    if len(others):
        value = float(why.contributions[others].sum())
        parts.append((f"the other {len(others):,} landmarks together", "", value))
    if why.from_features:
        parts.append(("its own features", "", why.from_features))
    if why.evidence:
        parts.append(("the nearest known objects", "", why.evidence))
    parts.append(("baseline: an average object", "", why.baseline))
    longest = max(max(abs(value) for _, _, value in parts), 1e-12)
    return {
        "score": signed(why.score),
        "for": short[str(why.label)],
        "against": short[str(why.runner_up)],
        "parts": [
            {
                "name": name,
                "label": label,
                "value": value,
                "amount": signed(value),
                "bar": round(50 * abs(value) / longest, 1),
            }
            for name, label, value in parts
        ],
    }
