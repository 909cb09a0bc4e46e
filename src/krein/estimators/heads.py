"""Several models on the same values, and the predictions of each for held-out objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.checks import Array, Indices
from ..core.family import Codes, Family, Priors
from ..core.gaussian import FisherFamily, GaussianFamily, QuadraticFamily
from ..core.heads import Head, LinearHead, PCVMHead, QuadraticHead, calibrated, log_proba_of
from ..core.moments import ClassMoments
from ..core.pcvm.fit import PCVMFamily, both_scores, fit_landmarks
from ..core.pcvm.left_out import left_out_scores
from ..core.pcvm.rows import Features
from ..data.dataset import uniform_keys
from .calibration import stratified_folds
from .selection import LandmarkChoice

HELD_OUT_OBJECTS = 2_500
"""The weights of the heads and of the second look are learned from about this many objects."""

_SEED = 0


@dataclass(frozen=True)
class HeldOut:
    """Training objects that are held out, i.e. treated as new ones."""

    indices: Indices  # among all objects, ascending
    values: Array  # (n, m)
    codes: Codes  # (n,)
    weights: Array | None
    own_place: Indices  # (n,): the object's position among the landmarks, −1 if it is not one

    @property
    def are_landmarks(self) -> bool:
        """Whether they include landmarks; models must then be refitted without these."""
        return bool((self.own_place >= 0).any())


@dataclass(frozen=True)
class FittedHeads:
    """Heads with their temperatures, and the held-out log-probabilities (n, C) of each."""

    heads: list[Head]
    held_out: list[Array]


def draw_held_out(landmarks: Indices, kept: Features, n_classes: int) -> HeldOut:
    """Return the held-out objects: no landmarks, unless most objects are landmarks.

    A landmark is compared with itself, which no new object is. Objects of weight 0 are excluded.
    """
    raw = kept.rows(np.arange(n_classes), n_classes)
    N, weight = raw.shape[0], raw.weight
    fair = np.ones(N, dtype=bool) if weight is None else weight > 0
    if 2 * len(landmarks) <= N:
        fair[landmarks] = False
        n = int(fair.sum())
        if n > HELD_OUT_OBJECTS:
            fair &= uniform_keys(_SEED, np.arange(N)) < HELD_OUT_OBJECTS / n
    indices = np.flatnonzero(fair)
    place = np.full(N, -1, dtype=np.intp)
    place[landmarks] = np.arange(len(landmarks))
    return HeldOut(
        indices,
        raw.features(indices),
        raw.y[indices],
        None if weight is None else weight[indices],
        place[indices],
    )


def fit_heads(
    choice: LandmarkChoice,
    kept: Features,
    moments: ClassMoments,
    sample: HeldOut,
    priors: Priors,
) -> FittedHeads:
    """Fit IKFD, IKQD and PCVM to the same values, and return their scores of held-out objects.

    No pair is compared. Held-out scores of PCVM are approximate leave-one-out scores. If landmarks
    are held out, models are refitted without each fold instead. This happens only if most objects
    are landmarks.
    """
    C, landmarks = len(moments.weights), choice.landmarks
    gaussian = fit_gaussian_heads(
        (
            FisherFamily(C, shrinkage="oas", priors=priors),
            QuadraticFamily(C, shrinkage="oas", priors=priors),
        ),
        choice,
        moments,
        sample,
    )
    pcvm = PCVMFamily(C)
    model, features = fit_landmarks(
        landmarks.space, landmarks.indices, kept, choice.landmark_classes, pcvm, keep=True
    )
    folds = held_out_folds(sample, moments.weights)
    if sample.are_landmarks:
        settled = PCVMFamily(C, function=model.function, scales=model.scales)
        scores = _fitted_anew(settled, choice, sample, folds)
    else:
        problems = pcvm.problems(choice.landmark_classes)
        scores = both_scores(left_out_scores(features, problems, model.fits, sample.indices))
    return _with_temperatures(gaussian, PCVMHead.of(model), scores, sample, folds)


def fit_gaussian_heads(
    families: tuple[FisherFamily, QuadraticFamily],
    choice: LandmarkChoice,
    moments: ClassMoments,
    sample: HeldOut,
) -> FittedHeads:
    """Fit IKFD and IKQD, and score each held-out fold with the moments of the other objects."""
    space, folds = choice.landmarks.space, held_out_folds(sample, moments.weights)
    fisher, quadratic = families
    heads: tuple[Head, ...] = (
        LinearHead.of(space, fisher.discriminant(moments)),
        QuadraticHead.of(space, quadratic.discriminant(moments)),
    )
    fitted = FittedHeads([], [])
    for family, head in zip(families, heads, strict=True):
        if sample.are_landmarks:
            scores = _fitted_anew(family, choice, sample, folds)
        else:
            scores = _without_folds(family, choice, moments, sample, folds)
        fitted = _with_temperatures(fitted, head, scores, sample, folds)
    return fitted


def held_out_folds(sample: HeldOut, totals: Array) -> Codes:
    """Return the fold of each held-out object; −1 for the only one of its class."""
    return stratified_folds(sample.values, sample.codes, sample.weights, totals)


def _with_temperatures(
    fitted: FittedHeads, head: Head, scores: Array, sample: HeldOut, folds: Codes
) -> FittedHeads:
    """Add a head with the temperature that best fits its held-out scores."""
    fair = folds >= 0
    weights = None if sample.weights is None else sample.weights[fair]
    if fair.any():
        head = calibrated(head, scores[fair], sample.codes[fair], weights)
    return FittedHeads([*fitted.heads, head], [*fitted.held_out, log_proba_of(head, scores)])


def _without_folds(
    family: GaussianFamily,
    choice: LandmarkChoice,
    moments: ClassMoments,
    sample: HeldOut,
    folds: Codes,
) -> Array:
    """Return the scores of each fold from the model fitted without that fold."""
    space = choice.landmarks.space
    scores = np.zeros((len(sample.codes), family.n_classes))
    for fold in range(-1, folds.max() + 1):
        held = folds == fold
        left = moments
        if fold >= 0:
            weights = None if sample.weights is None else sample.weights[held]
            values, codes = sample.values[held], sample.codes[held]
            left = moments - family.moments(space, moments.origin, values, codes, weights)
        if held.any():
            scores[held] = family.scorer(space, left)(sample.values[held])
    return scores


def _fitted_anew(family: Family, choice: LandmarkChoice, sample: HeldOut, folds: Codes) -> Array:
    """Return the scores of each fold from a model without its objects and its landmarks."""
    space, classes = choice.landmarks.space, choice.landmark_classes
    scores: NDArray[np.float64] | None = None
    for fold in range(-1, folds.max() + 1):
        held = folds == fold
        if not held.any():
            continue
        used = np.setdiff1d(np.arange(len(classes)), sample.own_place[held] if fold >= 0 else [])
        rest = ~held if fold >= 0 else np.ones_like(held)
        weights = None if sample.weights is None else sample.weights[rest]
        scorer = family.learn(
            space.restricted(used),
            classes[used],
            sample.values[np.ix_(rest, used)],
            sample.codes[rest],
            weights,
        )
        found = scorer(sample.values[np.ix_(held, used)])
        if scores is None:
            scores = np.zeros((len(folds), found.shape[1]))
        scores[held] = found
    assert scores is not None
    return scores
