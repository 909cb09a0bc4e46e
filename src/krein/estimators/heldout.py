"""Which training objects are held out, and how they are scored without themselves.

Held-out objects are treated as new ones: their scores come from models without them, without their
copies and without the rest of their group. Groups are dealt to at most ten folds, each of which is
held out once.

`KreinClassifier` draws `HeldOut` objects from its `TrainingSet`, and takes each look at them. IKFD,
IKQD and PCVM are calibrated on a `CalibrationSample`. If left-out scores have a closed form, as for
Gaussian classes, or a first-order approximation, a few thousand objects are enough. PCVM uses
ten-fold cross-fitting for smaller data sets.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import (
    HELD_OUT_OBJECTS,
    N_FOLDS,
    SAMPLE_SIZE,
    Family,
    Priors,
    fit_temperature,
)
from ..core.conformal import Reference, novelty_scores
from ..core.evidence import apart_from, nearest_landmarks
from ..core.gaussian import GaussianFamily
from ..core.moments import ROUNDING, ClassMoments, weights_of
from ..core.pcvm.rows import Rows
from ..core.ranks import Relatives
from ..core.shapes import Array, Codes, Indices, Mask
from ..data.dataset import Dataset, uniform_keys
from ..model.heads import Head
from ..model.parts import Comparisons, Landmarks
from .choosing import LandmarkChoice
from .folds import count_folds, dealt_folds

CALIBRATION_SCORES = 2_000_000
"""A temperature is fitted to at most about this many scores, n·C."""

_SEED = 0


@dataclass(frozen=True)
class TrainingSet:
    """All training objects, compared with the landmarks: what every look is learned from."""

    data: Dataset  # the objects themselves
    run: Comparisons
    choice: LandmarkChoice
    priors: Priors  # with the costs of errors
    rows: Rows  # the values to the landmarks, with classes and weights
    moments: ClassMoments
    numbers: Array  # (N,): how many objects each one counts for, without the costs of errors
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

    @property
    def landmarks(self) -> Landmarks:
        """The landmarks that all objects were compared with."""
        return self.choice.landmarks


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
    def drawn(cls, training: TrainingSet) -> tuple[HeldOut, HeldOut]:
        """Draw the held-out objects; also return those drawn that are alone in their class.

        They are neither landmarks nor copies of one, because a landmark is compared with itself,
        which no new object is. If most objects are, or if groups contain more than copies, models
        are refitted without the objects and landmarks of each fold. Objects of weight 0 are
        excluded. Large data sets are sampled, in whole groups of copies.
        """
        raw, groups, landmarks = training.rows, training.groups, training.landmarks.indices
        N = raw.shape[0]
        fair = np.ones(N, dtype=bool) if raw.weight is None else raw.weight > 0
        collected = np.bincount(raw.y[fair], minlength=training.n_classes)
        free = fair & ~np.isin(groups, groups[landmarks])
        refits = training.related or 2 * len(np.unique(groups[free])) < len(np.unique(groups[fair]))
        if training.related and fair.sum() > SAMPLE_SIZE:
            share = np.maximum(SAMPLE_SIZE / fair.sum(), N_FOLDS / np.maximum(collected, 1))
            fair &= uniform_keys(_SEED, training.keys) < share[raw.y]
        elif not refits:
            n = len(np.unique(groups[free]))
            share = HELD_OUT_OBJECTS / n if n > HELD_OUT_OBJECTS else 1.0
            fair = free & (uniform_keys(_SEED, training.keys) < share)
        indices = np.flatnonzero(fair)
        values, codes, of = raw.features(indices), raw.y[indices], groups[indices]
        weights = None if raw.weight is None else raw.weight[indices]
        n_folds = N_FOLDS
        if not refits:  # a fold holds out at most a tenth of all objects
            n_folds = min(max(count_folds(indices, groups), 2), N_FOLDS)
        everyone = totals_of(raw.y, weights_of(raw.weight, N), training.n_classes)
        totals = None if refits else everyone
        keys = training.keys[indices]
        folds = dealt_folds(
            values, codes, weights, totals, of, n_folds, keys=keys, collected=collected
        )
        own, numbers = find_own_landmarks(groups, indices, landmarks), training.numbers[indices]
        shares = in_proportion(shares_of_groups(of, numbers), numbers, folds >= 0, codes, training)
        found = cls(indices, values, codes, weights, numbers, own, of, shares, folds, refits)
        if training.related and not (folds >= 0).any():
            warnings.warn(
                "every class is in a single group, so no group can be held out, and probabilities "
                "may be too certain: use smaller groups",
                UserWarning,
                stacklevel=2,
            )
        if refits:
            return found, found.at(np.zeros(len(indices), dtype=bool))
        pairs = of * training.n_classes + codes
        _, place = np.unique(pairs, return_inverse=True)
        left = everyone[codes] - totals_of(place, weights_of(weights, len(codes)))[place]
        return found.at(found.scored), found.at(left <= ROUNDING * everyone[codes])

    def joined(self, other: HeldOut) -> HeldOut:
        """Return these objects and others."""
        joined: dict[str, Any] = {
            name: np.concatenate([part, getattr(other, name)])
            for name, part in vars(self).items()
            if isinstance(part, np.ndarray)
        }
        return replace(self, **joined)

    def relatives(self, training: TrainingSet) -> Relatives:
        """Return the objects that are held out with each of these, and these themselves."""
        order = np.argsort(training.groups, kind="stable")
        ends = [
            np.searchsorted(training.groups, self.groups, side, order) for side in ("left", "right")
        ]
        lengths = ends[1] - ends[0]
        rows = np.repeat(np.arange(len(lengths)), lengths)
        offset = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        members = order[ends[0][rows] + offset]
        return Relatives(rows, training.rows.y[members].astype(np.intp), training.numbers[members])

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
    def counts(self) -> Array | None:
        """How many objects each one counts for, without the costs of errors; None for 1 each."""
        found = self.numbers if self.shares is None else self.numbers * self.shares
        return found if (found != 1).any() else None

    @property
    def n_groups(self) -> float:
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
        parts: dict[str, Any] = {
            name: part[rows] for name, part in vars(self).items() if isinstance(part, np.ndarray)
        }
        return replace(self, **parts)


@dataclass(frozen=True)
class TakenLook:
    """A look at the held-out objects: its heads, what they add to the pool, and what it costs."""

    name: str
    heads: dict[str, Head]  # by name; the second look has evidence instead
    terms: list[Array]  # each (n, C): of the objects with held-out scores
    lonely: list[Array]  # each (n', C): of the objects that are alone in their class
    cost: float  # comparisons per object


def calibrated(head: Head, scores: Array, held_out: HeldOut) -> Head:
    """Return the head with the temperature that fits held-out scores (n, C) best."""
    n, C = scores.shape
    some = slice(None, None, max(1, n * C // CALIBRATION_SCORES))
    weights = None if held_out.score_weights is None else held_out.score_weights[some]
    if n == 0:
        return head
    temperature = fit_temperature(scores[some], held_out.codes[some], head.to_log_proba, weights)
    return replace(head, temperature=temperature)  # type: ignore[type-var]


def in_proportion(
    shares: Array | None, numbers: Array, scored: Mask, codes: Codes, training: TrainingSet
) -> Array | None:
    """Return the shares (n,) that give those `scored` the classes in proportion to all objects.

    Landmarks are not held out, and a larger part of small classes are landmarks. Without this, new
    objects would be in small classes, which are recognised worst, more often than held-out ones.
    """
    C, each = training.n_classes, np.ones(len(codes)) if shares is None else shares
    fair = np.flatnonzero(training.numbers > 0)
    of_all = shares_of_groups(training.groups[fair], training.numbers[fair])
    everyone = training.numbers[fair] * weights_of(of_all, len(fair))
    wanted = totals_of(training.rows.y[fair], everyone, C)
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


def weights_with_copies(training: TrainingSet) -> Array:
    """Return the weight (N,) of each object together with its copies of the same label."""
    raw = training.rows
    pairs = training.copies * training.n_classes + raw.y
    _, place = np.unique(pairs, return_inverse=True)
    return totals_of(place, weights_of(raw.weight, len(place)))[place]


def totals_of(parts: Indices, weights: Array, n_parts: int = 0) -> Array:
    """Return the total weight of each part, given the part (n,) of each object."""
    found: Array = np.bincount(parts, weights, n_parts).astype(np.float64)
    return found


@dataclass(frozen=True)
class CalibrationSample:
    """Defines the calibration sample: a share of all objects, except excluded ones."""

    share: float
    without: Indices

    @classmethod
    def of(
        cls, n_objects: int, landmarks: Indices, all_up_to: int, wanted: int
    ) -> CalibrationSample:
        """Return all objects up to a number, or if most are landmarks; otherwise a few thousand.

        Landmarks are then excluded.
        """
        m = len(landmarks)
        if n_objects <= all_up_to or 2 * m > n_objects:
            return cls(1.0, np.empty(0, dtype=np.intp))
        return cls(wanted / (n_objects - m), np.sort(landmarks))

    @classmethod
    def empty(cls) -> CalibrationSample:
        """Return an empty sample: nothing is calibrated."""
        return cls(0.0, np.empty(0, dtype=np.intp))

    @property
    def covers_all(self) -> bool:
        """Whether all objects are in the sample."""
        return self.share >= 1 and len(self.without) == 0

    def among(self, indices: Indices) -> NDArray[np.intp]:
        """Return the positions of the sample among these objects, independent of the others."""
        if self.covers_all or self.share == 0:
            return np.arange(len(indices) if self.covers_all else 0)
        drawn = uniform_keys(_SEED, indices) < self.share
        return np.flatnonzero(drawn & ~np.isin(indices, self.without))


def cross_fit(
    family: Family,
    choice: LandmarkChoice,
    values: Array,
    codes: Codes,
    weights: Array | None,
    rows: Indices,
    groups: Indices,
) -> tuple[Array, Indices]:
    """Return the scores of all objects that can be held out, from ten folds, and their rows.

    Uses the values (n, m) of the objects at these rows, so no pair is compared again. `groups` (N,)
    are those of all objects; a group is in one fold.
    """
    folds = dealt_folds(values, codes, weights, groups=groups[rows])
    some = np.flatnonzero(folds >= 0)
    present = np.unique(codes if weights is None else codes[weights > 0])
    if len(some) == 0 or len(present) < len(np.unique(choice.landmarks.codes)):
        return np.empty((0, 2)), rows[:0]
    own = find_own_landmarks(groups, rows, choice.landmarks.indices)
    scores = refitted_scores(family, choice, values, codes, weights, folds, own)
    return scores[some], rows[some]


def refitted_scores(
    family: Family,
    choice: LandmarkChoice,
    values: Array,
    codes: Codes,
    weights: Array | None,
    folds: Codes,
    own: Mask,
) -> Array:
    """Return the scores of each fold from a model without its objects and its landmarks.

    `own` (n, m) tells which landmarks belong to each object's group: a new object is never its own
    landmark, nor a relative of one. Objects of fold −1 are in every model, and have no
    scores unless all objects are in this fold.
    """
    space, classes = choice.space, choice.landmarks.codes
    scores: Array | None = None
    for fold in range(folds.max() + 1) if folds.max() >= 0 else [-1]:
        held = folds == fold
        rest, used = np.ones_like(held), np.arange(len(classes))
        if fold >= 0:
            rest, others = ~held, np.flatnonzero(~own[held].any(axis=0))
            used = others if len(others) else used
        scorer = family.learn(
            space.restricted(used),
            classes[used],
            values[np.ix_(rest, used)],
            codes[rest],
            None if weights is None else weights[rest],
        )
        found = scorer(values[np.ix_(held, used)])
        if scores is None:
            scores = np.zeros((len(folds), found.shape[1]))
        scores[held] = found
    assert scores is not None
    return scores


def find_own_landmarks(groups: Indices, rows: Indices, landmarks: Indices) -> Mask:
    """Return which landmarks are in the group of each of these rows (n, m)."""
    found: Mask = groups[rows][:, None] == groups[landmarks]
    return found


def shares_of_groups(groups: Indices, weights: Array | None) -> Array | None:
    """Return the share (n,) of each object in its group; None if every object is a group.

    A new object comes from a new group. So a group of relatives counts as much as one object, and
    p-values in which each group counts once are valid for new groups (Lee, Barber & Willett 2023).
    A weight above 1 counts copies, which are relatives too.
    """
    _, place = np.unique(groups, return_inverse=True)
    each = np.ones(len(groups)) if weights is None else np.maximum(weights, 1.0)
    found: Array = 1.0 / np.bincount(place, weights=each)[place]
    return None if (found == 1.0).all() else found


def scaled(weights: Array | None, shares: Array | None) -> Array | None:
    """Return the product of two optional weights (n,)."""
    if weights is None or shares is None:
        return shares if weights is None else weights
    return weights * shares


def reference_of(
    log_proba: Array,
    values: Array,
    codes: Codes,
    weights: Array | None,
    choice: LandmarkChoice,
    own: Mask,
) -> Reference:
    """Return the reference of held-out objects that were compared with the landmarks alone.

    `own` (n, m) tells which landmarks belong to each object's group.
    """
    kind = choice.columns.measure.kind
    near = nearest_landmarks(apart_from(values, kind, own), choice.landmarks.codes)
    return Reference.of(novelty_scores(near.apart, kind), log_proba, codes, weights)
