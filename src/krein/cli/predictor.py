"""A loaded model and its answers about new objects: for `predict`, `explain` and `serve`.

A `Predictor` opens new objects, assesses a chunk of them, and has a `RowMaker` (`columns.py`) turn
the answers into rows. Whoever holds a `Predictor` needs nothing else.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from threading import Lock
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from ..data.foreign import NAMED, describe_foreign
from ..io import DataError, NamedObjects, Source, open_source
from ..io.tables import JsonLines
from ..measures import take
from ..model.model import Model
from ..model.parts import Comparisons
from .columns import EVIDENCE_OBJECTS, Details, RowMaker, no_predictions, ranks_of
from .letters import letter_reader, strand_detector, turn
from .measure import own_measure_of
from .messages import message_of, printable
from .options import ModelOptions, NewOptions
from .reading import match_columns
from .status import Assessed, Row, too_few_for_novelty
from .terminal import reading_progress, warn

AT_A_TIME = 2048
"""Number of objects in memory at a time."""

ANSWER_BYTES = 2**26
"""Answers for sequences and strings are kept up to this size in total, for copies of them."""


class Predictor:
    """A loaded model: `open` new objects, `assess` each chunk of them, and make `rows` of it.

    `columns` are the names of the cells in a row, and `ranks` those of the labels.
    """

    def __init__(
        self, options: ModelOptions, details: Details, max_size: int | None = None
    ) -> None:
        from .. import load

        path, measure = options.model, options.measure
        if not os.path.exists(path):
            raise DataError(f"{path}: there is no such model; krein fit writes one")
        own = own_measure_of(measure)
        if measure is not None and own is None:
            raise click.UsageError(f"--measure {measure}: write FILE.py:FUNCTION")
        model = load(path, measure=own, max_size=max_size, only_model=True)
        if not hasattr(model, "predict_proba"):
            raise DataError(f"{path}: contains a transformer, which does not predict labels")
        self.options = options
        if details.nested:
            nearest = None if model.reference is None else EVIDENCE_OBJECTS
            details = replace(details, evidence=nearest)
        self.model: Model = _with_thresholds(model, details)
        self.strands = strand_detector(self.model, details.strand)
        self.details, self.ranks = details, ranks_of(self.model, details)
        self._maker = RowMaker(self.model, details, self.ranks, self.strands is not None)
        self.columns = self._maker.names
        self.letters = letter_reader(self.model.measure, options.unknown_letters)
        if options.unknown_letters is not None and self.letters is None:
            raise click.UsageError(
                f"--unknown-letters is for sequences; the model compares by "
                f"{self.model.measure.name}"
            )
        self._foreign: dict[str, tuple[list[str], int]] = {}  # some names and the number, by reason
        self._nothing = no_predictions(self.model, self.ranks)
        self._kept = KeptAnswers(self._nothing.dtype.itemsize)

    def open(self, new: NewOptions) -> Source:
        """Open new objects, read as the kind of objects that the model was fitted to."""
        if self.model.hits is not None and self.model.hits.score:
            return self._open_hits(new)
        for option in ("queries", "columns"):
            if getattr(new, option) is not None:
                raise click.UsageError(
                    f"--{option} is for tables of hits, but the model was not fitted to one"
                )
        given = self.model.measure.accepts == "values"
        columns = self.model.measure.columns
        if columns is not None and new.objects is not None:
            raise click.UsageError(
                f"--objects cannot be used: the model compares the columns {', '.join(columns)}"
            )
        how: dict[str, Any] = {
            "objects": new.objects if columns is None else list(columns),
            "names": new.names,
            "header": False if new.no_header else None,
            "max_size": new.max_size,
        }
        wanted_format = "matrix" if given and new.input_format is None else new.input_format
        source = open_source(new.new, format=wanted_format, **how)
        if source.kind == "matrix" and not given:
            if not source.rereadable:
                raise DataError(
                    f"{source.shown}: is read as a matrix of values, but the model compares "
                    "objects; use --input-format vectors"
                )
            source = open_source(new.new, format="vectors", **how)
        if not isinstance(source, JsonLines):  # whose records are checked one by one
            self._check_kind(source)
        elif self.model.measure.accepts == "vectors" and columns is None:
            source = source.changed(width=np.shape(self.model.landmarks.objects)[1])
        wanted = self.model.feature_names
        if wanted is not None:
            source = match_columns(source, wanted.tolist(), how["objects"] is not None)
        return source.changed(lenient=True)

    def _open_hits(self, new: NewOptions) -> Source:
        """Open a table of hits, scored by the column that the model learned from."""
        from .hittables import QuerySource

        hits, second = self.model.hits, self.model.second_look
        assert hits is not None
        assert second is not None
        if new.objects is not None or new.names is not None:
            raise click.UsageError(
                "--objects and --names are not for tables of hits: use --columns"
            )
        if second.names is None:
            raise DataError(
                "hits name known objects, but the model contains no names: in Python, call its "
                "name_objects and save it again"
            )
        return QuerySource(new, second.names.tolist(), hits.score)

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

    def assess(self, chunk: NamedObjects, until: float | None = None) -> Assessed:
        """Return the predictions for a chunk, and the reasons for objects without one."""
        objects, proteins, reasons = chunk.objects, dict[int, str](), dict[int, str]()
        if self.letters is not None:
            proteins = self.letters.proteins(objects)
            objects, reasons = self.letters.read(chunk, proteins)
        reasons |= chunk.unreadable
        refused = reasons.keys() | proteins.keys()
        places = [i for i in range(len(chunk)) if i not in refused]
        readable = take(objects, np.array(places, dtype=np.intp))
        foreign = proteins | {places[i]: why for i, why in self.find_foreign(readable).items()}
        self._note_foreign(foreign, chunk)
        found, turned = self._on_best_strand(readable, chunk, places, until)
        reasons |= {i: answer for i, answer in found.items() if isinstance(answer, str)}
        if self.options.unknown_letters == "fail" and reasons:
            raise DataError(reasons[min(reasons)])
        good = [i for i in places if i not in reasons]
        answers: list[Any] = [found[i] for i in good]
        assessed = np.array(answers, dtype=answers[0].dtype) if answers else self._nothing
        compared = take(objects, np.array(good, dtype=np.intp))
        if turned:
            compared = turn(compared, good, turned)
        why = {i: f"of another kind: {text}" for i, text in foreign.items()}
        return Assessed(good, compared, assessed, reasons, why, turned)

    def _on_best_strand(
        self, objects: Any, chunk: NamedObjects, places: list[int], until: float | None
    ) -> tuple[dict[int, Any | str], set[int]]:
        """Return the answers by position, and the positions of sequences on the other strand."""
        if self.strands is None:
            return dict(self._answers(objects, chunk, places, until)), set()
        if self.details.strand == "auto":
            turned = {i for i, x in zip(places, objects, strict=True) if self.strands.is_turned(x)}
            ahead = turn(objects, places, turned)
            return dict(self._answers(ahead, chunk, places, until)), turned
        found = dict(self._answers(objects, chunk, places, until))
        other, turned = turn(objects, places, set(places)), set()
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
        if self.details.evidence is None:  # explanations are too large to keep
            self._kept.add((one, found[places[k]]) for one, k in first.items())

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
        """Return a structured array of predictions; each pair is compared only once.

        Its fields are `probabilities`, and `status`, `novelty`, `set` and `why` if the model
        provides them.
        """
        run = Comparisons(
            self.model.measure, self.model.symmetrize, self.options.n_jobs, verbose=0, until=until
        )
        if self.model.reference is not None:
            found: NDArray[Any] = self.model.assess(
                objects,
                coverage=self.details.sets,
                evidence=self.details.evidence,
                ranks=self.ranks.learned,
                compare_all=self.details.fdr is not None,  # the list of novel objects
                run=run,
            )
            return found
        P = self.model.predict_proba(objects, run)
        plain = np.empty(len(P), dtype=[("probabilities", np.float64, (P.shape[1],))])
        plain["probabilities"] = P
        return plain

    def find_foreign(self, objects: Any) -> dict[int, str]:
        """Return why objects look unlike the training objects, by position."""
        profile = self.model.profile
        foreign = {} if profile is None else profile.foreign(objects)
        return {i: why for why, rows in foreign.items() for i in rows}

    def _note_foreign(self, foreign: dict[int, str], chunk: NamedObjects) -> None:
        """Keep some names of foreign objects for one warning."""
        for i, why in sorted(foreign.items()):
            names, n = self._foreign.get(why, ([], 0))
            more = [printable(chunk.names[i], 30)] if n < NAMED else []
            self._foreign[why] = (names + more, n + 1)

    def warn_of_objects(self) -> None:
        """Warn once about sequences with letters that are not scored, or that look foreign."""
        if self._foreign:
            warn(describe_foreign(self._foreign))
        if self.letters is not None and self.letters.n_changed:
            warn(str(self.letters))

    def rows(self, source: Source, done: int = 0) -> Iterator[tuple[NamedObjects, list[Row]]]:
        """Yield each chunk with its rows, after those of an earlier run."""
        with reading_progress(source) as advance:
            for chunk in source.stream(AT_A_TIME):
                if chunk.first >= done:
                    yield chunk, self.rows_of(chunk)
                advance(len(chunk))

    def rows_of(self, chunk: NamedObjects, until: float | None = None) -> list[Row]:
        """Return the row of each object of a chunk; past `until`, raise `OutOfTime`."""
        return self._maker.rows_of(chunk, self.assess(chunk, until))

    def unreadable_row(self, name: str, reason: str) -> Row:
        """Return the row of an object that cannot be read."""
        return self._maker.unreadable_row(name, reason)


class KeptAnswers:
    """Answers for sequences and strings, kept for copies that may follow; thread-safe.

    If they take more than `ANSWER_BYTES` together, the oldest are forgotten.
    """

    def __init__(self, itemsize: int) -> None:
        self.itemsize, self.bytes = itemsize, 0  # of one answer, and of all with their objects
        self._answers: OrderedDict[str, Any] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, contents: str) -> Any:
        """Return the answer for such an object; None if there is none."""
        return self._answers.get(contents)

    def add(self, answers: Iterable[tuple[str, Any]]) -> None:
        """Keep answers, unless they are reasons why there is none: these name a place."""
        with self._lock:
            for contents, answer in answers:
                if not isinstance(answer, str) and contents not in self._answers:
                    self._answers[contents] = answer.copy()  # not the array that it is a row of
                    self.bytes += len(contents) + self.itemsize
            while self.bytes > ANSWER_BYTES:
                contents, _ = self._answers.popitem(last=False)
                self.bytes -= len(contents) + self.itemsize


def _with_thresholds(model: Model, details: Details) -> Model:
    """Return the model with the thresholds of the user; refuse options that it does not support."""
    if details.ambiguous_below is not None:
        model = replace(model, ambiguous_below=details.ambiguous_below)
    if model.reference is not None:
        if details.novel_below is not None:
            model = replace(model, novel_below=details.novel_below)
            if (warning := too_few_for_novelty(model)) is not None:
                warn(warning)
        return model
    for option, value in (
        ("--novel-below", details.novel_below),
        ("--sets", details.sets),
        ("--fdr", details.fdr),
        ("evidence", details.evidence),
    ):
        if value is not None:
            raise DataError(
                f"{option} needs a model with held-out scores: krein fit --model krein, or "
                "--calibrate"
            )
    return model


def _is_better(answer: Any, other: Any) -> bool:
    """Whether an answer is for an object that is nearer to known ones, or else more certain."""
    if isinstance(other, str):
        return True
    fields = ["novelty"] if "novelty" in answer.dtype.names else []
    own, its = ([one[f] for f in fields] + [one["probabilities"].max()] for one in (answer, other))
    return bool(own > its)
