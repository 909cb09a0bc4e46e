"""Tables: CSV and TSV, with quoted fields and lines within them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from .arriving import WAIT, Arriving
from .compression import STDIN, bare_name, read_lines, shown
from .errors import DataError
from .labels import Labels, find_labels, is_label_file
from .layout import Layout, decide, is_number
from .source import Kind, Record, RecordSource

HEAD = 20
"""Rows that the layout is decided by."""

Row = tuple[int, list[str]]  # its first line, its cells


def read_rows(path: str, delimiter: str | None, *, empty: bool = False) -> Iterator[Row]:
    """Yield the rows of a table with the line each begins on; empty lines only where asked for.

    Without a delimiter, it is the tab in a `.tsv` file, else the one of comma, semicolon and tab
    that the first line holds most.
    """
    lines = iter(read_lines(path))
    first = next(lines, None)
    if first is None:
        return
    if delimiter is None:
        delimiter = "\t" if bare_name(path).endswith((".tsv", ".tab")) else _delimiter(first)
    csv.field_size_limit(2**31 - 1)  # a field may be a genome
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    line = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{shown(path)}, line {line}: {error}") from None
        if row or empty:
            yield line, row
        line = reader.line_num + 1


def _delimiter(line: str) -> str:
    bare = "".join(line.split('"')[::2])
    return max(",;\t", key=bare.count)


class TableFile(RecordSource):
    """Objects out of the rows of a table."""

    def __init__(
        self, path: str, delimiter: str | None, layout: Layout, labels: Labels, ahead: Any = None
    ) -> None:
        kind: Kind = layout.content
        super().__init__(path, kind, labels)
        self.delimiter, self.layout, self._ahead = delimiter, layout, ahead

    @property
    def understood(self) -> str:
        """What the file was taken for."""
        return self.layout.understood

    def records(self) -> Iterator[Record]:
        """Yield the rows as objects."""
        layout = self.layout
        rows = read_rows(self.path, self.delimiter) if self._ahead is None else self._ahead
        if layout.heading:
            rows = islice(rows, 1, None)
        width, numbers = len(layout.columns), layout.content != "strings"
        for number, (line, row) in enumerate(rows):
            if len(row) != width:
                raise DataError(
                    f"{self.shown}, line {line}: {len(row)} fields where the first row has {width}"
                )
            name = str(number) if layout.names is None else row[layout.names].strip()
            cells = [row[i] for i in layout.objects]
            yield Record(
                name,
                self._vector(cells, line, name) if numbers else self._string(cells[0], line, name),
                None if layout.labels is None else row[layout.labels],
                line,
            )

    def _string(self, cell: str, line: int, name: str) -> str:
        if not cell.strip():
            column = self.layout.columns[self.layout.objects[0]]
            raise DataError(
                f"{self.shown}, line {line}, row {name!r}: the column {column!r} is empty"
            )
        return cell

    def _vector(self, cells: list[str], line: int, name: str) -> Any:
        try:
            vector = np.array(cells, dtype=np.float64)
        except ValueError:
            vector = np.full(len(cells), np.nan)
        if np.isfinite(vector).all():
            return vector
        for place, cell in zip(self.layout.objects, cells, strict=True):
            column = self.layout.columns[place]
            where = f"{self.shown}, line {line}, row {name!r}: the column {column!r} holds {cell!r}"
            if not is_number(cell):
                raise DataError(f"{where}, which is not a number")
            if cell.strip() == "" or not np.isfinite(_float(cell)):
                raise DataError(f"{where}: a value is missing or infinite")
        raise AssertionError("a row of numbers is made of numbers")


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:  # NA and its kin
        return float("nan")


def open_table(
    path: str,
    written: str,
    meant: str | None,
    objects: str | None,
    labels: str | None,
    names: str | None,
    label_pattern: str | None,
    heading: bool | None,
) -> TableFile:
    """Open a CSV or TSV file, its columns as `layout.decide` says."""
    delimiter = "\t" if written == "tsv" else None
    rows = read_rows(path, delimiter)
    if path == STDIN:
        rows = Arriving(rows)
        head = rows.take(HEAD, wait=WAIT, least=2)  # a heading and an object
    else:
        head = list(islice(rows, HEAD))
    if not head:
        raise DataError(f"{shown(path)}: is empty")

    def count_rows(limit: int) -> int:
        if path == STDIN:  # what comes is not known yet: rows are vectors unless it is said
            return -1
        return sum(1 for _ in islice(read_rows(path, delimiter), limit))

    inside = labels if labels is not None and _is_column(labels, head[0][1]) else None
    beside = labels if inside is None else None
    if beside is not None and not is_label_file(beside):
        inside, beside = beside, None  # which names the columns that there are
    layout = decide(
        shown(path),
        [row for _, row in head],
        meant=meant,
        objects=objects,
        labels=inside,
        names=names,
        heading=heading,
        count_rows=count_rows,
    )
    found = find_labels(beside, label_pattern)
    return TableFile(path, delimiter, layout, found, chain(head, rows) if path == STDIN else None)


def _is_column(labels: str, first: list[str]) -> bool:
    return labels in [cell.strip() for cell in first] or (
        labels.isdecimal() and 1 <= int(labels) <= len(first)
    )
