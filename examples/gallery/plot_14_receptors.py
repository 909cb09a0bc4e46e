"""
A list of receptors with few errors
===================================

Which T-cell receptors bind a known epitope? A common answer is a radius: a receptor gets the label
of its nearest neighbour if that is close enough by TCRdist. But it is not known in advance how many
errors a radius leads to. `select` returns a list with at most the share of errors that you allow,
in expectation.
"""

import matplotlib.pyplot as plt
import numpy as np

from krein import KreinClassifier
from krein.datasets import load_covid_receptors
from krein.measures import get_measure

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Three quarters of the β chains of four SARS-CoV-2 epitopes for training, the rest for testing.
X, y = load_covid_receptors()
order = np.random.default_rng(0).permutation(len(X))
train, test = order[:1200], order[1200:]
clf = KreinClassifier("tcrdist", random_state=0).fit(X[train], y[train])
found = clf.assess(X[test])
wrong = found["label"] != y[test]
print(f"all: {len(test)} receptors, {wrong.mean():.0%} wrong")
for fdr in (0.05, 0.1, 0.2):
    listed = clf.select(X[test], fdr)
    print(f"at most {fdr:.0%} allowed: {listed.sum()} receptors, {wrong[listed].mean():.0%} wrong")

# %%
# For comparison, the nearest of all known receptors, with its label.
measure = get_measure("tcrdist", {"chains": "beta"})
D = measure.block(measure.check(X[test]), measure.check(X[train]))
nearest, radius = y[train][D.argmin(axis=1)], D.min(axis=1)

# %%
# Left: the share of errors within a radius, which is known only in hindsight. Right: the share of
# errors by the length of the list. The circles are the lists of `select`: their share of errors is
# close to the one that was allowed.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), constrained_layout=True)
radii = np.unique(radius)
share = [100 * (nearest != y[test])[radius <= r].mean() for r in radii]
left.plot(radii, share, color=ORANGE)
left.set(xlabel="radius (TCRdist)", ylabel="wrong labels (%)", title="What does a radius mean?")
n = np.arange(1, len(test) + 1)
for name, ranks, errors, colour in (
    ("nearest neighbour, by radius", radius, nearest != y[test], ORANGE),
    ("krein, by probability", -np.max(found["probabilities"], axis=1), wrong, BLUE),
):
    best = np.argsort(ranks, kind="stable")
    right.plot(n[19:], (100 * np.cumsum(errors[best]) / n)[19:], color=colour, label=name)
for fdr in (0.05, 0.1, 0.2):
    listed = clf.select(X[test], fdr)
    right.plot(listed.sum(), 100 * wrong[listed].mean(), "o", color=BLUE)
    right.annotate(f"fdr={fdr}", (listed.sum(), 100 * wrong[listed].mean()), (6, -12),
                   textcoords="offset points")  # fmt: skip
right.set(xlabel="receptors in the list", ylabel="wrong labels (%)", title="Lists with few errors")
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_ylim(0)
plt.show()
