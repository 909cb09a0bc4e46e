"""Figure 2: landmarks of each rule on the checkerboard, and the decisions of iKFD as published.

The training objects and landmarks of the first fold of table 1. The paper shows MEB, and the same
number of k-means and random landmarks (its random landmarks gave about 72 %); this figure adds
entropy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from krein import IKFD
from krein.datasets import make_checkerboard

from .folds import splits
from .methods import Fold, choose
from .sets import prepare
from .style import BLUE, GREY, REGIONS, VERMILION, frame, options, plt, save, write

NAMES = {
    "meb": "minimum enclosing balls",
    "kmeans": "k-means",
    "random": "random",
    "entropy": "entropy",
}


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, objects=900)
    data = prepare("checker", chosen.output / "sets", chosen.objects)
    fold = Fold(data, *splits(data.y, 10)[0])
    X, y = np.array(data.values[fold.train]), fold.y
    X_new, y_new = make_checkerboard(4000, random_state=1)
    side = np.linspace(-1, 1, 241)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    figure, axes = plt.subplots(1, 4, figsize=(13, 4.2))
    drawn = []
    for axis, (rule, name) in zip(axes.flat, NAMES.items(), strict=True):
        landmarks = choose(f"ikfd:{rule}:paper", fold, seed=0)
        clf = IKFD("elm", landmarks=landmarks, solver="paper").fit(X, y)
        predicted = clf.predict(grid).reshape(len(side), len(side))
        accuracy = 100 * clf.score(X_new, y_new)
        axis.pcolormesh(side, side, predicted, cmap=REGIONS, vmin=0, vmax=1, rasterized=True)
        axis.scatter(*X.T, s=4, c=np.array([BLUE, VERMILION])[y], linewidths=0)
        axis.scatter(
            *X[clf.landmarks_].T, s=52, facecolors="none", edgecolors="black", linewidths=1.5
        )
        for line in (-1 / 3, 1 / 3):
            axis.axhline(line, color=GREY, lw=0.8, ls=":")
            axis.axvline(line, color=GREY, lw=0.8, ls=":")
        frame(axis)
        axis.set(aspect="equal", xlim=(-1, 1), ylim=(-1, 1))
        axis.set_title(
            f"{name}\n{len(clf.landmarks_)} landmarks (○), {accuracy:.0f} % on new points",
            loc="left",
        )
        drawn.append([rule, len(clf.landmarks_), accuracy])
        print(
            f"{name}: {len(clf.landmarks_)} landmarks, accuracy {accuracy:.1f} % on {len(y_new)} "
            "new points"
        )
    figure.suptitle("Shaded: predictions of iKFD as published, ELM kernel; dotted: true boundaries")
    write(chosen.output, "figure2_checkerboard", ["rule", "landmarks", "accuracy %"], drawn)
    save(figure, chosen.output, "figure2_checkerboard")


if __name__ == "__main__":
    main()
