"""132,000 words of 11 languages by normalised Levenshtein distance; needs `KREIN_DATA`.

Every method compares an object with the same 500 random training words. A tenth of the words is
held out.
"""

from __future__ import annotations

import csv
import lzma
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from krein import IKFD, IKQD, PCVM
from krein.io import open_source
from krein.measures import get_measure

from .accuracy import folder, no_data
from .timing import Alone, alone, row

M = 500
NORMALISED = {"normalize": True}
MODELS = {
    "IKFD": IKFD("elm", calibrate=True),
    "IKQD": IKQD("elm", calibrate=True),
    "PCVM": PCVM("elm"),
}
REACH = {
    "IKFD": "at least k-NN's",
    "IKQD": "at least logistic regression's and k-NN's",
    "PCVM": "at least logistic regression's and k-NN's",
}


def split(data: Path, place: Path) -> None:
    """Write the two files: nine tenths for training, one for testing."""
    with lzma.open(data / "words_language.csv.xz", "rt", newline="", encoding="utf-8") as file:
        heading, *rows = csv.reader(file)
    order = np.random.default_rng(0).permutation(len(rows))
    held = len(rows) // 10
    for name, part in (("test", order[:held]), ("train", order[held:])):
        with open(place / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(heading)
            writer.writerows(rows[i] for i in part)


def read(path: Path) -> tuple[list[str], np.ndarray]:
    with open(path, newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return [r[1] for r in rows], np.array([r[0] for r in rows])


def landmarks(n: int) -> np.ndarray:
    return np.sort(np.random.default_rng(1).choice(n, M, replace=False))


def ours(name: str, place: Path, n: int) -> dict:
    """Fit from one file and predict the other in chunks."""
    model = clone(MODELS[name]).set_params(
        measure="levenshtein",
        measure_params=NORMALISED,
        landmarks=landmarks(n),
        # in a child process, None would mean one thread
        n_jobs=-1,
    )
    start = time.perf_counter()
    model.fit(open_source(place / "train.csv", objects="word", labels="language"))
    seconds = time.perf_counter() - start
    new = open_source(place / "test.csv", objects="word", labels="language")
    P = np.concatenate(list(model.predict_proba(new)))
    _, truth = read(place / "test.csv")
    return {"seconds": seconds, **told(P, model.classes_, truth), "compared": len(model.landmarks_)}


def told(P: np.ndarray, classes: np.ndarray, truth: np.ndarray) -> dict:
    return {
        "accuracy": 100 * float(np.mean(classes[P.argmax(axis=1)] == truth)),
        "loss": float(log_loss(truth, P, labels=classes)),
    }


def distances(place: Path, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    words, y = read(place / "train.csv")
    new, truth = read(place / "test.csv")
    measure = get_measure("levenshtein", NORMALISED)
    chosen = [words[i] for i in landmarks(n)]
    return measure.block(words, chosen), y, measure.block(new, chosen), truth


def logistic(place: Path, n: int) -> dict:
    """Logistic regression on the same rows, all in memory."""
    start = time.perf_counter()
    D, y, new, truth = distances(place, n)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(D, y)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, **told(model.predict_proba(new), model.classes_, truth)}


def neighbours(place: Path, n: int) -> dict:
    """Nearest neighbours among the 500; of k = 1, 5 and 15, the best on the test set."""
    words, y = read(place / "train.csv")
    new, truth = read(place / "test.csv")
    chosen = landmarks(n)
    start = time.perf_counter()
    D = get_measure("levenshtein", NORMALISED).block(new, [words[i] for i in chosen])
    near = y[chosen][np.argsort(D, axis=1, kind="stable")]
    classes = np.unique(y)
    best = {"accuracy": 0.0}
    for k in (1, 5, 15):
        votes = np.stack([(near[:, :k] == c).sum(axis=1) for c in classes], axis=1)
        # ties go to the class of the nearer object
        votes = votes + 0.5 * (classes == near[:, :1])
        accuracy = 100 * float(np.mean(classes[votes.argmax(axis=1)] == truth))
        if accuracy > best["accuracy"]:
            best = {"accuracy": accuracy, "k": k}
    return {"seconds": time.perf_counter() - start, **best}


def run() -> list[dict]:
    data = folder()
    if data is None:
        return no_data()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        split(data, place)
        n = len(read(place / "train.csv")[0])
        found: dict[str, Alone] = {
            "k-NN": alone(neighbours, place, n),
            **{name: alone(ours, name, place, n) for name in MODELS},
            "logistic regression": alone(logistic, place, n),
        }
    for what, one in found.items():
        here = one.result
        loss = f", log-loss {here['loss']:.3f}" if "loss" in here else f", k = {here['k']}"
        rows.append(
            row(
                f"words: {what}",
                here["accuracy"],
                REACH.get(what, ""),
                f"fit {here['seconds']:.0f} s, {one.resident / 2**20:.0f} MB peak resident memory"
                f"{loss}; {n:,} words to fit, {M} comparisons per object",
                unit="%",
            )
        )
        print(rows[-1]["name"], f"{rows[-1]['value']:.2f}", rows[-1]["detail"], flush=True)
    return rows
