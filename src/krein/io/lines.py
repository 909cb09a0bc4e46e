"""Lines of text, each an object."""

from __future__ import annotations

from collections.abc import Iterator

from .compression import read_lines
from .errors import DataError
from .labels import Labels
from .source import Record, RecordSource


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
