"""
What a prediction costs
=======================

If comparisons are expensive (an alignment, a simulation, a question to a person), the cost of a
prediction is the number of comparisons it needs. A nearest-neighbour classifier compares a new
object with all training objects. This example uses handwritten digits under tangent distance, and
plots the accuracy on new digits against the number of training digits that each is compared with.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from krein import IKFD
from krein.compare import open_new_pairs
from krein.landmarks import Auto

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
digits = load_digits()
train, test = train_test_split(
    np.arange(1797), test_size=0.4, stratify=digits.target, random_state=0
)
X, y = digits.images[train], digits.target[train]
X_new, y_new = digits.images[test], digits.target[test]

# %%
# IKFD with enclosing balls, and with ``Auto`` at lower and lower prices, which means with more and
# more landmarks.
landmarked = []
for rule in ("meb", Auto(price=1e-3), Auto(price=3e-4), Auto()):
    clf = IKFD("tangent", landmarks=rule, random_state=0).fit(X, y)
    landmarked.append((len(clf.landmarks_), 100 * clf.score(X_new, y_new)))

# %%
# The nearest neighbour among random subsets of the training digits (five draws each), and among all
# of them.
D = open_new_pairs("tangent", X_new, X).block(np.arange(len(X_new)), np.arange(len(X)))
rng = np.random.default_rng(0)
neighbours = []
for m in (20, 40, 80, 160, 320, 640, len(X)):
    scores = []
    for _ in range(5):
        chosen = rng.choice(len(X), m, replace=False)
        knn = KNeighborsClassifier(1, metric="precomputed").fit(np.zeros((m, m)), y[chosen])
        scores.append(100 * knn.score(D[:, chosen], y_new))
    neighbours.append((m, np.mean(scores)))

# %%
figure, axes = plt.subplots(figsize=(8, 4.4), constrained_layout=True)
for name, points, colour, marker in (
    ("krein: IKFD", landmarked, BLUE, "o"),
    ("nearest neighbour in a random subset", neighbours, ORANGE, "s"),
):
    axes.plot(*np.array(points).T, marker=marker, color=colour, label=name)
axes.annotate(f"all {len(X):,} training digits", neighbours[-1], (-6, -22), ha="right",
              textcoords="offset points", color=ORANGE)  # fmt: skip
axes.set(xscale="log", xlabel="comparisons per new digit",
         ylabel="accuracy on new digits (%)", title="Digits under tangent distance")  # fmt: skip
axes.set_xticks([20, 50, 100, 200, 500, 1000], ["20", "50", "100", "200", "500", "1,000"])
axes.minorticks_off()
axes.legend(frameon=False, loc="lower right")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# If comparisons cost nothing, the last orange point is hard to beat: use nearest neighbours.
