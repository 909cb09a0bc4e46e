"""Results as table cells, by data set and method: measured, or kept from an earlier run."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from .folds import TIMES, Row
from .markdown import NONE
from .statistics import Comparison, compare

WHO = {
    "paper": "text",
    "variant": "ridge / pairs",
    "exact": "exact Υ",
    "ours": "krein",
}

EARLIER = "†"
"""Marks a figure of the earlier run."""


@dataclass(frozen=True)
class Result:
    """A figure over the folds of a method; over the seeds of a simulated set, the mean of both."""

    mean: float
    deviation: float | None  # over the folds, averaged over the seeds
    folds: int  # of the first seed
    lowest: float | None = None  # of the means of the seeds
    highest: float | None = None
    earlier: bool = False
    marked: bool = False

    def within(self, target: float, deviation: float) -> bool:
        """Whether the mean differs from a published one by at most the published deviation."""
        return abs(self.mean - target) <= deviation

    def text(self, digits: int = 2, most: int = 10, mark: str = "") -> str:
        """Return the cell: mean ± deviation, the range over the seeds, and how it was measured."""
        told = f"{self.mean:.{digits}f}"
        told += "" if self.deviation is None else f" ± {self.deviation:.{digits}f}"
        told += mark + (EARLIER if self.earlier else "")
        if self.lowest is not None:
            told += f" [{self.lowest:.{digits - 1}f}, {self.highest:.{digits - 1}f}]"
        if self.folds < most:
            told += f" ({self.folds} fold{'s' if self.folds > 1 else ''})"
        return told


def earlier_results(path: Path) -> dict[tuple[str, str, str], Result]:
    """Return the figures of the earlier run, by set, method and field."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (row["set"], row["method"], row["field"]): Result(
                float(row["mean"]),
                float(row["deviation"]) if row["deviation"] else None,
                int(row["folds"]),
                earlier=True,
                marked=row["marked"] == "1",
            )
            for row in csv.DictReader(file)
        }


@dataclass(frozen=True)
class Measured:
    """Rows of CSV files, and earlier figures for what they lack, by data set and method."""

    rows: list[Row]
    earlier: dict[tuple[str, str, str], Result] = field(default_factory=dict)

    @cached_property
    def _found(self) -> dict[tuple[str, str], list[Row]]:
        found: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row["set"], row["method"]), []).append(row)
        return found

    def of(self, name: str, method: str) -> list[Row]:
        """Return the rows of a method on a data set, one per seed and fold."""
        return self._found.get((name, method), [])

    def result(self, name: str, method: str, field: str = "accuracy") -> Result | None:
        """Return the figure, measured if possible."""
        rows = [row for row in self.of(name, method) if not np.isnan(_value(row, field))]
        if not rows:
            return self.earlier.get((name, method, field))
        seeds: dict[int, list[float]] = {}
        for row in rows:
            seeds.setdefault(int(row["seed"]), []).append(_value(row, field))
        means = [float(np.mean(own)) for own in seeds.values()]
        spreads = [float(np.std(own, ddof=1)) for own in seeds.values() if len(own) > 1]
        return Result(
            float(np.mean(means)),
            float(np.mean(spreads)) if spreads else None,
            len(next(iter(seeds.values()))),
            *((min(means), max(means)) if len(means) > 1 else (None, None)),
        )

    def pair(self, name: str, a: str, b: str) -> Comparison | None:
        """Compare the accuracies of two methods: over the folds, or over the means of the seeds."""
        left, right = (
            {(row["seed"], row["fold"]): row["accuracy"] for row in self.of(name, m)}
            for m in (a, b)
        )
        both = sorted(set(left) & set(right))
        if not both:
            return None
        seeds = sorted({seed for seed, _ in both})
        if len(seeds) == 1:
            return compare([left[k] for k in both], [right[k] for k in both])
        means = [
            [float(np.mean([side[k] for k in both if k[0] == seed])) for seed in seeds]
            for side in (left, right)
        ]
        return compare(*means)

    def marked(self, name: str, method: str) -> bool:
        """Whether the method differs significantly from its dense form."""
        family, rule, *rest = method.split(":")
        if rule == "all":
            return False
        found = self.pair(name, method, ":".join([family, "all", *rest]))
        if found is None:
            told = self.result(name, method)
            return told is not None and told.marked
        return found.significant

    def cell(
        self, name: str, method: str, field: str = "accuracy", digits: int = 2, mark: bool = False
    ) -> str:
        """Return mean ± standard deviation, with the number of folds if it is below ten."""
        found = self.result(name, method, field)
        if found is None:
            return NONE
        return found.text(digits, mark="*" if mark and self.marked(name, method) else "")


def _value(row: Row, field: str) -> float:
    return seconds(row) if field == "seconds" else float(row[field])


def seconds(row: Row) -> float:
    """Return the CPU seconds of one fold: landmark selection, fit and prediction."""
    return float(sum(row[field] for field in TIMES))
