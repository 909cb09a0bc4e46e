"""JSON lines: one record per line, whose fields are treated like the columns of a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from .compression import STDIN, read_lines, shown
from .errors import DataError, quoted
from .labels import Labels, find_labels, is_label_file
from .layout import Layout, decide
from .limits import cell_limit, too_many
from .source import Kind, Record, RecordSource

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
