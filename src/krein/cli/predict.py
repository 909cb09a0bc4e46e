"""`krein predict`: label new objects, with probabilities, in constant memory."""

from __future__ import annotations

import json
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import IO, Any

import click
import numpy as np

from ..core.conformal import benjamini_hochberg
from ..io import Chunk, DataError, Source
from ..io.streams import read_lines
from . import options
from .group import krein_command
from .output import (
    RowWriter,
    check_target,
    choose_row_format,
    printable,
    say,
    warn,
    warnings_as_lines,
    writing,
)
from .predictor import CHUNK, NOVEL, UNREADABLE, Details, Predictor, Row


@krein_command("predict")
@options.new_objects
@options.row_output
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
@options.label_ranks
@options.unknown_letters
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
    type=click.IntRange(1),
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
    help="Also write the objects that are novel, rejected or unreadable, in the format of NEW.",
)
@click.option(
    "--kraken-report",
    type=click.Path(),
    metavar="FILE",
    help="Also write the number of objects per label, in the format of Kraken's reports.",
)
@options.reading
@options.jobs
def command(
    model: str,
    new: str,
    output: str | None,
    row_format: str | None,
    escape_formulas: bool,
    reject_below: float | None,
    coverage: float | None,
    top: int | None,
    label_ranks: str | None,
    rank_above: float,
    unknown_letters: str | None,
    novel_below: float | None,
    sets: float | None,
    fdr: float | None,
    evidence: int | None,
    classified_out: str | None,
    unclassified_out: str | None,
    kraken_report: str | None,
    n_jobs: int | None,
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
    targets = [output, kraken_report, classified_out, unclassified_out]
    for i, target in enumerate(targets):
        others = [other for other in targets[1:i] if other is not None]
        check_target(target, reads=(model, new), writes=[output, *others] if i else ())
    ranks = None if label_ranks is None else (label_ranks, rank_above)
    predictor = Predictor(
        model,
        Details(
            top or 0, reject_below, novel_below, sets, evidence, ranks, selected=fdr is not None
        ),
        n_jobs=n_jobs,
        unknown_letters=unknown_letters,
        max_size=reading["max_size"],
    )
    source = predictor.open(new, **reading)
    start = time.perf_counter()
    with (
        warnings_as_lines(),
        splitting(source, classified_out, unclassified_out) as splitter,
        writing(output) as file,
    ):
        chosen = choose_row_format(output, row_format, source)
        writer = RowWriter(file, predictor.names, chosen, escape_formulas=escape_formulas)
        counts = Counts()
        rows, threshold = splitter.split(predictor.rows(source)), reject_below
        if coverage is not None:
            rows, threshold = _covering(rows, coverage)
        if fdr is not None:
            rows = _selecting(rows, fdr)
        for part in rows:
            writer.write(part)
            counts.add(part)
    if kraken_report is not None:
        with writing(kraken_report) as file:
            counts.report.write(file)
    predictor.warn_of_objects()
    if counts.unreadable == counts.total:
        raise DataError(counts.first_reason)
    if counts.unreadable:
        number = f"{counts.unreadable:,} of {counts.total:,} objects cannot be read"
        first = "" if counts.unreadable == 1 else "the first is "
        reason = printable(counts.first_reason, 200)
        warn(f"{number}: {first}{reason}")
    if output is not None:
        seconds = time.perf_counter() - start
        say(
            "labelled", f"{counts.total - counts.unreadable:,} objects in {seconds:.1f} s", err=True
        )
        if threshold is not None:
            share = 100 * counts.rejected / (counts.total - counts.unreadable)
            say("rejected", f"{counts.rejected:,} ({share:.1f} %) below {threshold:.4f}", err=True)
        if fdr is not None:
            lists = f"{counts.selected['label']:,} labels, {counts.selected['novel']:,} novel"
            say("selected", f"{lists}; at most {100 * fdr:g} % errors expected in each", err=True)
        say("written", output, err=True)


def is_classified(row: Row) -> bool:
    """Whether the object of a row got a label, that is, is not novel, rejected or unreadable."""
    return row["status"] not in (UNREADABLE, NOVEL) and not row["rejected"]


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
            while part := [json.loads(line) for line in islice(waiting, CHUNK)]:
                yield part

    return again()


def _covering(rows: Iterator[list[Row]], coverage: float) -> tuple[Iterator[list[Row]], float]:
    """Mark rows as rejected so that the given share is accepted; return the rows and the threshold.

    The threshold depends on all objects; memory use is only 8 bytes per row.
    """
    from ..reject import threshold_for_coverage

    confidence = array("d")

    def note(row: Row) -> None:
        if row["probability"] is not None:
            confidence.append(row["probability"])

    kept, threshold = _kept(rows, note), 0.0
    if confidence:
        threshold = threshold_for_coverage(np.frombuffer(confidence)[:, None], coverage)

    def decided() -> Iterator[list[Row]]:
        for part in kept:
            for row in part:
                if row["probability"] is not None:
                    row["rejected"] = row["probability"] < threshold
                    if row["status"] in ("known", "ambiguous"):
                        row["status"] = "ambiguous" if row["rejected"] else "known"
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

    def split(self, found: Iterable[tuple[Chunk, list[Row]]]) -> Iterator[list[Row]]:
        """Yield the rows of each chunk, after its objects have been written or recorded."""
        for chunk, rows in found:
            if any(self.files.values()):
                self._add(chunk, rows)
            yield rows

    def _add(self, chunk: Chunk, rows: list[Row]) -> None:
        if self.source.kind == "sequences":
            for sequence, row in zip(chunk.objects, rows, strict=True):
                classified = is_classified(row)
                if (file := self.files[classified]) is not None:
                    label = f" label={row['label']}" if classified else ""
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


# Counts of the objects in a run

Taxon = tuple[str, ...]
SEPARATOR = ";"


class KrakenReport:
    """The number of objects at each label and below it, in the format of Kraken's reports.

    It has six tab-separated columns: share in per cent, objects at or below the label, objects at
    the label, rank, identifier (always 0, since labels have none), and name, indented by depth.
    Hierarchical labels (`Bacteria;Firmicutes`) form a tree. Objects that are rejected or unreadable
    count as unclassified.

    Examples
    --------
    >>> import sys
    >>> report = KrakenReport()
    >>> for label in ["a;b", "a;c", "a;c", None]:
    ...     report.add(label)
    >>> report.write(sys.stdout) # doctest: +NORMALIZE_WHITESPACE
     25.00  1  1  U   0  unclassified
     75.00  3  0  R   0  root
     75.00  3  0  R1  0    a
     50.00  2  2  R2  0      c
     25.00  1  1  R2  0      b
    """

    def __init__(self) -> None:
        self._own: Counter[Taxon] = Counter()
        self._unclassified = 0

    def add(self, label: str | None) -> None:
        """Count an object by its label, None if it is unclassified."""
        if label is None:
            self._unclassified += 1
        else:
            self._own[tuple(part.strip() for part in label.split(SEPARATOR))] += 1

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
            depth = len(path)
            name = "  " * depth + " ".join(path[-1].split())
            file.write(line(below[path], self._own[path], f"R{depth}", name))


def _in_order(below: Counter[Taxon], parent: Taxon) -> Iterator[Taxon]:
    depth = len(parent) + 1
    children = [path for path in below if len(path) == depth and path[:-1] == parent]
    for path in sorted(children, key=lambda path: (-below[path], path)):
        yield path
        yield from _in_order(below, path)


class Counts:
    """Counts of objects by outcome."""

    def __init__(self) -> None:
        self.total = self.rejected = self.unreadable = 0
        self.first_reason = ""
        self.selected: Counter[str] = Counter()
        self.report = KrakenReport()

    def add(self, rows: list[Row]) -> None:
        """Count some rows."""
        for row in rows:
            self.total += 1
            if row["status"] == UNREADABLE:
                self.first_reason = self.first_reason or row["reason"]
                self.unreadable += 1
            self.rejected += bool(row["rejected"])
            self.selected.update((row.get("selected") or "").split("|"))
            self.report.add(row["label"] if is_classified(row) else None)
