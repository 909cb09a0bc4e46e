"""
Pseudo-inverse or shrinkage: as many dimensions as objects
==========================================================

The published discriminant divides by the within-class scatter, through a pseudo-inverse if it is
singular. With as many dimensions as objects, the smallest eigenvalues of the scatter are almost
zero by chance, and dividing by them amplifies noise. Accuracy collapses exactly in the dense case,
where every object is a landmark. Shrinking the scatter towards a multiple of the identity, by an
amount given in closed form (OAS), prevents the collapse and leaves nothing to choose. The default,
``shrinkage="auto"``, goes further: it chooses the target, amount and scale of the shrinkage by the
leave-one-out log-loss.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from krein import IKFD

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Two hundred digits for training and one thousand for testing, compared by tangent distance. The
# number of dimensions equals the number of landmarks, give or take one.
digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
train, test = order[:200], order[200:1200]
numbers = [10, 20, 40, 60, 90, 120, 150, 170, 185, 195, 200]


def accuracy(shrinkage, m, seed):
    landmarks = np.random.default_rng(seed).choice(200, m, replace=False)
    clf = IKFD("tangent", landmarks=landmarks, shrinkage=shrinkage)
    clf.fit(digits.images[train], digits.target[train])
    return 100 * clf.score(digits.images[test], digits.target[test])


results = {
    name: np.array([[accuracy(shrinkage, m, seed) for seed in range(3)] for m in numbers])
    for name, shrinkage in (
        ("pseudo-inverse", 0.0),
        ("OAS shrinkage", "oas"),
    )
}

# %%
figure, axes = plt.subplots(figsize=(8, 4.4), constrained_layout=True)
for (name, values), colour, marker in zip(results.items(), (ORANGE, BLUE), "so", strict=True):
    axes.fill_between(
        numbers, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.2, lw=0
    )
    axes.plot(numbers, values.mean(axis=1), color=colour, marker=marker, label=name)
axes.axvline(190, color="#777777", lw=1, ls=":")
axes.annotate("objects minus classes", (190, 70), (110, 62), fontsize=9, color="#555555",
              arrowprops={"arrowstyle": "->", "color": "#777777"})  # fmt: skip
axes.set(xlabel="landmarks, of 200 objects", ylabel="accuracy on 1,000 new digits (%)",
         title="Three draws of landmarks: mean and range")  # fmt: skip
axes.legend(frameon=False, loc="lower left")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
