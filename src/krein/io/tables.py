"""Decide which columns of a table are objects, labels and names.

The rules, in order:

1. Columns that the user chooses are used: by name, by number from 1, or for objects by a range of
   numbers, such as "3-10".
2. The first row is a heading if it has a word above numbers, or if no column is numeric.
3. Among the other columns, one called `label`, `class`, `family` or `target` contains labels, and
   one called `id`, `name`, `accession` or nothing contains names.
4. If all remaining columns are numeric, they are a matrix of values if there are as many columns as
   rows; otherwise the rows are vectors.
5. If one column of text remains, or one is called `sequence`, `text` or `word`, it contains the
   objects. In any other case, an error asks the user.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import isclose
from typing import Any, Literal

import numpy as np

from ..wording import parameter
from .labels import USUAL_LABELS, Labels, find_labels, is_label_file
from .source import Kind, Record, RecordSource
from .streams import (
    STDIN,
    WAIT,
    Arriving,
    DataError,
    bare_name,
    cell_limit,
    quoted,
    read_lines,
    record_limit,
    shown,
    too_large,
    too_many,
)

USUAL_NAMES = ("id", "ids", "name", "names", "accession", "")
USUAL_OBJECTS = ("sequence", "seq", "text", "string", "word", "object")
_MISSING = ("", "na", "nan", "null", "none", "?")


@dataclass(frozen=True)
class Layout:
    """The role of each column."""

    columns: list[str]
    heading: bool
    content: Literal["strings", "vectors", "matrix"]
    objects: list[int]
    labels: int | None
    names: int | None

    @property
    def understood(self) -> str:
        """A description of the layout."""
        if self.content == "strings":
            what = f"strings in the column {self.columns[self.objects[0]]!r}"
        elif self.content == "vectors":
            what = f"vectors of {len(self.objects)} numbers, one per row"
        else:
            what = f"rows of {len(self.objects)} values, a matrix"
        for role, at in (("labels", self.labels), ("names", self.names)):
            if at is not None:
                what += f", {role} in {self.columns[at]!r}"
        return what + ("" if self.heading else " (no header)")


def decide(
    shown: str,
    rows: Sequence[Sequence[str]],
    *,
    meant: str | None,
    objects: str | None,
    labels: str | None,
    names: str | None,
    heading: bool | None,
    count_rows: Callable[[int], int],
    numeric: Sequence[bool] | None = None,
) -> Layout:
    """Decide what the columns of a table are, from its first rows.

    `count_rows(limit)` counts the rows of the table, including the heading, up to `limit`.
    `numeric` states for each column whether it consists of numbers, if the file contains types.
    """
    if meant == "series":
        raise ValueError(
            f"{shown}: series must be in .ts, .npy or .npz files; "
            f"{parameter('format', repr('vectors'))} reads rows"
        )
    if len(rows) > 1 and heading is not False and len(rows[0]) == len(rows[1]) - 1:
        rows = [["", *rows[0]], *rows[1:]]  # R omits the corner above the row names
        heading = True
    width = len(rows[0])
    if heading is None:
        heading = _has_heading(rows, [c for c in (objects, labels, names) if c is not None])
        if not heading and meant != "vectors" and _counts_columns(rows[0]):
            # above vectors, such a row is an ordinary object
            square = count_rows(width + 2) == width + 1
            heading = square and (meant == "matrix" or _is_symmetric(rows[1:]))
    columns = [cell.strip() for cell in rows[0]] if heading else [str(i + 1) for i in range(width)]
    data = rows[1:] if heading else rows
    if not data:
        raise DataError(f"{shown}: contains a header but no objects")
    if numeric is None:
        complete = [row for row in data if len(row) == width]
        numeric = [all(is_number(row[i]) for row in complete) for i in range(width)]

    def find(column: str, role: str) -> int:
        if column in columns:
            if columns.count(column) > 1:
                raise DataError(f"{shown}: two columns are called {column!r}; use a column number")
            return columns.index(column)
        if column.isdecimal() and 1 <= int(column) <= width:
            return int(column) - 1
        listed = ", ".join(repr(c) for c in columns[:30]) + (" …" if width > 30 else "")
        raise DataError(
            f"{shown}: there is no column {column!r} for the {role}; the columns are {listed}"
        )

    at_labels = None if labels is None else find(labels, "labels")
    at_names = None if names is None else find(names, "names")
    chosen = [] if objects is None else _chosen(objects, columns, find)
    rest = [i for i in range(width) if i not in (at_labels, at_names, *chosen)]
    if heading:
        if at_labels is None:
            at_labels = _usual(columns, rest, USUAL_LABELS)
            rest = [i for i in rest if i != at_labels]
        if at_names is None and (chosen or len(rest) > 1):
            at_names = _usual(columns, rest, USUAL_NAMES)
            rest = [i for i in rest if i != at_names]
    if chosen:
        content: Literal["strings", "vectors", "matrix"] = "strings"
        if len(chosen) > 1 or meant is not None:
            content = "matrix" if meant == "matrix" else "vectors"
        return Layout(columns, heading, content, chosen, at_labels, at_names)
    if not rest:
        raise DataError(f"{shown}: no column is left for the objects")
    words = [i for i in rest if not numeric[i]]
    if at_names is None and words == rest[:1] and len(rest) > 2:
        at_names, rest, words = words[0], rest[1:], []  # row names before numbers
    if not words:
        square = meant == "matrix"
        if meant is None:
            square = count_rows(len(rest) + 2) - heading == len(rest)
        return Layout(
            columns, heading, "matrix" if square else "vectors", rest, at_labels, at_names
        )
    if meant is not None:
        raise DataError(
            f"{shown}: the column {columns[words[0]]!r} does not consist of numbers; declare it "
            f"with {parameter('labels')} or {parameter('names')}, or choose the numeric columns "
            f"with {parameter('objects')}"
        )
    found = rest[0] if len(rest) == 1 else _usual(columns, rest, USUAL_OBJECTS)
    if found is None:
        listed = ", ".join(repr(columns[i]) for i in rest[:30])
        raise DataError(
            f"{shown}: which column contains the objects? The columns are {listed}; use "
            f"{parameter('objects', 'COLUMN')} (and {parameter('labels')}, {parameter('names')})"
        )
    return Layout(columns, heading, "strings", [found], at_labels, at_names)


def is_number(cell: str) -> bool:
    """Whether a cell is a number or a missing value."""
    if cell.strip().lower() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _has_heading(rows: Sequence[Sequence[str]], named: Sequence[str]) -> bool:
    first = [cell.strip() for cell in rows[0]]
    if any(name in first for name in named):
        return True
    below = rows[1:]
    numbers = [
        bool(below) and all(len(row) > i and is_number(row[i]) for row in below)
        for i in range(len(first))
    ]
    if not any(numbers):
        return not all(is_number(cell) for cell in first)
    # a word, or the empty corner of a table of numbers, above numbers
    return any(
        number and (not is_number(cell) or cell == "")
        for cell, number in zip(first, numbers, strict=True)
    )


def _counts_columns(first: Sequence[str]) -> bool:
    """Whether a row of numbers merely counts the columns."""
    cells = [cell.strip() for cell in first]
    return any(cells == [str(i + k) for i in range(len(cells))] for k in (0, 1))


def _is_symmetric(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first rows could be those of a symmetric matrix."""
    n = len(rows)
    try:
        values = [[float(cell) for cell in row[:n]] for row in rows]
        return n > 1 and all(
            isclose(values[i][j], values[j][i], rel_tol=1e-6, abs_tol=1e-12)
            for i in range(n)
            for j in range(i)
        )
    except (ValueError, IndexError):
        return False


def _usual(columns: Sequence[str], rest: Sequence[int], usual: Sequence[str]) -> int | None:
    """Return the only column among `rest` that has one of the usual names."""
    found = [i for i in rest if columns[i].lower() in usual]
    return found[0] if len(found) == 1 else None


def _chosen(objects: str, columns: Sequence[str], find: Callable[[str, str], int]) -> list[int]:
    if objects in columns:
        return [find(objects, "objects")]
    chosen: list[int] = []
    for part in objects.split(","):
        low, dash, high = part.partition("-")
        numbers = dash and low.isdecimal() and high.isdecimal()
        if part not in columns and numbers and int(low) <= int(high):
            chosen += [find(str(k), "objects") for k in range(int(low), int(high) + 1)]
        else:
            chosen.append(find(part.strip(), "objects"))
    return chosen


# -------------------------------------------------------------------------------------------------
# Tables: CSV and TSV, with quoted fields that may contain line breaks.
# -------------------------------------------------------------------------------------------------

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


# -------------------------------------------------------------------------------------------------
# JSON lines: one record per line, whose fields are treated like the columns of a table.
# -------------------------------------------------------------------------------------------------

Line = tuple[int, str]  # its number from 1, its text


class JsonLines(RecordSource):
    """Objects from the fields of JSON records: strings, numbers, or lists of numbers."""

    def __init__(
        self,
        path: str,
        layout: Layout,
        kind: Kind,
        labels: Labels,
        ahead: Any = None,
        max_size: int | None = None,
    ) -> None:
        super().__init__(path, kind, labels, max_size)
        self.layout, self._ahead = layout, ahead

    @property
    def understood(self) -> str:
        """How the file was interpreted."""
        layout = self.layout
        if layout.content == "strings" and self.kind != "strings":
            return f"{self.kind} in the field {layout.columns[layout.objects[0]]!r} of JSON lines"
        return layout.understood.replace("the column", "the field") + " of JSON lines"

    def records(self) -> Iterator[Record]:
        """Yield the records as objects."""
        fields = self.layout.columns
        wanted = [fields[i] for i in self.layout.objects]
        labels, names = (
            None if i is None else fields[i] for i in (self.layout.labels, self.layout.names)
        )
        lines = _filled_lines(self.path, self.max_size) if self._ahead is None else self._ahead
        for number, (line, text) in enumerate(lines):
            name = str(number)
            try:
                record = _parsed(text, shown(self.path), line)
                name = name if names is None else _text(record.get(names)) or name
                where = f"{self.shown}, line {line}, record {quoted(name)}"
                values = [_field(record, field, where) for field in wanted]
                found = self._object(values, wanted, where)
            except DataError as error:
                yield self.refused(error, name, line)
                continue
            label = None if labels is None else _text(record.get(labels))
            yield Record(name, found, label, line)

    def _object(self, values: list[Any], fields: list[str], where: str) -> Any:
        if self.kind == "strings":
            text, field = values[0], fields[0]
            if not isinstance(text, str):
                raise DataError(
                    f"{where}: the field {quoted(field)} contains {_excerpt(text)}, not a string"
                )
            if not text.strip():
                raise DataError(f"{where}: the field {quoted(field)} is empty")
            return text
        try:
            several = len(fields) > 1 or _is_number(values[0])
            array = np.array(values if several else values[0], dtype=np.float64)
        except (TypeError, ValueError):
            array = np.array(np.nan)
        wanted = 2 if self.kind == "series" and array.ndim == 2 else 1
        if array.ndim != wanted or array.size == 0 or not np.isfinite(array).all():
            told = ", ".join(quoted(field) for field in fields)
            raise DataError(
                f"{where}: {told} contains {_excerpt(values)}, not a list of finite numbers"
            )
        return array[:, None] if self.kind == "series" and array.ndim == 1 else array


def open_json_lines(
    path: str,
    meant: str | None,
    objects: str | None,
    labels: str | None,
    names: str | None,
    label_pattern: str | None,
    max_size: int | None,
) -> JsonLines:
    """Open a file of JSON lines; `layout.decide` assigns the fields of its first record."""
    lines = _filled_lines(path, max_size)
    first = next(lines, None)
    if first is None:
        raise DataError(f"{shown(path)}: is empty")
    record = _parsed(first[1], shown(path), first[0])
    fields = list(record)
    beside = labels if labels not in fields and labels is not None else None
    if beside is not None and not is_label_file(beside):
        beside = None
    layout = decide(
        shown(path),
        [fields, fields],
        meant=None if meant == "series" else meant,
        objects=objects,
        labels=None if beside is not None else labels,
        names=names,
        heading=True,
        count_rows=lambda _: -1,
        numeric=[_is_number(value) for value in record.values()],
    )
    kind: Kind = layout.content
    example = record[fields[layout.objects[0]]]
    if len(layout.objects) == 1 and isinstance(example, list):
        nested = bool(example) and isinstance(example[0], list)
        kind = "series" if nested or meant == "series" else "vectors"
        kind = "matrix" if meant == "matrix" else kind
        layout = replace(layout, content="strings")  # the numbers are a list in one field
    ahead = chain([first], lines) if path == STDIN else None
    found = find_labels(beside, label_pattern, max_size)
    return JsonLines(path, layout, kind, found, ahead, max_size)


def _filled_lines(path: str, max_size: int | None) -> Iterator[Line]:
    most = cell_limit(max_size)
    for i, text in enumerate(read_lines(path, max_size), 1):
        if text.strip():
            cells = text.count(",") + text.count("[") + text.count("{")
            if cells > most:
                raise too_many(f"{shown(path)}, line {i}", cells, most)
            yield i, text


def _parsed(text: str, path: str, line: int) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}, line {line}: is not JSON ({str(error)[:80]}); each line must be one record"
        ) from None
    if not isinstance(record, dict) or not record:
        raise DataError(
            f"{path}, line {line}: contains {_excerpt(record)}; a record must have named fields, "
            'such as {"id": "a", "text": "…"}'
        )
    return record


def _field(record: dict[str, Any], field: str, where: str) -> Any:
    if field not in record:
        there = quoted(", ".join(record), 80)[1:-1]
        raise DataError(f"{where}: has no field {quoted(field)}; its fields are {there}")
    return record[field]


def _text(value: Any) -> str | None:
    """Return a label or a name as text; None if there is none."""
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _excerpt(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"
