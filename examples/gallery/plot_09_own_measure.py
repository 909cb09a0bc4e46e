"""
Your own measure
================

Any function of two objects can be a measure. Here the objects are melodies. Two melodies are
similar if one is the other played higher or lower, or started later, so the measure takes the best
match over all shifts in pitch and time. That makes sense for melodies, but it is not a kernel.
krein accepts the function as it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_predict

from krein import IKFD, NystromMap

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7"]
MARKERS = "os^D"

# %%
# Four tunes of sixteen notes. Every player picks one, starts anywhere, in any key, and plays some
# wrong notes.
tunes = {
    "scale": [0, 2, 4, 5, 7, 9, 11, 12, 12, 11, 9, 7, 5, 4, 2, 0],
    "Frère Jacques": [0, 2, 4, 0, 0, 2, 4, 0, 4, 5, 7, 7, 4, 5, 7, 7],
    "Ode to Joy": [4, 4, 5, 7, 7, 5, 4, 2, 0, 0, 2, 4, 4, 2, 2, 2],
    "Mary's lamb": [4, 2, 0, 2, 4, 4, 4, 4, 2, 2, 2, 2, 4, 7, 7, 7],
}
rng = np.random.default_rng(0)


def play(tune):
    notes = np.roll(tune, rng.integers(16)) + rng.integers(-6, 7)
    wrong = rng.random(16) < 0.3
    return np.where(wrong, notes + rng.integers(-4, 5, size=16), notes)


names = np.repeat(list(tunes), 30)
melodies = [play(tunes[name]) for name in names]


# %%
# The measure is a function of two objects that returns a number: how many notes are wrong under the
# best shift in time and pitch. A larger number means *less* alike, so ``kind`` declares it a
# dissimilarity. It must be symmetric; krein checks this on a few pairs before it starts.
SHIFTS = (np.arange(16) + np.arange(16)[:, None]) % 16


def wrong_notes(a, b):
    intervals = a - b[SHIFTS]  # (16 shifts, 16 notes); notes that agree have the same interval
    counts = np.bincount((intervals + 100 + 200 * np.arange(16)[:, None]).ravel())
    return 16 - counts.max()


own = {"measure": wrong_notes, "measure_params": {"kind": "dissimilarity"}, "n_jobs": 1}
clf = IKFD(**own, random_state=0)
predicted = cross_val_predict(clf, melodies, names, cv=4)
clf = IKFD(**own, landmarks="all").fit(melodies, names)
print(f"{np.mean(predicted == names):.0%} right in four folds; {clf.signature_}")

# %%
# The same function also turns melodies into vectors for other methods: here, for a map along the
# two directions that best separate the tunes.
B = NystromMap(**own, random_state=0).fit(melodies, names).transform(melodies)
V = LinearDiscriminantAnalysis(n_components=2, solver="eigen", shrinkage="auto").fit_transform(
    B, names
)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.2), width_ratios=[1, 1.1], constrained_layout=True
)
for row, (name, colour) in enumerate(zip(tunes, COLOURS, strict=True)):
    first = melodies[30 * row]
    left.step(np.arange(16), first - first.mean() + 16 * (3 - row), where="mid", color=colour, lw=2)
    left.annotate(name, (15.8, 16 * (3 - row)), va="center", color=colour)
    members = names == name
    right.scatter(*V[members].T, s=26, color=colour, marker=MARKERS[row], label=name, alpha=0.8)
wrong = predicted != names
right.scatter(*V[wrong].T, s=110, facecolors="none", edgecolors="black", label="predicted wrongly")
left.set(xlim=(-0.5, 23), yticks=[], xticks=[], xlabel="time", ylabel="pitch",
         title="One melody of each tune")  # fmt: skip
right.set(xticks=[], yticks=[], title=f"{len(melodies)} melodies, {wrong.sum()} predicted wrongly")
right.legend(frameon=False, fontsize=9, loc="best")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A Python function that is called once per pair is slow; :doc:`/guide/measures` shows how to
# compare a block of pairs at once.
