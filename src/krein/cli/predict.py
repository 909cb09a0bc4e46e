"""`krein predict`: label new objects, with probabilities, in constant memory."""

from __future__ import annotations

import array
import json
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from ..io import DataError
from . import options
from .group import command as krein_command
from .output import (
    RowWriter,
    check_target,
    format_option,
    printable,
    row_format,
    say,
    warnings_told,
    writing,
)
from .predictor import CHUNK, Predictor, Row
from .reading import POLICIES
from .results import Asked, Counts, novelty_options, sorting, too_few


@krein_command("predict")
@click.argument("model", type=click.Path())
@click.argument("new", type=click.Path(allow_dash=True), default="-")
@click.option(
    "-o", "--output", type=click.Path(), help="File to write the rows to; default: standard output."
)
@format_option
@click.option(
    "--reject-below",
    type=options.Share(0, 1),
    metavar="P",
    help="Mark objects as rejected if their best label has a lower probability.",
)
@click.option(
    "--coverage",
    type=options.Share(0, 1, min_open=True),
    metavar="SHARE",
    help="Mark the least certain objects as rejected, so that this share is accepted. Rows are "
    "written after all objects have been read, because the limit is known only then.",
)
@click.option("--top", type=click.IntRange(2), metavar="K", help="Add the K most probable labels.")
@click.option(
    "--label-ranks",
    metavar="SIGN",
    help="Separator of hierarchical labels: add the deepest rank that is probable enough, with "
    "its probability.",
)
@click.option(
    "--rank-above",
    type=options.Share(0.5, 1, min_open=True),
    default=0.9,
    show_default=True,
    metavar="P",
    help="Minimum probability of that rank.",
)
@click.option(
    "--unknown-letters",
    type=click.Choice(POLICIES),
    help="What to do with letters that the model does not score: X reads them as X (N in DNA), "
    "skip leaves out the whole sequence (its row has the status unreadable), fail ends the run. By "
    "default, U is read as C, O as K and others as X, and gaps and a final * are left out. To "
    "leave out the letters only, fit the model with --measure-param unknown_letters=skip.",
)
@novelty_options
@click.option(
    "--kraken-report",
    type=click.Path(),
    metavar="FILE",
    help="Also write the number of objects per label, in the format of Kraken's reports.",
)
@options.reading
@click.option("--jobs", type=options.JOBS, help="Number of workers; default: all processors.")
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
    """Label the objects of NEW with a MODEL from krein fit.

    Each row contains the name, the label and its probability, the runner-up and its probability,
    whether the object is rejected, and its status. The status is known, ambiguous, or novel (like
    none of the classes, by the p-value in the column novelty, or of another kind, with the reason);
    ok for models that cannot tell; or unreadable, with the reason, if the object cannot be
    compared. NEW is read in chunks, so it may be larger than memory. Without NEW, or with -,
    standard input is read, and rows are written as objects arrive.

    \b
      krein predict model.krein new.fasta -o labels.csv --reject-below 0.8
      krein predict model.krein new.fasta -o labels.tsv --kraken-report report.txt
      zcat new.fasta.gz | krein predict model.krein > labels.csv
    """
    if reject_below is not None and coverage is not None:
        raise click.UsageError("use either --reject-below or --coverage, not both")
    if coverage is not None and (classified_out or unclassified_out):
        raise click.UsageError(
            "--coverage needs all objects before it rejects any, but --classified-out and "
            "--unclassified-out write as objects arrive: use --reject-below instead"
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
        number = f"{counts.unreadable:,} of {counts.total:,} objects cannot be read"
        first = "" if counts.unreadable == 1 else "the first is "
        reason = printable(counts.first_reason, 200)
        click.echo(f"krein: warning: {number}: {first}{reason}", err=True)
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


def _covering(
    rows: Iterator[list[Row]], counts: Counts, coverage: float
) -> tuple[Iterator[list[Row]], float]:
    """Mark rows as rejected so that the given share is accepted; return the rows and the threshold.

    The threshold depends on all objects, so rows are kept in a temporary file; memory use is only
    8 bytes per row.
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
