"""Counts of the objects in a run of `krein predict`, by outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .krakenreport import KrakenReport
from .novelty import UNREADABLE, is_classified


class Counts:
    """Counts of objects by outcome."""

    def __init__(self, names: Sequence[str]) -> None:
        self.at = {name: i for i, name in enumerate(names)}
        self.total = self.rejected = self.unreadable = 0
        self.first_reason = ""
        self.report = KrakenReport()

    def add(self, rows: list[list[Any]]) -> None:
        """Count some rows."""
        for row in rows:
            self.total += 1
            unreadable, rejected = row[self.at["status"]] == UNREADABLE, row[self.at["rejected"]]
            if unreadable and not self.unreadable:
                self.first_reason = row[self.at["reason"]]
            self.unreadable += unreadable
            self.rejected += bool(rejected)
            self.report.add(row[self.at["label"]] if is_classified(row, self.at) else None)
