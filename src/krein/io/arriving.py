"""Items of a pipe as they arrive, without waiting for more."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")

WAIT = 0.2
"""Maximum seconds to wait for more items."""

AHEAD = 4096
"""Number of items read ahead."""


class Arriving(Iterator[Item], Generic[Item]):
    """An iterator read by a separate thread, so that waiting for its items can be limited.

    An error of the iterator is raised once all items before it have been taken.

    Examples
    --------
    >>> from krein.io.arriving import Arriving
    >>> items = Arriving("abcde")
    >>> items.take(3, wait=1.0), list(items)
    (['a', 'b', 'c'], ['d', 'e'])
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items
        self._read: deque[Item] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = self._closed = False
        self._error: BaseException | None = None

    def __next__(self) -> Item:
        found = self.take(1)
        if not found:
            raise StopIteration
        return found[0]

    def take(self, most: int, *, wait: float = 0.0, least: int = 1) -> list[Item]:
        """Return the next items: at most `most`, or fewer if they take longer than `wait` seconds.

        There is no time limit for the first `least` items. An empty list means that no items are
        left.
        """
        if self._thread is None:
            # ending must not wait for a read that blocks
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: len(self._read) >= min(least, most) or self._ended)
            until = time.monotonic() + wait
            while len(self._read) < most and not self._ended:
                left = until - time.monotonic()
                if left <= 0 or len(self._read) >= AHEAD:
                    break
                self._changed.wait(left)
            found = [self._read.popleft() for _ in range(min(most, len(self._read)))]
            self._changed.notify_all()
            if not found and self._error is not None:
                raise self._error
            return found

    def close(self) -> None:
        """Stop reading."""
        with self._changed:
            self._closed = self._ended = True
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            for item in self._items:
                with self._changed:
                    self._changed.wait_for(lambda: len(self._read) < AHEAD or self._closed)
                    if self._closed:
                        return
                    self._read.append(item)
                    self._changed.notify_all()
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
