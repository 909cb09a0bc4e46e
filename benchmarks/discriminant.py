"""IKFD on a million points, and compared with common alternatives."""

from __future__ import annotations

import time
from unittest import mock

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from krein import IKFD, PCVM
from krein.core.space import correct, landmark_basis
from krein.measures.vectors import ELM, TL1

from .timing import best_times, exponent, peak_memory, row


def checkerboard(N: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 3, size=(N, 2))
    return X, X.astype(int).sum(axis=1) % 2


def a_million() -> list[dict]:
    N, m = 1_000_000, 100
    X, y = checkerboard(N)
    landmarks = np.random.default_rng(1).choice(125_000, m, replace=False)
    sigma = ELM().sigma
    L = X[landmarks]

    def elm(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        a = 1 / (2 * sigma**2) + 1 + (A**2).sum(axis=1)
        b = 1 / (2 * sigma**2) + 1 + (B**2).sum(axis=1)
        return 2 / np.pi * np.arcsin((1 + A @ B.T) / np.sqrt(np.outer(a, b)))

    T = landmark_basis(elm(L, L)).T

    def bare() -> np.ndarray:
        G = np.zeros((T.shape[1],) * 2)
        for start in range(0, N, 4096):
            B = elm(X[start : start + 4096], L) @ T
            G += B.T @ B
        return G

    def fit(n: int = N) -> IKFD:
        return IKFD("elm", landmarks=landmarks).fit(X[:n], y[:n])

    ours, reference = best_times(fit, bare)
    quarter, whole = (peak_memory(lambda n=n: fit(n)) for n in (250_000, N))
    sizes = [125_000, 250_000, 500_000, 1_000_000]
    times = [best_times(lambda n=n: fit(n))[0] for n in sizes]
    return [
        row(
            "IKFD.fit / bare loop",
            ours / reference,
            "at most 1.6",
            f"N = {N:,}, m = {m}: {ours:.2f} s against {reference:.2f} s",
        ),
        row(
            "memory at N = 10⁶ / at 250,000",
            whole / quarter,
            "below 1.1",
            f"{whole / 2**20:.0f} MiB against {quarter / 2**20:.0f} MiB beyond the input",
        ),
        row("exponent in N", exponent(sizes, times), "at most 1.05", f"N = {sizes}", unit=""),
    ]


def dense(N: int = 4000) -> list[dict]:
    """With all objects as landmarks: N×N decompositions, and the time relative to one of them."""
    X, y = checkerboard(N)
    K = TL1().block(X, X)
    K = (K + K.T) / 2
    rows = []
    for calibrate in (False, True):
        calls = []

        def counted(A: np.ndarray, eigh=np.linalg.eigh, calls=calls) -> object:
            calls.append(len(A))
            return eigh(A)

        def fit(calibrate: bool = calibrate) -> IKFD:
            return IKFD("precomputed", landmarks="all", calibrate=calibrate).fit(K, y)

        ours, reference = best_times(fit, lambda: np.linalg.eigh(K), repeats=1)
        with mock.patch("numpy.linalg.eigh", counted):
            fit()
        rows.append(
            row(
                f"IKFD, all {N:,} objects as landmarks{', calibrated' * calibrate} / one eigh",
                ours / reference,
                "",
                f"{ours:.1f} s against {reference:.1f} s; "
                f"{sum(2 * n > N for n in calls)} decompositions of more than N/2 rows",
            )
        )
    return rows


def beside_others() -> list[dict]:
    """An indefinite similarity (truncated l1) on the checkerboard, with 5 % of the labels wrong."""
    rows = []
    measure = TL1()
    X_new, y_new = checkerboard(2000, seed=9)
    for N in (1000, 2000, 4000):
        X, y = checkerboard(N, seed=1)
        noise = np.random.default_rng(2).random(N) < 0.05
        y = np.where(noise, 1 - y, y)
        K, K_new = measure.block(X, X), measure.block(X_new, X)

        def clipped_svm(K=K, K_new=K_new):
            corrected = correct(K, "clip")
            return (
                SVC(kernel="precomputed"),
                corrected.matrix,
                corrected.map_new(K_new),
            )

        candidates = {
            "IKFD, 100 random landmarks": (
                lambda: IKFD("precomputed", landmarks="random", n_landmarks=100, random_state=0),
                100,
            ),
            "PCVM, the same landmarks": (
                lambda: PCVM("precomputed", landmarks="random", n_landmarks=100, random_state=0),
                100,
            ),
            "k-NN": (lambda: KNeighborsClassifier(9, metric="precomputed"), N),
            "logistic regression on 100 columns": (
                lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
                100,
            ),
            "SVC on the clipped matrix": (None, N),
        }
        for name, (make, each) in candidates.items():
            start = time.perf_counter()
            if make is None:
                clf, train, new = clipped_svm()
            else:
                clf, train, new = make(), K, K_new
            if name == "k-NN":  # a dissimilarity
                train, new = K.max() - K, K.max() - K_new
            if name.startswith("logistic"):
                columns = np.random.default_rng(0).choice(N, 100, replace=False)
                train, new = K[:, columns], K_new[:, columns]
            clf.fit(train, y)
            fitted = time.perf_counter() - start
            start = time.perf_counter()
            predicted = clf.predict(new)
            each = len(clf.landmarks_) if hasattr(clf, "landmarks_") else each
            seconds = time.perf_counter() - start
            loss = (
                f"{log_loss(y_new, clf.predict_proba(new)):.3f}"
                if hasattr(clf, "predict_proba")
                else "–"
            )
            rows.append(
                row(
                    f"{name}, N = {N:,}",
                    100 * accuracy_score(y_new, predicted),
                    "",
                    f"log-loss {loss}, fit {fitted:.2f} s, predict {seconds:.2f} s, "
                    f"{each:,} pairs per new object",
                    unit="%",
                )
            )
    return rows


def run() -> list[dict]:
    return a_million() + dense() + beside_others()
