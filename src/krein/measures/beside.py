"""Two objects side by side, as a person would compare them: plain data that a page can draw.

`Measure.beside` returns one of these, with the alignment that the measure itself has found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAME, ALIKE, OTHER, GAP = "|", "+", " ", "-"
"""Marks of an alignment column: the same letter, a similar one, a different one, a gap."""

LONGEST = 600
"""Maximum number of letters of an object shown as text."""


@dataclass(frozen=True)
class Letters:
    """Two strings, column by column: `first` and `second` have `gap` where they have no letter."""

    first: str
    second: str
    marks: str  # one of SAME, ALIKE, OTHER and GAP for each column
    starts: tuple[int, int] = (0, 0)  # the position of the first column in each, from 0
    lengths: tuple[int, int] = (0, 0)  # of both, aligned or not
    gap: str = "-"
    reversed: bool = False
    """Whether `first` is the reverse complement of the given sequence."""

    @property
    def identity(self) -> float:
        """Share of the columns in which both letters are the same."""
        return self.marks.count(SAME) / len(self.marks) if self.marks else 0.0


@dataclass(frozen=True)
class Curves:
    """Two series (times, channels), and which of their times correspond."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    path: NDArray[np.intp]  # (L, 2); empty if the series are too long


@dataclass(frozen=True)
class Pictures:
    """Two images (height, width)."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]


@dataclass(frozen=True)
class Numbers:
    """Two rows of numbers."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]


@dataclass(frozen=True)
class Words:
    """Two objects as text, if nothing else can be shown."""

    first: str
    second: str


Beside = Letters | Curves | Pictures | Numbers | Words


def in_words(a: Any, b: Any) -> Numbers | Words:
    """Return two objects of an unknown kind, as rows of numbers or as text.

    Examples
    --------
    >>> from krein.measures.beside import in_words
    >>> in_words("house", "mouse")
    Words(first='house', second='mouse')
    """
    rows = all(isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "fiub" for x in (a, b))
    if rows and len(a) == len(b):
        return Numbers(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    first, second = (x if isinstance(x, str) else str(x) for x in (a, b))
    return Words(_cut(first), _cut(second))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def edited(a: str, b: str, operations: Iterable[tuple[str, int, int, int, int]]) -> Letters:
    """Return two strings in columns, from operations that turn `a` into `b`.

    Each is (tag, start in a, end in a, start in b, end in b), where the tag is "equal", "replace",
    "delete" or "insert".

    Examples
    --------
    >>> from krein.measures.beside import edited
    >>> edited("house", "hus", [("equal", 0, 1, 0, 1), ("delete", 1, 2, 1, 1),
    ...                         ("equal", 2, 4, 1, 3), ("delete", 4, 5, 3, 3)])
    Letters(first='house', second='h·us·', marks='|-||-', starts=(0, 0), lengths=(5, 3), gap='·', \
reversed=False)
    """
    first, second, marks, gap = [], [], [], "·"
    for tag, i, j, k, l in operations:
        x, y = a[i:j], b[k:l]
        both = min(len(x), len(y))
        first += [x, gap * (len(y) - both)]
        second += [y, gap * (len(x) - both)]
        marks += [(SAME if tag == "equal" else OTHER) * both, GAP * (max(len(x), len(y)) - both)]
    return Letters(
        "".join(first), "".join(second), "".join(marks), lengths=(len(a), len(b)), gap=gap
    )
