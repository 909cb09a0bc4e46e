"""RESULTS.md: the published figures and ours side by side, from the CSV files alone."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import published
from .beyond import units as beyond_units
from .folds import TIMES, Row, read
from .markdown import NONE, figure, measured, number, table
from .methods import FAMILIES, RULES, SOLVERS, solver, titled
from .published import LARGE as PUBLISHED
from .published import SIM, SMALL, Figure
from .sets import LARGE, SOURCES
from .statistics import LEVEL, Comparison, compare

WHO = {"paper": "paper's algorithm, here", "ours": "krein"}


@dataclass(frozen=True)
class Measured:
    """The rows of one CSV file, by set and method."""

    rows: list[Row]

    def of(self, name: str, method: str) -> list[Row]:
        """Return the folds of a method on a set."""
        return [row for row in self.rows if (row["set"], row["method"]) == (name, method)]

    def pair(self, name: str, a: str, b: str, field: str = "accuracy") -> Comparison | None:
        """Compare two methods on the folds that both have."""
        left = {row["fold"]: row[field] for row in self.of(name, a)}
        right = {row["fold"]: row[field] for row in self.of(name, b)}
        both = sorted(set(left) & set(right))
        if not both:
            return None
        return compare([left[k] for k in both], [right[k] for k in both])

    def marked(self, name: str, method: str) -> bool:
        """Whether the method differs from its dense form on the same folds."""
        family, rule, *rest = method.split(":")
        if rule == "all":
            return False
        found = self.pair(name, method, ":".join([family, "all", *rest]))
        return found is not None and found.significant

    def cell(self, name: str, method: str, field: str = "accuracy", digits: int = 2) -> str:
        """Return mean ± deviation, the mark, and how many folds it is where others have more."""
        rows = self.of(name, method)
        star = field == "accuracy" and self.marked(name, method)
        text = measured(rows, field, digits, star=star)
        most = max((row["fold"] for row in self.rows if row["set"] == name), default=-1) + 1
        return f"{text} ({len(rows)} folds)" if 0 < len(rows) < most else text


def assemble(folder: Path) -> str:
    """Return the page, from the CSV files of `folder`."""
    files = ("table1", "table2", "table3", "table4", "table5", "table6", "table7", "beyond")
    found = {name: Measured(read(folder / f"{name}.csv")) for name in files}
    three = Measured(read(folder / "three_gaussians.csv"))
    larger = Measured(
        list(
            {
                (row["set"], row["method"], row["fold"]): row
                for name in ("table3", "table4", "table5")
                for row in found[name].rows
            }.values()
        )
    )
    everything = Measured([*found["table1"].rows, *three.rows, *larger.rows])
    parts = [
        HEAD,
        sets_section([*everything.rows]),
        reached_section(everything),
        table1_section(found["table1"]),
        table2_section(found["table2"]),
        three_section(three),
        *(
            large_section(n, rule, found[f"table{n}"])
            for n, rule in ((3, "meb"), (4, "kmeans"), (5, "entropy"))
        ),
        table6_section(found["table6"]),
        table7_section(found["table7"]),
        ours_section(everything),
        beyond_section(found["beyond"]),
        tried_section(folder / "tried.csv"),
        figures_section(),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


HEAD = f"""
# The paper's tables, and what is reached here

Made by `make paper` from the CSV files that its scripts write; nothing is typed by hand but the
published numbers, which stand in `paper/published.py`. After Schleif, Gisbrecht & Tino,
*Probabilistic classifiers with low rank indefinite kernels*.

- Stratified cross-validation, the same folds for every method; mean ± standard deviation over the
  folds. Landmarks are chosen from the training objects alone.
- (*) marks a low-rank result that differs from the same dense method: paired t-test over the
  folds, two-sided, {100 * LEVEL:g} %. The paper marks so too and names no test.
- *Paper's algorithm, here* is the published method in this library: iKFD with the pseudo-inverse,
  one class against the rest; PCVM with the published M-step (`solver="paper"`). *krein* is what a
  user gets by default: shrunk covariance, one model of all classes; PCVM under its constraints.
  Both have the same landmarks.
- Run times are processor seconds of one core for choosing landmarks, fitting and predicting one
  fold, from values that are there: comparing the objects is not in them.
- k-means and entropy choose as many landmarks as MEB found on the same fold.
"""


def sets_section(rows: Sequence[Row]) -> str:
    """Say what each set is here."""
    lines = []
    for name in (*SMALL, "three_gaussians", *LARGE):
        own = [row for row in rows if row["set"] == name]
        size = f"{own[0]['objects']:.0f} / {own[0]['classes']:.0f}" if own else NONE
        needs = "KREIN_DATA" if SOURCES[name].given else ""
        lines.append([name, SOURCES[name].told, size, needs])
    lines.append(["chromo", "could not be had, and nothing like it", NONE, ""])
    return "## The sets\n\n" + table(
        ["set", "what it is here", "objects / classes", "needs"], lines
    )


def reached_section(data: Measured) -> str:
    """Say whether the published Ny-iKFD (MEB) is reached."""
    targets: list[tuple[str, Figure | None]] = [
        ("protein", published.TABLE_1["SIM2"]["protein"][0]),
        ("three_gaussians", Figure(published.THREE_GAUSSIANS["meb"])),
        ("swiss", published.accuracy("meb", "swiss", "ikfd")),
    ]
    lines = []
    for name, target in targets:
        assert target is not None
        for who in SOLVERS:
            rows = data.of(name, f"ikfd:meb:{who}")
            if not rows:
                lines.append(
                    [name, WHO[who], figure(target), NONE, NONE, "not measured"]
                )
                continue
            mean = float(np.mean([row["accuracy"] for row in rows]))
            least = target.mean - (target.deviation or 0.0)
            verdict = "**yes**, better" if mean >= target.mean else "**yes**"
            lines.append(
                [
                    name,
                    WHO[who],
                    figure(target),
                    measured(rows, "accuracy"),
                    number(float(np.mean([row["landmarks"] for row in rows])), 1),
                    verdict if mean >= least else f"**no**, {least - mean:.2f} below",
                ]
            )
    heads = ["set", "solver", "published", "here", "landmarks", "within one deviation or better?"]
    return "## Is the published Ny-iKFD (MEB) reached?\n\n" + table(heads, lines)


def table1_section(data: Measured) -> str:
    """Accuracy and SMSS on the small sets."""
    lines = []
    for sim, rule in SIM.items():
        told = f"{sim}, {_rule(rule)}"
        lines.append(
            [told, "published"]
            + [
                f"{figure(figure_)} \\| {score:.2f}"
                for figure_, score in (published.TABLE_1[sim][name] for name in SMALL)
            ]
        )
        for who in SOLVERS:
            cells = []
            for name in SMALL:
                text = data.cell(name, f"ikfd:{rule}:{who}")
                scores = [row["smss"] for row in data.of(name, f"ikfd:{rule}:ours")]
                median = number(float(np.median(scores))) if scores else NONE
                cells.append(f"{text} \\| {median}" if text != NONE else NONE)
            lines.append(["", WHO[who], *cells])
    found = [
        number(float(np.mean([r["landmarks"] for r in rows])), 1) if rows else NONE
        for rows in (data.of(name, "ikfd:meb:ours") for name in SMALL)
    ]
    counts = [f"{published.TABLE_1_LANDMARKS[n]} / {m}" for n, m in zip(SMALL, found, strict=True)]
    lines.append(["landmarks of MEB", "published / here", *counts])
    return "## Table 1: small sets, iKFD: accuracy % \\| median SMSS\n\n" + table(
        ["", "", *SMALL], lines
    )


def _rule(rule: str) -> str:
    name, _, number_ = rule.partition("@")
    return f"{RULES[name]}{' at C' if number_ else ''}"


def table2_section(data: Measured) -> str:
    """Run times on the small sets: ten folds together, as the paper says."""
    lines = []
    for sim, rule in SIM.items():
        cells = [f"{published.TABLE_2[sim][name]:.2f}" for name in SMALL]
        lines.append([f"{sim}, {_rule(rule)}", "published", *cells])
        for who in SOLVERS:
            rows = [data.of(name, f"ikfd:{rule}:{who}") for name in SMALL]
            sums = [number(sum(map(_seconds, own))) if own else NONE for own in rows]
            lines.append(["", WHO[who], *sums])
    return "## Table 2: run times of table 1, seconds, all folds together\n\n" + table(
        ["", "", *SMALL], lines
    )


def _seconds(row: Row) -> float:
    return sum(row[field] for field in TIMES)


def three_section(data: Measured) -> str:
    """Three Gaussians."""
    lines = []
    for rule in dict.fromkeys(row["method"].split(":")[1] for row in data.rows):
        figure_ = published.THREE_GAUSSIANS.get(rule)
        for who in SOLVERS:
            own = data.of("three_gaussians", f"ikfd:{rule}:{who}")
            lines.append(
                [
                    RULES[rule],
                    WHO[who],
                    NONE if figure_ is None else f"{figure_:.0f}",
                    measured(
                        own, "accuracy", star=data.marked("three_gaussians", own[0]["method"])
                    ),
                    measured(own, "balanced"),
                    number(float(np.mean([row["landmarks"] for row in own])), 1),
                ]
            )
    heads = ["landmarks", "solver", "published, 10 landmarks", "accuracy %", "balanced %", "number"]
    return "## Section 4.3: three Gaussians, iKFD\n\n" + table(heads, lines)


def large_section(n: int, rule: str, data: Measured) -> str:
    """Tables 3 to 5."""
    lines = []
    for name in dict.fromkeys([*PUBLISHED, *LARGE]):
        if name in PUBLISHED:
            cells = [
                figure(published.accuracy(which, name, family))
                for family in FAMILIES
                for which in ("all", rule)
            ]
            score = number(published.mean_smss(rule, name), 4)
            count = str(published.LARGE_LANDMARKS[name])
            lines.append([f"{name} ({count})", "published", *cells, score])
        if name not in SOURCES:
            lines.append(["", "no such data", *[NONE] * 5])
            continue
        found = data.of(name, f"ikfd:{rule}:ours")
        label = f"{name}, here ({np.mean([r['landmarks'] for r in found]):.0f})" if found else ""
        for who in SOLVERS:
            if not found:
                lines.append([label, f"{WHO[who]}: needs KREIN_DATA", *[NONE] * 5])
                continue
            cells = [
                data.cell(name, f"{family}:{which}:{who}")
                for family in FAMILIES
                for which in ("all", rule)
            ]
            lines.append([label, WHO[who], *cells, measured(found, "smss", 4).split(" ")[0]])
            label = ""
    title = RULES[rule]
    heads = ["set (landmarks)", "", "iKFD", f"Ny-iKFD ({title})", "PCVM", f"Ny-PCVM ({title})"]
    return f"## Table {n}: larger sets, {title}, accuracy %\n\n" + table(
        [*heads, "mean SMSS"], lines
    )


PLACES = [(family, rule) for family in FAMILIES for rule in ("all", "meb")]
METHODS = ["iKFD", "Ny-iKFD (MEB)", "PCVM", "Ny-PCVM (MEB)"]


def _four(
    data: Measured, reference: dict[str, published.Four], field: str, digits: int
) -> list[list[str]]:
    """Lines of a table of dense and MEB methods: published, the paper's algorithm here, krein."""
    lines = []
    for name in dict.fromkeys([*PUBLISHED, *LARGE]):
        if name in reference:
            cells = [figure(reference[name][place], digits) for place in PLACES]
            lines.append([name, "published", *cells])
        for who in SOLVERS:
            shown = [
                data.cell(name, f"{family}:{rule}:{who}", field, digits) for family, rule in PLACES
            ]
            if any(text != NONE for text in shown):
                lines.append(["" if name in reference else name, WHO[who], *shown])
    return lines


def table6_section(data: Measured) -> str:
    """Run times on the larger sets."""
    timed = Measured([{**row, "seconds": _seconds(row)} for row in data.rows])
    lines = _four(timed, published.TABLE_6, "seconds", 2)
    ratios = []
    for name in dict.fromkeys([*PUBLISHED, *LARGE]):
        given = published.TABLE_6.get(name)
        if given is not None:
            told = [_ratio(given[(f, "all")], given[(f, "meb")]) for f in FAMILIES]
            ratios.append([name, "published", *told])
        for who in SOLVERS:
            told = []
            for family in FAMILIES:
                dense, low = (data.of(name, f"{family}:{rule}:{who}") for rule in ("all", "meb"))
                both = dense and low
                told.append(
                    f"{np.mean([*map(_seconds, dense)]) / np.mean([*map(_seconds, low)]):.1f}"
                    if both
                    else NONE
                )
            if told != [NONE, NONE]:
                ratios.append(["" if given else name, WHO[who], *told])
    return (
        "## Table 6: run times on the larger sets, seconds a fold\n\n"
        + table(["set", "", *METHODS], lines)
        + "\n\nHow many times faster low rank is:\n\n"
        + table(["set", "", "iKFD / Ny-iKFD", "PCVM / Ny-PCVM"], ratios)
    )


def _ratio(dense: Figure | None, low: Figure | None) -> str:
    return NONE if dense is None or low is None else f"{dense.mean / low.mean:.1f}"


def table7_section(data: Measured) -> str:
    """Model complexity."""
    weights = _four(data, published.TABLE_7, "weights", 2)
    compared = _four(data, {}, "comparisons", 0)
    return (
        "## Table 7: model complexity\n\n"
        "Training objects that carry a weight above 1e-4 (for iKFD of the largest one, in the "
        "paper's form αᵀk(x)), in %, for any class:\n\n"
        + table(["set", "", *METHODS], weights)
        + "\n\nWhat a prediction costs: the objects that a new one is compared with. A low-rank "
        "model needs its landmarks alone, whoever carries weights.\n\n"
        + table(["set", "", *METHODS], compared)
    )


def ours_section(data: Measured) -> str:
    """Ours against the paper's algorithm, fold by fold."""
    lines = []
    tally = {"krein": 0, "paper": 0, "no difference": 0}
    order = [*SMALL, "three_gaussians", *LARGE]
    keys = sorted(
        dict.fromkeys((row["set"], row["method"]) for row in data.rows),
        key=lambda key: order.index(key[0]),
    )
    for name, method in keys:
        if solver(method) != "ours":
            continue
        other = method.replace(":ours", ":paper")
        found = data.pair(name, method, other)
        if found is None:
            continue
        better = "no difference"
        if found.significant:
            better = "krein" if found.difference > 0 else "paper"
        tally[better] += 1
        lines.append(
            [
                name,
                titled(method),
                data.cell(name, other).replace("*", ""),
                data.cell(name, method).replace("*", ""),
                f"{found.difference:+.2f}",
                "< 0.001" if found.p_value < 0.001 else number(found.p_value, 3),
                better,
            ]
        )
    heads = ["set", "method", "paper's algorithm", "krein", "difference", "p", "better"]
    told = (
        f"Of {len(lines)} rows krein is better in {tally['krein']}, the paper's algorithm in "
        f"{tally['paper']}, and {tally['no difference']} do not differ "
        f"(paired t-test, {100 * LEVEL:g} %, no correction for the number of rows).\n\n"
    )
    return (
        "## Ours against the paper's algorithm, on the same folds\n\n" + told + table(heads, lines)
    )


def beyond_section(data: Measured) -> str:
    """scikit-learn's methods beside ours."""
    lines = []
    methods = dict.fromkeys(unit.method for unit in beyond_units())
    for name in (*SMALL, *LARGE):
        label = name
        for method in methods:
            own = data.of(name, method)
            if not own:
                continue
            lines.append(
                [
                    label,
                    f"{titled(method)}{', krein' if solver(method) == 'ours' else ''}",
                    data.cell(name, method).replace("*", ""),
                    measured(own, "log_loss", 3).split(" ")[0],
                    number(float(np.mean([row["comparisons"] for row in own])), 0),
                    number(float(np.mean([_seconds(row) for row in own]))),
                ]
            )
            label = ""
    heads = [
        "set",
        "method",
        "accuracy %",
        "log-loss",
        "comparisons a prediction",
        "seconds a fold",
    ]
    return (
        "## Beyond the paper: against scikit-learn\n\n"
        "SVC on the matrix made psd, new rows by the same linear map, C by inner "
        "cross-validation, as is k of k-NN; methods of cubic cost are left out where N is in the "
        "thousands.\n\n" + table(heads, lines)
    )


def tried_section(path: Path) -> str:
    """What was tried where the paper is silent."""
    rows = []
    if path.exists():
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    lines = []
    before = ""
    for key in dict.fromkeys((r["question"], r["set"], r["setting"]) for r in rows):
        own = [r for r in rows if (r["question"], r["set"], r["setting"]) == key]
        values = [{k: float(r[k]) for k in ("accuracy", "landmarks")} for r in own]
        lines.append(
            [
                "" if key[0] == before else key[0],
                key[1],
                key[2],
                measured(values, "accuracy"),
                measured(values, "landmarks", 1).split(" ")[0],
                own[0]["published"] or NONE,
            ]
        )
        before = key[0]
    heads = ["what the paper does not say", "set", "tried", "accuracy %", "landmarks", "published"]
    return (
        "## Where the paper is silent: what was tried\n\n"
        "By `paper/tried.py`, krein's methods unless it says otherwise, with the parameter at "
        "several values.\n\n" + table(heads, lines)
    )


def figures_section() -> str:
    """Name the scripts of the figures."""
    scripts = sorted(Path(__file__).parent.glob("figure*.py"))
    lines = [
        [f"`paper/{path.name}`", path.read_text().split('"""')[1].splitlines()[0].strip()]
        for path in scripts
    ]
    return "## Figures\n\n`make paper` draws them into `paper/results/`.\n\n" + table(
        ["script", "what it shows"], lines
    )
