"""Figure 3: eigenvalues of the ball kernel and its approximation by each rule (SIM1–SIM6).

K is the double-centred matrix of squared surface distances between the training objects of the
first fold of table 1 (first seed). SIM1 shows its eigenvalues, SIM2 to SIM6 those of its Nyström
approximations, with the landmarks of that fold. The information that separates the classes is among
the negative eigenvalues. Each title gives the ten-fold accuracy of iKFD as published, that of the
table for this seed.

An approximation with two landmarks can have a negative eigenvalue of larger magnitude than any of
the full matrix: it reflects the landmarks, not the data. The paper states that both eigenvalues are
positive.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from krein.core.space import NystromMatrix, landmark_basis, negative_mass, signature

from .folds import evaluate, splits
from .methods import RULES, Fold, choose
from .published import SIM
from .sets import prepare
from .style import BLUE, VERMILION, options, plt, save, write

SMALLEST = 1e-5
"""Share of the largest eigenvalue below which the axis is linear."""


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, objects=200)
    data = prepare("ball", chosen.output / "sets", chosen.objects)
    fold = Fold(data, *splits(data.y, 10)[0])
    K = fold.kernel
    whole = np.linalg.eigvalsh(K)[::-1]
    figure, axes = plt.subplots(2, 3, figsize=(10.5, 6.6), sharey=True)
    drawn = []
    for axis, (sim, rule) in zip(axes.flat, SIM.items(), strict=True):
        lam, title = whole, f"{sim}: full matrix"
        if rule != "all":
            L = choose(f"ikfd:{rule}:paper", fold, seed=0)
            lam = NystromMatrix(K[:, L], landmark_basis(K[np.ix_(L, L)])).eigenvalues
            lam, title = (
                np.sort(lam)[::-1],
                f"{sim}: {len(L)} {RULES[rule.split('@')[0]]} landmarks",
            )
        method = f"ikfd:{rule}:paper"
        right = np.mean([evaluate(data, [method], k, 10)[0]["accuracy"] for k in range(10)])
        rank = np.arange(1, len(lam) + 1)
        colours = np.where(lam > 0, BLUE, VERMILION)
        axis.bar(rank, lam / whole[0], width=1.0 if rule == "all" else 0.5, color=colours)
        axis.axhline(0, color="black", lw=0.8)
        axis.set_yscale("symlog", linthresh=SMALLEST)
        axis.set_yticks([-1e-1, -1e-3, 0, 1e-3, 1e-1])
        axis.set_xlim(0.4, max(len(lam), 10) + 0.6)
        if rule != "all":
            axis.set_xticks(rank)
        p, q, _ = signature(lam)
        mass = 100 * negative_mass(lam)
        axis.set_title(f"{title}\n{p} positive, {q} negative; iKFD {right:.1f} %", loc="left")
        print(
            f"{title}: {p} positive and {q} negative eigenvalues, {mass:.1f} % of Σ|λ| negative; "
            f"accuracy of iKFD {right:.1f} %"
        )
        drawn += [[sim, *pair] for pair in zip(rank, lam, strict=True)]
    for axis in axes[:, 0]:
        axis.set_ylabel("λ / largest λ of SIM1\n(logarithmic in both directions)")
    for axis in axes[1]:
        axis.set_xlabel("rank")
    figure.suptitle(f"Eigenvalues of the kernel of {len(K)} balls, and ten-fold accuracy of iKFD")
    write(chosen.output, "figure3_eigenvalues", ["scheme", "rank", "eigenvalue"], drawn)
    save(figure, chosen.output, "figure3_eigenvalues")


if __name__ == "__main__":
    main()
