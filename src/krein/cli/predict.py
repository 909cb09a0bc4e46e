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
from typing import IO, Any

import click

from ..io import DataError, Source, open_source
from . import options
from .group import command as krein_command
from .output import check_target, say, writing
from .reading import match_columns
from .rows import RowWriter, format_option, row_format

CHUNK = 2048
"""Objects in memory at a time."""

Row = list[Any]
REJECTED = 5
"""Place of the column `rejected`."""


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
    jobs: int | None,
    **reading: Any,
) -> None:
    """Label the objects of NEW by a MODEL out of krein fit.

    Each row holds name, label, probability, the runner-up and its probability, and whether the
    object is rejected. NEW is read in pieces, so it may be larger than the memory; without NEW,
    or with -, it is standard input.

    \b
      krein predict model.krein new.fasta -o labels.csv --reject-below 0.8
      zcat new.fasta.gz | krein predict model.krein > labels.csv
    """
    if reject_below is not None and coverage is not None:
        raise click.UsageError("--reject-below and --coverage are two ways to reject: give one")
    check_target(output, reads=(model, new))
    predictor = Predictor(model, top, jobs)
    if label_ranks is not None:
        predictor.answer_by_rank(label_ranks, rank_above)
    source = predictor.open(new, **reading)
    start = time.perf_counter()
    rows = predictor.rows(source, reject_below)
    how = _row_format(output, row_format, source)
    with writing(output) as file:
        writer = RowWriter(file, predictor.columns, how)
        if coverage is None:
            counts = _write(rows, writer)
            threshold = reject_below
        else:
            counts, threshold = _write_covering(rows, writer, coverage)
    total, rejected = counts
    if output is not None:
        seconds = time.perf_counter() - start
        say("labelled", f"{total:,} objects in {seconds:.1f} s", err=True)
        if threshold is not None:
            share = 100 * rejected / total
            say("rejected", f"{rejected:,} ({share:.1f} %) below {threshold:.4f}", err=True)
        say("written", output, err=True)


_row_format = row_format


class Predictor:
    """A loaded model, and the rows it gives."""

    def __init__(self, path: str, top: int | None, jobs: int | None) -> None:
        from .. import load

        if not os.path.exists(path):
            raise DataError(f"{path}: there is no such model; krein fit makes one")
        self.model = load(path)
        if not hasattr(self.model, "predict_proba"):
            raise DataError(f"{path}: holds a {type(self.model).__name__}, which gives no labels")
        self.model.n_jobs = jobs
        self.classes = [str(label) for label in self.model.classes_.tolist()]
        self.top = min(top or 0, len(self.classes))
        self.ranks: Any = None  # with the probability that an answer needs
        self.columns = [
            "name", "label", "probability", "runner_up", "runner_up_probability", "rejected",
        ]  # fmt: skip
        for k in range(2, self.top + 1):
            self.columns += [f"label_{k}", f"probability_{k}"]

    def answer_by_rank(self, separator: str, above: float) -> None:
        """Add the deepest rank above a probability to every row."""
        from ..core.ranks import Ranks

        try:
            self.ranks = Ranks.of(self.classes, separator), above
        except ValueError as error:
            raise DataError(f"--label-ranks: {error}") from error
        self.columns += ["rank_label", "rank_probability", "rank"]

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

    def rows(self, source: Source, threshold: float | None) -> Iterator[list[Row]]:
        """Yield the rows of each chunk."""
        import numpy as np

        with _counting() as count, warnings.catch_warnings():
            # the columns have been matched by their names already
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            for chunk in source.arriving(CHUNK):
                try:
                    P = self.model.predict_proba(chunk.objects)
                except (ValueError, TypeError) as error:
                    told = str(chunk.located(error))
                    # the measure is part of the model
                    raise DataError(
                        told.replace("measure_params", "krein fit measure_params")
                    ) from error
                if not np.isfinite(P).all():
                    i = int(np.argmin(np.isfinite(P).all(axis=1)))
                    raise DataError(
                        f"{chunk.where(i)}: its probabilities are not numbers; its values are too "
                        "large or too small to compute with: are they on the scale of those that "
                        "the model was fitted to?"
                    )
                best = np.argsort(-P, axis=1, kind="stable")[:, : max(2, self.top)]
                values = np.take_along_axis(P, best, axis=1).tolist()
                rows = []
                for name, order, p in zip(chunk.names, best.tolist(), values, strict=True):
                    ranked = [self.classes[k] for k in order]
                    rejected = threshold is not None and p[0] < threshold
                    row: Row = [name, ranked[0], p[0], ranked[1], p[1], rejected]
                    for k in range(1, self.top):
                        row += [ranked[k], p[k]]
                    rows.append(row)
                if self.ranks is not None:
                    ranks, above = self.ranks
                    for row, node, p, rank in zip(rows, *ranks.deepest(P, above), strict=True):
                        row += [node, float(p), int(rank)]
                yield rows
                count(len(rows))


def _write(rows: Iterator[list[Row]], writer: RowWriter) -> tuple[int, int]:
    total = rejected = 0
    for part in rows:
        writer.write(part)
        total += len(part)
        rejected += sum(row[REJECTED] for row in part)
    return total, rejected


def _write_covering(
    rows: Iterator[list[Row]], writer: RowWriter, coverage: float
) -> tuple[tuple[int, int], float]:
    """Write rows that are rejected below the threshold of a coverage.

    It depends on all objects: rows wait in a temporary file, in memory only 8 bytes of each.
    """
    import numpy as np

    from ..reject import threshold_for_coverage

    confidence = array.array("d")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as waiting:
        for part in rows:
            confidence.extend(row[2] for row in part)
            waiting.writelines(json.dumps(row) + "\n" for row in part)
        threshold = threshold_for_coverage(np.frombuffer(confidence)[:, None], coverage)
        waiting.seek(0)
        return _write(_decided(waiting, threshold), writer), threshold


def _decided(waiting: IO[str], threshold: float) -> Iterator[list[Row]]:
    part: list[Row] = []
    for line in waiting:
        row = json.loads(line)
        row[REJECTED] = row[2] < threshold
        part.append(row)
        if len(part) == CHUNK:
            yield part
            part = []
    yield part


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
