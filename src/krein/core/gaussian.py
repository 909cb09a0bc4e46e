"""Gaussian classes: models that know the data by their class moments alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

from .checks import Array
from .covariance import Shrinkage
from .family import Codes, Priors, Scorer, log_proba_joint, log_proba_one_against_rest
from .fisher import LinearDiscriminant, fit_fisher, fit_fisher_one_against_rest
from .moments import ClassMoments
from .quadratic import QuadraticDiscriminant, fit_quadratic
from .space import LandmarkSpace


@dataclass(frozen=True)
class GaussianFamily(ABC):
    """What IKFD and IKQD share."""

    n_classes: int
    shrinkage: Shrinkage = "oas"
    priors: Priors = field(default_factory=Priors)
    one_against_rest: bool = False
    rank: int | None = None

    by_class = False
    """Whether the model needs the products of each class."""

    @abstractmethod
    def discriminant(self, moments: ClassMoments) -> LinearDiscriminant | QuadraticDiscriminant:
        """Return the model of these moments."""

    def moments(
        self,
        space: LandmarkSpace,
        origin: Array,
        values: Array,
        codes: Codes,
        weights: Array | None = None,
    ) -> ClassMoments:
        """Return the moments of objects with these values (n, m) to the landmarks. O(n·m²)."""
        return ClassMoments.of(
            space.coordinates(values),
            codes,
            self.n_classes,
            origin=origin,
            sample_weight=weights,
            by_class=self.by_class,
        )

    def scorer(self, space: LandmarkSpace, moments: ClassMoments) -> Scorer:
        """Return the scores of the model that these moments make."""
        model = self.discriminant(moments)
        return lambda values: model.scores(space.coordinates(values))

    def learn(
        self,
        space: LandmarkSpace,
        landmark_classes: Codes,
        values: Array,
        codes: Codes,
        weights: Array | None,
    ) -> Scorer:
        """Return the scores learned from values in memory."""
        return self.scorer(space, self.moments(space, space.origin(), values, codes, weights))

    def log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C): softmax of joint scores, or shares of one-vs-rest."""
        if self.one_against_rest and scores.shape[1] > 2:
            return log_proba_one_against_rest(scores)
        return log_proba_joint(scores)

    def after(self, scorer: Scorer) -> Self:
        """Return the same: nothing is chosen on the way."""
        return self


class FisherFamily(GaussianFamily):
    """One covariance for all classes.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.gaussian import FisherFamily
    >>> from krein.core.space import LandmarkSpace
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> D = np.abs(X - X.T)
    >>> space, codes = LandmarkSpace.of(D, "dissimilarity"), np.array([0, 0, 1, 1])
    >>> FisherFamily(2).learn(space, codes, D, codes, None)(D).argmax(axis=1)
    array([0, 0, 1, 1])
    """

    def discriminant(self, moments: ClassMoments) -> LinearDiscriminant:
        """Return the linear discriminant of these moments. O(r³)."""
        ovr = self.one_against_rest and len(moments.weights) > 2
        fit = fit_fisher_one_against_rest if ovr else fit_fisher
        return fit(moments, shrinkage=self.shrinkage, priors=self.priors.of(moments.weights))


class QuadraticFamily(GaussianFamily):
    """A covariance for each class, shrunk towards the shared one."""

    by_class = True

    def discriminant(self, moments: ClassMoments) -> QuadraticDiscriminant:
        """Return the quadratic discriminant of these moments. O(C·r³)."""
        priors = self.priors.of(moments.weights)
        return fit_quadratic(moments, shrinkage=self.shrinkage, priors=priors)
