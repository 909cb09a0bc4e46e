"""Time series in the text format `.ts` of the UEA archive.

    @problemName Gestures
    @univariate false
    @classLabel true wave point
    @data
    0.1,0.2,0.3:1.5,1.4,1.2:wave

Channels are separated by colons, values by commas; the label comes last. Lengths may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..measures.objects import TimesFirst
from .source import ContentKind, Record, RecordSource, finite_numbers
from .streams import DataError, check_cells, quoted, read_lines


class SeriesFile(RecordSource):
    """Series of a `.ts` file, each an array (times, channels)."""

    kind: ContentKind = "series"
    understood = "time series in .ts format"

    def records(self) -> Iterator[Record]:
        """Yield the series with their lines."""
        lines = (
            (line, text.strip())
            for line, text in enumerate(read_lines(self.path, self.max_size), 1)
            if text.strip() and text.strip()[0] not in "#%"
        )
        labelled, declared = self._read_heading(lines)
        channels = 0
        for number, (line, text) in enumerate(lines):
            where = f"{self.shown}, line {line}, series {number}"
            check_cells(where, text.count(",") + text.count(":"), self.max_size)
            parts = text.split(":")
            label = parts.pop().strip() if labelled else None
            if not parts:
                raise DataError(f"{where}: contains only a label, or no label")
            if label and declared and label not in declared:
                listed = quoted(", ".join(declared[:20]), 80)[1:-1]
                raise DataError(
                    f"{where}: ends in {quoted(label)}, which is not one of the labels that "
                    f"@classLabel names ({listed}); is its label missing?"
                )
            one = _series_values(parts, where)
            if channels and one.shape[1] != channels:
                raise DataError(
                    f"{where}: has {one.shape[1]} channels, but series 0 has {channels}"
                )
            channels = one.shape[1]
            yield Record(None, one, label, line)

    def _read_heading(self, lines: Iterator[tuple[int, str]]) -> tuple[bool, list[str]]:
        """Read the lines up to "@data"; return whether series have labels, and which, if known."""
        labelled, declared = False, list[str]()
        for line, text in lines:
            words = text.split()
            key = words[0].lower()
            if key == "@data":
                return labelled, declared
            if not key.startswith("@"):
                raise DataError(
                    f"{self.shown}, line {line}: a .ts file has lines of '@…' and then "
                    f"'@data'; got {text[:20]!r}"
                )
            if key == "@timestamps" and words[-1].lower() == "true":
                raise DataError(
                    f"{self.shown}, line {line}: series with time stamps are not supported; "
                    f"resample them to equal steps"
                )
            if key in ("@classlabel", "@targetlabel"):
                labelled = len(words) > 1 and words[1].lower() == "true"
                declared = words[2:] if key == "@classlabel" else []
        raise DataError(f"{self.shown}: has no line '@data'")


def _series_values(parts: list[str], where: str) -> Any:
    """Return the (times, channels) values of one series."""
    columns = []
    for channel, part in enumerate(parts):
        place = f"{where}: channel {channel}, time" if len(parts) > 1 else f"{where}: time"
        columns.append(finite_numbers(part.split(","), partial("{} {}".format, place)))
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise DataError(f"{where}: its channels have different lengths, {sorted(lengths)}")
    return np.stack(columns, axis=1).view(TimesFirst)
