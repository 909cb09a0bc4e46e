"""Numbers and tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .folds import Row
from .published import Figure
from .statistics import spread

NONE = "–"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [headings, ["---"] * len(headings), *rows]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text[1] = text[1].replace(" ", "")
    return "\n".join(text)


def figure(value: Figure | None, digits: int = 2) -> str:
    """Return a published figure.

    >>> figure(Figure(83.52, 2.08, True)), figure(None)
    ('83.52 ± 2.08*', '–')
    """
    if value is None:
        return NONE
    deviation = "" if value.deviation is None else f" ± {value.deviation:.{digits}f}"
    return f"{value.mean:.{digits}f}{deviation}{'*' if value.marked else ''}"


def measured(rows: Sequence[Row], field: str, digits: int = 2, star: bool = False) -> str:
    """Return mean ± standard deviation over the folds; `star` adds the mark of significance."""
    values = [row[field] for row in rows if not np.isnan(row[field])]
    return (spread(values, digits) + ("*" if star else "")) if values else NONE


def number(value: float | None, digits: int = 2) -> str:
    """Return a number, or a dash if it is missing."""
    return NONE if value is None or np.isnan(value) else f"{value:.{digits}f}"
