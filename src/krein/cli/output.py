"""Write results to the terminal, to standard output, or to a file, atomically."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import os
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click

from ..compare.progress import in_words
from ..io import DataError, Source
from ..io.source import as_number
from ..io.streams import STDIN, bare_name, is_stream, share_read
from ..io.tables import JsonLines
from ..io.writing import atomic_write, keep_mode, named_writer
from .options import printable

if TYPE_CHECKING:
    from ..core.cascade import Worth

# The terminal


def say(what: str, value: str, *, err: bool = False) -> None:
    """Print one line of progress, under its heading."""
    # bold disappears if the output is not a terminal
    click.echo(click.style(f"{what:<12}", bold=True) + printable(value, 2000), err=err)


def say_worth(worth: Worth | None, model: str = "") -> None:
    """Print what each head and each look of a model is worth on held-out objects."""
    if worth is None:
        return
    model = model and f"{model}: "
    units = ["weight {:.2f}, log-loss {:.3f} alone and {:.3f} without it"]
    units += ["{:.2f}, {:.3f} and {:.3f}"] * len(worth.heads)
    heads = [
        f"{head.name} {unit.format(head.weight, head.alone, head.without)}"
        for head, unit in zip(worth.heads, units, strict=False)
    ]
    if heads:
        say("pool", f"{model}{'; '.join(heads)}")
    units = ["{:.0f} % of objects, {:,.0f} comparisons per prediction so far, log-loss {:.3f}"]
    units += ["{:.0f} %, {:,.0f}, {:.3f}"] * (len(worth.looks) - 1)
    looks = [
        f"{look.name} {unit.format(100 * look.share, look.comparisons, look.log_loss)}"
        for look, unit in zip(worth.looks, units, strict=True)
    ]
    say("looks", f"{model}{'; '.join(looks)}")


def warn(text: str) -> None:
    """Print a warning on standard error."""
    click.echo(f"krein: warning: {text}", err=True)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print Python warnings in the style of the command: one line each on standard error."""
    # the command reports these itself
    from ..data.foreign import ForeignObjectWarning
    from ..measures.precomputed import KindWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", KindWarning)
        warnings.simplefilter("ignore", ForeignObjectWarning)
        yield
    for text in dict.fromkeys(
        str(one.message) for one in caught if issubclass(one.category, UserWarning)
    ):
        warn(printable(text, 300))


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


# Progress

EVERY = 30.0
"""Seconds between two lines about progress, if standard error is not a terminal."""


@contextmanager
def reading_progress(source: Source) -> Iterator[Callable[[int], None]]:
    """Show on standard error how much of a file has been read, and how long the rest will take.

    On a terminal it is a bar, unless rows are shown there, and otherwise a line now and then.
    """
    if sys.stderr.isatty() and not sys.stdout.isatty():
        with _bar(source) as advance:
            yield advance
        return
    start = last = time.monotonic()
    n = 0

    def tell(more: int) -> None:
        nonlocal last, n
        n, now = n + more, time.monotonic()
        if now - last < EVERY:
            return
        last, share = now, share_read(source.path)
        text = f"{n:,} objects"
        if share:
            left = (now - start) * (1 - share) / share
            text += f", {100 * share:.0f} % of {source.shown}, about {in_words(left)} left"
        click.echo(f"krein: {printable(text, 300)}", err=True)

    yield tell if not sys.stderr.isatty() else lambda _: None


@contextmanager
def _bar(source: Source) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.fields[n]:,} objects")]
    columns += [BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, n=0)
        n = 0

        def advance(more: int) -> None:
            nonlocal n
            n += more
            share = share_read(source.path)
            if share is not None:
                bar.update(task, total=1.0, completed=share)
            bar.update(task, n=n)

        yield advance


# Files


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


class Resumable:
    """A file of rows that is kept under a temporary name if the command or the disk stops it.

    Next to `FILE.part`, `FILE.part.json` records what was asked for, and how many rows and bytes
    are complete. The next run with `resume` and the same `asked` continues there.
    """

    def __init__(self, path: str, asked: dict[str, Any], resume: bool) -> None:
        self.path, self.asked = path, asked
        self.part, self.note = f"{path}.part", f"{path}.part.json"
        self.rows = self.size = 0
        if resume:
            self._continue()

    def _continue(self) -> None:
        try:
            with open(self.note, encoding="utf-8") as file:
                noted = json.load(file)
            rows, size, asked = int(noted["rows"]), int(noted["bytes"]), dict(noted["asked"])
            there = os.path.getsize(self.part) >= size
        except (OSError, ValueError, KeyError, TypeError):
            there = False
        if not there:
            raise DataError(f"{self.path}: there is no interrupted run to resume")
        for name, value in self.asked.items():
            if asked.get(name) != value:
                raise DataError(
                    f"{self.part}: was written with another {name}; run the command without "
                    "--resume to start again"
                )
        self.rows, self.size = rows, size

    @contextmanager
    def writing(self) -> Iterator[IO[str]]:
        """Open the file for text, at the end of its complete rows."""
        with named_writer(self.part, self.path, "r+b" if self.rows else "wb") as raw:
            keep_mode(raw, self.path)
            raw.truncate(self.size)
            raw.seek(self.size)
            text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
            try:
                yield text
                text.flush()
                os.fsync(raw.fileno())
            except (KeyboardInterrupt, SystemExit, OSError, MemoryError):  # e.g. a full disk
                if self.rows:
                    warn(f"{self.rows:,} rows are kept in {self.part}; --resume continues there")
                else:
                    self._remove()
                raise
            except BaseException:
                self._remove()
                raise
            finally:
                with suppress(OSError, ValueError):
                    text.detach()
        os.replace(self.part, os.path.realpath(self.path))
        os.unlink(self.note)

    def _remove(self) -> None:
        for path in (self.part, self.note):
            with suppress(OSError):
                os.unlink(path)

    def complete(self, file: IO[str], n: int) -> None:
        """Note that n more rows are complete."""
        file.flush()
        rows, size = self.rows + n, os.fstat(file.fileno()).st_size
        noted = json.dumps({"rows": rows, "bytes": size, "asked": self.asked})
        try:
            with named_writer(f"{self.note}.new", self.note, "wb") as new:
                new.write(noted.encode("utf-8"))
            os.replace(f"{self.note}.new", self.note)
        except BaseException:
            with suppress(OSError):
                os.unlink(f"{self.note}.new")
            raise
        self.rows, self.size = rows, size

    def earlier(self, row_format: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of the interrupted run, as they were written."""
        if not self.rows:
            return
        with open(self.part, "rb") as raw:
            text = io.StringIO(raw.read(self.size).decode("utf-8"), newline="")
        if row_format == "jsonl":
            yield from map(json.loads, text)
            return
        rows = csv.DictReader(text, delimiter="\t" if row_format == "tsv" else ",")
        for row in rows:
            yield {name: cell or None for name, cell in row.items()}


def file_hash(path: str) -> str:
    """Return a hash of the contents of a file."""
    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()


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
