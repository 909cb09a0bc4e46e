"""Cost against N: CPU seconds and memory of one fit, dense, as published, and in krein.

Points on a checkerboard with the ELM kernel, 50 landmarks (random, or chosen by MEB), one BLAS
thread. Each fit runs in a process of its own. Memory is the peak of the process beyond what it held
before the fit. A method stops before the N whose fit would exceed the limit. Methods that are in
`cost.csv` are not measured again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from krein import IKFD, PCVM
from krein.datasets import make_checkerboard

from .methods import quietly
from .statistics import exponents
from .style import CLASSES, MARKERS, plt, save

M = 50
SIZES = (500, 1000, 2000, 4000, 16_000, 64_000, 256_000, 1_024_000)
RANDOM: dict[str, Any] = {"landmarks": "random", "n_landmarks": M}
METHODS: dict[str, Callable[[], Any]] = {
    "iKFD, dense, text": lambda: IKFD("elm", landmarks="all", solver="paper"),
    "PCVM, dense, text": lambda: PCVM("elm", landmarks="all", solver="paper"),
    "Ny-iKFD, text": lambda: IKFD("elm", solver="paper", **RANDOM),
    "Ny-PCVM, text (Υ on 1 %)": lambda: PCVM("elm", solver="paper", **RANDOM),
    "Ny-PCVM, exact Υ": lambda: PCVM("elm", solver="paper-exact", **RANDOM),
    "Ny-iKFD, krein": lambda: IKFD("elm", **RANDOM),
    "Ny-iKFD, krein, MEB": lambda: IKFD("elm"),
    "Ny-PCVM, krein": lambda: PCVM("elm", **RANDOM),
}


def measure(method: str, n: int) -> dict[str, float]:
    """Fit once in this process; return CPU seconds and MB beyond those before the fit."""
    X, y = make_checkerboard(n, random_state=0)
    clf = METHODS[method]().set_params(n_jobs=1, random_state=0)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    quietly(clf.fit, X, y)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "megabytes": (peak - before) / 1024}


def draw(rows: Sequence[dict[str, str]], folder: Path) -> None:
    """Draw time and memory against N, both logarithmic."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.2))
    slopes = exponents(rows)
    for axis, field, title in (
        (axes[0], "seconds", "CPU seconds of one fit"),
        (axes[1], "megabytes", "memory of one fit, MB"),
    ):
        for place, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
            own = [r for r in rows if r["method"] == method and float(r[field]) > 0]
            n, cost = [float(r["n"]) for r in own], [float(r[field]) for r in own]
            label = f"{method}: N^{slopes[method]:.2f}" if method in slopes else method
            style = {"color": CLASSES[place], "marker": MARKERS[place], "markersize": 5}
            axis.loglog(n, cost, label=label, ls="--" if "text" in method else "-", **style)
        axis.set_title(title, loc="left")
        axis.set_xlabel("N")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    save(figure, folder, "cost")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m paper.cost", description=(__doc__ or "")[:60])
    parser.add_argument("--output", type=Path, default=Path("paper/results"))
    parser.add_argument("--objects", type=int, default=SIZES[-1], help="the largest N")
    parser.add_argument("--limit", type=float, default=100.0, help="CPU seconds of one fit")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]))))
        return
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "cost.csv"
    rows: list[dict[str, str]] = []
    if path.exists():  # of an interrupted run
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    done = {row["method"] for row in rows}
    for method in METHODS:
        for n in () if method in done else SIZES:
            own = [r for r in rows if r["method"] == method]
            if n > options.objects or (own and _expected(own, n) > options.limit):
                break
            command = [sys.executable, "-m", "paper.cost", "--one", method, str(n)]
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            told = subprocess.run(command, env=environment, check=True, capture_output=True).stdout
            row = {"method": method, "n": str(n)} | {
                k: f"{v:.4f}" for k, v in json.loads(told).items()
            }
            rows.append(row)
            print(f"cost: {method}, N = {n:,}: {row['seconds']} s", file=sys.stderr, flush=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ("method", "n", "seconds", "megabytes"))
            writer.writeheader()
            writer.writerows(rows)
    draw(rows, options.output)


def _expected(own: Sequence[dict[str, str]], n: int) -> float:
    """Return the expected seconds at `n`, from the last two sizes and at least linear."""
    (n1, t1), (n0, t0) = ((float(r["n"]), float(r["seconds"])) for r in (own[-1], own[-2:][0]))
    slope = np.log(t1 / t0) / np.log(n1 / n0) if n1 > n0 and t0 > 0 else 1.0
    return float(t1 * (n / n1) ** max(slope, 1.0))


if __name__ == "__main__":
    main()
