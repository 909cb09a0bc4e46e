"""Section 4.3: three Gaussians, two of them small. Which landmark rules see the small ones?

Ten-fold cross-validation of IKFD with the ELM kernel. The paper reports 100 % with 10 landmarks
of MEB, about 84 % for k-means and entropy and 83 % for random landmarks at the same number.
Label 0 alone is 92.6 % of the points here, as in the paper's numbers; so the balanced accuracy,
the mean over the two classes, is given too.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import StratifiedKFold, cross_validate

from krein import IKFD
from krein.datasets import make_three_gaussians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("paper/results"))
    parser.add_argument("--objects", type=int, default=500, help="points of the large Gaussian")
    options = parser.parse_args()
    X, y = make_three_gaussians(options.objects, max(20, options.objects // 25), random_state=0)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    rows = []
    number = None
    for rule in ("meb", "kmeans", "entropy", "random", "leverage"):
        found = cross_validate(
            IKFD("elm", landmarks=rule, n_landmarks=number, random_state=0),
            X,
            y,
            cv=folds,
            scoring=("accuracy", "balanced_accuracy"),
            return_estimator=True,
        )
        landmarks = np.mean([len(clf.landmarks_) for clf in found["estimator"]])
        if rule == "meb":
            number = round(landmarks)
        accuracy, balanced = found["test_accuracy"], found["test_balanced_accuracy"]
        rows.append(
            [
                rule,
                f"{landmarks:.1f}",
                f"{100 * accuracy.mean():.1f} ± {100 * accuracy.std():.1f}",
                f"{100 * balanced.mean():.1f} ± {100 * balanced.std():.1f}",
            ]
        )
    headings = ["landmarks", "number", "accuracy %", "balanced accuracy %"]
    table = Table(*headings)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "three_gaussians.csv").open("w", newline="") as file:
        csv.writer(file).writerows([headings, *rows])


if __name__ == "__main__":
    main()
