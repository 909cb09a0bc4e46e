"""A progress bar for interactive use."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_one_at_a_time = threading.Lock()


class Progress:
    """Counts pairs or passes, and moves the bar if one is shown."""

    def __init__(self, bar: Any = None) -> None:
        self.bar = bar

    def advance(self, more: int) -> None:
        """Record that this many more are done."""
        if self.bar is not None:
            self.bar.advance(self.bar.task_ids[0], more)


@contextmanager
def progress(total: int | None, what: str, verbose: int, unit: str = "pairs") -> Iterator[Progress]:
    """Show a bar with the number of pairs, their rate and the remaining time on standard error.

    If the total is None, the bar shows the number done and the elapsed time. It appears only if
    `verbose` is above 0 and standard error is a terminal, and never inside another bar.
    """
    if not verbose or not sys.stderr.isatty() or not _one_at_a_time.acquire(blocking=False):
        yield Progress()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        ProgressColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(
                f"{task.speed:,.{0 if task.speed > 10 else 1}f} {unit}/s" if task.speed else "",
                style="dim",
            )

    known = total is not None
    bar = RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn() if known else TextColumn(f"{{task.completed:,.0f}} {unit}"),
        Rate(),
        TimeRemainingColumn() if known else TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    try:
        with bar:
            bar.add_task(what, total=total)
            yield Progress(bar)
    finally:
        _one_at_a_time.release()
