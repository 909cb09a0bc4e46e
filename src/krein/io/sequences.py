"""Sequences and strings: FASTA, FASTQ, and text with one string per line.

The name of a sequence is the first word of its header.
"""

from __future__ import annotations

from collections.abc import Iterator

from .source import ContentKind, Record, RecordSource
from .streams import DataError, quoted, read_lines, record_limit, too_large


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
