"""Landmarks drawn at random, from all objects or in proportion to the classes."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ..compare import Pairs
from ..core.calibration import Family
from ..core.shapes import Codes, Indices
from .base import Rule, Selection
from .meb import number_of_landmarks


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
    >>> clf = IKFD("elm", landmarks=Random(20, stratified=True), random_state=0).fit(X, y)
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
        self, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
    ) -> Selection:
        """Choose landmarks; if the number is given, no value of the measure is needed."""
        m = number_of_landmarks(self.n_landmarks, pairs, codes, rng)
        if not self.stratified:
            return Selection(np.sort(rng.choice(len(pairs), size=m, replace=False)))
        if codes is None:
            raise ValueError("Random(stratified=True) draws class by class and needs labels y")
        order = _in_proportion(rng.permutation(len(pairs)), codes)
        return Selection(np.sort(order[:m]))


DENSE = 200
"""Up to this many objects, every object is a landmark. Up to this many landmarks, there are at
least two per class; with hundreds of classes, a landmark tells about many of them."""

PER_ROOT, SHARE, MOST = 2.0, 1 / 40, 500
"""Number of landmarks for more objects: 2 √N or N/40, whichever is larger, but at most 500."""


class Stratified(Rule):
    """Landmarks drawn at random from each class, in proportion to its size.

    Landmarks on the surface of a class, as `MEB` chooses them, are the hard objects. The remaining
    objects are then easier than new ones, and a model calibrated on them is overconfident. With a
    random sample, the remaining objects are like new ones.

    The choice depends on the contents of the objects and `random_state`, not on the order of the
    rows. Of several identical objects, at most one is a landmark.

    Parameters
    ----------
    n_landmarks : int or None, default=None
        Number of landmarks. None uses all objects if there are at most 200, and otherwise 2 √N or
        N/40, whichever is larger, but at most 500, and at least two per class.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> X, y = make_checkerboard(400, random_state=0)
    >>> clf = IKFD("elm", landmarks="stratified", random_state=0).fit(X, y)
    >>> np.bincount(y[clf.landmarks_])
    array([22, 18])
    """

    supervised = True

    def __init__(self, n_landmarks: int | None = None) -> None:
        self.n_landmarks = n_landmarks

    def compares(self) -> bool:
        """Return False: only contents and labels matter."""
        return False

    def select(
        self, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
    ) -> Selection:
        """Choose landmarks; the details contain the `order` in which they were drawn.

        The first n in that order are what a draw of n would return.
        """
        codes = self._codes(pairs, codes)
        m = self.n_landmarks
        if m is None:
            m = default_number(len(pairs), len(np.unique(codes)))
        if not 1 <= m <= len(pairs):
            raise ValueError(f"{m} landmarks cannot be chosen among {len(pairs)} objects")
        chosen = draw_order(pairs, codes, rng)[:m]
        return Selection(np.sort(chosen), {"order": np.argsort(np.argsort(chosen))})


def draw_order(pairs: Pairs, codes: Codes, rng: Generator) -> Indices:
    """Return all objects in a random order in which every prefix has the classes in proportion.

    It depends on the contents of the objects, not on the order of the rows. Repeats of
    an object come after all distinct objects.
    """
    keys = _mixed(pairs.measure.content_keys(pairs.objects), int(rng.integers(2**62)))
    order = np.argsort(keys, kind="stable")
    first = np.zeros(len(pairs), dtype=bool)
    first[order[np.append(True, np.diff(keys[order]) > 0)]] = True  # one of each content

    def distinct_first(rows: Indices) -> Indices:
        return np.concatenate([rows[first[rows]], rows[~first[rows]]])

    return distinct_first(_in_proportion(distinct_first(order), codes))


def _in_proportion(order: Indices, codes: Codes) -> Indices:
    """Return the objects in an order in which every prefix has the classes in proportion."""
    rank = np.empty(len(order))
    for c, count in enumerate(np.bincount(codes)):
        rank[order[codes[order] == c]] = np.arange(count) / count  # 0 for the first of every class
    found: Indices = order[np.argsort(rank[order], kind="stable")]
    return found


def default_number(n_objects: int, n_classes: int) -> int:
    """Return the default number of landmarks for these numbers of objects and classes."""
    if n_objects <= DENSE:
        return n_objects
    wanted = int(np.ceil(max(PER_ROOT * np.sqrt(n_objects), SHARE * n_objects)))
    return min(max(min(wanted, MOST), min(2 * n_classes, DENSE)), n_objects)


def _mixed(keys: np.ndarray, seed: int) -> np.ndarray:
    """Return the keys of one draw: SplitMix64 of each, so that another seed gives another order."""
    with np.errstate(over="ignore"):
        x = keys + np.uint64((seed * 0x9E3779B97F4A7C15) & (2**64 - 1))
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
