"""Gaussian classes from class moments: the indefinite kernel Fisher and quadratic discriminants.

iKFD (paper, sections 2.3 and 5.2). The Fisher discriminant in pseudo-Euclidean space equals that in
the associated Euclidean space (Haasdonk & Pękalska 2008): in the quotient, Σ_b J and Σ_w J replace
Σ_b and Σ_w, and with w' = Jw the signs cancel. So it is linear discriminant analysis on the
coordinates B, and needs only n_c, Σb and Σbbᵀ.

Classes are Gaussian with one covariance Σ: with A Aᵀ = Σ⁻¹ and whitened means ν_c = (μ_c − μ̄)A,
    log p(c | b) = ν_c·(b − μ̄)A − ½‖ν_c‖² + log π_c + const.
Take two classes with equal priors, no shrinkage, and a scatter of full rank in the coordinates
(r ≤ n − 2). The difference of the two scores is then n − 2 times the paper's αᵀk(x) + b with
α = N⁺(m₊ − m₋) and b = −αᵀ(m₊ + m₋)/2, with the within-class *scatter* N and the means m of
the vectors k(x). If the scatter is singular, as in the dense case, the pseudo-inverse depends on
the coordinates. We use B and the paper uses k(x), so the two differ.

iKQD (paper, section 2.3) has one covariance per class, shrunk towards the shared one. In
coordinates where the shared covariance is I, the target is I, and the amount has a closed form in
the traces, with the observed ‖S − I‖² in place of its expectation, clipped to [0, 1]
(`covariance.shrinkage_to_identity`). A class of one or two objects gets the shared covariance.
Eigenvalues are floored at 10⁻³ of their mean. If the covariance has been chosen by the left-out
loss, the shared one counts as κ objects in each class: Σ_c = (S_c + κ Σ)/(n_c − 1 + κ).

A `GaussianFamily` of either kind chooses the covariance, fits the discriminant, and computes
left-out scores in closed form, all from the moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from scipy.linalg import pinvh

from .calibration import Priors, Scorer, log_proba_joint, log_proba_one_against_rest
from .covariance import (
    ChosenCovariance,
    LeftOutObjects,
    Shrinkage,
    WithinPath,
    choose_linear,
    choose_quadratic,
    left_out_linear,
    left_out_quadratic,
    oas_amount,
    shrinkage_to_identity,
    within_root,
)
from .moments import ClassMoments
from .shapes import LOG, SHARE, Array, Codes, Indices
from .space import POWERS, RANK_TOLERANCE, LandmarkSpace, gram_root

FamilyShrinkage = Shrinkage | tuple[Shrinkage, ...]
"""One shrinkage for all classes, or one per class against the rest."""


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
    centre = moments.centre
    if isinstance(shrinkage, ChosenCovariance):
        path = WithinPath.of(moments, shrinkage.metric)
        means = path.coordinates(moments.means - centre)
        dual = shrinkage.scale * path.at(shrinkage.amount).apply(means)  # (C, s)
        offsets = log_priors(moments.weights, priors) + shrinkage.offsets
        intercept = offsets - 0.5 * (means * dual).sum(axis=1)
        return LinearDiscriminant(
            centre, path.back(dual).T, intercept, np.array([shrinkage.amount])
        )
    A, rho = within_root(moments, shrinkage)
    whitened = (moments.means - centre) @ A  # (C, s)
    intercept = -0.5 * (whitened**2).sum(axis=1) + log_priors(moments.weights, priors)
    return LinearDiscriminant(centre, A @ whitened.T, intercept, np.array([rho]))


def fit_fisher_one_against_rest(
    moments: ClassMoments, *, shrinkage: FamilyShrinkage = "oas", priors: Array | None = None
) -> LinearDiscriminant:
    """Return one discriminant for each class against the rest, from the same moments. O(C·r³).

    Scores are log-odds of the class against the rest. `shrinkage` may have one entry per class.
    """
    centre = moments.centre
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


def fit_fisher_as_published(
    moments: ClassMoments, signs: Array, ridge: float | None = None
) -> LinearDiscriminant:
    """Return the published discriminant, each class against the rest. O(C·r³).

    The paper works on the columns k̃_i of K̃ = B J Bᵀ. With B = Q R, QᵀQ = I, they are k̃_i = Q y_i
    with y_i = R J b_i, so that all it needs follows from the moments of b:

        N = Σ_i y_i y_iᵀ − n₊ μ₊ μ₊ᵀ − n₋ μ₋ μ₋ᵀ,   α = N⁺(μ₊ − μ₋),   bias −αᵀ(μ₊ + μ₋)/2.

    The paper names no tolerance for its pseudo-inverse; here, eigenvalues up to `RANK_TOLERANCE` of
    the largest count as zero. With a `ridge` ρ, α = (N + ρI)⁻¹(μ₊ − μ₋) as in public
    implementations. Since Q is orthonormal, both equal the result on whole columns. Scores have the
    scale of the paper's: for two classes and a scatter of full rank, they are the log-odds divided
    by n − 2.
    """
    R, _ = gram_root(moments.gram())
    P = signs[:, None] * R.T  # y = b P
    C, r = len(moments.weights), len(signs)
    coef, intercept = np.zeros((r, C)), np.full(C, -np.inf)
    for c in np.flatnonzero(moments.weights > 0).tolist():
        two = moments.one_against_rest(c)
        N = P.T @ two.within() @ P
        rest, own = two.means @ P
        N = (N + N.T) / 2
        if ridge is None:
            alpha = pinvh(N, rtol=RANK_TOLERANCE) @ (own - rest)
        else:
            alpha = np.linalg.solve(N + ridge * np.eye(len(N)), own - rest)
        coef[:, c] = P @ alpha
        intercept[c] = -0.5 * float(alpha @ (own + rest))
    return LinearDiscriminant(np.zeros(r), coef, intercept, np.zeros(1))


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
    chosen, scale = None, 1.0
    if isinstance(shrinkage, ChosenCovariance):
        # the scale applies to the class covariances, not to the shared one
        chosen, scale, shrinkage = shrinkage, shrinkage.scale, replace(shrinkage, scale=1.0)
    A, _ = within_root(moments, shrinkage)
    C, s = len(moments.weights), A.shape[1]
    roots, intercept, rho = np.zeros((C, s, s)), log_priors(moments.weights, priors), np.ones(C)
    for c in np.flatnonzero(moments.weights > 0).tolist():
        n = moments.weights[c] - 1
        S = A.T @ moments.within_class(c) @ A / max(n, 1.0)
        rho[c] = shrinkage_to_identity(S, n) if chosen is None else chosen.share(n)
        lam, V = np.linalg.eigh((1 - rho[c]) * (S + S.T) / 2 + rho[c] * np.eye(s))
        # a class that fills fewer dimensions than the rest is flat, not infinitely dense
        if lam.size and chosen is None:  # a zero matrix leaves no dimensions
            lam = np.maximum(lam, max(1e-3 * float(lam.mean()), 1e-8))
        roots[c] = V * np.sqrt(scale / lam)
        intercept[c] -= 0.5 * scale * np.log(lam).sum()
    if chosen is not None:
        intercept = intercept + chosen.offsets
    means = (moments.means - moments.centre) @ A
    return QuadraticDiscriminant(moments.centre, A, means, roots, intercept, rho)


def landmark_places(space: LandmarkSpace, values: Array) -> Indices:
    """Return the landmark (n,) that each object with these values is; −1 if it is none.

    Every object with a landmark's values counts as that landmark, copies included. O(n·m), and O(m)
    for each object and landmark that may be equal.
    """
    own = np.diag(space.landmark_values)
    rounding = 1e-12 * np.abs(space.landmark_values).max(initial=0.0)
    at_home = np.abs(values - own) <= rounding
    found = np.full(len(values), -1, dtype=np.intp)
    for place in np.flatnonzero(at_home.any(axis=0)).tolist():
        rows = np.flatnonzero(at_home[:, place] & (found < 0))
        same = np.abs(values[rows] - space.landmark_values[place]).max(axis=1) <= rounding
        found[rows[same]] = place
    return found


def left_out_objects(
    space: LandmarkSpace,
    moments: ClassMoments,
    values: Array,
    codes: Codes,
    weights: Array | None,
    places: Indices,
) -> LeftOutObjects:
    """Return which of the objects with these values can be left out; `places` (n,) tells which
    landmark each one is. O(n·m·r).
    """
    B = space.coordinates(values)
    return LeftOutObjects.of(moments, B, codes, weights, space.T, places)


def places_at(rows: Indices, n: int) -> Indices:
    """Return the landmark (n,) that each of n objects is, if those at `rows` are the landmarks."""
    found = np.full(n, -1, dtype=np.intp)
    found[rows] = np.arange(len(rows))
    return found


@dataclass(frozen=True)
class GaussianFamily:
    """IKFD and IKQD: Gaussian classes with one covariance, or with one each (`by_class`).

    `shrinkage` is "auto" until `chosen` replaces it by the best covariance for the data, or by one
    per class with `one_against_rest`, which IKQD does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.gaussian import GaussianFamily
    >>> from krein.core.space import LandmarkSpace
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> D = np.abs(X - X.T)
    >>> space, codes = LandmarkSpace.of(D, "dissimilarity"), np.array([0, 0, 1, 1])
    >>> GaussianFamily(2).learn(space, codes, D, codes, None)(D).argmax(axis=1)
    array([0, 0, 1, 1])
    """

    n_classes: int
    shrinkage: FamilyShrinkage = "auto"
    priors: Priors = field(default_factory=Priors)
    one_against_rest: bool = False
    rank: int | None = None
    by_class: bool = False

    def discriminant(self, moments: ClassMoments) -> LinearDiscriminant | QuadraticDiscriminant:
        """Return the model of these moments. O(r³), or O(C·r³) by class and against the rest."""
        priors = self.priors.of(moments.weights)
        if self.by_class:
            return fit_quadratic(moments, shrinkage=self.shrinkage_of(), priors=priors)
        if self._each_alone:
            return fit_fisher_one_against_rest(moments, shrinkage=self.shrinkage, priors=priors)
        return fit_fisher(moments, shrinkage=self.shrinkage_of(), priors=priors)

    @property
    def _each_alone(self) -> bool:
        return self.one_against_rest and self.n_classes > 2

    def chosen(self, space: LandmarkSpace, objects: LeftOutObjects) -> tuple[GaussianFamily, float]:
        """Return the family with the shrinkage that has the least left-out loss on the objects.

        Also returns that loss, which is NaN if nothing was chosen.
        O(n·r² + r³) per target for IKFD; for IKQD, O(n·C·r² + C·r³) more.
        """
        if self.shrinkage != "auto":
            return self, np.nan
        if self._each_alone:
            return self._chosen_for_each(space, objects)
        # with a covariance per class, the shared one is chosen by exact left-out scores only,
        # because per-class products would multiply the error of approximate ones
        found = choose_linear(objects, space.lam, exact=self.by_class)
        if found is None:
            return replace(self, shrinkage="oas"), np.nan
        if self.by_class:
            found = choose_quadratic(objects, found[0])
        return replace(self, shrinkage=found[0]), found[1]

    def _chosen_for_each(
        self, space: LandmarkSpace, objects: LeftOutObjects
    ) -> tuple[GaussianFamily, float]:
        """Return the family with the best shrinkage for each class against the rest."""
        each: list[Shrinkage] = ["oas"] * self.n_classes
        losses = np.full(self.n_classes, np.nan)
        for c in np.flatnonzero(objects.totals > 0).tolist():
            alone = choose_linear(objects.against_rest(c), space.lam)
            if alone is not None:
                each[c], losses[c] = alone
        return replace(self, shrinkage=tuple(each)), float(losses.sum())

    def left_out_scores(self, objects: LeftOutObjects) -> Array:
        """Return the left-out scores (n, C) of the objects, in closed form.

        O(n·r² + r³), or O(n·C·r²) by class.
        """
        if not self._each_alone:
            scores = _left_out_joint(objects, self.shrinkage_of(), self.by_class)
            return scores + self.prior_ratio(objects.totals)
        priors = self.priors.of(objects.totals)
        scores = np.full((len(objects), self.n_classes), -np.inf)
        for c in np.flatnonzero(objects.totals > 0).tolist():
            two = objects.against_rest(c)
            found = _left_out_joint(two, self.shrinkage_of(c))
            ratio = np.log(priors[c] / (1 - priors[c])) - np.log(two.totals[1] / two.totals[0])
            scores[:, c] = found[:, 1] - found[:, 0] + ratio
        return scores

    def moments(
        self,
        space: LandmarkSpace,
        origin: Array,
        values: Array,
        codes: Codes,
        weights: Array | None = None,
    ) -> ClassMoments:
        """Return the moments of objects with these values (n, m) to the landmarks. O(n·m²)."""
        B, C, by_class = space.coordinates(values), self.n_classes, self.by_class
        return ClassMoments.of(B, codes, C, origin=origin, sample_weight=weights, by_class=by_class)

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
        if self.shrinkage != "auto":
            return self.scorer(space, moments)
        places = landmark_places(space, values)
        objects = left_out_objects(space, moments, values, codes, weights, places)
        return self.chosen(space, objects)[0].scorer(space, moments)

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
    ) -> tuple[Array, Indices, GaussianFamily]:
        """Return the left-out scores of the objects, under the best power.

        O(n·m²) per power and target.
        """
        places = places_at(landmarks, len(codes))
        choosing = space.kind == "dissimilarity" and self.shrinkage == "auto"
        spaces = [space.with_power(power) for power in POWERS] if choosing else [space]
        objects = []
        for one in spaces:
            moments = self.moments(one, one.origin(), values, codes)
            objects.append(left_out_objects(one, moments, values, codes, None, places))
        choices = [self.chosen(*one) for one in zip(spaces, objects, strict=True)]
        best = least_loss(choices)
        model, _ = choices[best]
        return model.left_out_scores(objects[best]), objects[best].rows, self

    def shrinkage_of(self, c: int = 0) -> Shrinkage:
        """Return the shrinkage of class `c` against the rest, or the one for all classes."""
        return self.shrinkage[c] if isinstance(self.shrinkage, tuple) else self.shrinkage

    def prior_ratio(self, weights: Array) -> Array:
        """Return the logarithm of the priors divided by the class frequencies (C,)."""
        with np.errstate(invalid="ignore"):
            ratio = log_priors(weights, self.priors.of(weights)) - log_priors(weights, None)
        return np.where(weights > 0, ratio, 0.0)


def least_loss(choices: Sequence[tuple[GaussianFamily, float]]) -> int:
    """Return the position of the choice with the least loss; the first if nothing was chosen."""
    return int(np.argmin([np.inf if np.isnan(loss) else loss for _, loss in choices]))


CHOICE_LANDMARKS = 500
"""Number of landmarks that is sufficient for choosing a power."""


def choose_power(family: GaussianFamily, space: LandmarkSpace, codes: Codes) -> float:
    """Return the power of the dissimilarities with the least left-out loss on the landmarks.

    The m landmarks serve as objects. About `CHOICE_LANDMARKS` of them, evenly spaced in the order
    of their mean dissimilarities within each class, serve as landmarks. O(500² m) per power.
    """
    D = space.landmark_values
    ascending = np.sort(D, axis=1).sum(axis=1)  # independent of the landmarks' order
    order = np.lexsort([ascending, codes])
    places = np.sort(order[:: max(1, len(D) // CHOICE_LANDMARKS)])
    values = np.ascontiguousarray(D[:, places])
    own = places_at(places, len(codes))
    restricted = space.restricted(places)
    choices = []
    for power in POWERS:
        part = restricted.with_power(power)
        moments = family.moments(part, part.origin(), values, codes)
        objects = left_out_objects(part, moments, values, codes, None, own)
        choices.append(family.chosen(part, objects))
    return POWERS[least_loss(choices)]


def _left_out_joint(objects: LeftOutObjects, shrinkage: Shrinkage, by_class: bool = False) -> Array:
    """Return the joint left-out scores (n, C) of the discriminant."""
    found = _as_chosen(shrinkage, objects.moments)
    path = WithinPath.of(objects.moments, found.metric)
    if by_class:
        A, share = path.root(found.amount), path.share(found.amount)
        (scores,) = left_out_quadratic(objects, A, share, [found.pseudo_objects])
    else:
        (scores,) = left_out_linear(objects, path, [found.amount])
    scored: Array = found.scale * scores + objects.log_priors() + found.offsets
    return scored


def _as_chosen(shrinkage: Shrinkage, moments: ClassMoments) -> ChosenCovariance:
    """Return a given amount, or OAS, as a covariance shrunk towards the identity."""
    if isinstance(shrinkage, ChosenCovariance):
        return shrinkage
    amount = oas_amount(moments) if isinstance(shrinkage, str) else float(shrinkage)
    offsets = np.zeros(len(moments.weights))
    return ChosenCovariance("identity", np.ones(len(moments.origin)), amount, 1.0, offsets)
