"""Copies of the input of `krein predict` with its answers: split in two, or with new columns."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

import click

from ..io import DataError, NamedObjects, Source
from ..io.airr import NO_CELL, ReceptorTable
from ..io.layout import LayoutSource
from ..io.streams import read_lines
from ..io.tables import TableFile
from .output import RowWriter, as_cell, choose_row_format, writing
from .status import Row, answer_of, is_classified

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
