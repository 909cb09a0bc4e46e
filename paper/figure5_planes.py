"""Figure 5: decision boundaries of iKFD for two Gaussians in the pseudo-Euclidean plane ℝ^(1,1).

The similarity is ⟨x, y⟩ = x₁y₁ − x₂y₂. Under it, the difference between the means has length zero,
but iKFD, as published, still separates the classes, both dense and with landmarks. K has rank 2, so
any two independent landmarks give K̃ = K, and the two forms must agree. Clipping the negative
eigenvalues, a common correction, removes one of the two directions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from krein import IKFD
from krein.core.space import correct
from krein.datasets import make_pseudo_euclidean_gaussians

from .style import GREY, REGIONS, options, plt, save, scatter, write

J = np.diag([1.0, -1.0])
EDGE = 4.2


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, objects=200)
    X, y = make_pseudo_euclidean_gaussians(chosen.objects, random_state=0)
    X_new, y_new = make_pseudo_euclidean_gaussians(5000, random_state=1)
    K = X @ J @ X.T
    clipped = correct(K, "clip")
    side = np.linspace(-EDGE, EDGE, 241)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

    def given(Z: np.ndarray) -> np.ndarray:
        return Z @ J @ X.T

    def corrected(Z: np.ndarray) -> np.ndarray:
        return clipped.map_new(given(Z))

    dense = IKFD("precomputed", landmarks="all", solver="paper").fit(K, y)
    meb = IKFD("precomputed", landmarks="meb", solver="paper", random_state=0).fit(K, y)
    cut = IKFD("precomputed", landmarks="all", solver="paper").fit(clipped.matrix, y)
    panels = {
        "iKFD, all objects as landmarks": (dense, given),
        f"Ny-iKFD, {len(meb.landmarks_)} MEB landmarks": (meb, given),
        "iKFD on the clipped matrix": (cut, corrected),
    }
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.9), sharey=True)
    drawn = []
    for axis, (title, (clf, similarities)) in zip(axes, panels.items(), strict=True):
        P = clf.predict_proba(similarities(grid))[:, 1].reshape(len(side), len(side))
        accuracy = 100 * clf.score(similarities(X_new), y_new)
        axis.contourf(side, side, P, levels=[0, 0.5, 1], colors=REGIONS.colors)
        axis.contour(side, side, P, levels=[0.5], colors="black", linewidths=1.8)
        axis.contour(side, side, P, levels=[0.1, 0.9], colors=GREY, linewidths=1, linestyles="--")
        for slope in (1, -1):
            axis.plot(side, slope * side, color=GREY, lw=0.8, ls=":")
        scatter(axis, X, y)
        if len(clf.landmarks_) < len(X):
            axis.scatter(
                *X[clf.landmarks_].T, s=110, facecolors="none", edgecolors="black", linewidths=1.6,
                label="landmark",
            )  # fmt: skip
        axis.set(
            xlim=(-EDGE, EDGE), ylim=(-EDGE, EDGE), aspect="equal", xlabel="x₁ (positive direction)"
        )
        axis.set_title(f"{title}\naccuracy {accuracy:.1f} % on new points", loc="left")
        p, q, _ = clf.signature_
        drawn.append([title, len(clf.landmarks_), p, q, accuracy])
        print(
            f"{title}: signature ({p}, {q}), accuracy {accuracy:.1f} % on {len(y_new)} new points"
        )
    axes[0].set_ylabel("x₂ (negative direction)")
    lines = [
        plt.Line2D([], [], color="black", lw=1.8, label="probability ½"),
        plt.Line2D([], [], color=GREY, lw=1, ls="--", label="0.1 and 0.9"),
        plt.Line2D([], [], color=GREY, lw=0.8, ls=":", label="vectors of zero length"),
    ]
    points = axes[1].get_legend_handles_labels()[0]
    figure.legend(handles=[*points, *lines], loc="outside lower center", ncols=6)
    headings = ["classifier", "landmarks", "positive", "negative", "accuracy %"]
    write(chosen.output, "figure5_planes", headings, drawn)
    save(figure, chosen.output, "figure5_planes")


if __name__ == "__main__":
    main()
