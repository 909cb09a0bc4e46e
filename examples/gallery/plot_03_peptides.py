"""
Antimicrobial peptides by Smith-Waterman
========================================

Does this peptide kill microbes? Biologists trust the score of the best local alignment to say how
similar two sequences are. It is expensive, and it is not a kernel. A PCVM compares a new peptide
with a few landmarks and returns a probability.
"""

import matplotlib.pyplot as plt
import numpy as np

from krein import PCVM
from krein.compare import open_new_pairs
from krein.datasets import load_antimicrobial_peptides
from krein.landmarks import Auto

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Real sequences from the package modlAMP: peptides known to act against microbes, and random others
# from UniProt. There are 1,000 for training and 800 new ones.
peptides, active = load_antimicrobial_peptides()
order = np.random.default_rng(0).permutation(len(peptides))
X, y = peptides[order[:1000]], active[order[:1000]]
X_new, y_new = peptides[order[1000:1800]], active[order[1000:1800]]
print(X[0])

# %%
# Minimum enclosing balls (``"meb"``) find few landmarks here; ``Auto`` draws more, at random.
found = []
for rule in ("meb", Auto(max_landmarks=60), Auto(max_landmarks=160)):
    clf = PCVM("smith-waterman", landmarks=rule, sparse=False, random_state=0).fit(X, y)
    found.append((len(clf.landmarks_), 100 * clf.score(X_new, y_new)))
P = clf.predict_proba(X_new)[:, 1]

# %%
# The nearest neighbour among random subsets of the training sequences (ten draws each), and among
# all of them.
scores = open_new_pairs("smith-waterman", X_new, X).block(np.arange(800), np.arange(1000))
rng = np.random.default_rng(0)


def nearest(m):
    some = rng.choice(1000, m, replace=False)
    return 100 * np.mean(y[some][scores[:, some].argmax(axis=1)] == y_new)


numbers = [10, 20, 40, 80, 160, 320, 640, 1000]
neighbours = [np.mean([nearest(m) for _ in range(10)]) for m in numbers]

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), constrained_layout=True)
bins = np.linspace(0, 1, 21)
left.hist(P[y_new == 0], bins, color=ORANGE, alpha=0.65, label="other peptides")
left.hist(P[y_new == 1], bins, color=BLUE, alpha=0.65, label="antimicrobial", hatch="///",
          edgecolor="white", lw=0)  # fmt: skip
left.set(xlabel="probability of being antimicrobial", ylabel="new peptides",
         title=f"Predictions from {len(clf.landmarks_)} alignments each")  # fmt: skip
left.legend(frameon=False, loc="upper center")
right.plot(*np.array(found).T, "o-", color=BLUE, label="krein: PCVM")
right.plot(numbers, neighbours, "s-", color=ORANGE, label="nearest neighbour in a random subset")
right.set(xscale="log", xlabel="alignments per new peptide",
          ylabel="accuracy on new peptides (%)", title="The cost of a prediction")  # fmt: skip
right.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])
right.minorticks_off()
right.legend(frameon=False, loc="lower right")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
