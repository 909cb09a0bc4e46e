"""
Three models, one rule for landmarks
====================================

A narrow band of objects lies across a broad cloud. IKFD adds up similarities to the landmarks. IKQD
gives each class its own covariance, so it can tell a narrow class from a broad one even with few,
uninformative landmarks. PCVM fits the boundary directly and, with two classes, drops landmarks that
it does not need. Dark means certain, pale means uncertain.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from krein import IKFD, IKQD, PCVM

# %%
rng = np.random.default_rng(3)


def draw(n):
    turn = np.array([[0.8, 0.6], [-0.6, 0.8]])
    band, cloud = rng.normal(size=(n, 2)) * [1.6, 0.25] @ turn, 1.3 * rng.normal(size=(n, 2))
    return np.vstack([band, cloud]), np.repeat([0, 1], n)


X, y = draw(250)
X_new, y_new = draw(3000)

# %%
# Top row: the ELM kernel, the default for vectors. Bottom row: the Manhattan distance, which is not
# a kernel. For that distance, enclosing balls choose only six landmarks, most of them far out. With
# so little information, IKFD and PCVM fail.
shades = LinearSegmentedColormap.from_list("doubt", ["#D55E00", "#f7f7f7", "#0072B2"])
grid = np.stack(np.meshgrid(*[np.linspace(-3.2, 3.2, 120)] * 2), axis=-1)
figure, rows = plt.subplots(2, 3, figsize=(9.6, 7), constrained_layout=True)
for row, measure in zip(rows, ("elm", "manhattan"), strict=True):
    for ax, cls in zip(row, (IKFD, IKQD, PCVM), strict=True):
        clf = cls(measure, random_state=0).fit(X, y)
        P = clf.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(120, 120)
        ax.pcolormesh(grid[..., 0], grid[..., 1], P, cmap=shades, vmin=0, vmax=1, rasterized=True)
        ax.contour(grid[..., 0], grid[..., 1], P, [0.5], colors="black", linewidths=1.2)
        for label, marker, colour in ((0, "o", "#7f3000"), (1, "^", "#003d63")):
            ax.scatter(*X[y == label].T, s=8, marker=marker, color=colour, linewidths=0)
        ax.scatter(
            *X[clf.landmarks_].T, s=60, facecolors="none", edgecolors="black", linewidths=1.3
        )
        ax.set(xlim=(-3.2, 3.2), ylim=(-3.2, 3.2), xticks=[], yticks=[], aspect="equal")
        ax.set_xlabel(f"{len(clf.landmarks_)} landmarks, {clf.score(X_new, y_new):.0%} right")
        if measure == "elm":
            ax.set_title(cls.__name__)
    row[0].set_ylabel(measure, fontsize=12)
plt.show()

# %%
# No model can correctly label the objects of the cloud that fall within the band, so even the best
# accuracy is far from 100 %. Whether the shades can be trusted is another question: see
# :doc:`plot_07_calibration`.
