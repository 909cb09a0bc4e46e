"""
How to choose landmarks
=======================

krein compares an object with a few *landmarks* instead of with all training objects. This example
shows four ways to choose them on a checkerboard with nine fields in two colours. Minimum enclosing
balls, the default, pick objects at the edge of each class. k-means picks the centres of clusters.
``"random"`` draws at random. ``"auto"`` adds landmarks as long as another one is worth its price.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from krein import PCVM
from krein.datasets import make_checkerboard

# %%
X, y = make_checkerboard(900, random_state=0)
X_new, y_new = make_checkerboard(2000, random_state=1)
grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 90)] * 2), axis=-1)
colours = ListedColormap(["#E6AB5C", "#6FA8DC"])
names = {
    "meb": "enclosing balls",
    "kmeans": "k-means, same number",
    "random": "random, same number",
    "auto": "auto",
}

# %%
# The same model on four sets of landmarks, drawn as circles. The colours show its predictions.
figure, axes = plt.subplots(1, 4, figsize=(12, 3.5), constrained_layout=True)
for ax, (rule, name) in zip(axes, names.items(), strict=True):
    clf = PCVM("elm", landmarks=rule, sparse=False, random_state=0).fit(X, y)
    regions = clf.predict(grid.reshape(-1, 2)).reshape(90, 90)
    ax.pcolormesh(grid[..., 0], grid[..., 1], regions, cmap=colours, alpha=0.75, rasterized=True)
    chosen = X[clf.selection_.indices]
    ax.scatter(*chosen.T, s=26, facecolors="white", edgecolors="black", linewidths=1,
               clip_on=False, zorder=3)  # fmt: skip
    ax.set(xticks=[], yticks=[], aspect="equal", title=name)
    ax.set_xlabel(f"{len(chosen)} landmarks, {clf.score(X_new, y_new):.0%} right")
plt.show()

# %%
# More landmarks mean more comparisons per new object, so their number matters as much as their
# positions. ``clf.selection_.details["curve"]`` shows the steps that ``"auto"`` took.
