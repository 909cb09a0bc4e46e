"""A report in Kraken's format: the number of objects at each label and below it.

It has six tab-separated columns: share in per cent, objects at or below the label, objects at the
label, rank, identifier (always 0, since labels have none), and name, indented by depth.
Hierarchical labels (`Bacteria;Firmicutes`) form a tree. Objects that are rejected or unreadable
count as unclassified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import IO

Path = tuple[str, ...]
SEPARATOR = ";"


class KrakenReport:
    """Counts of labels.

    Examples
    --------
    >>> import sys
    >>> report = KrakenReport()
    >>> for label in ["a;b", "a;c", "a;c", None]:
    ...     report.add(label)
    >>> report.write(sys.stdout) # doctest: +NORMALIZE_WHITESPACE
     25.00  1  1  U   0  unclassified
     75.00  3  0  R   0  root
     75.00  3  0  R1  0    a
     50.00  2  2  R2  0      c
     25.00  1  1  R2  0      b
    """

    def __init__(self) -> None:
        self._own: Counter[Path] = Counter()
        self._unclassified = 0

    def add(self, label: str | None) -> None:
        """Count an object by its label, None if it is unclassified."""
        if label is None:
            self._unclassified += 1
        else:
            self._own[tuple(part.strip() for part in label.split(SEPARATOR))] += 1

    def write(self, file: IO[str]) -> None:
        """Write the lines, the largest clades first."""
        total = self._unclassified + self._own.total()

        def line(below: int, own: int, rank: str, name: str) -> str:
            share = 100 * below / total if total else 0.0
            return f"{share:6.2f}\t{below}\t{own}\t{rank}\t0\t{name}\n"

        file.write(line(self._unclassified, self._unclassified, "U", "unclassified"))
        file.write(line(self._own.total(), 0, "R", "root"))
        below: Counter[Path] = Counter()
        for path, count in self._own.items():
            for depth in range(1, len(path) + 1):
                below[path[:depth]] += count
        for path in _in_order(below, ()):
            depth = len(path)
            name = "  " * depth + " ".join(path[-1].split())
            file.write(line(below[path], self._own[path], f"R{depth}", name))


def _in_order(below: Counter[Path], parent: Path) -> Iterator[Path]:
    depth = len(parent) + 1
    children = [path for path in below if len(path) == depth and path[:-1] == parent]
    for path in sorted(children, key=lambda path: (-below[path], path)):
        yield path
        yield from _in_order(below, path)
