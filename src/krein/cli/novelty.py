"""What `krein predict` reports beyond labels: novelty, status, sets of labels, and evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from ..io import DataError
from .options import Share

NOVEL = "novel"
UNREADABLE = "unreadable"


def novelty_options(function: Any) -> Any:
    """The options for output beyond labels."""
    made = (
        click.option(
            "--novel-below",
            type=Share(0, 1),
            metavar="P",
            help="Call objects novel (like none of the classes) if their p-value is at most "
            "this. Default: 0.01.",
        ),
        click.option(
            "--sets",
            type=Share(0, 1, min_open=True, max_open=True),
            metavar="SHARE",
            help="Add the labels that cannot be ruled out: the set contains the true label for "
            "this share of the objects.",
        ),
        click.option(
            "--evidence",
            type=click.IntRange(1),
            metavar="N",
            help="Add the N nearest known objects, with their labels and values of the measure.",
        ),
        click.option(
            "--classified-out",
            type=click.Path(),
            metavar="FILE",
            help="Also write the objects that got a label, in the format of NEW: sequences as "
            "FASTA with their labels, lines of other text files as they are.",
        ),
        click.option(
            "--unclassified-out",
            type=click.Path(),
            metavar="FILE",
            help="Also write the objects that are novel, rejected or unreadable, in the format of "
            "NEW.",
        ),
    )
    for option in reversed(made):
        function = option(function)
    return function


@dataclass(frozen=True)
class Asked:
    """The requested output beyond labels."""

    novel_below: float | None = None
    ambiguous_below: float | None = None
    sets: float | None = None
    evidence: int | None = None

    def check(self, model: Any) -> None:
        """Refuse options that the model does not support; set the thresholds."""
        if not hasattr(model, "assess"):
            for option in ("novel_below", "sets", "evidence"):
                if getattr(self, option) is not None:
                    asked = "evidence" if option == "evidence" else f"--{option.replace('_', '-')}"
                    raise DataError(
                        f"{asked} needs a model from krein fit --model auto; "
                        f"this one is {type(model).__name__.removeprefix('Fitted')}"
                    )
            return
        for name in ("novel_below", "ambiguous_below"):
            if getattr(self, name) is not None:
                setattr(model, name, getattr(self, name))

    def of(self, model: Any, objects: Any) -> NDArray[Any]:
        """Return a structured array with `probabilities` and further predictions.

        Each pair is compared only once.
        """
        if hasattr(model, "assess"):
            found: NDArray[Any] = model.assess(objects, coverage=self.sets, evidence=self.evidence)
            return found
        P = model.predict_proba(objects)
        dtype = np.dtype([("probabilities", np.float64, (P.shape[1],))])
        plain = np.empty(len(P), dtype=dtype)
        plain["probabilities"] = P
        return plain


def too_few(model: Any) -> str | None:
    """Return a warning if no object can be called novel because there are too few held-out
    objects."""
    reference = getattr(model, "reference_", None)
    if reference is None or reference.novelty.smallest <= model.novel_below:
        return None
    n, needed = len(reference.novelty.scores), int(np.ceil(1 / max(model.novel_below, 1e-9))) - 1
    return (
        f"too few training objects to call new objects novel at {model.novel_below:g}: it takes "
        f"{needed} held-out objects, and there are {n}; fit to more objects, or use krein "
        f"predict --novel-below {np.ceil(1000 * reference.novelty.smallest) / 1000:g}"
    )


def set_cells(assessed: NDArray[Any], names: Sequence[str]) -> list[list[Any]]:
    """Return the labels of each set, joined by |."""
    return [
        ["|".join(name for name, inside in zip(names, row, strict=True) if inside)]
        for row in assessed["set"]
    ]


def evidence_names(n: int) -> tuple[str, ...]:
    """Return the names of the columns for the n nearest known objects."""
    parts = ("nearest", "nearest_label", "nearest_value")
    return tuple(f"{part}_{k}" for k in range(1, n + 1) for part in parts)


def evidence_cells(assessed: NDArray[Any], n: int) -> list[list[Any]]:
    """Return the name (or row), label and value of the n nearest known objects."""
    rows = []
    for why in assessed["why"]:
        row: list[Any] = []
        for near in why.nearest:
            row += [near.name or str(near.index), str(near.label), near.value]
        rows.append(row + [None] * (3 * n - len(row)))
    return rows


def is_classified(row: Sequence[Any], at: Mapping[str, int]) -> bool:
    """Whether the object of a row got a label, that is, is not novel, rejected or unreadable."""
    return row[at["status"]] not in (UNREADABLE, NOVEL) and not row[at["rejected"]]
