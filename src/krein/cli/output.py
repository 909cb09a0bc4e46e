"""Where results go: the terminal, standard output, or a file that appears whole or not at all."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from ..io import DataError
from ..io.atomic import written_whole


def printable(text: str, longest: int = 60) -> str:
    """Return text out of the data so that a terminal only shows it: no control characters."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def say(what: str, value: str, *, err: bool = False) -> None:
    """Print one line of what was done, under its heading."""
    # bold disappears where the output is no terminal
    click.echo(click.style(f"{what:<12}", bold=True) + value, err=err)


def console(*, err: bool = False) -> Any:
    """Return a rich console that prints text as it is, without colours where nobody looks."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    wide = None if stream.isatty() else 200
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=wide)


def check_target(path: str | None, *, force: bool = True) -> None:
    """Refuse a file that could not be written, before the work and not after it."""
    if path is None:
        return
    target = Path(path)
    if target.is_dir():
        raise DataError(f"{path}: is a folder; name a file")
    if not target.parent.is_dir():
        raise DataError(f"{path}: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise DataError(f"{path}: the folder {target.parent} cannot be written to")
    if not force and target.exists():
        raise DataError(f"{path}: is there already; --force replaces it")


@contextmanager
def writing(path: str | None) -> Iterator[IO[str]]:
    """Open a file for text, or standard output (None).

    A file is written under a temporary name, synced and renamed at the end; nothing is left of it
    where something fails. `.gz` and `.xz` are packed.
    """
    if path is None:
        yield sys.stdout
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
