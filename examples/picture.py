"""Draw the figure of the README: digits under tangent distance, and the cost of a prediction.

Left: the digits along the two directions that best separate them, in coordinates computed only from
their distances to the landmarks. Right: accuracy on new digits against the number of comparisons
per digit, by comparisons alone and together with features of the images; the line shows what the
features reach without any comparison.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from krein import KreinClassifier, NystromMap
from krein.compare import open_new_pairs
from krein.evaluation import evaluate

COLOURS = plt.get_cmap("tab10").colors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/images/digits.png"))
    parser.add_argument("--objects", type=int, default=1797)
    options = parser.parse_args()
    digits = load_digits()
    images, labels = digits.images[: options.objects], digits.target[: options.objects]
    train, test = train_test_split(
        np.arange(len(labels)), test_size=0.3, stratify=labels, random_state=0
    )
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 4.6), width_ratios=[1.15, 1], constrained_layout=True
    )

    def fitted(features: str | None, budget: float | None = None) -> KreinClassifier:
        clf = KreinClassifier("tangent", features=features, max_comparisons=budget)
        return clf.fit(images[train], labels[train])

    default = fitted("auto")
    nystrom = NystromMap("tangent", landmarks=default.landmarks_).fit(images[train], labels[train])
    lda = LinearDiscriminantAnalysis(n_components=2)
    V = lda.fit_transform(nystrom.transform(images[train]), labels[train])
    for digit in range(10):
        members = labels[train] == digit
        left.scatter(*V[members].T, s=7, color=COLOURS[digit], alpha=0.45, linewidths=0)
        centre = np.median(V[members], axis=0)
        left.annotate(
            str(digit),
            centre,
            ha="center",
            va="center",
            fontsize=17,
            weight="bold",
            color=COLOURS[digit],
            path_effects=[_outline()],
        )
    left.scatter(
        *V[nystrom.landmarks_].T,
        s=46,
        facecolors="none",
        edgecolors="black",
        linewidths=1.1,
        label=f"{len(nystrom.landmarks_)} landmarks represent {len(train):,} digits",
    )
    left.set(xticks=[], yticks=[], title="Digits under tangent distance, which is not a kernel")
    left.legend(loc="lower left", frameon=False)

    def cost_and_accuracy(clf: KreinClassifier) -> tuple[float, float]:
        accuracy = accuracy_score(labels[test], clf.predict(images[test]))
        return clf.last_comparisons_ / len(test), accuracy

    sizes = [m for m in (30, 50, 100, 200, 400) if m < len(train)]
    budgets = [b for b in (20, 30, 40, 60) if b < len(train)]
    compared = sorted({cost_and_accuracy(fitted(None, b)) for b in (*budgets, None)})
    found = evaluate(
        images[train], labels[train], ["features"], measure="tangent",
        test=(images[test], labels[test]), verbose=0,
    )  # fmt: skip
    alone = found.models["features"].right.mean()
    D = open_new_pairs("tangent", images[test], images[train])
    D = D.block(np.arange(len(test)), np.arange(len(train)))
    neighbours = []
    rng = np.random.default_rng(0)
    for m in [*sizes, len(train)]:
        accuracies = []
        for _ in range(1 if m == len(train) else 5):
            chosen = rng.choice(len(train), m, replace=False)
            knn = KNeighborsClassifier(1, metric="precomputed")
            knn.fit(np.zeros((m, m)), labels[train][chosen])
            accuracies.append(accuracy_score(labels[test], knn.predict(D[:, chosen])))
        neighbours.append((m, float(np.mean(accuracies))))
    with_features = [cost_and_accuracy(default)]
    for points, name, colour, marker, labelled, offset, side in (
        (with_features, "krein, with features", "#0072B2", "*", 0, (0, -19), "center"),
        (compared, "krein, comparisons alone", "#00805E", "o", -1, (9, 2), "left"),
        (neighbours, "1-NN in a random subset", "#B84D00", "s", len(sizes) // 2, (9, -6), "left"),
    ):
        x, y = np.array(points).T
        size = 14 if marker == "*" else 6
        right.plot(x, 100 * y, marker=marker, markersize=size, color=colour)
        place = (x[labelled], 100 * y[labelled])
        given = {"textcoords": "offset points", "ha": side, "color": colour}
        right.annotate(name, place, offset, **given)
    right.axhline(100 * alone, color="#666666", linestyle="--")
    right.annotate(
        "features alone", (1, 100 * alone), (-4, -12), xycoords=("axes fraction", "data"),
        textcoords="offset points", ha="right", color="#555555",
    )  # fmt: skip
    right.set(
        xscale="log",
        xlabel="comparisons per new digit",
        ylabel="accuracy on new digits (%)",
        title="What comparisons add, and what features do",
    )
    ticks = [3, 10, 30, 100, 300, 1000]
    right.set_xticks(ticks, [f"{t:,}" for t in ticks])
    right.minorticks_off()
    right.grid(alpha=0.25)
    right.spines[["top", "right"]].set_visible(False)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.output, dpi=110)
    print(f"written to {options.output}")


def _outline():
    from matplotlib.patheffects import withStroke

    return withStroke(linewidth=3, foreground="white")


if __name__ == "__main__":
    main()
