"""Run all tables and figures, or only some of them: `python -m paper table1 figure2`.

A complete run, or the name `results`, then writes RESULTS.md and TRIED.md next to the folder of the
CSV files. If KREIN_DATA is not set, the data sets that require it are left out, and the page says
so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from .folds import Plan
from .results import assemble, tried_page

TABLES = (
    *(f"table{n}" for n in range(1, 8)),
    "three_gaussians",
    "beyond",
    "tried",
)


def names() -> list[str]:
    """Return the scripts in the order in which they run."""
    figures = sorted(path.stem for path in Path(__file__).parent.glob("figure*.py"))
    return [*TABLES, *figures, "cost"]


def chosen(asked: list[str]) -> list[str]:
    """Return the scripts with these names or prefixes; without any, all scripts.

    >>> chosen(["table1"])
    ['table1']
    """
    known = [*names(), "results"]
    found: list[str] = []
    for name in asked:
        same = [k for k in known if k == name] or [k for k in known if k.startswith(f"{name}_")]
        if not same:
            sys.exit(f"no table or figure is called {name}; there are {', '.join(known)}")
        found += same
    return found or known


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m paper", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="table1 … table7, figure…, results (default: all)")
    parser.add_argument("--output", type=Path, default=Plan.output)
    parser.add_argument("--objects", type=int, help="maximum number of objects per data set")
    parser.add_argument("--folds", type=int, default=Plan.folds)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    scripts = chosen(options.names)
    start = time.monotonic()
    for place, name in enumerate(scripts, 1):
        if name == "results":
            continue
        told = f"[{place}/{len(scripts)}] {name}, {(time.monotonic() - start) / 60:.1f} min so far"
        print(told, file=sys.stderr, flush=True)
        command = [sys.executable, "-m", f"paper.{name}", "--output", str(options.output)]
        if options.objects is not None:
            command += ["--objects", str(options.objects)]
        if name in TABLES:
            command += ["--folds", str(options.folds), "--jobs", str(options.jobs)]
        # one core per process: BLAS threads would compete for it
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        if subprocess.run(command, env=environment, check=False).returncode:
            sys.exit(f"{name} failed; finished folds are kept, and the same command resumes")
    if "results" in scripts:
        page = options.output.parent / "RESULTS.md"
        page.write_text(assemble(options.output), encoding="utf-8")
        page.with_name("TRIED.md").write_text(tried_page(options.output), encoding="utf-8")
        print(f"written to {page}", file=sys.stderr)


if __name__ == "__main__":
    main()
