"""Rows of results as CSV, TSV or JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from typing import IO, Any

import click

from ..io import Source
from ..io.compression import bare_name
from ..io.jsonlines import JsonLines

FORMATS = ("csv", "tsv", "jsonl")

_SUFFIXES = {
    (".jsonl", ".ndjson", ".json"): "jsonl",
    (".tsv", ".tab"): "tsv",
    (".csv",): "csv",
}


def row_format(path: str | None, asked: str | None, source: Source | None = None) -> str:
    """Return the format of the rows: as requested, or by the suffix of the file, or like the input.

    JSON lines give JSON lines; any other input gives CSV.
    """
    if asked is not None:
        return asked
    for suffix, how in _SUFFIXES.items():
        if path is not None and bare_name(path).endswith(suffix):
            return how
    return "jsonl" if isinstance(source, JsonLines) else "csv"


def format_option(function: Any) -> Any:
    """`--format` of the rows."""
    return click.option(
        "--format",
        "row_format",
        type=click.Choice(FORMATS),
        help="Format of the rows. Default: by the suffix of -o, else JSON lines if the input is "
        "JSON lines, else CSV.",
    )(function)


class RowWriter:
    """Writes rows under their column names; `write` flushes each chunk before it returns.

    The header is written with the first rows: if these fail, nothing is written.
    """

    def __init__(self, file: IO[str], columns: Sequence[str], how: str) -> None:
        self.file, self.columns, self.how = file, list(columns), how
        style: dict[str, Any] = {"lineterminator": "\n"}
        if how == "tsv":
            style["delimiter"] = "\t"
        self._csv = csv.writer(file, **style)
        self._quoting = csv.writer(file, quoting=csv.QUOTE_ALL, **style)
        self._named = False

    def write(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write some rows."""
        if self.how != "jsonl":
            if not self._named:
                self._csv.writerow(self.columns)
                self._named = True
            for row in rows:
                cells = [_cell(value) for value in row]
                # Python up to 3.12 leaves a bare carriage return unquoted, which ends a row
                bare = any(isinstance(cell, str) and "\r" in cell for cell in cells)
                (self._quoting if bare else self._csv).writerow(cells)
        else:
            for row in rows:
                record = dict(zip(self.columns, row, strict=True))
                self.file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        self.file.flush()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6f}" if isinstance(value, float) else value
