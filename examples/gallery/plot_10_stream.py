"""
A stream that never fits in memory
==================================

IKFD and IKQD need one pass. They keep only counts, sums and small matrices, whatever the number of
objects. ``partial_fit`` takes one chunk after another, and the model can predict in between. The
result does not depend on how the stream is divided into chunks.
"""

import matplotlib.pyplot as plt
import numpy as np

from krein import IKFD
from krein.datasets import make_checkerboard

BLUE, GREY = "#0072B2", "#777777"

# %%
# Chunks of 500 points on a checkerboard, in random order. Landmarks are chosen from the first
# chunk, which should therefore be a representative sample.
X_new, y_new = make_checkerboard(4000, random_state=99)
clf = IKFD("elm", landmarks="random", n_landmarks=80, random_state=0)
seen, accuracy = [], []
for chunk in range(30):
    X, y = make_checkerboard(500, random_state=chunk)
    clf.partial_fit(X, y, classes=[0, 1])
    seen.append(clf.n_samples_seen_)
    accuracy.append(100 * clf.score(X_new, y_new))

# %%
# Fitting to all objects at once gives the same model.
everything = [make_checkerboard(500, random_state=chunk) for chunk in range(30)]
X, y = (np.concatenate(parts) for parts in zip(*everything, strict=True))
whole = IKFD("elm", landmarks=clf.landmarks_).fit(X, y)
difference = np.abs(whole.predict_proba(X_new) - clf.predict_proba(X_new)).max()
print(f"largest difference in probability: {difference:.0e}")

# %%
figure, axes = plt.subplots(figsize=(8, 4.2), constrained_layout=True)
axes.plot(seen, accuracy, color=BLUE, marker="o", ms=4, label="partial_fit, chunk by chunk")
axes.axhline(100 * whole.score(X_new, y_new), color=GREY, ls="--", label="fit, all at once")
axes.set(xlabel="objects seen", ylabel="accuracy on new objects (%)",
         title="A model that learns while the data arrive")  # fmt: skip
axes.xaxis.set_major_formatter("{x:,.0f}")
axes.legend(frameon=False, loc="lower right")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
