"""Which power of a dissimilarity is best for PCVM, and whether the leave-one-out loss predicts it.

With 60 random landmarks and four folds, this compares how much a smaller power changes the loss on
new objects with the change that the leave-one-out loss predicts. Words and gestures need
`KREIN_DATA`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from krein.core.pcvm.rows import Rows, basis_values
from krein.core.pcvm.training import POWERS, choose_function, leave_one_out_losses
from krein.datasets import (
    load_mnist_images,
    load_uwave_gestures,
    load_words,
    make_balls,
)
from krein.measures import get_measure

from .accuracy import folder
from .timing import row

M, OBJECTS, FOLDS = 60, 2000, 4


def compared(objects: object, y: object, name: str, **params: object) -> tuple:
    """Return all distances of some of the objects, and their classes."""
    some = np.random.default_rng(0).permutation(len(y))[:OBJECTS]
    measure = get_measure(name, params or None)
    chosen = measure.check([objects[i] for i in some])
    return measure.block(chosen, chosen), np.asarray(y)[some]


def digits() -> tuple:
    X, y = load_digits(return_X_y=True)
    return cdist(X, X), y


SETS: dict[str, tuple[bool, Callable[[], tuple]]] = {
    "digits, Euclidean distance": (False, digits),
    "MNIST, tangent distance": (False, lambda: compared(*load_mnist_images(), "tangent")),
    "balls, gaps": (False, lambda: compared(*make_balls(1000, random_state=0), "balls")),
    "words, Levenshtein": (True, lambda: compared(*load_words(), "levenshtein", normalize=True)),
    "gestures, time warping": (True, lambda: load_uwave_gestures(distance=True)),
}


def one_fold(D: np.ndarray, codes: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict:
    """Return for each power the leave-one-out loss, the loss and the accuracy of new objects."""
    C, y = int(codes.max()) + 1, codes[train]
    L = np.random.default_rng(0).choice(len(train), M, replace=False)
    values, new = D[np.ix_(train, train[L])], D[np.ix_(test, train[L])]
    problem = (np.arange(C), y[L], C)
    voters = Rows(values, y, n_classes=C).thinned(len(y), without=L)
    ones = np.ones(len(voters.y))
    found: dict = {"chosen": choose_function(Rows(values, y, n_classes=C), L, [problem])}
    for function in POWERS:
        losses, _ = leave_one_out_losses(function, voters, ones, [problem])
        features = Rows(values, y).under(function)
        _, (fit,) = leave_one_out_losses(function, Rows(values, y), np.ones(len(y)), [problem])
        P = fit.probabilities(basis_values(function, new) - features.mean)
        own = np.maximum(P[np.arange(len(test)), codes[test]], 1e-15)
        right = 100 * np.mean(P.argmax(axis=1) == codes[test])
        found[function] = np.array([losses.mean(), -np.log(own).mean(), right])
    return found


def run() -> list[dict]:
    rows = []
    for name, (stored, load) in SETS.items():
        if stored and folder() is None:
            continue
        D, y = load()
        codes = np.unique(y, return_inverse=True)[1]
        splits = StratifiedKFold(FOLDS, shuffle=True, random_state=1).split(codes, codes)
        folds = [one_fold(D, codes, train, test) for train, test in splits]
        chosen = ", ".join(fold["chosen"] for fold in folds)
        base = np.mean([fold[POWERS[0]] for fold in folds], axis=0)
        for function in POWERS[1:]:
            told, loss, right = np.mean([fold[function] for fold in folds], axis=0) - base
            rows.append(
                row(
                    f"{name}: {function} for {POWERS[0]}, change of new objects' loss",
                    loss,
                    "",
                    f"predicted by leave-one-out {told:+.3f}; accuracy {right:+.1f} points from "
                    f"{base[2]:.1f}; {len(y) * (FOLDS - 1) / FOLDS / M:.0f} objects per landmark; "
                    f"chosen in the folds: {chosen}",
                    unit="",
                )
            )
            print(rows[-1]["name"], f"{loss:+.3f}", rows[-1]["detail"], flush=True)
    return rows
