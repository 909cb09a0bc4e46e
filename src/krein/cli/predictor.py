"""A loaded model, and its rows of predictions."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ..io import Chunk, DataError, Source, open_source
from ..io.tables import JsonLines
from ..measures import take
from ..measures.foreign import NAMED, describe_foreign
from .options import printable, told
from .reading import letters_of, match_columns
from .results import UNREADABLE, Asked, Batch, Sorted, columns_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 2048
"""Number of objects in memory at a time."""

NEAREST = 3
"""Number of known objects that a service names as evidence."""

Row = list[Any]


@dataclass(frozen=True)
class Assessed:
    """The predictions of a model for the objects of a chunk."""

    places: list[int]  # positions of the objects that could be compared
    objects: Any
    assessed: NDArray[Any]  # structured, as `Asked.of` returns it
    reasons: dict[int, str]  # why the others could not, by position
    foreign: dict[int, str]  # why some look unlike the training objects, by position


class Predictor:
    """A loaded model, and its rows of predictions."""

    def __init__(
        self,
        path: str,
        top: int | None = None,
        jobs: int | None = None,
        threshold: float | None = None,
        unknown_letters: str | None = None,
        ranks: tuple[str, float] | None = None,
        *,
        every: bool = False,
        max_size: int | None = None,
        asked: Asked | None = None,
    ) -> None:
        from .. import load_model

        if not os.path.exists(path):
            raise DataError(f"{path}: there is no such model; krein fit writes one")
        self.model = load_model(path, max_size=max_size)
        if not hasattr(self.model, "predict_proba"):
            raise DataError(
                f"{path}: contains a {type(self.model).__name__}, which does not predict labels"
            )
        self.model.n_jobs = jobs
        if asked is None:
            asked = Asked(evidence=NEAREST if every and hasattr(self.model, "assess") else None)
        self.asked = asked
        self.asked.check(self.model)
        self.columns = columns_of(
            self.model,
            top=top or 0,
            threshold=threshold,
            ranks=ranks,
            every=every,
            asked=self.asked,
        )
        self.names = ["name", *(name for group in self.columns for name in group.names), "reason"]
        self.others: dict[str, tuple[list[str], int]] = {}
        self.unknown_letters = unknown_letters
        self.letters = letters_of(self.model.measure_, unknown_letters)
        if unknown_letters is not None and self.letters is None:
            raise click.UsageError(
                f"--unknown-letters is for sequences; the model compares by {self.model.measure}"
            )

    def open(self, path: str, *, input_format: str | None, no_header: bool, **named: Any) -> Source:
        """Open new objects, read as the kind of objects that the model was fitted to."""
        from ..measures import get_measure

        given = get_measure(self.model.measure, self.model.measure_params).accepts == "values"
        header = False if no_header else None
        wanted_format = "matrix" if given and input_format is None else input_format
        source = open_source(path, format=wanted_format, header=header, **named)
        if source.kind == "matrix" and not given:
            source = open_source(path, format="vectors", header=header, **named)
        if not isinstance(source, JsonLines):  # whose records are checked one by one
            self._check_kind(source)
        wanted = getattr(self.model, "feature_names_in_", None)
        if wanted is not None:
            match_columns(source, wanted.tolist(), named.get("objects") is not None)
        source.lenient = True
        return source

    def _check_kind(self, source: Source) -> None:
        """Refuse text for a model of numbers, and numbers for a model of text."""
        import numpy as np

        known = self.model.landmark_objects_
        text = isinstance(known[0], str | bytes)
        if text == (source.kind in ("sequences", "strings")):
            return
        if text or isinstance(known, np.ndarray) or isinstance(known[0], np.ndarray):
            found, wanted = ("numbers", "text") if text else ("text", "numbers")
            raise DataError(
                f"{source.shown}: contains {found} ({source.understood}), but the model compares "
                f"{wanted} by {self.model.measure}; if it is the wrong column, name the right one "
                f"with --objects"
            )

    def rows(self, source: Source, sort: Sorted | None = None) -> Iterator[list[Row]]:
        """Yield the rows of each chunk."""
        at = {name: i for i, name in enumerate(self.names)}
        with _counting() as count, warnings.catch_warnings():
            # the columns have been matched by their names already
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            for chunk in source.stream(CHUNK):
                rows = self.rows_of(chunk)
                if sort is not None:
                    sort.write(chunk, rows, at)
                yield rows
                count(len(chunk))

    def rows_of(self, chunk: Chunk) -> list[Row]:
        """Return the row of each object of a chunk."""
        found = self.assessed(chunk)
        cells: list[Row] = [[] for _ in found.places]
        if found.places:
            batch = Batch.of(self.model, found.objects, found.assessed)
            for group in self.columns:
                for row, part in zip(cells, group.cells(batch), strict=True):
                    row += part
        answered = dict(zip(found.places, cells, strict=True))
        width, status = len(self.names) - 2, self.names.index("status") - 1
        nothing: Row = [None] * width
        nothing[status] = UNREADABLE
        return [
            [name, *answered.get(i, nothing), found.reasons.get(i, found.foreign.get(i))]
            for i, name in enumerate(chunk.names)
        ]

    def assessed(self, chunk: Chunk) -> Assessed:
        """Return the predictions for a chunk, and the reasons for objects without one."""
        import numpy as np

        objects, reasons = chunk.objects, dict[int, str]()
        if self.letters is not None:
            objects, reasons = self.letters.read(chunk)
        reasons |= chunk.unreadable
        places = [i for i in range(len(chunk)) if i not in reasons]
        readable = take(objects, np.array(places, dtype=np.intp))
        foreign = self._note_others(readable, chunk, places)
        found = dict(self._answered(readable, chunk, places))
        reasons |= {i: answer for i, answer in found.items() if isinstance(answer, str)}
        if self.unknown_letters == "fail" and reasons:
            raise DataError(reasons[min(reasons)])
        good = [i for i in range(len(chunk)) if i not in reasons]
        answers: list[Any] = [found[i] for i in good]
        return Assessed(
            good,
            take(objects, np.array(good, dtype=np.intp)),
            np.array(answers, dtype=answers[0].dtype) if answers else np.empty(0),
            reasons,
            foreign,
        )

    def _answered(
        self, objects: Any, chunk: Chunk, places: list[int]
    ) -> Iterator[tuple[int, Any | str]]:
        """Yield the position of each object with its prediction, or the reason why it has none.

        If some objects cannot be compared, the chunk is halved until they are isolated; k of n
        objects take about k·log₂ n calls. Vectors and precomputed values have the same width in the
        whole file, so a wrong width affects all objects and is an error.
        """
        import numpy as np

        if not places:
            return
        try:
            assessed = self.asked.of(self.model, objects)
        except (ValueError, TypeError) as error:
            if chunk.kind in ("vectors", "matrix"):
                raise chunk.located(error) from error
            half = len(places) // 2
            if half:
                yield from self._answered(objects[:half], chunk, places[:half])
                yield from self._answered(objects[half:], chunk, places[half:])
            else:
                located = str(chunk.located(error, places[0]))
                # the measure is part of the model
                located = located.replace("measure_params", "krein fit measure_params")
                yield places[0], told(DataError(located))
            return
        for i, found in zip(places, assessed, strict=True):
            reason = (
                f"{chunk.where(i)}: its probabilities are not numbers, because its values are "
                f"too large or too small to compute with: are they on the same scale as the "
                f"training objects?"
            )
            yield i, found if np.isfinite(found["probabilities"]).all() else reason

    def _note_others(self, objects: Any, chunk: Chunk, places: list[int]) -> dict[int, str]:
        """Return why objects look unlike the training objects; keep names for one warning."""
        from ..estimators.twolooks import FittedTwoLooks, likeness_of

        likeness = likeness_of(self.model) if isinstance(self.model, FittedTwoLooks) else None
        others = {} if likeness is None else likeness.foreign(objects)
        for why, rows in others.items():
            names, n = self.others.get(why, ([], 0))
            more = [printable(chunk.names[places[i]], 30) for i in rows[: NAMED - len(names)]]
            self.others[why] = (names + more, n + len(rows))
        return {places[i]: f"of another kind: {why}" for why, rows in others.items() for i in rows}

    def say_what_was_read(self) -> None:
        """Warn once about sequences with letters that are not scored, or that look foreign."""
        if self.others:
            click.echo(f"krein: warning: {describe_foreign(self.others)}", err=True)
        if self.letters is not None and self.letters.n_mapped:
            click.echo(f"krein: warning: {self.letters.told()}", err=True)


@contextmanager
def _counting() -> Iterator[Any]:
    """Show the number of objects on standard error, if it is a terminal."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.completed:,} objects"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None)
        yield lambda n: bar.advance(task, n)
