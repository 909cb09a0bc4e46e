"""Figure 2: landmarks of each rule on the checkerboard, and the resulting decisions of IKFD.

The paper shows MEB, and the same number of k-means and random landmarks (its random landmarks gave
about 72 %). This figure adds entropy, leverage, and "auto", which chooses the number itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from krein import IKFD
from krein.datasets import make_checkerboard

from .style import BLUE, GREY, REGIONS, VERMILION, frame, options, plt, save, write

NAMES = {
    "meb": "minimum enclosing balls",
    "kmeans": "k-means",
    "random": "random",
    "entropy": "entropy",
    "leverage": "leverage",
    "auto": "auto (chooses the number)",
}


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, objects=900)
    X, y = make_checkerboard(chosen.objects, random_state=0)
    X_new, y_new = make_checkerboard(4000, random_state=1)
    side = np.linspace(-1, 1, 241)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    figure, axes = plt.subplots(2, 3, figsize=(10.5, 7.6))
    number = None
    drawn = []
    for axis, (rule, name) in zip(axes.flat, NAMES.items(), strict=True):
        clf = IKFD(
            "elm", landmarks=rule, n_landmarks=None if rule == "auto" else number, random_state=0
        ).fit(X, y)
        if rule == "meb":
            number = len(clf.landmarks_)
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
    figure.suptitle("Shaded: predictions of IKFD with the ELM kernel; dotted: true boundaries")
    write(chosen.output, "figure2_checkerboard", ["rule", "landmarks", "accuracy %"], drawn)
    save(figure, chosen.output, "figure2_checkerboard")


if __name__ == "__main__":
    main()
