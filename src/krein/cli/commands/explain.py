"""`krein explain`: a page that explains why objects got their labels."""

from __future__ import annotations

import time

import click

from ...io import DataError
from .. import options
from ..columns import Details
from ..group import command_line, krein_command
from ..output import check_report
from ..predictor import Predictor
from ..terminal import say, warnings_as_lines


@krein_command("explain")
@options.new_objects
@click.option(
    "-o", "--output", type=click.Path(), default="why.html", help="File to write the page to."
)
@click.option(
    "--nearest",
    "evidence",
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
@options.ambiguous_below
@options.novel_below
@options.own_measure
@options.unknown_letters
@click.option("--title", help="Heading of the page.")
@options.reading
@options.jobs
@options.gathered(Details, "details")
def command(
    model: options.ModelOptions,
    new: options.NewOptions,
    output: str,
    most: int,
    details: Details,
    title: str | None,
) -> None:
    """Explain on one HTML page why the objects of NEW got their labels from a MODEL of krein fit.

    For each object, the page shows the label, probability, status and novelty; what its own
    features say, marked in its letters or its curve; the nearest known objects next to the new one
    (the alignment of sequences, the warping path of series, the images, the letters that differ);
    and what each landmark contributed to the label. The page is self-contained.

    \b
      krein explain model.krein new.fasta -o why.html
      krein explain model.krein new.fasta --max 10 --nearest 5
    """
    check_report(output, reads=(model.model, new.new))
    predictor = Predictor(model, details, new.max_size)
    start = time.perf_counter()
    source = predictor.open(new)
    with warnings_as_lines():
        from ...report.explanations import ExplainedObjects, write_explained

        chunks = source.chunks(most)
        chunk = next(chunks, None)
        if chunk is None:
            raise DataError(f"{source.shown}: there are no objects")
        found = predictor.assess(chunk)
        names = [chunk.names[i] for i in found.places]
        unreadable = [(chunk.names[i], reason) for i, reason in sorted(found.reasons.items())]
        if not names:
            raise DataError(unreadable[0][1])
        n_others = sum(len(other) for other in chunks)
        explained = ExplainedObjects(names, found.objects, found.assessed, unreadable, n_others)
        write_explained(predictor.model, explained, output, title=title, command=command_line())
    predictor.warn_of_objects()
    more = f", the first of {len(chunk) + n_others:,}," if n_others else ""
    say("explained", f"{len(names):,} objects{more} in {time.perf_counter() - start:.1f} s")
    say("written", output)
