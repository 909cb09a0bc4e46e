"""Several models on the same values, and what each says of objects that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..core.checks import Array, Indices
from ..core.family import Codes, Family, Priors
from ..core.gaussian import FisherFamily, QuadraticFamily, Sample
from ..core.heads import Head, LinearHead, PCVMHead, QuadraticHead, calibrated, log_proba_of
from ..core.moments import ClassMoments
from ..core.pcvm.family import PCVMFamily, both_scores
from ..core.pcvm.left_out import left_out_scores
from ..core.pcvm.model import fit_landmarks
from ..core.pcvm.rows import Features
from ..data.dataset import uniform_keys
from .calibration import stratified_folds
from .selection import LandmarkChoice

HELD_OUT_OBJECTS = 2_500
"""About so many objects teach how far each head, and the second look, can be trusted."""

_SEED = 0


@dataclass(frozen=True)
class HeldOut:
    """Training objects that take their turn as new ones."""

    indices: Indices  # among all objects, ascending
    values: Array  # (n, m)
    codes: Codes  # (n,)
    weights: Array | None  # with those of the classes
    counts: Array | None  # how many objects each one stands for
    own_place: Indices  # (n,): the object's place among the landmarks, −1 where it is none

    @property
    def are_landmarks(self) -> bool:
        """Whether landmarks are among them, so that models have to be fitted without them."""
        return bool((self.own_place >= 0).any())


@dataclass(frozen=True)
class FittedHeads:
    """Heads at their temperatures, and the log-probabilities (n, C) of each held out."""

    heads: list[Head]
    held_out: list[Array]


def draw_held_out(
    landmarks: Indices, kept: Features, n_classes: int, class_weights: Array | None
) -> HeldOut:
    """Return the objects to learn from: no landmarks, unless most objects are landmarks.

    The value of a landmark to itself is one that no new object has. Objects of weight 0 have no
    say.
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
    weights = None if weight is None else weight[indices]
    counts = weights
    if weights is not None and class_weights is not None:
        counts = weights / class_weights[raw.y[indices]]
    return HeldOut(indices, raw.features(indices), raw.y[indices], weights, counts, place[indices])


def fit_heads(
    choice: LandmarkChoice,
    kept: Features,
    moments: ClassMoments,
    sample: HeldOut,
    priors: Priors,
) -> FittedHeads:
    """Fit IKFD, IKQD and PCVM to the same values, and score the held-out objects without them.

    No pair is compared. Held-out scores are leave-one-out, exact for IKFD and IKQD, approximate for
    PCVM. Where landmarks are held out, which takes about as many landmarks as objects, so few of
    both, PCVM is fitted anew without a fold.
    """
    C, landmarks = len(moments.weights), choice.landmarks
    gaussian = fit_gaussian_heads(
        (FisherFamily(C, priors=priors), QuadraticFamily(C, priors=priors)), choice, moments, sample
    )
    pcvm = PCVMFamily(C)
    model, features = fit_landmarks(
        landmarks.space, landmarks.indices, kept, choice.landmark_classes, pcvm, keep=True
    )
    if sample.are_landmarks:
        settled = PCVMFamily(C, function=model.function, scales=model.scales)
        scores, fair = _fitted_anew(settled, choice, sample, moments.weights)
    else:
        problems = pcvm.problems(choice.landmark_classes)
        scores = both_scores(left_out_scores(features, problems, model.fits, sample.indices))
        fair = _with_others(sample, moments.weights)
    return _with_temperature(gaussian, PCVMHead.of(model), scores, sample, fair)


def fit_gaussian_heads(
    families: tuple[FisherFamily, QuadraticFamily],
    choice: LandmarkChoice,
    moments: ClassMoments,
    sample: HeldOut,
) -> FittedHeads:
    """Fit IKFD and IKQD by the least left-out loss, and score each held-out object without it.

    O(n·C·m² + C·m³): what IKQD shrinks towards is what IKFD has chosen.
    """
    space = choice.landmarks.space
    some = Sample(sample.values, sample.codes, sample.counts, sample.own_place)
    fisher, quadratic = families
    fisher = replace(fisher, shrinkage=fisher.chosen(space, moments, some).family.shrinkage)
    chosen = quadratic.chosen(space, moments, some, shared=fisher.shrinkage)
    quadratic = replace(quadratic, shrinkage=chosen.family.shrinkage)
    heads: tuple[Head, ...] = (
        LinearHead.of(space, fisher.discriminant(moments)),
        QuadraticHead.of(space, quadratic.discriminant(moments)),
    )
    fitted = FittedHeads([], [])
    for family, head in zip((fisher, quadratic), heads, strict=True):
        found, objects = family.left_out_scores(space, moments, some)
        fair = np.zeros(len(sample.codes), dtype=bool)
        fair[objects.rows] = True
        scores = np.empty((len(fair), family.n_classes))
        scores[fair], scores[~fair] = found, head.scores(sample.values[~fair])
        fitted = _with_temperature(fitted, head, scores, sample, fair)
    return fitted


def _with_temperature(
    fitted: FittedHeads, head: Head, scores: Array, sample: HeldOut, fair: NDArray[np.bool_]
) -> FittedHeads:
    """Add a head at the temperature that suits its held-out scores, where they are `fair`."""
    weights = None if sample.weights is None else sample.weights[fair]
    if fair.any():
        head = calibrated(head, scores[fair], sample.codes[fair], weights)
    return FittedHeads([*fitted.heads, head], [*fitted.held_out, log_proba_of(head, scores)])


def _with_others(sample: HeldOut, totals: Array) -> NDArray[np.bool_]:
    """Return whether each held-out object leaves others of its class behind."""
    own = np.ones(len(sample.codes)) if sample.counts is None else sample.counts
    total: Array = totals[sample.codes]
    return total - own > 1e-9 * total


def _fitted_anew(
    family: Family, choice: LandmarkChoice, sample: HeldOut, totals: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the scores of each fold by a model without it, neither as objects nor as landmarks,
    and who was in a fold: not the only one of a class.
    """
    folds = stratified_folds(sample.values, sample.codes, sample.counts, totals)
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
    return scores, folds >= 0
