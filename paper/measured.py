"""Measured results as table cells, by data set and method."""

from __future__ import annotations

from dataclasses import dataclass

from .folds import TIMES, Row
from .markdown import measured
from .statistics import Comparison, compare

WHO = {
    "paper": "paper's text, here",
    "variant": "with a ridge / pairs of classes, here",
    "ours": "krein",
}


@dataclass(frozen=True)
class Measured:
    """The rows of one CSV file, looked up by data set and method."""

    rows: list[Row]

    def of(self, name: str, method: str) -> list[Row]:
        """Return the rows of a method on a data set, one per fold."""
        return [row for row in self.rows if (row["set"], row["method"]) == (name, method)]

    def pair(self, name: str, a: str, b: str, field: str = "accuracy") -> Comparison | None:
        """Compare two methods on the folds that both have."""
        left = {row["fold"]: row[field] for row in self.of(name, a)}
        right = {row["fold"]: row[field] for row in self.of(name, b)}
        both = sorted(set(left) & set(right))
        if not both:
            return None
        return compare([left[k] for k in both], [right[k] for k in both])

    def marked(self, name: str, method: str) -> bool:
        """Whether the method differs significantly from its dense form on the same folds."""
        family, rule, *rest = method.split(":")
        if rule == "all":
            return False
        found = self.pair(name, method, ":".join([family, "all", *rest]))
        return found is not None and found.significant

    def cell(
        self, name: str, method: str, field: str = "accuracy", digits: int = 2, mark: bool = False
    ) -> str:
        """Return mean ± standard deviation, with the number of folds if other results have more."""
        rows = self.of(name, method)
        star = mark and self.marked(name, method)
        text = measured(rows, field, digits, star=star)
        most = max((row["fold"] for row in self.rows), default=-1) + 1
        folds = "1 fold" if len(rows) == 1 else f"{len(rows)} folds"
        return f"{text} ({folds})" if 0 < len(rows) < most else text


def seconds(row: Row) -> float:
    """Return the CPU seconds of one fold: landmark selection, fit and prediction."""
    return sum(row[field] for field in TIMES)
