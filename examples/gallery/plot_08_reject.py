"""
Saying "I do not know"
======================

Probabilities are useful because you can act on them, for example by handing uncertain cases to a
person. The accuracy–reject curve shows the gain. It answers questions such as: if the model
rejects the least certain tenth, how accurate is it on the rest?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict

from krein import IKFD
from krein.reject import accuracy_reject_curve, augrc, threshold_for_coverage

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Out-of-sample probabilities from four folds. Digits are compared only with the landmarks, by
# tangent distance.
digits = load_digits()
images, y = digits.images[:800], digits.target[:800]
clf = IKFD("tangent", calibrate=True, random_state=0)
P = cross_val_predict(clf, images, y, cv=4, method="predict_proba")
curve = accuracy_reject_curve(y, P)
threshold = threshold_for_coverage(P, 0.9)
kept = P.max(axis=1) >= threshold
right = P.argmax(axis=1) == y
print(
    f"threshold {threshold:.2f}: {kept.mean():.0%} answered, {right[kept].mean():.1%} of them right"
)
print(f"without rejecting {right.mean():.1%} right; AUGRC {augrc(y, P):.4f}")

# %%
# The curve is on the left. On the right are the least certain digits, with the predicted label, its
# probability and the true label. Several are hard for people too.
figure = plt.figure(figsize=(11, 4.2), constrained_layout=True)
left, right_side = figure.subfigures(1, 2, width_ratios=[1.15, 1])
axes = left.subplots()
axes.plot(100 * (1 - curve.coverage), 100 * curve.accuracy, color=BLUE, lw=2)
axes.plot(10, 100 * right[kept].mean(), "o", color=ORANGE, ms=9)
axes.annotate(f"reject 10 %,\n{right[kept].mean():.1%} of the rest correct",
              (10, 100 * right[kept].mean()), (14, -34), textcoords="offset points",
              color=ORANGE)  # fmt: skip
axes.set(xlabel="rejected (%)", ylabel="accuracy on the rest (%)", xlim=(-1, 50),
         title="Fewer answers, fewer errors")  # fmt: skip
axes.set_ylim(100 * right.mean() - 0.8, 100.2)
axes.spines[["top", "right"]].set_visible(False)

doubtful = np.argsort(P.max(axis=1))[:10]
for ax, i in zip(right_side.subplots(2, 5).flat, doubtful, strict=True):
    ax.imshow(images[i], cmap="gray_r", interpolation="nearest")
    said = P[i].argmax()
    colour = "black" if said == y[i] else ORANGE
    ax.set_title(f"{said}? {P[i].max():.0%}", color=colour, fontsize=11)
    ax.set_xlabel(f"is {y[i]}", fontsize=10)
    ax.set(xticks=[], yticks=[])
right_side.suptitle("Rejected first (orange: prediction wrong)", fontsize=12)
plt.show()
