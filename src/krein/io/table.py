"""Tables: CSV and TSV, with quoted fields that may contain line breaks."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from .arriving import WAIT, Arriving
from .compression import STDIN, bare_name, read_lines, shown
from .errors import DataError, quoted
from .labels import Labels, find_labels, is_label_file
from .layout import Layout, decide, is_number
from .limits import cell_limit, record_limit, too_large, too_many
from .source import Kind, Record, RecordSource

HEAD = 20
"""Number of rows from which the layout is determined."""

Row = tuple[int, list[str]]  # its first line, its cells


def read_rows(
    path: str, delimiter: str | None, *, empty: bool = False, max_size: int | None = None
) -> Iterator[Row]:
    """Yield the rows of a table with the line each begins on; empty lines only if requested.

    The default delimiter is the tab in a `.tsv` file, otherwise whichever of comma, semicolon and
    tab is most frequent in the first line.
    """
    lines = iter(read_lines(path, max_size))
    first = next(lines, None)
    if first is None:
        return
    if delimiter is None:
        delimiter = "\t" if bare_name(path).endswith((".tsv", ".tab")) else _delimiter(first)
    limited = _Limited(chain([first], lines), path, delimiter, max_size)
    csv.field_size_limit(record_limit(max_size))
    reader = csv.reader(limited, delimiter=delimiter, strict=True)
    line = 1
    while True:
        limited.begin(line)
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{shown(path)}, line {line}: {error}") from None
        if row or empty:
            yield line, row
        line = reader.line_num + 1


class _Limited:
    """Lines for the table parser; a row may span several lines, within limits."""

    def __init__(
        self, lines: Iterator[str], path: str, delimiter: str, max_size: int | None
    ) -> None:
        self.lines, self.path, self.delimiter = lines, path, delimiter
        self.most, self.cells = record_limit(max_size), cell_limit(max_size)

    def begin(self, line: int) -> None:
        """Note that a row begins on this line."""
        self.line, self._size, self._cells = line, 0, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        text = next(self.lines)
        self._size += len(text)
        self._cells += text.count(self.delimiter)
        if self._size > self.most:
            raise too_large(f"{shown(self.path)}, the row on line {self.line}", None, self.most)
        if self._cells > self.cells:
            raise too_many(f"{shown(self.path)}, line {self.line}", self._cells, self.cells)
        return text


def _delimiter(line: str) -> str:
    bare = "".join(line.split('"')[::2])
    return max(",;\t", key=bare.count)


class TableFile(RecordSource):
    """Objects from the rows of a table."""

    def __init__(
        self,
        path: str,
        delimiter: str | None,
        layout: Layout,
        labels: Labels,
        ahead: Any = None,
        max_size: int | None = None,
    ) -> None:
        kind: Kind = layout.content
        super().__init__(path, kind, labels, max_size)
        self.delimiter, self.layout, self._ahead = delimiter, layout, ahead

    @property
    def understood(self) -> str:
        """How the file was interpreted."""
        return self.layout.understood

    def records(self) -> Iterator[Record]:
        """Yield the rows as objects."""
        layout = self.layout
        rows = self._ahead
        if rows is None:
            rows = read_rows(self.path, self.delimiter, max_size=self.max_size)
        if layout.heading:
            rows = islice(rows, 1, None)
        for number, (line, row) in enumerate(rows):
            name = str(number)
            if layout.names is not None and layout.names < len(row):
                name = row[layout.names].strip()
            try:
                found = self._object(row, line, name)
            except DataError as error:
                yield self.refused(error, name, line)
                continue
            yield Record(name, found, None if layout.labels is None else row[layout.labels], line)

    def _object(self, row: list[str], line: int, name: str) -> Any:
        layout, width = self.layout, len(self.layout.columns)
        if len(row) != width:
            raise DataError(
                f"{self.shown}, line {line}: has {len(row)} fields, but the first row has {width}"
            )
        cells = [row[i] for i in layout.objects]
        if layout.content != "strings":
            return self._vector(cells, line, name)
        return self._string(cells[0], line, name)

    def _string(self, cell: str, line: int, name: str) -> str:
        if not cell.strip():
            column = self.layout.columns[self.layout.objects[0]]
            where = f"{self.shown}, line {line}, row {quoted(name)}"
            raise DataError(f"{where}: the column {quoted(column)} is empty")
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
            where = (
                f"{self.shown}, line {line}, row {quoted(name)}: the column {quoted(column)} "
                f"contains {quoted(cell)}"
            )
            if not is_number(cell):
                raise DataError(f"{where}, which is not a number")
            if cell.strip() == "" or not np.isfinite(_float(cell)):
                raise DataError(f"{where}: a value is missing or infinite")
        raise AssertionError("a row of numbers must consist of numbers")


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:  # NA or similar
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
    max_size: int | None,
) -> TableFile:
    """Open a CSV or TSV file; `layout.decide` assigns its columns."""
    delimiter = "\t" if written == "tsv" else None
    rows = read_rows(path, delimiter, max_size=max_size)
    if path == STDIN:
        rows = Arriving(rows)
        head = rows.take(HEAD, wait=WAIT, least=2)  # a heading and an object
    else:
        head = _head(rows, record_limit(max_size))
    if not head:
        raise DataError(f"{shown(path)}: is empty")

    def count_rows(limit: int) -> int:
        if path == STDIN:  # later rows are not known yet: rows are vectors unless specified
            return -1
        return sum(1 for _ in islice(read_rows(path, delimiter, max_size=max_size), limit))

    inside = labels if labels is not None and _is_column(labels, head[0][1]) else None
    beside = labels if inside is None else None
    if beside is not None and not is_label_file(beside):
        inside, beside = beside, None  # the error then lists the existing columns
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
    found = find_labels(beside, label_pattern, max_size)
    ahead = chain(head, rows) if path == STDIN else None
    return TableFile(path, delimiter, layout, found, ahead, max_size)


def _head(rows: Iterator[Row], most: int) -> list[Row]:
    """Return the rows from which the layout is determined; fewer if they are long."""
    head: list[Row] = []
    size = 0
    for row in islice(rows, HEAD):
        head.append(row)
        size += sum(map(len, row[1]))
        if size > most:
            break
    return head


def _is_column(labels: str, first: list[str]) -> bool:
    return labels in [cell.strip() for cell in first] or (
        labels.isdecimal() and 1 <= int(labels) <= len(first)
    )
