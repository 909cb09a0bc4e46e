"""Labels: in the records themselves, in a separate file, or found in names by a pattern.

A table of labels names the objects. FASTA headers of the public databases join several names of a
sequence in one word (`sp|Q00000|PTPS_RAT`, `gi|129295|ref|NP_990483.1|`): accession, entry name,
number. Tables contain one of them, so identifiers are compared in several forms.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

from ..wording import parameter
from .npy import as_labels, load_npy
from .streams import DataError, TableRow, bare_name, close_stream, quoted, read_rows

_JOINED = re.compile(
    r"(?:^|\|)(?:sp|tr|ref|gb|emb|dbj|tpg|tpe|tpd|pir|prf|lcl)\|([^|]*)(?:\|([^|]*))?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"gi\|(\d+)", re.IGNORECASE)
_VERSIONED = re.compile(r"([A-Za-z]\w*\d)\.\d+")


def accession(name: str) -> str:
    """Return the accession in an identifier; one without `|` is returned unchanged.

    >>> accession("sp|Q00000|PTPS_RAT"), accession("gi|129295|ref|NP_990483.1|")
    ('Q00000', 'NP_990483.1')
    """
    found = _JOINED.search(name)
    return found[1] if found and found[1] else name


def unversioned(name: str) -> str:
    """Return the accession without its version.

    >>> unversioned("ref|NP_990483.1|"), unversioned("Q00000")
    ('NP_990483', 'Q00000')
    """
    found = _VERSIONED.fullmatch(accession(name))
    return found[1] if found else accession(name)


def entry_name(name: str) -> str:
    """Return the entry name in an identifier; one without `|` is returned unchanged.

    >>> entry_name("tr|A0A000|A0A000_RAT")
    'A0A000_RAT'
    """
    found = _JOINED.search(name)
    return found[2] if found and found[2] else name


def gi_number(name: str) -> str:
    """Return the GI number of an identifier that begins with one.

    >>> gi_number("gi|129295|ref|NP_990483.1|")
    '129295'
    """
    found = _NUMBER.match(name)
    return found[1] if found else name


FORMS: tuple[Callable[[str], str], ...] = (str, accession, unversioned, entry_name, gi_number)
"""Forms of an identifier, the most exact first: unchanged, and the functions above."""


Stated = Sequence[str | None]  # labels in the records themselves

USUAL_LABELS = ("label", "labels", "class", "family", "target")
"""Usual names of a column of labels."""


class MissingLabelError(DataError):
    """Objects without a label; `n_missing` is their number, of those that were read so far."""

    def __init__(self, message: str, n_missing: int) -> None:
        super().__init__(message)
        self.n_missing = n_missing


class Labels:
    """No labels other than those in the records themselves.

    With `skip`, objects without a label have the label None, and the source leaves them out. It
    also leaves out the classes in `small`.
    """

    small: frozenset[str] = frozenset()

    def __init__(self, skip: bool = False) -> None:
        self.skip = skip

    def without(self, small: Iterable[str]) -> Self:
        """Return labels that leave these classes out."""
        found = copy(self)
        found.small = frozenset(small)
        return found

    def of(
        self, chunk: Any, stated: Stated, headers: Sequence[str] = ()
    ) -> list[str | None] | None:
        """Return the labels of objects, or None if there are none at all.

        `stated` are the labels in the records themselves, `headers` the text next to their names.
        """
        found = self._find(chunk, stated, headers)
        if found is None:
            return [None] * len(chunk) if self.skip else None
        labels = [label.strip() or None if label is not None else None for label in found]
        missing = [i for i, label in enumerate(labels) if label is None]
        if missing and not self.skip:
            first = f"{chunk.where(missing[0])}: {self._why(chunk, missing[0], headers)}"
            raise MissingLabelError(
                f"{first}; {_count(len(missing), len(chunk))} without a label: "
                f"{parameter('skip_unlabelled', True)} leaves them out",
                len(missing),
            )
        return [None if label in self.small else label for label in labels]

    def _find(self, chunk: Any, stated: Stated, headers: Sequence[str]) -> Stated | None:
        """Return the label of each object, None or blank if it has none; None for no labels."""
        return None if all(label is None for label in stated) else stated

    def _why(self, chunk: Any, i: int, headers: Sequence[str]) -> str:
        """Return why the i-th object has no label."""
        return "has no label"

    def finish(self, n: int) -> None:
        """Raise an error if labels are left over after all n objects."""


class PatternLabels(Labels):
    """Labels from FASTA headers or names, found by a regular expression with one group."""

    def __init__(self, pattern: str, skip: bool = False) -> None:
        super().__init__(skip)
        try:
            self.pattern = re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"the label pattern '{pattern}' is not a valid regular expression: {error}"
            ) from None
        if self.pattern.groups != 1:
            raise ValueError(
                f"the label pattern '{pattern}' needs exactly one group, in parentheses, for the "
                f"label; it has {self.pattern.groups}"
            )

    def _find(self, chunk: Any, stated: Stated, headers: Sequence[str]) -> Stated:
        """Return what the group matches in each header, or name where there is no header."""
        texts = (self._text(chunk, i, headers) for i in range(len(chunk)))
        matches = (self.pattern.search(text) for text in texts)
        return [None if match is None else match[1] for match in matches]

    def _text(self, chunk: Any, i: int, headers: Sequence[str]) -> str:
        return (headers[i] if headers else "") or chunk.names[i]

    def _why(self, chunk: Any, i: int, headers: Sequence[str]) -> str:
        text = self._text(chunk, i, headers)
        if self.pattern.search(text) is not None:
            return "has no label"
        return f"the label pattern '{self.pattern.pattern}' does not match {quoted(text)}"


@dataclass(frozen=True)
class _NameColumn:
    """A column of a table, read as names in one of their forms."""

    at: int
    form: Callable[[str], str]
    rows: dict[str, int]  # the first row of each name

    def matches(self, names: Sequence[str]) -> int:
        """Return how many of the names are in the column."""
        return sum(self.form(name) in self.rows for name in names)


class NamedLabels(Labels):
    """Labels by the names of the objects, from a table.

    The names may be in any column except that of the labels, and either side may contain only part
    of the identifiers on the other. The first column and form (`FORMS`) that matches
    every object is used. Objects come in chunks; a form that has failed is not tried again.
    """

    def __init__(
        self, path: str, rows: list[TableRow], column: int | None, skip: bool = False
    ) -> None:
        super().__init__(skip)
        self.path, self.rows, self.column = path, rows, column
        places = [i for i in range(len(rows[0][1])) if i != column]
        backwards = [(i, row) for i, (_, row) in enumerate(rows)][::-1]  # the first row counts
        self._left = [
            _NameColumn(at, form, {form(row[at]): i for i, row in backwards})
            for at in places
            for form in FORMS
        ]
        self._checked: _NameColumn | None = None
        if len(places) == 1:
            self._check(self._left[0])

    def _find(self, chunk: Any, stated: Stated, headers: Sequence[str]) -> Stated:
        """Return the label of each name."""
        counts = [names.matches(chunk.names) for names in self._left]
        best = max(counts)
        left = [names for names, n in zip(self._left, counts, strict=True) if n == best]
        if best < len(chunk) and not self.skip:
            self._left = left
            return [None if self._row(left[0], name) is None else "?" for name in chunk.names]
        if self.column is None:  # the only column that does not contain names
            names = {column.at for column in left}
            others = [i for i in range(len(self.rows[0][1])) if i not in names]
            if len(others) != 1:
                raise _which_column(self.path, self.rows[0][1])
            self.column = others[0]
        chosen = left[0]
        if chosen is not self._checked:
            self._check(chosen)
        self._left = left
        rows = (self._row(chosen, name) for name in chunk.names)
        return [None if row is None else row[self.column] for row in rows]

    def _row(self, names: _NameColumn, name: str) -> list[str] | None:
        at = names.rows.get(names.form(name))
        return None if at is None else self.rows[at][1]

    def _why(self, chunk: Any, i: int, headers: Sequence[str]) -> str:
        """Show both sides: names of objects and names in the table."""
        best, name = self._left[0], chunk.names[i]
        if best.form(name) in best.rows:
            return f"has no label in {self.path}"
        there = [row[best.at] for _, row in self.rows[:3]]
        more = ", …" if len(self.rows) > 3 else ""
        forms = dict.fromkeys(form(name) for form in FORMS)
        return (
            f"has no label in {self.path}, where the names are "
            f"{', '.join(map(quoted, there))}{more} (looked for {' or '.join(map(quoted, forms))})"
        )

    def _check(self, names: _NameColumn) -> None:
        """Raise an error if a name has two labels, or none."""
        assert self.column is not None
        for line, row in self.rows:
            name, label = row[names.at], row[self.column]
            first = self.rows[names.rows[names.form(name)]][1]
            if first[self.column] != label:
                same = "" if first[names.at] == name else f", as {quoted(first[names.at])}"
                raise DataError(
                    f"{self.path}, line {line}: {quoted(name)} already has the label "
                    f"{quoted(first[self.column])}{same}"
                )
            if not label and not self.skip:
                raise DataError(
                    f"{self.path}, line {line}: {quoted(name)} has no label; "
                    f"{parameter('skip_unlabelled', True)} leaves such objects out"
                )
        self._checked = names


class OrderedLabels(Labels):
    """Labels in the order of the objects; a blank one is missing."""

    def __init__(self, path: str, labels: list[str], skip: bool = False) -> None:
        super().__init__(skip)
        self.path, self.labels = path, labels

    def _find(self, chunk: Any, stated: Stated, headers: Sequence[str]) -> Stated:
        """Return the next labels."""
        found = self.labels[chunk.first : chunk.first + len(chunk)]
        return [*found, *[None] * (len(chunk) - len(found))]

    def _why(self, chunk: Any, i: int, headers: Sequence[str]) -> str:
        if chunk.first + i < len(self.labels):
            return f"has no label in {self.path}"
        return f"has no label; {self.path} contains {len(self.labels)} labels"

    def finish(self, n: int) -> None:
        """Raise an error if labels are left over after all n objects."""
        if n < len(self.labels):
            raise DataError(
                f"{self.path}: contains {len(self.labels)} labels for {n} objects"
                + ("; is its first line a header?" if n + 1 == len(self.labels) else "")
            )


def find_labels(
    labels: str | None, pattern: str | None, max_size: int | None = None, skip: bool = False
) -> Labels:
    """Return the source of labels: a file, a pattern, or the records themselves.

    With `skip`, objects without a label are left out.
    """
    if labels is not None and pattern is not None:
        raise ValueError("labels come from a column, a file or a pattern: use only one of them")
    if pattern is not None:
        return PatternLabels(pattern, skip)
    return Labels(skip) if labels is None else read_labels(labels, max_size, skip)


def is_label_file(labels: str) -> bool:
    """Whether `labels` is a file, optionally with a column: `labels.csv:family`."""
    return _is_file(_file_and_column(labels)[0])


def _is_file(path: str) -> bool:
    """Whether the path is a file or a pipe."""
    return os.path.exists(path) and not os.path.isdir(path)


def _file_and_column(labels: str) -> tuple[str, str | None]:
    path, _, column = labels.rpartition(":")
    return (path, column) if not _is_file(labels) and _is_file(path) else (labels, None)


def split_labels(labels: str | None, columns: Sequence[str]) -> tuple[str | None, str | None]:
    """Return `labels` as a column, by name or number, or as a file; the other one is None.

    If it is neither, it is returned as a column: the error then lists the existing ones.
    """
    if labels is None or not is_label_file(labels):
        return labels, None
    is_number = labels.isdecimal() and 1 <= int(labels) <= len(columns)
    return (labels, None) if labels in columns or is_number else (None, labels)


def read_labels(labels: str, max_size: int | None = None, skip: bool = False) -> Labels:
    """Read a file of labels completely into memory."""
    path, column = _file_and_column(labels)
    if not _is_file(path):
        raise DataError(
            f"{path}: there is no such file of labels (it needs two columns, name and label, or "
            f"one line per object)"
        )
    if bare_name(path).endswith(".npy"):
        found = as_labels(load_npy(path, max_size), path)
        missing = [i for i, label in enumerate(found) if not label]
        if missing and not skip:
            raise DataError(f"{path}, object {missing[0]}: has no label")
        return OrderedLabels(path, found, skip)
    close_stream(path)
    rows = list(read_rows(path, None, empty=True, max_size=max_size))
    while rows and not "".join(rows[-1][1]).strip():
        del rows[-1]  # empty lines at the end are not labels
    if not rows:
        raise DataError(f"{path}: is empty")
    width = max(len(rows[0][1]), 1)
    if width == 1 and column is None:
        cells = [_only_cell(path, line, row, skip) for line, row in rows]
        return OrderedLabels(path, cells, skip)
    table: list[TableRow] = []
    for line, row in rows:
        if not row:
            continue  # labels are matched by name
        if len(row) != width:
            raise DataError(f"{path}, line {line}: has {len(row)} fields, but line 1 has {width}")
        table.append((line, [cell.strip() for cell in row]))
    return NamedLabels(path, table, _column(path, rows[0][1], column), skip)


def _only_cell(path: str, line: int, row: list[str], skip: bool) -> str:
    if len(row) > 1:
        raise DataError(f"{path}, line {line}: has {len(row)} fields, but the first line has 1")
    if not "".join(row).strip() and not skip:
        raise DataError(
            f"{path}, line {line}: is blank, so an object has no label; labels are matched by order"
        )
    return "".join(row).strip()


def _column(path: str, heading: Sequence[str], column: str | None) -> int | None:
    """Return the index of the label column; None if the names will determine it."""
    called = [cell.strip() for cell in heading]
    if column is not None:
        if column in called:
            return called.index(column)
        raise DataError(
            f"{path}: there is no column {column!r}; the columns are {', '.join(called)}"
        )
    if len(called) == 2:
        return 1
    usual = [i for i, cell in enumerate(called) if cell.lower() in USUAL_LABELS]
    if len(usual) > 1:
        raise _which_column(path, called)
    return usual[0] if usual else None


def _which_column(path: str, heading: Sequence[str]) -> DataError:
    return DataError(
        f"{path}: which column contains the labels? The columns are {', '.join(heading)}; "
        f"write {path}:COLUMN"
    )


def _count(n: int, total: int) -> str:
    """Return "1 of 5 objects is" or "2 of 5 objects are"."""
    return f"{n:,} of {total:,} objects {'is' if n == 1 else 'are'}"
