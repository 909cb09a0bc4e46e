"""`krein predict`: label new objects, with probabilities, in constant memory."""

from __future__ import annotations

import json
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from itertools import islice

import click
import numpy as np

from ...core.conformal import benjamini_hochberg
from ...core.ranks import find_separator
from ...io.modelfile import is_model
from .. import options
from ..columns import Details, labels_of
from ..copies import completing, splitting
from ..counts import Counts
from ..group import krein_command
from ..output import RowWriter, check_target, choose_row_format, writing
from ..predictor import AT_A_TIME, Predictor
from ..resuming import resumable
from ..status import Row, by_probability, decide_again
from ..terminal import say, warnings_as_lines

MOST_NEAREST = 1000
"""Maximum number of nearest objects that a row lists, in three columns each."""


@dataclass(frozen=True)
class Targets:
    """The files to write; no `output` stands for standard output."""

    output: str | None
    kraken_report: str | None
    classified_out: str | None
    unclassified_out: str | None
    table_out: str | None

    @property
    def copies(self) -> bool:
        """Whether the objects are copied, too."""
        return bool(self.classified_out or self.unclassified_out or self.table_out)


def split_rank_names(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[str, ...]:
    """Return the names in a list separated by commas."""
    return tuple(name.strip() for name in (value or "").split(",") if name.strip())


@krein_command("predict")
@options.new_objects
@options.row_output
@options.ambiguous_below
@click.option(
    "--coverage",
    type=options.Share(0, 1, min_open=True),
    metavar="SHARE",
    help="Call the least certain objects ambiguous, so that this share of the objects that are not "
    "novel gets a label. Rows are written after all objects have been read, because the limit is "
    "known only then.",
)
@click.option(
    "--top",
    type=click.IntRange(2),
    metavar="K",
    help="Add the next most probable labels after the runner-up, up to K labels in total.",
)
@click.option(
    "--label-ranks",
    metavar="SIGN",
    help="Separator of labels that are paths in a taxonomy, such as '/'. krein fit recognises ';' "
    "by itself, and ',' or '|' between names with prefixes.",
)
@click.option(
    "--rank-names",
    callback=split_rank_names,
    metavar="NAMES",
    help="Names of the ranks, separated by commas, such as domain,phylum,class. Default: by "
    "prefixes such as g: for the genus, or else rank_1, rank_2, …",
)
@options.own_measure
@options.unknown_letters
@click.option(
    "--strand",
    type=click.Choice(["auto", "plus", "both"]),
    default="auto",
    help="How DNA and RNA are read, if the model was not fitted with --both-strands. auto turns a "
    "sequence around if its n-grams show that it is on the other strand, without a comparison; "
    "both compares both strands; plus compares only the given one. The column strand shows the "
    "result.",
)
@options.novel_below
@click.option(
    "--sets",
    type=options.Share(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Add the labels that cannot be ruled out: the set contains the true label for this share "
    "of the objects.",
)
@click.option(
    "--fdr",
    type=options.Share(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Add the column selected: a list of objects whose label can be trusted (label), and one "
    "of novel objects (novel), each with at most this share of errors in expectation. The column "
    "doubt contains the p-value of a wrong label. Rows are written after all objects have been "
    "read.",
)
@click.option(
    "--evidence",
    type=click.IntRange(1, MOST_NEAREST),
    metavar="N",
    help="Add the N nearest known objects, with their labels and values of the measure.",
)
@click.option(
    "--classified-out",
    type=click.Path(),
    metavar="FILE",
    help="Also write the objects that got a label, in the format of NEW: sequences as FASTA with "
    "their labels, lines of other text files as they are.",
)
@click.option(
    "--unclassified-out",
    type=click.Path(),
    metavar="FILE",
    help="Also write the objects that are ambiguous, novel or unreadable, in the format of NEW.",
)
@click.option(
    "--table-out",
    type=click.Path(),
    metavar="FILE",
    help="Also write NEW, a table, with the answers in new columns: krein_label and so on. All "
    "chains of a receptor get its answer; an AIRR rearrangement table stays valid.",
)
@click.option(
    "--kraken-report",
    type=click.Path(),
    metavar="FILE",
    help="Also write the number of objects per label, in the format of Kraken's reports. Taxonomy "
    "labels form a tree, in which an object counts at the deepest rank that is certain enough.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue a run that was stopped, after the last complete rows in the file FILE.part next "
    "to -o FILE. MODEL, NEW and the options must be the same.",
)
@click.option(
    "--sizein",
    is_flag=True,
    help="Count an object as often as its name says (;size=N, as vsearch writes it) in the summary "
    "and in the Kraken report.",
)
@click.option(
    "--queries",
    type=click.Path(),
    metavar="FILE",
    help="All queries of a table of hits, including those without a hit: FASTA, or a list or table "
    "of names.",
)
@options.hit_columns
@options.reading
@options.jobs
@options.gathered(Details, "details")
@options.gathered(Targets, "targets")
def command(
    model: options.ModelOptions,
    new: options.NewOptions,
    targets: Targets,
    details: Details,
    row_format: str | None,
    escape_formulas: bool,
    coverage: float | None,
    resume: bool,
    sizein: bool,
) -> None:
    """Label the objects of NEW with a MODEL from krein fit.

    Each row contains the name, the label and its probability, the runner-up and its probability,
    and the status: known; ambiguous, if no label is probable enough or random objects are as near
    to the known ones; novel, if the object is like none of the classes (by the p-value in the
    column novelty), or of another kind and therefore not compared, with the reason; or unreadable,
    with the reason. Models that cannot recognise novel objects say ok instead of known. Only
    objects that are known or ok count as classified.

    If labels are paths in a taxonomy, the answer is the deepest rank whose probability is at least
    --ambiguous-below (rank_label, rank_probability, rank); the reason says why it is not deeper,
    and each rank has a probability and a novelty of its own.

    NEW is read in chunks, so it may be larger than memory. Without NEW, or with -, standard input
    is read, and rows are written as objects arrive.

    \b
      krein predict model.krein new.fasta -o labels.csv --ambiguous-below 0.9
      krein predict model.krein new.fasta -o labels.tsv --kraken-report report.txt
      zcat new.fasta.gz | krein predict model.krein > labels.csv
      krein predict model.krein queries-vs-refs.tsv --queries queries.fasta -o labels.csv
    """
    _check_coverage(coverage, details, targets)
    _check_files(model.model, new.new, targets)
    predictor = Predictor(model, details, new.max_size)
    ranks, columns = predictor.ranks, predictor.columns
    if coverage is not None and ranks.taxonomy:
        raise click.UsageError(
            "--coverage is for plain labels: a path is answered at the deepest rank that is "
            "certain enough; use --ambiguous-below instead"
        )
    source = predictor.open(new)
    start = time.perf_counter()
    chosen = choose_row_format(targets.output, row_format, source)
    part = None
    # rows that are written after all have been read, and copies of objects, cannot be resumed
    if coverage is None and details.fdr is None and not targets.copies:
        part = resumable(predictor, source, targets.output, chosen, resume)
    if resume and part is None:
        raise click.UsageError(
            "--resume needs -o FILE, which is not compressed, and NEW on disk; it cannot be used "
            "with --coverage, --fdr, --table-out, --classified-out or --unclassified-out"
        )
    threshold = predictor.model.ambiguous_below
    counts = Counts(ranks.separator or find_separator(labels_of(predictor.model)), sizein)
    with (
        warnings_as_lines(),
        splitting(source, targets.classified_out, targets.unclassified_out) as splitter,
        completing(source, targets.table_out, columns[1:], escape_formulas) as completer,
        writing(targets.output) if part is None else part.writing() as file,
    ):
        done = 0 if part is None else part.rows
        writer = RowWriter(
            file, columns, chosen, escape_formulas=escape_formulas, has_header=done > 0
        )
        if part is not None:
            counts.add(part.earlier(chosen))
        found = predictor.rows(source, done)
        if completer is not None:
            found = completer.note_lines(found)
        rows = splitter.split(found)
        if coverage is not None:
            rows, threshold = _covering(rows, coverage)
        if details.fdr is not None:
            rows = _selecting(rows, details.fdr)
        for some in rows:
            writer.write(some)
            counts.add(some)
            if part is not None:
                part.complete(file, len(some))
            if completer is not None:
                completer.add(some)
    if targets.kraken_report is not None:
        with writing(targets.kraken_report) as file:
            counts.report.write(file)
    predictor.warn_of_objects()
    counts.warn_of_objects()
    if targets.output is not None:
        seconds = time.perf_counter() - start
        counts.say_results(seconds, ranks.names, threshold, details.fdr)
        say("written", targets.output, err=True)


def _check_coverage(coverage: float | None, details: Details, targets: Targets) -> None:
    """Refuse a coverage together with options that it contradicts."""
    if coverage is None:
        return
    if details.ambiguous_below is not None:
        raise click.UsageError("use either --ambiguous-below or --coverage, not both")
    if targets.classified_out or targets.unclassified_out:
        raise click.UsageError(
            "--coverage needs all objects before it calls any ambiguous, but --classified-out and "
            "--unclassified-out write as objects arrive: use --ambiguous-below instead"
        )


def _check_files(model: str, new: str, targets: Targets) -> None:
    """Refuse a model in place of the objects, and files that would be written over."""
    if is_model(new) and not is_model(model):
        raise click.UsageError(f"MODEL comes before NEW: krein predict {new} {model}")
    rows, *others = astuple(targets)
    check_target(rows, reads=(model, new))
    for i, target in enumerate(others):
        writes = [rows, *(other for other in others[:i] if other is not None)]
        check_target(target, reads=(model, new), writes=writes)


# --coverage and --fdr


def _kept(rows: Iterator[list[Row]], note: Callable[[Row], None]) -> Iterator[list[Row]]:
    """Note all rows, and return them again: they are kept in a temporary file, not in memory."""
    waiting = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed by `again`
    for part in rows:
        for row in part:
            note(row)
        waiting.writelines(json.dumps(row) + "\n" for row in part)

    def again() -> Iterator[list[Row]]:
        with waiting:
            waiting.seek(0)
            while part := [json.loads(line) for line in islice(waiting, AT_A_TIME)]:
                yield part

    return again()


def _covering(rows: Iterator[list[Row]], coverage: float) -> tuple[Iterator[list[Row]], float]:
    """Call objects ambiguous so that the given share gets a label; return rows and threshold.

    Novel objects, and those no nearer than random ones, are left as they are and do not count.
    The threshold depends on all objects; memory use is only 8 bytes per row.
    """
    from ...reject import threshold_for_coverage

    confidence = array("d")

    def note(row: Row) -> None:
        if by_probability(row):
            confidence.append(row["probability"])

    kept, threshold = _kept(rows, note), 0.0
    if confidence:
        threshold = threshold_for_coverage(np.frombuffer(confidence)[:, None], coverage)

    def decided() -> Iterator[list[Row]]:
        for part in kept:
            for row in part:
                if by_probability(row):
                    decide_again(row, threshold)
            yield part

    return decided(), threshold


def _selecting(rows: Iterator[list[Row]], fdr: float) -> Iterator[list[Row]]:
    """Fill the column selected: "label", "novel", both ("label|novel"), or nothing.

    Both lists depend on the p-values of all objects; memory use is 16 bytes per row.
    """
    columns = {"label": "doubt", "novel": "novelty"}
    p = {name: array("d") for name in columns}

    def note(row: Row) -> None:
        for name, column in columns.items():
            if row[column] is not None:
                p[name].append(row[column])

    kept = _kept(rows, note)
    lists = {name: iter(benjamini_hochberg(np.array(each), fdr)) for name, each in p.items()}
    for part in kept:
        for row in part:
            if row["doubt"] is not None:
                found = [name for name, chosen in lists.items() if next(chosen)]
                row["selected"] = "|".join(found) or None
        yield part
