"""
Clipping weights after the M-step, or solving it under its bounds
=================================================================

A PCVM constrains every weight to the sign of its object's label. The published update solves the
M-step of the EM algorithm without that constraint, and then sets weights with the wrong sign to
zero. The result is no longer the best point under the constraint, because the other weights were
chosen to work together with those that were removed. Solving under the constraint from the start is
a convex problem with a unique solution, and the posterior can only rise.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from krein import PCVM
from krein.core.pcvm.mode import Quadratic, minimise_bounded
from krein.datasets import make_checkerboard

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# One step with two weights. The two basis functions resemble each other, as those of neighbours do,
# so the valley of the loss is diagonal. Its minimum is at a point where one weight is negative.
H = np.array([[1.0, 0.85], [0.85, 1.0]])
c = -H @ np.array([1.5, -0.9])
free = np.linalg.solve(H, -c)
cut = np.maximum(free, 0)
problem = Quadratic(np.zeros(2), square=H)
problem.c = c
exact = minimise_bounded(problem, bounded=np.array([True, True]))[0]


def loss(w1, w2):
    return 0.5 * (H[0, 0] * w1**2 + 2 * H[0, 1] * w1 * w2 + H[1, 1] * w2**2) + c[0] * w1 + c[1] * w2


# %%
# Ten runs of the complete PCVM on a 3×3 checkerboard, each from its own random start. The exact
# solver has no random start; its ten runs differ only in their landmarks, which both methods share.
# (The two also differ in start, scale and prior.) The published solver warns if it does not
# converge, which is the point here.
warnings.filterwarnings("ignore", "the published PCVM did not converge")
X, y = make_checkerboard(1000, random_state=0)
X_new, y_new = make_checkerboard(2000, random_state=1)
accuracy = {"paper": [], "em": []}
for seed in range(10):
    for solver, found in accuracy.items():
        clf = PCVM("elm", landmarks="random", n_landmarks=60, solver=solver, random_state=seed)
        found.append(100 * clf.fit(X, y).score(X_new, y_new))
path = clf.objective_path_

# %%
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.3), width_ratios=[1.1, 1], constrained_layout=True
)
w1, w2 = np.meshgrid(np.linspace(-0.4, 2.2, 200), np.linspace(-1.5, 1.1, 200))
left.contour(w1, w2, loss(w1, w2), levels=18, colors="#aaaaaa", linewidths=0.7)
left.axhspan(-1.5, 0, color="#000000", alpha=0.06, lw=0)
left.axvspan(-0.4, 0, color="#000000", alpha=0.06, lw=0)
left.annotate("infeasible", (2.15, -1.4), ha="right", color="#555555")
left.plot(*free, "x", color="black", ms=9)
left.annotate("solved without the constraint", free, (-8, -4), textcoords="offset points",
              ha="right", va="top")  # fmt: skip
left.annotate("", cut, free, arrowprops={"arrowstyle": "->", "color": ORANGE, "lw": 2})
left.plot(*cut, "s", color=ORANGE, ms=9)
left.annotate(f"then clipped: loss {loss(*cut):+.2f}", cut, (0, 22), textcoords="offset points",
              ha="center", color=ORANGE)  # fmt: skip
left.plot(*exact, "o", color=BLUE, ms=9)
left.annotate(f"best feasible: loss {loss(*exact):+.2f}", exact, (0, -9),
              textcoords="offset points", ha="center", va="top", color=BLUE)  # fmt: skip
left.set(xlabel="first weight", ylabel="second weight", title="One step, two weights")

for row, (solver, colour, marker) in enumerate((("em", BLUE, "o"), ("paper", ORANGE, "s"))):
    spread = np.linspace(-0.16, 0.16, 10)
    right.plot(accuracy[solver], row + spread, marker, color=colour, ms=8, alpha=0.75)
right.axvline(50, color="#777777", lw=1, ls=":")
right.annotate("guessing", (50, 1.45), (2, 0), textcoords="offset points", color="#555555",
               fontsize=9)  # fmt: skip
right.set(yticks=[0, 1], yticklabels=["under the\nconstraint", "clipped\nafterwards"],
          ylim=(-0.6, 1.6), xlim=(28, 102), xlabel="accuracy on a new checkerboard (%)",
          title="Ten runs of the complete method")  # fmt: skip
right.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The log-posterior of the last exact run, from the first step to the last. It never falls.
print(f"{path[0]:.2f} -> {path[-1]:.2f} in {len(path)} steps")
assert (np.diff(path) >= 0).all()
