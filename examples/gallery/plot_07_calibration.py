"""
Well-calibrated probabilities
=============================

Of a hundred predictions made with probability 0.8, eighty should be right. The discriminants IKFD
and IKQD assume Gaussian classes and tend to be overconfident. ``calibrate=True`` checks how often
the model is right about held-out objects, and scales all scores by one factor. It compares no pair
twice and changes no label.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from krein import IKFD, PCVM

COLOURS = {"IKFD": "#D55E00", "IKFD, calibrated": "#0072B2", "PCVM": "#009E73"}

# %%
# 300 digits for training, compared by tangent distance; the others are new.
digits = load_digits()
order = np.random.default_rng(0).permutation(1797)
train, test = order[:300], order[300:]
models = {
    "IKFD": IKFD("tangent", random_state=0),
    "IKFD, calibrated": IKFD("tangent", calibrate=True, random_state=0),
    "PCVM": PCVM("tangent", random_state=0),
}
probabilities = {
    name: clf.fit(digits.images[train], digits.target[train]).predict_proba(digits.images[test])
    for name, clf in models.items()
}

# %%
# Sort the predictions by confidence into bins of equal size, and count how many are right.
figure, axes = plt.subplots(1, 3, figsize=(11, 4.3), sharey=True, constrained_layout=True)
for ax, (name, P) in zip(axes, probabilities.items(), strict=True):
    sure, right = P.max(axis=1), P.argmax(axis=1) == digits.target[test]
    bins = np.array_split(np.argsort(sure), 8)
    x = [100 * sure[b].mean() for b in bins]
    share = np.array([right[b].mean() for b in bins])
    error = 100 * np.sqrt(share * (1 - share) / len(bins[0]))
    ax.plot([20, 100], [20, 100], color="#777777", ls="--", lw=1)
    ax.errorbar(x, 100 * share, error, marker="o", color=COLOURS[name], capsize=3)
    loss = log_loss(digits.target[test], P)
    ax.set(title=f"{name}\n{right.mean():.1%} right, log-loss {loss:.2f}", xlim=(35, 102),
           ylim=(35, 102), xlabel="predicted probability (%)", aspect="equal")  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("share of correct predictions (%)")
axes[0].annotate("overconfident", (75, 48), ha="center", color="#555555")
axes[0].annotate("underconfident", (52, 80), ha="center", color="#555555")
plt.show()
