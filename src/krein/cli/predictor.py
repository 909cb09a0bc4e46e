"""A loaded model and its predictions as rows: for `predict`, `explain` and `serve`."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from ..core.conformal import FOUND_BY_CHANCE
from ..core.ranks import Rank, RankAnswers, rank_names, rank_path
from ..core.shapes import Array, Indices
from ..data.dataset import NAMED, describe_foreign
from ..io import DataError, NamedObjects, Source, open_source
from ..io.streams import share_read
from ..io.tables import JsonLines
from ..measures import take
from ..model.model import Comparisons, Model
from .options import message_of, printable
from .output import warn
from .reading import match_columns, own_measure_of

CHUNK = 2048
"""Number of objects in memory at a time."""

MOST_LISTED, LISTED = 20, 10
"""A service lists the probabilities of all classes, or if there are more than 20, of the 10 most
probable ones."""

NEAREST = 3
"""Number of known objects that a service names as evidence."""

KNOWN, OK, AMBIGUOUS, NOVEL, UNREADABLE = "known", "ok", "ambiguous", "novel", "unreadable"
"""Status of an object. `ok` is `known` for a model that cannot recognise novel objects."""

ANSWER_BYTES = 2**26
"""Answers for sequences and strings are kept up to this size in total, for copies of them."""

STRAND_OBJECTS = 1_000
"""The strand of DNA is determined from about this many known sequences."""

PROTEIN_LETTERS, PROTEIN_SHARE = frozenset("EFILPQefilpq"), 0.1
"""Letters that no code of DNA uses; a sequence with this share of them is a protein."""

BY_CHANCE = "no nearer to the known objects than random objects of its size"
"""Reason for calling an object ambiguous, whatever the probability of its label."""

NO_HIT = "no hit"
"""Reason for calling a query of a table of hits novel, whatever its p-value."""

CLASSIFIED = (KNOWN, OK)
"""An object with another status is unclassified, whatever its most probable label."""

Row = dict[str, Any]  # a cell for each name of a column


@dataclass(frozen=True)
class Details:
    """What to report beyond the label and the runner-up; None and 0 leave it out."""

    top: int = 0  # number of most probable labels
    ambiguous_below: float | None = None
    novel_below: float | None = None
    sets: float | None = None  # share of the sets of labels that contain the true one
    evidence: int | None = None  # number of nearest known objects
    ranks: str | None = None  # separator of hierarchical labels; by default, the model's own
    rank_names: tuple[str, ...] = ()
    nested: bool = False  # for JSON: all probabilities and the evidence, each in one cell
    selected: bool = False  # the p-value of a wrong label, and a cell for the lists of the object
    strand: str = "auto"  # of DNA: plus, both, or auto


@dataclass(frozen=True)
class Assessed:
    """The predictions of a model for the objects of a chunk."""

    places: list[int]  # positions of the objects that could be compared
    objects: Any
    assessed: NDArray[Any]  # structured, with `probabilities` and what else the model provides
    reasons: dict[int, str]  # why the others could not, by position
    foreign: dict[int, str]  # why some look unlike the training objects, by position
    turned: set[int]  # positions of sequences that were compared on the other strand


class Predictor:
    """A loaded model, and its rows of predictions."""

    def __init__(
        self,
        path: str,
        details: Details,
        *,
        n_jobs: int | None = None,
        unknown_letters: str | None = None,
        max_size: int | None = None,
        measure: str | None = None,
    ) -> None:
        from .. import load

        if not os.path.exists(path):
            raise DataError(f"{path}: there is no such model; krein fit writes one")
        own = own_measure_of(measure)
        if measure is not None and own is None:
            raise click.UsageError(f"--measure {measure}: write FILE.py:FUNCTION")
        self.model: Model = load(path, measure=own, max_size=max_size, only_model=True)
        if not hasattr(self.model, "predict_proba"):
            raise DataError(f"{path}: contains a transformer, which does not predict labels")
        self.n_jobs = n_jobs
        self.assesses = self.model.reference is not None  # novelty, sets and evidence
        if details.nested:
            details = replace(details, evidence=NEAREST if self.assesses else None)
        self.details, self.unknown_letters = details, unknown_letters
        self._set_thresholds()
        self.labels = [str(label) for label in self.model.classes.tolist()]
        self.taxonomy = self._taxonomy()
        self.ranks = self._rank_names()
        self.letters = letter_reader(self.model.measure, unknown_letters)
        if unknown_letters is not None and self.letters is None:
            raise click.UsageError(
                f"--unknown-letters is for sequences; the model compares by "
                f"{self.model.measure.name}"
            )
        self.foreign: dict[str, tuple[list[str], int]] = {}  # some names and the number, by reason
        self.strands = self._strand_detector()
        self._kept: OrderedDict[str, Any] = OrderedDict()  # answers, for copies
        self._kept_bytes, self._lock = 0, Lock()
        P = ("probabilities", np.float64, (len(self.labels),))
        numbers, others = ("novelty", "doubt"), ("status", "set", "why")
        more: list[Any] = [
            *((name, float) for name in numbers),
            *((name, object) for name in others),
        ]
        R = (len(self.ranks),)
        more += [("rank_nodes", np.intp, (*R, 2)), ("rank_probabilities", float, (*R, 2))]
        more += [("rank_unknown", float, R), ("rank_novelty", float, R)]
        self._nothing = np.empty(0, dtype=[P, *more])
        strand = [] if self.strands is None else ["strand"]
        self.names = ["name", *self._columns(self._nothing), *strand, "reason"]

    def _set_thresholds(self) -> None:
        """Pass the thresholds on to the model; refuse options that it does not support."""
        details = self.details
        if details.ambiguous_below is not None:
            self.model = replace(self.model, ambiguous_below=details.ambiguous_below)
        if self.assesses:
            if details.novel_below is not None:
                self.model = replace(self.model, novel_below=details.novel_below)
                if (warning := too_few_for_novelty(self.model)) is not None:
                    warn(warning)
            return
        for option, value in (
            ("--novel-below", details.novel_below),
            ("--sets", details.sets),
            ("--fdr", details.selected or None),
            ("evidence", details.evidence),
        ):
            if value is not None:
                raise DataError(
                    f"{option} needs a model with held-out scores: krein fit --model krein, or "
                    "--calibrate"
                )

    def _taxonomy(self) -> list[Rank]:
        """Return the ranks of the labels; none if they are not paths."""
        own, given = self.model.ranks, self.details.ranks
        if given is None or (own is not None and given == own.separator):
            return self.model.taxonomy
        if not any(given in label for label in self.labels):
            raise DataError(f"--label-ranks {given}: no label of the model contains {given!r}")
        try:
            return Rank.each(self.labels, given)
        except ValueError as error:
            raise DataError(f"--label-ranks: {error}") from error

    @property
    def separator(self) -> str | None:
        """The sign between the ranks of the labels; None if they are not paths."""
        own = self.model.ranks
        return self.details.ranks or (None if own is None else own.separator)

    @property
    def _learned_ranks(self) -> bool:
        """Whether the model has learned these ranks; otherwise, probabilities of classes add up."""
        return self.taxonomy is self.model.taxonomy and bool(self.taxonomy) and self.assesses

    def _rank_names(self) -> list[str]:
        """Return the names of the ranks."""
        if not self.taxonomy:
            if self.details.rank_names:
                raise DataError("--rank-names: the labels of the model are not paths; see --help")
            return []
        if not 0.5 < self.model.ambiguous_below <= 1:
            raise DataError(
                f"--ambiguous-below {self.model.ambiguous_below:g}: labels are paths in a "
                "taxonomy, so use a number above 0.5, or two answers could be probable enough"
            )
        assert self.separator is not None
        found = rank_names([rank_path(label, self.separator) for label in self.labels])
        given = self.details.rank_names
        if given and len(given) != len(found):
            raise DataError(
                f"--rank-names: {len(given)} names for {len(found)} ranks, as in {self.labels[0]!r}"
            )
        return list(given) or found

    def _strand_detector(self) -> Any:
        """Return what detects the strand of DNA; None if it does not matter."""
        measure, given = self.model.measure, self.details.strand
        if getattr(measure, "both_strands", True) or not self._compares_dna:
            if given == "both":
                raise click.UsageError(
                    "--strand both is for a model of DNA that was not fitted with --both-strands"
                )
            return None
        if given == "plus":
            return None
        from ..measures.sequences import StrandDetector

        parts = [self.model.landmarks.objects]
        if self.model.second_look is not None:
            parts.append(self.model.second_look.objects)
        known = [str(one) for part in parts for one in part]
        return StrandDetector(known[:: max(1, len(known) // STRAND_OBJECTS)])

    @property
    def _compares_dna(self) -> bool:
        measure = self.model.measure
        if not hasattr(measure, "both_strands"):
            return False
        from ..measures.sequences import get_scoring

        return get_scoring(measure.matrix).strands  # type: ignore[attr-defined]

    def open(self, path: str, *, input_format: str | None, no_header: bool, **named: Any) -> Source:
        """Open new objects, read as the kind of objects that the model was fitted to."""
        if self.model.hits is not None and self.model.hits.score:
            return self._open_hits(path, named)
        for option in ("queries", "columns"):
            if named.pop(option, None) is not None:
                raise click.UsageError(
                    f"--{option} is for tables of hits, but the model was not fitted to one"
                )
        given = self.model.measure.accepts == "values"
        header = False if no_header else None
        columns = self.model.measure.columns
        if columns is not None:
            if named.get("objects") is not None:
                raise click.UsageError(
                    f"--objects cannot be used: the model compares the columns {', '.join(columns)}"
                )
            named["objects"] = list(columns)
        wanted_format = "matrix" if given and input_format is None else input_format
        source = open_source(path, format=wanted_format, header=header, **named)
        if source.kind == "matrix" and not given:
            if not source.rereadable:
                raise DataError(
                    f"{source.shown}: is read as a matrix of values, but the model compares "
                    "objects; use --input-format vectors"
                )
            source = open_source(path, format="vectors", header=header, **named)
        if not isinstance(source, JsonLines):  # whose records are checked one by one
            self._check_kind(source)
        elif self.model.measure.accepts == "vectors" and columns is None:
            source = source.changed(width=np.shape(self.model.landmarks.objects)[1])
        wanted = self.model.feature_names
        if wanted is not None:
            source = match_columns(source, wanted.tolist(), named.get("objects") is not None)
        return source.changed(lenient=True)

    def _open_hits(self, path: str, named: dict[str, Any]) -> Source:
        """Open a table of hits, scored by the column that the model learned from."""
        from .hits import QuerySource

        hits, second = self.model.hits, self.model.second_look
        assert hits is not None
        assert second is not None
        if named.get("objects") is not None or named.get("names") is not None:
            raise click.UsageError(
                "--objects and --names are not for tables of hits: use --columns"
            )
        if second.names is None:
            raise DataError(
                "hits name known objects, but the model contains no names: in Python, call its "
                "name_objects and save it again"
            )
        return QuerySource(
            path,
            second.names.tolist(),
            hits.score,
            named.get("columns"),
            named.get("queries"),
            named["max_size"],
        )

    def _check_kind(self, source: Source) -> None:
        """Refuse text for a model of numbers, and numbers for a model of text."""
        known = self.model.landmarks.objects
        text = isinstance(known[0], str | bytes)
        if text == (source.kind in ("sequences", "strings", "receptors")):
            return
        if text or isinstance(known, np.ndarray) or isinstance(known[0], np.ndarray):
            found, wanted = ("numbers", "text") if text else ("text", "numbers")
            raise DataError(
                f"{source.shown}: contains {found} ({source.understood}), but the model compares "
                f"{wanted} by {self.model.measure.name}; if it is the wrong column, name the right "
                "one with --objects"
            )

    def rows(self, source: Source, done: int = 0) -> Iterator[tuple[NamedObjects, list[Row]]]:
        """Yield each chunk with its rows, after those of an earlier run."""
        with _progress(source) as advance:
            for chunk in source.stream(CHUNK):
                if chunk.first >= done:
                    yield chunk, self.rows_of(chunk)
                advance(len(chunk))

    def rows_of(self, chunk: NamedObjects, until: float | None = None) -> list[Row]:
        """Return the row of each object of a chunk; past `until`, raise `OutOfTime`."""
        found = self.assess(chunk, until)
        columns = self._columns(found.assessed)
        reasons = self._reasons(found.assessed, found.objects)
        each = zip(*columns.values(), reasons, strict=True)
        answered = dict(zip(found.places, each, strict=True))
        refused = found.foreign | found.reasons  # a foreign object may be unreadable, too
        rows = []
        for i, name in enumerate(chunk.names):
            if i in refused:  # not compared
                foreign = i not in found.reasons
                rows.append(self.row_without_label(name, refused[i], foreign))
            else:
                cells = list(answered[i])
                if self.strands is not None:
                    cells.insert(-1, "-" if i in found.turned else "+")
                rows.append(dict(zip(self.names, [name, *cells], strict=True)))
        return rows

    def _reasons(self, found: NDArray[Any], objects: Any) -> list[str | None]:
        """Return why objects are ambiguous or novel, or why an answer is not deeper."""
        reasons: list[str | None] = [None] * len(found)
        if not len(found):
            return reasons
        if self.separator is not None and self.taxonomy:
            answers = self._answers_at_ranks(found)
            reasons = answers.why_not_deeper(
                self.taxonomy,
                self.ranks,
                self.separator,
                self.model.rank_depths(found, answers),
                self.model.novel_below,
            )
        if self.assesses:
            alone = [False] * len(found)
            if hasattr(objects, "indptr"):  # hits
                alone = (np.diff(objects.indptr) == 0).tolist()
            alike = (found["status"] == AMBIGUOUS) & (found["chance"] > FOUND_BY_CHANCE)
            each = zip(alone, alike.tolist(), reasons, strict=True)
            reasons = [NO_HIT if no else BY_CHANCE if a else why for no, a, why in each]
        return reasons

    def _answers_at_ranks(self, found: NDArray[Any]) -> RankAnswers:
        """Return the paths of objects down the taxonomy."""
        if self._learned_ranks:
            return RankAnswers.of_fields(found)
        return RankAnswers.of_classes(self.taxonomy, found["probabilities"])

    def row_without_label(self, name: str, reason: str, foreign: bool = False) -> Row:
        """Return the row of an object that is unreadable, or of another kind."""
        row: Row = dict.fromkeys(self.names) | {"name": name, "reason": reason}
        row["status"] = NOVEL if foreign else UNREADABLE
        if foreign and self.assesses:
            row["novelty"] = 0.0
        return row

    def _columns(self, found: NDArray[Any]) -> dict[str, list[Any]]:
        """Return the columns of a table of predictions: a name, and a cell for each object."""
        details, labels = self.details, self.labels
        P = found["probabilities"]  # (n, C)
        order = np.argsort(-P, axis=1, kind="stable")  # (n, C): classes, the most probable first
        cells = self._label_cells(P, order)
        ranked = None
        if self.taxonomy:
            answers = self._answers_at_ranks(found)
            ranked = answers, self.model.rank_depths(found, answers)
            cells |= self._rank_cells(*ranked)
        if details.nested:
            most = len(labels) if len(labels) <= MOST_LISTED else details.top or LISTED
            cells["probabilities"] = [
                {labels[c]: float(p[c]) for c in classes[:most]}
                for p, classes in zip(P, order.tolist(), strict=True)
            ]
        cells["status"] = self._statuses(found, cells["probability"], ranked)
        if self.assesses:
            cells["novelty"] = found["novelty"].tolist()
        if details.selected:
            cells["doubt"] = found["doubt"].tolist()
            cells["selected"] = [None] * len(P)  # known only after all objects
        if details.sets is not None:
            cells["set"] = [
                "|".join(label for label, inside in zip(labels, row, strict=True) if inside)
                for row in found["set"]
            ]
        if details.evidence is not None:
            cells |= self._evidence_cells(found["why"], details.evidence)
        return cells

    def _label_cells(self, P: Array, order: Indices) -> dict[str, list[Any]]:
        """Return the columns of the most probable labels."""

        def ranked(k: int) -> tuple[list[str], list[float]]:
            classes = order[:, k]
            return [self.labels[c] for c in classes], P[np.arange(len(P)), classes].tolist()

        cells: dict[str, list[Any]] = {}
        cells["label"], cells["probability"] = ranked(0)
        cells["runner_up"], cells["runner_up_probability"] = ranked(1)
        most = min(self.details.top, len(self.labels))
        for k in range(3, most + 1):  # the second is the runner-up
            cells[f"label_{k}"], cells[f"probability_{k}"] = ranked(k - 1)
        return cells

    def _statuses(
        self,
        found: NDArray[Any],
        probabilities: list[float],
        ranked: tuple[RankAnswers, Indices] | None,
    ) -> list[str]:
        """Return the status of each object, at its deepest answered rank if labels have ranks."""
        if self.assesses:
            statuses = found["status"].tolist()
        else:
            least = self.model.ambiguous_below
            statuses = [AMBIGUOUS if p < least else OK for p in probabilities]
        if ranked is None:
            return statuses
        answers, depths = ranked
        known = KNOWN if self.assesses else OK
        statuses = answers.statuses(statuses, depths, self.model.novel_below)
        return [known if status == KNOWN else status for status in statuses]

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

    def _rank_cells(self, answers: RankAnswers, depths: Indices) -> dict[str, list[Any]]:
        """Return the columns of the deepest rank that is certain enough, and of each rank."""
        cells: dict[str, list[Any]] = {"rank_label": [], "rank_probability": [], "rank": []}
        for i, depth in enumerate(depths.tolist()):
            k = depth - 1
            node = self.taxonomy[k].nodes[answers.nodes[i, k, 0]] if depth else None
            cells["rank_label"].append(node)
            cells["rank_probability"].append(
                float(answers.probabilities[i, k, 0]) if depth else None
            )
            cells["rank"].append(self.ranks[k] if depth else None)
        for r, name in enumerate(self.ranks):
            P = answers.probabilities[:, r, 0].tolist()
            if self.details.nested:
                names = [self.taxonomy[r].nodes[k] for k in answers.nodes[:, r, 0]]
                p_values = answers.novelty[:, r].tolist()
                each = zip(names, P, p_values, strict=True)
                cells[name] = [{"label": a, "probability": p, "novelty": q} for a, p, q in each]
                continue
            cells[f"{name}_probability"] = P
            if self._learned_ranks:
                cells[f"{name}_novelty"] = answers.novelty[:, r].tolist()
        return cells

    def assess(self, chunk: NamedObjects, until: float | None = None) -> Assessed:
        """Return the predictions for a chunk, and the reasons for objects without one."""
        objects, reasons = chunk.objects, dict[int, str]()
        proteins = self._find_proteins(objects)
        if self.letters is not None:
            objects, reasons = self.letters.read(chunk, proteins)
        reasons |= chunk.unreadable
        refused = reasons.keys() | proteins.keys()
        places = [i for i in range(len(chunk)) if i not in refused]
        readable = take(objects, np.array(places, dtype=np.intp))
        foreign = proteins | self._find_foreign(readable, chunk, places)
        self._note_foreign(foreign, chunk)
        found, turned = self._on_best_strand(readable, chunk, places, until)
        reasons |= {i: answer for i, answer in found.items() if isinstance(answer, str)}
        if self.unknown_letters == "fail" and reasons:
            raise DataError(reasons[min(reasons)])
        good = [i for i in places if i not in reasons]
        answers: list[Any] = [found[i] for i in good]
        assessed = np.array(answers, dtype=answers[0].dtype) if answers else self._nothing
        compared = take(objects, np.array(good, dtype=np.intp))
        if turned:
            from ..measures.sequences import reverse_complement

            each = zip(good, compared, strict=True)
            compared = [reverse_complement(x) if i in turned else x for i, x in each]
        why = {i: f"of another kind: {text}" for i, text in foreign.items()}
        return Assessed(good, compared, assessed, reasons, why, turned)

    def _on_best_strand(
        self, objects: Any, chunk: NamedObjects, places: list[int], until: float | None
    ) -> tuple[dict[int, Any | str], set[int]]:
        """Return the answers by position, and the positions of sequences on the other strand."""
        if self.strands is None:
            return dict(self._answers(objects, chunk, places, until)), set()
        from ..measures.sequences import reverse_complement

        if self.details.strand == "auto":
            turned = {i for i, x in zip(places, objects, strict=True) if self.strands.is_turned(x)}
            each = zip(places, objects, strict=True)
            ahead = [reverse_complement(x) if i in turned else x for i, x in each]
            return dict(self._answers(ahead, chunk, places, until)), turned
        found = dict(self._answers(objects, chunk, places, until))
        other = [reverse_complement(x) for x in objects]
        turned = set()
        for i, answer in self._answers(other, chunk, places, until):
            if not isinstance(answer, str) and _is_better(answer, found[i]):
                found[i] = answer
                turned.add(i)
        return found, turned

    def _answers(
        self, objects: Any, chunk: NamedObjects, places: list[int], until: float | None
    ) -> Iterator[tuple[int, Any | str]]:
        """Yield the position of each object with its prediction, or the reason why it has none.

        Copies of a sequence or a string are compared once.
        """
        if chunk.kind not in ("sequences", "strings"):
            yield from self._predictions(objects, chunk, places, until)
            return
        first: dict[str, int] = {}  # contents, and their first place among these
        known: dict[str, Any] = {}  # other requests may forget answers meanwhile
        for k, one in enumerate(objects):
            answer = self._kept.get(one)
            if answer is None:
                first.setdefault(one, k)
            else:
                known[one] = answer
        new = list(first.values())
        some = [objects[k] for k in new]
        found = dict(self._predictions(some, chunk, [places[k] for k in new], until))
        for i, one in zip(places, objects, strict=True):
            answer = known[one] if one in known else found[places[first[one]]]
            if isinstance(answer, str) and places[first[one]] != i:  # the reason names the place
                (answer,) = (why for _, why in self._predictions([one], chunk, [i], until))
            yield i, answer
        self._keep((one, found[places[k]]) for one, k in first.items())

    def _keep(self, answers: Iterator[tuple[str, Any]]) -> None:
        """Keep answers for copies that may follow, as many as fit; the oldest are forgotten."""
        if self.details.evidence is not None:  # explanations are large
            return
        row = self._nothing.dtype.itemsize
        with self._lock:
            for one, answer in answers:
                if not isinstance(answer, str) and one not in self._kept:
                    self._kept[one] = answer.copy()  # not the array that it is a row of
                    self._kept_bytes += len(one) + row
            while self._kept_bytes > ANSWER_BYTES:
                one, _ = self._kept.popitem(last=False)
                self._kept_bytes -= len(one) + row

    def _predictions(
        self, objects: Any, chunk: NamedObjects, places: list[int], until: float | None
    ) -> Iterator[tuple[int, Any | str]]:
        """Yield the position of each object with its prediction, or the reason why it has none.

        If some objects cannot be compared, the chunk is halved until they are isolated; k of n
        objects take about k·log₂ n calls. Vectors and precomputed values have the same width in the
        whole file, so an error that is not about one of the objects is about the file.
        """
        if not places:
            return
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # told by the probabilities
                assessed = self._predict(objects, until)
        except (ValueError, TypeError) as error:
            of_one = getattr(error, "row", None) is not None
            if chunk.kind in ("vectors", "matrix") and not of_one:
                raise chunk.located(error) from error
            half = len(places) // 2
            if half:
                yield from self._predictions(objects[:half], chunk, places[:half], until)
                yield from self._predictions(objects[half:], chunk, places[half:], until)
            else:
                yield places[0], message_of(chunk.located(error, places[0]))
            return
        for i, found in zip(places, assessed, strict=True):
            reason = (
                f"{chunk.where(i)}: its probabilities are not numbers, because its values are "
                f"too large or too small to compute with: are they on the same scale as the "
                f"training objects?"
            )
            yield i, found if np.isfinite(found["probabilities"]).all() else reason

    def _predict(self, objects: Any, until: float | None) -> NDArray[Any]:
        """Return a structured array with `probabilities`, and with `status`, `novelty`, `set` and
        `why` if the model provides them. Each pair is compared only once."""
        run = Comparisons(
            self.model.measure, self.model.symmetrize, self.n_jobs, verbose=0, until=until
        )
        if self.assesses:
            found: NDArray[Any] = self.model.assess(
                objects,
                coverage=self.details.sets,
                evidence=self.details.evidence,
                ranks=self._learned_ranks,
                compare_all=self.details.selected,  # the list of novel objects
                run=run,
            )
            return found
        P = self.model.predict_proba(objects, run)
        plain = np.empty(len(P), dtype=[("probabilities", np.float64, (P.shape[1],))])
        plain["probabilities"] = P
        return plain

    def _find_proteins(self, objects: Any) -> dict[int, str]:
        """Return the positions of proteins among sequences that are to be compared as DNA."""
        if self.letters is None or not self.letters.alphabet.nucleotides:
            return {}
        return {
            i: "letters of proteins"
            for i, one in enumerate(objects)
            if isinstance(one, str)
            and sum(map(one.count, PROTEIN_LETTERS)) >= max(1, PROTEIN_SHARE * len(one))
        }

    def _find_foreign(self, objects: Any, chunk: NamedObjects, places: list[int]) -> dict[int, str]:
        """Return why objects look unlike the training objects, by position."""
        profile = self.model.profile
        foreign = {} if profile is None else profile.foreign(objects)
        return {places[i]: why for why, rows in foreign.items() for i in rows}

    def _note_foreign(self, foreign: dict[int, str], chunk: NamedObjects) -> None:
        """Keep some names of foreign objects for one warning."""
        for i, why in sorted(foreign.items()):
            names, n = self.foreign.get(why, ([], 0))
            more = [printable(chunk.names[i], 30)] if n < NAMED else []
            self.foreign[why] = (names + more, n + 1)

    def warn_of_objects(self) -> None:
        """Warn once about sequences with letters that are not scored, or that look foreign."""
        if self.foreign:
            warn(describe_foreign(self.foreign))
        if self.letters is not None and self.letters.n_changed:
            warn(str(self.letters))


def _is_better(answer: Any, other: Any) -> bool:
    """Whether an answer is for an object that is nearer to known ones, or else more certain."""
    if isinstance(other, str):
        return True
    fields = ["novelty"] if "novelty" in answer.dtype.names else []
    own, its = ([one[f] for f in fields] + [one["probabilities"].max()] for one in (answer, other))
    return bool(own > its)


def _known_object(near: Any) -> dict[str, Any]:
    name = near.name or str(near.index)
    return {"name": name, "label": str(near.label), "value": near.value}


def too_few_for_novelty(model: Model) -> str | None:
    """Return a warning if no object can be called novel because there are too few held-out
    objects."""
    reference = model.reference
    if reference is None or reference.smallest <= model.novel_below:
        return None
    n, needed = 1 / reference.smallest - 1, int(np.ceil(1 / max(model.novel_below, 1e-9))) - 1
    return (
        f"too few training objects to call new objects novel at {model.novel_below:g}: it takes "
        f"{needed} held-out objects, and there are {n:.0f}; fit to more objects, or use krein "
        f"predict --novel-below {np.ceil(1000 * reference.smallest) / 1000:g}"
    )


class LetterReader:
    """Reads sequences with letters that the scoring matrix of a model does not contain.

    `policy` is one of `options.LETTER_POLICIES`, or None for the default
    (`krein.measures.sequences`). As text, it is a message about the letters that were replaced.
    """

    def __init__(self, matrix: str, policy: str | None) -> None:
        from ..measures.sequences import get_scoring

        self.alphabet = get_scoring(matrix).alphabet
        self.policy = {None: "map", "X": "X"}.get(policy, "fail")
        self.changes: Counter[str] = Counter()
        self.n_changed = 0

    def read(
        self, chunk: NamedObjects, others: Collection[int] = ()
    ) -> tuple[list[Any], dict[int, str]]:
        """Return the sequences in the letters that are scored, and why some are skipped.

        Those at the positions `others` are left as they are.
        """
        from ..measures.sequences import UnreadableSequence

        objects, reasons = list(chunk.objects), dict[int, str]()
        for i, given in enumerate(objects):
            changes: Counter[str] = Counter()
            if isinstance(given, str) and i not in others:
                try:
                    objects[i] = self.alphabet.read(given, self.policy, changes)
                except UnreadableSequence as error:
                    reasons[i] = f"{chunk.where(i)}: {error.reason}"
            self.n_changed += bool(changes)
            self.changes += changes
        return objects, reasons

    def __str__(self) -> str:
        how = ", ".join(f"{what} ({n:,})" for what, n in self.changes.most_common())
        sequences = "1 sequence" if self.n_changed == 1 else f"{self.n_changed:,} sequences"
        return printable(
            f"{sequences} contained letters that {self.alphabet.name} does not score: {how} "
            "(--unknown-letters)",
            300,
        )


def letter_reader(measure: Any, policy: str | None) -> LetterReader | None:
    """Return the reader for a measure that aligns sequences; None for any other measure.

    A model fitted with its own rule for unknown letters keeps it unless `policy` is given.
    """
    rule = getattr(measure, "unknown_letters", None)
    if rule is None or (policy is None and rule != "map"):
        return None
    return LetterReader(measure.matrix, policy)


EVERY = 30.0
"""Seconds between two lines about progress, if standard error is not a terminal."""


@contextmanager
def _progress(source: Source) -> Iterator[Callable[[int], None]]:
    """Show on standard error how much of a file has been read, and how long the rest will take.

    On a terminal it is a bar, unless rows are shown there, and otherwise a line now and then.
    """
    if sys.stderr.isatty() and not sys.stdout.isatty():
        with _bar(source) as advance:
            yield advance
        return
    start = last = time.monotonic()
    n = 0

    def tell(more: int) -> None:
        nonlocal last, n
        n, now = n + more, time.monotonic()
        if now - last < EVERY:
            return
        last, share = now, share_read(source.path)
        text = f"{n:,} objects"
        if share:
            left = (now - start) * (1 - share) / share
            text += f", {100 * share:.0f} % of {source.shown}, about {in_words(left)} left"
        click.echo(f"krein: {printable(text, 300)}", err=True)

    yield tell if not sys.stderr.isatty() else lambda _: None


def in_words(seconds: float) -> str:
    """Return a duration for a person.

    >>> in_words(42), in_words(720), in_words(9000)
    ('42 s', '12 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def _bar(source: Source) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.fields[n]:,} objects")]
    columns += [BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, n=0)
        n = 0

        def advance(more: int) -> None:
            nonlocal n
            n += more
            share = share_read(source.path)
            if share is not None:
                bar.update(task, total=1.0, completed=share)
            bar.update(task, n=n)

        yield advance
