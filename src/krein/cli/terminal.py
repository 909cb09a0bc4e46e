"""What a person reads on the terminal: results, warnings, and how far the reading of a file is."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ..compare.progress import Advance, in_words, unseen
from ..io import Source
from ..io.streams import share_read
from .messages import printable

if TYPE_CHECKING:
    from ..core.cascade import Worth


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


EVERY = 30.0
"""Seconds between two lines about progress, if standard error is not a terminal."""


@contextmanager
def reading_progress(source: Source) -> Iterator[Advance]:
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

    yield unseen if sys.stderr.isatty() else tell


@contextmanager
def _bar(source: Source) -> Iterator[Advance]:
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
