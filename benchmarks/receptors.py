"""T-cell receptors by TCRdist, and lists with a bounded share of errors.

IMMREP22 (`immrep22.tsv.gz`) and Swiss-Prot need `KREIN_DATA`; the speed of the measure and the
digits need no data. IMMREP22 is split as published. For each epitope, a model is fitted to its
binders and negatives, as the methods in the workshop's table were: most negatives of an epitope
are binders of others, in the training or the test set, so one model for all epitopes would know
some of the answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

from krein import KreinClassifier
from krein.datasets import load_digits_images, load_swissprot
from krein.measures import get_measure

from .accuracy import folder
from .timing import best_times, row

SEEDS, SPLITS = 3, 20
FDRS = (0.01, 0.1)
LANDMARKS = 100
"""For lists: without a choice of their number, a fit takes a third of the time."""

SEQUENCES, CONTROLS = 3000, 1500
"""Number of Swiss-Prot sequences and of control receptors."""


def receptors(n: int, rng: np.random.Generator) -> list[str]:
    """Return random αβ receptors with CDR3s of 11 to 18 letters."""
    found, letters = [], np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    for _ in range(n):
        cdr3s = ["".join(rng.choice(letters, rng.integers(9, 17))) for _ in range(2)]
        genes = rng.choice(["TRAV12-2*01", "TRAV24*01"]), rng.choice(["TRBV19*01", "TRBV9*01"])
        found.append(f"{genes[0]} C{cdr3s[0]}F {genes[1]} C{cdr3s[1]}F")
    return found


def speed() -> list[dict]:
    """Measure blocks of all pairs of 1,500 receptors, on one thread."""
    X, rows = receptors(1500, np.random.default_rng(0)), []
    for place in ("best", "fixed"):
        measure = get_measure("tcrdist", {"chains": "alpha-beta", "gap_position": place})
        measure.block(X[:2], X[:2])  # compiled
        (seconds,) = best_times(lambda measure=measure: measure.block(X, X))
        value = len(X) ** 2 / seconds / 1e6
        detail = "αβ pairs on one thread; 5 × tcrdist3's 0.282 is wanted"
        rows.append(row(f"block, gap position {place}", value, ">= 1.41", detail, "M pairs/s"))
    return rows


def immrep22() -> pd.DataFrame:
    return pd.read_csv(folder() / "immrep22.tsv.gz", sep="\t")


def published_split() -> Iterator[dict]:
    """Yield the AUROC of each epitope against its negatives, and 16 epitopes as one problem."""
    table = immrep22()
    train, test = table[table.split == "train"], table[table.split == "test"]
    epitopes = np.unique(train.epitope[train.label == 1])
    areas, accuracy, loss, compared = [], [], [], []
    for seed in range(SEEDS):
        for epitope in epitopes:
            own, new = train[train.epitope == epitope], test[test.epitope == epitope]
            clf = KreinClassifier("tcrdist", random_state=seed).fit(own, own.label)
            areas.append(roc_auc_score(new.label, clf.predict_proba(new)[:, 1]))
        own = train[train.label == 1]
        new = test[(test.label == 1) & test.epitope.isin(epitopes)]
        clf = KreinClassifier("tcrdist", random_state=seed).fit(own, own.epitope)
        P = clf.predict_proba(new)
        accuracy.append((clf.classes_[P.argmax(axis=1)] == new.epitope).mean())
        loss.append(log_loss(new.epitope, P, labels=clf.classes_))
        compared.append(clf.comparisons_)
    by_seed = np.reshape(areas, (SEEDS, -1)).mean(axis=1)
    detail = f"16 epitopes, {SEEDS} seeds ± {by_seed.std():.3f}; best in the workshop's table .844"
    yield row("IMMREP22: mean AUROC", np.mean(areas), ">= .87", detail, "")
    detail = f"{len(own)} to fit, {len(new)} to predict, {np.mean(compared):.0f} comparisons each"
    yield row("IMMREP22, 16 classes: accuracy", np.mean(accuracy), ">= .61", detail, "")
    yield row("IMMREP22, 16 classes: log-loss", np.mean(loss), "<= 1.28", detail, "")


class Case(NamedTuple):
    """All values between objects, their labels, and the labels that are selected."""

    values: np.ndarray
    labels: np.ndarray
    measure: str
    wanted: list[str] | None


def case_of(name: str, objects, labels, wanted: list[str] | None = None) -> Case:
    measure = get_measure(name).decide(objects)
    X = measure.check(objects)
    kind = "precomputed" if measure.kind == "similarity" else "precomputed-distance"
    return Case(measure.block(X, X), np.asarray(labels), kind, wanted)


def cases() -> Iterator[tuple[str, Case]]:
    """Yield each data set; the controls of IMMREP22 are a class that is never selected."""
    yield "digits", case_of("tangent", *load_digits_images())
    if folder() is None:
        return
    table, chains = immrep22(), ["TRAV", "TRA_CDR3", "TRBV", "TRB_CDR3"]
    binders = table[table.label == 1].drop_duplicates(chains, keep=False)
    binders = binders[binders.epitope != "GILGFVFTL"]
    known = table[table.label == 1][chains].agg(" ".join, axis=1)
    others = table[~table[chains].agg(" ".join, axis=1).isin(known)].drop_duplicates(chains)
    controls = others.sample(CONTROLS, random_state=0).assign(epitope="control")
    both = pd.concat([binders, controls])
    wanted = sorted(set(binders.epitope))
    yield "IMMREP22 with controls", case_of("tcrdist", both, both.epitope, wanted)
    sequences, families = load_swissprot()
    some = np.random.default_rng(0).permutation(len(families))[:SEQUENCES]
    yield "Swiss-Prot", case_of("smith-waterman", [sequences[i] for i in some], families[some])


def split(case: Case, seed: int) -> tuple[KreinClassifier, np.ndarray, np.ndarray, np.ndarray]:
    """Fit to three quarters; return the values of the others, their labels, and nearest labels."""
    order = np.random.default_rng(seed).permutation(len(case.labels))
    train, test = np.split(order, [3 * len(order) // 4])
    clf = KreinClassifier(case.measure, n_landmarks=LANDMARKS, random_state=seed)
    clf.fit(case.values[np.ix_(train, train)], case.labels[train])
    V = case.values[np.ix_(test, train)]
    near = V.argmin(axis=1) if case.measure.endswith("distance") else V.argmax(axis=1)
    return clf, V, case.labels[test], case.labels[train][near]


def lists(case: Case) -> dict[float, dict[str, float]]:
    """Return the share of errors in lists of labels, their length, and that of a fixed radius.

    The radius is chosen in hindsight, for each split: the largest with at most the same share of
    errors, where an object gets the label of its nearest training object.
    """
    kept: dict[float, list[tuple[float, ...]]] = {fdr: [] for fdr in FDRS}
    for seed in range(SPLITS):
        clf, V, y, label = split(case, seed)
        wrong, total = clf.predict(V) != y, len(y)
        apart = V.min(axis=1) if case.measure.endswith("distance") else -V.max(axis=1)
        usable = np.ones(len(V), bool)
        if case.wanted is not None:
            usable, total = np.isin(label, case.wanted), np.isin(y, case.wanted).sum()
        for fdr in FDRS:
            chosen = clf.select(V, fdr, labels=case.wanted)
            share = wrong[chosen].sum() / max(1, chosen.sum())
            radius = within(apart[usable], (label != y)[usable], share)
            kept[fdr].append((share, chosen.sum(), radius, total, wrong.mean()))
    names = ("share", "found", "radius", "total", "wrong")
    found = {
        fdr: dict(zip(names, np.mean(rows, axis=0), strict=True)) for fdr, rows in kept.items()
    }
    for fdr, rows in kept.items():
        found[fdr]["error"] = np.std([row[0] for row in rows]) / np.sqrt(SPLITS)
    return found


def within(apart: np.ndarray, wrong: np.ndarray, share: float) -> int:
    """Return how many objects the largest radius contains with at most this share of errors."""
    order = np.argsort(apart, kind="stable")
    errors = np.cumsum(wrong[order])
    last = np.append(np.diff(apart[order]) > 0, True)  # a radius contains all ties
    good = np.flatnonzero(last & (errors <= share * np.arange(1, len(order) + 1)))
    return int(good[-1] + 1) if len(good) else 0


def novel_lists(case: Case, fdr: float) -> dict[str, float]:
    """Return the share of known classes in lists of novel objects, from a fifth of the classes."""
    shares, found = [], []
    classes = np.unique(case.labels)
    for seed in range(SPLITS):
        rng = np.random.default_rng(seed)
        new = np.isin(case.labels, rng.permutation(classes)[: max(1, len(classes) // 5)])
        own = rng.permutation(np.flatnonzero(~new))
        train, rest = np.split(own, [3 * len(own) // 4])
        test = np.r_[rest, np.flatnonzero(new)]
        clf = KreinClassifier(case.measure, n_landmarks=LANDMARKS, random_state=seed)
        clf.fit(case.values[np.ix_(train, train)], case.labels[train])
        chosen = clf.select(case.values[np.ix_(test, train)], fdr, novel=True)
        shares.append((~new[test])[chosen].sum() / max(1, chosen.sum()))
        found.append((chosen & new[test]).sum() / new.sum())
    return {"share": np.mean(shares), "found": np.mean(found)}


def guaranteed(name: str, case: Case) -> Iterator[dict]:
    """Yield the rows of one data set."""
    for fdr, got in lists(case).items():
        detail = f"± {100 * got['error']:.1f}; of all {100 * got['wrong']:.1f}; {SPLITS} splits"
        what = f"{name}: wrong labels in the list at {fdr:.0%}"
        yield row(what, 100 * got["share"], f"<= {100 * fdr + 1:.0f}", detail, "%")
        detail = f"of {got['total']:.0f}; a radius with the same share: {got['radius']:.0f}"
        yield row(f"{name}: objects in the list at {fdr:.0%}", got["found"], "", detail, "")
    if case.wanted is None:
        fdr = FDRS[-1]
        got = novel_lists(case, fdr)
        detail = f"{got['found']:.0%} of the novel objects found; {SPLITS} splits"
        what = f"{name}: known classes in the list of novel objects at {fdr:.0%}"
        yield row(what, 100 * got["share"], f"<= {100 * fdr + 1:.0f}", detail, "%")


def measured() -> Iterator[dict]:
    yield from speed()
    for name, case in cases():
        yield from guaranteed(name, case)
    if folder() is not None:
        yield from published_split()


def run() -> list[dict]:
    rows = []
    for entry in measured():
        rows.append(entry)
        print(entry["name"], f"{entry['value']:.4f}", entry["detail"], flush=True)
    return rows
