"""The predictions for a chunk of objects, and what they mean: a status each, and its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.conformal import FOUND_BY_CHANCE
from ..core.ranks import RankAnswers
from ..core.shapes import Indices
from ..model.model import Model

KNOWN, OK, AMBIGUOUS, NOVEL, UNREADABLE = "known", "ok", "ambiguous", "novel", "unreadable"
"""Status of an object. `ok` is `known` for a model that cannot recognise novel objects."""

BY_CHANCE = "no nearer to the known objects than random objects of its size"
"""Reason for calling an object ambiguous, whatever the probability of its label."""

NO_HIT = "no hit"
"""Reason for calling a query of a table of hits novel, whatever its p-value."""

CLASSIFIED = (KNOWN, OK)
"""An object with another status is unclassified, whatever its most probable label."""

Row = dict[str, Any]  # a cell for each name of a column


@dataclass(frozen=True)
class Assessed:
    """The predictions of a model for the objects of a chunk."""

    places: list[int]  # positions of the objects that could be compared
    objects: Any
    assessed: NDArray[Any]  # structured, with `probabilities` and what else the model provides
    reasons: dict[int, str]  # why the others could not, by position
    foreign: dict[int, str]  # why some look unlike the training objects, by position
    turned: set[int]  # positions of sequences that were compared on the other strand


@dataclass(frozen=True)
class Ranked:
    """The same predictions at the ranks of hierarchical labels."""

    answers: RankAnswers
    depths: Indices  # number of ranks of each answer: those that are certain enough
    why_not_deeper: list[str | None]


class Decision(NamedTuple):
    """The status of an object, and the reason if it is not the probability of its label."""

    status: str
    reason: str | None


def decide(found: Assessed, ranked: Ranked | None, model: Model) -> dict[int, Decision]:
    """Return the status of each object of a chunk, by its position.

    An object that cannot be read is unreadable, and one of another kind is novel. The others have
    the status that the model gives them by p-value, probability and nearness (`Model.assess`), or
    by the probability alone if it has no held-out scores. If labels have ranks, an answer at any of
    its ranks makes an object known.
    """
    decided = {i: Decision(NOVEL, why) for i, why in found.foreign.items()}
    decided |= {i: Decision(UNREADABLE, why) for i, why in found.reasons.items()}
    P, n = found.assessed, len(found.assessed)
    assesses = model.reference is not None
    if assesses:
        statuses = P["status"].tolist()
    else:
        least = model.ambiguous_below
        statuses = [AMBIGUOUS if p < least else KNOWN for p in P["probabilities"].max(axis=1)]
    reasons: list[str | None] = [None] * n
    if ranked is not None:
        statuses = ranked.answers.statuses(statuses, ranked.depths, model.novel_below)
        reasons = ranked.why_not_deeper
    if assesses and n:
        # with ranks, too, these are the reasons of the whole answer
        by_chance = (P["status"] == AMBIGUOUS) & (P["chance"] > FOUND_BY_CHANCE)
        reasons = [BY_CHANCE if yes else why for yes, why in zip(by_chance, reasons, strict=True)]
        if hasattr(found.objects, "indptr"):  # hits
            without = np.diff(found.objects.indptr) == 0
            reasons = [NO_HIT if no else why for no, why in zip(without, reasons, strict=True)]
    known = KNOWN if assesses else OK
    for i, status, reason in zip(found.places, statuses, reasons, strict=True):
        decided.setdefault(i, Decision(known if status == KNOWN else status, reason))
    return decided


def is_classified(row: Row) -> bool:
    """Whether the object of a row got a label, that is, is not ambiguous, novel or unreadable."""
    return row["status"] in CLASSIFIED


def answer_of(row: Row) -> str:
    """Return the label of a classified object: that of the deepest certain rank, if there are."""
    return str(row.get("rank_label", row["label"]))


def by_probability(row: Row) -> bool:
    """Whether only the probability of its label decides whether an object is ambiguous."""
    return row["status"] not in (NOVEL, UNREADABLE) and row["reason"] is None


def decide_again(row: Row, threshold: float) -> None:
    """Change the status of such an object to what it is at another threshold."""
    certain = KNOWN if "novelty" in row else OK
    row["status"] = AMBIGUOUS if row["probability"] < threshold else certain


def too_few_for_novelty(model: Model) -> str | None:
    """Return a warning if too few objects were held out to call any object novel."""
    reference = model.reference
    if reference is None or reference.smallest <= model.novel_below:
        return None
    n, needed = 1 / reference.smallest - 1, int(np.ceil(1 / max(model.novel_below, 1e-9))) - 1
    return (
        f"too few training objects to call new objects novel at {model.novel_below:g}: it takes "
        f"{needed} held-out objects, and there are {n:.0f}; fit to more objects, or use krein "
        f"predict --novel-below {np.ceil(1000 * reference.smallest) / 1000:g}"
    )
