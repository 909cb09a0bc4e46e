"""Sources of objects: files that are read in chunks, as often as needed.

A source never keeps more than one chunk in memory, unless `read` is called. Every object has a
name, and a position (file and line, or row) for error messages. Labels are strings.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np

from ..compare.cache import CacheError
from .labels import Labels, Unlabelled
from .streams import STDIN, WAIT, Arriving, DataError, quoted, read_lines, shown

Kind = Literal["sequences", "strings", "vectors", "series", "matrix"]

NOUNS: dict[str, str] = {
    "sequences": "sequence",
    "strings": "string",
    "vectors": "row",
    "series": "series",
    "matrix": "row",
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
class Chunk:
    """Some consecutive objects of a source.

    `names` are strings, `objects` a list or an array, `labels` a list of strings or None; `first`
    is the index of the first object among all objects.
    """

    names: list[str]
    objects: Any
    labels: list[str] | None
    first: int
    path: str = ""
    kind: Kind = "strings"
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

    def alone(self, i: int) -> Chunk:
        """Return the i-th object as a chunk of its own."""
        return replace(
            self,
            names=[self.names[i]],
            objects=self.objects[i : i + 1],
            labels=None if self.labels is None else [self.labels[i]],
            first=self.first + i,
            lines=None if self.lines is None else [self.lines[i]],
            unreadable={0: self.unreadable[i]} if i in self.unreadable else {},
        )

    def located(self, error: Exception) -> DataError:
        """Return the error with the position in the chunk replaced by the file and line.

        Measures report `sequence 17 contains …`, where 17 is a position in the chunk.
        """
        message = str(error)
        if isinstance(error, CacheError):
            return DataError(message)  # not caused by the file
        found = re.match(
            r"(?:sequence|string|text|series|image|set|vector|ball|histogram|point) (\d+)"
            r"(?: \(.*?\))?:? (?=\w)",
            message,
            re.DOTALL,
        )
        if found and int(found[1]) < len(self):
            return DataError(f"{self.where(int(found[1]))}: {message[found.end() :]}")
        pair = re.match(r"row object (\d+) and column object (\d+): ", message)
        if pair and int(pair[1]) < len(self):
            return DataError(f"{self.where(int(pair[1]))}: {message[pair.end() :]}")
        return DataError(f"{self.path}: {message}" if self.path else message)


class Source(ABC):
    """Objects of one kind, read in chunks as often as needed (standard input: once).

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
    kind: Kind
    lenient: bool = False
    """Whether a record that cannot be read is passed on as `unreadable` instead of raising an
    error."""

    @abstractmethod
    def chunks(self, size: int) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time (the last chunk may be smaller)."""

    def arriving(self, size: int) -> Iterator[Chunk]:
        """Yield all objects like `chunks`, but those of a pipe as they arrive.

        A chunk of a pipe is returned at most 0.2 s after its first object, however few objects
        there are.
        """
        return self.chunks(size)

    @abstractmethod
    def read(self) -> Chunk:
        """Return all objects in one chunk, in memory unless the file is memory-mapped.

        Two objects with the same name are refused, because a table of results could not tell them
        apart.
        """

    @property
    def rereadable(self) -> bool:
        """Whether the objects can be read a second time."""
        return self.path != STDIN

    @property
    def shown(self) -> str:
        """The name of the file for messages."""
        return shown(self.path)

    @property
    @abstractmethod
    def understood(self) -> str:
        """A description of how the file was interpreted."""


class RecordSource(Source):
    """A source that reads one record after the other."""

    labels: Labels

    def __init__(self, path: str, kind: Kind, labels: Labels, max_size: int | None = None) -> None:
        self.path, self.kind, self.labels, self.max_size = path, kind, labels, max_size
        self._spent = False

    @abstractmethod
    def records(self) -> Iterator[Record]:
        """Yield the records of the file."""

    def refused(self, error: DataError, name: str | None, line: int) -> Record:
        """Return a record with the reason why it has no object, or raise an error if not lenient.

        For readers that know where the next record begins.
        """
        if not self.lenient:
            raise error
        return Record(name, None, None, line, unreadable=str(error))

    def stacked(self, objects: list[Any]) -> Any:
        """Return the objects of a chunk in the form that measures expect: a list or an array."""
        if self.kind in ("vectors", "matrix") and not isinstance(objects[0], str):
            return np.array(objects, dtype=np.float64)
        return objects

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Yield all objects in order, `size` at a time."""
        records = self._begin(size)
        return self._chunks(iter(lambda: list(islice(records, size)), []))

    def arriving(self, size: int) -> Iterator[Chunk]:
        """Yield all objects in order, those of a pipe as they arrive."""
        if self.rereadable:
            yield from self.chunks(size)
            return
        records = Arriving(self._begin(size))
        try:
            yield from self._chunks(iter(lambda: records.take(size, wait=WAIT), []))
        finally:
            records.close()

    def _begin(self, size: int) -> Iterator[Record]:
        if size < 1:
            raise ValueError(f"a chunk must contain at least one object; got size={size}")
        if not self.rereadable and self._spent:
            raise DataError("standard input can be read only once; save it to a file instead")
        self._spent = True
        return self.records()

    def _chunks(self, parts: Iterable[list[Record]]) -> Iterator[Chunk]:
        first = 0
        for part in parts:
            yield self._chunk(part, first)
            first += len(part)
        if first == 0:
            raise DataError(f"{self.shown}: contains no objects")
        self.labels.finish(first)

    def read(self) -> Chunk:
        """Return all objects in one chunk."""
        return whole(self.chunks(2**30))

    def _chunk(self, records: list[Record], first: int) -> Chunk:
        names = [str(first + i) if r.name is None else r.name for i, r in enumerate(records)]
        chunk = Chunk(
            names=names,
            objects=self.stacked(_filled(records)),
            labels=None,
            first=first,
            path=self.shown,
            kind=self.kind,
            lines=_lines(records),
            unreadable={i: r.unreadable for i, r in enumerate(records) if r.unreadable},
        )
        headers, own = [r.about for r in records], [r.label for r in records]
        part = Unlabelled(names, headers, own, first, chunk.where)
        return replace(chunk, labels=self.labels.of(part))


def _filled(records: list[Record]) -> list[Any]:
    """Return the objects, with a neutral placeholder of the same kind for records without one."""
    like = next((r.object for r in records if not r.unreadable), "")
    empty = np.full_like(like, np.nan) if isinstance(like, np.ndarray) else ""
    return [empty if r.unreadable else r.object for r in records]


def _lines(records: list[Record]) -> list[int] | None:
    lines = [record.line for record in records if record.line is not None]
    return lines if len(lines) == len(records) else None


def whole(chunks: Iterable[Chunk]) -> Chunk:
    """Return the only chunk of a source, after checking that its names are unique."""
    (chunk,) = chunks
    seen: dict[str, int] = {}
    for i, name in enumerate(chunk.names):
        if name in seen:
            earlier = chunk.where(seen[name]).removeprefix(f"{chunk.path}, ")
            raise DataError(
                f"{chunk.where(i)}: the name occurs twice ({earlier}); names must be unique"
            )
        seen[name] = i
    return chunk


# -------------------------------------------------------------------------------------------------
# Lines of text, each an object.
# -------------------------------------------------------------------------------------------------


class LineFile(RecordSource):
    """Strings, one per line; empty lines are refused, since they are probably a mistake."""

    def __init__(self, path: str, labels: Labels, max_size: int | None = None) -> None:
        super().__init__(path, "strings", labels, max_size)

    @property
    def understood(self) -> str:
        """How the file was interpreted."""
        return "strings, one per line"

    def records(self) -> Iterator[Record]:
        """Yield the lines, without their ends."""
        for number, text in enumerate(read_lines(self.path, self.max_size), 1):
            string = text.rstrip("\r\n")
            if not string.strip():
                raise DataError(f"{self.shown}, line {number}: is empty")
            yield Record(None, string, None, number)
