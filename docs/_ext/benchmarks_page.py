"""Write the benchmark pages from the results of `make bench` and `make paper`.

`docs/results/*.json` are the results copied by `docs/keep_results.py`, `paper/RESULTS.md` and
`paper/TRIED.md` are written by `make paper`, and `docs/scale.md` describes the cost of large data.
If one of them is missing, its page says so. The text of the page about promises is in
`docs/promises.md`.
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
    "swissprot": "2,500 Swiss-Prot sequences in 30 classes, normalised Smith-Waterman, five folds.",
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
    files = [path for path in folder.glob("*.json") if path.stem not in ("promises", "sensitivity")]
    files = sorted(files, key=lambda path: (*_place(path.stem), path.stem))
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
        several = f" and {len(since) - 2} others" if len(since) > 3 else ""
        named = f"{', '.join(since[: 2 if several else 3])}{several} changed since."
        lines += [f"*Older than the present code: {named}*", ""]
    return lines


def _place(name: str) -> tuple[int]:
    order = list(ABOUT)
    return (order.index(name) if name in order else len(order),)


# -- promises --------------------------------------------------------------------------------------

GROUPS, UNKNOWN = "tests/estimators/test_groups.py", "tests/estimators/test_unknown.py"
SMALL = "tests/estimators/test_promises.py"

PROMISES = {
    "confidence - accuracy": (
        "the mean probability of the predicted label is the accuracy",
        "within 1.5 points",
        f"{SMALL}::test_new_objects_are_answered_as_held_out_ones_are",
    ),
    "calibration error": (
        "so it is among objects of about the same probability",
        "",
        "tests/data/test_calibration.py::test_the_temperature_is_near_the_best_for_new_objects",
    ),
    "coverage at": (
        "label sets with `by_class=False` contain the true label as often as stated",
        "at most 1 point less",
        "tests/core/test_conformal.py::test_sets_have_the_stated_coverage",
    ),
    "coverage by class at": (
        "so do label sets by class",
        "at most 1 point less",
        f"{UNKNOWN}::test_sets_cover_overall_and_in_each_class",
    ),
    "coverage of the rare class at": (
        "by class, they also do for a class of 3 %",
        "at most 1 point less",
        f"{UNKNOWN}::test_sets_cover_overall_and_in_each_class",
    ),
    "coverage of the rare class, not by class at": (
        "with `by_class=False`, this is not promised",
        "",
        "",
    ),
    "wrong labels at": (
        "a list by `select` has at most the stated share of wrong labels, on average",
        "one standard error",
        "tests/model/test_model.py::test_selected_labels_are_wrong_at_most_as_often_as_allowed",
    ),
    "false alarms at": (
        "at most the stated share of objects from known classes is called novel",
        "one standard error",
        f"{UNKNOWN}::test_false_alarms_are_as_frequent_as_stated",
    ),
    "distance of p-values": (
        "p-values are not smaller than uniform ones, ties or not",
        "the critical value",
        "tests/core/test_conformal.py::test_novelty_is_uniform_whatever_its_parts_depend_on",
    ),
    "difference of confidence": (
        "every head and every look is as confident about new objects as about held-out ones",
        "within 1.5 points",
        f"{SMALL}::test_new_objects_are_answered_as_held_out_ones_are",
    ),
    "distance of confidences": (
        "and the confidences have the same distribution (Kolmogorov-Smirnov)",
        "the critical value",
        f"{SMALL}::test_new_objects_are_answered_as_held_out_ones_are",
    ),
    "difference of loss": (
        "and the log-loss of new objects is that of held-out ones",
        "within 0.03",
        f"{SMALL}::test_new_objects_are_answered_as_held_out_ones_are",
    ),
}
"""What is promised, within which bound it is to hold, and the test that guards it."""

COLUMNS = {
    "confidence - accuracy": "confidence − accuracy",
    "coverage at 90 %": "coverage 90 %",
    "coverage by class at 90 %": "by class",
    "wrong labels at 5 %": "wrong at 5 %",
    "wrong labels at 10 %": "10 %",
    "wrong labels at 20 %": "20 %",
    "false alarms at 1 %": "false alarms 1 %",
    "false alarms at 5 %": "5 %",
    "difference of confidence, answers": "new − held-out confidence",
}


def promises_page(written: Path, results: Path) -> str:
    """Return the page about promises: the text, what was measured, and which bounds are missed."""
    lines = [f"```{{include}} ../{written.name}", ":relative-docs: .", "```", ""]
    if not results.exists():
        return "\n".join([*lines, "This copy has no results: run `make bench BENCH=promises`.", ""])
    kept = json.loads(results.read_text("utf-8"))
    rows = kept["rows"]
    lines += ["## What was measured", ""]
    lines += ["| promise | bound | kept | unsure | missed | farthest | guarded by |"]
    lines += ["|---|---|---:|---:|---:|---|---|"]
    for start, (told, bound, guard) in PROMISES.items():
        found = [
            (row["name"], key, one)
            for row in rows
            for key, one in row["promises"].items()
            if key.startswith(start)
        ]
        if not found:
            continue
        count = {v: sum(one["holds"] == v for _, _, one in found) for v in ("yes", "unsure", "no")}
        name, key, one = max(found, key=lambda item: _beyond(*item[1:]))
        level = key[len(start) :].strip(" ,")
        far = f"{shown(key, one)} ({', '.join(part for part in (name, level) if part)})"
        numbers = [count[v] if bound else "" for v in count]
        test = guard.rpartition("::")[2]
        lines += [_line([told, bound, *numbers, far, f"`{test}`" if test else ""])]
    lines += ["", "## By data set", ""]
    lines += [
        "Standard errors over the splits are in parentheses. **Bold**: the bound is missed beyond"
    ]
    lines += ["doubt; *italic*: by less.", ""]
    lines += [_line(["data set", "classes", "splits", "accuracy", *COLUMNS.values()])]
    lines += ["|---|---:|---:" + "|---:" * (1 + len(COLUMNS)) + "|"]
    for row in rows:
        cells = [row["name"], row["classes"], row["splits"], f"{100 * row['accuracy']:.1f} %"]
        cells += [_marked(key, row["promises"].get(key)) for key in COLUMNS]
        lines += [_line(cells)]
    return "\n".join([*lines, "", *origin(kept)])


def shown(key: str, one: dict[str, Any]) -> str:
    """Return a promise's value and standard error: in percent, or as it is."""
    plain = key.startswith(("distance", "difference of loss"))
    unit, digits, sign = (1, 2, "") if plain else (100, 1, "\N{NO-BREAK SPACE}%")
    text = f"{unit * one['value']:.{digits}f}{sign}"
    return text if one["error"] is None else f"{text} ({unit * one['error']:.{digits}f})"


def _beyond(key: str, one: dict[str, Any]) -> float:
    """Return a number by which values of one promise are ordered: farther off, larger."""
    level = float(key.rpartition(" at ")[2].removesuffix(" %")) / 100 if " at " in key else 0.0
    if key.startswith("coverage"):
        return level - one["value"]
    return one["value"] - level if level or key.startswith("distance") else abs(one["value"])


def _marked(key: str, one: dict[str, Any] | None) -> str:
    if one is None:
        return ""
    mark = {"no": "**", "unsure": "*"}.get(one["holds"], "")
    return f"{mark}{shown(key, one)}{mark}"


def _line(cells: list[Any]) -> str:
    return "| " + " | ".join(cell(c) for c in cells) + " |"


# -- constants -------------------------------------------------------------------------------------

KINDS = {
    "": "",
    "cost": """## Limits of memory, time and samples

A more generous value would be as good or better, and cost more. They matter where data are larger
than the sets above.""",
    "guard": """## Guards

They guard against rounding, overflow and the logarithm of 0, decide about a warning or what is
listed, or are seeds.""",
    "published": """## Published

They belong to an algorithm that is implemented as its authors describe it.""",
}

CONSTANTS = """# Constants

`KreinClassifier` has nothing to tune, so its constants must be right for all data. {} numbers, or
lists of them, can change what it answers. This page shows what happens if one of them is halved or
doubled.

The change of the log-loss of new objects is given in standard errors of the paired difference, for
the data set where it is largest; a positive change is a higher loss. The largest of six differences
is often beyond 1.5 standard errors by chance, and seldom beyond 2.5. The change of the comparisons
per prediction is that of the set where it is largest. The sets are peptides, digits, simulated
protein families, a checkerboard, and waves and islands, which were not used to choose any constant;
each has up to 600 objects to fit and 400 new ones. Constants that change none of them are tried on
further cases: many classes, labels with ranks, hits, groups, few and many objects, DNA, foreign
objects, series with channels, and the other estimators. Those that change nothing there matter only
for rarer data, as their description says. To repeat it all, run `make bench BENCH=sensitivity`.
"""


def constants_page(results: Path) -> str:
    """Return the page about constants: what half and double the value of each changes."""
    if not results.exists():
        return "# Constants\n\nThis copy has no results: run `make bench BENCH=sensitivity`.\n"
    kept = json.loads(results.read_text("utf-8"))
    groups = {kind: [row for row in kept["rows"] if row["kind"] == kind] for kind in KINDS}
    lines = CONSTANTS.format(len(groups[""])).split("\n")
    for kind, heading in KINDS.items():
        lines += [heading, ""] if heading else []
        measured = kind == ""
        lines += [_line(["constant", "value", "what it is", *(["half", "double"] * measured)])]
        lines += ["|---|---|---" + "|---|---" * measured + "|"]
        for row in sorted(groups[kind], key=lambda row: row["name"]):
            cells = [f"`{row['name']}`", row["shown"], row["told"]]
            lines += [_line([*cells, *([row["half"], row["double"]] if measured else [])])]
        lines += [""]
    return "\n".join([*lines, *origin(kept)])


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
    results = docs / "results" / "promises.json"
    write(docs / "generated" / "promises.md", promises_page(docs / "promises.md", results))
    results = docs / "results" / "sensitivity.json"
    write(docs / "generated" / "constants.md", constants_page(results))
    write(docs / "generated" / "scale.md", scale_page(docs / "scale.md"))
    write(docs / "generated" / "paper.md", paper_page(docs.parent / "paper" / "RESULTS.md"))
    write(docs / "generated" / "tried.md", paper_page(docs.parent / "paper" / "TRIED.md"))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", generate, priority=100)  # before Sphinx collects the pages
    return {"parallel_read_safe": True, "parallel_write_safe": True}
