"""Novelty detection: is an object farther from the known objects than they are from each other?

The score is the mean of the `NEAREST` smallest dissimilarities among all exact comparisons of an
object, with landmarks and candidates, or minus the mean of the largest similarities. The
p-value ranks the score among those of held-out objects, none of which is compared with itself
(`conformal`). The reference of an object consists of the held-out objects with the same *predicted*
label. New objects have a predicted label too, so the p-values are valid for every label that has
its own reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .checks import Array
from .conformal import conformal_p, groups_of, in_group
from .family import Codes

NEAREST = 3
"""A single neighbour may be an outlier; many neighbours may be more than a small class has."""

GROUP_OBJECTS = 500
"""A label with at least this many held-out objects has its own p-values. With 100 objects, p-values
cannot be below 1 %, so novel objects would rank behind objects with more common labels."""


def novelty_scores(apart: Array, kind: Literal["similarity", "dissimilarity"]) -> Array:
    """Return the score (n,) of objects with these squared dissimilarities (n, k), nearest first.

    For a similarity s, the "squared dissimilarities" are −2s, as in `evidence.squared`.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.novelty import novelty_scores
    >>> novelty_scores(np.array([[1.0, 4.0, 9.0, 1e6]]), "dissimilarity")
    array([2.])
    """
    near = apart[:, :NEAREST]
    near = np.sqrt(near) if kind == "dissimilarity" else near / 2
    return near.mean(axis=1)


@dataclass(frozen=True)
class NoveltyReference:
    """The scores and predicted labels of held-out objects.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.novelty import NoveltyReference
    >>> reference = NoveltyReference(np.arange(99.0), np.zeros(99, dtype=int), None, 2)
    >>> reference.p_values(np.array([50.0, 1000.0]), np.array([0, 1]))
    array([0.5 , 0.01])
    """

    scores: Array  # (n,)
    predicted: Codes  # (n,)
    weights: Array | None
    n_classes: int

    def p_values(self, scores: Array, predicted: Codes) -> Array:
        """Return the p-value (q,) of new objects with these scores and predicted classes."""
        groups = groups_of(self.predicted, self.n_classes, GROUP_OBJECTS)
        own, asked = groups[self.predicted], groups[predicted]
        found = np.ones(len(scores))
        for group in np.unique(asked):
            here, there = in_group(group, own), asked == group
            weights = None if self.weights is None else self.weights[here]
            found[there] = conformal_p(self.scores[here], scores[there], weights)
        return found

    @property
    def smallest(self) -> float:
        """The smallest p-value that an object of any class can have."""
        n = float(len(self.scores) if self.weights is None else self.weights.sum())
        return 1.0 / (n + 1.0)


def status_of(
    confidence: Array, novelty: Array, ambiguous_below: float, novel_below: float
) -> NDArray[np.str_]:
    """Return "novel", "ambiguous" or "known" for each object, from its probability and p-value.

    `confidence` is the largest probability. "Novel" takes precedence over "ambiguous", because
    doubt between classes presupposes that one of them is correct.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.novelty import status_of
    >>> status_of(np.array([0.9, 0.6, 0.9]), np.array([0.5, 0.5, 0.001]), 0.8, 0.01)
    array(['known', 'ambiguous', 'novel'], dtype='<U9')
    """
    status = np.where(confidence < ambiguous_below, "ambiguous", "known").astype("<U9")
    status[novelty <= novel_below] = "novel"
    return status
