"""
Well-calibrated probabilities
=============================

Of a hundred predictions made with probability 0.8, eighty should be right. A discriminant that
assumes Gaussian classes is overconfident, and PCVM is underconfident if there are few objects.
``calibrate=True`` checks how often the model is right about held-out objects, and scales all scores
by one factor. It needs no further comparisons and changes no label. With the default,
``shrinkage="auto"``, IKFD and IKQD are already well calibrated.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from krein import IKFD, PCVM

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# 150 digits for training, compared by tangent distance; the others are new.
digits = load_digits()
order = np.random.default_rng(0).permutation(1797)
train, test = order[:150], order[150:]
models = {
    'IKFD, shrinkage="oas"': IKFD("tangent", shrinkage="oas", random_state=0),
    "IKFD": IKFD("tangent", random_state=0),
    "PCVM": PCVM("tangent", random_state=0),
}

# %%
# Sort the predictions by confidence into bins of equal size, and count how many are right.
figure, axes = plt.subplots(1, 3, figsize=(11, 4.3), sharey=True, constrained_layout=True)
for ax, (name, clf) in zip(axes, models.items(), strict=True):
    for calibrate, colour, marker in ((False, ORANGE, "s"), (True, BLUE, "o")):
        clf.set_params(calibrate=calibrate).fit(digits.images[train], digits.target[train])
        P = clf.predict_proba(digits.images[test])
        sure, right = P.max(axis=1), P.argmax(axis=1) == digits.target[test]
        bins = np.array_split(np.argsort(sure), 8)
        x = [100 * sure[b].mean() for b in bins]
        share = np.array([right[b].mean() for b in bins])
        error = 100 * np.sqrt(share * (1 - share) / len(bins[0]))
        loss = log_loss(digits.target[test], P)
        label = f"{'calibrated' if calibrate else 'not calibrated'}, log-loss {loss:.2f}"
        ax.errorbar(x, 100 * share, error, marker=marker, color=colour, capsize=3, label=label)
    ax.plot([20, 100], [20, 100], color="#777777", ls="--", lw=1)
    ax.set(title=f"{name}\n{right.mean():.1%} right", xlim=(35, 102), ylim=(35, 102),
           xlabel="predicted probability (%)", aspect="equal")  # fmt: skip
    ax.legend(frameon=False, loc="lower right", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("share of correct predictions (%)")
plt.show()
