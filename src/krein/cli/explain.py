"""`krein explain`: a page that explains why objects got their labels."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ..io import DataError, Source
from . import options
from .evaluate import check_report
from .group import command as krein_command
from .group import typed
from .output import say, warnings_told
from .predictor import Predictor
from .reading import POLICIES
from .results import Asked, too_few

if TYPE_CHECKING:
    from ..report.explanations import ExplainedObjects


@krein_command("explain")
@click.argument("model", type=click.Path())
@click.argument("new", type=click.Path(allow_dash=True), default="-")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default="why.html",
    show_default=True,
    help="File to write the page to.",
)
@click.option(
    "--nearest",
    type=click.IntRange(1, 20),
    default=3,
    show_default=True,
    metavar="N",
    help="Number of known objects shown next to each object.",
)
@click.option(
    "--max",
    "most",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    metavar="N",
    help="Maximum number of objects on the page; the first ones are shown.",
)
@click.option(
    "--novel-below",
    type=options.Share(0, 1),
    metavar="P",
    help="Call objects novel if their p-value is at most this. Default: 0.01.",
)
@click.option(
    "--unknown-letters",
    type=click.Choice(POLICIES),
    help="What to do with letters that the model does not score: X reads them as X (N in DNA), "
    "skip leaves out the whole sequence, fail ends the run. Default: see krein predict.",
)
@click.option("--title", help="Heading of the page.")
@options.reading
@click.option("--jobs", type=options.JOBS, help="Number of workers; default: all processors.")
def command(
    model: str,
    new: str,
    output: str,
    nearest: int,
    most: int,
    novel_below: float | None,
    unknown_letters: str | None,
    title: str | None,
    jobs: int | None,
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
    asked = Asked(novel_below, evidence=nearest)
    predictor = Predictor(
        model, None, jobs, None, unknown_letters, max_size=reading["max_size"], asked=asked
    )
    if novel_below is not None and (warning := too_few(predictor.model)) is not None:
        click.echo(f"krein: warning: {warning}", err=True)
    start = time.perf_counter()
    with warnings_told():
        found = _explained(predictor, predictor.open(new, **reading), most)
        if not found.names:
            raise DataError(found.unreadable[0][1])
        from ..report.explanations import write_explained

        write_explained(predictor.model, found, output, title=title, command=typed())
    predictor.say_what_was_read()
    n, seconds = len(found.names), time.perf_counter() - start
    more = f", the first of {n + len(found.unreadable) + found.left_out:,}"
    say("explained", f"{n:,} objects{more if found.left_out else ''} in {seconds:.1f} s")
    say("written", output)


def _explained(predictor: Predictor, source: Source, most: int) -> ExplainedObjects:
    """Assess the first objects, and count the others."""
    from ..report.explanations import ExplainedObjects

    chunks = source.chunks(most)
    chunk = next(chunks, None)
    if chunk is None:
        raise DataError(f"{source.shown}: there are no objects")
    found = predictor.assessed(chunk)
    return ExplainedObjects(
        [chunk.names[i] for i in found.places],
        found.objects,
        found.assessed,
        [(chunk.names[i], reason) for i, reason in sorted(found.reasons.items())],
        sum(len(other) for other in chunks),
    )
