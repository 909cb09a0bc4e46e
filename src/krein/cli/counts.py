"""How many objects of a run got which status and label: the summary, and a Kraken report."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from ..core.ranks import PREFIX, rank_code, rank_path
from ..io import DataError
from .messages import printable
from .status import (
    AMBIGUOUS,
    BY_CHANCE,
    CLASSIFIED,
    NOVEL,
    UNREADABLE,
    Row,
    answer_of,
    is_classified,
)
from .terminal import say, warn

MOST_NAMES = 1_000_000
"""Names are remembered up to this number, to find those that occur again."""

Taxon = tuple[str, ...]


class KrakenReport:
    """The number of objects at each label and below it, in the format of Kraken's reports.

    It has six tab-separated columns: share in per cent, objects at or below the label, objects at
    the label, rank, identifier (always 0, since labels have none), and name, indented by depth.
    Taxonomy labels form a tree; `separator` is the sign between their ranks, None for plain labels.

    Examples
    --------
    >>> import sys
    >>> report = KrakenReport(";")
    >>> for label in ["a;b", "a;c", "a;c", None]:
    ...     report.add(label)
    >>> report.write(sys.stdout) # doctest: +NORMALIZE_WHITESPACE
     25.00  1  1  U   0  unclassified
     75.00  3  0  R   0  root
     75.00  3  0  R1  0    a
     50.00  2  2  R2  0      c
     25.00  1  1  R2  0      b
    """

    def __init__(self, separator: str | None = None) -> None:
        self.separator = separator
        self._own: Counter[Taxon] = Counter()
        self._unclassified = 0

    def add(self, label: str | None, n: int = 1) -> None:
        """Count n objects by their label, None if they are unclassified."""
        if label is None:
            self._unclassified += n
        else:
            self._own[tuple(rank_path(label, self.separator)) if self.separator else (label,)] += n

    def write(self, file: IO[str]) -> None:
        """Write the lines, the largest clades first."""
        total = self._unclassified + self._own.total()

        def line(below: int, own: int, rank: str, name: str) -> str:
            share = 100 * below / total if total else 0.0
            return f"{share:6.2f}\t{below}\t{own}\t{rank}\t0\t{name}\n"

        file.write(line(self._unclassified, self._unclassified, "U", "unclassified"))
        file.write(line(self._own.total(), 0, "R", "root"))
        below: Counter[Taxon] = Counter()
        for path, count in self._own.items():
            for depth in range(1, len(path) + 1):
                below[path[:depth]] += count
        for path in _in_order(below):
            bare = PREFIX.sub("", path[-1], count=1) if self.separator else path[-1]
            name = "  " * len(path) + " ".join(bare.split())
            file.write(line(below[path], self._own[path], rank_code(path), name))


def _in_order(below: Counter[Taxon]) -> Iterator[Taxon]:
    """Yield each taxon before its children, and among siblings the largest first."""
    children: defaultdict[Taxon, list[Taxon]] = defaultdict(list)
    for path in sorted(below, key=lambda path: (-below[path], path)):
        children[path[:-1]].append(path)

    def walk(parent: Taxon) -> Iterator[Taxon]:
        for path in children[parent]:
            yield path
            yield from walk(path)

    return walk(())


class Counts:
    """Counts of objects by status, and by label if they are classified."""

    def __init__(self, separator: str | None = None, sizein: bool = False) -> None:
        self.sizein = sizein
        self.by_status: Counter[str] = Counter()
        self.first_reason = ""
        self.by_chance = 0  # ambiguous objects that are no nearer than random ones
        self.selected: Counter[str] = Counter()
        self.by_rank: Counter[str] = Counter()
        self.names: set[str] = set()
        self.repeated: list[str] = []  # names that occur again
        self.report = KrakenReport(separator)

    @property
    def classified(self) -> int:
        """Number of objects that got a label."""
        return sum(self.by_status[status] for status in CLASSIFIED)

    def describe_others(self, threshold: float) -> str:
        """Return the number of objects without a label, by status."""
        below = f"probability below {threshold:.4g}"
        if self.by_chance:
            others = self.by_status[AMBIGUOUS] - self.by_chance
            below = f"{others:,} with a {below}, " if others else ""
            below += f"{self.by_chance:,} no nearer than random objects"
        return ", ".join(
            f"{n:,} {status}{f' ({below})' if status == AMBIGUOUS else ''}"
            for status in (AMBIGUOUS, NOVEL, UNREADABLE)
            if (n := self.by_status[status])
        )

    def say_results(
        self, seconds: float, ranks: Sequence[str], threshold: float, fdr: float | None
    ) -> None:
        """Print how many objects got a label, and why the others did not."""
        total, classified = self.by_status.total(), self.classified
        answered = [name for name in ranks[::-1] if self.by_rank[name]]
        at_ranks = ", ".join(f"{self.by_rank[name]:,} at {name}" for name in answered)
        depths = f": {at_ranks}" if at_ranks else ""
        say("labelled", f"{classified:,} of {total:,} objects in {seconds:.1f} s{depths}", err=True)
        if classified < total:
            say("unlabelled", self.describe_others(threshold), err=True)
        if fdr is not None:
            lists = f"{self.selected['label']:,} labels, {self.selected['novel']:,} novel"
            say("selected", f"{lists}; at most {100 * fdr:g} % errors expected in each", err=True)

    def warn_of_objects(self) -> None:
        """Warn of repeated names and of objects that cannot be read; refuse if none can be."""
        if self.repeated:
            n, first = len(self.repeated), printable(repr(self.repeated[0]), 60)
            warn(f"{n:,} rows have the same name as an earlier one, such as {first}")
        unreadable, total = self.by_status[UNREADABLE], self.by_status.total()
        if unreadable == total:
            raise DataError(self.first_reason)
        if unreadable:
            first = "" if unreadable == 1 else "the first is "
            reason = printable(self.first_reason, 200)
            warn(f"{unreadable:,} of {total:,} objects cannot be read: {first}{reason}")

    def add(self, rows: Iterable[Row]) -> None:
        """Count some rows."""
        for row in rows:
            n = size_of_name(row["name"]) if self.sizein else 1
            if row["name"] in self.names:
                self.repeated.append(row["name"])
            elif len(self.names) < MOST_NAMES:
                self.names.add(row["name"])
            self.by_status[row["status"]] += n
            if row["status"] == UNREADABLE:
                self.first_reason = self.first_reason or row["reason"]
            if row["status"] == AMBIGUOUS and row["reason"] == BY_CHANCE:
                self.by_chance += n
            self.selected.update((row.get("selected") or "").split("|"))
            if row.get("rank") is not None:
                self.by_rank[row["rank"]] += n
            self.report.add(answer_of(row) if is_classified(row) else None, n)


_SIZE = re.compile(r"(?:^|;)size=(\d{1,15})(?=;|$)")


def size_of_name(name: str) -> int:
    """Return how many reads a sequence stands for, as vsearch writes it into the name.

    >>> size_of_name("read7;size=12"), size_of_name("size=3;ee=0.1"), size_of_name("read8")
    (12, 3, 1)
    """
    found = _SIZE.search(name)
    return 1 if found is None else int(found[1])
