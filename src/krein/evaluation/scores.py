"""The quality of probabilities: log-loss and calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.checks import Array, Indices

BINS = 10
"""Number of confidence bins of equal width, from 0 to 1."""


@dataclass(frozen=True)
class Reliability:
    """For each bin of confidence: number of objects, mean confidence, accuracy."""

    edges: Array  # (BINS + 1,)
    count: Array
    confidence: Array  # NaN if a bin is empty
    accuracy: Array

    @property
    def error(self) -> float:
        """Expected calibration error: the mean |accuracy − confidence|, weighted by the counts."""
        filled = self.count > 0
        gap = np.abs(self.accuracy[filled] - self.confidence[filled])
        return float(self.count[filled] @ gap / self.count.sum())


def reliability(P: Array, codes: Indices) -> Reliability:
    """Compare the probability (n, C) of the predicted class with its accuracy.

    >>> reliability(np.array([[0.8, 0.2]] * 5), np.array([0, 0, 0, 0, 1])).error
    0.0
    """
    sure, right = P.max(axis=1), P.argmax(axis=1) == codes
    place = np.minimum((sure * BINS).astype(np.intp), BINS - 1)
    count = np.bincount(place, minlength=BINS).astype(float)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(place, weights=sure, minlength=BINS) / count
        accuracy = np.bincount(place, weights=right, minlength=BINS) / count
    return Reliability(np.linspace(0, 1, BINS + 1), count, confidence, accuracy)


def log_losses(P: Array, codes: Indices) -> Array:
    """Return −log of the probability of each object's own class, at most 745 (the smallest
    float)."""
    return -np.log(np.maximum(P[np.arange(len(codes)), codes], np.finfo(float).smallest_subnormal))
