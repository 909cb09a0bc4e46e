"""Do novelty, label sets and explanations do what they claim?

Digits by tangent distance and peptides by alignment need no data; gestures by DTW and Swiss-Prot
need `KREIN_DATA`. All pairs of each data set are compared once, as a reference that uses the
nearest neighbour among all training objects. Of Swiss-Prot, this is a sample, and the values are
cached (`swissprot.matrix`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from sklearn.metrics import roc_auc_score

from krein import KreinClassifier
from krein.datasets import (
    load_antimicrobial_peptides,
    load_digits_images,
    load_swissprot,
    load_uwave_gestures,
    load_words,
)
from krein.measures import get_measure

from .looks import some
from .swissprot import matrix, sample
from .timing import row

SPLITS = 10
DRAWS = 3
"""Number of random sets of known classes."""

DELETED = 5
"""Number of landmarks left out in a deletion test."""

SIZED = 2000
"""Number of new objects by whose lengths false alarms are counted."""

EXPLAINED = 200
"""Number of objects in a deletion test."""

Case = tuple[np.ndarray, np.ndarray, str]


def values_of(name: str, objects, labels, **params) -> Case:
    """Return all values, the labels, and the matching precomputed measure."""
    measure = get_measure(name, params or None)
    X = measure.check(objects)
    given = "precomputed" if measure.kind == "similarity" else "precomputed-distance"
    return np.asarray(measure.block(X, X), dtype=float), np.asarray(labels), given


def cases() -> Iterator[tuple[str, Case]]:
    """Yield each data set with its name."""
    yield "digits", values_of("tangent", *load_digits_images())
    yield "peptides", values_of("smith-waterman", *peptides())
    if "KREIN_DATA" in os.environ:
        D, kinds = load_uwave_gestures(distance=True)
        yield "uwave", (D, np.asarray(kinds), "precomputed-distance")
        sequences, families = sample()
        yield "Swiss-Prot", (matrix(sequences), np.asarray(families), "precomputed")


def peptides() -> tuple[np.ndarray, np.ndarray]:
    """Return peptides by their source: antimicrobial, UniProt, parts of membrane proteins."""
    from modlamp.datasets import load_ACPvsTM, load_AMPvsTM

    X, y = some(load_antimicrobial_peptides, 1000)
    stored = [load_AMPvsTM(), load_ACPvsTM()]
    membrane = np.concatenate([np.asarray(s.sequences)[np.asarray(s.target) == 0] for s in stored])
    membrane = np.setdiff1d(membrane.astype(object), X)
    names = np.array(["UniProt", "antimicrobial"])[y]
    return np.r_[X, membrane], np.r_[names, ["membrane"] * len(membrane)]


def fitted(case: Case, train: np.ndarray) -> KreinClassifier:
    V, y, given = case
    return KreinClassifier(given).fit(V[np.ix_(train, train)], y[train])


def told_apart(case: Case, n_known: int) -> dict[str, float]:
    """Return the mean AUROC of novel against known objects, by p-value and by full 1-NN."""
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
    """Return false alarms at 5 % and coverage at 90 %, over random splits of all classes."""
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


def deletion(case: Case) -> dict[str, float]:
    """Return the mean score lost without the landmarks that an explanation lists first.

    A landmark is left out by replacing its value with the average. For comparison, the same number
    of random landmarks is left out.
    """
    V, y, _ = case
    rng = np.random.default_rng(0)
    train, test = np.split(rng.permutation(len(y)), [3 * len(y) // 4])
    test = test[:EXPLAINED]
    clf = fitted(case, train)
    to_all = V[np.ix_(test, train)]
    model, average = clf.model_, clf.model_.baseline
    named, random = [], []
    for values, why in zip(to_all[:, clf.landmarks_], clf.explain(to_all), strict=True):
        c, r = np.searchsorted(clf.classes_, [why.label, why.runner_up])
        weights = model.cascade.looks[-1 if why.evidence else 0].weights

        def lost(places: np.ndarray, values=values, weights=weights, c=c, r=r, why=why) -> float:
            left = values.copy()
            left[places] = average[places]
            start, parts = model.contributions(weights, left, c, r)
            return why.score - why.evidence - start - parts.sum()

        order = np.argsort(-why.contributions, kind="stable")
        named.append(lost(order[:DELETED]))
        random.append(lost(rng.permutation(len(order))[:DELETED]))
    return {"named": np.mean(named), "random": np.mean(random)}


def by_size(name: str, measure: str, sequences, labels, n: int) -> Iterator[dict]:
    """Yield how often random objects are called known, and false alarms by length."""
    X, y = np.asarray(sequences, dtype=object), np.asarray(labels)
    rng = np.random.default_rng(0)
    train, test = np.split(rng.permutation(len(X))[: n + SIZED], [n])
    clf = KreinClassifier(measure).fit(X[train], y[train])
    found = clf.assess(X[test])
    sizes, letters = np.array([len(x) for x in X[test]]), list("".join(X[train]))
    fifth = np.searchsorted(np.quantile(sizes, [0.2, 0.4, 0.6, 0.8]), sizes)
    alarms = np.array([(found["novelty"][fifth == k] <= 0.05).mean() for k in range(5)])
    for times in (0.2, 0.5, 1, 2, 5):
        length = max(1, round(times * np.median([len(x) for x in X[train]])))
        random = ["".join(rng.choice(letters, length)) for _ in range(200)]
        status = clf.assess(random)["status"]
        detail = f"{length} letters; {100 * (status == 'novel').mean():.0f} % novel"
        what = f"{name}, random, {times:g} times the median length: known"
        yield row(what, 100 * (status == "known").mean(), "<= 2", detail, "%")
    detail = "at 5 %, from the shortest to the longest fifth: " + ", ".join(
        f"{100 * rate:.1f}" for rate in alarms
    )
    yield row(f"{name}: most false alarms in a fifth", 100 * alarms.max(), "<= 7", detail, "%")
    detail = f"{100 * (found['probabilities'].max(axis=1) >= clf.ambiguous_below).mean():.0f} %"
    share = 100 * (found["status"] == "known").mean()
    yield row(f"{name}: called known", share, "", f"a label of at least 80 %: {detail}", "%")


def two_families() -> list[dict]:
    """Fit two Swiss-Prot families, and count how many sequences of all others are novel at 1 %."""
    sequences, families = load_swissprot()
    rng = np.random.default_rng(0)
    names, counts = np.unique(families, return_counts=True)
    largest = names[np.argsort(-counts)][:2]
    own = [rng.permutation(np.flatnonzero(families == c))[:250] for c in largest]
    others = [
        rng.permutation(np.flatnonzero(families == c))[:6] for c in np.setdiff1d(names, largest)
    ]
    chosen = np.concatenate([*own, *others])
    case = values_of("smith-waterman", sequences[chosen], families[chosen])
    known = rng.permutation(500)
    clf = fitted(case, known[:400])
    test = np.r_[known[400:], np.arange(500, len(chosen))]
    assessed = clf.assess(case[0][np.ix_(test, known[:400])])
    novel, early = assessed["status"] == "novel", assessed["novelty"] <= 0.05
    # reference with all pairs: the score below which 1 % of the known sequences fall
    own_values = case[0][np.ix_(known[:400], known[:400])].copy()
    np.fill_diagonal(own_values, -np.inf)
    nearest = own_values.max(axis=1)
    limit = np.sort(nearest)[3]
    full = case[0][np.ix_(test, known[:400])].max(axis=1) <= limit
    # the labels are pattern hits: some sequences belong to neither family
    clean = known[:400][np.sort(np.argsort(nearest)[8:])]
    again = fitted(case, clean).novelty(case[0][np.ix_(test, clean)]) <= 0.01
    detail = f"{', '.join(largest)}: 400 sequences to fit to"
    return [
        row("two families, others novel at 1 %", 100 * novel[100:].mean(), ">= 95", detail, "%"),
        row("two families, own novel at 1 %", 100 * novel[:100].mean(), "<= 2", detail, "%"),
        row("… others at 5 %", 100 * early[100:].mean(), "", "", "%"),
        row("… own at 5 %", 100 * early[:100].mean(), "", "", "%"),
        row("… others at 1 %, by 1-NN of all pairs", 100 * full[100:].mean(), "", "", "%"),
        row("… others at 1 %, without the strangest 2 %", 100 * again[100:].mean(), "", "", "%"),
        row("… own at 1 %, without the strangest 2 %", 100 * again[:100].mean(), "", "", "%"),
    ]


def measured(name: str, case: Case) -> Iterator[dict]:
    """Yield the rows of one data set."""
    C = len(np.unique(case[1]))
    known = [2, C - 2] if C < 20 else [3, C - 1]
    for n_known in sorted({n for n in known if n >= 2}):
        found = told_apart(case, n_known)
        detail = f"full 1-NN {found['full']:.3f}; at most {found['more']:.0f} comparisons more"
        what = f"{name}, {n_known} of {C} classes known: AUROC"
        yield row(what, found["ours"], f">= {found['full'] - 0.015:.3f}", detail, "")
    found = guarantees(case)
    detail = f"mean of {SPLITS} random splits"
    yield row(f"{name}: false alarms at 5 %", 100 * found["alarms"], "5 ± 1", detail, "%")
    yield row(f"{name}: coverage at 90 %", 100 * found["coverage"], "90 ± 1", detail, "%")
    detail = f"of 100 objects or more, {detail}"
    yield row(f"{name}: worst class off", 100 * found["worst"], "<= 3", detail, "%")
    found = deletion(case)
    yield row(
        f"{name}: score lost without {DELETED} landmarks, named first against random",
        found["named"] / found["random"],
        "> 1",
        f"{found['named']:.2f} against {found['random']:.2f} of log-odds",
    )


def run() -> list[dict]:
    rows = [*by_size("peptides", "smith-waterman", *load_antimicrobial_peptides(), 2500)]
    if "KREIN_DATA" in os.environ:
        rows += by_size("words", "levenshtein", *load_words()[:2], 3000)
        rows += by_size("Swiss-Prot", "smith-waterman", *load_swissprot(), 2500)
        rows += two_families()
    for name, case in cases():
        for entry in measured(name, case):
            rows.append(entry)
            print(entry["name"], f"{entry['value']:.4f}", entry["detail"], flush=True)
    return rows
