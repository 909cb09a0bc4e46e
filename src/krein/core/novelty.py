"""None of the classes: is an object farther from all that is known than known objects are?

The score is the mean of the `NEAREST` smallest dissimilarities among all exact comparisons of an
object, with landmarks and candidates alike, or minus that of the largest similarities. The p-value
ranks it among the scores of held-out objects without themselves (`conformal`). The reference of an
object are the held-out objects that were *given* the same label. That is known of new objects too,
so the p-values hold for every label that has a reference of its own.
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
"""One neighbour alone may be an outlier, and many leave a small class behind."""

GROUP_OBJECTS = 500
"""A label with so many held-out objects has p-values of its own. Those of 100 objects end at 1 %,
above many p-values of larger labels, so that novel objects would no longer come first."""


def novelty_scores(apart: Array, kind: Literal["similarity", "dissimilarity"]) -> Array:
    """Return the score (n,) of objects with these squared dissimilarities (n, k), nearest first.

    Of a similarity, the "squared dissimilarities" are −2s, as in `evidence.squared`.

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
    """What held-out objects scored, and which label they were given.

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
    """Return "novel", "ambiguous" or "known" for each object, from its largest probability and its
    p-value. What is novel is not called ambiguous: doubt between classes presumes one of them.

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
