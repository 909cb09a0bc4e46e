"""All objects as landmarks: the dense methods."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ..compare import Pairs
from ..core.calibration import Family
from ..core.shapes import Codes
from .base import Rule, Selection, check_landmarks


class All(Rule):
    """All objects as landmarks. The Nyström approximation is then exact: N² values, O(N³) time.

    Examples
    --------
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> X, y = make_checkerboard(100, random_state=0)
    >>> len(IKFD("elm", landmarks="all").fit(X, y).landmarks_)
    100
    """

    def compares(self) -> bool:
        """Return False: no comparison is needed."""
        return False

    def select(
        self, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
    ) -> Selection:
        """Choose all objects."""
        return Selection(np.arange(len(pairs)))


class Given(Rule):
    """Landmarks at given indices.

    Parameters
    ----------
    indices : array of int
        Rows of the training objects, without repetition.

    Examples
    --------
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> X, y = make_checkerboard(100, random_state=0)
    >>> IKFD("elm", landmarks=[3, 14, 15, 92]).fit(X, y).landmarks_
    array([ 3, 14, 15, 92])
    """

    def __init__(self, indices: object) -> None:
        self.indices = indices

    def compares(self) -> bool:
        """Return False: no comparison is needed."""
        return False

    def select(
        self, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
    ) -> Selection:
        """Check the indices and return them, in the order given."""
        return Selection(check_landmarks(self.indices, len(pairs)))
