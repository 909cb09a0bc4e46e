"""2,500 Swiss-Prot sequences in 30 PROSITE classes by Smith-Waterman; needs `KREIN_DATA`.

They are a random sample of 8,031. All pairs are aligned once and stored with the results (about
three minutes on one core). The classifiers use the matrix, and MEB a sketch of 100 columns per
class, as it would without a matrix.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from krein import IKFD, IKQD, PCVM
from krein.compare import open_pairs
from krein.datasets import load_swissprot
from krein.landmarks import MEB

from .accuracy import FOLDS, folder, no_data
from .timing import row

SEQUENCES = 2500
KEPT = Path(__file__).parent / "results" / f"swissprot-{SEQUENCES}.npy"


def sample() -> tuple[np.ndarray, np.ndarray]:
    """Return some sequences and their families."""
    X, y = load_swissprot()
    some = np.random.default_rng(0).permutation(len(y))[:SEQUENCES]
    return X[some], y[some]


def matrix(sequences: np.ndarray) -> np.ndarray:
    """Return all normalised scores, computed in the first run and then read from a file."""
    if KEPT.exists():
        return np.load(KEPT, mmap_mode="r")
    pairs = open_pairs("smith-waterman", sequences, verbose=1)
    everyone = np.arange(len(sequences))
    KEPT.parent.mkdir(exist_ok=True)
    np.save(KEPT, pairs.block(everyone, everyone))
    return np.load(KEPT, mmap_mode="r")


def run(folds: int = 5) -> list[dict]:
    if folder() is None:
        return no_data()
    sequences, y = sample()
    K = matrix(sequences)
    meb = MEB(sketch=100, psd=False)
    candidates = {
        "IKFD meb": (IKFD("precomputed", landmarks=meb, random_state=0), folds, "83.5"),
        "IKFD meb, calibrated": (
            IKFD("precomputed", landmarks=meb, calibrate=True, random_state=0),
            folds,
            "",
        ),
        "IKQD meb": (IKQD("precomputed", landmarks=meb, random_state=0), folds, ""),
        "PCVM meb": (
            PCVM("precomputed", landmarks=meb, random_state=0),
            folds,
            "91.5, log-loss 0.32",
        ),
        "PCVM auto": (
            PCVM("precomputed", landmarks="auto", random_state=0),
            folds,
            "93.7 with 8 % of 1-NN's comparisons",
        ),
        "logistic regression, PCVM's landmarks": (None, folds, ""),
        "1-NN, all comparisons": (KNeighborsClassifier(1, metric="precomputed"), folds, ""),
    }
    rows = []
    chosen: dict[int, np.ndarray] = {}
    for name, (clf, n, target) in candidates.items():
        accuracy, losses, sizes, seconds = [], [], [], []
        for k, (train, test) in enumerate(FOLDS.split(y, y)):
            if k == n:
                break
            start = time.perf_counter()
            if clf is None:
                columns = train[chosen[k]]
                model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
                model.fit(K[train][:, columns], y[train])
            elif isinstance(clf, KNeighborsClassifier):
                columns = train
                model = clf.fit(2 - K[train][:, train], y[train])  # a dissimilarity, never below 0
            else:
                model = clf.fit(K[train][:, train], y[train])
                columns = train[model.landmarks_]
                if name == "PCVM meb":
                    chosen[k] = model.selection_.indices
            seconds.append(time.perf_counter() - start)
            new = np.ascontiguousarray(K[test][:, columns])
            P = model.predict_proba(2 - new if columns is train else new)
            accuracy.append(100 * np.mean(model.classes_[P.argmax(axis=1)] == y[test]))
            losses.append(log_loss(y[test], P, labels=model.classes_))
            sizes.append(len(columns))
        rows.append(
            row(
                f"Swiss-Prot: {name}",
                float(np.mean(accuracy)),
                target,
                f"± {np.std(accuracy):.2f} over {len(accuracy)} folds (first {accuracy[0]:.2f}), "
                f"log-loss {np.mean(losses):.3f}, {np.mean(sizes):.0f} comparisons per object, "
                f"fit {np.mean(seconds):.0f} s",
                unit="%",
            )
        )
        print(rows[-1]["name"], f"{rows[-1]['value']:.2f}", rows[-1]["detail"], flush=True)
    return rows
