"""The paper's tables as sections of RESULTS.md, with published figures next to ours."""

from __future__ import annotations

import numpy as np

from . import published
from .markdown import NONE, figure, measured, number, table
from .measured import WHO, Measured, seconds
from .methods import FAMILIES, RULES, SOLVERS, titled
from .published import LARGE as PUBLISHED
from .published import SIM, SMALL, Figure
from .sets import LARGE, OWN, SOURCES


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
                text = data.cell(name, f"ikfd:{rule}:{who}", mark=True)
                scores = [row["smss"] for row in data.of(name, f"ikfd:{rule}:paper")]
                median = number(float(np.median(scores))) if scores else NONE
                cells.append(f"{text} \\| {median}" if text != NONE else NONE)
            lines.append(["", WHO[who], *cells])
    found = [
        number(float(np.mean([r["landmarks"] for r in rows])), 1) if rows else NONE
        for rows in (data.of(name, "ikfd:meb:ours") for name in SMALL)
    ]
    counts = [f"{published.TABLE_1_LANDMARKS[n]} / {m}" for n, m in zip(SMALL, found, strict=True)]
    lines.append(["MEB landmarks", "published / here", *counts])
    return "## Table 1: iKFD on the small sets, accuracy % \\| median SMSS\n\n" + table(
        ["", "", *SMALL], lines
    )


def _rule(rule: str) -> str:
    name, _, number_ = rule.partition("@")
    return f"{RULES[name]}{', C landmarks' if number_ else ''}"


def table2_section(data: Measured) -> str:
    """Run times on the small sets, summed over ten folds as in the paper."""
    lines = []
    for sim, rule in SIM.items():
        cells = [f"{published.TABLE_2[sim][name]:.2f}" for name in SMALL]
        lines.append([f"{sim}, {_rule(rule)}", "published", *cells])
        for who in SOLVERS:
            rows = [data.of(name, f"ikfd:{rule}:{who}") for name in SMALL]
            sums = [number(sum(map(seconds, own))) if own else NONE for own in rows]
            lines.append(["", WHO[who], *sums])
    return "## Table 2: run times for table 1, in seconds, summed over all folds\n\n" + table(
        ["", "", *SMALL], lines
    )


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
    published_ = "published %, 10 landmarks"
    heads = ["rule", "solver", published_, "accuracy %", "balanced accuracy %", "landmarks"]
    return "## Section 4.3: iKFD on three Gaussians\n\n" + table(heads, lines)


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
            lines.append(["", "data not available", *[NONE] * 5])
            continue
        found = data.of(name, f"ikfd:{rule}:ours")
        label = f"{name}, here ({np.mean([r['landmarks'] for r in found]):.0f})" if found else ""
        for who in SOLVERS:
            if not found:
                lines.append([label, f"{WHO[who]}: not measured", *[NONE] * 5])
                continue
            cells = [
                data.cell(name, f"{family}:{which}:{who}", mark=True)
                for family in FAMILIES
                for which in ("all", rule)
            ]
            scores = data.of(name, f"ikfd:{rule}:paper")
            median = number(float(np.median([row["smss"] for row in scores])) if scores else None)
            told = f"{measured(scores, 'smss', 4).split(' ')[0]} ({median})" if scores else NONE
            lines.append([label, WHO[who], *cells, told])
            label = ""
    title = RULES[rule]
    heads = ["set (landmarks)", "", "iKFD", f"Ny-iKFD ({title})", "PCVM", f"Ny-PCVM ({title})"]
    return f"## Table {n}: larger sets, {title} landmarks, accuracy %\n\n" + table(
        [*heads, "mean SMSS (median)"], lines
    )


PLACES = [(family, rule) for family in FAMILIES for rule in ("all", "meb")]
METHODS = ["iKFD", "Ny-iKFD (MEB)", "PCVM", "Ny-PCVM (MEB)"]


def _four(
    data: Measured, reference: dict[str, published.Four], field: str, digits: int
) -> list[list[str]]:
    """Return table rows of the dense and MEB methods: published, paper's algorithm, krein."""
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
    timed = Measured([{**row, "seconds": seconds(row)} for row in data.rows])
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
                    f"{np.mean([*map(seconds, dense)]) / np.mean([*map(seconds, low)]):.1f}"
                    if both
                    else NONE
                )
            if told != [NONE, NONE]:
                ratios.append(["" if given else name, WHO[who], *told])
    return (
        "## Table 6: run times on the larger sets, in seconds per fold\n\n"
        + table(["set", "", *METHODS], lines)
        + "\n\nSpeed-up of the low-rank methods over the dense ones:\n\n"
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
        "Share of training objects, in %, with a weight above 1e-4 for at least one class. For "
        "iKFD, weights are those of the paper's form αᵀk(x), relative to the largest one:\n\n"
        + table(["set", "", *METHODS], weights)
        + "\n\nNumber of objects that a new object is compared with, which determines the cost "
        "of a prediction. A low-rank model compares it only with the landmarks, whichever objects "
        "have weights:\n\n" + table(["set", "", *METHODS], compared)
    )


def algorithm_section(data: Measured) -> str:
    """List which published figures the published algorithms reach here, in either form."""
    forms = [who for who in SOLVERS if who != "ours"]
    parts = []
    for own, title in ((True, "The paper's own or simulated sets"), (False, "Stand-ins")):
        lines, reached = [], dict.fromkeys((*forms, "either"), 0)
        for place, name, method, target in published.accuracies():
            rows = {who: data.of(name, f"{method}:{who}") for who in forms}
            if (name in OWN) != own or not any(rows.values()):
                continue
            least, verdicts = target.mean - (target.deviation or 0.0), []
            for who in forms:
                mean = np.mean([r["accuracy"] for r in rows[who]]) if rows[who] else np.nan
                verdicts.append(bool(mean >= least))
                reached[who] += verdicts[-1]
            reached["either"] += any(verdicts)
            shown = [
                data.cell(name, f"{method}:{who}") + (" **yes**" if yes else "")
                for who, yes in zip(forms, verdicts, strict=True)
            ]
            lines.append([place, name, titled(f"{method}:paper"), figure(target), *shown])
        told = (
            f"Of {len(lines)} published figures, the text reaches {reached['paper']}, the form "
            f"with a ridge or pairs {reached['program']}, and either of them {reached['either']}."
        )
        heads = ["where", "set", "method", "published", *(WHO[who] for who in forms)]
        parts.append(f"### {title}\n\n{told}\n\n" + table(heads, lines))
    return (
        "## Which published figures do the published algorithms reach?\n\n"
        "**yes** means that our result is at most one published standard deviation lower. The "
        "stand-ins only resemble the paper's data, so their figures show no more than the order of "
        "magnitude.\n\n" + "\n\n".join(parts)
    )
