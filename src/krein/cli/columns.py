"""The rows about new objects: which columns they have, and what is in each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.ranks import Rank, RankAnswers, rank_names, rank_path
from ..core.shapes import Array, Indices
from ..io import DataError, NamedObjects
from ..model.model import Model
from .status import NOVEL, UNREADABLE, Assessed, Decision, Ranked, Row, decide

MOST_LISTED, LISTED_CLASSES = 20, 10
"""A service lists the probabilities of all classes, or if there are more than 20, of the 10 most
probable ones."""

EVIDENCE_OBJECTS = 3
"""Number of known objects that a service names as evidence."""


@dataclass(frozen=True)
class Details:
    """What to report beyond the label and the runner-up; None leaves it out."""

    top: int | None = None  # number of most probable labels
    ambiguous_below: float | None = None
    novel_below: float | None = None
    sets: float | None = None  # share of the sets of labels that contain the true one
    evidence: int | None = None  # number of nearest known objects
    label_ranks: str | None = None  # separator of hierarchical labels; by default, the model's own
    rank_names: tuple[str, ...] = ()
    nested: bool = False  # for JSON: all probabilities and the evidence, each in one cell
    fdr: float | None = None  # share of errors in lists: a p-value for each object, and its lists
    strand: str = "auto"  # of DNA: plus, both, or auto


@dataclass(frozen=True)
class LabelRanks:
    """The ranks of labels that are paths in a taxonomy; there are none for plain labels."""

    separator: str | None = None
    taxonomy: Sequence[Rank] = ()
    names: Sequence[str] = ()
    learned: bool = False  # by the model; otherwise, the probabilities of classes add up


def labels_of(model: Model) -> list[str]:
    """Return the labels of the classes as text."""
    return [str(label) for label in model.classes.tolist()]


def ranks_of(model: Model, details: Details) -> LabelRanks:
    """Return the ranks that the user wants, or else those that the model has learned."""
    labels, given = labels_of(model), details.label_ranks
    own = None if model.ranks is None else model.ranks.separator
    if given is None or given == own:
        separator, taxonomy, learned = own, model.taxonomy, model.reference is not None
    else:
        separator, taxonomy, learned = given, _taxonomy(labels, given), False
    if separator is None:
        if details.rank_names:
            raise DataError("--rank-names: the labels of the model are not paths; see --help")
        return LabelRanks()
    if not 0.5 < model.ambiguous_below <= 1:
        raise DataError(
            f"--ambiguous-below {model.ambiguous_below:g}: labels are paths in a taxonomy, so use "
            "a number above 0.5, or two answers could be probable enough"
        )
    names = rank_names([rank_path(label, separator) for label in labels])
    wanted = details.rank_names
    if wanted and len(wanted) != len(names):
        raise DataError(
            f"--rank-names: {len(wanted)} names for {len(names)} ranks, as in {labels[0]!r}"
        )
    return LabelRanks(separator, taxonomy, wanted or names, learned)


def _taxonomy(labels: list[str], separator: str) -> list[Rank]:
    if not any(separator in label for label in labels):
        raise DataError(f"--label-ranks {separator}: no label of the model contains {separator!r}")
    try:
        return Rank.each(labels, separator)
    except ValueError as error:
        raise DataError(f"--label-ranks: {error}") from error


class RowMaker:
    """Makes a row of each prediction of a model: `names` are those of its columns."""

    def __init__(self, model: Model, details: Details, ranks: LabelRanks, stranded: bool) -> None:
        self.model, self.details, self.ranks = model, details, ranks
        self.stranded = stranded  # whether sequences may be on the other strand
        self.assesses = model.reference is not None
        self.labels = labels_of(model)
        found = Assessed([], [], no_predictions(model, ranks), {}, {}, set())
        self.names = ["name", *self._columns(found, self._ranked(found), {})]

    def rows_of(self, chunk: NamedObjects, found: Assessed) -> list[Row]:
        """Return the row of each object of a chunk."""
        ranked = self._ranked(found)
        decided = decide(found, ranked, self.model)
        columns = self._columns(found, ranked, decided)
        answered = dict(zip(found.places, zip(*columns.values(), strict=True), strict=True))
        uncompared = found.foreign.keys() | found.reasons.keys()
        return [
            self._row_without_label(name, decided[i])
            if i in uncompared
            else dict(zip(self.names, [name, *answered[i]], strict=True))
            for i, name in enumerate(chunk.names)
        ]

    def unreadable_row(self, name: str, reason: str) -> Row:
        """Return the row of an object that cannot be read."""
        return self._row_without_label(name, Decision(UNREADABLE, reason))

    def _row_without_label(self, name: str, decided: Decision) -> Row:
        """Return the row of an object that was not compared."""
        row: Row = dict.fromkeys(self.names) | {"name": name, **decided._asdict()}
        if decided.status == NOVEL and self.assesses:
            row["novelty"] = 0.0
        return row

    def _ranked(self, found: Assessed) -> Ranked | None:
        """Return the answers at the ranks of the labels; None if they are not paths."""
        separator, taxonomy = self.ranks.separator, self.ranks.taxonomy
        if separator is None:
            return None
        if self.ranks.learned:
            answers = RankAnswers.of_fields(found.assessed)
        else:
            answers = RankAnswers.of_classes(taxonomy, found.assessed["probabilities"])
        depths = self.model.rank_depths(found.assessed, answers)
        why = answers.why_not_deeper(
            taxonomy, self.ranks.names, separator, depths, self.model.novel_below
        )
        return Ranked(answers, depths, why)

    def _columns(
        self, found: Assessed, ranked: Ranked | None, decided: Mapping[int, Decision]
    ) -> dict[str, list[Any]]:
        """Return the columns of a table of predictions: a name, and a cell for each object."""
        details, labels, assessed = self.details, self.labels, found.assessed
        P = assessed["probabilities"]  # (n, C)
        order = np.argsort(-P, axis=1, kind="stable")  # (n, C): classes, the most probable first
        cells = self._label_cells(P, order)
        if ranked is not None:
            cells |= self._rank_cells(ranked)
        if details.nested:
            most = len(labels) if len(labels) <= MOST_LISTED else details.top or LISTED_CLASSES
            cells["probabilities"] = [
                {labels[c]: float(p[c]) for c in classes[:most]}
                for p, classes in zip(P, order.tolist(), strict=True)
            ]
        cells["status"] = [decided[i].status for i in found.places]
        if self.assesses:
            cells["novelty"] = assessed["novelty"].tolist()
        if details.fdr is not None:
            cells["doubt"] = assessed["doubt"].tolist()
            cells["selected"] = [None] * len(P)  # known only after all objects
        if details.sets is not None:
            cells["set"] = [
                "|".join(label for label, inside in zip(labels, row, strict=True) if inside)
                for row in assessed["set"]
            ]
        if details.evidence is not None:
            cells |= self._evidence_cells(assessed["why"], details.evidence)
        if self.stranded:
            cells["strand"] = ["-" if i in found.turned else "+" for i in found.places]
        cells["reason"] = [decided[i].reason for i in found.places]
        return cells

    def _label_cells(self, P: Array, order: Indices) -> dict[str, list[Any]]:
        """Return the columns of the most probable labels."""

        def ranked(k: int) -> tuple[list[str], list[float]]:
            classes = order[:, k]
            return [self.labels[c] for c in classes], P[np.arange(len(P)), classes].tolist()

        cells: dict[str, list[Any]] = {}
        cells["label"], cells["probability"] = ranked(0)
        cells["runner_up"], cells["runner_up_probability"] = ranked(1)
        most = min(self.details.top or 0, len(self.labels))
        for k in range(3, most + 1):  # the second is the runner-up
            cells[f"label_{k}"], cells[f"probability_{k}"] = ranked(k - 1)
        return cells

    def _evidence_cells(self, why: NDArray[Any], most: int) -> dict[str, list[Any]]:
        """Return the columns of the nearest known objects."""
        nearest = [[_known_object(near) for near in one.nearest] for one in why]
        if self.details.nested:
            return {"evidence": nearest}
        columns = {"nearest": "name", "nearest_label": "label", "nearest_value": "value"}
        return {
            f"{column}_{k + 1}": [known[k][part] if k < len(known) else None for known in nearest]
            for k in range(most)
            for column, part in columns.items()
        }

    def _rank_cells(self, ranked: Ranked) -> dict[str, list[Any]]:
        """Return the columns of the deepest rank that is certain enough, and of each rank."""
        cells: dict[str, list[Any]] = {"rank_label": [], "rank_probability": [], "rank": []}
        answers, taxonomy = ranked.answers, self.ranks.taxonomy
        for i, depth in enumerate(ranked.depths.tolist()):
            k = depth - 1
            node = taxonomy[k].nodes[answers.nodes[i, k, 0]] if depth else None
            cells["rank_label"].append(node)
            cells["rank_probability"].append(
                float(answers.probabilities[i, k, 0]) if depth else None
            )
            cells["rank"].append(self.ranks.names[k] if depth else None)
        for r, name in enumerate(self.ranks.names):
            P = answers.probabilities[:, r, 0].tolist()
            if self.details.nested:
                names = [taxonomy[r].nodes[k] for k in answers.nodes[:, r, 0]]
                p_values = answers.novelty[:, r].tolist()
                each = zip(names, P, p_values, strict=True)
                cells[name] = [{"label": a, "probability": p, "novelty": q} for a, p, q in each]
                continue
            cells[f"{name}_probability"] = P
            if self.ranks.learned:
                cells[f"{name}_novelty"] = answers.novelty[:, r].tolist()
        return cells


def no_predictions(model: Model, ranks: LabelRanks) -> NDArray[Any]:
    """Return an empty array of predictions, with the fields that any model may provide."""
    n_labels, n_ranks = len(model.classes), len(ranks.taxonomy)
    fields: list[Any] = [("probabilities", np.float64, (n_labels,))]
    fields += [(name, float) for name in ("novelty", "doubt")]
    fields += [(name, object) for name in ("status", "set", "why")]
    fields += [("rank_nodes", np.intp, (n_ranks, 2)), ("rank_probabilities", float, (n_ranks, 2))]
    fields += [(f"rank_{name}", float, (n_ranks,)) for name in ("unknown", "novelty")]
    return np.empty(0, dtype=fields)


def _known_object(near: Any) -> dict[str, Any]:
    name = near.name or str(near.index)
    return {"name": name, "label": str(near.label), "value": near.value}
