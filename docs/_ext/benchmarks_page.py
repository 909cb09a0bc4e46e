"""Write the benchmark pages from the results of `make bench` and `make paper`.

`docs/results/*.json` are the results copied by `docs/keep_results.py`, `paper/RESULTS.md` and
`paper/TRIED.md` are written by `make paper`, and `docs/scale.md` describes the cost of large data.
If one of them is missing, its page says so.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.provenance import changed

ABOUT = {
    "accuracy": "Ten-fold cross-validation on small real data sets, compared with scikit-learn.",
    "swissprot": "8,031 Swiss-Prot sequences in 30 classes, normalised Smith-Waterman, ten folds.",
    "unknown": "Objects of unknown classes, label sets and explanations, on real data.",
    "ranks": "Calibration by rank, on Swiss-Prot families grouped by function.",
    "receptors": "T-cell receptors by TCRdist, and lists with a bounded share of errors.",
    "classes": "From 10 to 2,000 classes, genera of 16S genes, and what a fit costs by itself.",
    "hits": "Tables of DIAMOND, BLAST and vsearch: probabilities, lists, time and memory.",
    "discriminant": "IKFD compared with a bare loop over the same blocks, and growth with N.",
    "pcvm": "PCVM compared with logistic regression on the same columns, and growth with N.",
    "nystrom": "The eigendecomposition of a Nyström matrix compared with one product CᵀC.",
    "landmarks": "Choosing landmarks compared with computing the similarities it needs.",
    "measures": "Pairs per second, compared with the underlying library or the best alternative.",
    "scale": "Out-of-core fits, and fits on several workers.",
    "serve": "Start-up time of the command for one object, and latency of the HTTP service.",
}


def cell(text: Any) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def value(entry: dict[str, Any]) -> str:
    number = entry["value"]
    shown = f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"
    if entry["unit"] == "%":
        return f"{number:.1f}\N{NO-BREAK SPACE}%"
    return f"{shown} {entry['unit']}".strip()


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| benchmark | value | target | details |", "|---|---:|---|---|"]
    for entry in rows:
        cells = (entry["name"], value(entry), entry["target"], entry["detail"])
        lines.append("| " + " | ".join(cell(c) for c in cells) + " |")
    return lines


def benchmark_page(folder: Path) -> str:
    lines = [
        "# Benchmarks",
        "",
        "These figures are measured by the scripts in `benchmarks/`. Times depend on the machine,",
        "so most rows are *ratios* to a bare reference in the same run: how much slower than a",
        "plain loop, or how much faster than another library. *Target* is a goal that was set",
        "beforehand; it is empty for rows that are only there for comparison.",
        "",
        "To repeat the measurements, run `make bench`, or a part with `make bench BENCH=measures`.",
        "",
    ]
    files = sorted(folder.glob("*.json"), key=lambda path: (*_place(path.stem), path.stem))
    if not files:
        lines += [
            "This copy contains no results: run `make bench`, then `make keep-results`.",
            "",
        ]
    for path in files:
        kept = json.loads(path.read_text())
        lines += [f"## {path.stem}", ""]
        if path.stem in ABOUT:
            lines += [ABOUT[path.stem], ""]
        lines += [*table(kept["rows"]), "", *origin(kept)]
    return "\n".join(lines)


def origin(kept: dict[str, Any]) -> list[str]:
    """Say which code was measured, when and where, and whether it has changed since."""
    versions = ", ".join(f"{name} {number}" for name, number in kept["versions"].items())
    measured = kept.get("measured", {})
    known = [measured[name] for name in ("date", "machine") if name in measured]
    known += [f"commit {measured['commit']}"] if "commit" in measured else []
    lines = [f"*Measured: {'; '.join([*known, versions])}.*", ""]
    if "modules" not in measured:
        return [*lines, "*Older than the present code: the commit was not recorded.*", ""]
    since = [f"`{name}`" for name in changed(measured["modules"])]
    if since:
        several = f" and {len(since) - 3} others" if len(since) > 3 else ""
        named = f"{', '.join(since[:3])}{several} changed since."
        lines += [f"*Older than the present code: {named}*", ""]
    return lines


def _place(name: str) -> tuple[int]:
    order = list(ABOUT)
    return (order.index(name) if name in order else len(order),)


def paper_page(results: Path) -> str:
    if not results.exists():
        return (
            "# The paper, reproduced\n\n`make paper` writes this page, which compares the "
            "published figures with ours. It has not been run in this copy.\n"
        )
    text = results.read_text().replace("](figures/", "](../../paper/figures/")
    text = text.replace("](TRIED.md)", "](tried.md)")
    return text if text.startswith("# ") else "# The paper, reproduced\n\n" + text


def scale_page(written: Path) -> str:
    if not written.exists():
        return "# What a hundred million objects cost\n\nThe cost model is not part of this copy.\n"
    return f"```{{include}} ../{written.name}\n:relative-images:\n:relative-docs: .\n```\n"


def write(path: Path, text: str) -> None:
    """Write the file only if it differs, so that a second build has nothing to do."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(app: Sphinx) -> None:
    docs = Path(app.srcdir)
    write(docs / "generated" / "benchmarks.md", benchmark_page(docs / "results"))
    write(docs / "generated" / "scale.md", scale_page(docs / "scale.md"))
    write(docs / "generated" / "paper.md", paper_page(docs.parent / "paper" / "RESULTS.md"))
    write(docs / "generated" / "tried.md", paper_page(docs.parent / "paper" / "TRIED.md"))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", generate, priority=100)  # before Sphinx collects the pages
    return {"parallel_read_safe": True, "parallel_write_safe": True}
