"""The files that commands write, or standard output: whole or not at all; and rows of results."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, cast

import click

from ..io import DataError, Source
from ..io.source import as_number
from ..io.streams import STDIN, bare_name, is_stream
from ..io.tables import JsonLines
from ..io.writing import atomic_write
from .messages import printable


def check_target(
    path: str | None,
    *,
    force: bool = True,
    reads: Sequence[str | None] = (),
    writes: Sequence[str | None] = (),
) -> None:
    """Refuse a file that cannot be written, before the work starts.

    It must not be one of the files that the command reads (`reads`) or writes as well (`writes`,
    where None stands for standard output), whatever name is used and whether it exists or not.
    """
    if path is None:
        return
    if path == STDIN:
        raise click.UsageError("-: only rows can be written to standard output; name a file")
    if Path(path).is_dir():
        raise DataError(f"{path}: is a folder, not a file")
    for other in reads:
        if other is not None and _is_same_file(path, other):
            raise click.UsageError(f"{path}: is an input and would be overwritten")
    for other in writes:
        if _is_same_file(path, other):
            raise click.UsageError(f"{path}: is named for two outputs; choose another file for one")
    if is_stream(path):
        if not os.access(path, os.W_OK):
            raise DataError(f"{path}: cannot be written to")
        return
    target = Path(os.path.realpath(path) if os.path.islink(path) else path)
    if not target.parent.is_dir():
        raise DataError(f"{path}: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise DataError(f"{path}: the folder {target.parent} cannot be written to")
    if not force and target.exists():
        raise DataError(f"{path}: already exists; --force replaces it")


def check_report(path: str | None, *, reads: Sequence[str | None] = ()) -> None:
    """Refuse a report that cannot be written, before the work starts."""
    check_target(path, reads=reads)
    if path is not None and find_spec("jinja2") is None:
        raise ModuleNotFoundError(
            'a report needs jinja2: pip install "krein[report]"', name="jinja2"
        )


def _is_same_file(path: str, other: str | None) -> bool:
    """Whether `other` is the file `path`; pipes and devices may be used twice.

    `other` is a file, `labels.csv:column`, standard input, or standard output (None).
    """
    if other not in (None, STDIN) and not os.path.exists(path):
        return os.path.realpath(path) == os.path.realpath(other)
    try:
        target = os.stat(path)
        if not stat.S_ISREG(target.st_mode):
            return False
        if other is None or other == STDIN:
            stream = sys.stdout if other is None else sys.stdin
            return os.path.samestat(target, os.fstat(stream.fileno()))
        found = other if os.path.exists(other) else other.rpartition(":")[0]
        return os.path.samestat(target, os.stat(found))
    except (OSError, ValueError, AttributeError):  # one of them is not a file
        return False


class _SafeTerminal(io.TextIOBase):
    """A terminal on which control characters are shown, not executed."""

    def __init__(self, terminal: IO[str]) -> None:
        self.terminal = terminal

    def write(self, text: str) -> int:
        lines = text.split("\n")
        self.terminal.write("\n".join(printable(line, len(text) * 10) for line in lines))
        return len(text)

    def flush(self) -> None:
        self.terminal.flush()


@contextmanager
def writing(path: str | None) -> Iterator[IO[str]]:
    """Open a file for text, or standard output (None).

    Text is UTF-8, on standard output too, unless it is a terminal, which shows what it cannot
    encode in another way.
    A file is written under a temporary name, synced and renamed at the end; if anything fails,
    nothing is left of it. `.gz` and `.xz` are compressed.
    """
    if path is None:
        # names and labels are untrusted: a terminal would execute control characters in them
        shown = sys.stdout.isatty()
        with suppress(AttributeError):  # a caller in Python may have replaced standard output
            how = {"errors": "backslashreplace"} if shown else {"encoding": "utf-8"}
            sys.stdout.reconfigure(**how)  # type: ignore[union-attr]
        try:
            yield cast(IO[str], _SafeTerminal(sys.stdout)) if shown else sys.stdout
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            if error.errno is None or error.strerror != os.strerror(error.errno):
                raise  # the message names the file
            name = error.filename or "standard output"
            raise OSError(error.errno, error.strerror, name) from error
        return
    with atomic_write(path) as raw:
        packed: Any = raw
        if path.endswith(".gz"):
            packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0)
        elif path.endswith(".xz"):
            packed = lzma.LZMAFile(raw, "wb")  # noqa: SIM115 - closed below, before raw
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        try:
            yield text
            text.detach()  # and flush
            if packed is not raw:
                packed.close()
        except BaseException:
            if packed is not raw:
                with suppress(OSError, ValueError):
                    text.close()  # since Python 3.13, its finaliser would report the error again
            raise


# Rows of results

_ROW_SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".tsv": "tsv", ".tab": "tsv",
    ".csv": "csv",
}  # fmt: skip


def choose_row_format(path: str | None, wanted: str | None, source: Source | None = None) -> str:
    """Return the format of the rows: as requested, or by the suffix of the file, or like the input.

    JSON lines give JSON lines; any other input gives CSV.
    """
    if wanted is not None:
        return wanted
    for suffix, row_format in _ROW_SUFFIXES.items():
        if path is not None and bare_name(path).endswith(suffix):
            return row_format
    return "jsonl" if isinstance(source, JsonLines) else "csv"


class RowWriter:
    """Writes rows under their column names; `write` flushes each chunk before it returns.

    The header is written with the first rows: if these fail, nothing is written.
    """

    def __init__(
        self,
        file: IO[str],
        columns: Sequence[str],
        row_format: str,
        *,
        escape_formulas: bool = False,
        has_header: bool = False,
    ) -> None:
        self.file, self.columns, self.row_format = file, list(columns), row_format
        self._cell = _escaped_cell if escape_formulas else as_cell
        style: dict[str, Any] = {"lineterminator": "\n"}
        if row_format == "tsv":
            style["delimiter"] = "\t"
        self._csv = csv.writer(file, **style)
        self._quoting = csv.writer(file, quoting=csv.QUOTE_ALL, **style)
        self._has_header = has_header

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write some rows, each with a cell for every column."""
        if self.row_format == "jsonl":
            for row in rows:
                self.file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
        else:
            if not self._has_header:
                self.write_cells(self.columns)
                self._has_header = True
            for row in rows:
                self.write_cells(row[name] for name in self.columns)
        self.file.flush()

    def write_cells(self, values: Iterable[Any]) -> None:
        """Write one row of a CSV or TSV file, or its header."""
        cells = [self._cell(value) for value in values]
        # Python up to 3.12 leaves a bare carriage return unquoted, which ends a row
        bare = any(isinstance(cell, str) and "\r" in cell for cell in cells)
        (self._quoting if bare else self._csv).writerow(cells)


def as_cell(value: Any) -> Any:
    """Return a value as it is written in a cell."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6f}" if isinstance(value, float) else value


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a cell that a spreadsheet may run as a formula."""


def _escaped_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet runs: text that looks like a formula gets an apostrophe."""
    if isinstance(value, str) and value.startswith(_FORMULA) and as_number(value) is None:
        return f"'{value}"
    return as_cell(value)
