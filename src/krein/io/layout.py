"""The layout of a table: which columns contain the objects, the labels and the names.

This holds for CSV and TSV, for the fields of JSON lines, and for Parquet. The rules, in order:

1. Columns that the user chooses are used: by name, by number from 1, or for objects by a range of
   numbers, such as "3-10". A list of columns gives records.
2. The first row is a heading if it has a word above numbers, or if no column is numeric.
3. Among the other columns, one called `label`, `class`, `family` or `target` contains labels, and
   one called `id`, `name`, `accession` or nothing contains names.
4. If all remaining columns are numeric, they are a matrix of values if there are as many columns as
   rows; otherwise the rows are vectors.
5. If columns are called as V genes and CDR3s of T-cell receptors usually are, they contain the
   objects (`airr`).
6. If one column of text remains, or one is called `sequence`, `text` or `word`, it contains the
   objects. In any other case, an error asks the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isclose
from typing import Any

from ..measures.receptors import chain_columns
from ..wording import parameter
from .labels import USUAL_LABELS, Labels, split_labels
from .source import ContentKind, Options, RecordSource, as_number
from .streams import DataError

USUAL_NAMES = ("id", "ids", "name", "names", "accession", "")
USUAL_OBJECTS = ("sequence", "seq", "text", "string", "word", "object")


@dataclass(frozen=True)
class Layout:
    """The role of each column."""

    columns: list[str]
    heading: bool
    content: ContentKind  # strings, receptors, records, vectors or matrix
    objects: list[int]
    labels: int | None
    names: int | None

    def describe(self, noun: str = "column") -> str:
        """Return a description of the layout."""
        what = {
            "strings": f"strings in the {noun} {self.columns[self.objects[0]]!r}",
            "receptors": f"receptors in the {noun}s {self._named()}",
            "records": f"records of the {noun}s {self._named()}",
            "vectors": f"vectors of {len(self.objects)} numbers, one per row",
            "matrix": f"rows of {len(self.objects)} values, a matrix",
        }[self.content]
        for role, at in (("labels", self.labels), ("names", self.names)):
            if at is not None:
                what += f", {role} in {self.columns[at]!r}"
        return what + ("" if self.heading else " (no header)")

    def _named(self) -> str:
        return ", ".join(repr(self.columns[i]) for i in self.objects)


def decide_layout(
    shown: str,
    rows: Sequence[Sequence[str]],
    options: Options,
    count_rows: Callable[[int], int],
    types: Sequence[bool] | None = None,
) -> tuple[Layout, Labels]:
    """Decide what the columns of a table are, from its first rows, and find the labels.

    `count_rows(limit)` counts the rows of the table, including the heading, up to `limit`. If the
    file contains types, its columns have names, and `types` states for each whether it consists of
    numbers; cells may then be series.
    """
    if types is not None:
        content = None if options.content == "series" else options.content
        options = replace(options, content=content, header=True)
    elif options.content == "series":
        raise ValueError(
            f"{shown}: series must be in .ts, .npy or .npz files; "
            f"{parameter('format', repr('vectors'))} reads rows"
        )
    column, label_file = split_labels(options.labels, [cell.strip() for cell in rows[0]])
    table = _assign(shown, rows, replace(options, labels=column), count_rows, types)
    layout = next(found for recognise in RECOGNISERS if (found := recognise(table)) is not None)
    return layout, options.find_labels(label_file)


@dataclass(frozen=True)
class _Table:
    """A table in which the columns of the objects are still to be found."""

    shown: str
    columns: list[str]
    heading: bool
    options: Options
    count_rows: Callable[[int], int]
    labels: int | None
    names: int | None
    chains: list[str]  # the columns that are called like those of receptors
    chosen: list[int]  # the columns that the user named, or those of receptors
    rest: list[int]  # the columns without a role
    words: list[int]  # those of them that do not consist of numbers

    def layout(self, content: ContentKind, objects: list[int], names: int | None = None) -> Layout:
        """Return the layout, once the objects are known; `names` if it became known with them."""
        at_names = self.names if names is None else names
        return Layout(self.columns, self.heading, content, objects, self.labels, at_names)


def _assign(
    shown: str,
    rows: Sequence[Sequence[str]],
    options: Options,
    count_rows: Callable[[int], int],
    types: Sequence[bool] | None,
) -> _Table:
    """Assign the columns that the user named, and those with usual names."""
    columns, heading, chains, data = _headed(shown, rows, options, count_rows)
    find, width = partial(_find, shown, columns), len(columns)
    labels = None if options.labels is None else find(options.labels, "labels")
    names = None if options.names is None else find(options.names, "names")
    chosen = [find(column, "objects") for column in options.record_columns or chains]
    if options.objects is not None:
        chosen = _chosen(options.objects, columns, find)

    def others() -> list[int]:
        return [i for i in range(width) if i not in (labels, names, *chosen)]

    if heading and labels is None:
        labels = _usual(columns, others(), USUAL_LABELS)
    if heading and names is None and (chosen or len(others()) > 1):
        names = _usual(columns, others(), USUAL_NAMES)
    numeric = types or _are_numeric([row for row in data if len(row) == width], width)
    words = [i for i in others() if not numeric[i]]
    return _Table(
        shown, columns, heading, options, count_rows, labels, names, chains, chosen, others(), words
    )


def _headed(
    shown: str, rows: Sequence[Sequence[str]], options: Options, count_rows: Callable[[int], int]
) -> tuple[list[str], bool, list[str], Sequence[Sequence[str]]]:
    """Return the column names, whether a header gives them, receptor columns, and the other rows.

    Without a header, columns are named by number.
    """
    if len(rows) > 1 and options.header is not False and len(rows[0]) == len(rows[1]) - 1:
        rows = [["", *rows[0]], *rows[1:]]  # R omits the corner above the row names
        options = replace(options, header=True)
    chains = _chain_columns(rows[0], options)
    heading = bool(chains) or _has_heading(rows, options, count_rows)
    if heading and len(rows) == 1:
        raise DataError(f"{shown}: contains a header but no objects")
    if not heading:
        return [str(i + 1) for i in range(len(rows[0]))], False, chains, rows
    return [cell.strip() for cell in rows[0]], True, chains, rows[1:]


def _records(table: _Table) -> Layout | None:
    """Recognise records: the user listed their columns."""
    return table.layout("records", table.chosen) if table.options.record_columns else None


def _receptors(table: _Table) -> Layout | None:
    """Recognise receptors: their columns are called so."""
    return table.layout("receptors", table.chosen) if table.chains else None


def _named_objects(table: _Table) -> Layout | None:
    """Recognise objects in the columns that the user named: several contain numbers."""
    if not table.chosen:
        return None
    several: ContentKind = "vectors" if len(table.chosen) > 1 else "strings"
    return table.layout(table.options.content or several, table.chosen)


def _numbers(table: _Table) -> Layout | None:
    """Recognise a matrix or vectors: nothing but numbers is left, perhaps after row names."""
    rest, words, content = table.rest, table.words, table.options.content
    row_names = table.names is None and words == rest[:1] and len(rest) > 2
    if not rest or (words and not row_names):
        return None
    objects = rest[len(words) :]
    if content is None:
        n_rows = table.count_rows(len(objects) + 2) - table.heading
        content = "matrix" if n_rows == len(objects) else "vectors"
    return table.layout(content, objects, words[0] if words else None)


def _strings(table: _Table) -> Layout:
    """Recognise strings in the only column that is left, or in one with a usual name."""
    columns, rest = table.columns, table.rest
    if not rest:
        raise DataError(f"{table.shown}: no column is left for the objects")
    if table.options.content is not None:
        raise DataError(
            f"{table.shown}: the column {columns[table.words[0]]!r} does not consist of numbers; "
            f"declare it with {parameter('labels')} or {parameter('names')}, or choose the "
            f"numeric columns with {parameter('objects')}"
        )
    found = rest[0] if len(rest) == 1 else _usual(columns, rest, USUAL_OBJECTS)
    if found is None:
        listed = ", ".join(repr(columns[i]) for i in rest[:30])
        raise DataError(
            f"{table.shown}: which column contains the objects? The columns are {listed}; use "
            f"{parameter('objects', 'COLUMN')} (and {parameter('labels')}, {parameter('names')})"
        )
    return table.layout("strings", [found])


RECOGNISERS: tuple[Callable[[_Table], Layout | None], ...] = (
    _records, _receptors, _named_objects, _numbers, _strings,
)  # fmt: skip
"""What a table may contain, in the order in which it is tried; the last one refuses the others."""


def _chain_columns(first: Sequence[str], options: Options) -> list[str]:
    """Return the columns of receptors, if the user asked for nothing else."""
    if options.objects is not None or options.record_columns or options.content is not None:
        return []
    pairs = () if options.header is False else chain_columns(cell.strip() for cell in first)
    return [name for pair in pairs for name in pair]


def _find(shown: str, columns: Sequence[str], column: str, role: str) -> int:
    """Return the place of a column, given by its name or its number from 1."""
    if column in columns:
        if columns.count(column) > 1:
            raise DataError(f"{shown}: two columns are called {column!r}; use a column number")
        return columns.index(column)
    if column.isdecimal() and 1 <= int(column) <= len(columns):
        return int(column) - 1
    listed = ", ".join(repr(c) for c in columns[:30]) + (" …" if len(columns) > 30 else "")
    raise DataError(
        f"{shown}: there is no column {column!r} for the {role}; the columns are {listed}"
    )


def _are_numeric(rows: Sequence[Sequence[str]], width: int) -> list[bool]:
    """Return whether each column consists of numbers; a cell that is not there is none."""
    return [
        all(len(row) > i and as_number(row[i]) is not None for row in rows) for i in range(width)
    ]


def _has_heading(
    rows: Sequence[Sequence[str]], options: Options, count_rows: Callable[[int], int]
) -> bool:
    """Whether the first row names the columns."""
    if options.header is not None:
        return options.header
    first, below = [cell.strip() for cell in rows[0]], rows[1:]
    named = (*options.record_columns, options.objects, options.labels, options.names)
    if any(name in first for name in named):
        return True
    if _looks_like_heading(first, below):
        return True
    if options.content == "vectors" or not _counts_columns(first):
        return False  # above vectors, a row that counts the columns is an ordinary object
    square = count_rows(len(first) + 2) == len(first) + 1
    return square and (options.content == "matrix" or _is_symmetric(below))


def _looks_like_heading(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has a word above numbers, or no column is numeric."""
    numbers = _are_numeric(below, len(first)) if below else [False] * len(first)
    if not any(numbers):
        return not all(as_number(cell) is not None for cell in first)
    # a word, or the empty corner of a table of numbers, above numbers
    return any(
        number and (as_number(cell) is None or cell == "")
        for cell, number in zip(first, numbers, strict=True)
    )


def _counts_columns(first: Sequence[str]) -> bool:
    """Whether a row of numbers merely counts the columns."""
    return any(list(first) == [str(i + k) for i in range(len(first))] for k in (0, 1))


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


@dataclass(eq=False, repr=False, kw_only=True)
class LayoutSource(RecordSource):
    """Objects from the rows of a table; `read_rows` returns the rows from the first one on."""

    layout: Layout
    kind: ContentKind
    read_rows: Callable[[], Iterable[Any]] = tuple
    record_columns: Sequence[str] = ()
    """The names of the cells of a record, if the objects are records."""

    @property
    def understood(self) -> str:
        """How the file was interpreted."""
        return self.layout.describe()
