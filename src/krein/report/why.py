"""One page that explains why objects got their labels."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..measures import take
from ..version import __version__
from .charts import percent
from .content import compared
from .templates import part, template

if TYPE_CHECKING:
    from ..estimators.answers import Explanation, KnownNeighbour
    from ..estimators.krein import KreinClassifier

LANDMARKS = 8
"""Number of landmarks whose contributions are drawn individually."""


@dataclass(frozen=True)
class ExplainedObjects:
    """The objects of a page, assessed by a model, with evidence."""

    names: list[str]
    objects: Any  # in the measure's form
    assessed: NDArray[Any]  # from `KreinClassifier.assess(..., evidence=n)`
    unreadable: list[tuple[str, str]] = field(default_factory=list)  # name and reason
    left_out: int = 0  # number of objects that are not on the page


def write_explanations(
    model: KreinClassifier,
    X: Any,
    path: str | os.PathLike[str],
    *,
    names: Sequence[Any] | None = None,
    n: int = 3,
    max_objects: int = 50,
    title: str | None = None,
) -> None:
    """Write an HTML file that explains why objects got their labels, atomically.

    For each object, it shows the label, probability, status and novelty; the nearest known objects
    next to the new one (the alignment of sequences, the warping path of series, the images, the
    letters that differ); and what each landmark contributed. The file is self-contained and opens
    offline. Names and labels are escaped, whatever they contain.

    Parameters
    ----------
    model : KreinClassifier
        A fitted model. Known objects have the names given with `name_objects`.
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
    assessed = model.assess(shown, evidence=n)
    left_out = len(X) - len(assessed)
    explained = ExplainedObjects(called[: len(assessed)], shown, assessed, left_out=left_out)
    write_page(model, explained, path, title=title)


def write_page(
    model: KreinClassifier,
    explained: ExplainedObjects,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    command: str | None = None,
) -> None:
    """Write the page about objects that have been assessed."""
    from ..io.streams import atomic_write

    page = template("why.html")
    text = page.render(
        page_content(model, explained, title, command),
        style=part("report.css"),
        own_style=part("why.css"),
        percent=percent,
        version=__version__,
    )
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", "replace"))


def page_content(
    model: KreinClassifier, explained: ExplainedObjects, title: str | None, command: str | None
) -> dict[str, Any]:
    """Return everything that the template fills in."""
    known = _Known.of(model)
    objects = known.checked(explained.objects) if len(explained.names) else []
    told = [
        _object(model, known, name, one, row)
        for name, one, row in zip(explained.names, objects, explained.assessed, strict=True)
    ]
    counts = Counter(one["status"] for one in told)
    n = len(told)
    return {
        "title": title
        or (f"Why {n:,} objects got their labels" if n > 1 else "Why an object got its label"),
        "command": command,
        "objects": told,
        "counts": [(counts[name], name) for name in ("known", "ambiguous", "novel")],
        "unreadable": explained.unreadable,
        "left_out": explained.left_out,
        "n_classes": len(model.classes_),
        "measure": model.measure_.name,
        "similarity": model.measure_.kind == "similarity",
        "n_landmarks": len(model.landmarks_),
        "novel_below": model.novel_below,
        "ambiguous_below": model.ambiguous_below,
        "smallest": model.reference_.novelty.smallest,
        "given": model.measure_.accepts == "values",
    }


@dataclass(frozen=True)
class _Known:
    """The known objects of a model by row, and side-by-side views of new ones with them."""

    measure: Any
    objects: dict[int, Any]
    columns: list[str] | None

    @classmethod
    def of(cls, model: KreinClassifier) -> _Known:
        objects: dict[int, Any] = {}
        if model.measure_.accepts != "values":
            objects = dict(zip(model.landmarks_.tolist(), model.landmark_objects_, strict=True))
            if model.known_ is not None:
                rows = model.known_.indices.tolist()
                objects |= dict(zip(rows, model.known_objects_, strict=True))
        columns = getattr(model, "feature_names_in_", None)
        return cls(model.measure_, objects, None if columns is None else columns.tolist())

    def checked(self, objects: Any) -> Any:
        """Return new objects in the measure's form, without repeating its warnings."""
        if self.measure.accepts == "values":
            return [None] * len(objects)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.measure.check(objects)

    def beside(self, one: Any, near: KnownNeighbour) -> dict[str, Any]:
        """Return the side-by-side view of an object and a known one."""
        if near.index not in self.objects:
            return compared(None)
        return compared(self.measure.beside(one, self.objects[near.index]), self.columns)


def _object(model: KreinClassifier, known: _Known, name: str, one: Any, row: Any) -> dict[str, Any]:
    """Return the content about one object."""
    why: Explanation = row["why"]
    P = row["probabilities"]
    first, second = np.argsort(-P, kind="stable")[:2].tolist()
    return {
        "name": name,
        "status": str(row["status"]),
        "label": str(model.classes_[first]),
        "p": float(P[first]),
        "runner_up": str(model.classes_[second]),
        "q": float(P[second]),
        "novelty": float(row["novelty"]),
        "nearest": [
            {
                "name": near.name or f"row {near.index}",
                "label": str(near.label),
                "same": bool(near.label == why.label),
                "value": f"{near.value:.4g}",
                "beside": known.beside(one, near),
            }
            for near in why.nearest
        ],
        **_contributions(model, why),
    }


def _contributions(model: KreinClassifier, why: Explanation) -> dict[str, Any]:
    """Return the parts of the score, the largest contributions first, with their bar lengths."""
    codes = model.reference_.landmark_codes
    order = np.argsort(-np.abs(why.contributions), kind="stable")
    shown, others = order[:LANDMARKS], order[LANDMARKS:]
    parts: list[tuple[str, str, float]] = []
    for place in shown.tolist():
        names = model.landmark_names_
        name = f"row {model.landmarks_[place]}" if names is None else str(names[place])
        parts.append((name, str(model.classes_[codes[place]]), float(why.contributions[place])))
    if len(others):
        value = float(why.contributions[others].sum())
        parts.append((f"the other {len(others):,} landmarks together", "", value))
    if why.evidence:
        parts.append(("the nearest known objects", "", why.evidence))
    parts.append(("baseline: an average object", "", why.baseline))
    longest = max(max(abs(value) for _, _, value in parts), 1e-12)
    return {
        "score": _signed(why.score),
        "for": str(why.label),
        "against": str(why.runner_up),
        "looked_again": why.evidence != 0,
        "parts": [
            {
                "name": name,
                "label": label,
                "value": value,
                "amount": _signed(value),
                "bar": round(50 * abs(value) / longest, 1),
            }
            for name, label, value in parts
        ],
    }


def _signed(value: float) -> str:
    """Return a number with its sign.

    >>> _signed(-1.234)
    '−1.23'
    """
    return f"{value:+.2f}".replace("-", "−")
