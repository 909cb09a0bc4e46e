"""Draw docs/images/scale.png and write the tables in docs/scale.md, from docs/scale.json.

    python -m benchmarks scale && python docs/draw_scale.py

Only the parts of the page between its markers are rewritten.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from krein.data.partitioned import count_tasks

HERE = Path(__file__).parent
TARGET = 100_000_000
WORKERS = (1, 16, 128, 1024)
MEASURES = {
    "elm": "ELM kernel, vectors with 10 entries",
    "levenshtein": "Levenshtein, words of 10 letters",
    "smith-waterman": "Smith-Waterman, proteins of 300 residues",
}


def wall(found: dict[str, Any], n: float, workers: int, measure: str = "elm") -> float:
    """Return the seconds that the model predicts for the number of partitions krein chooses."""
    work = n * (found["row"] + found["landmarks"] * found["pairs"][measure])
    partitions = count_tasks(work, workers)
    busy = min(workers, partitions)
    return expected(found, n, busy, found["tasks_a_partition"] * partitions, measure)


def expected(
    found: dict[str, Any], n: float, workers: float, tasks: float, measure: str = "elm"
) -> float:
    """Return start + (N / w) · (row + m · pair) + tasks · task."""
    one = found["row"] + found["landmarks"] * found["pairs"][measure]
    return found["start"] + n / workers * one + tasks * found["task"]


def told(seconds: float) -> str:
    """Return a time in the unit a person would use."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def tables(found: dict[str, Any]) -> dict[str, str]:
    """Return the text of each marked part of the page."""
    m = found["landmarks"]
    constants = [
        "| constant | value | what it is |",
        "|---|---|---|",
        f"| start | {found['start']:.2f} s | choosing landmarks, starting the first tasks, "
        "computing the model |",
        f"| row | {1e6 * found['row']:.1f} µs | time per object that is not spent on "
        "pairs: creating it, checking it, adding it to the moments |",
        *(
            f"| pair, {text} | {1e9 * found['pairs'][name]:,.0f} ns | one thread |"
            for name, text in MEASURES.items()
        ),
        f"| task | {1e3 * found['task']:.1f} ms | scheduling one task |",
    ]
    checked = ["| N | workers | measured | model |", "|---|---|---|---|"]
    for r in found["runs"]:
        mark = " (not used to fit the model)" if r["objects"] == found["held_out"] else ""
        model = expected(found, r["objects"], r["workers"], r["tasks"])
        checked.append(
            f"| {r['objects']:,}{mark} | {r['workers']} | {r['seconds']:.2f} s | {model:.2f} s |"
        )
    far = [
        f"| {TARGET:,} objects, m = {m} | "
        + " | ".join(f"{w:,} worker{'s' * (w > 1)}" for w in WORKERS)
        + " |",
        "|---" * (len(WORKERS) + 1) + "|",
    ]
    for name, text in MEASURES.items():
        cells = [told(wall(found, TARGET, w, name)) for w in WORKERS]
        far.append(f"| {text} | " + " | ".join(cells) + " |")
    evaluations = TARGET * m
    sizes = [
        f"| {TARGET:,} objects, m = {m} | |",
        "|---|---|",
        f"| pairs compared | {evaluations:.2g} |",
        f"| sums that each branch of the tree sends, 8 m² | {8 * m * m:,} bytes |",
        "| memory per worker, IKFD and IKQD | a partition, a few blocks of 2 MB, the sums |",
        *(
            f"| memory per worker with {w:,} workers, PCVM: 8 N m / w | "
            f"{8 * TARGET * m / w / 1e9:,.1f} GB |"
            for w in WORKERS[1:]
        ),
    ]
    return {
        "constants": "\n".join(constants),
        "checked": "\n".join(checked),
        "far": "\n".join(far),
        "sizes": "\n".join(sizes),
    }


def page(text: str, parts: dict[str, str]) -> str:
    """Return the page with its marked parts replaced."""
    for name, part in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda m, part=part: m[1] + part + "\n" + m[2], text, flags=re.S)
    return text


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw the measured runs, and the model where it was checked and where it is extrapolated."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np

    runs = found["runs"]
    last = max(r["objects"] for r in runs)
    figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
    axes.axvspan(last, 1.4 * TARGET, color="0.95", zorder=0)
    colours = ("#1b6ca8", "#d1495b", "#66a182", "#8d6a9f", "#444444")
    for colour, w in zip(colours, (1, 2, *WORKERS[1:]), strict=True):
        measured = [r for r in runs if r["workers"] == w]
        label = f"{w:,} worker{'s' * (w > 1)}"
        if measured:
            N, T = zip(*((r["objects"], r["seconds"]) for r in measured), strict=True)
            axes.plot(N, T, "o", color=colour, label=f"{label}, measured")
            model = [expected(found, r["objects"], w, r["tasks"]) for r in measured]
            axes.plot(N, model, "-", color=colour, lw=1)
        beyond = np.geomspace(last, TARGET)
        name = None if measured else f"{label}, extrapolated"
        seconds = [wall(found, n, w) for n in beyond]
        axes.plot(beyond, seconds, "--", color=colour, lw=1.4, label=name)
    axes.set(xscale="log", yscale="log", xlim=(7e3, 1.4 * TARGET))
    axes.set_xlabel("objects N")
    axes.set_ylabel("seconds to fit")
    axes.set_title(f"IKFD on Dask, ELM kernel, {found['landmarks']} landmarks", fontsize=11)
    axes.text(
        TARGET, axes.get_ylim()[0] * 1.3, "extrapolated", color="0.35", ha="right", fontsize=9
    )
    axes.legend(fontsize=8, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Write the figure and the page."""
    found = json.loads((HERE / "scale.json").read_text("utf-8"))
    (HERE / "images").mkdir(exist_ok=True)
    draw(found, HERE / "images" / "scale.png")
    target = HERE / "scale.md"
    target.write_text(page(target.read_text("utf-8"), tables(found)), "utf-8")


if __name__ == "__main__":
    main()
