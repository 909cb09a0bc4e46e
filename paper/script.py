"""Code shared by the table scripts: parse options, measure, write a CSV file, print a summary."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .folds import Plan, Row, Unit, measure, write
from .methods import solver, titled
from .sets import SOURCES, available
from .statistics import spread


def script(
    name: str, told: str | None, units: Callable[[Plan], Sequence[Unit]]
) -> Callable[..., None]:
    """Return the `main` of the table `name`, which measures `units(plan)` into `<name>.csv`."""

    def main(arguments: Sequence[str] | None = None) -> None:
        plan = parse(name, told or "", arguments)
        wanted = list(units(plan))
        for missing in dict.fromkeys(unit.name for unit in wanted if not available(unit.name)):
            print(
                f"{name}: {missing} ({SOURCES[missing].told}) is left out: set KREIN_DATA to the "
                "folder with the data",
                file=sys.stderr,
            )
        rows = measure(wanted, plan)
        write(plan.output / f"{name}.csv", rows)
        summary(name, rows)

    return main


def parse(name: str, told: str, arguments: Sequence[str] | None) -> Plan:
    """Return the plan from the command-line options."""
    parser = argparse.ArgumentParser(
        f"python -m paper.{name}", description=told.splitlines()[0] if told else None
    )
    parser.add_argument("--output", type=Path, default=Plan.output, help="folder of the CSV files")
    parser.add_argument("--objects", type=int, help="maximum number of objects per data set")
    parser.add_argument("--folds", type=int, default=Plan.folds)
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="number of folds that run in parallel"
    )
    parser.add_argument(
        "--kept", action="store_true", help="use only folds that were already measured"
    )
    options = parser.parse_args(arguments)
    return Plan(options.output, options.objects, options.folds, options.jobs, name, options.kept)


def summary(name: str, rows: Sequence[Row]) -> None:
    """Print one line per set and method."""
    table = Table("set", "method", "solver", "accuracy %", "log-loss", "comparisons", title=name)
    for key in dict.fromkeys((row["set"], row["method"]) for row in rows):
        own = [row for row in rows if (row["set"], row["method"]) == key]
        table.add_row(
            key[0],
            titled(key[1]),
            solver(key[1]),
            spread([row["accuracy"] for row in own]),
            spread([row["log_loss"] for row in own], 3),
            f"{sum(row['comparisons'] for row in own) / len(own):.0f}",
        )
    Console(width=120).print(table)
