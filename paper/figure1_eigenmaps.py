"""Figure 1: Laplacian eigenmaps of K·Kᵀ for the four small sets, coloured by class.

K·Kᵀ may have negative entries, so it is not an affinity matrix itself. It is the Gram matrix of the
rows of K, so the corresponding distance is the Euclidean distance between rows. The affinity is the
graph that connects each object with its nearest neighbours, with weight one (Belkin & Niyogi 2003).
There are ten neighbours, doubled until the graph is connected. The paper does not describe how its
maps were made. (We also tried weights that decrease with distance; two outlying proteins then
dominate the map.)

If `KREIN_DATA` is not set, simulated families replace the protein data.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.manifold import spectral_embedding
from sklearn.neighbors import kneighbors_graph

from krein import datasets
from krein.compare import open_pairs
from krein.core.space import double_centre

from .sets import SOURCES, fewer
from .style import frame, options, plt, save, scatter, write


def affinity(K: np.ndarray) -> tuple[csr_matrix, int]:
    """Return the nearest-neighbour graph under K·Kᵀ, and the number of neighbours."""
    k = min(10, len(K) - 1)
    while True:
        graph = kneighbors_graph(K, k)  # K·Kᵀ induces the Euclidean distance between rows
        graph = graph.maximum(graph.T)
        if k == len(K) - 1 or connected_components(graph, directed=False)[0] == 1:
            return graph, k
        k = min(2 * k, len(K) - 1)


def kernel(measure: str, objects: object) -> np.ndarray:
    """Return all similarities; dissimilarities are squared and double-centred."""
    pairs = open_pairs(measure, objects)
    everyone = np.arange(len(pairs))
    values = pairs.block(everyone, everyone)
    return double_centre(values**2) if measure == "balls" else values


def sets(objects: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the four kernels with their labels, by title."""
    made = {}
    for name in ("ball", "checker", "gauss"):  # the first seed of the tables
        X, y = SOURCES[name].make(0)
        rows = fewer(y, objects)
        made[name] = kernel(SOURCES[name].measure, X[rows]), y[rows]
    if os.environ.get("KREIN_DATA"):
        S, families = datasets.load_protein()
        protein = "protein: globins in four families", S, families
    else:
        sequences, families = datasets.make_protein_families(
            min(213, objects), n_families=4, random_state=0
        )
        S = kernel("smith-waterman", sequences)
        protein = "simulated protein families (no KREIN_DATA)", S, families
    return {
        "ball: surface distances": made["ball"],
        protein[0]: protein[1:],
        "checker: ELM kernel": made["checker"],
        "gauss: ELM kernel": made["gauss"],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, objects=900)
    figure, axes = plt.subplots(2, 2, figsize=(8, 7.6))
    drawn = []
    for axis, (title, (K, labels)) in zip(axes.flat, sets(chosen.objects).items(), strict=True):
        y = np.unique(labels, return_inverse=True)[1]
        graph, k = affinity(K)
        X = spectral_embedding(graph, n_components=2, random_state=0)
        rows, cols = graph.nonzero()
        same = 100 * (y[rows] == y[cols]).mean()
        scatter(axis, X, y, size=24 if len(y) < 500 else 12)
        frame(axis)
        axis.set_title(
            f"{title}\n{len(y)} objects; {same:.0f} % of the neighbours have the same class",
            loc="left",
        )
        axis.legend(loc="best", fontsize=8, handletextpad=0.2)
        print(f"{title}: {same:.0f} % of the {k} nearest neighbours by K·Kᵀ are of the same class")
        drawn += [[title, row, *point, y[row]] for row, point in enumerate(X)]
    figure.suptitle("Laplacian eigenmaps of K·Kᵀ: similar objects are close; the axes have no unit")
    write(chosen.output, "figure1_eigenmaps", ["set", "object", "x", "y", "class"], drawn)
    save(figure, chosen.output, "figure1_eigenmaps")


if __name__ == "__main__":
    main()
