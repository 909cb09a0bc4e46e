"""Handwritten digits told apart by tangent distance, which is no kernel.

Tangent distance asks how far apart two images are when each may be shifted, turned, scaled
or thickened a little. It is what one wants for digits, and it is not positive semi-definite.
Compared are IKFD and PCVM, which take it as it is and look at a few landmarks, and what one would
do otherwise: the nearest of all training images, and an SVM on a clipped matrix.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from krein import IKFD, PCVM
from krein.blocks import open_new_pairs, open_pairs
from krein.core.convert import double_centre
from krein.core.spectrum import correct, estimate_spectrum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder of the result")
    parser.add_argument("--objects", type=int, default=1797, help="how many digits to take")
    options = parser.parse_args()
    console = Console()

    digits = load_digits()
    images, labels = digits.images[: options.objects], digits.target[: options.objects]
    train, test = train_test_split(
        np.arange(len(labels)), test_size=0.3, stratify=labels, random_state=0
    )
    console.print(f"\n[bold]{len(labels)} handwritten digits, compared by tangent distance[/bold]")

    everyone = np.arange(len(train))
    full = open_pairs("tangent", images[train])
    spectrum = estimate_spectrum(
        lambda r, c: double_centre(full.block(r, c) ** 2),
        len(train),
        size=400,
        rng=np.random.default_rng(0),
    )
    console.print(
        f"{100 * spectrum.negative_mass:.0f} % of the spectrum is negative "
        f"(on {spectrum.n_sampled} digits): no kernel, and krein changes nothing about it.\n"
    )

    results, predictions = [], {}

    def evaluate(name: str, fit_and_predict) -> None:
        start = time.perf_counter()
        P, classes, fitted, each = fit_and_predict()
        seconds = time.perf_counter() - start
        accuracy = accuracy_score(labels[test], classes[P.argmax(axis=1)])
        results.append((name, accuracy, log_loss(labels[test], P), fitted, each, seconds))
        predictions[name] = P

    def landmarked(cls, **options):
        def run():
            clf = cls("tangent", random_state=0, **options)
            clf.fit(images[train], labels[train])
            P = clf.predict_proba(images[test])
            return P, clf.classes_, clf.kernel_evaluations_, len(clf.landmarks_)

        return run

    def dense(predict, *, fits=True):
        def run():
            before = full.evaluations
            D = full.block(everyone, everyone)
            pairs_to_fit = full.evaluations - before
            new = open_new_pairs("tangent", images[test], images[train])
            D_new = new.block(np.arange(len(test)), everyone)
            P, classes = predict(D, D_new)
            return P, classes, pairs_to_fit if fits else 0, len(train)

        return run

    def knn(D, D_new):
        clf = KNeighborsClassifier(1, metric="precomputed").fit(D, labels[train])
        return clf.predict_proba(D_new), clf.classes_

    def svm(D, D_new):
        # similarities of new objects, centred like the training matrix
        S = double_centre(D**2)
        D2 = D**2
        S_new = -0.5 * (
            D_new**2 - (D_new**2).mean(axis=1, keepdims=True) - D2.mean(axis=0) + D2.mean()
        )
        clipped = correct(S, "clip")
        scale = np.abs(S).max()
        from sklearn.calibration import CalibratedClassifierCV

        clf = CalibratedClassifierCV(SVC(kernel="precomputed", C=10.0), ensemble=False)
        clf.fit(clipped.matrix / scale, labels[train])
        return clf.predict_proba(clipped.map_new(S_new) / scale), clf.classes_

    evaluate("IKFD, enclosing balls", landmarked(IKFD, calibrate=True))
    evaluate("PCVM, enclosing balls", landmarked(PCVM))
    evaluate("IKFD, auto", landmarked(IKFD, calibrate=True, landmarks="auto"))
    evaluate("nearest neighbour", dense(knn, fits=False))
    evaluate("SVM, clipped matrix", dense(svm))

    table = Table()
    table.add_column("classifier", no_wrap=True)
    for heading in ("accuracy", "log-loss", "pairs to fit", "a new digit", "seconds"):
        table.add_column(heading, justify="right")
    for name, accuracy, loss, fitted, each, seconds in results:
        table.add_row(
            name,
            f"{100 * accuracy:.1f} %",
            f"{loss:.3f}",
            f"{fitted / 1000:,.0f} k",
            f"{each:,}",
            f"{seconds:.1f}",
        )
    console.print(table)

    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "digits.csv"
    P = predictions["IKFD, auto"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["digit", "true", "predicted", "probability", "runner-up"])
        for row, i in enumerate(test):
            order = np.argsort(-P[row])
            writer.writerow([i, labels[i], order[0], f"{P[row, order[0]]:.4f}", order[1]])
    console.print(f"\nEvery prediction with its probability: [bold]{path}[/bold]\n")


if __name__ == "__main__":
    main()
