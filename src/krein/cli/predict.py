"""`krein predict`: labels with probabilities for new objects, in constant memory."""

from __future__ import annotations

import array
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import click

from ..io import Chunk, DataError, Source, open_source
from ..measures import take
from . import options
from .columns import Batch, columns_of
from .counts import Counts
from .errors import told
from .group import command as krein_command
from .letters import POLICIES, letters_of
from .novelty import UNREADABLE, Asked, Sorted, sorting, too_few
from .output import check_target, printable, say, warnings_told, writing
from .reading import match_columns
from .rows import RowWriter, format_option, row_format

CHUNK = 2048
"""Objects in memory at a time."""

Row = list[Any]


@krein_command("predict")
@click.argument("model", type=click.Path())
@click.argument("new", type=click.Path(allow_dash=True), default="-")
@click.option(
    "-o", "--output", type=click.Path(), help="Where rows are written; else standard output."
)
@format_option
@click.option(
    "--reject-below",
    type=options.Share(0, 1),
    metavar="P",
    help="Mark objects whose best label is less probable as rejected.",
)
@click.option(
    "--coverage",
    type=options.Share(0, 1, min_open=True),
    metavar="SHARE",
    help="Mark the least certain as rejected, so that this share is accepted. Rows come when all "
    "objects are read, for the limit is known only then.",
)
@click.option("--top", type=click.IntRange(2), metavar="K", help="Add the K most probable labels.")
@click.option(
    "--label-ranks",
    metavar="SIGN",
    help="Labels are paths of ranks, joined by this sign: add the deepest rank that is probable "
    "enough, with its probability.",
)
@click.option(
    "--rank-above",
    type=options.Share(0.5, 1, min_open=True),
    default=0.9,
    show_default=True,
    metavar="P",
    help="How probable that rank must be.",
)
@click.option(
    "--unknown-letters",
    type=click.Choice(POLICIES),
    help="Letters of sequences that the model does not score: take X for each, skip such a "
    "sequence (its row says so), or fail. By default U is read as C, O as K and others as X, and "
    "gaps and a final * are left out.",
)
@click.option(
    "--novel-below",
    type=options.Share(0, 1),
    metavar="P",
    help="Call objects novel, none of the classes, whose p-value is at most this; by default 0.01.",
)
@click.option(
    "--sets",
    type=options.Share(0, 1, min_open=True),
    metavar="SHARE",
    help="Add the labels that cannot be ruled out: they hold the true one for this share.",
)
@click.option(
    "--evidence",
    type=click.IntRange(1),
    metavar="N",
    help="Add the N nearest known objects, with label and value of the measure.",
)
@click.option(
    "--classified-out",
    type=click.Path(),
    metavar="FILE",
    help="Also write the sequences that got a label, as FASTA.",
)
@click.option(
    "--unclassified-out",
    type=click.Path(),
    metavar="FILE",
    help="Also write the sequences that are novel, rejected or unreadable, as FASTA.",
)
@click.option(
    "--kraken-report",
    type=click.Path(),
    metavar="FILE",
    help="Also write how many objects fell to each label, in the form of Kraken's reports.",
)
@options.reading
@click.option("--jobs", type=options.JOBS, help="Workers; by default all processors.")
def command(
    model: str,
    new: str,
    output: str | None,
    row_format: str | None,
    reject_below: float | None,
    coverage: float | None,
    top: int | None,
    label_ranks: str | None,
    rank_above: float,
    unknown_letters: str | None,
    kraken_report: str | None,
    novel_below: float | None,
    sets: float | None,
    evidence: int | None,
    classified_out: str | None,
    unclassified_out: str | None,
    jobs: int | None,
    **reading: Any,
) -> None:
    """Label the objects of NEW by a MODEL out of krein fit.

    Each row holds name, label, probability, the runner-up and its probability, whether the object
    is rejected, and its status: known, ambiguous, or novel, which is like none of the classes, by
    the p-value in the column novelty (ok for models that cannot tell), or unreadable with the
    reason where it cannot be compared. NEW is read in pieces, so it may be larger than the memory;
    without NEW, or with -, it is standard input, and rows are written as objects come.

    \b
      krein predict model.krein new.fasta -o labels.csv --reject-below 0.8
      krein predict model.krein new.fasta -o labels.tsv --kraken-report report.txt
      zcat new.fasta.gz | krein predict model.krein > labels.csv
    """
    if reject_below is not None and coverage is not None:
        raise click.UsageError("--reject-below and --coverage are two ways to reject: give one")
    if coverage is not None and (classified_out or unclassified_out):
        raise click.UsageError(
            "--coverage rejects when all objects are read, and --classified-out and "
            "--unclassified-out write as they come: give --reject-below instead"
        )
    check_target(output, reads=(model, new))
    check_target(kraken_report, reads=(model, new, output))
    for target in (classified_out, unclassified_out):
        check_target(target, reads=(model, new, output, kraken_report))
    ranks = None if label_ranks is None else (label_ranks, rank_above)
    asked = Asked(novel_below, reject_below, sets, evidence)
    predictor = Predictor(
        model,
        top,
        jobs,
        reject_below,
        unknown_letters,
        ranks,
        max_size=reading["max_size"],
        asked=asked,
    )
    if novel_below is not None and (warning := too_few(predictor.model)) is not None:
        click.echo(f"krein: warning: {warning}", err=True)
    source = predictor.open(new, **reading)
    start = time.perf_counter()
    how = _row_format(output, row_format, source)
    with (
        warnings_told(),
        sorting(source, classified_out, unclassified_out) as sort,
        writing(output) as file,
    ):
        rows = predictor.rows(source, sort)
        counts = Counts(predictor.names)
        writer = RowWriter(file, predictor.names, how)
        threshold = reject_below
        if coverage is not None:
            rows, threshold = _covering(rows, counts, coverage)
        for part in rows:
            writer.write(part)
            counts.add(part)
    if kraken_report is not None:
        with writing(kraken_report) as file:
            counts.report.write(file)
    predictor.say_what_was_read()
    if counts.unreadable == counts.total:
        raise DataError(counts.first_reason)
    if counts.unreadable:
        number = f"{counts.unreadable:,} of {counts.total:,} objects are unreadable"
        reason = printable(counts.first_reason, 200)
        click.echo(f"krein: warning: {number}, the first: {reason}", err=True)
    if output is not None:
        seconds = time.perf_counter() - start
        say(
            "labelled", f"{counts.total - counts.unreadable:,} objects in {seconds:.1f} s", err=True
        )
        if threshold is not None:
            share = 100 * counts.rejected / (counts.total - counts.unreadable)
            say("rejected", f"{counts.rejected:,} ({share:.1f} %) below {threshold:.4f}", err=True)
        say("written", output, err=True)


_row_format = row_format


class Predictor:
    """A loaded model, and the rows it gives."""

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
        from .. import load

        if not os.path.exists(path):
            raise DataError(f"{path}: there is no such model; krein fit makes one")
        self.model = load(path, max_size=max_size)
        if not hasattr(self.model, "predict_proba"):
            raise DataError(f"{path}: holds a {type(self.model).__name__}, which gives no labels")
        self.model.n_jobs = jobs
        self.asked = Asked() if asked is None else asked
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
        self.unknown_letters = unknown_letters
        self.letters = letters_of(self.model.measure_, unknown_letters)
        if unknown_letters is not None and self.letters is None:
            raise click.UsageError(
                f"--unknown-letters goes with sequences; the model compares by {self.model.measure}"
            )

    def open(self, path: str, *, input_format: str | None, no_header: bool, **named: Any) -> Source:
        """Open new objects, as the kind that the model was fitted to."""
        from ..measures import get_measure

        given = get_measure(self.model.measure, self.model.measure_params).accepts == "values"
        header = False if no_header else None
        if given and input_format is None:
            return open_source(path, format="matrix", header=header, **named)
        source = open_source(path, format=input_format, header=header, **named)
        if source.kind == "matrix" and not given:
            source = open_source(path, format="vectors", header=header, **named)
        wanted = getattr(self.model, "feature_names_in_", None)
        if wanted is not None:
            match_columns(source, wanted.tolist(), named.get("objects") is not None)
        return source

    def rows(self, source: Source, sort: Sorted | None = None) -> Iterator[list[Row]]:
        """Yield the rows of each chunk."""
        at = {name: i for i, name in enumerate(self.names)}
        with _counting() as count, warnings.catch_warnings():
            # the columns have been matched by their names already
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            for chunk in source.arriving(CHUNK):
                rows = self.rows_of(chunk)
                if sort is not None:
                    sort.write(chunk, rows, at)
                yield rows
                count(len(chunk))

    def rows_of(self, chunk: Chunk) -> list[Row]:
        """Return the row of each object of a chunk."""
        import numpy as np

        objects, reasons = chunk.objects, dict[int, str]()
        if self.letters is not None:
            objects, reasons = self.letters.read(chunk)
        places = [i for i in range(len(chunk)) if i not in reasons]
        found = dict(self._answered(take(objects, np.array(places, dtype=np.intp)), chunk, places))
        reasons |= {i: answer for i, answer in found.items() if isinstance(answer, str)}
        if self.unknown_letters == "fail" and reasons:
            raise DataError(reasons[min(reasons)])
        good = np.array([i for i in range(len(chunk)) if i not in reasons], dtype=np.intp)
        cells: list[Row] = [[] for _ in good]
        if len(good):
            answers: list[Any] = [found[i] for i in good]
            assessed = np.array(answers, dtype=answers[0].dtype)
            batch = Batch.of(self.model, take(objects, good), assessed)
            for group in self.columns:
                for row, part in zip(cells, group.cells(batch), strict=True):
                    row += part
        answered = dict(zip(good.tolist(), cells, strict=True))
        width, status = len(self.names) - 2, self.names.index("status") - 1
        nothing: Row = [None] * width
        nothing[status] = UNREADABLE
        return [
            [name, *answered.get(i, nothing), reasons.get(i)] for i, name in enumerate(chunk.names)
        ]

    def _answered(
        self, objects: Any, chunk: Chunk, places: list[int]
    ) -> Iterator[tuple[int, Any | str]]:
        """Yield the place of each object and what the model says of it, or why it has nothing.

        Where some cannot be compared the objects are halved, until those stand alone: k of n take
        about k·log₂ n calls. The width of vectors and of given values is that of the file: none of
        it can be compared then, and that is an error.
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
                located = str(chunk.alone(places[0]).located(error))
                # the measure is part of the model
                located = located.replace("measure_params", "krein fit measure_params")
                yield places[0], told(DataError(located))
            return
        for i, found in zip(places, assessed, strict=True):
            reason = (
                f"{chunk.where(i)}: its probabilities are not numbers; its values are too large or "
                "too small to compute with: are they on the scale of those that the model was "
                "fitted to?"
            )
            yield i, found if np.isfinite(found["probabilities"]).all() else reason

    def say_what_was_read(self) -> None:
        """Say once how many sequences held letters that are not scored."""
        if self.letters is not None and self.letters.n_mapped:
            click.echo(f"krein: warning: {self.letters.told()}", err=True)


def _covering(
    rows: Iterator[list[Row]], counts: Counts, coverage: float
) -> tuple[Iterator[list[Row]], float]:
    """Return rows that are rejected below the threshold of a coverage, and the threshold.

    It depends on all objects: rows wait in a temporary file, in memory only 8 bytes of each.
    """
    import numpy as np

    from ..reject import threshold_for_coverage

    at = counts.at
    probability, rejected, status = at["probability"], at["rejected"], at["status"]
    confidence = array.array("d")
    waiting = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed by `decided`
    for part in rows:
        confidence.extend(row[probability] for row in part if row[probability] is not None)
        waiting.writelines(json.dumps(row) + "\n" for row in part)
    threshold = 0.0
    if confidence:
        threshold = threshold_for_coverage(np.frombuffer(confidence)[:, None], coverage)

    def decided() -> Iterator[list[Row]]:
        with waiting:
            waiting.seek(0)
            while part := [json.loads(line) for line in islice(waiting, CHUNK)]:
                for row in part:
                    if row[probability] is not None:
                        row[rejected] = row[probability] < threshold
                        if row[status] in ("known", "ambiguous"):
                            row[status] = "ambiguous" if row[rejected] else "known"
                yield part

    return decided(), threshold


@contextmanager
def _counting() -> Iterator[Any]:
    """Count objects on standard error, where a person watches."""
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
