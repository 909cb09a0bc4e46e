"""Tables of hits, as search engines write them: which target each query found, and how well.

BLAST, DIAMOND, MMseqs2, foldseek and vsearch all write one row per hit. Columns are found by their
names (a header, or the line `# Fields:` of BLAST), by the names that the user gives, or because
there are twelve of them, the tabular format of BLAST. A table is read once, block by block.

A hit is as good as its score, the larger the better: bits, identity (as a share), −log10 of the
e-value, or any other column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import Array
from ..wording import parameter
from .streams import (
    BOM,
    DataError,
    expansion_limit,
    open_bytes,
    quoted,
    record_limit,
    shown,
    too_large,
)

BLOCK = 2**22
"""Number of bytes that are read together."""

LEAST_E_VALUE = 1e-180
"""Smaller e-values count as this one: BLAST prints 0.0 below it."""

BLAST = ("query", "target", "identity", "length", "mismatches", "gaps", "query start", "query end",
         "target start", "target end", "evalue", "bits")  # fmt: skip
"""The twelve columns of `-outfmt 6`, `--blast6out` and the default of MMseqs2 and foldseek."""

USUAL = {
    "query": (
        "qseqid", "qacc", "qaccver", "query id", "query acc.", "query acc.ver", "query_id",
        "queryid", "qid", "qname", "query name",
    ),
    "target": (
        "sseqid", "sacc", "saccver", "subject", "subject id", "subject acc.", "subject acc.ver",
        "subject_id", "target_id", "target id", "tid", "tname", "target name", "reference", "hit",
    ),
    "bits": ("bitscore", "bit score", "bit_score"),
    "identity": (
        "pident", "fident", "id", "% identity", "percentage of identical matches", "pid",
        "percent identity", "perc_identity",
    ),
    "evalue": ("e-value", "expected value", "e_value", "eval"),
}  # fmt: skip
"""What the programs call the columns that are needed."""

CANONICAL = {name: ours for ours, names in USUAL.items() for name in (ours, *names)}

SCORES = ("bits", "identity", "evalue")
"""Columns to score hits by, the first that a table has. All work about equally well."""

DISTANCES = ("distance", "dist", "rmsd", "mismatches", "mismatch", "mism", "gaps", "gapopen")
"""Columns of which a smaller value is better."""

HOW_TO_NAME = "name the columns in their order, as in {} query,target,bits"


@dataclass(frozen=True)
class HitLayout:
    """What the columns of a table mean."""

    names: tuple[str, ...]
    delimiter: bytes = b"\t"
    uc: bool = False  # vsearch's cluster format, whose rows have a type

    @property
    def query(self) -> int:
        """The column of the queries."""
        return self.names.index("query")

    @property
    def target(self) -> int:
        """The column of the targets."""
        return self.names.index("target")


UC = HitLayout(
    ("type", "cluster", "length", "identity", "strand", "", "", "alignment", "query", "target"),
    uc=True,
)


def canonical(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of columns, those that are needed under our own names.

    >>> canonical(["qseqid", "sseqid", "Bit score", "qcov"])
    ('query', 'target', 'bits', 'qcov')
    """
    found: list[str] = []
    for name in names:
        plain = name.strip().lower()
        ours = CANONICAL.get(plain, plain)
        found.append(plain if ours in found else ours)
    return tuple(found)


class Cells:
    """The cells of some rows of text: where each begins and ends, found without splitting."""

    def __init__(self, text: bytes, delimiter: bytes, width: int) -> None:
        self.text, self.bytes = text, np.frombuffer(text, dtype=np.uint8)
        breaks = np.flatnonzero((self.bytes == delimiter[0]) | (self.bytes == NEWLINE))
        n = len(breaks) // width
        self.ends = breaks[: n * width].reshape(n, width)
        ended = self.bytes[self.ends[:, -1]] == NEWLINE
        self.even = n * width == len(breaks) == n * (width - 1) + int(ended.sum())
        self.starts = np.empty_like(self.ends)
        self.starts.ravel()[0:1] = 0
        self.starts.ravel()[1:] = self.ends.ravel()[:-1] + 1

    def __len__(self) -> int:
        return len(self.ends)

    def at(self, rows: NDArray[Any]) -> Cells:
        """Return some of the rows."""
        found = copy(self)
        found.starts, found.ends = self.starts[rows], self.ends[rows]
        return found

    def column(self, j: int) -> NDArray[np.bytes_]:
        """Return the cells (n,) of a column."""
        starts, lengths = self.starts[:, j], self.ends[:, j] - self.starts[:, j]
        width = max(int(lengths.max(initial=0)), 1)
        if width * len(starts) > WIDEST * len(self.text):  # one cell is much longer than the others
            return np.array(
                [
                    self.text[a : a + n]
                    for a, n in zip(starts.tolist(), lengths.tolist(), strict=True)
                ],
                dtype=object,
            )
        each = np.arange(width)
        found = self.bytes.take(starts[:, None] + each, mode="clip")
        found[each >= lengths[:, None]] = 0
        return found.view(f"S{width}").ravel()


NEWLINE = 10
WIDEST = 16
"""A column is copied to an array if that takes at most this many times the memory of the text."""


@dataclass(frozen=True)
class HitRows:
    """Some rows of a table."""

    queries: NDArray[np.bytes_]
    targets: NDArray[np.bytes_]
    scores: Array
    without: Sequence[bytes] = ()  # queries of which the table says that they have no hit
    identity: Array | None = None


class HitTable:
    """A table of hits that is read block by block.

    Parameters
    ----------
    path : str
        File, compressed or not, or "-" for standard input.
    columns : sequence of str or None, default=None
        The names of the columns in their order. Default: as the table says, or the twelve of BLAST.
    score : str or None, default=None
        The column to score hits by, by name or by number from 1. Default: bits, identity, or
        e-value, the first that the table has.
    max_size : int or None, default=None
        Maximum number of bytes of a line.

    Examples
    --------
    >>> import os, tempfile
    >>> from krein.io.hits import HitTable
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "hits.tsv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("query\\ttarget\\tbits\\nq1\\tr1\\t80\\nq1\\tr2\\t75.5\\n")
    ...     table = HitTable(path)
    ...     block = next(table.blocks())
    >>> table.score, block.targets.tolist(), block.scores.tolist()
    ('bits', [b'r1', b'r2'], [80.0, 75.5])
    """

    def __init__(
        self,
        path: str,
        *,
        columns: Sequence[str] | None = None,
        score: str | None = None,
        max_size: int | None = None,
    ) -> None:
        self.path, self.max_size = path, max_size
        self.layout: HitLayout | None = None
        if columns is not None:
            self.layout = HitLayout(canonical(columns))
            _require(self.layout, f"{parameter('columns')} names", columns)
        self._wanted = None if score is None else str(score)
        self.score = ""  # the name of the column, once the first row was read
        self.percent = False  # whether identities are percentages, as far as rows were read

    @property
    def has_identity(self) -> bool:
        """Whether there is a column of identities; known once the first row was read."""
        return self.layout is not None and "identity" in self.layout.names

    def blocks(self, *, identity: bool | None = False) -> Iterator[HitRows]:
        """Yield the rows in order, with their identities (None: if there are any)."""
        named: tuple[str, ...] | None = None
        for line, text, comments in self._texts():
            without: list[bytes] = []
            for comment in comments:
                if comment.startswith(b"# Fields:"):
                    named = canonical(comment[9:].decode("utf-8", "replace").split(","))
                elif comment.startswith(b"# Query:"):
                    without += comment[8:].split(maxsplit=1)[:1]
            if text and (self.layout is None or line == 1):
                first, _, rest = text.partition(b"\n")
                if self.layout is None:
                    self.layout, heading = find_layout(first, named, self.path)
                else:
                    heading = self._is_heading(first)
                text, line = (rest, line + 1) if heading else (text, line)
            if self.layout is not None and (text or without):
                yield self._block(text, line, without, identity)

    def _texts(self) -> Iterator[tuple[int, bytes, list[bytes]]]:
        """Yield the rows as text, whole lines of about `BLOCK` bytes, and the comments among them.

        The number of the first line comes first.
        """
        limit, left, line, total = record_limit(self.max_size), b"", 1, 0
        with open_bytes(self.path) as file:
            most = expansion_limit(file, self.path, self.max_size)
            while part := file.read(BLOCK):
                total += len(part)
                if total > most:
                    raise too_large(f"{shown(self.path)}, unpacked", None, int(most))
                text, newline, left = (left + part).rpartition(b"\n")
                if len(left) > limit:
                    raise too_large(f"{shown(self.path)}, line {line}", None, limit)
                if text:
                    yield line, *_rows(text + newline, line == 1)
                line += text.count(b"\n") + len(newline)
            if left:
                yield line, *_rows(left + b"\n", line == 1)

    def _is_heading(self, row: bytes) -> bool:
        """Whether a first row, under columns that the user named, is a header."""
        assert self.layout is not None
        names = canonical(row.decode("utf-8", "replace").split(self.layout.delimiter.decode()))
        return "query" in names and "target" in names

    def _block(
        self, text: bytes, line: int, without: list[bytes], identity: bool | None
    ) -> HitRows:
        assert self.layout is not None
        layout = self.layout
        cells = Cells(text, layout.delimiter, len(layout.names))
        if not cells.even:
            raise self._uneven(text, line)
        if layout.uc:
            kinds = cells.bytes[cells.starts[:, 0]]
            without += cells.at(kinds == ord("N")).column(layout.query).tolist()
            cells = cells.at(kinds == ord("H"))
        targets = cells.column(layout.target)
        if (nothing := targets == b"*").any():  # how vsearch and DIAMOND report a query without one
            without += cells.at(nothing).column(layout.query).tolist()
            cells = cells.at(~nothing)
            targets = targets[~nothing]
        if not self.score and len(cells):
            self.score = self._choose_score(cells)
        scores = self._numbers(cells, self.score, line)
        wanted = self.has_identity if identity is None else identity
        shares = self._numbers(cells, "identity", line) if wanted else None
        for some in (scores if self.score == "identity" else None, shares):
            self.percent |= some is not None and bool(some.max(initial=0.0) > 1)
        queries = cells.column(layout.query)
        return HitRows(queries, targets, self._larger_is_better(scores), without, shares)

    def _choose_score(self, cells: Cells) -> str:
        """Return the column to score hits by: the one that is wanted, or the first of the usual."""
        assert self.layout is not None
        names = self.layout.names
        if self._wanted is not None:
            wanted = canonical([self._wanted])[0]
            if self._wanted.isdecimal() and 1 <= int(self._wanted) <= len(names):
                return names[int(self._wanted) - 1]
            if wanted not in names:
                raise DataError(
                    f"{shown(self.path)}: there is no column {quoted(self._wanted)} to score hits "
                    f"by; the columns are {', '.join(filter(None, names))}"
                )
            return wanted
        for name in SCORES:
            if name not in names:
                continue
            # vsearch has no bits and no e-values, and writes 0 and -1
            if not np.isin(cells.column(names.index(name)), NO_SCORE).all():
                return name
        usual = [name for name in SCORES if name in names]
        if usual:
            return usual[0]
        raise DataError(
            f"{shown(self.path)}: which column scores a hit? There are "
            f"{', '.join(filter(None, names))}; choose one with {parameter('score')}"
        )

    def _larger_is_better(self, scores: Array) -> Array:
        if self.score == "evalue":
            return -np.log10(np.maximum(scores, LEAST_E_VALUE))
        return -scores if self.score in DISTANCES else scores

    def _numbers(self, cells: Cells, name: str, line: int) -> Array:
        """Return the numbers (n,) of a column."""
        assert self.layout is not None
        if not len(cells):
            return np.empty(0)
        if name not in self.layout.names:
            raise DataError(f"{shown(self.path)}: there is no column of identities")
        texts = cells.column(self.layout.names.index(name))
        try:
            found = texts.astype(np.float64)
        except ValueError:
            found = np.array([_number(text) for text in texts.tolist()])
        wrong = ~np.isfinite(found)
        if name == "evalue":
            wrong |= (found < 0) & (found != -1)
        if wrong.any():
            i = int(wrong.argmax())
            start = int(cells.starts[i, 0])
            where = line + cells.text[:start].count(b"\n")
            hint = ""
            if where == 1:
                hint = "; if this row is a header, its columns have unusual names: "
                hint += HOW_TO_NAME.format(parameter("columns"))
            reason = "is negative" if np.isfinite(found[i]) else "is not a number"
            raise DataError(
                f"{shown(self.path)}, line {where}: {quoted(texts[i].decode('utf-8', 'replace'))} "
                f"in the column {name} {reason}{hint}"
            )
        return found

    def _uneven(self, text: bytes, line: int) -> DataError:
        assert self.layout is not None
        wanted = len(self.layout.names)
        for i, row in enumerate(text.split(b"\n")):
            n = row.count(self.layout.delimiter) + 1
            if n != wanted:
                return DataError(
                    f"{shown(self.path)}, line {line + i}: has {n} columns instead of {wanted}; "
                    "was the file cut off?"
                )
        raise AssertionError("all rows have the same number of columns")


NO_SCORE = (b"0", b"-1", b"0.0", b"*")
"""What a column of scores contains if the program does not compute them."""


def _rows(text: bytes, first: bool) -> tuple[bytes, list[bytes]]:
    """Return the rows of whole lines, and the comments among them."""
    if first:
        text = text.removeprefix(BOM)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    if not (text.startswith((b"#", b"\n")) or b"\n#" in text or b"\n\n" in text):
        return text, []
    lines = text.split(b"\n")
    rows = [line for line in lines if line and not line.startswith(b"#")]
    comments = [line for line in lines if line.startswith(b"#")]
    return b"".join(row + b"\n" for row in rows), comments


def _number(cell: bytes) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def find_layout(row: bytes, named: tuple[str, ...] | None, path: str) -> tuple[HitLayout, bool]:
    """Return what the columns mean, and whether the row is a header.

    `named` are the names of the columns in a comment.
    """
    delimiter = b"\t" if b"\t" in row else b","
    cells = row.decode("utf-8", "replace").split(delimiter.decode())
    names = canonical(cells)
    if "query" in names and "target" in names and not any(map(_is_number, cells)):
        return HitLayout(names, delimiter), True
    if named is not None and len(named) == len(cells):
        layout = HitLayout(named, delimiter)
        _require(layout, f"{shown(path)}: the columns are", named)
        return layout, False
    if len(cells) == 10 and cells[0] in "SHCNLD" and cells[4] in "+-.*":
        return UC, False
    if len(cells) == 12 and all(map(_is_number, cells[2:])):
        return HitLayout(BLAST, delimiter), False
    if len(cells) == 12 and not any(map(_is_number, cells)):
        raise DataError(
            f"{shown(path)}: the names of the columns are not those of any search engine; "
            + HOW_TO_NAME.format(parameter("columns"))
        )
    columns = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
    raise DataError(
        f"{shown(path)}: is not a table of hits with the twelve columns of BLAST, and has no "
        f"header: it has {columns}, the first row begins with {quoted(cells[0])}; "
        + HOW_TO_NAME.format(parameter("columns"))
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _require(layout: HitLayout, told: str, names: Iterable[str]) -> None:
    for needed in ("query", "target"):
        if needed not in layout.names:
            raise DataError(f"{told} {', '.join(names)}, of which none is the {needed}")
