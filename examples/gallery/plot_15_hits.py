"""
Hits in, probabilities out
==========================

A search returns a list of hits. Most people take the label of the best one, or a vote. A share of
votes is not a probability. Isotonic regression on held-out references calibrates the best hit, but
ignores all others. :class:`~krein.KreinClassifier` learns from the same lists, of references
against references, how far to trust the best hit and the others.
"""

import matplotlib.pyplot as plt
import numpy as np

from krein import KreinClassifier
from krein.compare import open_pairs
from krein.datasets import make_protein_families
from krein.evaluation.hits import BestHit, HitVote
from krein.neighbours import graph

COLOURS = {"best hit": "#D55E00", "vote": "#009E73", "krein": "#0072B2"}

# %%
# Smith-Waterman stands in for a search engine: it lists the 25 best of 800 references in ten
# families, for the references themselves and for 1,200 queries.
X, y = make_protein_families(2000, divergence=1.3, random_state=0)
pairs = open_pairs("smith-waterman", X, measure_params={"normalize": False}, n_jobs=1)


def search(rows, n_hits=25):
    scores = pairs.block(rows, np.arange(800))
    scores[rows[:, None] == np.arange(800)] = -np.inf  # no object is a hit of itself
    order = np.argsort(-scores, axis=1)[:, :n_hits]
    return graph(np.take_along_axis(scores, order, axis=1), order, 800)


known, new = search(np.arange(800)), search(np.arange(800, 2000))

# %%
# Sort the answers by confidence into bins of equal size, and count how many are right.
models = {"best hit": BestHit(), "vote": HitVote(), "krein": KreinClassifier("precomputed")}
figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), sharey=True, constrained_layout=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    P = model.fit(known, y[:800]).predict_proba(new)
    sure, right = P.max(axis=1), P.argmax(axis=1) == y[800:]
    loss = -np.log(P[np.arange(len(P)), y[800:]]).mean()
    bins = np.array_split(np.argsort(sure, kind="stable"), 8)
    x = [100 * sure[b].mean() for b in bins]
    share = np.array([right[b].mean() for b in bins])
    error = 100 * np.sqrt(share * (1 - share) / len(bins[0]))
    ax.plot([0, 100], [0, 100], color="#777777", ls="--", lw=1)
    ax.errorbar(x, 100 * share, error, marker="o", color=COLOURS[name], capsize=3)
    title = f"{name}\n{right.mean():.1%} right, log-loss {loss:.2f}"
    ax.set(title=title, xlim=(0, 102), ylim=(0, 102), xlabel="predicted probability (%)")
    ax.set_aspect("equal")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("share of correct labels (%)")
plt.show()
