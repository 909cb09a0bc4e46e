"""Indefinite kernel Fisher discriminant from class moments (paper, sections 2.3 and 5.2).

The Fisher discriminant in pseudo-Euclidean space equals that in the associated Euclidean space
(Haasdonk & Pękalska 2008): in the quotient, Σ_b J and Σ_w J replace Σ_b and Σ_w, and with w' = Jw
the signs cancel. So it is linear discriminant analysis on the coordinates B, and needs only n_c,
Σb and Σbbᵀ.

Classes are Gaussian with one covariance Σ: with A Aᵀ = Σ⁻¹ and whitened means ν_c = (μ_c − μ̄)A,
    log p(c | b) = ν_c·(b − μ̄)A − ½‖ν_c‖² + log π_c + const.
Take two classes with equal priors, no shrinkage, and a scatter of full rank in the coordinates
(r ≤ n − 2). The difference of the two scores is then n − 2 times the paper's αᵀk(x) + b with
α = N⁺(m₊ − m₋) and b = −αᵀ(m₊ + m₋)/2, with the within-class *scatter* N and the means m of
the vectors k(x). If the scatter is singular, as in the dense case, the pseudo-inverse depends on
the coordinates. We use B and the paper uses k(x), so the two differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
from scipy.linalg import null_space, qr, svd

from .checks import LOG, SHARE, Array, Indices
from .covariance import (
    ChosenCovariance,
    LeftOutObjects,
    Shrinkage,
    WithinPath,
    choose_linear,
    choose_quadratic,
    inverse_root,
    left_out_linear,
    left_out_quadratic,
    left_out_whitened,
    oas_amount,
    shrinkage_to_identity,
)
from .family import Codes, LeftOut, Priors, Scorer, log_proba_joint, log_proba_one_against_rest
from .moments import ClassMoments
from .space import POWERS, LandmarkSpace


@dataclass(frozen=True)
class LinearDiscriminant:
    """Scores (b − centre) coef + intercept, one per class (joint, or each against the rest)."""

    centre: Array  # (r,)
    coef: Array  # (r, C)
    intercept: Array  # (C,)
    shrinkage: Array  # (1,) joint, (C,) one against rest

    def scores(self, B: Array) -> Array:
        """Return (n, C) scores from coordinates B (n, r). O(n·r·C)."""
        return (B - self.centre) @ self.coef + self.intercept


def log_priors(weights: Array, priors: Array | None) -> Array:
    """Return log π (C,), from the class weights if no priors are given; −∞ for an absent class."""
    p = np.where(weights > 0, weights if priors is None else priors, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(p / p.sum())


def within_root(moments: ClassMoments, shrinkage: Shrinkage) -> tuple[Array, float]:
    """Return A with A Aᵀ = Σ⁻¹, Σ the shrunk shared covariance, and the shrinkage used. O(r³).

    If no class has any scatter, Σ is the mean total variance times I: an object is then assigned to
    the nearest class mean.
    """
    if isinstance(shrinkage, ChosenCovariance):
        A = WithinPath.of(moments, shrinkage.metric).root(shrinkage.amount)
        return A * np.sqrt(shrinkage.scale), shrinkage.amount
    n = moments.total
    mean = moments.sums.sum(axis=0) / n
    variance = max(float(np.trace(moments.pooled) / n - mean @ mean) / max(len(mean), 1), 0.0)
    freedom = n - (moments.weights > 0).sum()
    return inverse_root(moments.within(), freedom, shrinkage, variance)


def fit_fisher(
    moments: ClassMoments, *, shrinkage: Shrinkage = "oas", priors: Array | None = None
) -> LinearDiscriminant:
    """Return the joint discriminant of all classes. O(r³ + C·r²).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.gaussian import fit_fisher
    >>> from krein.core.moments import ClassMoments
    >>> B = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = fit_fisher(ClassMoments.of(B, np.array([0, 0, 1, 1]), 2))
    >>> model.scores(np.array([[0.4], [4.4]])).argmax(axis=1)
    array([0, 1])
    """
    centre = moments.origin + moments.sums.sum(axis=0) / moments.total
    if isinstance(shrinkage, ChosenCovariance):
        path = WithinPath.of(moments, shrinkage.metric)
        means = path.coordinates(moments.means - centre)
        dual = shrinkage.scale * path.at(shrinkage.amount).apply(means)  # (C, s)
        offsets = log_priors(moments.weights, priors) + shrinkage.offsets
        return LinearDiscriminant(
            centre,
            path.back(dual).T,
            offsets - 0.5 * (means * dual).sum(axis=1),
            np.array([shrinkage.amount]),
        )
    A, rho = within_root(moments, shrinkage)
    whitened = (moments.means - centre) @ A  # (C, s)
    intercept = -0.5 * (whitened**2).sum(axis=1) + log_priors(moments.weights, priors)
    return LinearDiscriminant(centre, A @ whitened.T, intercept, np.array([rho]))


def fit_fisher_one_against_rest(
    moments: ClassMoments,
    *,
    shrinkage: Shrinkage | tuple[Shrinkage, ...] = "oas",
    priors: Array | None = None,
) -> LinearDiscriminant:
    """Return one discriminant for each class against the rest, from the same moments. O(C·r³).

    Scores are log-odds of the class against the rest. `shrinkage` may have one entry per class.
    """
    centre = moments.origin + moments.sums.sum(axis=0) / moments.total
    C = len(moments.weights)
    coef, intercept, rho = np.zeros((len(centre), C)), np.full(C, -np.inf), np.ones(C)
    for c in np.flatnonzero(moments.weights > 0).tolist():
        two = None if priors is None else np.array([1 - priors[c], priors[c]])
        own = shrinkage[c] if isinstance(shrinkage, tuple) else shrinkage
        binary = fit_fisher(moments.one_against_rest(c), shrinkage=own, priors=two)
        shift = (centre - binary.centre) @ binary.coef + binary.intercept
        coef[:, c] = binary.coef[:, 1] - binary.coef[:, 0]
        intercept[c] = shift[1] - shift[0]
        rho[c] = binary.shrinkage[0]
    return LinearDiscriminant(centre, coef, intercept, rho)


# -------------------------------------------------------------------------------------------------
# Indefinite kernel quadratic discriminant: one covariance per class (paper, section 2.3).
#
# Each class covariance is shrunk towards the shared one. In coordinates where the shared
# covariance is I, the target is I, and the amount has a closed form in the traces, with the
# observed ‖S − I‖² in place of its expectation, clipped to [0, 1]
# (`covariance.shrinkage_to_identity`). A class of one or two objects gets the shared covariance.
# Eigenvalues are floored at 10⁻³ of their mean. If the covariance has been chosen by the left-out
# loss, the shared one counts as κ objects in each class: Σ_c = (S_c + κ Σ)/(n_c − 1 + κ).
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QuadraticDiscriminant:
    """Scores −½‖((b − centre) whiten − mean_c) root_c‖² + intercept_c."""

    centre: Annotated[Array, "r"]
    whiten: Annotated[Array, "r s"]
    means: Annotated[Array, "C s"]  # whitened
    roots: Annotated[Array, "C s s"]
    intercept: Annotated[Array, "C", LOG]
    shrinkage: Annotated[Array, "C", SHARE]  # towards the shared covariance

    def scores(self, B: Array) -> Array:
        """Return (n, C) scores from coordinates B (n, r). O(n·C·r²)."""
        return self.scores_of_whitened((B - self.centre) @ self.whiten)

    def scores_of_whitened(self, Z: Array) -> Array:
        """Return (n, C) scores from whitened coordinates Z (n, s). O(n·C·s²)."""
        distances = [
            np.square((Z - mean) @ root).sum(axis=1)
            for mean, root in zip(self.means, self.roots, strict=True)
        ]
        return self.intercept - 0.5 * np.stack(distances, axis=1)


def fit_quadratic(
    moments: ClassMoments, *, shrinkage: Shrinkage = "oas", priors: Array | None = None
) -> QuadraticDiscriminant:
    """Return the discriminant from per-class moments. O(C·r³).

    `shrinkage` applies to the shared covariance, as for the Fisher discriminant.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.moments import ClassMoments
    >>> from krein.core.gaussian import fit_quadratic
    >>> rng = np.random.default_rng(0)
    >>> B = np.concatenate([rng.normal(size=(50, 1)), 5 * rng.normal(size=(50, 1))])
    >>> moments = ClassMoments.of(B, np.repeat([0, 1], 50), 2, by_class=True)
    >>> fit_quadratic(moments).scores(np.array([[0.0], [9.0]])).argmax(axis=1)
    array([0, 1])
    """
    chosen = shrinkage if isinstance(shrinkage, ChosenCovariance) else None
    if chosen is not None:  # the scale applies to the class covariances, not to the shared one
        shrinkage = replace(chosen, scale=1.0)
    scale = 1.0 if chosen is None else chosen.scale
    A, _ = within_root(moments, shrinkage)
    centre = moments.origin + moments.sums.sum(axis=0) / moments.total
    C, s = len(moments.weights), A.shape[1]
    roots, intercept, rho = np.zeros((C, s, s)), log_priors(moments.weights, priors), np.ones(C)
    for c in np.flatnonzero(moments.weights > 0).tolist():
        n = moments.weights[c] - 1
        S = A.T @ moments.within_class(c) @ A / max(n, 1.0)
        rho[c] = shrinkage_to_identity(S, n) if chosen is None else _share(chosen, n)
        lam, V = np.linalg.eigh((1 - rho[c]) * (S + S.T) / 2 + rho[c] * np.eye(s))
        # a class that fills fewer dimensions than the rest is flat, not infinitely dense
        if lam.size and chosen is None:  # a zero matrix leaves no dimensions
            lam = np.maximum(lam, max(1e-3 * float(lam.mean()), 1e-8))
        roots[c] = V * np.sqrt(scale / lam)
        intercept[c] -= 0.5 * scale * np.log(lam).sum()
    if chosen is not None:
        intercept = intercept + chosen.offsets
    return QuadraticDiscriminant(centre, A, (moments.means - centre) @ A, roots, intercept, rho)


def _share(chosen: ChosenCovariance, n: float) -> float:
    """Return κ/(n + κ) for a class of n degrees of freedom."""
    if np.isinf(chosen.pseudo_objects):
        return 1.0
    return chosen.pseudo_objects / (max(n, 0.0) + chosen.pseudo_objects)


# -------------------------------------------------------------------------------------------------
# Gaussian classes: models that need only the class moments of the data.
# -------------------------------------------------------------------------------------------------

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


# -------------------------------------------------------------------------------------------------
# Backward elimination, on the moments, of landmarks that a Fisher discriminant does not need.
#
# In similarity coordinates c = k(x, L) the classes have means M (C, m) and a shared covariance Σ.
# The information of a set of landmarks about the classes is Wilks' criterion log|I + Q| with Q =
# M̂ Σ⁻¹ M̂ᵀ, M̂_c = √π_c (μ_c − μ̄). Leaving out landmark j subtracts v vᵀ from Q, where v = β_j
# / √P_jj, P = Σ⁻¹ and β = P M̂ᵀ. This is a closed form for all j at once, and a rank-one update
# gives P and β of the remaining landmarks. If j were useless and Σ not shrunk, −n·log(1 −
# vᵀ(I+Q)⁻¹v) would be χ² with C − 1 degrees of freedom (Rao's test for additional information). A
# landmark is kept if this exceeds (C − 1)·log n, the Bayesian information criterion.
# -------------------------------------------------------------------------------------------------

_FRESH = 20  # landmarks dropped between two inversions from scratch


@dataclass(frozen=True)
class PrunedLandmarks:
    """The landmarks that stay; `discriminant_on` returns the model that uses them alone."""

    kept: Indices  # (s,): positions among the landmarks, ascending
    criterion: Array  # log|I + Q| before the first landmark was dropped, and after each


def prune_landmarks(
    space: LandmarkSpace,
    moments: ClassMoments,
    discriminant: LinearDiscriminant,
    shrinkage: Shrinkage,
    *,
    penalty: float | None = None,
) -> PrunedLandmarks:
    """Drop landmarks from a joint discriminant while the information criterion allows. O(m³).

    `discriminant` is `fit_fisher(moments, shrinkage=shrinkage)`. A landmark stays while it adds
    more than `penalty` to n·log|I + Q|, by default (C − 1)·log n. The scale of a chosen covariance
    calibrates scores and is not part of Σ here.
    """
    plain = replace(shrinkage, scale=1.0) if isinstance(shrinkage, ChosenCovariance) else shrinkage
    S, means = _in_similarities(space, moments, discriminant, plain)
    prior = moments.weights / moments.total
    if not S.any():  # all objects have the same similarities, so one landmark is enough
        return PrunedLandmarks(np.arange(1), np.zeros(1))
    contrasts = space.centre is not None
    M = np.sqrt(prior)[:, None] * means
    n, n_classes = moments.total, int((prior > 0).sum())
    limit = ((n_classes - 1) * np.log(n) if penalty is None else penalty) / n
    kept = _independent(S, contrasts)
    path: list[float] = []
    stale = _FRESH
    while len(kept) > (2 if contrasts else 1):
        if stale >= _FRESH:  # invert afresh before rounding errors accumulate
            P = _inverse(S[:, kept], contrasts)
            beta = P @ M[:, kept].T  # (m, C)
            Q = M[:, kept] @ beta
            path = path or [float(np.linalg.slogdet(np.eye(len(Q)) + Q)[1])]
            stale = 0
        variance = np.maximum(np.diag(P), np.finfo(float).tiny)
        v = beta / np.sqrt(variance)[:, None]
        loss = -np.log1p(-_quadratic(v, np.eye(len(Q)) + Q))
        j = int(np.argmin(loss))
        if not loss[j] < limit:
            break
        Q = Q - np.outer(v[j], v[j])
        rest = np.arange(len(kept)) != j
        beta = beta[rest] - np.outer(P[rest, j], beta[j]) / variance[j]
        P = P[np.ix_(rest, rest)] - np.outer(P[rest, j], P[j, rest]) / variance[j]
        kept = kept[rest]
        path.append(path[-1] - float(loss[j]))
        # a landmark that costs almost nothing to drop has large entries in P: others lose digits
        lost = np.finfo(float).eps * variance[j] > 1e-8 * float(np.median(variance))
        stale = _FRESH if lost else stale + 1
    return PrunedLandmarks(kept, np.array(path))


def discriminant_on(
    kept: Indices,
    space: LandmarkSpace,
    moments: ClassMoments,
    discriminant: LinearDiscriminant,
    shrinkage: Shrinkage,
) -> tuple[Array, Array]:
    """Return weights (s, C) of the similarities to these landmarks alone, and intercepts. O(m³).

    `discriminant` is `fit_fisher(moments, shrinkage=shrinkage)`, with all landmarks.
    """
    S, means = _in_similarities(space, moments, discriminant, shrinkage)
    if not S.any():
        return np.zeros((len(kept), len(means))), discriminant.intercept
    coef = _inverse(S[:, kept], space.centre is not None) @ means[:, kept].T
    with np.errstate(divide="ignore"):
        log_prior = discriminant.intercept + 0.5 * np.einsum(
            "cr,rc->c", moments.means - discriminant.centre, discriminant.coef
        )
    intercept = log_prior - 0.5 * np.einsum("cm,mc->c", means[:, kept], coef)
    centre = discriminant.centre @ space.basis.to_similarities()[:, kept]
    return coef, intercept - centre @ coef + _recentred(space, kept, coef)


def left_out_on(
    kept: Indices,
    space: LandmarkSpace,
    moments: ClassMoments,
    discriminant: LinearDiscriminant,
    shrinkage: Shrinkage,
    objects: LeftOutObjects,
    landmarks: Indices,
) -> Array:
    """Return the left-out −½d² (n, C), from the similarities to these landmarks alone.

    `landmarks` (k,) gives the landmark of each object in `objects.places`. O(n·r·s).
    """
    S, means = _in_similarities(space, moments, discriminant, shrinkage)
    if not S.any():
        return np.zeros((len(objects), len(means)))
    root = _inverse_root(S[:, kept], space.centre is not None)  # (s, q)
    used = np.isin(landmarks, kept)
    part = replace(
        objects,
        B=objects.B @ (space.basis.to_similarities()[:, kept] @ root),
        removed=root[np.searchsorted(kept, landmarks[used])],
        places=objects.places[used],
    )
    amount, scale = float(discriminant.shrinkage[0]), 1.0
    if isinstance(shrinkage, ChosenCovariance):
        scale = shrinkage.scale
    share = (1 - amount) / max(moments.total - float((moments.weights > 0).sum()), 1.0)
    return left_out_whitened(part, means[:, kept] @ root, share / scale)


def _in_similarities(
    space: LandmarkSpace,
    moments: ClassMoments,
    discriminant: LinearDiscriminant,
    shrinkage: Shrinkage,
) -> tuple[Array, Array]:
    """Return S (s, m) with SᵀS = Σ, and the class means (C, m) relative to the centre."""
    root = within_root(moments, shrinkage)[0]  # A Aᵀ = Σ⁻¹ in coordinates b
    T_plus = space.basis.to_similarities()  # (r, m): c = b T⁺
    return np.linalg.pinv(root) @ T_plus, (moments.means - discriminant.centre) @ T_plus


def _inverse(S: Array, contrasts: bool) -> Array:
    """Return (SᵀS)⁻¹ (m, m), or its restriction to vectors that sum to zero. O(m³).

    Similarities computed from dissimilarities add up to a constant over all landmarks, so only
    contrasts (Σβ = 0) can be computed from a subset.

    Uses singular values, so that the condition of S is not squared.
    """
    root = _inverse_root(S, contrasts)
    return root @ root.T


def _inverse_root(S: Array, contrasts: bool) -> Array:
    """Return a root (m, s) of the result of `_inverse`."""
    m = S.shape[1]
    V = null_space(np.ones((1, m))) if contrasts else np.eye(m)
    _, sigma, Ut = svd(S @ V, full_matrices=True)
    sigma = np.append(sigma, np.zeros(V.shape[1] - len(sigma)))
    found: Array = V @ (Ut.T / np.maximum(sigma, 1e-12 * sigma[0]))
    return found


def _independent(S: Array, contrasts: bool) -> Indices:
    """Return a subset of landmarks that spans all of them, without redundant ones. O(m³)."""
    scale = float(np.abs(S).max())
    full = np.vstack([S, np.full(S.shape[1], scale)]) if contrasts else S
    R, order = qr(full, mode="r", pivoting=True)
    size = np.abs(np.diag(R))
    return np.sort(order[: int((size > 1e-10 * size[0]).sum())])


def _quadratic(v: Array, Q: Array) -> Array:
    """Return vᵀ Q⁻¹ v for each row v, kept below 1 despite rounding."""
    return np.minimum(np.einsum("ic,ic->i", v, np.linalg.solve(Q, v.T).T), 1 - 1e-12)


def _recentred(space: LandmarkSpace, kept: Indices, coef: Array) -> Array:
    """Return the change in the intercept if similarities are centred on the kept landmarks."""
    if space.centre is None:
        return np.zeros(coef.shape[1])
    restricted = space.restricted(kept).centre
    assert restricted is not None
    return 0.5 * (space.centre.column_means[kept] - restricted.column_means) @ coef
