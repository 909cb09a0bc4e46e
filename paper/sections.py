"""The paper's tables as sections of RESULTS.md, with published figures next to ours."""

from __future__ import annotations

import numpy as np

from . import published
from .markdown import NONE, figure, number, table
from .measured import WHO, Measured
from .methods import FAMILIES, RULES, SOLVERS, solvers
from .published import LARGE as PUBLISHED
from .published import SIM, SMALL, Figure
from .sets import LARGE

DENSE_AND_RULES = ("all", "meb", "kmeans", "entropy")


def table1_section(data: Measured) -> str:
    """Accuracy and SMSS on the small sets."""
    lines = []
    for sim, rule in SIM.items():
        told = f"{sim}, {_rule(rule)}"
        cells = [published.TABLE_1[sim][name] for name in SMALL]
        lines.append([told, "published", *(f"{figure(f)} \\| {s:.2f}" for f, s in cells)])
        for who in solvers("ikfd", rule):
            cells = []
            for name in SMALL:
                text = data.cell(name, f"ikfd:{rule}:{who}", mark=True)
                rows = data.of(name, f"ikfd:{rule}:paper")
                kept = data.result(name, f"ikfd:{rule}:paper", "smss")
                score = float(np.median([r["smss"] for r in rows])) if rows else None
                score = kept.mean if score is None and kept else score
                shown = f"{text} \\| {number(score)}" if who == "paper" else text
                cells.append(shown if text != NONE else NONE)
            lines.append(["", WHO[who], *cells])
    counts = [data.result(name, "ikfd:meb:paper", "landmarks") for name in SMALL]
    told = [
        f"{published.TABLE_1_LANDMARKS[n]} / {c.mean:.1f}" if c else NONE
        for n, c in zip(SMALL, counts, strict=True)
    ]
    lines.append(["MEB landmarks", "published / here", *told])
    return (
        "## Table 1: iKFD on the small sets, accuracy % \\| median SMSS\n\n"
        "Balls, checkerboard and Gaussians: ten simulated sets, with the lowest and highest of "
        "their means in brackets; krein on the first of them.\n\n" + table(["", "", *SMALL], lines)
    )


def _rule(rule: str) -> str:
    name, _, number_ = rule.partition("@")
    return f"{RULES[name]}{', C landmarks' if number_ else ''}"


def table2_section(data: Measured) -> str:
    """Run times on the small sets, summed over ten folds as in the paper."""

    def here(rule: str, who: str, name: str) -> float | None:
        found = data.result(name, f"ikfd:{rule}:{who}", "seconds")
        return None if found is None else 10 * found.mean

    lines = []
    for sim, rule in SIM.items():
        cells = [f"{published.TABLE_2[sim][name]:.2f}" for name in SMALL]
        lines.append([f"{sim}, {_rule(rule)}", "published", *cells])
        lines += [
            ["", WHO[who], *(number(here(rule, who, name)) for name in SMALL)]
            for who in ("paper", "ours")
        ]
    ratios = [published.TABLE_2["SIM1"][n] / published.TABLE_2["SIM2"][n] for n in SMALL]
    lines.append(["SIM1 / SIM2", "published", *(f"{ratio:.1f}" for ratio in ratios)])
    for who in ("paper", "ours"):
        pairs = [(here("all", who, name), here("meb", who, name)) for name in SMALL]
        told = [f"{a / b:.1f}" if a and b else NONE for a, b in pairs]
        lines.append(["", WHO[who], *told])
    return "## Table 2: CPU seconds for table 1, summed over all folds\n\n" + table(
        ["", "", *SMALL], lines
    )


def three_section(data: Measured) -> str:
    """Three Gaussians."""
    lines = []
    for rule in ("all", *published.THREE_GAUSSIANS):
        target = published.THREE_GAUSSIANS.get(rule)
        cells = [data.cell("three_gaussians", f"ikfd:{rule}:{who}") for who in _ikfd()]
        balanced = data.cell("three_gaussians", f"ikfd:{rule}:paper", "balanced")
        lines.append([RULES[rule], number(target, 0), *cells, balanced])
    heads = ["rule", "published %", *(WHO[who] for who in _ikfd()), "balanced, text"]
    return (
        "## Section 4.3: iKFD on three Gaussians, accuracy %\n\n"
        "92.6 % of the points have label 0, so the balanced accuracy, the mean over the two "
        "classes, is shown too.\n\n" + table(heads, lines)
    )


def _ikfd() -> list[str]:
    return solvers("ikfd", "meb")


def large_section(data: Measured) -> str:
    """Tables 3 to 5: one for each family, with the dense method beside the three rules."""
    parts = [
        "## Tables 3, 4 and 5: accuracy % on the larger sets",
        "(*) differs significantly from the same dense method (two-sided paired t-test over the "
        "folds at the 5 % level; the paper does not name its test).",
    ]
    for family, title in FAMILIES.items():
        lines = []
        for name in dict.fromkeys([*PUBLISHED, *LARGE]):
            if name in PUBLISHED:
                told = [figure(published.accuracy(rule, name, family)) for rule in DENSE_AND_RULES]
                lines.append([name, "published", *told])
            for who in SOLVERS:
                cells = [
                    data.cell(name, f"{family}:{rule}:{who}", mark=True) for rule in DENSE_AND_RULES
                ]
                if any(cell != NONE for cell in cells):
                    lines.append(["" if name in PUBLISHED else name, WHO[who], *cells])
        ny = [f"Ny-{title}, {RULES[r]} (table {n})" for n, r in enumerate(DENSE_AND_RULES[1:], 3)]
        parts.append(table(["set", "", title, *ny], lines))
    return "\n\n".join(parts)


def smss_section(data: Measured) -> str:
    """Mean SMSS on the larger sets, plain and truncated."""
    lines = []
    for name in PUBLISHED:
        cells = []
        for rule in DENSE_AND_RULES[1:]:
            plain, cut = (
                data.result(name, f"ikfd:{rule}:paper", field)
                for field in ("smss", "smss_truncated")
            )
            given = number(published.mean_smss(rule, name))
            told = " / ".join(number(found.mean if found else None) for found in (plain, cut))
            cells.append(f"{given} / {told}")
        count = data.result(name, "ikfd:meb:paper", "landmarks")
        here = number(count.mean if count else None, 0)
        lines.append([name, f"{published.LARGE_LANDMARKS[name]} / {here}", *cells])
    heads = ["set", "landmarks, published / here", *(RULES[r] for r in DENSE_AND_RULES[1:])]
    return (
        "### Mean SMSS: published / plain / truncated\n\n"
        "*Truncated* drops eigenvalues of W below 1e-3 of the largest. Where plain and truncated "
        "differ, W has eigenvalues near zero although K has none, and K̃ is wrong by a multiple of "
        "K in some folds: the known instability of Nyström for indefinite matrices (Nakatsukasa & "
        "Park 2023; Bucci, Nakatsukasa & Park 2025). The accuracy of iKFD hardly depends on it, "
        "that of the published PCVM does; `NystromMap` warns.\n\n" + table(heads, lines)
    )


PLACES = [(family, rule) for family in FAMILIES for rule in ("all", "meb")]
METHODS = ["iKFD", "Ny-iKFD (MEB)", "PCVM", "Ny-PCVM (MEB)"]


def table6_section(data: Measured) -> str:
    """Run times on the larger sets, and the ratios of dense and low-rank methods."""
    lines = []
    for name in dict.fromkeys([*PUBLISHED, *LARGE]):
        given = published.TABLE_6.get(name)
        if given is not None:
            told = [figure(given[place]) for place in PLACES]
            ratios = [_ratio(given[f, "all"], given[f, "meb"]) for f in FAMILIES]
            lines.append([name, "published", *told, *ratios])
        for who in SOLVERS:
            found = {p: data.result(name, f"{p[0]}:{p[1]}:{who}", "seconds") for p in PLACES}
            if not any(found.values()):
                continue
            cells = [NONE if found[p] is None else found[p].text() for p in PLACES]  # type: ignore[union-attr]
            ratios = []
            for family in FAMILIES:
                dense = found[family, "all"]
                if who == "exact":  # whose dense form is that of the text
                    dense = data.result(name, f"{family}:all:paper", "seconds")
                low = found[family, "meb"]
                ratios.append(f"{dense.mean / low.mean:.1f}" if dense and low else NONE)
            lines.append(["" if given else name, WHO[who], *cells, *ratios])
    return (
        "## Table 6: CPU seconds per fold on the larger sets, and dense / low-rank\n\n"
        "Large ratios of the text's iKFD are not a merit of the approximation: its dense form "
        "takes one pseudo-inverse of an N×N matrix per class.\n\n"
        + table(["set", "", *METHODS, "iKFD, ratio", "PCVM, ratio"], lines)
    )


def _ratio(dense: Figure | None, low: Figure | None) -> str:
    return NONE if dense is None or low is None else f"{dense.mean / low.mean:.1f}"


def table7_section(data: Measured) -> str:
    """Model complexity."""
    lines = []
    for name in dict.fromkeys([*PUBLISHED, *LARGE]):
        given = published.TABLE_7.get(name)
        if given is not None:
            lines.append([name, "published", *(figure(given[place]) for place in PLACES), ""])
        for who in SOLVERS:
            cells = [data.cell(name, f"{f}:{r}:{who}", "weights") for f, r in PLACES]
            if any(cell != NONE for cell in cells):
                found = [data.result(name, f"{f}:meb:{who}", "comparisons") for f in FAMILIES]
                most = max((f.mean for f in found if f), default=None)
                cells.append(number(most, 0))
                lines.append(["" if given else name, WHO[who], *cells])
    return (
        "## Table 7: % of training objects with a weight above 1e-4 for at least one class\n\n"
        "For iKFD, weights are those of the paper's form αᵀk(x), relative to the largest. The last "
        "column is what a prediction costs: the comparisons of a low-rank model, whichever objects "
        "have weights.\n\n" + table(["set", "", *METHODS, "comparisons, MEB"], lines)
    )
