"""
Why this label?
===============

Is this digit a 1 or an 8? The model shows its evidence in two forms that a person can check. First,
the known digits that are most like the new one. Second, what the comparison with each landmark
contributed: some landmarks support the label, others its runner-up. All parts add up to the
log-odds of the label.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from krein import KreinClassifier

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Train on 600 digits. Among 200 new ones, take the least certain correct prediction.
digits = load_digits()
images, y = digits.images, digits.target
clf = KreinClassifier("tangent", random_state=0).fit(images[:600], y[:600])
P = clf.predict_proba(images[600:800])
right = P.argmax(axis=1) == y[600:800]
new = 600 + int(np.argmin(np.where(right, P.max(axis=1), np.inf)))
why = clf.explain(images[[new]], n=3)[0]
total = why.baseline + why.contributions.sum() + why.evidence
print(f"{why.label} against {why.runner_up}: {why.score:.3f}, the parts sum to {total:.3f}")

# %%
# Left: the new digit and the three known digits nearest to it, with their tangent distances. Right:
# the landmarks that contributed most, each drawn beside its bar.
figure = plt.figure(figsize=(11, 5), constrained_layout=True)
left, right_side = figure.subfigures(1, 2, width_ratios=[1, 1.15])
panels = left.subplot_mosaic([["new"] * 3, ["new"] * 3, [0, 1, 2]])


def draw(ax, image, colour="black"):
    ax.imshow(image, cmap="gray_r", interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(color=colour, linewidth=2)


def colour_of(label):
    return {why.label: BLUE, why.runner_up: ORANGE}.get(label, "#777777")


draw(panels["new"], images[new])
panels["new"].set_title(f"New digit: {why.label} or {why.runner_up}?", fontsize=14)
for place, near in enumerate(why.nearest):
    draw(panels[place], images[near.index], colour_of(near.label))
    panels[place].set_title(f"known {near.label}", color=colour_of(near.label))
    panels[place].set_xlabel(f"distance {near.value:.1f}")

order = np.argsort(-np.abs(why.contributions))[:6]
rest = why.contributions.sum() - why.contributions[order].sum()
parts = [*why.contributions[order], rest, why.evidence, why.baseline]
names = [""] * 6 + ["other landmarks", "nearest digits", "average digit"]
ax = right_side.subplots()
ax.barh(range(9), parts, color=[BLUE if part > 0 else ORANGE for part in parts])
ax.set_yticks(range(9), names)
ax.tick_params(axis="y", length=0)
ax.invert_yaxis()
ax.axvline(0, color="black", lw=0.8)
ax.set_xlabel(f"log-odds; sum {why.score:+.1f}, so the label is {why.label}")
ax.set_title(f"counts for {why.label}", color=BLUE, loc="right", fontsize=14)
ax.set_title(f"counts for {why.runner_up}", color=ORANGE, loc="left", fontsize=14)
ax.spines[["top", "right", "left"]].set_visible(False)
for row, i in enumerate(order):
    picture = ax.inset_axes([-0.14, 1 - (row + 1.4) / 9.8, 0.12, 0.095])
    draw(picture, images[clf.landmarks_[i]], colour_of(y[clf.landmarks_[i]]))
plt.show()

# %%
# "Average digit" is where the sum starts: the score of a digit that compares with all landmarks as
# the average digit does. "Nearest digits" is the evidence of the second look, from the labels of
# the nearest known digits. :doc:`/guide/evidence` explains how the contributions are defined.
