"""T-cell receptors by TCRdist, and lists with a bounded share of errors.

IMMREP22 (`immrep22.tsv.gz`) and Swiss-Prot need `KREIN_DATA`; the speed of the measure and the
digits need no data. IMMREP22 is split as published. For each epitope, a model is fitted to its
binders and negatives, as the methods in the workshop's table were: most negatives of an epitope
are binders of others, in the training or the test set, so one model for all epitopes would know
some of the answers.

Each fit is one part. Finished parts are kept next to the results until the code changes, so an
interrupted run resumes with the next one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

import krein
from krein import KreinClassifier
from krein.datasets import load_digits_images
from krein.measures import get_measure
from krein.measures.tcr import cdr3_groups

from .accuracy import folder
from .swissprot import SEQUENCES, sample
from .timing import row

SEEDS, SPLITS = 3, 5
FDRS = (0.01, 0.1)
IDENTITY = 0.8
"""Receptors whose CDR3s agree in this share of their letters are of one group."""

CONTROLS = 1500
"""Number of control receptors."""

CHAINS = ["TRAV", "TRA_CDR3", "TRBV", "TRB_CDR3"]


# Finished parts


def code_digest() -> str:
    """Return a digest of the code that the results depend on."""
    digest = hashlib.sha256()
    for file in (*sorted(Path(krein.__file__).parent.rglob("*.py")), Path(__file__)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8]


class Parts:
    """The figures of finished parts by name, one line each in a file."""

    def __init__(self) -> None:
        results = Path(__file__).parent / "results"
        results.mkdir(exist_ok=True)
        self.file = results / f"receptors-{code_digest()}.jsonl"
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.found = dict(json.loads(line) for line in lines if line.endswith("]"))

    def get(self, name: str, compute: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Return the figures of a part, which are computed unless they are in the file."""
        if name not in self.found:
            start = time.process_time()
            figures = {key: float(value) for key, value in compute().items()}
            figures["seconds"] = time.process_time() - start
            self.found[name] = figures
            with self.file.open("a") as file:
                file.write(
                    "\n" + json.dumps([name, figures])
                )  # a killed run may end in half a line
        return self.found[name]


def summary(parts: list[dict[str, float]]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the mean of each figure, and its standard error."""
    table = pd.DataFrame(parts)
    return table.mean().to_dict(), (table.std() / np.sqrt(len(table))).to_dict()


# Speed


def receptors(n: int, rng: np.random.Generator) -> list[str]:
    """Return random αβ receptors with CDR3s of 11 to 18 letters."""
    found, letters = [], np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    for _ in range(n):
        cdr3s = ["".join(rng.choice(letters, rng.integers(9, 17))) for _ in range(2)]
        genes = rng.choice(["TRAV12-2*01", "TRAV24*01"]), rng.choice(["TRBV19*01", "TRBV9*01"])
        found.append(f"{genes[0]} C{cdr3s[0]}F {genes[1]} C{cdr3s[1]}F")
    return found


def speed() -> Iterator[dict]:
    """Yield the pairs per second of processor time, for blocks of all pairs of 1,500 receptors."""
    X = receptors(1500, np.random.default_rng(0))
    for place in ("best", "fixed"):
        measure = get_measure("tcrdist", {"chains": "alpha-beta", "gap_position": place})
        measure.block(X[:2], X[:2])  # compiled
        seconds = []
        for _ in range(5):
            start = time.process_time()
            measure.block(X, X)
            seconds.append(time.process_time() - start)
        value = len(X) ** 2 / min(seconds) / 1e6
        detail = f"αβ pairs on one thread; {value / 0.282:.0f} times tcrdist3's published 0.282"
        yield row(f"block, gap position {place}", value, ">= 1.41", detail, "M pairs/s")


# The published split


def immrep22() -> pd.DataFrame:
    """Return the receptors, with the groups of near-identical ones."""
    table = pd.read_csv(folder() / "immrep22.tsv.gz", sep="\t")
    texts, of = np.unique(get_measure("tcrdist").check(table[CHAINS]), return_inverse=True)
    return table.assign(receptor=texts[of], group=cdr3_groups(texts.tolist(), IDENTITY)[of])


def one_epitope(table: pd.DataFrame, epitope: str, seed: int) -> dict[str, float]:
    """Return the AUROC of an epitope against its negatives."""
    rows = table[table.epitope == epitope]
    own, new = rows[rows.split == "train"], rows[rows.split == "test"]
    clf = KreinClassifier("tcrdist", random_state=seed).fit(own, own.label)
    P, apart = clf.predict_proba(new)[:, 1], ~new.group.isin(own.group)
    return {
        "auroc": roc_auc_score(new.label, P),
        "apart": roc_auc_score(new.label[apart], P[apart]),
        "left": apart.mean(),
    }


def all_epitopes(table: pd.DataFrame, epitopes: np.ndarray, seed: int) -> dict[str, float]:
    """Return the figures of the epitopes as one problem."""
    rows = table[(table.label == 1) & table.epitope.isin(epitopes)]
    own, new = rows[rows.split == "train"], rows[rows.split == "test"]
    clf = KreinClassifier("tcrdist", random_state=seed).fit(own, own.epitope)
    P = clf.predict_proba(new)
    found = {"fitted": len(own), "compared": clf.last_comparisons_ / len(new)}
    for name, some in (("all", np.ones(len(new), bool)), ("apart", ~new.group.isin(own.group))):
        true = new.epitope[some]
        found[f"{name} n"] = len(true)
        found[f"{name} accuracy"] = (clf.classes_[P[some].argmax(axis=1)] == true).mean()
        found[f"{name} loss"] = log_loss(true, P[some], labels=clf.classes_)
    return found


def published_split(parts: Parts) -> Iterator[dict]:
    """Yield the AUROC of each epitope against its negatives, and 16 epitopes as one problem.

    Both are also stated for the test receptors that are in no group with a training receptor.
    """
    table = immrep22()
    epitopes = np.unique(table.epitope[(table.split == "train") & (table.label == 1)])
    by_seed, together = [], []
    for seed in range(SEEDS):
        each = [
            parts.get(f"{epitope} {seed}", lambda e=epitope, s=seed: one_epitope(table, e, s))
            for epitope in epitopes
        ]
        by_seed.append(summary(each)[0])
        together.append(
            parts.get(f"16 classes {seed}", lambda s=seed: all_epitopes(table, epitopes, s))
        )
    apart = f"without relatives in training (CDR3 identity {IDENTITY:.0%})"
    mean, _ = summary(by_seed)
    spread = pd.DataFrame(by_seed).std()
    detail = f"16 epitopes, {SEEDS} seeds, which differ by ± {spread['auroc']:.3f}; "
    detail += "best in the workshop's table .844"
    yield row("IMMREP22: mean AUROC", mean["auroc"], ">= .87", detail, "")
    detail = f"{mean['left']:.0%} of the test receptors; ± {spread['apart']:.3f}"
    yield row(f"IMMREP22, {apart}: mean AUROC", mean["apart"], "", detail, "")
    mean, _ = summary(together)
    spread = pd.DataFrame(together).std()
    for name, where, targets in (
        ("all", "IMMREP22, 16 classes", (">= .61", "<= 1.28")),
        ("apart", f"IMMREP22, 16 classes, {apart}", ("", "")),
    ):
        detail = f"{mean['fitted']:.0f} to fit, {mean[f'{name} n']:.0f} to predict, "
        detail += f"{mean['compared']:.0f} comparisons each, {SEEDS} seeds ± "
        for what, target in zip(("accuracy", "loss"), targets, strict=True):
            key = f"{name} {what}"
            title = f"{where}: {'log-loss' if what == 'loss' else what}"
            yield row(title, mean[key], target, f"{detail}{spread[key]:.3f}", "")


# Lists


class Case:
    """Objects with labels; which labels are selected, and which objects are of one group."""

    def __init__(
        self,
        measure: str,
        objects: Any,
        labels: Any,
        wanted: list[str] | None = None,
        groups: np.ndarray | None = None,
    ) -> None:
        self.measure, self.objects, self.labels = measure, np.asarray(objects), np.asarray(labels)
        self.wanted, self.groups = wanted, groups

    @cached_property
    def apart(self) -> np.ndarray:
        """Dissimilarities between all objects, for the fixed radius."""
        measure = get_measure(self.measure).decide(self.objects)
        X = measure.check(self.objects)
        values = measure.block(X, X)
        return values if measure.kind == "dissimilarity" else -values

    def split(self, rng: np.random.Generator, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return three quarters of these objects, and the others; groups are kept together."""
        groups = (np.arange(len(self.labels)) if self.groups is None else self.groups)[among]
        names = rng.permutation(np.unique(groups))
        own = np.isin(groups, names[: 3 * len(names) // 4])
        return among[own], among[~own]

    def fit(self, train: np.ndarray, seed: int) -> KreinClassifier:
        """Return a classifier with its defaults."""
        groups = None if self.groups is None else self.groups[train]
        clf = KreinClassifier(self.measure, random_state=seed)
        return clf.fit(self.objects[train], self.labels[train], groups=groups)


def cases() -> Iterator[tuple[str, Case]]:
    """Yield each data set; the controls of IMMREP22 are a class that is never selected."""
    yield "digits", Case("tangent", *load_digits_images())
    if folder() is None:
        return
    table = immrep22()
    binders = table[table.label == 1].drop_duplicates("receptor", keep=False)
    binders = binders[binders.epitope != "GILGFVFTL"]
    others = table[~table.receptor.isin(table.receptor[table.label == 1])]
    controls = others.drop_duplicates("receptor").sample(CONTROLS, random_state=0)
    both = pd.concat([binders, controls.assign(epitope="control")])
    wanted, groups = sorted(set(binders.epitope)), both.group.to_numpy()
    receptors = both.receptor.to_numpy(dtype=str)
    yield "IMMREP22 with controls", Case("tcrdist", receptors, both.epitope, wanted)
    named = f"IMMREP22 with controls, groups apart ({IDENTITY:.0%})"
    yield named, Case("tcrdist", receptors, both.epitope, wanted, groups)
    yield f"Swiss-Prot, {SEQUENCES:,}", Case("smith-waterman", *sample())


def list_labels(case: Case, seed: int) -> dict[str, float]:
    """Return the share of errors in lists of labels, their length, and that of a fixed radius.

    The radius is chosen in hindsight: the largest with at most the same share of errors, where an
    object gets the label of its nearest training object.
    """
    train, test = case.split(np.random.default_rng(seed), np.arange(len(case.labels)))
    clf, X, y = case.fit(train, seed), case.objects[test], case.labels[test]
    wrong, D = clf.predict(X) != y, case.apart[np.ix_(test, train)]
    nearest = case.labels[train][D.argmin(axis=1)]
    usable = np.isin(nearest, nearest if case.wanted is None else case.wanted)
    wanted = np.isin(y, y if case.wanted is None else case.wanted)
    found = {"total": wanted.sum(), "wrong": wrong.mean()}
    for fdr in FDRS:
        chosen = clf.select(X, fdr, labels=case.wanted)
        share = wrong[chosen].sum() / max(1, chosen.sum())
        radius = within(D.min(axis=1)[usable], (nearest != y)[usable], share)
        found |= {f"share {fdr}": share, f"found {fdr}": chosen.sum(), f"radius {fdr}": radius}
    return found


def list_novel(case: Case, seed: int) -> dict[str, float]:
    """Return the share of known classes in a list of novel objects, from a fifth of the classes.

    The radius is the smallest, in hindsight, beyond which at most the same share is known.
    """
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.unique(case.labels) if case.wanted is None else case.wanted)
    new = np.isin(case.labels, classes[: max(1, len(classes) // 5)])
    train, rest = case.split(rng, np.flatnonzero(~new))
    test = np.r_[rest, np.flatnonzero(new)]
    chosen = case.fit(train, seed).select(case.objects[test], FDRS[-1], novel=True)
    known, D = ~new[test], case.apart[np.ix_(test, train)]
    share = known[chosen].sum() / max(1, chosen.sum())
    radius = within(-D.min(axis=1), known, share)
    return {"share": share, "found": chosen.sum(), "radius": radius, "total": new.sum()}


def within(apart: np.ndarray, wrong: np.ndarray, share: float) -> int:
    """Return how many objects the largest radius contains with at most this share of errors."""
    order = np.argsort(apart, kind="stable")
    errors = np.cumsum(wrong[order])
    last = np.append(np.diff(apart[order]) > 0, True)  # a radius contains all ties
    good = np.flatnonzero(last & (errors <= share * np.arange(1, len(order) + 1)))
    return int(good[-1] + 1) if len(good) else 0


def lists(parts: Parts, name: str, case: Case) -> Iterator[dict]:
    """Yield the rows of one data set."""
    mean, error = summary(
        [
            parts.get(f"{name}, labels {seed}", lambda s=seed: list_labels(case, s))
            for seed in range(SPLITS)
        ]
    )
    for fdr in FDRS:
        share, found = f"share {fdr}", f"found {fdr}"
        detail = f"± {100 * error[share]:.1f}, {SPLITS} splits; of all {100 * mean['wrong']:.1f}"
        what = f"{name}: wrong labels in the list at {fdr:.0%}"
        yield row(what, 100 * mean[share], f"<= {100 * fdr + 1:.0f}", detail, "%")
        radius = mean[f"radius {fdr}"]
        detail = f"of {mean['total']:.0f}; a radius with the same share of errors: {radius:.0f}"
        yield row(f"{name}: objects in the list at {fdr:.0%}", mean[found], "", detail, "")
    if case.groups is not None:  # some relatives of novel receptors would be in training
        return
    mean, error = summary(
        [
            parts.get(f"{name}, novel {seed}", lambda s=seed: list_novel(case, s))
            for seed in range(SPLITS)
        ]
    )
    detail = f"± {100 * error['share']:.1f}, {SPLITS} splits"
    what = f"{name}: known classes in the list of novel objects at {FDRS[-1]:.0%}"
    yield row(what, 100 * mean["share"], f"<= {100 * FDRS[-1] + 1:.0f}", detail, "%")
    detail = f"{mean['total']:.0f} are novel; beyond a radius with the same share of known ones: "
    detail += f"{mean['radius']:.0f}"
    what = f"{name}: objects in the list of novel objects at {FDRS[-1]:.0%}"
    yield row(what, mean["found"], "", detail, "")


def measured() -> Iterator[dict]:
    parts = Parts()
    yield from speed()
    if folder() is not None:
        yield from published_split(parts)
    for name, case in cases():
        yield from lists(parts, name, case)


def run() -> list[dict]:
    rows = []
    for entry in measured():
        rows.append(entry)
        print(entry["name"], f"{entry['value']:.4f}", entry["detail"], flush=True)
    return rows
