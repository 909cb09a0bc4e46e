"""Keep the results of `make bench` for the site: `make keep-results`.

Copies `benchmarks/results/*.json` to `docs/results/`, adding the date and the kind of machine, but
no names of machines or people.
"""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent


def machine() -> str:
    """Return the processor and the number of cores."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    return f"{model}, {os.cpu_count()} cores"


def main() -> None:
    """Copy all results."""
    target = ROOT / "docs" / "results"
    target.mkdir(exist_ok=True)
    files = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    if not files:
        raise SystemExit("there are no results yet: run `make bench` first")
    for path in files:
        kept = json.loads(path.read_text())
        day = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC).date().isoformat()
        kept["measured"] = {"date": day, "machine": machine()}
        text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
        (target / path.name).write_text(text)
        print(f"kept {path.name}")


if __name__ == "__main__":
    main()
