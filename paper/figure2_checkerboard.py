"""Figure 2: the checkerboard with the landmarks of each rule and what IKFD makes of them."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from krein import IKFD
from krein.datasets import make_checkerboard

REGIONS = ListedColormap(["#BFD9EA", "#F6D5BF"])
POINTS = np.array(["#0072B2", "#D55E00"])
NAMES = {
    "meb": "minimum enclosing balls",
    "kmeans": "k-means",
    "entropy": "entropy",
    "random": "random",
    "leverage": "leverage",
    "auto": "auto: grown towards the errors",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("paper/results"))
    parser.add_argument("--objects", type=int, default=900)
    options = parser.parse_args()
    X, y = make_checkerboard(options.objects, random_state=0)
    X_new, y_new = make_checkerboard(4000, random_state=1)
    side = np.linspace(-1, 1, 241)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    figure, axes = plt.subplots(2, 3, figsize=(10.5, 7.4), constrained_layout=True)
    number = None
    for axis, (rule, name) in zip(axes.flat, NAMES.items(), strict=True):
        clf = IKFD(
            "elm", landmarks=rule, n_landmarks=None if rule == "auto" else number, random_state=0
        ).fit(X, y)
        if rule == "meb":
            number = len(clf.landmarks_)
        predicted = clf.predict(grid).reshape(len(side), len(side))
        axis.pcolormesh(side, side, predicted, cmap=REGIONS, vmin=0, vmax=1, rasterized=True)
        axis.scatter(*X.T, s=3, c=POINTS[y], linewidths=0)
        axis.scatter(
            *X[clf.landmarks_].T, s=52, facecolors="none", edgecolors="black", linewidths=1.5
        )
        for line in (-1 / 3, 1 / 3):
            axis.axhline(line, color="grey", lw=0.6, ls=":")
            axis.axvline(line, color="grey", lw=0.6, ls=":")
        accuracy = 100 * clf.score(X_new, y_new)
        axis.set(xticks=[], yticks=[], aspect="equal", xlim=(-1, 1), ylim=(-1, 1))
        axis.set_title(f"{name}\n{len(clf.landmarks_)} landmarks, {accuracy:.0f} % of new points")
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "figure2_checkerboard.png"
    figure.savefig(path, dpi=100)
    print(f"written to {path}")


if __name__ == "__main__":
    main()
