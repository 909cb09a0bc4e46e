"""Run all benchmarks, or those named: `python -m benchmarks nystrom measures`."""

from __future__ import annotations

import json
import platform
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import scipy
import sklearn
from rich.console import Console
from rich.table import Table

import krein

ALL = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "__main__", "timing")
)


def main() -> None:
    names = sys.argv[1:] or ALL
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.exit(f"unknown benchmark {unknown[0]}; choose from {', '.join(ALL)}")
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    console = Console(width=130)
    for name in names:
        rows = import_module(f"benchmarks.{name}").run()
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
        file = folder / f"{name}.json"
        file.write_text(json.dumps({"versions": versions, "rows": rows}, indent=1) + "\n")
        console.print(f"written to {file.relative_to(Path.cwd())}")


main()
