"""A loaded model and its answers about new objects: for `predict`, `explain` and `serve`."""

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
from ..model.model import Comparisons, Model
from .columns import EVIDENCE_OBJECTS, Details, RowMaker
from .letters import letter_reader, strand_detector, turn
from .measure import own_measure_of
from .options import message_of, printable
from .output import reading_progress, warn
from .reading import match_columns
from .status import Assessed, Row

AT_A_TIME = 2048
"""Number of objects in memory at a time."""

ANSWER_BYTES = 2**26
"""Answers for sequences and strings are kept up to this size in total, for copies of them."""


class Predictor:
    """A loaded model: `open` new objects, `assess` each chunk of them, and make `rows` of it."""

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
        model = load(path, measure=own, max_size=max_size, only_model=True)
        if not hasattr(model, "predict_proba"):
            raise DataError(f"{path}: contains a transformer, which does not predict labels")
        self.n_jobs, self.unknown_letters = n_jobs, unknown_letters
        if details.nested:
            nearest = None if model.reference is None else EVIDENCE_OBJECTS
            details = replace(details, evidence=nearest)
        self.model: Model = _with_thresholds(model, details)
        self.strands = strand_detector(self.model, details.strand)
        self.maker = RowMaker(self.model, details, self.strands is not None)
        self.letters = letter_reader(self.model.measure, unknown_letters)
        if unknown_letters is not None and self.letters is None:
            raise click.UsageError(
                f"--unknown-letters is for sequences; the model compares by "
                f"{self.model.measure.name}"
            )
        self.foreign: dict[str, tuple[list[str], int]] = {}  # some names and the number, by reason
        self.kept = KeptAnswers(self.maker.nothing.dtype.itemsize)

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
        foreign = proteins | self._find_foreign(readable, places)
        self._note_foreign(foreign, chunk)
        found, turned = self._on_best_strand(readable, chunk, places, until)
        reasons |= {i: answer for i, answer in found.items() if isinstance(answer, str)}
        if self.unknown_letters == "fail" and reasons:
            raise DataError(reasons[min(reasons)])
        good = [i for i in places if i not in reasons]
        answers: list[Any] = [found[i] for i in good]
        assessed = np.array(answers, dtype=answers[0].dtype) if answers else self.maker.nothing
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
        if self.maker.details.strand == "auto":
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
            answer = self.kept.get(one)
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
        if self.maker.details.evidence is None:  # explanations are too large to keep
            self.kept.add((one, found[places[k]]) for one, k in first.items())

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
            self.model.measure, self.model.symmetrize, self.n_jobs, verbose=0, until=until
        )
        if self.maker.assesses:
            found: NDArray[Any] = self.model.assess(
                objects,
                coverage=self.maker.details.sets,
                evidence=self.maker.details.evidence,
                ranks=self.maker.learned_ranks,
                compare_all=self.maker.details.fdr is not None,  # the list of novel objects
                run=run,
            )
            return found
        P = self.model.predict_proba(objects, run)
        plain = np.empty(len(P), dtype=[("probabilities", np.float64, (P.shape[1],))])
        plain["probabilities"] = P
        return plain

    def _find_foreign(self, objects: Any, places: list[int]) -> dict[int, str]:
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

    def rows(self, source: Source, done: int = 0) -> Iterator[tuple[NamedObjects, list[Row]]]:
        """Yield each chunk with its rows, after those of an earlier run."""
        with reading_progress(source) as advance:
            for chunk in source.stream(AT_A_TIME):
                if chunk.first >= done:
                    yield chunk, self.rows_of(chunk)
                advance(len(chunk))

    def rows_of(self, chunk: NamedObjects, until: float | None = None) -> list[Row]:
        """Return the row of each object of a chunk; past `until`, raise `OutOfTime`."""
        return self.maker.rows_of(chunk, self.assess(chunk, until))


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
