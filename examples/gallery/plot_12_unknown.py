"""
None of the classes
===================

A model that knows the digits from 0 to 4 is shown all ten. It has to give a 7 some label, and is
often confident about it. The novelty p-value answers a different question: is this digit as close
to the known digits as they are to each other?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from krein import KreinClassifier

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Half of the digits from 0 to 4 for training; the other half, and some digits from 5 to 9, for
# testing.
digits = load_digits()
images, y = digits.images[:1000], digits.target[:1000]
known = np.flatnonzero(y < 5)
train, test = known[::2], np.setdiff1d(np.arange(len(y)), known[::2])
clf = KreinClassifier("tangent", random_state=0).fit(images[train], y[train])
found = clf.assess(images[test])
unknown = y[test] >= 5
sure, p = found["probabilities"].max(axis=1), found["novelty"]
for name, score in (("largest probability", sure), ("novelty", p)):
    print(f"{name}: AUROC {roc_auc_score(unknown, -score):.3f}")
for kind, which in (("unknown", unknown), ("known", ~unknown)):
    print(f"{kind} digits called novel: {(found['status'][which] == 'novel').mean():.1%}")

# %%
# The probabilities of unknown digits overlap with those of known ones. Their p-values are small,
# while those of known digits are spread evenly.
figure, axes = plt.subplots(1, 2, figsize=(11, 4), constrained_layout=True)
panels = ((sure, "largest probability"), (p, "novelty p-value"))
for ax, (score, name) in zip(axes, panels, strict=True):
    bins = np.linspace(score.min(), 1, 26)
    for which, label, colour in ((~unknown, "0 to 4, known", BLUE), (unknown, "5 to 9", ORANGE)):
        share = np.full(which.sum(), 100 / which.sum())
        ax.hist(score[which], bins, weights=share, color=colour, alpha=0.65, label=label)
    ax.set(xlabel=name, ylabel="share of the digits (%)")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_title("Confident, but wrong")
axes[1].set_title("Unlike any known digit")
axes[0].legend(frameon=False, loc="upper left")
plt.show()
