"""
Eigenvalues in ± pairs: the squared route and the signed route
==============================================================

The published eigendecomposition goes through the square of the matrix, whose eigenvalues are
:math:`\\lambda^2`. That loses the signs. If :math:`+\\lambda` and :math:`-\\lambda` both occur, it
loses more: the square has a double eigenvalue, and any two directions in the common plane are
eigenvectors of the square. In general they are not eigenvectors of the original matrix, so its
signs cannot be restored from them. Going through an m×m matrix that includes the signs costs the
same and loses nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

from krein.core.space import NystromMatrix, landmark_basis

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# A matrix of rank 12 with four single eigenvalues and four pairs of opposite sign. Such pairs are
# not exotic: if all similarities are between two kinds of objects (a bipartite graph), all
# eigenvalues come in pairs.
rng = np.random.default_rng(1)
truth = np.array([6, 5, -5, 4, -4, 3, 2.4, -2.4, 1.6, -1.6, -1.0, 0.7])
Q = np.linalg.qr(rng.normal(size=(300, len(truth))))[0]
K = (Q * truth) @ Q.T
landmarks = rng.choice(300, 12, replace=False)
nystrom = NystromMatrix(K[:, landmarks], landmark_basis(K[np.ix_(landmarks, landmarks)]))

# %%
# The squared route, step by step as published: a Nyström approximation of :math:`\tilde K \tilde K`
# on the same landmarks, its eigenvectors by :math:`B^\top B = V A V^\top`, and
# :math:`u^\top \tilde K u` to find the sign again.
C2 = nystrom.apply_square(np.eye(300)[:, landmarks])
lam, U = np.linalg.eigh(C2[landmarks])
B2 = C2 @ U / np.sqrt(lam)
A, V = np.linalg.eigh(B2.T @ B2)
vectors = B2 @ V / np.sqrt(A)
squared_route = np.einsum("ij,ij->j", vectors, nystrom.apply(vectors))

# %%
# The signed route: :math:`R J R^\top = V A V^\top` with :math:`R^\top R = B^\top B`.
signed_route, signed_vectors = nystrom.eigenvalues, nystrom.eigenvectors()


def rebuilt(values, vectors):
    return np.linalg.norm(K - (vectors * values) @ vectors.T) / np.linalg.norm(K)


# %%
# Both routes find single eigenvalues correctly. For a pair, the squared route returns two values
# anywhere between :math:`-\lambda` and :math:`+\lambda`.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, constrained_layout=True)
place = np.arange(len(truth))
for ax, found, vecs, colour, name in (
    (axes[0], squared_route, vectors, ORANGE, "squared route, as published"),
    (axes[1], signed_route, signed_vectors, BLUE, "signed route (krein)"),
):
    # the order within a pair is arbitrary: compare within it
    order = np.lexsort((-found, -np.round(np.sqrt(((K @ vecs) ** 2).sum(axis=0)), 6)))
    ax.bar(place, truth, color="#dddddd", width=0.8, label="true eigenvalues")
    ax.plot(place, found[order], "o", color=colour, label="found")
    ax.axhline(0, color="black", lw=0.8)
    ax.set(title=f"{name}\nreconstruction error {rebuilt(found, vecs):.0e}",
           xlabel="eigenvalue, by magnitude", xticks=[])  # fmt: skip
    ax.legend(frameon=False, loc="upper right")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("value")
plt.show()
