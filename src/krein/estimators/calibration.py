"""Calibration: the temperature that best fits the scores of held-out objects.

If left-out scores have a closed form, as for Gaussian classes, or a first-order approximation, a
sample of a few thousand objects is enough. PCVM uses ten-fold cross-fitting for smaller data sets.
"""

from __future__ import annotations

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
"""Sample size for large data sets, enough for a single number such as the temperature."""

N_FOLDS = 10

_SEED = 0


@dataclass(frozen=True)
class CalibrationSample:
    """Defines the calibration sample: a share of all objects, except excluded ones."""

    share: float
    without: Indices

    @classmethod
    def of(cls, n_objects: int, landmarks: Indices, wanted: int | None = None) -> CalibrationSample:
        """Return all objects if there are few; otherwise a few thousand that are not landmarks."""
        m = len(landmarks)
        if n_objects <= IN_MEMORY_OBJECTS or 2 * m > n_objects:
            return cls(1.0, np.empty(0, dtype=np.intp))
        return cls((wanted or SAMPLE_SIZE) / (n_objects - m), np.sort(landmarks))

    @classmethod
    def small(cls, n_objects: int, landmarks: Indices) -> CalibrationSample:
        """Return all objects if at most 5,000, or if most are landmarks; otherwise a sample."""
        m = len(landmarks)
        if n_objects <= SAMPLE_SIZE or 2 * m > n_objects:
            return cls(1.0, np.empty(0, dtype=np.intp))
        return cls(SAMPLE_SIZE / (n_objects - m), np.sort(landmarks))

    @classmethod
    def empty(cls) -> CalibrationSample:
        """Return an empty sample: nothing is calibrated."""
        return cls(0.0, np.empty(0, dtype=np.intp))

    @property
    def covers_all(self) -> bool:
        """Whether all objects are in the sample."""
        return self.share >= 1 and len(self.without) == 0

    def among(self, indices: Indices) -> NDArray[np.intp]:
        """Return the positions of the sample among these objects, independent of the others."""
        if self.covers_all or self.share == 0:
            return np.arange(len(indices) if self.covers_all else 0)
        drawn = uniform_keys(_SEED, indices) < self.share
        return np.flatnonzero(drawn & ~np.isin(indices, self.without))


@dataclass(frozen=True)
class PassResult:
    """The result of a pass: moments of all objects, and the calibration sample."""

    moments: list[ClassMoments]  # in each space that is compared
    indices: Indices  # of the sample among all objects, ascending
    values: Array  # (n, m)
    codes: Codes
    weights: Array | None

    def within(self, sample: CalibrationSample) -> PassResult:
        """Return the same, restricted to the objects that belong to `sample`."""
        some = sample.among(self.indices)
        weights = None if self.weights is None else self.weights[some]
        return PassResult(
            self.moments, self.indices[some], self.values[some], self.codes[some], weights
        )

    def __add__(self, other: PassResult) -> PassResult:
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = np.concatenate([self.weights, other.weights])
        return PassResult(
            [mine + others for mine, others in zip(self.moments, other.moments, strict=True)],
            np.concatenate([self.indices, other.indices]),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.codes, other.codes]),
            weights,
        )


def cross_fit(
    family: Family, landmarks: LandmarkSet, values: Array, codes: Codes, weights: Array | None
) -> float:
    """Return the temperature, fitted to the scores of held-out objects.

    Uses ten folds over the values (N, m) of all objects, so no pair is compared again. A landmark
    in the held-out fold is also left out as a landmark, because a new object is never its own
    landmark. Returns 1 if no object can be held out.
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

    folds = stratified_folds(values, codes, weights)
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
    values: Array, codes: Codes, weights: Array | None, totals: Array | None = None
) -> Codes:
    """Assign the objects of each class to the folds in turn, in the order of their values.

    They are ordered by sums over their sorted values (n, m), so the result depends neither on the
    order of the objects nor on that of the landmarks. Fold −1 is never held out. It contains the
    only object of a class, which would otherwise be missing from the training data, unless `totals`
    (C,), the weight of each class, show that the class has further objects.
    """
    counted = np.ones(len(codes), dtype=bool) if weights is None else weights > 0
    counts = np.bincount(codes[counted], minlength=int(codes.max(initial=0)) + 1)
    with_others = counts[codes] > 1
    if totals is not None:  # others of the class may be outside the sample
        each = 1.0 if weights is None else weights
        with_others |= totals[codes] - each > 1e-9 * totals[codes]
    dealt = np.flatnonzero(counted & with_others)
    ascending = np.sort(values[dealt], axis=1)  # so that sums do not depend on the column order
    middle = ascending[:, ascending.shape[1] // 2] if len(dealt) else np.empty(0)
    heavy = np.ones(len(dealt)) if weights is None else weights[dealt]
    order = dealt[np.lexsort([heavy, middle, ascending.sum(axis=1), codes[dealt]])]
    folds = np.full(len(codes), -1, dtype=np.intp)
    folds[order] = np.arange(len(order)) % min(N_FOLDS, max(len(order), 1))
    return folds
