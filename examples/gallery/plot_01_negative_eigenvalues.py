"""
What a negative eigenvalue is
=============================

If you measure the distances between some villages, you can draw a map of them. If you measure the
*travel times* instead, you may not be able to. Take three villages, each two hours from the others,
and a station one hour from each. On a map of the villages, no point is that close to all three, in
any number of dimensions. The eigenvalues of a table of distances say how wide the map is along each
of its axes. A negative eigenvalue is an axis of *imaginary* width: the part of the table that fits
no map.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from krein import PseudoEuclideanEmbedding

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Four measures, with 120 objects each. Inner products of points fit a map, namely the points
# themselves. The others are measures that people use in practice.
rng = np.random.default_rng(0)
letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
ancestors = [rng.choice(letters, 30) for _ in range(6)]
peptides = [
    "".join(np.where(rng.random(30) < 0.5, rng.choice(letters, 30), ancestors[i % 6]))[i % 11 :]
    for i in range(120)
]
balls = np.column_stack([rng.uniform(0, 3, size=(120, 3)), rng.uniform(0.1, 0.6, size=120)])
cases = {
    "points in 8 dimensions,\ninner product": ("linear", rng.normal(size=(120, 8))),
    "digits,\ntangent distance": ("tangent", load_digits().images[:120]),
    "peptides,\nedit distance": ("levenshtein", peptides),
    "balls in space,\ngap between their surfaces": ("balls", balls),
}

# %%
# Each bar is one axis of the map; its height is the width of the map along that axis,
# :math:`\sqrt{|\lambda|}`, drawn downwards where the eigenvalue :math:`\lambda` is negative.
figure, axes = plt.subplots(1, 4, figsize=(11, 3.4), sharey=True, constrained_layout=True)
for ax, (title, (measure, objects)) in zip(axes, cases.items(), strict=True):
    fitted = PseudoEuclideanEmbedding(measure, landmarks="all").fit(objects)
    p, q, zero = fitted.signature_
    lam = np.sort(np.append(fitted.eigenvalues_, np.zeros(zero)))[::-1]
    width = np.sign(lam) * np.sqrt(np.abs(lam) / lam[0])
    ax.bar(np.arange(len(lam)), width, width=1, color=np.where(lam > 0, BLUE, ORANGE))
    ax.axhline(0, color="black", lw=0.8)
    share = np.abs(lam[lam < 0]).sum() / np.abs(lam).sum()
    ax.set(title=title, xticks=[], ylim=(-0.75, 1.05))
    ax.text(0.97, 0.95, f"{p} positive", color=BLUE, ha="right", va="top", transform=ax.transAxes)
    ax.text(0.03, 0.03, f"{q} negative,\n{share:.0%} of the total", color=ORANGE, va="bottom",
            transform=ax.transAxes)  # fmt: skip
    ax.spines[["top", "right", "bottom"]].set_visible(False)
axes[0].set_ylabel("width of the map")
plt.show()

# %%
# Nothing is wrong with such data. The numbers of positive, negative and zero eigenvalues form the
# *signature*; every fitted model has it as ``signature_``.
