"""The first look: values of all objects to the landmarks, heads fitted to them, held-out scores.

IKFD, IKQD and PCVM are fitted to the same values. Held-out objects are treated as new ones: their
scores come from models without them, without their copies and without the rest of their group.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.special import log_softmax

from ..core.calibration import (
    HELD_OUT_OBJECTS,
    N_FOLDS,
    SAMPLE_SIZE,
    Family,
    Priors,
    fit_temperature,
)
from ..core.cascade import among_most_probable, fit_pool
from ..core.gaussian import FisherFamily, GaussianFamily, QuadraticFamily, left_out_objects
from ..core.moments import ROUNDING, ClassMoments, weights_of
from ..core.pcvm.left_out import left_out_scores
from ..core.pcvm.rows import BasisFunction, Rows
from ..core.pcvm.training import POWERS as PCVM_POWERS
from ..core.pcvm.training import PCVMFamily, both_scores, fit_landmarks
from ..core.ranks import Relatives
from ..core.shapes import Array, Codes, Indices, Mask
from ..core.space import POWERS
from ..data.dataset import uniform_keys
from ..model.heads import Head, LinearHead, LinkName
from .discriminants import fisher_head, quadratic_head
from .fitting import (
    LandmarkChoice,
    dealt_folds,
    own_landmarks,
    refitted_scores,
    scaled,
    shares_of_groups,
)

CLASS_OBJECTS = 10
"""IKQD is left out of the pool if most objects are in smaller classes: a covariance of few objects
is uninformative."""

CLASS_WORK = 4e8
"""IKQD is left out if C·m³ exceeds this, the work of one covariance per class."""

PCVM_WORK = 5e8
"""PCVM is left out if N·m·C exceeds this, the work of one step of its search."""

CROWDED, REFIT_WORK = 8, 2e7
"""PCVM with more than `CROWDED` weights per object is refitted without each fold, if
N·m·C is at most `REFIT_WORK`: approximate leave-one-out scores would be too good. In 60 classes of
ten vectors each, with twelve weights per object, the loss would seem to be half of what it is; with
six and fewer, it is about right."""

POOLED_TOLERANCE = 3e-4
"""Tolerance per row of PCVM in the pool: a smaller one hardly changes the pool. (On parts of words,
Swiss-Prot, MNIST and digits, the losses of new objects agree to 0.0002 with those for 1e-4.)"""

CALIBRATION_SCORES = 2_000_000
"""A temperature is fitted to at most about this many scores, n·C."""

BASIS_FUNCTIONS = dict(zip(POWERS, PCVM_POWERS, strict=True))
"""PCVM's basis function for each power of a dissimilarity."""

_SEED = 0


@dataclass(frozen=True)
class Values:
    """Values of all objects to the landmarks, their moments per class, and their groups."""

    rows: Rows  # the values, with classes and weights
    moments: ClassMoments
    class_weights: Array | None  # (C,): costs of errors, as weights of objects
    groups: Indices  # (N,): the first object of each object's group; copies are in one group
    copies: Indices  # (N,): the first object with the same contents
    keys: Indices  # (N,): numbers that depend on the contents, as a random order

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.moments.weights)

    @property
    def related(self) -> bool:
        """Whether groups contain objects that are not copies."""
        return bool((self.groups != self.copies).any())

    def numbers(self, rows: Indices | slice = slice(None)) -> Array:
        """Return how many objects each one counts for, without the costs of errors."""
        raw = self.rows
        w = weights_of(raw.weight, raw.shape[0])[rows]
        return w if self.class_weights is None else w / self.class_weights[raw.y[rows]]


@dataclass(frozen=True)
class HeldOut:
    """Training objects that are held out, i.e. treated as new ones."""

    indices: Indices  # among all objects, ascending
    values: Array  # (n, m)
    codes: Codes  # (n,)
    weights: Array | None  # with the costs of errors
    numbers: Array  # (n,): how many objects each one counts for
    own: Mask  # (n, m): which landmarks are in the object's group, or the object itself
    groups: Indices  # (n,)
    shares: Array | None  # (n,): of each object in its group; None for 1 each
    folds: Codes  # (n,): groups are held out together; −1 is never held out
    refits: bool  # whether models are refitted without each fold; else, scores have a closed form

    @classmethod
    def drawn(cls, kept: Values, landmarks: Indices) -> tuple[HeldOut, HeldOut]:
        """Draw the held-out objects; also return those drawn that are alone in their class.

        They are neither landmarks nor copies of one, because a landmark is compared with itself,
        which no new object is. If most objects are, or if groups contain more than copies, models
        are refitted without the objects and landmarks of each fold. Objects of weight 0 are
        excluded. Large data sets are sampled, in whole groups of copies.
        """
        raw, groups = kept.rows, kept.groups
        N = raw.shape[0]
        fair = np.ones(N, dtype=bool) if raw.weight is None else raw.weight > 0
        free = fair & ~np.isin(groups, groups[landmarks])
        refits = kept.related or 2 * len(np.unique(groups[free])) < len(np.unique(groups[fair]))
        if kept.related and fair.sum() > SAMPLE_SIZE:
            sizes = np.bincount(raw.y[fair], minlength=kept.n_classes)
            share = np.maximum(SAMPLE_SIZE / fair.sum(), N_FOLDS / np.maximum(sizes, 1))
            fair &= uniform_keys(_SEED, kept.keys) < share[raw.y]
        elif not refits:
            n = len(np.unique(groups[free]))
            share = HELD_OUT_OBJECTS / n if n > HELD_OUT_OBJECTS else 1.0
            fair = free & (uniform_keys(_SEED, kept.keys) < share)
        indices = np.flatnonzero(fair)
        values, codes, of = raw.features(indices), raw.y[indices], groups[indices]
        weights = None if raw.weight is None else raw.weight[indices]
        n_folds = N_FOLDS
        if not refits:  # a fold holds out at most a tenth of all objects
            n_folds = int(np.clip(np.ceil(N_FOLDS * len(indices) / N), 2, N_FOLDS))
        everyone = totals_of(raw.y, weights_of(raw.weight, N), kept.n_classes)
        totals = None if refits else everyone
        folds = dealt_folds(values, codes, weights, totals, of, n_folds, keys=kept.keys[indices])
        own, numbers = own_landmarks(groups, indices, landmarks), kept.numbers(indices)
        shares = in_proportion(shares_of_groups(of, numbers), numbers, folds >= 0, codes, kept)
        found = cls(indices, values, codes, weights, numbers, own, of, shares, folds, refits)
        if kept.related and not (folds >= 0).any():
            warnings.warn(
                "every class is in a single group, so no group can be held out, and probabilities "
                "may be too certain: use smaller groups",
                UserWarning,
                stacklevel=2,
            )
        if refits:
            return found, found.at(np.zeros(len(indices), dtype=bool))
        pairs = of * kept.n_classes + codes
        _, place = np.unique(pairs, return_inverse=True)
        left = everyone[codes] - totals_of(place, weights_of(weights, len(codes)))[place]
        return found.at(found.scored), found.at(left <= ROUNDING * everyone[codes])

    def joined(self, other: HeldOut) -> HeldOut:
        """Return these objects and others."""
        parts: dict[str, Any] = {}
        for name in (field.name for field in fields(self)):
            mine, its = getattr(self, name), getattr(other, name)
            parts[name] = np.concatenate([mine, its]) if isinstance(mine, np.ndarray) else mine
        return HeldOut(**parts)

    def relatives(self, kept: Values) -> Relatives:
        """Return the objects that are held out with each of these, and these themselves."""
        order = np.argsort(kept.groups, kind="stable")
        ends = [
            np.searchsorted(kept.groups, self.groups, side, order) for side in ("left", "right")
        ]
        lengths = ends[1] - ends[0]
        rows = np.repeat(np.arange(len(lengths)), lengths)
        offset = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        members = order[ends[0][rows] + offset]
        return Relatives(rows, kept.rows.y[members].astype(np.intp), kept.numbers(members))

    @property
    def scored(self) -> Mask:
        """Which objects have held-out scores: all if none can be held out."""
        found: Mask = self.folds >= 0
        return found if found.any() else np.ones(len(found), dtype=bool)

    @property
    def score_weights(self) -> Array | None:
        """The weights of held-out scores, of which each group has as many as one object."""
        return scaled(self.weights, self.shares)

    @property
    def number(self) -> float:
        """The number of groups: related objects are no more informative than a single one."""
        return float(len(np.unique(self.groups)))

    def refitted(self, family: Family, choice: LandmarkChoice) -> Array:
        """Return the scores of each fold from a model without its objects and its landmarks.

        Costs of errors are weights for PCVM; for Gaussian classes, they are in the priors.
        """
        w = self.numbers if isinstance(family, GaussianFamily) else self.weights
        return refitted_scores(family, choice, self.values, self.codes, w, self.folds, self.own)

    def at(self, rows: Mask) -> HeldOut:
        """Return some of the objects."""
        return HeldOut(
            self.indices[rows],
            self.values[rows],
            self.codes[rows],
            None if self.weights is None else self.weights[rows],
            self.numbers[rows],
            self.own[rows],
            self.groups[rows],
            None if self.shares is None else self.shares[rows],
            self.folds[rows],
            self.refits,
        )


# -- heads -----------------------------------------------------------------------------------------


def worthwhile_heads(sizes: Array, n_landmarks: int) -> dict[str, str]:
    """Return the heads that are left out, each with the reason, for classes of these sizes."""
    C, N, m = len(sizes), float(sizes.sum()), n_landmarks
    found = {}
    if sizes[sizes >= CLASS_OBJECTS].sum() < N / 2:
        few = f"most objects are in classes of fewer than {CLASS_OBJECTS}"
        found["ikqd"] = f"{few}, which cannot have a covariance of their own"
    elif C * float(m) ** 3 > CLASS_WORK:
        found["ikqd"] = f"{C:,} covariances of {m} landmarks would cost more than they are worth"
    if N * m * C > PCVM_WORK:
        found["pcvm"] = (
            f"{m * C:,} weights for {N:,.0f} objects would cost more than they are worth"
        )
    return found


def must_refit(n_objects: float, n_landmarks: int, n_classes: int) -> bool:
    """Whether PCVM has too many weights for approximate leave-one-out scores, and few enough to
    be refitted."""
    work = n_objects * n_landmarks * n_classes
    return n_landmarks * n_classes > CROWDED * n_objects and work <= REFIT_WORK


def fit_heads(
    choice: LandmarkChoice,
    kept: Values,
    sample: HeldOut,
    priors: Priors,
    left_out: Collection[str],
) -> tuple[list[Head], list[Array]]:
    """Fit IKFD, IKQD and PCVM to the same values; also return their held-out log-probabilities.

    Those are of the objects that can be `scored`; the others only take part in fits. No pair is
    compared. Held-out scores of the Gaussian heads come from the moments without each fold, those
    of PCVM are approximate leave-one-out scores, without the copies that have the same label. If
    landmarks or groups are held out, models are refitted without each fold instead.
    """
    C, space, landmarks = kept.n_classes, choice.space, choice.landmarks
    heads: list[Head] = []
    scores: list[Array] = []
    fisher = FisherFamily(C, shrinkage="oas", priors=priors)
    heads.append(fisher_head(space, fisher.discriminant(kept.moments)))
    families: list[GaussianFamily] = [fisher]
    if "ikqd" not in left_out:
        quadratic = QuadraticFamily(C, shrinkage="oas", priors=priors)
        heads.append(quadratic_head(space, quadratic.discriminant(kept.moments)))
        families.append(quadratic)
    for family in families:
        if sample.refits:
            scores.append(sample.refitted(family, choice))
        else:
            scores.append(downdated_scores(family, choice, kept.moments, sample))
    if "pcvm" not in left_out:
        function: BasisFunction = BASIS_FUNCTIONS[best_power(choice, sample, C)]
        if space.kind == "similarity":
            function = "similarity"
        pcvm = PCVMFamily(C, function=function, tol=POOLED_TOLERANCE)
        model, features = fit_landmarks(
            space, landmarks.indices, kept.rows, landmarks.codes, pcvm, keep=True
        )
        link: LinkName = "probit" if C == 2 else "softmax"
        heads.append(
            LinearHead(model.function, model.places, model.dual_coef, model.intercept, link)
        )
        settled = replace(pcvm, function=model.function, scales=model.scales)
        if sample.refits:
            scores.append(sample.refitted(settled, choice))
        elif must_refit(float(kept.moments.weights.sum()), len(landmarks.indices), C):
            scores.append(cross_fitted(settled, choice, kept, sample))
        else:
            problems = pcvm.problems(landmarks.codes)
            removed = with_copies(kept)[sample.indices]
            Z = left_out_scores(
                features, problems, model.fits, sample.indices, removed=removed, coupled=False
            )
            scores.append(both_scores(Z))
    scored = sample.scored
    sample, scores = sample.at(scored), [each[scored] for each in scores]
    heads = [calibrated(head, each, sample) for head, each in zip(heads, scores, strict=True)]
    assert isinstance(heads[0], LinearHead)
    heads[0], scores[0] = with_class_sizes(heads[0], scores[0], sample, kept)
    log_proba = [head.to_log_proba(each) for head, each in zip(heads, scores, strict=True)]
    return heads, log_proba


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


def in_proportion(
    shares: Array | None, numbers: Array, scored: Mask, codes: Codes, kept: Values
) -> Array | None:
    """Return the shares (n,) that give those `scored` the classes in proportion to all objects.

    Landmarks are not held out, and a larger part of small classes are landmarks. Without this, new
    objects would be in small classes, which are recognised worst, more often than held-out ones.
    """
    C, each = kept.n_classes, np.ones(len(codes)) if shares is None else shares
    fair = np.flatnonzero(kept.numbers() > 0)
    of_all = shares_of_groups(kept.groups[fair], kept.numbers(fair))
    everyone = kept.numbers(fair) * weights_of(of_all, len(fair))
    wanted = totals_of(kept.rows.y[fair], everyone, C)
    have = totals_of(codes[scored], (numbers * each)[scored], C)
    held = have > 0
    if not held.any():
        return shares
    factor = np.ones(C)
    factor[held] = wanted[held] / have[held] * (have[held].sum() / wanted[held].sum())
    if np.ptp(factor) <= ROUNDING:
        return shares
    found: Array = each * factor[codes]
    return found


def with_copies(kept: Values) -> Array:
    """Return the weight (N,) of each object together with its copies of the same label."""
    raw = kept.rows
    pairs = kept.copies * kept.n_classes + raw.y
    _, place = np.unique(pairs, return_inverse=True)
    return totals_of(place, weights_of(raw.weight, len(place)))[place]


def totals_of(parts: Indices, weights: Array, n_parts: int = 0) -> Array:
    """Return the total weight of each part, given the part (n,) of each object."""
    found: Array = np.bincount(parts, weights, n_parts).astype(np.float64)
    return found


def cross_fitted(family: Family, choice: LandmarkChoice, kept: Values, sample: HeldOut) -> Array:
    """Return the scores of held-out objects, from models of all objects but those of one fold."""
    raw = kept.rows
    N, m = raw.shape
    every = np.full(N, -1, dtype=np.intp)
    every[sample.indices] = sample.folds
    values, own = raw.features(np.arange(N)), np.zeros((N, m), dtype=bool)
    found = refitted_scores(family, choice, values, raw.y, raw.weight, every, own)
    return found[sample.indices]


def calibrated(head: Head, scores: Array, sample: HeldOut) -> Head:
    """Return the head with the temperature that fits held-out scores (n, C) best."""
    n, C = scores.shape
    some = slice(None, None, max(1, n * C // CALIBRATION_SCORES))
    weights = None if sample.score_weights is None else sample.score_weights[some]
    if n == 0:
        return head
    temperature = fit_temperature(scores[some], sample.codes[some], head.to_log_proba, weights)
    return replace(head, temperature=temperature)  # type: ignore[type-var]


def with_class_sizes(
    head: LinearHead, scores: Array, sample: HeldOut, kept: Values
) -> tuple[LinearHead, Array]:
    """Return IKFD with class sizes as strong as fits held-out objects best, and their scores.

    p ∝ exp(a β z_c) n_c^g with the calibrated scores β z, by the same convex problem as the pool. A
    temperature β far below 1, as in many dimensions, would otherwise take the sizes with it, and
    classes of one object, whose means are exact by construction, would win. A held-out object does
    not count for its own class.
    """
    n, sizes = len(sample.codes), kept.moments.weights
    if n == 0:
        return head, scores
    rest = np.tile(sizes, (n, 1))
    _, place = np.unique(sample.groups, return_inverse=True)
    own = np.zeros((place.max() + 1, len(sizes)))  # of each group, by class
    np.add.at(own, (place, sample.codes), sample.numbers)
    left = np.maximum(rest - own[place], 0.0)
    rest = np.where(left.sum(axis=1, keepdims=True) > 0, left, rest)  # a group may be everything
    log_sizes = np.log(np.maximum(rest, np.finfo(float).tiny) / rest.sum(axis=1, keepdims=True))
    log_proba = head.to_log_proba(scores)
    parts, codes, offset = among_most_probable([log_proba], [log_proba, log_sizes], sample.codes)
    prior = np.array([1.0, 0.0])
    a, g = fit_pool(parts, codes, prior, sample.score_weights, offset=offset)
    if a == 0:  # such a head gets no weight in the pool either
        return head, scores
    temperature = float(a) * head.temperature
    strength = float(g) / temperature
    bias = head.bias + strength * np.log(sizes / sizes.sum())
    return replace(head, temperature=temperature, bias=bias), scores + strength * log_sizes


def best_power(choice: LandmarkChoice, sample: HeldOut, n_classes: int) -> float:
    """Return the power of a dissimilarity with the least leave-one-out loss of IKFD.

    It has a closed form, unless groups are left out together. Copies count as one object.
    """
    space = choice.space
    if space.kind == "similarity" or len(sample.codes) == 0:
        return 1.0
    family, losses = FisherFamily(n_classes, shrinkage="oas"), []
    pairs = sample.groups * n_classes + sample.codes
    _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    own = np.where(sample.own.any(axis=1), sample.own.argmax(axis=1), -1)
    total = totals_of(place, sample.numbers)
    labelled = sample.values[first], sample.codes[first], total
    judged = sample.at(sample.scored)
    codes, weights = judged.codes, judged.score_weights
    for power in POWERS:
        part = space.with_power(power)
        if sample.refits:
            scores = sample.refitted(family, replace(choice, space=part))[sample.scored]
        else:
            moments = family.moments(part, part.origin(), *labelled)
            objects = left_out_objects(part, moments, *labelled, own[first])
            scores = family.left_out_scores(moments, objects)
            codes, weights = objects.codes, None
        if len(codes) == 0:
            return 1.0
        beta = fit_temperature(scores, codes, family.log_proba, weights)
        log_p = family.log_proba(beta * scores)[np.arange(len(codes)), codes]
        losses.append(-np.average(log_p, weights=weights))
    return POWERS[int(np.argmin(losses))]


def downdated_scores(
    family: GaussianFamily, choice: LandmarkChoice, moments: ClassMoments, sample: HeldOut
) -> Array:
    """Return the scores of each fold from the moments without that fold."""
    space, folds = choice.space, sample.folds
    scores = np.zeros((len(sample.codes), family.n_classes))
    for fold in range(-1, folds.max() + 1):
        held = folds == fold
        left = moments
        if fold >= 0:
            values, codes = sample.values[held], sample.codes[held]
            own = family.moments(space, moments.origin, values, codes, sample.numbers[held])
            left = moments - own
        if held.any():
            scores[held] = family.scorer(space, left)(sample.values[held])
    return scores
