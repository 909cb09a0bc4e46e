"""Keep the results of `make bench` for the site: `make keep-results`.

Copies `benchmarks/results/*.json` to `docs/results/`. They name the commit, the date and the kind
of machine, but no machine and no person.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import readme_table

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Copy all results, and write the table of the README."""
    target = ROOT / "docs" / "results"
    target.mkdir(exist_ok=True)
    files = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    if not files:
        raise SystemExit("there are no results yet: run `make bench` first")
    for path in files:
        shutil.copyfile(path, target / path.name)
        print(f"kept {path.name}")
    readme_table.main()


if __name__ == "__main__":
    main()
