"""Every promise of the documentation, measured on many data sets: `make bench BENCH=promises`.

A model is fitted to some objects and asked about others from the same source, over 20 random
splits, or 40 if a bound is missed. For each data set and size, the table has one row, and
the results contain every promise with its mean over the splits, its standard error and a verdict.
Promises of exact equality (in memory, from files and on a cluster; in any order of rows; in any
unit) are not measured here but tested: the page "Promises" names the tests.

Data sets that need no download come first; those of `KREIN_DATA` are added if it is set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from multiprocessing import get_context
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy.special import expit, stdtrit

from krein import KreinClassifier, datasets
from krein.core.cascade import Cascade, losses_of
from krein.core.conformal import benjamini_hochberg, log_odds
from krein.evaluation.heldout import reliability
from krein.model.model import Model
from krein.model.parts import Answer

from .accuracy import folder
from .timing import row

SPLITS = 20
"""Number of random splits; if a bound is missed, as many are added, and all are judged together."""

NEW = 500
"""Number of new objects in each split, if there are as many."""

COVERAGES, BOUNDS, ALARMS = (0.8, 0.9, 0.95), (0.05, 0.1, 0.2), (0.01, 0.05)

GAP, SHORT, LOSS = 0.015, 0.01, 0.03
"""How far confidence may be from accuracy, coverage below its target, and the loss of new objects
from that of held-out ones."""


class Drawn(NamedTuple):
    """Objects and labels; the first ones are fitted, the others are new."""

    X: Any
    y: np.ndarray
    groups: np.ndarray | None = None


Draw = Callable[[np.random.Generator, int, int], Drawn]  # rng, number to fit, number of new ones


@dataclass(frozen=True)
class Case:
    """A data set, and how it is fitted."""

    draw: Draw
    measure: str
    sizes: Sequence[int] = (150, 600)
    features: Any = "auto"
    params: dict[str, Any] | None = None
    splits: int = SPLITS
    rare: int | None = None  # a class whose coverage is measured separately
    stored: bool = False  # whether it needs KREIN_DATA


def run() -> list[dict]:
    """Return all rows, each measured in one of as many processes as there are cores."""
    stored = folder() is not None
    todo = [(name, size) for name, case in CASES.items() for size in case.sizes]
    todo = [one for one in todo if stored or not CASES[one[0]].stored]
    rows = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for found, modules in pool.map(row_of, *zip(*todo, strict=True)):
            for name in modules:  # what was measured, for its provenance
                import_module(name)
            rows.append(found)
            print(found["name"], found["detail"], flush=True)
    return rows


def row_of(name: str, size: int) -> tuple[dict, list[str]]:
    """Return the row of a data set and a size, and the modules that were needed."""
    found = measured(name, CASES[name], size)
    return found, [one for one in sys.modules if one.partition(".")[0] == "krein"]


def measured(name: str, case: Case, size: int) -> dict:
    """Return one row: every promise on a data set of this size."""
    splits = case.splits
    found = [one_split(case, size, seed) for seed in range(splits)]
    if any(one.verdict == "no" for one in summaries(found).values()):
        # of so many figures, some miss their bounds by chance
        found += [one_split(case, size, seed) for seed in range(splits, 2 * splits)]
    promises = summaries(found)
    sure, right = (np.concatenate([one.pool[k] for one in found]) for k in (0, 1))
    error = reliability(sure[:, None], np.where(right, 0, 1)).error
    promises["calibration error"] = Promise(error, float("nan"), "")
    broken = [key for key, one in promises.items() if one.verdict == "no"]
    n_classes, accuracy, splits = found[0].n_classes, right.mean(), len(found)
    detail = f"{n_classes} classes, accuracy {accuracy:.3f}, {splits} splits"
    if broken:
        told = (f"{k} {promises[k].value:.3f} ± {promises[k].error:.3f}" for k in broken)
        detail += "; " + "; ".join(told)
    return row(f"{name}, {size:,} objects", len(broken), "0", detail, unit="broken") | {
        "set": name,
        "objects": size,
        "classes": n_classes,
        "splits": splits,
        "accuracy": round(float(accuracy), 4),
        "promises": {key: one.kept() for key, one in promises.items()},
    }


def summaries(found: list[Split]) -> dict[str, Promise]:
    """Return every promise, judged on these splits."""
    keys = dict.fromkeys(key for one in found for key in one.values)
    return {
        key: judged(key, np.array([one.values[key] for one in found if key in one.values]))
        for key in keys
    }


# -- promises --------------------------------------------------------------------------------------


class Promise(NamedTuple):
    """The mean over splits, its standard error, and whether the promise holds: yes, no, or unsure.

    Unsure means that the bound is missed, but not beyond doubt: not by as much as the 97.5 %
    quantile of Student's t distribution for these splits, times the standard error.
    """

    value: float
    error: float
    verdict: str

    def kept(self) -> dict[str, Any]:
        """Return the figures as JSON-compatible values."""
        error = None if np.isnan(self.error) else round(self.error, 4)
        return {"value": round(float(self.value), 4), "error": error, "holds": self.verdict}


def judged(key: str, each: np.ndarray) -> Promise:
    """Return the mean of a promise over splits, and whether it is within its bound."""
    value, n = float(np.mean(each)), len(each)
    error = float(np.std(each, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    beyond = excess(key, value, error)
    if beyond is None:
        return Promise(value, error, "")
    doubt = stdtrit(n - 1, 0.975) * error if n > 1 else np.inf
    verdict = "yes" if beyond <= 0 else "unsure" if beyond < doubt else "no"
    return Promise(value, error, verdict)


def excess(key: str, value: float, error: float) -> float | None:
    """Return by how much a value is beyond the bound of its promise; None if there is no bound."""
    kind, _, level = key.partition(" at ")
    if kind.startswith("difference of loss"):
        return abs(value) - LOSS
    if kind.startswith(("confidence", "difference")):
        return abs(value) - GAP
    if kind.startswith("coverage") and not kind.endswith("not by class"):
        return percent(level) - SHORT - value
    if kind in ("wrong labels", "false alarms"):
        return value - percent(level) - error
    if kind.startswith("distance"):
        return value - 1.0
    return None


def percent(level: str) -> float:
    return float(level.removesuffix(" %")) / 100


# -- one split -------------------------------------------------------------------------------------


class Split(NamedTuple):
    """What one split shows."""

    values: dict[str, float]
    pool: tuple[np.ndarray, np.ndarray]  # confidence, and whether the label is right
    n_classes: int


def one_split(case: Case, size: int, seed: int) -> Split:
    """Fit to some objects, and return every promise on the others."""
    X, y, groups = case.draw(np.random.default_rng(seed), size, NEW)
    clf = KreinClassifier(
        case.measure, measure_params=case.params, features=case.features, n_jobs=1, verbose=0
    )
    fitted, new = rows_of(X, slice(None, size)), rows_of(X, slice(size, None))
    if case.measure.startswith("precomputed"):
        fitted, new = fitted[:, :size], new[:, :size]
    with watched() as held_out:
        clf.fit(fitted, y[:size], groups=None if groups is None else groups[:size])
    known = np.isin(y[size:], clf.classes_)  # a class that was never seen cannot be predicted
    new, y_new = rows_of(new, known), y[size:][known]
    codes = np.searchsorted(clf.classes_, y_new)
    n_groups = None if groups is None else len(np.unique(groups[size:][known]))
    told = answers(clf.model_, new)
    P = np.exp(told["log_proba"])
    right = P.argmax(axis=1) == codes
    values = {"confidence - accuracy": float(P.max(axis=1).mean() - right.mean())}
    rows = np.arange(len(codes))
    for coverage in COVERAGES:
        for by_class in (True, False):
            inside = told[f"set {coverage} {by_class}"][rows, codes] > 0
            kind = "coverage by class" if by_class else "coverage"
            values[f"{kind} at {100 * coverage:g} %"] = float(inside.mean())
            if case.rare is not None and coverage == 0.9 and (y_new == case.rare).any():
                name = "coverage of the rare class" + ("" if by_class else ", not by class")
                values[f"{name} at 90 %"] = float(inside[y_new == case.rare].mean())
    for fdr in BOUNDS:
        listed = benjamini_hochberg(told["doubt"][:, 0], fdr)
        values[f"wrong labels at {100 * fdr:g} %"] = float((~right[listed]).sum()) / max(
            1, int(listed.sum())
        )
    p = told["novelty"][:, 0]
    for level in ALARMS:
        values[f"false alarms at {100 * level:g} %"] = float((p <= level + 1e-12).mean())
    reference = clf.model_.reference
    n, n_new = n_seen(clf), n_groups or len(p)
    ahead = (np.arange(len(p)) + 1) / len(p) - np.sort(p)  # ties make p-values larger, not smaller
    values["distance of p-values"] = max(float(ahead.max()), 0.0) / critical(n, n_new)
    # held-out objects are to be treated as new ones, by every head and in every look
    terms, w = held_out[0], reference.weights
    pairs = {"answers": (log_odds_best(told["unbounded"]), reference.certainty)}
    opinions = [term for look in terms for term in look]
    both = {
        worth.name: (told[f"term {h}"], opinions[h]) for h, worth in enumerate(clf.worth_.heads)
    }
    for k, after in enumerate(clf.model_.cascade.after_each(terms)):
        both[clf.model_.look_names[k]] = told[f"look {k}"], after
    for what, (ours, theirs) in both.items():
        pairs[what] = log_odds_best(ours), log_odds_best(theirs)
        lost = losses_of(theirs, reference.codes)
        values[f"difference of loss, {what}"] = float(
            losses_of(ours, codes).mean() - np.average(lost, weights=w)
        )
    for what, (ours, theirs) in pairs.items():
        gap = expit(ours).mean() - np.average(expit(theirs), weights=w)
        values[f"difference of confidence, {what}"] = float(gap)
        distance = kolmogorov(ours, theirs, w) / critical(n, n_new)
        values[f"distance of confidences, {what}"] = distance
    return Split(values, (P.max(axis=1), right), len(clf.classes_))


def rows_of(X: Any, rows: Any) -> Any:
    if isinstance(X, np.ndarray):
        return X[rows]
    return [X[i] for i in np.arange(len(X))[rows]]


@contextmanager
def watched() -> Iterator[list]:
    """Collect the terms of held-out objects, from which a cascade is learned."""
    seen: list = []
    learn = Cascade.learn

    def watching(terms: Any, *args: Any, **options: Any) -> Cascade:
        seen.append(terms)
        return learn(terms, *args, **options)

    with patch.object(Cascade, "learn", watching):
        yield seen


def answers(model: Model, X: Any) -> dict[str, np.ndarray]:
    """Return everything that a model tells about new objects, in one pass."""
    names: list[tuple[str, int]] = []

    def everything(answer: Answer) -> np.ndarray:
        found = {"log_proba": answer.log_proba, "unbounded": answer.unbounded}
        terms = model.terms(answer.values, answer.objects, answer.near)
        for h, term in enumerate(term for look in terms for term in look):
            found[f"term {h}"] = term
        for k, after in enumerate(model.cascade.after_each(terms)):
            found[f"look {k}"] = after
        for coverage in COVERAGES:
            for by_class in (True, False):
                found[f"set {coverage} {by_class}"] = model._sets(coverage, by_class, answer)
        found["novelty"] = model._novelty(answer)[:, None]
        found["doubt"] = model._doubt(None, answer)[:, None]
        names[:] = [(name, one.shape[1]) for name, one in found.items()]
        return np.concatenate(list(found.values()), axis=1)

    table = model._map(X, everything, (1,), compare_all=True)
    ends = np.cumsum([width for _, width in names])
    return dict(zip([name for name, _ in names], np.split(table, ends[:-1], axis=1), strict=True))


def n_seen(clf: KreinClassifier) -> float:
    """Return the number of held-out objects, or of their groups."""
    weights = clf.model_.reference.weights
    return float(len(clf.model_.reference.scores) if weights is None else weights.sum())


def log_odds_best(log_proba: np.ndarray) -> np.ndarray:
    return np.nan_to_num(log_odds(log_proba).max(axis=1))


def critical(n: float, m: float) -> float:
    """Return the 95 % quantile of the Kolmogorov-Smirnov distance of samples of one source."""
    return float(1.358 * np.sqrt(1 / n + 1 / m))


def kolmogorov(a: np.ndarray, b: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the largest difference of two distribution functions, the second one weighted."""
    w = np.ones(len(b)) if weights is None else weights
    order = np.argsort(b)
    share = np.append(0.0, np.cumsum(w[order])) / w.sum()
    points = np.concatenate([a, b])
    ours = np.searchsorted(np.sort(a), points, side="right") / len(a)
    theirs = share[np.searchsorted(b[order], points, side="right")]
    return float(np.abs(ours - theirs).max())


# -- data sets -------------------------------------------------------------------------------------


def of_pool(load: Callable[[], tuple]) -> Draw:
    """Return a draw without replacement from objects and labels that are loaded once."""
    load = cache(load)

    def draw(rng: np.random.Generator, n_fit: int, n_new: int) -> Drawn:
        X, y = load()
        chosen = rng.permutation(len(y))[: n_fit + n_new]
        return Drawn(rows_of(X, chosen), np.asarray(y)[chosen])

    return draw


def of_matrix(load: Callable[[], tuple]) -> Draw:
    """Return a draw of rows and columns of a matrix of values."""
    load = cache(load)

    def draw(rng: np.random.Generator, n_fit: int, n_new: int) -> Drawn:
        V, y = load()
        chosen = rng.permutation(len(y))[: n_fit + n_new]
        return Drawn(V[np.ix_(chosen, chosen)], y[chosen])

    return draw


LETTERS = np.array(list("abcdefghijklmno"))


@cache
def languages(n: int, contrast: float = 1.0) -> np.ndarray:
    """Return the probabilities (n, 15, 15) of a letter after another in some languages."""
    rng = np.random.default_rng(n)
    P = np.exp(contrast * rng.normal(size=(n, len(LETTERS), len(LETTERS))))
    return P / P.sum(axis=2, keepdims=True)


def spell(rng: np.random.Generator, tables: np.ndarray) -> list[str]:
    """Return one word of 3 to 10 letters for each table (n, 15, 15)."""
    steps = tables.cumsum(axis=2)
    letter = rng.integers(len(LETTERS), size=len(tables))
    found = [letter]
    for _ in range(9):
        u = rng.random(len(tables))[:, None]
        letter = (steps[np.arange(len(tables)), letter] < u).sum(axis=1).clip(0, len(LETTERS) - 1)
        found.append(letter)
    sizes = rng.integers(3, 11, size=len(tables))
    return ["".join(LETTERS[w[:k]]) for w, k in zip(np.stack(found, axis=1), sizes, strict=True)]


def words(
    rng: np.random.Generator,
    n_fit: int,
    n_new: int,
    *,
    n_languages: int = 5,
    copied: float = 0.0,
    wrong: float = 0.0,
) -> Drawn:
    """Words of several languages, possibly with `copied` objects and `wrong` labels."""
    N = n_fit + n_new
    y = rng.integers(n_languages, size=N)
    X = spell(rng, languages(n_languages)[y])
    lies = rng.random(N) < wrong
    y = np.where(lies, rng.integers(n_languages, size=N), y)
    for i in np.flatnonzero(rng.random(n_fit) < copied):
        j = rng.integers(n_fit)
        X[i], y[i] = X[j], y[j]
    return Drawn(X, y)


def families(rng: np.random.Generator, n_fit: int, n_new: int, *, size: int = 6) -> Drawn:
    """Words in groups: each is the ancestor of its group with one letter in three drawn anew."""
    n_groups = [-(-n // size) for n in (n_fit, n_new)]
    labels = rng.integers(3, size=sum(n_groups))
    ancestors = spell(rng, languages(3, 0.6)[labels])
    groups = np.concatenate(
        [
            np.repeat(np.arange(k), size)[:n] + start
            for k, n, start in zip(n_groups, (n_fit, n_new), (0, n_groups[0]), strict=True)
        ]
    )
    X = []
    for g in groups:
        letters = np.array(list(ancestors[g]))
        drawn = rng.random(len(letters)) < 1 / 3
        X.append("".join(np.where(drawn, rng.choice(LETTERS, len(letters)), letters)))
    return Drawn(X, labels[groups], groups)


def nests(rng: np.random.Generator, n_fit: int, n_new: int, *, size: int, signal: float) -> Drawn:
    """Vectors in groups around centres of their own; without signal, labels are by group alone."""
    groups = np.arange(n_fit + n_new) // size
    labels = rng.integers(2, size=groups.max() + 1)
    centres = rng.normal(size=(len(labels), 4))
    centres[:, 0] += signal * labels
    return Drawn(centres[groups] + 0.3 * rng.normal(size=(len(groups), 4)), labels[groups], groups)


def waves(rng: np.random.Generator, n_fit: int, n_new: int) -> Drawn:
    """Series of four kinds: two frequencies, with and without an overtone, in noise."""
    y = rng.integers(4, size=n_fit + n_new)
    t = np.linspace(0, 1, 40)
    phase = rng.uniform(0, 2 * np.pi, size=(len(y), 1))
    base = 2 * np.pi * t * (2.0 + 0.8 * (y[:, None] % 2)) + phase
    X = np.sin(base) + 0.5 * (y[:, None] // 2) * np.sin(2 * base)
    return Drawn(X + 0.8 * rng.normal(size=X.shape), y)


@cache
def places(n: int, dimensions: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, dimensions))


def blobs(
    rng: np.random.Generator,
    n_fit: int,
    n_new: int,
    *,
    n_classes: int,
    spread: float,
    shares: np.ndarray | None = None,
) -> Drawn:
    """Vectors around a place of each class, of which there are these shares."""
    y = rng.choice(n_classes, size=n_fit + n_new, p=shares)
    X = places(n_classes, 6)[y] + spread * rng.normal(size=(len(y), 6))
    return Drawn(X, y)


def proteins(rng: np.random.Generator, n_fit: int, n_new: int) -> Drawn:
    """Sequences of eight simulated families."""
    X, y = datasets.make_protein_families(
        n_fit + n_new,
        n_families=8,
        length=80,
        divergence=1.3,
        random_state=int(rng.integers(2**31)),
    )
    return Drawn(X, y)


ZIPF = 1 / np.arange(1, 61)
NORMALISED = {"normalize": True}

CASES = {
    "digits": Case(of_pool(datasets.load_digits_images), "tangent", (150, 600)),
    "peptides": Case(of_pool(datasets.load_antimicrobial_peptides), "smith-waterman", (150, 600)),
    "protein families": Case(proteins, "smith-waterman"),
    "words": Case(words, "levenshtein", (150, 600, 2400)),
    "words, no features": Case(words, "levenshtein", (150, 600, 2400), features=None),
    "words, 20 % wrong labels": Case(partial(words, wrong=0.25), "levenshtein"),
    "words, copies": Case(partial(words, copied=0.4), "levenshtein"),
    "words, groups of 6": Case(families, "levenshtein"),
    "waves": Case(waves, "dtw"),
    "waves, no features": Case(waves, "dtw", features=None),
    "two classes": Case(partial(blobs, n_classes=2, spread=1.5), "manhattan", (150, 600, 2400)),
    "no pattern": Case(partial(blobs, n_classes=2, spread=1e3), "manhattan"),
    "150 classes": Case(partial(blobs, n_classes=150, spread=0.4), "manhattan", (600, 2400)),
    "classes of one object": Case(
        partial(blobs, n_classes=60, spread=0.4, shares=ZIPF / ZIPF.sum()), "manhattan"
    ),
    "a class of 3 %": Case(
        partial(blobs, n_classes=2, spread=1.0, shares=np.array([0.97, 0.03])),
        "manhattan",
        (600, 2400),
        rare=1,
    ),
    "groups of 6": Case(partial(nests, size=6, signal=1.5), "manhattan"),
    "groups of 6, no pattern": Case(partial(nests, size=6, signal=0.0), "manhattan"),
    "groups of 3, no pattern": Case(partial(nests, size=3, signal=0.0), "manhattan"),
    "11 languages": Case(
        of_pool(datasets.load_words), "levenshtein", (600, 2400), params=NORMALISED, stored=True
    ),
    "Swiss-Prot": Case(of_pool(datasets.load_swissprot), "smith-waterman", (600,), stored=True),
    "gestures": Case(
        of_pool(lambda: (lambda X, y: (X[:, ::4], y))(*datasets.load_uwave_gestures())),
        "dtw",
        (150, 600),
        stored=True,
    ),
    "chromosomes": Case(of_pool(datasets.load_chromosomes), "numeric-edit", (600,), stored=True),
    "sonatas": Case(of_pool(datasets.load_sonatas), "compression", (150,), splits=5, stored=True),
    "protein": Case(of_matrix(datasets.load_protein), "precomputed", (150,), stored=True),
}
