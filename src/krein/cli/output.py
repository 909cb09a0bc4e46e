"""Write results to the terminal, to standard output, or to a file, atomically."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import stat
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import click

from ..io import DataError
from ..io.atomic import is_stream, written_whole
from ..io.compression import STDIN
from .errors import printable


def say(what: str, value: str, *, err: bool = False) -> None:
    """Print one line of progress, under its heading."""
    # bold disappears if the output is not a terminal
    click.echo(click.style(f"{what:<12}", bold=True) + printable(value, 2000), err=err)


def console(*, err: bool = False) -> Any:
    """Return a rich console that prints text unchanged, without colours unless it is a terminal."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    wide = None if stream.isatty() else 200
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=wide)


def check_target(path: str | None, *, force: bool = True, reads: Sequence[str | None] = ()) -> None:
    """Refuse a file that cannot be written, before the work starts.

    It must not be one of the files that the command reads (`reads`), whatever name is used.
    """
    if path is None:
        return
    if Path(path).is_dir():
        raise DataError(f"{path}: is a folder, not a file")
    for other in reads:
        if other is not None and _is_read(path, other):
            raise click.UsageError(f"{path}: is an input and would be overwritten")
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


def _is_read(path: str, other: str) -> bool:
    """Whether `other` (a file, `labels.csv:column`, or standard input) is the file `path`."""
    try:
        target = os.stat(path)
        if not stat.S_ISREG(target.st_mode):
            return False
        if other == STDIN:
            return os.path.samestat(target, os.fstat(sys.stdin.fileno()))
        found = other if os.path.exists(other) else other.rpartition(":")[0]
        return os.path.samestat(target, os.stat(found))
    except (OSError, ValueError, AttributeError):  # one of them is not a file
        return False


class _Shown(io.TextIOBase):
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

    A file is written under a temporary name, synced and renamed at the end; if anything fails,
    nothing is left of it. `.gz` and `.xz` are compressed.
    """
    if path is None:
        # names and labels are untrusted: a terminal would execute control characters in them
        yield cast(IO[str], _Shown(sys.stdout)) if sys.stdout.isatty() else sys.stdout
        sys.stdout.flush()
        return
    with written_whole(path) as raw:
        packed: Any = raw
        if path.endswith(".gz"):
            packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0)
        elif path.endswith(".xz"):
            packed = lzma.LZMAFile(raw, "wb")  # noqa: SIM115 - closed below, before raw
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        yield text
        text.detach()  # and flush
        if packed is not raw:
            packed.close()


@contextmanager
def warnings_told() -> Iterator[None]:
    """Print Python warnings in the style of the command: one line each on standard error."""
    # the command reports these itself
    from ..measures.given import KindWarning
    from ..measures.likeness import OtherKindWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", KindWarning)
        warnings.simplefilter("ignore", OtherKindWarning)
        yield
    for text in dict.fromkeys(
        str(one.message) for one in caught if issubclass(one.category, UserWarning)
    ):
        click.echo(f"krein: warning: {printable(text, 300)}", err=True)
