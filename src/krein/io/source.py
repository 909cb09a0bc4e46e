"""Sources of objects: files that are read in chunks, as often as needed.

A source never keeps more than one chunk in memory, unless `read` is called. Every object has a
name, and a position (file and line, or row) for error messages. Labels are strings. There is one
module of readers for each kind of content: `textfiles`, `tables`, `parquet`, `arrays`; `formats`
chooses among them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..compare.cache import CacheError
from ..measures.objects import take
from .labels import Labels, find_labels
from .streams import (
    WAIT,
    BackgroundReader,
    DataError,
    FileState,
    UnreadableObjectError,
    file_state,
    quoted,
    read_once,
    shown,
)

ContentKind = Literal[
    "sequences", "strings", "receptors", "records", "vectors", "series", "matrix", "hits"
]

NOUNS: dict[str, str] = {
    "sequences": "sequence",
    "strings": "string",
    "receptors": "receptor",
    "records": "record",
    "vectors": "row",
    "series": "series",
    "matrix": "row",
    "hits": "query",
}
"""The noun for one object of each kind."""


class Record(NamedTuple):
    """One object as read from a file."""

    name: str | None  # None: the object is named by its index among all objects
    object: Any
    label: str | None  # as stated in the file itself
    line: int | None = None  # None: the file has no lines
    about: str = ""  # the text for a label pattern; if empty, the name is used
    unreadable: str = ""  # why there is no object; empty if there is one


@dataclass(frozen=True)
class NamedObjects:
    """Consecutive objects of a source that were read together, each with a name.

    `names` are strings, `objects` a list or an array, `labels` a list of strings or None; `first`
    is the index of the first object among all objects.
    """

    names: list[str]
    objects: Any
    labels: list[str] | None
    first: int
    path: str = ""
    kind: ContentKind = "strings"
    lines: Sequence[int] | None = None  # line numbers in the file; None if it has no lines
    unreadable: Mapping[int, str] = field(default_factory=dict)
    """The reasons why some objects cannot be read, by position, if the source is `lenient`."""

    def __len__(self) -> int:
        return len(self.names)

    def where(self, i: int) -> str:
        """Return the file, line and name of the i-th object of the chunk."""
        noun = NOUNS[self.kind]
        if self.lines is None:
            return f"{self.path}, {noun} {self.first + i}" + (
                f" ({quoted(self.names[i])})" if self.names[i] != str(self.first + i) else ""
            )
        return f"{self.path}, line {self.lines[i]}, {noun} {quoted(self.names[i])}"

    def keeping(self, places: Sequence[int]) -> NamedObjects:
        """Return the objects at some positions; of a matrix, also only these columns."""
        kept = np.asarray(places, dtype=np.intp)
        if self.kind == "matrix":
            columns = kept if self.objects.shape[1] == len(self) else slice(None)
            objects = self.objects[kept][:, columns]
        else:
            objects = take(self.objects, kept)
        again = {old: new for new, old in enumerate(places)}
        return replace(
            self,
            names=[self.names[i] for i in places],
            objects=objects,
            labels=None if self.labels is None else [self.labels[i] for i in places],
            lines=None if self.lines is None else [self.lines[i] for i in places],
            unreadable={again[i]: why for i, why in self.unreadable.items() if i in again},
        )

    def with_labels(self, labels: Sequence[str | None] | None, n_before: int) -> NamedObjects:
        """Return the objects with their labels, without those that have none.

        `n_before` is the number of objects before this chunk that have a label.
        """
        if labels is None:
            return self
        places = [i for i, label in enumerate(labels) if label is not None]
        kept = self if len(places) == len(self) else self.keeping(places)
        return replace(kept, labels=[labels[i] for i in places], first=n_before)  # type: ignore[misc]

    def located(self, error: Exception, first: int = 0) -> DataError:
        """Return the error with the position of the object replaced by its file and line.

        The positions in the error count from the object `first` of the chunk.
        """
        if isinstance(error, CacheError):
            return DataError(str(error))  # not caused by the file
        row = getattr(error, "row", None)  # of an object that was refused, or of a pair
        if row is not None and first + row < len(self):
            reason = getattr(error, "reason", str(error))
            return UnreadableObjectError(f"{self.where(first + row)}: {reason}")
        return DataError(f"{self.path}: {error}" if self.path else str(error))


class Source(ABC):
    """Objects of one kind, read in chunks as often as needed (standard input and pipes: once).

    Examples
    --------
    >>> import os, tempfile
    >>> from krein.io import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "words.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("house\\nmouse\\nhaus\\n")
    ...     sizes = [len(chunk.objects) for chunk in open_source(path).chunks(2)]
    ...
    >>> sizes
    [2, 1]
    """

    path: str
    kind: ContentKind
    labels: Labels
    n_unlabelled: int = 0
    """Number of objects that the last complete reading left out, because they have no label or
    belong to a class that is to be left out."""
    lenient: bool = False
    """Whether a record that cannot be read is passed on as `unreadable` instead of raising an
    error."""
    leave_out: Callable[[NamedObjects], Iterable[int]] | None = None
    """Returns the positions of objects in a chunk that are to be left out, such as those that
    cannot be read; they need no label. None: no objects."""
    n_dropped: int = 0
    """Number of objects that `leave_out` left out of the last complete reading."""
    opened: FileState | None = None
    """The state of the file when it was opened; None for a pipe."""

    @abstractmethod
    def chunks(self, size: int) -> Iterator[NamedObjects]:
        """Yield all objects in order, `size` at a time (the last chunk may be smaller)."""

    def stream(self, size: int) -> Iterator[NamedObjects]:
        """Yield all objects like `chunks`, but those of a pipe as they arrive.

        A chunk of a pipe is returned at most 0.2 s after its first object, however few objects
        there are.
        """
        return self.chunks(size)

    @abstractmethod
    def read(self) -> NamedObjects:
        """Return all objects in one chunk, in memory unless the file is memory-mapped.

        A name that occurs again gets a number, so that results can be told apart: "a (2)".
        """

    def _count_left_out(self, n: int, kept: int) -> None:
        """Record how many of n objects were left out; at least one must remain."""
        if kept == 0:
            missing = "can be used" if self.n_dropped else "has a label"
            raise DataError(f"{self.shown}: none of its {n:,} objects {missing}")
        self.n_unlabelled = n - kept - self.n_dropped

    @property
    def rereadable(self) -> bool:
        """Whether the objects can be read a second time."""
        return not read_once(self.path)

    def refuse_changes(self) -> None:
        """Raise an error if the file is no longer the one that was opened.

        Every pass must read the same objects, or a model would belong to neither file.
        """
        if self.opened is not None and file_state(self.path) != self.opened:
            raise DataError(
                f"{self.shown}: has changed since it was opened, and must be read again; run this "
                "again when the file is complete"
            )

    def changed(self, **settings: Any) -> Self:
        """Return a copy of the source with other settings, such as `lenient=True`."""
        found = copy(self)
        for name, value in settings.items():
            setattr(found, name, value)
        return found

    @property
    def shown(self) -> str:
        """The name of the file for messages."""
        return shown(self.path)

    @property
    @abstractmethod
    def understood(self) -> str:
        """A description of how the file was interpreted."""


@dataclass(eq=False, repr=False)
class RecordSource(Source):
    """A source that reads one record after the other."""

    path: str
    labels: Labels
    max_size: int | None = None
    _passes: int = field(default=0, init=False)

    @abstractmethod
    def records(self) -> Iterator[Record]:
        """Yield the records of the file."""

    def refused(
        self, error: DataError, name: str | None, line: int | None, about: str = ""
    ) -> Record:
        """Return a record with the reason why it has no object, or raise an error if not lenient.

        For readers that know where the next record begins.
        """
        if not self.lenient and self.leave_out is None:
            raise UnreadableObjectError(str(error)) from error
        return Record(name, None, None, line, about, unreadable=str(error))

    def chunks(self, size: int) -> Iterator[NamedObjects]:
        """Yield all objects in order, `size` at a time."""
        records = self._begin(size)
        return self._chunks(iter(lambda: list(islice(records, size)), []))

    def stream(self, size: int) -> Iterator[NamedObjects]:
        """Yield all objects in order, those of a pipe as they arrive."""
        if self.rereadable:
            yield from self.chunks(size)
            return
        records = BackgroundReader(self._begin(size))
        try:
            yield from self._chunks(iter(lambda: records.take(size, wait=WAIT), []))
        finally:
            records.close()

    def read(self) -> NamedObjects:
        """Return all objects in one chunk."""
        (chunk,) = self.chunks(2**30)
        return with_unique_names(chunk)

    def _begin(self, size: int) -> Iterator[Record]:
        if size < 1:
            raise ValueError(f"a chunk must contain at least one object; got size={size}")
        if not self.rereadable and self._passes:
            raise DataError(f"{self.shown} can be read only once; save it to a file instead")
        self.refuse_changes()
        self._passes += 1
        return self.records()

    def _chunks(self, parts: Iterable[list[Record]]) -> Iterator[NamedObjects]:
        first, kept, self.n_dropped = 0, 0, 0
        for part in parts:
            chunk = self._chunk(part, first, kept)
            first, kept = first + len(part), kept + len(chunk)
            if len(chunk):
                yield chunk
        if first == 0:
            raise DataError(f"{self.shown}: contains no objects")
        if self._passes > 1:  # nobody compares the objects of a first pass with others
            self.refuse_changes()
        self._count_left_out(first, kept)
        self.labels.finish(first)

    def _chunk(self, records: list[Record], first: int, kept: int) -> NamedObjects:
        """Return the objects that are not left out, with their labels."""
        chunk = self._unlabelled(records, first)
        stated, headers = [r.label for r in records], [r.about for r in records]
        unused = set() if self.leave_out is None else set(self.leave_out(chunk))
        self.n_dropped += len(unused)
        if any(label is not None for label in stated):  # an object without a label is an error
            stated = ["left out" if i in unused else label for i, label in enumerate(stated)]
        labels = self.labels.of(chunk, stated, headers)
        if labels is not None:
            labels = [None if i in unused else label for i, label in enumerate(labels)]
        return chunk.with_labels(labels, kept)

    def _unlabelled(self, records: list[Record], first: int) -> NamedObjects:
        """Return the objects of some records, the first of which has the index `first`."""
        # records without an object get a neutral placeholder of the same kind
        like = next((r.object for r in records if not r.unreadable), "")
        empty = np.full_like(like, np.nan) if isinstance(like, np.ndarray) else ""
        objects: Any = [empty if r.unreadable else r.object for r in records]
        if self.kind in ("vectors", "matrix") and not isinstance(objects[0], str):
            objects = np.array(objects, dtype=np.float64)
        lines = [r.line for r in records if r.line is not None]
        return NamedObjects(
            names=[str(first + i) if r.name is None else r.name for i, r in enumerate(records)],
            objects=objects,
            labels=None,
            first=first,
            path=self.shown,
            kind=self.kind,
            lines=lines if len(lines) == len(records) else None,
            unreadable={i: r.unreadable for i, r in enumerate(records) if r.unreadable},
        )


def with_unique_names(chunk: NamedObjects) -> NamedObjects:
    """Return all objects of a source with unique names: a name that occurs again gets a number.

    >>> with_unique_names(NamedObjects(["a", "b", "a", "a"], ["u", "v", "w", "x"], None, 0)).names
    ['a', 'b', 'a (2)', 'a (3)']
    """
    seen, times, names = set(chunk.names), dict[str, int](), list[str]()
    for name in chunk.names:
        times[name] = times.get(name, 0) + 1
        unique = name
        while times[name] > 1 and (unique := f"{name} ({times[name]})") in seen:
            times[name] += 1
        seen.add(unique)
        names.append(unique)
    return replace(chunk, names=names)


_MISSING = ("", "na", "nan", "null", "none", "?")


def as_number(cell: str) -> float | None:
    """Return a cell as a number, which is NaN for a missing value; None if it is another text."""
    try:
        return float(cell)
    except ValueError:
        return math.nan if cell.strip().lower() in _MISSING else None


def finite_numbers(cells: list[str], where: Callable[[int], str]) -> NDArray[np.float64]:
    """Return cells as numbers; an error names `where` the first is that is not a finite one."""
    try:
        numbers = np.array(cells, dtype=np.float64)
    except ValueError:
        numbers = np.full(len(cells), np.nan)
    if np.isfinite(numbers).all():
        return numbers
    for i, cell in enumerate(cells):
        number = as_number(cell)
        if number is None:
            raise DataError(f"{where(i)} contains {quoted(cell)}, which is not a number")
        if not math.isfinite(number):
            raise DataError(f"{where(i)} contains {quoted(cell)}: a value is missing or infinite")
    raise AssertionError("a list of finite numbers must be converted")


@dataclass(frozen=True)
class Options:
    """What the user asked for in `open_source`, for the readers of tables and arrays."""

    content: ContentKind | None = None  # vectors, series or matrix: the meaning of the numbers
    objects: str | None = None
    labels: str | None = None
    names: str | None = None
    label_pattern: str | None = None
    header: bool | None = None
    max_size: int | None = None
    skip_unlabelled: bool = False
    record_columns: Sequence[str] = ()  # none if the objects are not records

    def find_labels(self, labels: str | None) -> Labels:
        """Return the labels in this file, or those that the pattern finds, or the records' own."""
        return find_labels(labels, self.label_pattern, self.max_size, self.skip_unlabelled)
