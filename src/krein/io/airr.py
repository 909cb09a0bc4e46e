"""T-cell receptors from tables: AIRR rearrangements, tcrdist3, VDJdb and 10x.

The tables are CSV, TSV, JSON lines or Parquet files: all are read as rows of text.

The columns are recognised by name (`chain_columns`). A row contains one chain or both. If rows have
one chain each and a column `cell_id` (AIRR), `barcode` (10x) or `complex.id` (VDJdb), consecutive
rows with the same entry are one receptor:

- Rows that are not productive, according to the column `productive`, are left out.
- Of several chains of the same locus, the one with the most molecules (or else reads) counts; if
  the table does not contain their numbers, the first.
- The rows of a cell must have the same label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from ..measures.receptors import as_text, locus_of
from .labels import Labels
from .layout import Layout, LayoutSource
from .source import Record
from .streams import DataError, quoted

CELLS = ("cell_id", "barcode", "complex.id")
PRODUCTIVE = ("productive",)
COUNTS = ("umis", "umi_count", "duplicate_count", "consensus_count", "reads")
RECEPTOR_NAMES = ("sequence_id", "contig_id", *CELLS[:2])
NO_CELL = ("", "0", "na", "nan", "none")
"""Entries for a chain without a partner; VDJdb's is 0."""


ReceptorRows = Iterable[tuple[int | None, list[str] | DataError]]
"""The line of each row, if the file has lines, and its cells, or why it cannot be read."""


def open_receptors(
    path: str,
    labels: Labels,
    max_size: int | None,
    layout: Layout,
    read_rows: Callable[[], ReceptorRows],
    header: bool = False,
) -> ReceptorTable:
    """Open a table with V genes and CDR3s in the columns `layout.objects`."""
    found = ReceptorTable(
        path, labels, max_size, layout=layout, kind="receptors", read_rows=read_rows, header=header
    )
    names = found.cell_column  # of the receptor, not of a chain
    if names is None:
        names = _first_column(layout, RECEPTOR_NAMES) if layout.names is None else layout.names
    return found.changed(layout=replace(layout, names=names))


def used_columns(layout: Layout) -> list[int]:
    """Return the columns that are read; files with columns need not decode the others."""
    found = (_first_column(layout, names) for names in (CELLS, RECEPTOR_NAMES, COUNTS, PRODUCTIVE))
    roles = {*layout.objects, layout.labels, layout.names, *found}
    return sorted(at for at in roles if at is not None)


def _first_column(layout: Layout, wanted: tuple[str, ...]) -> int | None:
    columns = [name.lower() for name in layout.columns]
    return next((columns.index(name) for name in wanted if name in columns), None)


def _cell(row: list[str], at: int | None) -> str:
    return "" if at is None else row[at].strip()


@dataclass(frozen=True)
class Part:
    """The chains in one row of a table."""

    where: str
    line: int | None
    cell: str  # "" if the row is a receptor of its own
    name: str
    chains: list[tuple[str, str]]  # V gene, CDR3
    label: str | None
    count: float
    productive: bool
    error: DataError | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class ReceptorTable(LayoutSource):
    """T-cell receptors from a table with one chain or both in a row."""

    header: bool
    """Whether the first row names the columns, as in CSV and TSV files."""

    @property
    def understood(self) -> str:
        """How the file was interpreted."""
        at = self.cell_column
        joined = "" if at is None else f", chains joined by {self.layout.columns[at]!r}"
        return super().understood + joined

    @property
    def cell_column(self) -> int | None:
        """The column that says which rows are chains of one receptor; None if each row is one."""
        return _first_column(self.layout, CELLS) if len(self.layout.objects) == 2 else None

    def records(self) -> Iterator[Record]:
        """Yield the receptors."""
        waiting: list[Part] = []
        finished: set[str] = set()
        for number, (line, row) in enumerate(islice(self.read_rows(), self.header, None)):
            part = self._part(number, line, row)
            if waiting and (not part.cell or part.cell != waiting[0].cell):
                finished.add(waiting[0].cell)
                yield from self._receptor(waiting)
                waiting = []
            if part.cell in finished and part.cell:
                by = quoted(self.layout.columns[self.cell_column or 0])
                raise DataError(
                    f"{part.where}: the rows of the cell {quoted(part.cell)} are not consecutive; "
                    f"sort the table by {by}"
                )
            waiting.append(part)
        if waiting:
            yield from self._receptor(waiting)

    def _part(self, number: int, line: int | None, row: list[str] | DataError) -> Part:
        layout, columns = self.layout, self.layout.columns
        where = f"{self.shown}, " + (f"row {number}" if line is None else f"line {line}")
        if not isinstance(row, DataError) and len(row) != len(columns):
            reason = f"has {len(row)} fields, but the first row has {len(columns)}"
            row = DataError(f"{where}: {reason}")
        if isinstance(row, DataError):
            return Part(where, line, "", str(number), [], None, 0.0, True, row)

        together = _cell(row, self.cell_column)
        together = "" if together.lower() in NO_CELL else together
        own = "" if layout.names == self.cell_column else _cell(row, layout.names)
        name = together or own or str(number)
        label = None if layout.labels is None else row[layout.labels]
        productive = _cell(row, _first_column(layout, PRODUCTIVE)).lower() not in ("f", "false")
        try:
            count = float(_cell(row, _first_column(layout, COUNTS)))
        except ValueError:
            count = 0.0
        chains, missing = self._chains(row)
        error = None
        if missing is not None and productive:
            reason = f"the column {quoted(columns[missing])} is empty"
            error = DataError(f"{where}, receptor {quoted(name)}: {reason}")
        return Part(where, line, together, name, chains, label, count, productive, error)

    def _chains(self, row: list[str]) -> tuple[list[tuple[str, str]], int | None]:
        """Return V gene and CDR3 of each chain, and the last column that a chain lacks.

        A chain lacks a column if only the other of the two has a value.
        """
        chains, incomplete = list[tuple[str, str]](), None
        for columns in zip(self.layout.objects[::2], self.layout.objects[1::2], strict=True):
            gene, cdr3 = (_cell(row, at) for at in columns)
            empty = [text.lower() in ("", "none", "na", "nan") for text in (gene, cdr3)]
            if not any(empty):
                chains.append((gene, cdr3))
            elif not all(empty):
                incomplete = columns[empty.index(True)]
        return chains, incomplete

    def _receptor(self, parts: list[Part]) -> Iterator[Record]:
        """Yield the receptor of a cell; nothing if none of its rows is productive."""
        parts = [part for part in parts if part.productive]
        if not parts:
            return
        first = parts[0]
        error = next((part.error for part in parts if part.error is not None), None)
        other = next((part for part in parts if part.label != first.label), None)
        if other is not None:
            error = DataError(
                f"{other.where}: the cell {quoted(first.cell)} has two labels, "
                f"{quoted(first.label or '')} and {quoted(other.label or '')}"
            )
        best: dict[str | None, tuple[str, str]] = {}
        for part in sorted(parts, key=lambda part: -part.count):  # stable: the first of equals
            for gene, cdr3 in part.chains:
                best.setdefault(locus_of(gene), (gene, cdr3))
        text = as_text(best.values())
        if error is None and not text:
            error = DataError(f"{first.where}: has no V gene and CDR3")
        if error is not None:
            yield self.refused(error, first.name, first.line)
        else:
            yield Record(first.name, text, first.label, first.line)
