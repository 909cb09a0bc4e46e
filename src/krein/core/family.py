"""Families of models: they learn scores from values to the landmarks.

A family is an immutable value that contains only the settings of a fit, so that landmark rules,
calibration and cross-fitting can learn models without knowing which estimator they work for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from scipy.special import log_expit, log_softmax, logsumexp

from .checks import Array, Codes, Indices
from .space import LandmarkSpace

Scorer = Callable[[Array], Array]
"""Values of objects to the landmarks (n, m) → scores (n, C)."""


class Family(Protocol):
    """A kind of model with its settings."""

    @property
    def rank(self) -> int | None:
        """The largest number of dimensions of the landmark space; None for no limit."""

    def learn(
        self,
        space: LandmarkSpace,
        landmark_classes: Codes,
        values: Array,
        codes: Codes,
        weights: Array | None,
    ) -> Scorer:
        """Return the scores learned from values (n, m) of objects with class codes (n,)."""

    def log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C) from scores (n, C)."""

    def judged_landmarks(self, n_objects: int) -> int:
        """Return the number of landmarks up to which left-out scores of n objects are reliable."""

    def left_out(
        self, space: LandmarkSpace, values: Array, codes: Codes, landmarks: Indices
    ) -> LeftOut:
        """Return left-out scores of objects with values (n, m).

        `landmarks` (m,) are the rows of the landmarks. The result may depend on the order of the
        objects, so sort them by their contents.
        """


@dataclass(frozen=True)
class LeftOut:
    """Scores of objects from models that were fitted without them."""

    scores: Array  # (k, C)
    rows: Indices  # (k,): the scored objects; the others cannot be left out
    family: Family  # with the settings it chose, as a start for more landmarks


@dataclass(frozen=True)
class ClassWeights:
    """The cost of an error in each class: weights (C,), "balanced", or None for equal costs."""

    given: Array | Literal["balanced"] | None = None

    def of(self, counts: Array) -> Array | None:
        """Return the weight of each class, given the number of objects per class."""
        if self.given is None:
            return None
        if not isinstance(self.given, str):
            return self.given
        present = counts > 0
        balanced = counts.sum() / (present.sum() * np.where(present, counts, 1.0))
        return np.where(present, balanced, 1.0)

    def of_objects(self, counts: Array) -> Array | None:
        """Return the weight of an object of each class.

        The mean weight over all objects is 1, so weighting does not change the effective number of
        objects.
        """
        each = self.of(counts)
        return None if each is None else each / ((each @ counts) / counts.sum())


@dataclass(frozen=True)
class Priors:
    """Prior probabilities of the classes: given (C,), or the class frequencies.

    Class weights multiply them: the cost of an error moves the decision boundary, but does not
    affect the covariance.
    """

    given: Array | None = None
    class_weights: ClassWeights = field(default_factory=ClassWeights)

    def of(self, counts: Array) -> Array:
        """Return the priors (C,), given the number of objects per class."""
        p = counts if self.given is None else self.given
        each = self.class_weights.of(counts)
        p = p if each is None else p * each
        return p / p.sum()


def log_proba_joint(scores: Array) -> Array:
    """Return log-probabilities from joint scores: softmax."""
    found: Array = log_softmax(scores, axis=1)
    return found


def normalised(log_p: Array) -> Array:
    """Return log-probabilities (n, C) shifted so that the probabilities of a row sum to 1."""
    found: Array = log_p - logsumexp(log_p, axis=1, keepdims=True)
    return found


def log_proba_one_against_rest(scores: Array) -> Array:
    """Return log-probabilities from one-against-rest log-odds: sigmoids, normalised to sum to 1."""
    return normalised(log_expit(scores))
