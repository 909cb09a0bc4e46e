"""`krein predict`: label new objects, with probabilities, in constant memory."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import islice
from typing import IO, Any

import click
import numpy as np

from ..core.conformal import benjamini_hochberg
from ..core.ranks import PREFIX, find_separator, rank_code, rank_path
from ..io import DataError, NamedObjects, Source
from ..io.airr import NO_CELL, ReceptorTable
from ..io.modelfile import is_model
from ..io.streams import is_stream, read_lines
from ..io.tables import LayoutSource, TableFile
from . import options
from .group import krein_command
from .output import (
    Resumable,
    RowWriter,
    as_cell,
    check_target,
    choose_row_format,
    file_hash,
    printable,
    say,
    warn,
    warnings_as_lines,
    writing,
)
from .predictor import AT_A_TIME, Details, Predictor
from .status import (
    AMBIGUOUS,
    BY_CHANCE,
    CLASSIFIED,
    NOVEL,
    UNREADABLE,
    Row,
    by_probability,
    decide_again,
    is_classified,
)

MOST_NEAREST = 1000
"""Maximum number of nearest objects that a row lists, in three columns each."""


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
def command(
    model: str,
    new: str,
    output: str | None,
    row_format: str | None,
    escape_formulas: bool,
    ambiguous_below: float | None,
    coverage: float | None,
    top: int | None,
    label_ranks: str | None,
    rank_names: tuple[str, ...],
    measure: str | None,
    unknown_letters: str | None,
    strand: str,
    novel_below: float | None,
    sets: float | None,
    fdr: float | None,
    evidence: int | None,
    classified_out: str | None,
    unclassified_out: str | None,
    table_out: str | None,
    kraken_report: str | None,
    resume: bool,
    sizein: bool,
    n_jobs: int | None,
    **reading: Any,
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
    _check_coverage(coverage, ambiguous_below, bool(classified_out or unclassified_out))
    targets = [output, kraken_report, classified_out, unclassified_out, table_out]
    _check_files(model, new, targets)
    predictor = Predictor(
        model,
        Details(
            top or 0,
            ambiguous_below,
            novel_below,
            sets,
            evidence,
            label_ranks,
            rank_names,
            selected=fdr is not None,
            strand=strand,
        ),
        n_jobs=n_jobs,
        unknown_letters=unknown_letters,
        max_size=reading["max_size"],
        measure=measure,
    )
    if coverage is not None and predictor.taxonomy:
        raise click.UsageError(
            "--coverage is for plain labels: a path is answered at the deepest rank that is "
            "certain enough; use --ambiguous-below instead"
        )
    source = predictor.open(new, **reading)
    start = time.perf_counter()
    chosen = choose_row_format(output, row_format, source)
    # rows that are written after all have been read, and copies of objects, cannot be resumed
    late = coverage is not None or fdr is not None
    copies = classified_out or unclassified_out or table_out
    part = None
    if not late and not copies:
        part = _part(model, output, predictor, source, chosen, resume)
    if resume and part is None:
        raise click.UsageError(
            "--resume needs -o FILE, which is not compressed, and NEW on disk; it cannot be used "
            "with --coverage, --fdr, --table-out, --classified-out or --unclassified-out"
        )
    counts = Counts(predictor.separator or find_separator(predictor.labels), sizein)
    with (
        warnings_as_lines(),
        splitting(source, classified_out, unclassified_out) as splitter,
        completing(source, table_out, predictor.names[1:], escape_formulas) as completer,
        writing(output) if part is None else part.writing() as file,
    ):
        done = 0 if part is None else part.rows
        writer = RowWriter(
            file, predictor.names, chosen, escape_formulas=escape_formulas, has_header=done > 0
        )
        if part is not None:
            counts.add(part.earlier(chosen))
        found = predictor.rows(source, done)
        if completer is not None:
            found = completer.note_lines(found)
        rows, threshold = splitter.split(found), predictor.model.ambiguous_below
        if coverage is not None:
            rows, threshold = _covering(rows, coverage)
        if fdr is not None:
            rows = _selecting(rows, fdr)
        for some in rows:
            writer.write(some)
            counts.add(some)
            if part is not None:
                part.complete(file, len(some))
            if completer is not None:
                completer.add(some)
    if kraken_report is not None:
        with writing(kraken_report) as file:
            counts.report.write(file)
    predictor.warn_of_objects()
    counts.warn_of_objects()
    if output is not None:
        _say_results(counts, time.perf_counter() - start, predictor.ranks, threshold, fdr)
        say("written", output, err=True)


def _check_coverage(coverage: float | None, ambiguous_below: float | None, split: bool) -> None:
    """Refuse a coverage together with options that it contradicts."""
    if coverage is None:
        return
    if ambiguous_below is not None:
        raise click.UsageError("use either --ambiguous-below or --coverage, not both")
    if split:
        raise click.UsageError(
            "--coverage needs all objects before it calls any ambiguous, but --classified-out and "
            "--unclassified-out write as objects arrive: use --ambiguous-below instead"
        )


def _check_files(model: str, new: str, targets: Sequence[str | None]) -> None:
    """Refuse a model in place of the objects, and files that would be written over."""
    if is_model(new) and not is_model(model):
        raise click.UsageError(f"MODEL comes before NEW: krein predict {new} {model}")
    for i, target in enumerate(targets):
        others = [other for other in targets[1:i] if other is not None]
        check_target(target, reads=(model, new), writes=[targets[0], *others] if i else ())


def _say_results(
    counts: Counts, seconds: float, ranks: Sequence[str], threshold: float, fdr: float | None
) -> None:
    """Print how many objects got a label, and why the others did not."""
    total, classified = counts.by_status.total(), counts.classified
    answered = [name for name in ranks[::-1] if counts.by_rank[name]]
    at_ranks = ", ".join(f"{counts.by_rank[name]:,} at {name}" for name in answered)
    depths = f": {at_ranks}" if at_ranks else ""
    say("labelled", f"{classified:,} of {total:,} objects in {seconds:.1f} s{depths}", err=True)
    if classified < total:
        say("unlabelled", counts.describe_others(threshold), err=True)
    if fdr is not None:
        lists = f"{counts.selected['label']:,} labels, {counts.selected['novel']:,} novel"
        say("selected", f"{lists}; at most {100 * fdr:g} % errors expected in each", err=True)


def _part(
    model: str,
    output: str | None,
    predictor: Predictor,
    source: Source,
    row_format: str,
    resume: bool,
) -> Resumable | None:
    """Return the file of rows that is kept if the command is stopped; None if it cannot be."""
    if output is None or is_stream(output) or output.endswith((".gz", ".xz")):
        return None
    if not source.rereadable:
        return None
    details = {name: value for name, value in asdict(predictor.details).items() if value}
    asked = {
        "model": file_hash(model),
        "input": file_hash(source.path) if os.path.isfile(source.path) else source.path,
        "options": json.dumps([predictor.names, details, row_format, predictor.unknown_letters]),
    }
    return Resumable(output, asked, resume)


def answer_of(row: Row) -> str:
    """Return the label of a classified object: that of the deepest certain rank, if there are."""
    return str(row.get("rank_label", row["label"]))


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
    from ..reject import threshold_for_coverage

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


# --classified-out and --unclassified-out: split the objects into two files, as Kraken does


class Splitter:
    """Writes objects to one of two files, by whether they are classified.

    Sequences are written as FASTA while they are read, each with its label. The lines of other text
    files are copied after all objects have been read: the reader records the line on which each
    object begins; it ends where the next one begins. Lines before the first object go to both
    files.
    """

    def __init__(self, source: Source, files: dict[bool, IO[str] | None]) -> None:
        self.source, self.files = source, files
        self._first_lines, self._classified = array("q"), bytearray()

    def split(self, found: Iterable[tuple[NamedObjects, list[Row]]]) -> Iterator[list[Row]]:
        """Yield the rows of each chunk, after its objects have been written or recorded."""
        for chunk, rows in found:
            if any(self.files.values()):
                self._add(chunk, rows)
            yield rows

    def _add(self, chunk: NamedObjects, rows: list[Row]) -> None:
        if self.source.kind == "sequences":
            for sequence, row in zip(chunk.objects, rows, strict=True):
                classified = is_classified(row)
                if (file := self.files[classified]) is not None:
                    label = f" label={answer_of(row)}" if classified else ""
                    file.write(f">{row['name']}{label}\n{sequence}\n")
            return
        if chunk.lines is None:
            raise DataError(
                f"{chunk.path}: --classified-out and --unclassified-out copy lines, but this is "
                f"not a text file; select the rows by name from the output instead"
            )
        self._first_lines.extend(chunk.lines)
        self._classified.extend(map(is_classified, rows))

    def finish(self) -> None:
        """Copy the recorded lines."""
        if self.source.kind == "sequences" or not any(self.files.values()):
            return
        i, to = -1, [self.files[True], self.files[False]]
        max_size = getattr(self.source, "max_size", None)
        self.source.refuse_changes()
        for number, text in enumerate(read_lines(self.source.path, max_size), 1):
            if i + 1 < len(self._first_lines) and number == self._first_lines[i + 1]:
                i += 1
                to = [self.files[bool(self._classified[i])]]
            for file in to:
                if file is not None:
                    file.write(text)


@contextmanager
def splitting(
    source: Source, classified: str | None, unclassified: str | None
) -> Iterator[Splitter]:
    """Open the files that objects are split into, if any."""
    if (classified or unclassified) and source.kind != "sequences" and not source.rereadable:
        raise click.UsageError(
            "--classified-out and --unclassified-out read NEW a second time, unless it is FASTA: "
            f"save {source.shown} to a file first"
        )
    with ExitStack() as stack:
        files = {
            which: None if path is None else stack.enter_context(writing(path))
            for which, path in ((True, classified), (False, unclassified))
        }
        splitter = Splitter(source, files)
        yield splitter
        splitter.finish()


# --table-out: the table itself, with the answers in new columns


class Completer:
    """Writes a copy of a table with the answers in new columns.

    Answers wait in a temporary file until all objects have been read; the rows are then read again.
    A row belongs to the object that begins on its line, or to the same cell as that object.
    """

    def __init__(
        self,
        source: LayoutSource,
        columns: list[str],
        answers: IO[str],
        writer: RowWriter,
    ) -> None:
        self.source, self.columns, self.answers, self.writer = source, columns, answers, writer
        self._lines = array("q")

    def note_lines(
        self, found: Iterable[tuple[NamedObjects, list[Row]]]
    ) -> Iterator[tuple[NamedObjects, list[Row]]]:
        """Note the line on which each object begins."""
        for chunk, rows in found:
            self._lines.extend(chunk.lines or ())
            yield chunk, rows

    def add(self, rows: list[Row]) -> None:
        """Keep the answers for some objects."""
        for row in rows:
            self.answers.write(json.dumps([as_cell(row[name]) for name in self.columns]) + "\n")

    def finish(self) -> None:
        """Write the table."""
        self.source.refuse_changes()
        self.answers.seek(0)
        rows = iter(self.source.read_rows())
        _, heading = next(rows)
        self.writer.write_cells([*heading, *(f"krein_{name}" for name in self.columns)])
        at, nothing = getattr(self.source, "cell_column", None), [None] * len(self.columns)
        n, cell, answer = 0, "", nothing
        for line, row in rows:
            of_cell = row[at].strip() if at is not None and at < len(row) else ""
            if n < len(self._lines) and line == self._lines[n]:
                n, cell, answer = n + 1, of_cell, json.loads(self.answers.readline())
            elif of_cell.lower() in NO_CELL or of_cell != cell:
                answer = nothing
            empty = [""] * (len(heading) - len(row))
            self.writer.write_cells([*row, *empty, *answer])


@contextmanager
def completing(
    source: Source, path: str | None, columns: list[str], escape_formulas: bool
) -> Iterator[Completer | None]:
    """Open the copy of the table, if one is wanted."""
    if path is None:
        yield None
        return
    if (
        not isinstance(source, TableFile | ReceptorTable)
        or not source.layout.heading
        or (isinstance(source, ReceptorTable) and not source.header)
    ):
        raise click.UsageError("--table-out needs NEW to be a CSV or TSV file with a header")
    if not source.rereadable:
        raise click.UsageError(
            f"--table-out reads NEW a second time: save {source.shown} to a file first"
        )
    with writing(path) as file, tempfile.TemporaryFile("w+", encoding="utf-8") as answers:
        row_format = "tsv" if choose_row_format(path, None) == "tsv" else "csv"
        writer = RowWriter(file, (), row_format, escape_formulas=escape_formulas)
        completer = Completer(source, columns, answers, writer)
        yield completer
        completer.finish()


# Counts of the objects in a run

Taxon = tuple[str, ...]


class KrakenReport:
    """The number of objects at each label and below it, in the format of Kraken's reports.

    It has six tab-separated columns: share in per cent, objects at or below the label, objects at
    the label, rank, identifier (always 0, since labels have none), and name, indented by depth.
    Taxonomy labels form a tree; `separator` is the sign between their ranks, None for plain labels.

    Examples
    --------
    >>> import sys
    >>> report = KrakenReport(";")
    >>> for label in ["a;b", "a;c", "a;c", None]:
    ...     report.add(label)
    >>> report.write(sys.stdout) # doctest: +NORMALIZE_WHITESPACE
     25.00  1  1  U   0  unclassified
     75.00  3  0  R   0  root
     75.00  3  0  R1  0    a
     50.00  2  2  R2  0      c
     25.00  1  1  R2  0      b
    """

    def __init__(self, separator: str | None = None) -> None:
        self.separator = separator
        self._own: Counter[Taxon] = Counter()
        self._unclassified = 0

    def add(self, label: str | None, n: int = 1) -> None:
        """Count n objects by their label, None if they are unclassified."""
        if label is None:
            self._unclassified += n
        else:
            self._own[tuple(rank_path(label, self.separator)) if self.separator else (label,)] += n

    def write(self, file: IO[str]) -> None:
        """Write the lines, the largest clades first."""
        total = self._unclassified + self._own.total()

        def line(below: int, own: int, rank: str, name: str) -> str:
            share = 100 * below / total if total else 0.0
            return f"{share:6.2f}\t{below}\t{own}\t{rank}\t0\t{name}\n"

        file.write(line(self._unclassified, self._unclassified, "U", "unclassified"))
        file.write(line(self._own.total(), 0, "R", "root"))
        below: Counter[Taxon] = Counter()
        for path, count in self._own.items():
            for depth in range(1, len(path) + 1):
                below[path[:depth]] += count
        for path in _in_order(below, ()):
            bare = PREFIX.sub("", path[-1], count=1) if self.separator else path[-1]
            name = "  " * len(path) + " ".join(bare.split())
            file.write(line(below[path], self._own[path], rank_code(path), name))


def _in_order(below: Counter[Taxon], parent: Taxon) -> Iterator[Taxon]:
    depth = len(parent) + 1
    children = [path for path in below if len(path) == depth and path[:-1] == parent]
    for path in sorted(children, key=lambda path: (-below[path], path)):
        yield path
        yield from _in_order(below, path)


class Counts:
    """Counts of objects by status, and by label if they are classified."""

    def __init__(self, separator: str | None = None, sizein: bool = False) -> None:
        self.sizein = sizein
        self.by_status: Counter[str] = Counter()
        self.first_reason = ""
        self.by_chance = 0  # ambiguous objects that are no nearer than random ones
        self.selected: Counter[str] = Counter()
        self.by_rank: Counter[str] = Counter()
        self.names: set[str] = set()
        self.repeated: list[str] = []  # names that occur again
        self.report = KrakenReport(separator)

    @property
    def classified(self) -> int:
        """Number of objects that got a label."""
        return sum(self.by_status[status] for status in CLASSIFIED)

    def describe_others(self, threshold: float) -> str:
        """Return the number of objects without a label, by status."""
        below = f"probability below {threshold:.4g}"
        if self.by_chance:
            others = self.by_status[AMBIGUOUS] - self.by_chance
            below = f"{others:,} with a {below}, " if others else ""
            below += f"{self.by_chance:,} no nearer than random objects"
        return ", ".join(
            f"{n:,} {status}{f' ({below})' if status == AMBIGUOUS else ''}"
            for status in (AMBIGUOUS, NOVEL, UNREADABLE)
            if (n := self.by_status[status])
        )

    def warn_of_objects(self) -> None:
        """Warn of repeated names and of objects that cannot be read; refuse if none can be."""
        if self.repeated:
            n, first = len(self.repeated), printable(repr(self.repeated[0]), 60)
            warn(f"{n:,} rows have the same name as an earlier one, such as {first}")
        unreadable, total = self.by_status[UNREADABLE], self.by_status.total()
        if unreadable == total:
            raise DataError(self.first_reason)
        if unreadable:
            first = "" if unreadable == 1 else "the first is "
            reason = printable(self.first_reason, 200)
            warn(f"{unreadable:,} of {total:,} objects cannot be read: {first}{reason}")

    def add(self, rows: Iterable[Row]) -> None:
        """Count some rows."""
        for row in rows:
            n = size_of_name(row["name"]) if self.sizein else 1
            if row["name"] in self.names:
                self.repeated.append(row["name"])
            elif len(self.names) < MOST_NAMES:
                self.names.add(row["name"])
            self.by_status[row["status"]] += n
            if row["status"] == UNREADABLE:
                self.first_reason = self.first_reason or row["reason"]
            if row["status"] == AMBIGUOUS and row["reason"] == BY_CHANCE:
                self.by_chance += n
            self.selected.update((row.get("selected") or "").split("|"))
            if row.get("rank") is not None:
                self.by_rank[row["rank"]] += n
            self.report.add(answer_of(row) if is_classified(row) else None, n)


MOST_NAMES = 1_000_000
"""Names are remembered up to this number, to find those that occur again."""

_SIZE = re.compile(r"(?:^|;)size=(\d{1,15})(?=;|$)")


def size_of_name(name: str) -> int:
    """Return how many reads a sequence stands for, as vsearch writes it into the name.

    >>> size_of_name("read7;size=12"), size_of_name("size=3;ee=0.1"), size_of_name("read8")
    (12, 3, 1)
    """
    found = _SIZE.search(name)
    return 1 if found is None else int(found[1])
