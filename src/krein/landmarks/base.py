"""The protocol of a selection rule: it takes pairs and labels, and returns indices of landmarks.

`All` and `Given` are the rules that choose nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.base import BaseEstimator, clone

from ..compare import Pairs
from ..core.calibration import Family
from ..core.shapes import Array, Codes, Indices, Kind
from ..core.space import Conversion, unit_of
from ..measures.precomputed import Precomputed, PrecomputedRows
from ..wording import parameter


@dataclass(frozen=True)
class Selection:
    """The landmarks that a rule chose, and what else it found."""

    indices: Indices  # without repetition; ascending, unless they were given
    details: dict[str, Any] = field(default_factory=dict)
    values: Array | None = None  # (N, m) of all objects to the landmarks, if known
    family: Family | None = None  # that the rule has fitted, with the settings it chose


class Rule(BaseEstimator, ABC):
    """Base class of landmark rules. Parameters go into `__init__`, as in a scikit-learn estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import IKFD
    >>> from krein.datasets import make_checkerboard
    >>> from krein.landmarks import Rule, Selection
    >>> class FirstOfEach(Rule):
    ...     supervised = True
    ...
    ...     def select(self, pairs, codes, rng, family=None):
    ...         return Selection(np.sort(np.unique(codes, return_index=True)[1]))
    ...
    >>> X, y = make_checkerboard(100, random_state=0)
    >>> len(IKFD("elm", landmarks=FirstOfEach()).fit(X, y).landmarks_)
    2
    """

    supervised = False
    """Whether the rule needs labels."""

    def compares(self) -> bool:
        """Whether the rule needs values of the measure."""
        return True

    @abstractmethod
    def select(
        self, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
    ) -> Selection:
        """Choose landmarks among the objects of `pairs`.

        `codes` are class numbers 0…C−1, or None if there are no labels. All random numbers come
        from `rng`, and all values of the measure from `pairs`, which counts them. A rule that
        depends on errors fits `family` to find them.
        """

    def _codes(self, pairs: Pairs, codes: Codes | None) -> Codes:
        """Return the class numbers; without labels, all objects form one class."""
        if codes is not None:
            return codes
        if self.supervised:
            raise ValueError(
                f"{type(self).__name__} chooses landmarks class by class and needs labels y"
            )
        return np.zeros(len(pairs), dtype=np.intp)


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


FEW = 128
"""Up to this many objects, comparing all pairs once costs no more than the rules' own
comparisons."""


def select_landmarks(
    rule: Rule, pairs: Pairs, codes: Codes | None, rng: Generator, family: Family | None = None
) -> Selection:
    """Choose landmarks by `rule`; if there are few objects, from one comparison of all pairs.

    Sketches and columns of few objects overlap: computed separately, they would compare some pairs
    several times. The selection includes the values to the landmarks, which are not compared again.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import open_pairs
    >>> from krein.landmarks import MEB, select_landmarks
    >>> pairs = open_pairs("levenshtein", ["house", "mouse", "horse", "haus", "maus", "ross"])
    >>> codes = np.array([0, 0, 0, 1, 1, 1])
    >>> found = select_landmarks(MEB(), pairs, codes, np.random.default_rng(0))
    >>> len(found.indices) >= 4
    True
    """
    costly = pairs.measure.expensive and pairs.symmetric
    if not (costly and len(pairs) <= FEW and rule.compares()):
        return rule.select(pairs, codes, rng, family)
    all_rows = np.arange(len(pairs))
    known = given_pairs(pairs.block(all_rows, all_rows), pairs.kind, psd=pairs.psd)
    found = rule.select(known, codes, rng, family)
    return replace(found, values=known.block(all_rows, found.indices))


def given_pairs(values: Array, kind: Kind = "similarity", psd: bool | None = None) -> Pairs:
    """Return the pairs of objects whose values (n, n) are known."""
    rows = PrecomputedRows(values, len(values), columns=np.arange(len(values)))
    return Pairs(Precomputed(kind), rows, n_jobs=1, psd=psd)


def in_safe_unit(values: Array) -> Array:
    """Return values in a unit in which their fourth powers neither overflow nor vanish."""
    unit = unit_of(values)
    return values if unit == 1 else values / unit


def similarities(pairs: Pairs, rows: Indices, cols: Indices) -> Array:
    """Return the similarities (n, s) of `rows` to `cols`, which must be among `rows`.

    Values of a dissimilarity are squared and centred on the columns.
    """
    values = in_safe_unit(pairs.block(rows, cols))
    place = {row: i for i, row in enumerate(rows)}
    between = values[[place[col] for col in cols]]
    return Conversion.of(between, pairs.kind).similarities(values)


def sketch(pairs: Pairs, rows: Indices, size: int | None, rng: Generator) -> Array:
    """Return the rows of K on `size` random columns among `rows` (all of them for None).

    Costs len(rows)·size evaluations. Row i contains the similarities of object i to a random
    sample: its coordinates in the empirical feature space, in which K Kᵀ is an inner product.
    """
    whole = size is None or size >= len(rows)
    cols = rows if whole else np.sort(rng.choice(rows, size=size, replace=False))
    return similarities(pairs, rows, cols)


def n_sketched(pairs: Pairs, size: int | None) -> int | None:
    """Return the number of columns of a sketch: all for a matrix in memory, 100 otherwise."""
    if size is not None:
        if size != int(size) or size < 1:
            raise ValueError(f"sketch must be a whole number of columns, at least 1; got {size!r}")
        return int(size)
    return None if pairs.at_hand else 100


def check_landmarks(indices: Any, n: int) -> Indices:
    """Return landmark indices into `n` objects: integers in range, without repeats."""
    indices = np.asarray(indices)
    if indices.ndim != 1 or len(indices) == 0:
        raise ValueError(f"landmarks must be a non-empty vector of indices; got {indices!r}")
    if indices.dtype.kind not in "iu":
        hint = "; np.flatnonzero(mask) turns a mask into indices" if indices.dtype == bool else ""
        raise ValueError(f"landmarks must be whole numbers; got {indices.dtype}{hint}")
    outside = (indices < 0) | (indices >= n)
    if outside.any():
        raise ValueError(f"landmark {indices[outside][0]} is out of range for {n} objects")
    values, first, counts = np.unique(indices, return_index=True, return_counts=True)
    if (counts > 1).any():
        repeated = values[counts > 1][np.argmin(first[counts > 1])]
        raise ValueError(f"landmark {repeated} is given more than once")
    return indices.astype(np.intp)


_RULES = {
    "all": "base:All",
    "meb": "meb:MEB",
    "kmeans": "kmeans:KMeans",
    "entropy": "entropy:Entropy",
    "random": "random:Random",
    "stratified": "random:Stratified",
    "leverage": "leverage:Leverage",
    "auto": "auto:Auto",
}
"""Module and class of each rule, by the name that `landmarks=` accepts."""


def get_rule(landmarks: Any, n_landmarks: int | None = None) -> Rule:
    """Return the rule given by name, as a `Rule`, or as an array of indices.

    Examples
    --------
    >>> from krein.landmarks import get_rule
    >>> get_rule("random", n_landmarks=20)
    Random(n_landmarks=20)
    """
    if isinstance(landmarks, str):
        if landmarks not in _RULES:
            raise ValueError(
                f"unknown landmark rule {landmarks!r}; choose one of {', '.join(_RULES)}"
            )
        module, _, name = _RULES[landmarks].partition(":")
        rule = getattr(import_module(f".{module}", __package__), name)()
    else:
        rule = clone(landmarks) if isinstance(landmarks, Rule) else Given(np.asarray(landmarks))
    if n_landmarks is None:
        return rule
    if "n_landmarks" not in rule.get_params():
        raise ValueError(
            f"{parameter('n_landmarks', n_landmarks)} was given, but {type(rule).__name__} finds "
            f"its own number: use {parameter('landmarks', repr('stratified'))}, or another rule "
            f"that takes a number"
        )
    return rule.set_params(n_landmarks=n_landmarks)
