"""`krein explain`: a page that explains why objects got their labels."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ..io import DataError, Source
from . import options
from .evaluate import check_report
from .group import command_line, krein_command
from .output import say, warn, warnings_as_lines
from .predictor import Details, Predictor, too_few_for_novelty

if TYPE_CHECKING:
    from ..report.why import ExplainedObjects


@krein_command("explain")
@options.new_objects
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default="why.html",
    help="File to write the page to.",
)
@click.option(
    "--nearest",
    type=click.IntRange(1, 20),
    default=3,
    metavar="N",
    help="Number of known objects shown next to each object.",
)
@click.option(
    "--max",
    "most",
    type=click.IntRange(1, 1000),
    default=50,
    metavar="N",
    help="Maximum number of objects on the page; the first ones are shown.",
)
@options.novel_below
@options.unknown_letters
@click.option("--title", help="Heading of the page.")
@options.reading
@options.jobs
def command(
    model: str,
    new: str,
    output: str,
    nearest: int,
    most: int,
    novel_below: float | None,
    unknown_letters: str | None,
    title: str | None,
    n_jobs: int | None,
    **reading: Any,
) -> None:
    """Explain on one HTML page why the objects of NEW got their labels from a MODEL of krein fit.

    For each object, the page shows the label, probability, status and novelty; the nearest known
    objects next to the new one (the alignment of sequences, the warping path of series, the images,
    the letters that differ); and what each landmark contributed to the label. The page is
    self-contained.

    \b
      krein explain model.krein new.fasta -o why.html
      krein explain model.krein new.fasta --max 10 --nearest 5
    """
    check_report(output, reads=(model, new))
    predictor = Predictor(
        model,
        Details(novel_below=novel_below, evidence=nearest),
        n_jobs=n_jobs,
        unknown_letters=unknown_letters,
        max_size=reading["max_size"],
    )
    if novel_below is not None and (warning := too_few_for_novelty(predictor.model)) is not None:
        warn(warning)
    start = time.perf_counter()
    with warnings_as_lines():
        found = _explained(predictor, predictor.open(new, **reading), most)
        if not found.names:
            raise DataError(found.unreadable[0][1])
        from ..report.why import write_page

        write_page(predictor.model, found, output, title=title, command=command_line())
    predictor.warn_of_objects()
    n, seconds = len(found.names), time.perf_counter() - start
    more = f", the first of {n + len(found.unreadable) + found.left_out:,}"
    say("explained", f"{n:,} objects{more if found.left_out else ''} in {seconds:.1f} s")
    say("written", output)


def _explained(predictor: Predictor, source: Source, most: int) -> ExplainedObjects:
    """Assess the first objects, and count the others."""
    from ..report.why import ExplainedObjects

    chunks = source.chunks(most)
    chunk = next(chunks, None)
    if chunk is None:
        raise DataError(f"{source.shown}: there are no objects")
    found = predictor.assess(chunk)
    return ExplainedObjects(
        [chunk.names[i] for i in found.places],
        found.objects,
        found.assessed,
        [(chunk.names[i], reason) for i, reason in sorted(found.reasons.items())],
        sum(len(other) for other in chunks),
    )
