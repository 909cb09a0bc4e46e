"""
A core with eigenvalues near zero, and the effect of truncating it
==================================================================

The Nyström approximation divides by the eigenvalues of its core :math:`W`, the matrix of
similarities between landmarks. For a psd matrix that is harmless: a small eigenvalue of :math:`W`
belongs to a direction in which the columns are small too. For an indefinite matrix it is not.
Positive and negative parts can cancel in :math:`W` and leave an eigenvalue near zero although the
full matrix has none there. The error of the approximation is then unbounded. Keeping only the
larger half of the eigenvalues of :math:`W` (``rank=``) fixes this, at the price of half the
dimensions.
"""

import matplotlib.pyplot as plt
import numpy as np

from krein.core.space import NystromMatrix, landmark_basis

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"

# %%
# A matrix with equal positive and negative parts: eigenvalues ±1/k in random directions.
rng = np.random.default_rng(0)
N = 400
lam = np.repeat(1 / np.arange(1, N // 2 + 1), 2) * np.tile([1, -1], N // 2)
U = np.linalg.qr(rng.normal(size=(N, N)))[0]
K = (U * lam) @ U.T


def relative_error(m: int, rank: int | None, seed: int) -> float:
    """Return the error with m random landmarks, relative to the norm of K."""
    chosen = np.random.default_rng(seed).choice(N, m, replace=False)
    basis = landmark_basis(K[np.ix_(chosen, chosen)], rank=rank)
    return np.linalg.norm(K - NystromMatrix(K[:, chosen], basis).dense()) / np.linalg.norm(K)


# %%
# Thirty draws for each number of landmarks. The plain error is not only large but depends on luck:
# one unlucky eigenvalue of :math:`W` is enough.
sizes = np.array([20, 40, 60, 80, 100, 140, 180, 220, 260])
plain = np.array([[relative_error(m, None, seed) for seed in range(30)] for m in sizes])
cut = np.array([[relative_error(m, m // 2, seed) for seed in range(30)] for m in sizes])
best = [np.sqrt((np.sort(lam**2)[: N - m // 2]).sum() / (lam**2).sum()) for m in sizes]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), constrained_layout=True)
for errors, colour, marker, name in (
    (plain, ORANGE, "s", "plain"),
    (cut, BLUE, "o", "core truncated to half"),
):
    left.fill_between(sizes, errors.min(axis=1), errors.max(axis=1), color=colour, alpha=0.18, lw=0)
    left.plot(sizes, np.median(errors, axis=1), color=colour, marker=marker, label=name)
left.plot(sizes, best, color=GREY, ls="--", label="best possible for that rank")
left.axhline(1, color="black", lw=0.8)
left.annotate("as bad as the zero matrix", (sizes[-1], 0.9), ha="right", va="top", fontsize=9)
left.set(
    yscale="log", xlabel="landmarks", ylabel="relative error", title="Median and range of 30 draws"
)
left.legend(frameon=False, loc="upper left")
left.set_ylim(top=3e5)

chosen = np.random.default_rng(3).choice(N, 100, replace=False)
core = np.sort(np.abs(np.linalg.eigvalsh(K[np.ix_(chosen, chosen)])))[::-1]
right.semilogy(1 + np.arange(100), core, color=ORANGE, lw=2)
right.axvspan(50, 100, color=BLUE, alpha=0.12, lw=0)
right.annotate("left out by rank=50", (75, core[3]), ha="center", color=BLUE)
right.annotate("dividing by these\nblows up the error", (97, core[-1]), (62, core[-1] * 1.2),
               ha="center", va="bottom", arrowprops={"arrowstyle": "->"})  # fmt: skip
right.set(xlabel="rank among the eigenvalues of W", ylabel="|eigenvalue|",
          title="One core of 100 landmarks")  # fmt: skip
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Real measures are rarely as bad as this matrix, which was constructed to be. The remedy needs a
# parameter, so it is off by default; ``IKFD(rank=50)`` turns it on.
