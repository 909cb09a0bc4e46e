"""Progress of a run: a bar on a terminal, one line per step otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Shown:
    """The progress of one table."""

    def __init__(self, told: str, bar: Progress | None) -> None:
        self.told, self.bar = told, bar
        self.done = self.total = 0
        if bar is not None:
            bar.add_task(told, total=None)

    def start(self, total: int) -> None:
        """Set the number of steps."""
        self.total = total
        self._update(total=total)

    def say(self, what: str) -> None:
        """Show what is being done."""
        self._update(description=f"{self.told}: {what}")
        if self.bar is None:
            print(f"{self.told}: {what}", file=sys.stderr, flush=True)

    def step(self, what: str) -> None:
        """Show what has been done, and count it."""
        self.done += 1
        self._update(advance=1, description=f"{self.told}: {what}")
        if self.bar is None:
            print(f"{self.told} [{self.done}/{self.total}] {what}", file=sys.stderr, flush=True)

    def _update(self, **changed: object) -> None:
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], **changed)  # type: ignore[arg-type]


@contextmanager
def progress(told: str) -> Iterator[Shown]:
    """Show the steps of `told` on standard error."""
    if not sys.stderr.isatty():
        yield Shown(told, None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield Shown(told, bar)
