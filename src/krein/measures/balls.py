"""Balls in space, compared by the gap between their surfaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from .base import Array, Objects
from .errors import RefusedObject
from .vectors import Vectors, as_matrix


@dataclass(frozen=True)
class Balls(Vectors):
    """Gap between the surfaces of two balls, max(0, ‖c − c′‖ − r − r′) (Pękalska & Duin 2005).

    A ball is a row: its centre, then its radius. Far from Euclidean: the triangle inequality fails
    for any ball that lies between two others. O(d) per pair.

    See Also
    --------
    krein.datasets.make_balls : Generate balls whose classes differ only in size.

    Examples
    --------
    >>> from krein.measures.balls import Balls
    >>> balls = [[0.0, 0.0, 1.0], [5.0, 0.0, 2.0]]  # centre, then radius
    >>> Balls().block(balls, balls)
    array([[0., 2.],
           [2., 0.]])
    """

    name = "balls"
    kind = "dissimilarity"
    psd = False

    def check(self, objects: Any) -> Objects:
        """Return a finite float matrix with non-negative radii in the last column."""
        X = as_matrix(objects, "ball")
        if X.shape[1] < 2:
            raise ValueError(f"a ball consists of a centre and a radius; got {X.shape[1]} numbers")
        if (X[:, -1] < 0).any():
            row = int(np.argmax(X[:, -1] < 0))
            raise RefusedObject("ball", row, f"has the negative radius {X[row, -1]:g}")
        return X

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the distances."""
        A, B = np.asarray(A), np.asarray(B)
        D = cdist(A[:, :-1], B[:, :-1])
        D -= A[:, -1:]
        D -= B[:, -1]
        return np.maximum(D, 0, out=D)

    def diagonal(self, A: Objects) -> Array:
        """Return zeros: a ball touches itself."""
        return np.zeros(len(A))
