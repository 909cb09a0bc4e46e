"""The landmarks that an estimator compares objects with, and the values between them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compare.pairs import Counter, Pairs, averages, open_cache, try_symmetry
from ..core.checks import Array, Indices, check_landmarks
from ..core.family import Codes, Family
from ..core.space import LandmarkSpace, unit_of
from ..data.dataset import Dataset, LandmarkColumns, encode
from ..landmarks import Selection
from ..measures import Measure, take
from ..wording import parameter

if TYPE_CHECKING:
    from ..landmarks import Given, Rule


@dataclass(frozen=True)
class LandmarkSet:
    """Landmarks, and the space they span."""

    space: LandmarkSpace
    indices: Indices  # rows of the objects they were chosen from
    objects: Any  # as the measure keeps them

    def restricted(self, kept: Indices) -> LandmarkSet:
        """Return only the landmarks at these positions."""
        objects = take(self.objects, kept)
        return LandmarkSet(self.space.restricted(kept), self.indices[kept], objects)


@dataclass(frozen=True)
class LandmarkChoice:
    """Landmarks of a data set, as the columns of its blocks, and the cost of choosing them."""

    landmarks: LandmarkSet
    landmark_classes: Codes  # all 0 if there are no labels
    columns: LandmarkColumns
    selection: Selection
    counter: Counter
    family: Family | None = None  # with the settings that the rule has chosen

    def restricted(self, kept: Indices) -> LandmarkChoice:
        """Return the choice with only the landmarks at these positions."""
        return replace(
            self,
            landmarks=self.landmarks.restricted(kept),
            landmark_classes=self.landmark_classes[kept],
            selection=replace(self.selection, indices=self.selection.indices[kept]),
        )

    def at(self, rows: Indices) -> LandmarkChoice:
        """Return the choice with the landmarks at other rows, e.g. among a subset of objects."""
        return replace(self, landmarks=replace(self.landmarks, indices=rows))


@dataclass(frozen=True)
class Comparing:
    """How objects are compared: the relevant parameters of an estimator."""

    measure: Measure
    symmetrize: bool
    cache: str | os.PathLike[str] | None
    n_jobs: int | None
    verbose: int

    def pairs(self, objects: Any, others: Any = None, spent: int = 0) -> Pairs:
        """Return the pairs of some objects in memory."""
        return Pairs(
            self.measure,
            objects,
            others,
            n_jobs=self.n_jobs,
            cache=open_cache(self.cache, self.measure, self.symmetrize),
            verbose=self.verbose,
            symmetrize=averages(self.measure, self.symmetrize),
            counter=Counter(spent),
        )

    def columns(
        self, data: Dataset, landmarks: LandmarkSet, known_rows: Indices, known: Array
    ) -> LandmarkColumns:
        """Return the landmarks as columns of the blocks of a data set."""
        return LandmarkColumns(
            self.measure,
            landmarks.objects,
            landmarks.indices,
            known_rows,
            known,
            self.symmetrize,
            self.cache,
            data.n_jobs,
        )


def choose_landmarks(
    data: Dataset,
    rule: Rule,
    comparing: Comparing,
    rng: np.random.Generator,
    *,
    classes: Any = None,
    family: Family | None = None,
    rank: int | None = None,
) -> LandmarkChoice:
    """Choose landmarks of a data set by `rule`, from a sample, and span their space.

    `classes` are the sorted labels, or None if there are none. `family` is fitted by rules that
    depend on errors. The columns keep the values that the rule has compared, so that no pair is
    compared again.
    """
    # imported here because a fitted model needs neither rules nor scikit-learn
    from ..landmarks.all import All, Given
    from ..landmarks.base import select_landmarks

    N = data.survey().n_objects
    measure = comparing.measure
    most = data.n_sampled(measure)
    if isinstance(rule, Given):
        return _given(data, rule, comparing, classes, N, rank)
    if isinstance(rule, All) and most < N:
        raise ValueError(
            f"{parameter('landmarks', repr('all'))} compares all pairs of {N:,} objects; choose a "
            f"rule, e.g. 'meb', or use at most {most:,} objects"
        )
    sample = data.sample(measure, int(rng.integers(2**62)) if most < N else 0)
    pairs = data.run_pairs(_pairs(data, sample.objects, None, comparing))
    codes = None if classes is None else _codes(sample.labels, classes)
    found = select_landmarks(rule, pairs, codes, rng, family)
    indices = sample.indices[found.indices]
    if found.values is None:
        between = pairs.block(found.indices, found.indices)
        known_rows, known = indices, between
    else:
        between, known_rows, known = found.values[found.indices], sample.indices, found.values
    _refuse_underflow(measure, take(sample.objects, found.indices), between)
    objects = measure.keep(take(sample.objects, found.indices), indices, N)
    unit = 1.0 if classes is None else unit_of(between)  # coordinates keep the user's unit
    space = LandmarkSpace.of(between, pairs.kind, rank=rank, unit=unit)
    landmarks = LandmarkSet(space, indices, objects)
    return LandmarkChoice(
        landmarks,
        _codes(sample.labels[found.indices], classes),
        comparing.columns(data, landmarks, known_rows, known),
        replace(found, indices=indices, values=None, family=None),
        pairs.counter,
        found.family,
    )


def _given(
    data: Dataset, rule: Given, comparing: Comparing, classes: Any, N: int, rank: int | None
) -> LandmarkChoice:
    """Return the landmarks that the user gave, in the same order."""
    measure = comparing.measure
    indices = check_landmarks(rule.indices, N)
    order = np.argsort(indices)
    back = np.argsort(order)
    sample = data.take(indices[order], measure)
    objects = take(sample.objects, back)
    kept = measure.keep(objects, indices, N)
    pairs = _pairs(data, objects, measure.with_each_other(objects, kept), comparing)
    everyone = np.arange(len(indices))
    between = data.run_pairs(pairs).block(everyone, everyone)
    _refuse_underflow(measure, objects, between)
    unit = 1.0 if classes is None else unit_of(between)
    space = LandmarkSpace.of(between, pairs.kind, rank=rank, unit=unit)
    landmarks = LandmarkSet(space, indices, kept)
    return LandmarkChoice(
        landmarks,
        _codes(sample.labels[back], classes),
        comparing.columns(data, landmarks, indices, between),
        Selection(indices),
        pairs.counter,
    )


def _refuse_underflow(measure: Measure, landmarks: Any, between: Array) -> None:
    """Refuse landmarks that differ although all values between them are 0."""
    if measure.accepts != "vectors" or between.any():
        return
    X = np.asarray(landmarks)
    if (X[:1] != X).any():
        raise ValueError(
            f"all values of the measure {measure.name!r} between the landmarks are 0, though the "
            f"landmarks differ: entries of up to {np.abs(X).max():.3g} may be too small for it. "
            "Multiply the objects by a constant, e.g. divide X by its standard deviation"
        )


def _codes(labels: Any, classes: Any) -> Codes:
    return np.zeros(len(labels), dtype=np.intp) if classes is None else encode(labels, classes)


def _pairs(data: Dataset, objects: Any, others: Any, comparing: Comparing) -> Pairs:
    """Return the pairs of a sample; check the measure on it unless all objects were checked."""
    if data.spent is not None:
        return comparing.pairs(objects, others, data.spent)
    checked, spent = try_symmetry(comparing.measure, objects, comparing.symmetrize, comparing.cache)
    return comparing.pairs(checked, others, spent)
