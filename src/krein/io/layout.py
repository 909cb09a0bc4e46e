"""Decide which columns of a table are objects, labels and names.

The rules, in order:

1. Columns that the user chooses are used: by name, by number from 1, or for objects by a range of
   numbers, such as "3-10".
2. The first row is a heading if it has a word above numbers, or if no column is numeric.
3. Among the other columns, one called `label`, `class`, `family` or `target` contains labels, and
   one called `id`, `name`, `accession` or nothing contains names.
4. If all remaining columns are numeric, they are a matrix of values if there are as many columns as
   rows; otherwise the rows are vectors.
5. If one column of text remains, or one is called `sequence`, `text` or `word`, it contains the
   objects. In any other case, an error asks the user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Literal

from .errors import DataError
from .labels import USUAL_LABELS

USUAL_NAMES = ("id", "ids", "name", "names", "accession", "")
USUAL_OBJECTS = ("sequence", "seq", "text", "string", "word", "object")
_MISSING = ("", "na", "nan", "null", "none", "?")


@dataclass(frozen=True)
class Layout:
    """The role of each column."""

    columns: list[str]
    heading: bool
    content: Literal["strings", "vectors", "matrix"]
    objects: list[int]
    labels: int | None
    names: int | None

    @property
    def understood(self) -> str:
        """A description of the layout."""
        if self.content == "strings":
            what = f"strings in the column {self.columns[self.objects[0]]!r}"
        elif self.content == "vectors":
            what = f"vectors of {len(self.objects)} numbers, one per row"
        else:
            what = f"rows of {len(self.objects)} values, a matrix"
        for role, at in (("labels", self.labels), ("names", self.names)):
            if at is not None:
                what += f", {role} in {self.columns[at]!r}"
        return what + ("" if self.heading else " (no header)")


def decide(
    shown: str,
    rows: Sequence[Sequence[str]],
    *,
    meant: str | None,
    objects: str | None,
    labels: str | None,
    names: str | None,
    heading: bool | None,
    count_rows: Callable[[int], int],
    numeric: Sequence[bool] | None = None,
) -> Layout:
    """Decide what the columns of a table are, from its first rows.

    `count_rows(limit)` counts the rows of the table, including the heading, up to `limit`.
    `numeric` states for each column whether it consists of numbers, if the file contains types.
    """
    if meant == "series":
        raise ValueError(
            f"{shown}: series must be in .ts, .npy or .npz files; format='vectors' reads rows"
        )
    if len(rows) > 1 and heading is not False and len(rows[0]) == len(rows[1]) - 1:
        rows = [["", *rows[0]], *rows[1:]]  # R omits the corner above the row names
        heading = True
    width = len(rows[0])
    if heading is None:
        heading = _has_heading(rows, [c for c in (objects, labels, names) if c is not None])
        if not heading and meant != "vectors" and _counts_columns(rows[0]):
            # above vectors, such a row is an ordinary object
            square = count_rows(width + 2) == width + 1
            heading = square and (meant == "matrix" or _is_symmetric(rows[1:]))
    columns = [cell.strip() for cell in rows[0]] if heading else [str(i + 1) for i in range(width)]
    data = rows[1:] if heading else rows
    if not data:
        raise DataError(f"{shown}: contains a header but no objects")
    if numeric is None:
        complete = [row for row in data if len(row) == width]
        numeric = [all(is_number(row[i]) for row in complete) for i in range(width)]

    def find(column: str, role: str) -> int:
        if column in columns:
            if columns.count(column) > 1:
                raise DataError(f"{shown}: two columns are called {column!r}; use a column number")
            return columns.index(column)
        if column.isdecimal() and 1 <= int(column) <= width:
            return int(column) - 1
        listed = ", ".join(repr(c) for c in columns[:30]) + (" …" if width > 30 else "")
        raise DataError(
            f"{shown}: there is no column {column!r} for the {role}; the columns are {listed}"
        )

    at_labels = None if labels is None else find(labels, "labels")
    at_names = None if names is None else find(names, "names")
    chosen = [] if objects is None else _chosen(objects, columns, find)
    rest = [i for i in range(width) if i not in (at_labels, at_names, *chosen)]
    if heading:
        if at_labels is None:
            at_labels = _usual(columns, rest, USUAL_LABELS)
            rest = [i for i in rest if i != at_labels]
        if at_names is None and (chosen or len(rest) > 1):
            at_names = _usual(columns, rest, USUAL_NAMES)
            rest = [i for i in rest if i != at_names]
    if chosen:
        content: Literal["strings", "vectors", "matrix"] = "strings"
        if len(chosen) > 1 or meant is not None:
            content = "matrix" if meant == "matrix" else "vectors"
        return Layout(columns, heading, content, chosen, at_labels, at_names)
    if not rest:
        raise DataError(f"{shown}: no column is left for the objects")
    words = [i for i in rest if not numeric[i]]
    if at_names is None and words == rest[:1] and len(rest) > 2:
        at_names, rest, words = words[0], rest[1:], []  # row names before numbers
    if not words:
        square = meant == "matrix"
        if meant is None:
            square = count_rows(len(rest) + 2) - heading == len(rest)
        return Layout(
            columns, heading, "matrix" if square else "vectors", rest, at_labels, at_names
        )
    if meant is not None:
        raise DataError(
            f"{shown}: the column {columns[words[0]]!r} does not consist of numbers; declare it "
            f"with labels= or names=, or choose the numeric columns with objects="
        )
    found = rest[0] if len(rest) == 1 else _usual(columns, rest, USUAL_OBJECTS)
    if found is None:
        listed = ", ".join(repr(columns[i]) for i in rest[:30])
        raise DataError(
            f"{shown}: which column contains the objects? The columns are {listed}; use "
            f"objects=COLUMN "
            f"(and labels=, names=)"
        )
    return Layout(columns, heading, "strings", [found], at_labels, at_names)


def is_number(cell: str) -> bool:
    """Whether a cell is a number or a missing value."""
    if cell.strip().lower() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _has_heading(rows: Sequence[Sequence[str]], named: Sequence[str]) -> bool:
    first = [cell.strip() for cell in rows[0]]
    if any(name in first for name in named):
        return True
    below = rows[1:]
    numbers = [
        bool(below) and all(len(row) > i and is_number(row[i]) for row in below)
        for i in range(len(first))
    ]
    if not any(numbers):
        return not all(is_number(cell) for cell in first)
    # a word, or the empty corner of a table of numbers, above numbers
    return any(
        number and (not is_number(cell) or cell == "")
        for cell, number in zip(first, numbers, strict=True)
    )


def _counts_columns(first: Sequence[str]) -> bool:
    """Whether a row of numbers merely counts the columns."""
    cells = [cell.strip() for cell in first]
    return any(cells == [str(i + k) for i in range(len(cells))] for k in (0, 1))


def _is_symmetric(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first rows could be those of a symmetric matrix."""
    n = len(rows)
    try:
        values = [[float(cell) for cell in row[:n]] for row in rows]
        return n > 1 and all(
            isclose(values[i][j], values[j][i], rel_tol=1e-6, abs_tol=1e-12)
            for i in range(n)
            for j in range(i)
        )
    except (ValueError, IndexError):
        return False


def _usual(columns: Sequence[str], rest: Sequence[int], usual: Sequence[str]) -> int | None:
    """Return the only column among `rest` that has one of the usual names."""
    found = [i for i in rest if columns[i].lower() in usual]
    return found[0] if len(found) == 1 else None


def _chosen(objects: str, columns: Sequence[str], find: Callable[[str, str], int]) -> list[int]:
    if objects in columns:
        return [find(objects, "objects")]
    chosen: list[int] = []
    for part in objects.split(","):
        low, dash, high = part.partition("-")
        numbers = dash and low.isdecimal() and high.isdecimal()
        if part not in columns and numbers and int(low) <= int(high):
            chosen += [find(str(k), "objects") for k in range(int(low), int(high) + 1)]
        else:
            chosen.append(find(part.strip(), "objects"))
    return chosen
