"""Gaussian classes: models that need only the class moments of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from .checks import Array, Indices
from .choice import choose_linear, choose_quadratic, oas_amount
from .convert import POWERS
from .covariance import Shrinkage
from .family import Codes, LeftOut, Priors, Scorer, log_proba_joint, log_proba_one_against_rest
from .fisher import LinearDiscriminant, fit_fisher, fit_fisher_one_against_rest, log_priors
from .left_out import LeftOutObjects, left_out_linear, left_out_quadratic
from .moments import ClassMoments
from .quadratic import QuadraticDiscriminant, fit_quadratic
from .space import LandmarkSpace
from .within import ChosenCovariance, WithinPath

FamilyShrinkage = Shrinkage | Literal["auto"] | tuple[Shrinkage, ...]
"""Shrinkage settings of a family: a given shrinkage, "auto", or a choice per class."""


@dataclass(frozen=True)
class LabelledValues:
    """Objects with known values to the landmarks, and which of them are landmarks."""

    values: Array  # (n, m)
    codes: Codes  # (n,)
    weights: Array | None
    landmarks: Indices  # (n,): position among the landmarks, −1 for other objects

    @classmethod
    def of(
        cls, space: LandmarkSpace, values: Array, codes: Codes, weights: Array | None
    ) -> LabelledValues:
        """Return these objects. Every object with a landmark's values counts as that landmark.

        This includes copies. O(n·m), and O(m) for each object and landmark that may be equal.
        """
        own = np.diag(space.landmark_values)
        rounding = 1e-12 * np.abs(space.landmark_values).max(initial=0.0)
        at_home = np.abs(values - own) <= rounding
        landmarks = np.full(len(values), -1, dtype=np.intp)
        for place in np.flatnonzero(at_home.any(axis=0)).tolist():
            rows = np.flatnonzero(at_home[:, place] & (landmarks < 0))
            same = np.abs(values[rows] - space.landmark_values[place]).max(axis=1) <= rounding
            landmarks[rows[same]] = place
        return cls(values, codes, weights, landmarks)

    def left_out_objects(self, space: LandmarkSpace, moments: ClassMoments) -> LeftOutObjects:
        """Return the objects that can be left out."""
        return LeftOutObjects.of(
            moments,
            space.coordinates(self.values),
            self.codes,
            self.weights,
            space.basis.T,
            self.landmarks,
        )


@dataclass(frozen=True)
class GaussianFamily(ABC):
    """What IKFD and IKQD share.

    `shrinkage` is "auto" until `chosen` replaces it by the best covariance for the data, or by one
    per class with `one_against_rest`.
    """

    n_classes: int
    shrinkage: FamilyShrinkage = "auto"
    priors: Priors = field(default_factory=Priors)
    one_against_rest: bool = False
    rank: int | None = None

    by_class = False
    """Whether the model needs separate products per class."""

    @abstractmethod
    def discriminant(self, moments: ClassMoments) -> LinearDiscriminant | QuadraticDiscriminant:
        """Return the model fitted to these moments."""

    @abstractmethod
    def chosen(
        self, space: LandmarkSpace, moments: ClassMoments, sample: LabelledValues
    ) -> ChosenFamily:
        """Return the family with the shrinkage that has the least left-out loss on the sample."""

    @abstractmethod
    def left_out_scores(
        self, space: LandmarkSpace, moments: ClassMoments, sample: LabelledValues
    ) -> tuple[Array, LeftOutObjects]:
        """Return the left-out scores (n, C) of the objects, in closed form."""

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
        """Return the scoring function of the model fitted to these moments."""
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
        """Return the scoring function learned from values in memory."""
        moments = self.moments(space, space.origin(), values, codes, weights)
        family = self.chosen(
            space, moments, LabelledValues.of(space, values, codes, weights)
        ).family
        return family.scorer(space, moments)

    def log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C): softmax of joint scores, or normalised sigmoids."""
        if self.one_against_rest and scores.shape[1] > 2:
            return log_proba_one_against_rest(scores)
        return log_proba_joint(scores)

    def judged_landmarks(self, n_objects: int) -> int:
        """Return the number of landmarks up to which left-out scores of n objects are reliable."""
        return n_objects // 2

    def left_out(
        self, space: LandmarkSpace, values: Array, codes: Codes, landmarks: Indices
    ) -> LeftOut:
        """Return the left-out scores of the objects, under the best power.

        O(n·m²) per power and target.
        """
        place = np.full(len(codes), -1, dtype=np.intp)
        place[landmarks] = np.arange(len(landmarks))
        sample = LabelledValues(values, codes, None, place)
        choosing = space.kind == "dissimilarity" and self.shrinkage == "auto"
        spaces = [space.with_power(power) for power in POWERS] if choosing else [space]
        moments = [self.moments(one, one.origin(), values, codes) for one in spaces]
        choices = [self.chosen(one, its, sample) for one, its in zip(spaces, moments, strict=True)]
        losses = [np.inf if np.isnan(choice.loss) else choice.loss for choice in choices]
        best = int(np.argmin(losses))
        model = choices[best].family
        scores, objects = model.left_out_scores(spaces[best], moments[best], sample)
        return LeftOut(scores, objects.rows, self)

    def prior_ratio(self, moments: ClassMoments) -> Array:
        """Return the logarithm of the priors divided by the class frequencies (C,)."""
        with np.errstate(invalid="ignore"):
            ratio = log_priors(moments.weights, self.priors.of(moments.weights))
            ratio = ratio - log_priors(moments.weights, None)
        return np.where(moments.weights > 0, ratio, 0.0)


@dataclass(frozen=True)
class ChosenFamily:
    """A family with its covariance chosen, and the left-out loss; NaN if nothing was chosen."""

    family: GaussianFamily
    loss: float = np.nan


def choose_power(
    family: GaussianFamily, space: LandmarkSpace, codes: Codes, n_landmarks: int
) -> float:
    """Return the power of the dissimilarities with the least left-out loss on the landmarks.

    The m landmarks serve as objects. About `n_landmarks` of them, evenly spaced in the order of
    their mean dissimilarities within each class, serve as landmarks. O(m·n_landmarks²) per power.
    """
    D = space.landmark_values
    ascending = np.sort(D, axis=1).sum(axis=1)  # independent of the landmarks' order
    order = np.lexsort([ascending, codes])
    places = np.sort(order[:: max(1, len(D) // n_landmarks)])
    of_objects = np.full(len(D), -1, dtype=np.intp)
    of_objects[places] = np.arange(len(places))
    values = np.ascontiguousarray(D[:, places])
    losses = []
    restricted = space.restricted(places)
    for power in POWERS:
        part = restricted.with_power(power)
        moments = family.moments(part, part.origin(), values, codes)
        loss = family.chosen(part, moments, LabelledValues(values, codes, None, of_objects)).loss
        losses.append(np.inf if np.isnan(loss) else loss)
    return POWERS[int(np.argmin(losses))]


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

    @property
    def _each_alone(self) -> bool:
        return self.one_against_rest and self.n_classes > 2

    def discriminant(self, moments: ClassMoments) -> LinearDiscriminant:
        """Return the linear discriminant of these moments. O(r³)."""
        assert self.shrinkage != "auto"
        priors = self.priors.of(moments.weights)
        if self._each_alone:
            return fit_fisher_one_against_rest(moments, shrinkage=self.shrinkage, priors=priors)
        assert not isinstance(self.shrinkage, tuple)
        return fit_fisher(moments, shrinkage=self.shrinkage, priors=priors)

    def chosen(
        self, space: LandmarkSpace, moments: ClassMoments, sample: LabelledValues
    ) -> ChosenFamily:
        """Return the family with the best target and amount. O(n·r² + r³) per target."""
        if self.shrinkage != "auto":
            return ChosenFamily(self)
        objects = sample.left_out_objects(space, moments)
        lam = space.basis.lam
        if not self._each_alone:
            found = choose_linear(moments, lam, objects)
            if found is None:
                return ChosenFamily(replace(self, shrinkage="oas"))
            return ChosenFamily(replace(self, shrinkage=found.covariance), found.loss)
        each: list[Shrinkage] = []
        losses: list[float] = []
        for c in range(self.n_classes):
            alone = None
            if moments.weights[c] > 0:
                two = moments.one_against_rest(c)
                recoded = replace(
                    objects, codes=(objects.codes == c).astype(np.intp), totals=two.weights
                )
                alone = choose_linear(two, lam, recoded)
            each.append("oas" if alone is None else alone.covariance)
            losses.append(np.nan if alone is None else alone.loss)
        return ChosenFamily(replace(self, shrinkage=tuple(each)), float(np.sum(losses)))

    def left_out_scores(
        self, space: LandmarkSpace, moments: ClassMoments, sample: LabelledValues
    ) -> tuple[Array, LeftOutObjects]:
        """Return the left-out scores of the objects. O(n·r² + r³)."""
        objects = sample.left_out_objects(space, moments)
        if not self._each_alone:
            assert not isinstance(self.shrinkage, tuple)
            scores = _without_each(objects, moments, self.shrinkage)
            return scores + self.prior_ratio(moments), objects
        priors = self.priors.of(moments.weights)
        scores = np.full((len(objects), self.n_classes), -np.inf)
        for c in np.flatnonzero(moments.weights > 0).tolist():
            two = moments.one_against_rest(c)
            recoded = replace(
                objects, codes=(objects.codes == c).astype(np.intp), totals=two.weights
            )
            own = self.shrinkage[c] if isinstance(self.shrinkage, tuple) else self.shrinkage
            found = _without_each(recoded, two, own)
            ratio = np.log(priors[c] / (1 - priors[c])) - np.log(two.weights[1] / two.weights[0])
            scores[:, c] = found[:, 1] - found[:, 0] + ratio
        return scores, objects


class QuadraticFamily(GaussianFamily):
    """A covariance for each class, shrunk towards the shared one."""

    by_class = True

    def discriminant(self, moments: ClassMoments) -> QuadraticDiscriminant:
        """Return the quadratic discriminant of these moments. O(C·r³)."""
        assert self.shrinkage != "auto"
        assert not isinstance(self.shrinkage, tuple)
        priors = self.priors.of(moments.weights)
        return fit_quadratic(moments, shrinkage=self.shrinkage, priors=priors)

    def chosen(
        self,
        space: LandmarkSpace,
        moments: ClassMoments,
        sample: LabelledValues,
    ) -> ChosenFamily:
        """Return the family with the shared covariance and its weight chosen. O(n·C·r²).

        The shared covariance is chosen by exact left-out scores only, because per-class products
        would multiply the error of approximate ones.
        """
        if self.shrinkage != "auto":
            return ChosenFamily(self)
        objects = sample.left_out_objects(space, moments)
        linear = choose_linear(moments, space.basis.lam, objects, exact=True)
        if linear is None:
            return ChosenFamily(replace(self, shrinkage="oas"))
        found = choose_quadratic(moments, linear.covariance, objects)
        return ChosenFamily(replace(self, shrinkage=found.covariance), found.loss)

    def left_out_scores(
        self, space: LandmarkSpace, moments: ClassMoments, sample: LabelledValues
    ) -> tuple[Array, LeftOutObjects]:
        """Return the left-out scores of the objects. O(n·C·r²)."""
        objects = sample.left_out_objects(space, moments)
        assert not isinstance(self.shrinkage, tuple)
        found = _as_chosen(self.shrinkage, moments)
        path = WithinPath.of(moments, found.metric)
        share = path.at(found.amount).share
        A = path.root(found.amount)
        (scores,) = left_out_quadratic(objects, moments, A, share, [found.pseudo_objects])
        scores = found.scale * scores + objects.log_priors() + found.offsets
        return scores + self.prior_ratio(moments), objects


def _without_each(
    objects: LeftOutObjects, moments: ClassMoments, shrinkage: Shrinkage | Literal["auto"]
) -> Array:
    """Return the joint left-out scores (n, C) of the linear discriminant."""
    found = _as_chosen(shrinkage, moments)
    path = WithinPath.of(moments, found.metric)
    (scores,) = left_out_linear(objects, moments, path, iter([found.amount]))
    scored: Array = found.scale * scores + objects.log_priors() + found.offsets
    return scored


def _as_chosen(shrinkage: Shrinkage | Literal["auto"], moments: ClassMoments) -> ChosenCovariance:
    """Return a given amount, or OAS, as a covariance shrunk towards the identity."""
    if isinstance(shrinkage, ChosenCovariance):
        return shrinkage
    amount = oas_amount(moments) if isinstance(shrinkage, str) else float(shrinkage)
    offsets = np.zeros(len(moments.weights))
    return ChosenCovariance("identity", np.ones(len(moments.origin)), amount, 1.0, offsets)
