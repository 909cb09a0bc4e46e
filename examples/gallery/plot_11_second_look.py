"""
Which objects get a second look, and why
========================================

`KreinClassifier` compares every object with a few landmarks. If that settles the question, it
stops. Otherwise, it compares the object with the training objects that resemble it most, and uses
the labels of the nearest ones. This example uses points in the plane that form many small islands
of two classes.
"""

import matplotlib.pyplot as plt
import numpy as np

from krein import KreinClassifier

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"

# %%
# Sixty islands, each of one class: too many for the landmarks to cover.
rng = np.random.default_rng(3)
centres = rng.uniform(size=(60, 2))
island = rng.integers(60, size=2400)
X = centres[island] + 0.02 * rng.normal(size=(2400, 2))
y = np.where(island % 2, "orange", "blue")
X, X_new, y, y_new = X[:1200], X[1200:], y[:1200], y[1200:]

# %%
# Fit with the first look only, and with both. The certainty after the first look decides which
# objects get a second one.
first = KreinClassifier("manhattan", neighbours=0).fit(X, y)
both = KreinClassifier("manhattan").fit(X, y)
print(f"first look: {100 * first.score(X_new, y_new):.1f} %, {first.comparisons_:.0f} comparisons")
accuracy = both.score(X_new, y_new)
print(f"both looks: {100 * accuracy:.1f} %, {both.last_comparisons_ / len(X_new):.0f} comparisons")
print(f"nearest neighbours would need {len(X):,}")

# %%
# Certainty after the first look on the left, and after both on the right. Points on an island with
# a landmark are settled at once; the others get a second look.
figure, axes = plt.subplots(1, 2, figsize=(10, 5), sharey=True, constrained_layout=True)
looked = both.predict_proba(X_new)
sure = first.predict_proba(X_new).max(axis=1)
for ax, certainty, title in (
    (axes[0], sure, "After the first look"),
    (axes[1], looked.max(axis=1), "After the second look"),
):
    for name, colour in (("blue", BLUE), ("orange", ORANGE)):
        own = y_new == name
        ax.scatter(
            *X_new[own].T, s=4 + 40 * (1 - certainty[own]), color=colour, alpha=0.7, linewidths=0
        )
    ax.scatter(*X[both.landmarks_].T, marker="+", s=40, color="black", linewidths=1)
    ax.set(title=title, xticks=[], yticks=[])
    ax.spines[:].set_color(GREY)
axes[0].set_xlabel("large: unsure; +: landmarks")
axes[1].set_xlabel("colours: true classes")
plt.show()

# %%
# The threshold is learned: an object goes on where this lowers the loss of held-out objects by more
# than `price` × comparisons. `max_comparisons=` sets a budget instead, and `neighbours=0` turns the
# second look off.
threshold = both.model_.cascade.looks[0].enough
print(f"second look if the first look's probability is below {threshold:.3f}")
