"""Landmarks drawn at random."""

from __future__ import annotations

import numpy as np

from ..compare import Pairs
from ..core.family import Family
from .base import Codes, Rule, Selection
from .number import number_of_landmarks


class Random(Rule):
    """Landmarks drawn at random, without any comparison.

    Parameters
    ----------
    n_landmarks : int or None, default=None
        Number of landmarks; None uses as many as `MEB` would choose.
    stratified : bool, default=False
        Draw from each class in proportion to its size, at least one from each.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> from krein.landmarks import Random
    >>> X, y = make_checkerboard(300, random_state=0)
    >>> clf = IKFD(landmarks=Random(20, stratified=True), random_state=0).fit(X, y)
    >>> np.bincount(y[clf.landmarks_])
    array([11,  9])
    """

    def __init__(self, n_landmarks: int | None = None, stratified: bool = False) -> None:
        self.n_landmarks = n_landmarks
        self.stratified = stratified

    def compares(self) -> bool:
        """Whether the number of landmarks must be found by comparisons."""
        return self.n_landmarks is None

    def select(
        self,
        pairs: Pairs,
        codes: Codes | None,
        rng: np.random.Generator,
        family: Family | None = None,
    ) -> Selection:
        """Choose landmarks; if the number is given, no value of the measure is needed."""
        m = number_of_landmarks(self.n_landmarks, pairs, codes, rng)
        if not self.stratified:
            return Selection(np.sort(rng.choice(len(pairs), size=m, replace=False)))
        if codes is None:
            raise ValueError("Random(stratified=True) draws class by class and needs labels y")
        order = rng.permutation(len(pairs))
        counts = np.bincount(codes)
        rank = np.empty(len(pairs))
        for c in np.flatnonzero(counts):
            rows = order[codes[order] == c]
            rank[rows] = np.arange(len(rows)) / counts[c]  # 0 for the first of every class
        shuffled = order[np.argsort(rank[order], kind="stable")]
        return Selection(np.sort(shuffled[:m]))
