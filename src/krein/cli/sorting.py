"""`--classified-out` and `--unclassified-out`: sort the objects into two files, as Kraken does."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any, Protocol

import click

from ..io import Chunk, DataError, Source
from ..io.compression import STDIN, read_lines
from .novelty import is_classified
from .output import writing

Files = dict[bool, IO[str] | None]  # by whether the objects in it are classified


class Sorted(Protocol):
    """Sorts objects into two files."""

    def write(self, chunk: Chunk, rows: Sequence[Sequence[Any]], at: Mapping[str, int]) -> None:
        """Record or write the objects of a chunk, given their rows."""

    def finish(self) -> None:
        """Write what remains after the last chunk."""


class SortedSequences:
    """Writes sequences as FASTA while they are read, each with its label."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def write(self, chunk: Chunk, rows: Sequence[Sequence[Any]], at: Mapping[str, int]) -> None:
        """Write the sequences of a chunk."""
        for name, sequence, row in zip(chunk.names, chunk.objects, rows, strict=True):
            classified = is_classified(row, at)
            file = self.files[classified]
            if file is not None:
                label = f" label={row[at['label']]}" if classified else ""
                file.write(f">{name}{label}\n{sequence}\n")

    def finish(self) -> None:
        """Do nothing: everything has been written."""


class SortedLines:
    """Copies the lines of a text file after all objects have been read.

    The reader records the line on which each object begins; it ends where the next one begins.
    Lines before the first object go to both files.
    """

    def __init__(self, source: Source, files: Files) -> None:
        self.source, self.files = source, files
        self._first, self._classified = array("q"), bytearray()

    def write(self, chunk: Chunk, rows: Sequence[Sequence[Any]], at: Mapping[str, int]) -> None:
        """Record the lines of a chunk."""
        if chunk.lines is None:
            raise DataError(
                f"{chunk.path}: --classified-out and --unclassified-out copy lines, but this is "
                f"not a text file; select the rows by name from the output instead"
            )
        self._first.extend(chunk.lines)
        self._classified.extend(is_classified(row, at) for row in rows)

    def finish(self) -> None:
        """Copy the lines."""
        i, to = -1, [self.files[True], self.files[False]]
        max_size = getattr(self.source, "max_size", None)
        for number, text in enumerate(read_lines(self.source.path, max_size), 1):
            if i + 1 < len(self._first) and number == self._first[i + 1]:
                i += 1
                to = [self.files[bool(self._classified[i])]]
            for file in to:
                if file is not None:
                    file.write(text)


@contextmanager
def sorting(
    source: Source, classified: str | None, unclassified: str | None
) -> Iterator[Sorted | None]:
    """Open the files that objects are sorted into, if any."""
    if classified is None and unclassified is None:
        yield None
        return
    if source.kind != "sequences" and source.path == STDIN:
        raise click.UsageError(
            "--classified-out and --unclassified-out read NEW a second time, unless it is FASTA: "
            "save standard input to a file first"
        )
    with ExitStack() as stack:
        paths = {True: classified, False: unclassified}
        files: Files = {
            which: None if path is None else stack.enter_context(writing(path))
            for which, path in paths.items()
        }
        made = SortedSequences(files) if source.kind == "sequences" else SortedLines(source, files)
        yield made
        made.finish()
