"""Run all benchmarks, or those named: `python -m benchmarks nystrom measures`."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import scipy
import sklearn
from rich.console import Console
from rich.table import Table

import krein

from .provenance import measured

HERE = Path(__file__).parent
ALL = sorted(
    path.stem for path in HERE.glob("[a-z]*.py") if path.stem not in ("provenance", "timing")
)


def main() -> None:
    names = sys.argv[1:] or ALL
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.exit(f"unknown benchmark {unknown[0]}; choose from {', '.join(ALL)}")
    if len(names) > 1:  # one process each, so that each knows which modules it has measured
        for name in names:
            subprocess.run([sys.executable, "-m", "benchmarks", name], check=True)
    else:
        run(names[0])


def run(name: str) -> None:
    """Run one benchmark, print its table and write its file."""
    console = Console(width=130)
    start = time.perf_counter()
    rows = import_module(f"benchmarks.{name}").run()
    seconds = round(time.perf_counter() - start)
    table = Table(title=name, title_justify="left")
    for heading in ("what", "value", "wanted", "how"):
        table.add_column(heading)
    for entry in rows:
        value = f"{entry['value']:.3g} {entry['unit']}"
        table.add_row(entry["name"], value, entry["target"], entry["detail"])
    console.print(table)
    versions = {
        "python": platform.python_version(),
        "krein": krein.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    file = HERE / "results" / f"{name}.json"
    file.parent.mkdir(exist_ok=True)
    found = {"measured": measured() | {"seconds": seconds}, "versions": versions, "rows": rows}
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    console.print(f"written to {file.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
