"""Objects of no known class: how well they are told, and whether the guarantees hold.

Digits by tangent distance need no data; gestures by DTW and Swiss-Prot need `KREIN_DATA`. Of each
data set all pairs are compared once, so that the full nearest neighbours can be looked at beside.
"""

from __future__ import annotations

import os

import numpy as np
from sklearn.metrics import roc_auc_score

from krein import KreinClassifier
from krein.datasets import load_digits_images, load_swissprot, load_uwave_gestures
from krein.measures import get_measure

from .timing import row

SPLITS = 20
DRAWS = 3
"""Sets of known classes."""

SWISSPROT = 2_000
"""Sequences, drawn at random: all pairs of 8,031 take minutes."""

Case = tuple[np.ndarray, np.ndarray, str]


def values_of(name: str, objects, labels, **params) -> Case:
    """Return all values, the labels, and the measure that stands for them."""
    measure = get_measure(name, params or None)
    X = measure.check(objects)
    given = "precomputed" if measure.kind == "similarity" else "precomputed-distance"
    return np.asarray(measure.block(X, X), dtype=float), np.asarray(labels), given


def cases() -> dict[str, Case]:
    images, digits = load_digits_images()
    found = {"digits": values_of("tangent", images, digits)}
    if "KREIN_DATA" in os.environ:
        D, kinds = load_uwave_gestures(distance=True)
        found["uwave"] = D, kinds, "precomputed-distance"
        sequences, families = load_swissprot()
        some = np.sort(np.random.default_rng(0).permutation(len(families))[:SWISSPROT])
        chosen = [sequences[i] for i in some]
        found["swissprot"] = values_of("smith-waterman", chosen, np.asarray(families)[some])
    return found


def fitted(case: Case, train: np.ndarray) -> KreinClassifier:
    V, y, given = case
    return KreinClassifier(given).fit(V[np.ix_(train, train)], y[train])


def told_apart(case: Case, n_known: int) -> dict[str, float]:
    """Mean AUROC of novel against known objects, by p-value and by full 1-NN."""
    V, y, given = case
    ours, full, more = [], [], []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        known = np.isin(y, rng.permutation(np.unique(y))[:n_known])
        own = rng.permutation(np.flatnonzero(known))
        train, rest = np.split(own, [3 * len(own) // 4])
        test = np.r_[rest, np.flatnonzero(~known)]
        clf = fitted(case, train)
        to_all = V[np.ix_(test, train)]
        ours.append(roc_auc_score(~known[test], -clf.novelty(to_all)))
        more.append(clf.last_comparisons_ / len(test) - len(clf.landmarks_))
        nearest = to_all.min(axis=1) if given.endswith("distance") else -to_all.max(axis=1)
        full.append(roc_auc_score(~known[test], nearest))
    return {"ours": np.mean(ours), "full": np.mean(full), "more": np.max(more)}


def guarantees(case: Case) -> dict[str, float]:
    """False alarms at 5 % and coverage at 90 %, over random splits of all classes."""
    V, y, _ = case
    alarms, overall, by_class = [], [], []
    classes, counts = np.unique(y, return_counts=True)
    for seed in range(SPLITS):
        train, test = np.split(np.random.default_rng(seed).permutation(len(y)), [3 * len(y) // 4])
        clf = fitted(case, train)
        found = clf.assess(V[np.ix_(test, train)], coverage=0.9)
        alarms.append((found["novelty"] <= 0.05).mean())
        inside = found["set"][np.arange(len(test)), np.searchsorted(clf.classes_, y[test])]
        overall.append(inside.mean())
        by_class.append([inside[y[test] == c].mean() for c in classes[counts >= 100]])
    worst = np.abs(np.mean(by_class, axis=0) - 0.9).max() if (counts >= 100).any() else 0.0
    return {"alarms": np.mean(alarms), "coverage": np.mean(overall), "worst": worst}


def two_families() -> list[dict]:
    """Two families of Swiss-Prot known, some sequences of each other one: who is novel at 1 %?"""
    sequences, families = load_swissprot()
    rng = np.random.default_rng(0)
    names, counts = np.unique(families, return_counts=True)
    largest = names[np.argsort(-counts)][:2]
    own = [rng.permutation(np.flatnonzero(families == c))[:250] for c in largest]
    others = [
        rng.permutation(np.flatnonzero(families == c))[:6] for c in np.setdiff1d(names, largest)
    ]
    some = np.concatenate([*own, *others])
    case = values_of("smith-waterman", sequences[some], families[some])
    known = rng.permutation(500)
    clf = fitted(case, known[:400])
    test = np.r_[known[400:], np.arange(500, len(some))]
    assessed = clf.assess(case[0][np.ix_(test, known[:400])])
    novel, early = assessed["status"] == "novel", assessed["novelty"] <= 0.05
    # what all pairs could do: the limit that 1 % of the known sequences themselves fall below
    own_values = case[0][np.ix_(known[:400], known[:400])].copy()
    np.fill_diagonal(own_values, -np.inf)
    limit = np.sort(own_values.max(axis=1))[3]
    full = case[0][np.ix_(test, known[:400])].max(axis=1) <= limit
    detail = f"{', '.join(largest)}: 400 sequences to fit to"
    return [
        row("two families, others novel at 1 %", 100 * novel[100:].mean(), ">= 95", detail, "%"),
        row("two families, own novel at 1 %", 100 * novel[:100].mean(), "<= 2", detail, "%"),
        row("… others at 5 %", 100 * early[100:].mean(), "", "", "%"),
        row("… own at 5 %", 100 * early[:100].mean(), "", "", "%"),
        row("… others at 1 %, by 1-NN of all pairs", 100 * full[100:].mean(), "", "", "%"),
    ]


def run() -> list[dict]:
    rows = two_families() if "KREIN_DATA" in os.environ else []
    for name, case in cases().items():
        C = len(np.unique(case[1]))
        few, most = (2, C - 2) if C < 20 else (3, C - 1)
        for n_known in (few, most):
            found = told_apart(case, n_known)
            detail = f"full 1-NN {found['full']:.3f}; at most {found['more']:.0f} comparisons more"
            what = f"{name}, {n_known} of {C} classes known: AUROC"
            rows.append(row(what, found["ours"], f">= {found['full'] - 0.015:.3f}", detail, ""))
        found = guarantees(case)
        detail = f"mean of {SPLITS} random splits"
        rows += [
            row(f"{name}: false alarms at 5 %", 100 * found["alarms"], "5 ± 1", detail, "%"),
            row(f"{name}: coverage at 90 %", 100 * found["coverage"], "90 ± 1", detail, "%"),
            row(
                f"{name}: worst class off",
                100 * found["worst"],
                "<= 3",
                "of 100 objects or more",
                "%",
            ),
        ]
    return rows
