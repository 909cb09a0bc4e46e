"""
When negative eigenvalues carry the answer: balls
=================================================

Balls of two sizes are scattered in space. You do not know where they are or how large they are,
only the *gaps* between their surfaces. Which balls are the large ones? A large ball is nearer to
all others by the same amount, and no map can show that. Clipping the negative eigenvalues, as is
commonly done to make an SVM work, throws away part of the information: the positive or the negative
part alone is worse than both together. Making the negative eigenvalues positive (*flipping* them)
keeps the information: an SVM on the flipped matrix does well too, if new balls are treated in the
same way.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from krein import IKFD, PseudoEuclideanEmbedding
from krein.compare import open_new_pairs
from krein.core.gaussian import fit_fisher
from krein.core.moments import ClassMoments
from krein.datasets import make_balls

BLUE, ORANGE, SKY = "#0072B2", "#D55E00", "#56B4E9"

# %%
# 160 balls for training and 240 new ones, described by their gaps to the 160.
X, y = make_balls(400, radii=(0.10, 0.15), n_dimensions=8, random_state=1)
train, test = np.arange(160), np.arange(160, 400)
embedding = PseudoEuclideanEmbedding("balls", landmarks="all").fit(X[train])
V, V_new, positive = (
    embedding.transform(X[train]),
    embedding.transform(X[test]),
    embedding.signs_ > 0,
)
print(embedding.signature_)

# %%
# A linear discriminant is a sum over all axes. Split it into the contributions of the positive and
# the negative axes.
model = fit_fisher(ClassMoments.of(V, y[train], 2))
weights = model.coef[:, 1] - model.coef[:, 0]
bias = model.intercept[1] - model.intercept[0]
said = (V_new - model.centre) * weights
from_positive, from_negative = said[:, positive].sum(axis=1), said[:, ~positive].sum(axis=1)


# %%
# For comparison: the same discriminant on some of the axes only; a linear SVM on the positive axes,
# which is an SVM on the clipped matrix; one on all axes, which is an SVM on the flipped matrix; and
# the nearest neighbour. Cross-validation chooses C for the SVMs.
def restricted(axes):
    part = fit_fisher(ClassMoments.of(V[:, axes], y[train], 2))
    return np.mean(part.scores(V_new[:, axes]).argmax(axis=1) == y[test])


gaps = open_new_pairs("balls", X[test], X[train]).block(np.arange(240), np.arange(160))


def svm_score(axes):
    svm = GridSearchCV(SVC(kernel="linear"), {"C": np.logspace(0, 4, 5)}, cv=5)
    return svm.fit(V[:, axes], y[train]).score(V_new[:, axes], y[test])


nearest = KNeighborsClassifier(1, metric="precomputed").fit(np.zeros((160, 160)), y[train])
accuracy = {
    "IKFD, all axes": IKFD("balls", landmarks="all")
    .fit(X[train], y[train])
    .score(X[test], y[test]),
    "IKFD, positive axes": restricted(positive),
    "IKFD, negative axes": restricted(~positive),
    "SVM, clipped matrix": svm_score(positive),
    "SVM, flipped matrix": svm_score(positive | ~positive),
    "nearest neighbour": nearest.score(gaps, y[test]),
}

# %%
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(12, 4), width_ratios=[0.9, 1.1, 1], constrained_layout=True
)
lam = np.sort(embedding.eigenvalues_)[::-1]
width = np.sign(lam) * np.sqrt(np.abs(lam))
left.bar(np.arange(len(lam)), width, width=1, color=np.where(lam > 0, BLUE, ORANGE))
left.axhline(0, color="black", lw=0.8)
left.set(xticks=[], yticks=[], title="Width of the map along each axis",
         ylabel="negative          positive")  # fmt: skip
for label, colour, marker, name in ((0, SKY, "o", "small ball"), (1, "#333333", "^", "large ball")):
    members = y[test] == label
    middle.scatter(from_positive[members], from_negative[members], s=16, color=colour,
                   marker=marker, label=name, alpha=0.8)  # fmt: skip
edge, height = np.array(middle.get_xlim()), np.array(middle.get_ylim())
middle.plot(edge, -bias - edge, color="black", lw=1.2)
middle.set_ylim(height[0] - 0.2 * np.ptp(height), height[1] + 0.5 * np.ptp(height))
middle.set(xlabel="contribution of positive axes", ylabel="contribution of negative axes",
           title="New balls: only the sum separates them", xticks=[], yticks=[])  # fmt: skip
middle.legend(frameon=False, loc="upper right")
names = list(accuracy)[::-1]
right.barh(names, [100 * accuracy[name] for name in names],
           color=["#bbbbbb", "#bbbbbb", "#bbbbbb", ORANGE, BLUE, "#333333"])  # fmt: skip
for row, name in enumerate(names):
    right.annotate(f"{100 * accuracy[name]:.0f} %", (100 * accuracy[name], row), (3, 0),
                   textcoords="offset points", va="center")  # fmt: skip
right.axvline(50, color="black", lw=1, ls=":")
right.set(xlim=(0, 115), xticks=[0, 50, 100], xlabel="accuracy (%); dotted: guessing",
          title="Accuracy on new balls")  # fmt: skip
for axes in (left, middle, right):
    axes.spines[["top", "right"]].set_visible(False)
left.spines["bottom"].set_visible(False)
plt.show()

# %%
# The widths on the left also show the cost: the answer is spread over many narrow axes, so every
# object is a landmark here. A few landmarks would preserve the wide axes and lose the rest.
