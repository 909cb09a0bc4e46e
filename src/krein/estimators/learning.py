"""What KreinClassifier learns from the values of all objects to the landmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..compare.pairs import Counter
from ..core.checks import Array
from ..core.family import Priors
from ..core.gaussian import QuadraticFamily
from ..core.looks import TwoLooks, learn_first_look, learn_second_look, looked_at
from ..core.moments import ClassMoments
from ..core.pcvm.rows import Features, FeaturesInMemory
from ..core.space import signed_eigen
from ..data.dataset import IN_MEMORY_OBJECTS, Dataset
from ..measures import take
from .heads import draw_held_out, fit_heads
from .reference import Refer, Reference
from .secondlook import (
    FAR_SHARE,
    KnownObjects,
    look_at_held_out,
    nearest_landmarks,
    remember,
)
from .selection import Comparing, LandmarkChoice, LandmarkSet
from .sizing import SizeCurve, size_curve


@dataclass(frozen=True)
class Settings:
    """The parameters of a fit."""

    comparing: Comparing
    priors: Priors
    neighbours: int
    price: float  # 0 if the number of landmarks is given
    max_comparisons: float | None
    max_kept: int


@dataclass(frozen=True)
class KeptValues:
    """Values of all objects, their moments per class, and the weight of each class."""

    features: Features
    moments: ClassMoments
    class_weights: Array | None


@dataclass(frozen=True)
class Learned:
    """A fitted model, and the cost of fitting it."""

    landmarks: LandmarkSet
    eigenvalues: Array  # of the approximated kernel
    looks: TwoLooks
    known: KnownObjects | None  # None if there is no second look
    known_objects: Any
    comparisons: float
    curve: SizeCurve | None
    counter: Counter
    reference: Reference


def learn(data: Dataset, choice: LandmarkChoice, kept: KeptValues, settings: Settings) -> Learned:
    """Choose how many landmarks to use, fit the heads, and learn both looks."""
    C, counter = len(kept.moments.weights), Counter()
    choice, kept, curve = _choose_size(data, choice, kept, settings, counter)
    landmarks = choice.landmarks
    sample = draw_held_out(landmarks.indices, kept.features, C)
    fitted = fit_heads(choice, kept.features, kept.moments, sample, settings.priors)
    looks = learn_first_look(fitted.heads, fitted.held_out, sample.codes, sample.weights)
    kind, classes = landmarks.space.kind, choice.landmark_classes
    near = nearest_landmarks(sample.values, kind, classes, sample.own_place)
    refer = Refer(sample, fitted.held_out, kind, classes, kept.class_weights)
    nobody = np.zeros(len(sample.codes), dtype=bool)
    first = Learned(
        landmarks,
        signed_eigen(kept.moments.gram(), landmarks.space.signs).values,
        looks,
        None,
        None,
        float(len(landmarks.indices)),
        curve,
        counter,
        refer.to(looks, near, nobody),
    )
    if not settings.neighbours:
        return first
    known = remember(
        kept.features,
        C,
        landmarks.indices,
        choice.landmark_classes,
        landmarks.space.kind,
        settings.neighbours,
        settings.max_kept,
        looks,
    )
    return _look_again(data, first, known, refer, settings)


def _choose_size(
    data: Dataset,
    choice: LandmarkChoice,
    kept: KeptValues,
    settings: Settings,
    counter: Counter,
) -> tuple[LandmarkChoice, KeptValues, SizeCurve | None]:
    """Use as many of the landmarks as are worth their comparisons."""
    N, C, m = data.survey().n_objects, len(kept.moments.weights), len(choice.landmarks.indices)
    order, measure = choice.selection.details.get("order"), settings.comparing.measure
    if order is None or not (settings.price and settings.neighbours):
        return choice, kept, None
    if not 2 * m < N <= IN_MEMORY_OBJECTS:
        return choice, kept, None
    objects = data.take(np.arange(N), measure).objects
    if not measure.comparable(objects):
        return choice, kept, None
    raw = kept.features.rows(np.arange(C), C)
    values = FeaturesInMemory(raw.features(np.arange(N)), raw.y, raw.weight)
    each = kept.class_weights
    weights = raw.weight if each is None or raw.weight is None else raw.weight / each[raw.y]
    pairs = settings.comparing.pairs(objects)
    curve = size_curve(
        choice, order, values, weights, C, settings.priors, pairs, settings.neighbours
    )
    counter.add(pairs.counter.compared, pairs.counter.reused)
    n = curve.best(settings.price)
    if n == m:
        return choice, kept, curve
    used = np.sort(order[:n])
    choice = choice.restricted(used)
    space = choice.landmarks.space
    fewer = FeaturesInMemory(np.ascontiguousarray(values.F[:, used]), raw.y, raw.weight)
    moments = QuadraticFamily(C).moments(space, space.origin(), fewer.F, raw.y, weights)
    return choice, KeptValues(fewer, moments, each), curve


def _look_again(
    data: Dataset,
    first: Learned,
    known: KnownObjects,
    refer: Refer,
    settings: Settings,
) -> Learned:
    """Take a second look at held-out objects; learn when to take it and how to weigh it."""
    sample, held_out = refer.sample, refer.held_out
    measure, m = settings.comparing.measure, len(first.landmarks.indices)
    wanted = np.union1d(np.union1d(known.indices, sample.indices), first.landmarks.indices)
    objects = data.take(wanted, measure).objects
    if not measure.comparable(objects):
        return first
    pairs = settings.comparing.pairs(objects)
    own = np.searchsorted(wanted, known.indices)
    places = np.searchsorted(wanted, sample.indices)
    near, apart = look_at_held_out(known, sample, pairs, places, own)
    first.counter.add(pairs.counter.compared, pairs.counter.reused)
    share = 1.0
    if settings.max_comparisons is not None and known.n_candidates:
        share = min(1.0, max(0.0, (settings.max_comparisons - m) / known.n_candidates))
    looks = learn_second_look(first.looks, held_out, sample.codes, sample.weights, near, share)
    if known.n_candidates == 0:  # a second look at landmarks costs nothing
        looks = replace(looks, threshold=np.inf)
    elif share == 1.0:
        known = replace(known, far=float(np.quantile(apart, 1 - FAR_SHARE)))
    confidence = np.exp(looks.first_look(held_out).max(axis=1))
    again = looked_at(confidence, looks.threshold) | (apart > known.far)
    weights = np.ones(len(again)) if sample.weights is None else sample.weights
    return replace(
        first,
        looks=looks,
        known=known,
        known_objects=measure.keep(take(objects, own), known.indices, data.survey().n_objects),
        reference=refer.to(looks, near, again),
        comparisons=m + known.n_candidates * float(weights @ again / weights.sum()),
    )
