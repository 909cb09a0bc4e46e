"""Text files with one record after another: FASTA, FASTQ, lines, and the series of `.ts` files.

The name of a sequence is the first word of its header.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..measures.objects import TimesFirst
from .source import ContentKind, Record, RecordSource, finite_numbers
from .streams import DataError, check_cells, quoted, read_lines, record_limit, too_large


class Fasta(RecordSource):
    """Sequences of a FASTA file: headers after `>`, lines of letters, comments after `;` or `#`."""

    kind: ContentKind = "sequences"
    understood = "sequences in FASTA format"

    def records(self) -> Iterator[Record]:
        """Yield the sequences with the line of their header."""
        header, line, parts, size = None, 0, list[str](), 0
        limit = record_limit(self.max_size)
        for number, text in enumerate(read_lines(self.path, self.max_size), 1):
            text = text.strip()
            if text.startswith(">"):
                if header is not None:
                    yield self._record(header, line, parts)
                header, line, parts, size = text[1:].strip(), number, [], 0
            elif not text or text[0] in ";#":
                continue
            elif header is None:
                raise DataError(
                    f"{self.shown}, line {number}: a FASTA file begins with '>', not with "
                    f"{text[:20]!r}"
                )
            else:
                size += len(text)
                if size > limit:
                    where = f"{self.shown}, line {line}, sequence {quoted(header)}"
                    raise too_large(where, None, limit)
                parts.append(text)
        if header is not None:
            yield self._record(header, line, parts)

    def _record(self, header: str, line: int, parts: list[str]) -> Record:
        name, where = _name(header), f"{self.shown}, line {line}"
        if not name:
            return self.refused(DataError(f"{where}: the sequence has no name"), None, line)
        # blanks within a line group letters, as in GenBank
        sequence = "".join("".join(parts).split())
        if not sequence:
            reason = f"{where}, sequence {quoted(name)}: contains no letters"
            return self.refused(DataError(reason), name, line, header)
        return Record(name, sequence, None, line, header)


class Fastq(RecordSource):
    """Sequences of a FASTQ file, four lines each; the qualities are not used."""

    kind: ContentKind = "sequences"
    understood = "sequences in FASTQ format"

    def records(self) -> Iterator[Record]:
        """Yield the sequences with the line of their header."""
        lines = enumerate(read_lines(self.path, self.max_size), 1)
        for number, text in lines:
            header = text.strip()
            if not header:
                continue
            if not header.startswith("@"):
                raise DataError(
                    f"{self.shown}, line {number}: a FASTQ record begins with '@', not with "
                    f"{header[:20]!r}"
                )
            name = _name(header[1:])
            if not name:
                raise DataError(f"{self.shown}, line {number}: the sequence has no name")
            where = f"{self.shown}, line {number}, sequence {quoted(name)}"
            rest = [part.strip() for _, part in (next(lines, (0, "")) for _ in range(3))]
            sequence, plus, quality = rest
            if not plus.startswith("+"):
                raise DataError(f"{where}: its third line must begin with '+'; is it truncated?")
            wrong = "" if sequence else "contains no letters"
            if len(quality) != len(sequence):
                counts = f"{len(sequence)} letters but {len(quality)} qualities"
                wrong = f"{counts}; is the file truncated?"
            if wrong:
                about = header[1:].strip()
                yield self.refused(DataError(f"{where}: {wrong}"), name, number, about)
                continue
            yield Record(name, sequence, None, number, header[1:].strip())


def _name(header: str) -> str:
    return header.split(maxsplit=1)[0] if header.strip() else ""


class LineFile(RecordSource):
    """Strings, one per line; empty lines are refused, since they are probably a mistake."""

    kind: ContentKind = "strings"
    understood = "strings, one per line"

    def records(self) -> Iterator[Record]:
        """Yield the lines, without their ends."""
        for number, text in enumerate(read_lines(self.path, self.max_size), 1):
            string = text.rstrip("\r\n")
            if not string.strip():
                raise DataError(f"{self.shown}, line {number}: is empty")
            yield Record(None, string, None, number)


class SeriesFile(RecordSource):
    """Series of a `.ts` file of the UEA archive, each an array (times, channels).

        @problemName Gestures
        @univariate false
        @classLabel true wave point
        @data
        0.1,0.2,0.3:1.5,1.4,1.2:wave

    Channels are separated by colons, values by commas; the label comes last. Lengths may differ.
    """

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
