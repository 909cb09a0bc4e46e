"""Progress on standard error: a bar on a terminal, and otherwise one line about long work."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0
"""Seconds after which a bar appears, unless the user has asked for one."""

LONG_SECONDS = 10.0
"""Seconds from which on remaining work is announced where no bar can be shown."""

_one_at_a_time = threading.Lock()

Advance = Callable[[int], None]
"""Records that so many more pairs, fits or passes are done."""


def unseen(more: int) -> None:
    """Record nothing: no progress is shown."""


class Bar:
    """A bar that appears when the work has taken long enough, even if nothing was counted yet."""

    def __init__(self, make: Callable[[], Any], wait: float) -> None:
        self.make: Callable[[], Any] | None = make
        self.done = 0
        self.bar: Any = None
        self._lock = threading.Lock()
        self._later = threading.Timer(wait, self.show)
        if wait:
            self._later.daemon = True
            self._later.start()
        else:
            self.show()

    def show(self) -> None:
        """Show the bar."""
        with self._lock:
            if self.make is not None:
                self.bar = self.make()
                self.bar.start()
                self.bar.advance(self.bar.task_ids[0], self.done)

    def advance(self, more: int) -> None:
        """Record that this many more are done."""
        with self._lock:
            self.done += more
            if self.bar is not None:
                self.bar.advance(self.bar.task_ids[0], more)

    def stop(self) -> None:
        """Remove the bar, or the intention to show one."""
        with self._lock:
            self.make = None
            self._later.cancel()
            if self.bar is not None:
                self.bar.stop()


class Announcement:
    """Says once how much work there is and how long it will take, as soon as this can be told."""

    def __init__(self, total: int, what: str, unit: str) -> None:
        self.total, self.work, self.told = total, f"{what} {total:,} {unit}", False
        self.done = 0
        self.first: tuple[float, int] | None = None  # when some were done, and how many
        self._lock = threading.Lock()

    def advance(self, more: int) -> None:
        """Record that this many more are done."""
        with self._lock:
            self.done += more
        if self.first is None:  # these took longer: functions are compiled, objects prepared
            self.first = time.monotonic(), self.done
            return
        spent, done = time.monotonic() - self.first[0], self.done - self.first[1]
        left = spent * (self.total - self.done) / done if done else 0.0
        if spent >= 1.0 and left >= LONG_SECONDS and not self.told:
            self.told = True
            print(f"{self.work}: about {in_words(left)}", file=sys.stderr, flush=True)


def in_words(seconds: float) -> str:
    """Return a duration for a person.

    >>> in_words(42), in_words(720), in_words(9000)
    ('42 s', '12 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress(
    total: int | None, what: str, verbose: int | None, unit: str = "pairs"
) -> Iterator[Advance]:
    """Yield the function that counts what is done, and show how much that is.

    A bar on standard error shows the number of pairs, their rate and the remaining time; the number
    done and the elapsed time if the total is None. It appears only if standard error is a terminal,
    and never inside another bar: at once if `verbose` is above 0, after two seconds if it is None,
    never if it is 0. If standard error is not a terminal and `verbose` is above 0, one line
    announces work that takes longer than about ten seconds.
    """
    asked = verbose is not None and verbose > 0
    terminal = sys.stderr.isatty()
    useful = (asked or verbose is None) if terminal else (asked and total is not None)
    if not useful or not _one_at_a_time.acquire(blocking=False):
        yield unseen
        return
    try:
        if terminal:
            bar = Bar(lambda: _bar(total, what, unit), 0.0 if asked else PATIENCE)
            try:
                yield bar.advance
            finally:
                bar.stop()
        else:
            assert total is not None
            yield Announcement(total, what, unit).advance
    finally:
        _one_at_a_time.release()


def _bar(total: int | None, what: str, unit: str) -> Any:
    from rich import progress as rich
    from rich.console import Console
    from rich.text import Text

    class Rate(rich.ProgressColumn):
        def render(self, task: Any) -> Text:
            digits = 0 if (task.speed or 0) > 10 else 1
            shown = f"{task.speed:,.{digits}f} {unit}/s" if task.speed and unit else ""
            return Text(shown, style="dim")

    known, count = total is not None, f"{{task.completed:,.0f}} {unit}" if unit else ""
    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn() if known else rich.TextColumn(count),
        Rate(),
        rich.TimeRemainingColumn() if known else rich.TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(what, total=total)
    return bar
