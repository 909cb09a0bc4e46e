"""
Why this label?
===============

This example explains one prediction: the landmarks whose values spoke for the label or for the
runner-up, and the nearest known digits. The bars add up to the log-odds of the label.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from krein import KreinClassifier

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Among 200 further digits, take the one with the least convincing correct prediction.
digits = load_digits()
images, y = digits.images, digits.target
clf = KreinClassifier("tangent", random_state=0).fit(images[:600], y[:600])
reasons = clf.explain(images[600:800], n=3)
right = np.array([why.label for why in reasons]) == y[600:800]
scores = np.array([why.score for why in reasons])
chosen = int(np.argmin(np.where(right, scores, np.inf)))
why = reasons[chosen]
total = why.baseline + why.contributions.sum() + why.evidence
print(f"{why.label} against {why.runner_up}: {why.score:.3f}, the parts sum to {total:.3f}")

# %%
# Left: the digit. Middle: the landmarks that contributed most, with their labels. Right: the
# nearest known digits with their tangent distances.
figure = plt.figure(figsize=(11, 4), constrained_layout=True)
left, middle, side = figure.subfigures(1, 3, width_ratios=[0.7, 1.5, 1])
ax = left.subplots()
ax.imshow(images[600 + chosen], cmap="gray_r", interpolation="nearest")
ax.set(xticks=[], yticks=[], title=f"{why.label} or {why.runner_up}?")

order = np.argsort(-np.abs(why.contributions))[:8]
parts = [why.baseline, why.evidence, *why.contributions[order]]
others = why.contributions.sum() - why.contributions[order].sum()
names = ["average object", "nearest known"]
names += [f"landmark: a {y[clf.landmarks_[i]]}" for i in order] + ["all other landmarks"]
parts.append(others)
ax = middle.subplots()
colours = [BLUE if part > 0 else ORANGE for part in parts]
ax.barh(range(len(parts)), parts, color=colours)
ax.set_yticks(range(len(parts)), names)
ax.invert_yaxis()
ax.axvline(0, color="black", lw=0.8)
ax.set(xlabel="log-odds", title=f"for {why.label} (blue), for {why.runner_up} (orange)")
ax.spines[["top", "right"]].set_visible(False)

for ax, near in zip(side.subplots(1, 3), why.nearest, strict=True):
    ax.imshow(images[near.index], cmap="gray_r", interpolation="nearest")
    ax.set(xticks=[], yticks=[], title=f"a {near.label}", xlabel=f"{near.value:.2f}")
side.suptitle("Nearest known digits")
plt.show()
