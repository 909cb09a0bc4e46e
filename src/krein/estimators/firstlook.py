"""The first look: heads fitted to the values of all objects to the landmarks, and held-out scores.

IKFD, IKQD and PCVM are fitted to the same values. The temperatures of the heads, and how strong
class sizes are in IKFD, are those that fit the scores of the held-out objects best.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from scipy.special import log_softmax

from ..compare.progress import progress
from ..core.calibration import Family, fit_temperature
from ..core.cascade import among_most_probable, fit_pool
from ..core.gaussian import GaussianFamily, left_out_objects
from ..core.moments import ClassMoments
from ..core.pcvm.left_out import left_out_scores
from ..core.pcvm.rows import BasisFunction
from ..core.pcvm.training import POWERS as PCVM_POWERS
from ..core.pcvm.training import PCVMFamily, both_scores, fit_landmarks
from ..core.shapes import Array, Codes
from ..core.space import POWERS, LandmarkSpace
from ..model.heads import Head, LinearHead, LinkName
from ..model.parts import FIRST_LOOK
from .choosing import LandmarkChoice
from .discriminants import head_of
from .heldout import (
    HeldOut,
    TakenLook,
    TrainingSet,
    calibrated,
    refitted_scores,
    totals_of,
    weights_with_copies,
)

CLASS_OBJECTS = 10
"""IKQD is left out of the pool if most objects are in smaller classes: a covariance of few objects
is uninformative."""

CLASS_WORK = 4e8
"""IKQD is left out if C·m³ exceeds this, the work of one covariance per class."""

PCVM_WORK = 5e8
"""PCVM is left out if N·m·C exceeds this, the work of one step of its search."""

CROWDED, REFIT_WORK = 8, 3e7
"""PCVM with more than `CROWDED` weights per object is refitted without each fold. If N·m·C exceeds
`REFIT_WORK`, which takes too long, it is left out if it has more than twice as many weights:
approximate leave-one-out scores would be too good. In 60 classes of ten vectors each, with twelve
weights per object, the loss would seem to be half of what it is; with six and fewer, it is about
right. (Of 450 words with 300 classes at random, all would seem to be recognised.)"""

POOLED_TOLERANCE = 3e-4
"""Tolerance per row of PCVM in the pool: a smaller one hardly changes the pool. (On parts of words,
Swiss-Prot, MNIST and digits, the losses of new objects agree to 0.0002 with those for 1e-4.)"""

BASIS_FUNCTIONS = dict(zip(POWERS, PCVM_POWERS, strict=True))
"""PCVM's basis function for each power of a dissimilarity."""


def worthwhile_heads(sizes: Array, n_landmarks: int) -> dict[str, str]:
    """Return the heads that are left out, each with the reason, for classes of these sizes."""
    C, N, m = len(sizes), float(sizes.sum()), n_landmarks
    found = {}
    if sizes[sizes >= CLASS_OBJECTS].sum() < N / 2:
        few = f"most objects are in classes of fewer than {CLASS_OBJECTS}"
        found["ikqd"] = f"{few}, which cannot have a covariance of their own"
    elif C * float(m) ** 3 > CLASS_WORK:
        found["ikqd"] = f"{C:,} covariances of {m} landmarks would cost more than they are worth"
    if N * m * C > (REFIT_WORK if m * C > 2 * CROWDED * N else PCVM_WORK):
        found["pcvm"] = (
            f"{m * C:,} weights for {N:,.0f} objects would cost more than they are worth"
        )
    return found


def take_first_look(
    training: TrainingSet, drawn: HeldOut, alone: HeldOut, left_out: Collection[str]
) -> TakenLook:
    """Fit the heads to values of the measure; `drawn` objects that have no scores take part."""
    with progress(None, "fitting models", training.run.verbose, unit=""):
        heads, terms = fit_heads(training, drawn, left_out)
    lonely = [
        without_own_class(head.to_log_proba(head.scores(alone.values)), alone.codes)
        for head in heads.values()
    ]
    return TakenLook(FIRST_LOOK, heads, terms, lonely, float(len(training.landmarks.indices)))


def fit_heads(
    training: TrainingSet, held_out: HeldOut, left_out: Collection[str]
) -> tuple[dict[str, Head], list[Array]]:
    """Fit IKFD, IKQD and PCVM to the same values; also return their held-out log-probabilities.

    Those are of the objects that can be `scored`; the others only take part in fits. No pair is
    compared. Held-out scores of the Gaussian heads come from the moments without each fold, those
    of PCVM are approximate leave-one-out scores, without the copies that have the same label. If
    landmarks or groups are held out, models are refitted without each fold instead.
    """
    C, space = training.n_classes, training.choice.space
    heads: dict[str, Head] = {}
    scores: dict[str, Array] = {}
    for name, by_class in (("ikfd", False), ("ikqd", True)):
        if name not in left_out:
            family = GaussianFamily(C, shrinkage="oas", priors=training.priors, by_class=by_class)
            heads[name] = head_of(space, family.discriminant(training.moments))
            scores[name] = gaussian_scores(family, training, held_out)
    if "pcvm" not in left_out:
        heads["pcvm"], scores["pcvm"] = pooled_pcvm(training, held_out)
    scored = held_out.scored
    held_out = held_out.at(scored)
    for name, head in heads.items():
        scores[name] = scores[name][scored]
        heads[name] = calibrated(head, scores[name], held_out)
    first = heads["ikfd"]
    assert isinstance(first, LinearHead)
    heads["ikfd"], scores["ikfd"] = with_class_sizes(
        first, scores["ikfd"], held_out, training.moments.weights
    )
    return heads, [head.to_log_proba(scores[name]) for name, head in heads.items()]


def gaussian_scores(family: GaussianFamily, training: TrainingSet, held_out: HeldOut) -> Array:
    """Return the held-out scores of IKFD or IKQD."""
    if held_out.refits:
        return held_out.refitted(family, training.choice)
    return downdated_scores(family, training.choice.space, training.moments, held_out)


def pooled_pcvm(training: TrainingSet, held_out: HeldOut) -> tuple[LinearHead, Array]:
    """Return the head of PCVM, and its held-out scores."""
    choice, landmarks, C = training.choice, training.landmarks, training.n_classes
    function: BasisFunction = BASIS_FUNCTIONS[best_power(choice, held_out, C)]
    if choice.space.kind == "similarity":
        function = "similarity"
    pcvm = PCVMFamily(C, function=function, tol=POOLED_TOLERANCE)
    model, features = fit_landmarks(
        choice.space, landmarks.indices, training.rows, landmarks.codes, pcvm, keep=True
    )
    link: LinkName = "probit" if C == 2 else "softmax"
    head = LinearHead(model.function, model.places, model.dual_coef, model.intercept, link)
    settled = replace(pcvm, function=model.function, scales=model.scales)
    if held_out.refits:
        return head, held_out.refitted(settled, choice)
    N, n_weights = float(training.moments.weights.sum()), len(landmarks.indices) * C
    if n_weights > CROWDED * N and N * n_weights <= REFIT_WORK:
        return head, refitted_pcvm(settled, training, held_out)
    problems = pcvm.problems(landmarks.codes)
    removed = weights_with_copies(training)[held_out.indices]
    Z = left_out_scores(
        features, problems, model.fits, held_out.indices, removed=removed, coupled=False
    )
    return head, both_scores(Z)


def without_own_class(log_proba: Array, codes: Codes) -> Array:
    """Return log-probabilities (n, C) of objects that are alone in their class, without that class.

    What such an object adds to a model is its class: it does not deviate from its own mean.
    """
    found = log_proba.copy()
    rows = np.arange(len(codes))
    found[rows, codes] = -np.inf
    worst = np.where(np.isfinite(found), found, np.inf).min(axis=1, initial=np.inf)
    found[rows, codes] = np.where(np.isfinite(worst), worst, 0.0)
    scaled_to_one: Array = log_softmax(found, axis=1)
    return scaled_to_one


def refitted_pcvm(family: Family, training: TrainingSet, held_out: HeldOut) -> Array:
    """Return the scores of held-out objects, from models of all objects but those of one fold."""
    raw = training.rows
    N, m = raw.shape
    every = np.full(N, -1, dtype=np.intp)
    every[held_out.indices] = held_out.folds
    values, own = raw.features(np.arange(N)), np.zeros((N, m), dtype=bool)
    found = refitted_scores(family, training.choice, values, raw.y, raw.weight, every, own)
    return found[held_out.indices]


def with_class_sizes(
    head: LinearHead, scores: Array, held_out: HeldOut, sizes: Array
) -> tuple[LinearHead, Array]:
    """Return IKFD with class `sizes` as strong as fits held-out objects best, and their scores.

    p ∝ exp(a β z_c) n_c^g with the calibrated scores β z, by the same convex problem as the pool. A
    temperature β far below 1, as in many dimensions, would otherwise take the sizes with it, and
    classes of one object, whose means are exact by construction, would win. A held-out object does
    not count for its own class.
    """
    n = len(held_out.codes)
    if n == 0:
        return head, scores
    rest = np.tile(sizes, (n, 1))
    _, place = np.unique(held_out.groups, return_inverse=True)
    own = np.zeros((place.max() + 1, len(sizes)))  # of each group, by class
    np.add.at(own, (place, held_out.codes), held_out.numbers)
    left = np.maximum(rest - own[place], 0.0)
    rest = np.where(left.sum(axis=1, keepdims=True) > 0, left, rest)  # a group may be everything
    log_sizes = np.log(np.maximum(rest, np.finfo(float).tiny) / rest.sum(axis=1, keepdims=True))
    log_proba = head.to_log_proba(scores)
    parts, codes, offset = among_most_probable([log_proba], [log_proba, log_sizes], held_out.codes)
    prior = np.array([1.0, 0.0])
    a, g = fit_pool(parts, codes, prior, held_out.score_weights, offset=offset)
    if a == 0:  # such a head gets no weight in the pool either
        return head, scores
    temperature = float(a) * head.temperature
    strength = float(g) / temperature
    bias = head.bias + strength * np.log(sizes / sizes.sum())
    return replace(head, temperature=temperature, bias=bias), scores + strength * log_sizes


def best_power(choice: LandmarkChoice, held_out: HeldOut, n_classes: int) -> float:
    """Return the power of a dissimilarity with the least leave-one-out loss of IKFD.

    It has a closed form, unless groups are left out together. Copies count as one object.
    """
    space = choice.space
    if space.kind == "similarity" or len(held_out.codes) == 0:
        return 1.0
    family, losses = GaussianFamily(n_classes, shrinkage="oas"), []
    pairs = held_out.groups * n_classes + held_out.codes
    _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    own = np.where(held_out.own.any(axis=1), held_out.own.argmax(axis=1), -1)
    total = totals_of(place, held_out.numbers)
    labelled = held_out.values[first], held_out.codes[first], total
    judged = held_out.at(held_out.scored)
    codes, weights = judged.codes, judged.score_weights
    for power in POWERS:
        part = space.with_power(power)
        if held_out.refits:
            scores = held_out.refitted(family, replace(choice, space=part))[held_out.scored]
        else:
            moments = family.moments(part, part.origin(), *labelled)
            objects = left_out_objects(part, moments, *labelled, own[first])
            scores = family.left_out_scores(objects)
            codes, weights = objects.codes, None
        if len(codes) == 0:
            return 1.0
        beta = fit_temperature(scores, codes, family.log_proba, weights)
        log_p = family.log_proba(beta * scores)[np.arange(len(codes)), codes]
        losses.append(-np.average(log_p, weights=weights))
    return POWERS[int(np.argmin(losses))]


def downdated_scores(
    family: GaussianFamily, space: LandmarkSpace, moments: ClassMoments, held_out: HeldOut
) -> Array:
    """Return the scores of each fold from the moments without that fold."""
    folds = held_out.folds
    scores = np.zeros((len(held_out.codes), family.n_classes))
    for fold in range(-1, folds.max() + 1):
        held = folds == fold
        left = moments
        if fold >= 0:
            values, codes = held_out.values[held], held_out.codes[held]
            own = family.moments(space, moments.origin, values, codes, held_out.numbers[held])
            left = moments - own
        if held.any():
            scores[held] = family.scorer(space, left)(held_out.values[held])
    return scores
