"""How sure a model may be: the temperature that suits scores of objects it has not seen.

Of few objects all are in the calibration sample, and models are learned anew without a tenth of
them. Of many some thousand are: sums over all objects less those of a tenth of the sample make a
model that has not seen that tenth and is, but for it, the model itself. A model of the sample alone
would not do: what is learned from fewer objects may be far less sure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import fit_temperature
from ..core.checks import Array, Indices
from ..core.family import Codes, Family, Scorer
from ..core.moments import ClassMoments
from ..data.dataset import IN_MEMORY_OBJECTS, uniform_keys
from .selection import LandmarkSet

SAMPLE_SIZE = 5_000
"""About so many of many objects: the temperature is one number."""

N_FOLDS = 10

_SEED = 0


@dataclass(frozen=True)
class CalibrationSample:
    """Which objects have a say: a share of all, but none of some."""

    share: float
    without: Indices

    @classmethod
    def of(cls, n_objects: int, landmarks: Indices, wanted: int | None = None) -> CalibrationSample:
        """All of few objects; of many some thousand that are not landmarks, as no new object is."""
        m = len(landmarks)
        if n_objects <= IN_MEMORY_OBJECTS or 2 * m > n_objects:
            return cls(1.0, np.empty(0, dtype=np.intp))
        return cls((wanted or SAMPLE_SIZE) / (n_objects - m), np.sort(landmarks))

    @classmethod
    def empty(cls) -> CalibrationSample:
        """An empty sample: nothing is calibrated."""
        return cls(0.0, np.empty(0, dtype=np.intp))

    @property
    def covers_all(self) -> bool:
        """Whether all objects are in the sample."""
        return self.share >= 1 and len(self.without) == 0

    def among(self, indices: Indices) -> NDArray[np.intp]:
        """Return the places of the sample among these objects, whatever else is there."""
        if self.covers_all or self.share == 0:
            return np.arange(len(indices) if self.covers_all else 0)
        drawn = uniform_keys(_SEED, indices) < self.share
        return np.flatnonzero(drawn & ~np.isin(indices, self.without))


@dataclass(frozen=True)
class PassResult:
    """What a pass leaves behind: moments of all objects, and the calibration sample."""

    moments: ClassMoments
    indices: Indices  # of the sample among all objects, ascending
    values: Array  # (n, m)
    codes: Codes
    weights: Array | None

    def __add__(self, other: PassResult) -> PassResult:
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = np.concatenate([self.weights, other.weights])
        return PassResult(
            self.moments + other.moments,
            np.concatenate([self.indices, other.indices]),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.codes, other.codes]),
            weights,
        )


def cross_fit(
    family: Family, landmarks: LandmarkSet, values: Array, codes: Codes, weights: Array | None
) -> float:
    """Return the temperature, from scores of objects that the scoring model never saw.

    Ten folds over the values (N, m) of all objects, so no pair is compared again. A landmark in
    the held-out fold is left out as a landmark too: a new object is never its own landmark.
    """
    space, places = landmarks.space, landmarks.indices

    def learn(held: NDArray[np.bool_]) -> Scorer:
        kept = np.flatnonzero(~held[places])
        if len(kept) == 0:
            kept = np.arange(len(places))
        w = None if weights is None else weights[~held]
        part, classes = space.restricted(kept), codes[places[kept]]
        scorer = family.learn(part, classes, values[np.ix_(~held, kept)], codes[~held], w)
        return lambda V: scorer(V[:, kept])

    return held_out_temperature(family, values, codes, weights, learn)


def held_out_temperature(
    family: Family,
    values: Array,
    codes: Codes,
    weights: Array | None,
    learn: Callable[[NDArray[np.bool_]], Scorer],
    totals: Array | None = None,
) -> float:
    """Return the temperature of the scores that `learn` gives without those held out.

    1 where no object can be held out. `totals` (C,) is the weight of each class, where there are
    more objects than these.
    """
    folds = stratified_folds(codes, weights, np.random.default_rng(0), totals)
    fair = folds >= 0
    if not fair.any():
        return 1.0
    scores: Array | None = None
    for fold in range(folds.max() + 1):
        held = folds == fold
        found = learn(held)(values[held])
        if scores is None:
            scores = np.full((len(codes), found.shape[1]), np.nan)
        scores[held] = found
    assert scores is not None
    w = None if weights is None else weights[fair]
    return fit_temperature(scores[fair], codes[fair], family.log_proba, w)


def stratified_folds(
    codes: Codes,
    weights: Array | None,
    rng: np.random.Generator,
    totals: Array | None = None,
) -> Codes:
    """Deal the objects of each class out to the folds, in random order, going round.

    Fold −1 is never held out: a class of one object would be absent from what is learned.
    """
    counted = np.ones(len(codes), dtype=bool) if weights is None else weights > 0
    counts = np.bincount(codes[counted], minlength=int(codes.max(initial=0)) + 1)
    with_others = counts[codes] > 1
    if totals is not None:  # others of the class may be outside the sample
        each = 1.0 if weights is None else weights
        with_others |= totals[codes] - each > 1e-9 * totals[codes]
    dealt = np.flatnonzero(counted & with_others)
    order = rng.permutation(dealt)
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.full(len(codes), -1, dtype=np.intp)
    folds[order] = np.arange(len(order)) % min(N_FOLDS, max(len(order), 1))
    return folds
