"""Landmarks at the centres of clusters (Zhang & Kwok 2010; the paper's KM)."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from sklearn.cluster import KMeans as _KMeans
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from ..compare import Pairs
from ..core.calibration import Family
from ..core.shapes import Codes
from .base import Rule, Selection, n_sketched, sketch
from .meb import number_of_landmarks

_MINI_BATCH = 10_000  # above this number, mini-batches are worth their less accurate centres


class KMeans(Rule):
    """The object nearest to each centre of a k-means clustering of the rows of K.

    Parameters
    ----------
    n_landmarks : int or None, default=None
        Number of landmarks; None uses as many as `MEB` would choose.
    sketch : int or None, default=None
        Restrict the rows of K to this many random columns. None uses all columns of a precomputed
        matrix, as published, and 100 columns of other measures: N·100 evaluations.

    Examples
    --------
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> from krein.landmarks import KMeans
    >>> X, y = make_checkerboard(300, random_state=0)
    >>> len(IKFD("elm", landmarks=KMeans(20), random_state=0).fit(X, y).landmarks_)
    20
    """

    def __init__(self, n_landmarks: int | None = None, sketch: int | None = None) -> None:
        self.n_landmarks = n_landmarks
        self.sketch = sketch

    def select(
        self, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
    ) -> Selection:
        """Choose landmarks; the details contain the within-cluster sum of squares, `inertia`."""
        m = number_of_landmarks(self.n_landmarks, pairs, codes, rng)
        X = sketch(pairs, np.arange(len(pairs)), n_sketched(pairs, self.sketch), rng)
        m = min(m, len(np.unique(X, axis=0)))  # identical rows cannot be told apart
        method = MiniBatchKMeans if len(X) > _MINI_BATCH else _KMeans
        seed = int(rng.integers(2**31))
        with threadpool_limits(1, user_api="openmp"):  # sums in one order, independent of threads
            model = method(m, n_init=1, random_state=seed).fit(X)
        chosen: list[int] = []
        for centre in model.cluster_centers_:
            distances = ((X - centre) ** 2).sum(axis=1)
            distances[chosen] = np.inf  # never the same object twice
            # ties, up to rounding, go to the first object, whatever the unit
            chosen.append(int(np.flatnonzero(distances <= distances.min() * (1 + 1e-9))[0]))
        return Selection(np.sort(np.array(chosen)), {"inertia": float(model.inertia_)})
