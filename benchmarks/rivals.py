"""KreinClassifier compared with every other available model, on the sets of `looks`.

The other models use favourable settings: the landmarks of "auto", or all pairs; SVMs on the clipped
and on the flipped matrix with C chosen by inner folds; the better of 1 and 5 neighbours. Of larger
sets, a sample of 1,000 objects in three folds is used. Most of it needs `KREIN_DATA`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import SVC

from krein import IKFD, IKQD, PCVM, KreinClassifier
from krein.core.shapes import Kind
from krein.core.space import Conversion, correct

from .accuracy import folder
from .looks import SETS, Set, votes
from .timing import row

MOST_OBJECTS = 1000
"""Of larger sets, a stratified sample of this many is used."""

FOLDS = {500: 10, MOST_OBJECTS: 3}
"""Number of folds, by the number of objects up to which it holds."""

Labels = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # K, codes, new values → codes


def run() -> list[dict]:
    rows = []
    for name, data in SETS.items():
        if data.needs_data and folder() is None:
            rows.append(row(name, float("nan"), "", "set KREIN_DATA"))
            continue
        rows.append(entry := compared_with_rivals(name, data))
        print(entry["name"], f"{entry['value']:.2f}", entry["detail"], flush=True)
    return rows


def compared_with_rivals(name: str, data: Set) -> dict:
    """Return the lead of KreinClassifier over the best other model, in % of the objects."""
    values, y, kind = data.load()
    y = np.unique(y, return_inverse=True)[1]
    if len(y) > MOST_OBJECTS:
        rows, _ = train_test_split(
            np.arange(len(y)), train_size=MOST_OBJECTS, stratify=y, random_state=0
        )
        values, y = values[np.ix_(rows, rows)], y[rows]
    n_folds = next(n for most, n in FOLDS.items() if len(y) <= most)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0).split(y, y)
    right: dict[str, list[np.ndarray]] = {}
    for train, test in folds:
        K, new = values[np.ix_(train, train)], values[np.ix_(test, train)]
        for title, labels in methods(kind).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                right.setdefault(title, []).append(labels(K, y[train], new) == y[test])
    found = {title: np.concatenate(parts) for title, parts in right.items()}
    ours = found.pop("KreinClassifier")
    best = max(found, key=lambda title: found[title].mean())
    ahead = ours.astype(float) - found[best]
    error = 100 * ahead.std() / np.sqrt(len(ahead))
    others = ", ".join(f"{title} {100 * each.mean():.2f}" for title, each in found.items())
    return row(
        f"{name}: ahead of {best}",
        100 * ahead.mean(),
        f"at least −{error:.2f}",
        f"± {error:.2f}, KreinClassifier {100 * ours.mean():.2f}, {others}",
        unit="%",
    )


def methods(kind: str) -> dict[str, Labels]:
    """Return all models, as functions that return the labels of new objects."""
    measure = "precomputed" if kind == "similarity" else "precomputed-distance"

    def fitted(clf) -> Labels:
        return lambda K, y, new: clf.fit(K, y).predict(new)

    chosen = {
        "KreinClassifier": fitted(KreinClassifier(measure)),
        "IKFD auto": fitted(IKFD(measure, landmarks="auto", random_state=0)),
        "IKQD auto": fitted(IKQD(measure, landmarks="auto", random_state=0)),
        "PCVM auto": fitted(PCVM(measure, landmarks="auto", random_state=0)),
        "IKFD all": fitted(IKFD(measure, landmarks="all")),
        "IKQD all": fitted(IKQD(measure, landmarks="all")),
        "PCVM all": fitted(PCVM(measure, landmarks="all")),
    }
    for how in ("clip", "flip"):
        chosen[f"SVC, {how}"] = svm(kind, how)
    sign = 1.0 if kind == "dissimilarity" else -1.0
    for k in (1, 5):
        chosen[f"{k}-NN"] = lambda K, y, new, k=k: votes(sign * new, y, y.max() + 1, k).argmax(
            axis=1
        )
    return chosen


def svm(kind: Kind, how: str) -> Labels:
    """Return an SVM on the clipped or the flipped matrix."""

    def labels(K: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
        conversion = Conversion.of(K, kind)
        K, new = conversion.similarities(K), conversion.similarities(new)
        corrected = correct((K + K.T) / 2, how)
        scale = float(np.trace(corrected.matrix) / len(K)) or 1.0
        inner = StratifiedKFold(3, shuffle=True, random_state=0)
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": (1.0, 10.0, 100.0)}, cv=inner)
        search.fit(corrected.matrix / scale, y)
        return search.predict(new @ corrected.P / scale)

    return labels
