"""Tables: CSV and TSV with quoted fields that may contain line breaks, and JSON lines.

`layout` decides what their columns, or the fields of their records, are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from ..measures.receptors import chain_columns
from .airr import open_receptors
from .layout import LayoutSource, decide_layout
from .source import ContentKind, Options, Record, finite_numbers
from .streams import (
    WAIT,
    BackgroundReader,
    DataError,
    TableRow,
    check_cells,
    quoted,
    read_lines,
    read_once,
    read_rows,
    record_limit,
    shown,
)

# -------------------------------------------------------------------------------------------------
# CSV and TSV
# -------------------------------------------------------------------------------------------------

HEAD = 20
"""Number of rows from which the layout is determined."""


class TableFile(LayoutSource):
    """Objects from the rows of a table."""

    def records(self) -> Iterator[Record]:
        """Yield the rows as objects."""
        layout = self.layout
        for number, (line, row) in enumerate(islice(self.read_rows(), layout.heading, None)):
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

        def where(i: int) -> str:
            column = layout.columns[layout.objects[i]]
            return f"{self.shown}, line {line}, row {quoted(name)}: the column {quoted(column)}"

        if layout.content not in ("strings", "records"):
            return finite_numbers(cells, where)
        for i, cell in enumerate(cells):
            if not cell.strip():
                raise DataError(f"{where(i)} is empty")
        return (
            dict(zip(self.record_columns, cells, strict=True)) if self.record_columns else cells[0]
        )


def open_table(path: str, format: str, options: Options) -> LayoutSource:
    """Open a CSV or TSV file; `decide_layout` assigns its columns."""
    max_size = options.max_size
    read = partial(read_rows, path, "\t" if format == "tsv" else None, max_size=max_size)
    head: list[TableRow] = []
    once = read_once(path)
    if once:
        rows = BackgroundReader(read())
        head = rows.take(HEAD, wait=WAIT, least=2)  # a heading and an object
    else:
        size = 0
        for row in islice(read(), HEAD):
            head.append(row)
            size += sum(map(len, row[1]))
            if size > record_limit(max_size):
                break
    if not head:
        raise DataError(f"{shown(path)}: is empty")

    def count_rows(limit: int) -> int:
        if once:  # later rows are not known yet: rows are vectors unless specified
            return -1
        return sum(1 for _ in islice(read(), limit))

    first_rows = [row for _, row in head]
    again: Callable[[], Iterator[TableRow]] = (lambda: chain(head, rows)) if once else read
    layout, labels = decide_layout(shown(path), first_rows, options, count_rows)
    if layout.content == "receptors":
        return open_receptors(path, labels, max_size, layout, again, header=True)
    return TableFile(
        path,
        labels,
        max_size,
        layout=layout,
        kind=layout.content,
        read_rows=again,
        record_columns=options.record_columns,
    )


# -------------------------------------------------------------------------------------------------
# JSON lines: one record per line, whose fields are treated like the columns of a table
# -------------------------------------------------------------------------------------------------

NumberedLine = tuple[int, str]  # its number from 1, its text


class JsonLines(LayoutSource):
    """Objects from the fields of JSON records: strings, numbers, or lists of numbers."""

    width: int | None = None
    """Numbers per vector; None: as many as the first one that can be read has."""

    @property
    def understood(self) -> str:
        """How the file was interpreted."""
        layout = self.layout
        if layout.content == "strings" and self.kind != "strings":
            return f"{self.kind} in the field {layout.columns[layout.objects[0]]!r} of JSON lines"
        return f"{layout.describe('field')} of JSON lines"

    def records(self) -> Iterator[Record]:
        """Yield the records as objects."""
        fields = self.layout.columns
        wanted = [fields[i] for i in self.layout.objects]
        labels, names = (
            None if i is None else fields[i] for i in (self.layout.labels, self.layout.names)
        )
        for number, (line, text) in enumerate(self.read_rows()):
            name = str(number)
            try:
                record = _parsed(text, self.shown, line)
                name = name if names is None else _text(record.get(names)) or name
                where = f"{self.shown}, line {line}, record {quoted(name)}"
                found = self._object(record, wanted, where)
            except DataError as error:
                yield self.refused(error, name, line)
                continue
            label = None if labels is None else _text(record.get(labels))
            yield Record(name, found, label, line)

    def _object(self, record: dict[str, Any], fields: list[str], where: str) -> Any:
        for field in fields:
            if field not in record:
                there = quoted(", ".join(record), 80)[1:-1]
                raise DataError(f"{where}: has no field {quoted(field)}; its fields are {there}")
        values = [record[field] for field in fields]
        if self.record_columns:
            for field, value in zip(fields, values, strict=True):
                if value is None:
                    raise DataError(f"{where}: the field {quoted(field)} is empty")
                _refuse_empty(value, field, where)
            return dict(zip(self.record_columns, values, strict=True))
        if self.kind == "strings":
            text, field = values[0], fields[0]
            if not isinstance(text, str):
                raise DataError(
                    f"{where}: the field {quoted(field)} contains {_excerpt(text)}, not a string"
                )
            _refuse_empty(text, field, where)
            return text
        return self._numbers(values, fields, where)

    def _numbers(self, values: list[Any], fields: list[str], where: str) -> Any:
        """Return a vector, a row of a matrix, or a series (times, channels)."""
        try:
            several = len(fields) > 1 or _is_number(values[0])
            array = np.array(values if several else values[0], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            array = np.array(np.nan)
        axes = 2 if self.kind == "series" and array.ndim == 2 else 1
        if array.ndim != axes or array.size == 0 or not np.isfinite(array).all():
            raise DataError(
                f"{where}: {', '.join(map(quoted, fields))} contains {_excerpt(values)}, not a "
                f"list of finite numbers"
            )
        if self.kind == "series":
            return array[:, None] if axes == 1 else array
        self.width = self.width or array.size
        if array.size != self.width:
            raise DataError(f"{where}: has {array.size:,} numbers, not {self.width:,}")
        return array


def _refuse_empty(value: Any, field: str, where: str) -> None:
    if isinstance(value, str) and not value.strip():
        raise DataError(f"{where}: the field {quoted(field)} is empty")


def open_json_lines(path: str, options: Options) -> LayoutSource:
    """Open a file of JSON lines; `decide_layout` assigns the fields of its first record."""
    content, max_size = options.content, options.max_size
    read = partial(_filled_lines, path, max_size)
    lines = read()
    first = next(lines, None)
    if first is None:
        raise DataError(f"{shown(path)}: is empty")
    record = _parsed(first[1], shown(path), first[0])
    fields = list(record)
    numeric = [_is_number(value) for value in record.values()]
    layout, labels = decide_layout(shown(path), [fields, fields], options, lambda _: -1, numeric)
    once = read_once(path)
    again: Callable[[], Iterator[NumberedLine]] = (lambda: chain([first], lines)) if once else read
    if layout.content == "receptors":
        rows = partial(_as_rows, again, fields, shown(path))
        return open_receptors(path, labels, max_size, layout, rows)
    kind: ContentKind = layout.content
    example = record[fields[layout.objects[0]]]
    own = options.record_columns
    if len(layout.objects) == 1 and isinstance(example, list) and not own:
        nested = bool(example) and isinstance(example[0], list)
        kind = "series" if nested or content == "series" else "vectors"
        kind = "matrix" if content == "matrix" else kind
        layout = replace(layout, content="strings")  # the numbers are a list in one field
    return JsonLines(
        path, labels, max_size, layout=layout, kind=kind, read_rows=again, record_columns=own
    )


def _as_rows(
    lines: Callable[[], Iterator[NumberedLine]], fields: list[str], path: str
) -> Iterator[tuple[int, list[str] | DataError]]:
    """Yield the fields of each record as the cells of a table; those that it lacks are empty."""
    for line, text in lines():
        try:
            record = _parsed(text, path, line)
        except DataError as error:
            yield line, error
            continue
        others = [name for pair in chain_columns(record) for name in pair if name not in fields]
        if others:
            reason = f"has the field {quoted(others[0])}, which the first record lacks"
            remedy = "give all records the same fields, with null for a missing chain"
            yield line, DataError(f"{path}, line {line}: {reason}; {remedy}")
        else:
            yield line, [_text(record.get(field)) or "" for field in fields]


def _filled_lines(path: str, max_size: int | None) -> Iterator[NumberedLine]:
    for i, text in enumerate(read_lines(path, max_size), 1):
        if text.strip():
            cells = text.count(",") + text.count("[") + text.count("{")
            check_cells(f"{shown(path)}, line {i}", cells, max_size)
            yield i, text


def _parsed(text: str, path: str, line: int) -> dict[str, Any]:
    try:
        record = json.loads(text)
        if "\\u" in text:  # which may stand for half of a surrogate pair
            json.dumps(record, ensure_ascii=False).encode()
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
