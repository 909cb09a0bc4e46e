"""Choose the landmarks of a data set, from a sample of it, and span their space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..compare.pairs import Pairs, try_symmetry
from ..core.calibration import Family
from ..core.shapes import Array, Codes, Indices, Mask
from ..core.space import LandmarkSpace, unit_of
from ..data.chunks import LandmarkColumns
from ..data.dataset import Dataset
from ..data.labelling import codes_of
from ..landmarks import Rule, Selection, select_landmarks
from ..landmarks.base import All, Given, check_landmarks
from ..measures import Measure, take
from ..model.parts import Comparisons, Landmarks
from ..wording import parameter


@dataclass(frozen=True)
class LandmarkChoice:
    """Landmarks of a data set, their space, and the columns that objects are compared with."""

    landmarks: Landmarks
    space: LandmarkSpace
    columns: LandmarkColumns
    selection: Selection

    def restricted(self, kept: Indices) -> LandmarkChoice:
        """Return the choice with only the landmarks at these positions."""
        return replace(
            self,
            landmarks=replace(
                self.landmarks,
                indices=self.landmarks.indices[kept],
                codes=self.landmarks.codes[kept],
                objects=take(self.landmarks.objects, kept),
            ),
            space=self.space.restricted(kept),
            selection=replace(self.selection, indices=self.selection.indices[kept]),
        )

    def at(self, rows: Indices) -> LandmarkChoice:
        """Return the choice with the landmarks at other rows, e.g. among a subset of objects."""
        return replace(self, landmarks=replace(self.landmarks, indices=rows))


Centre = Literal["landmarks", "training"]
"""What dissimilarities are centred on. If every object is a landmark, both are the same."""


def choose_landmarks(
    data: Dataset,
    rule: Rule,
    run: Comparisons,
    rng: np.random.Generator,
    *,
    classes: Any = None,
    family: Family | None = None,
    rank: int | None = None,
    among: Mask | None = None,
    centre: Centre = "landmarks",
) -> LandmarkChoice:
    """Choose landmarks of a data set by `rule`, from a sample, and span their space.

    `classes` are the sorted labels, or None if there are none. `family` is fitted by rules that
    depend on errors. The columns keep the values that the rule has compared, so that no pair is
    compared again.
    """
    if centre not in ("landmarks", "training"):
        raise ValueError(f"centre must be 'landmarks' or 'training'; got {centre!r}")
    if isinstance(rule, Given):
        found = _given_landmarks(data, rule, run, classes)
    else:
        found = _landmarks_by_rule(data, rule, run, rng, classes, family, among)
    _refuse_underflow(run.measure, found.objects, found.between)
    indices, labelled = found.selection.indices, classes is not None
    space = LandmarkSpace.of(
        found.between,
        run.measure.kind,
        rank=rank,
        unit=unit_of(found.between) if labelled else 1.0,  # coordinates keep the user's unit
        row_means=centre == "landmarks" or len(indices) == data.survey().n_objects,
    )
    columns = replace(run, n_jobs=data.n_jobs).columns(
        found.kept, indices, found.compared_rows, found.compared
    )
    landmarks = Landmarks(indices, found.codes, None, found.kept)
    return LandmarkChoice(landmarks, space, columns, found.selection)


@dataclass(frozen=True)
class _Found:
    """Landmarks, and the values that were compared to choose them."""

    selection: Selection  # among all objects
    codes: Codes  # (m,)
    objects: Any
    kept: Any  # the objects as a model keeps them
    between: Array  # (m, m)
    compared_rows: Indices  # (k,): the objects whose values are known
    compared: Array  # (k, m)


def _landmarks_by_rule(
    data: Dataset,
    rule: Rule,
    run: Comparisons,
    rng: np.random.Generator,
    classes: Any,
    family: Family | None,
    among: Mask | None,
) -> _Found:
    """Choose landmarks from a sample."""
    measure, N, most = run.measure, data.survey().n_objects, data.n_sampled
    if isinstance(rule, All) and most < N:
        raise ValueError(
            f"{parameter('landmarks', repr('all'))} compares all pairs of {N:,} objects; choose a "
            f"rule, e.g. 'meb', or use at most {most:,} objects"
        )
    rows = data.sample(int(rng.integers(2**62)) if most < N else 0, among)
    sampled, labels = data.take(rows, measure)
    pairs = data.run_pairs(_checked_pairs(data, sampled, None, run))
    codes = None if classes is None else codes_of(labels, classes)
    found = select_landmarks(rule, pairs, codes, rng, family)
    indices, objects = rows[found.indices], take(sampled, found.indices)
    compared_rows, compared = rows, found.values
    if compared is None:
        compared_rows, compared = indices, pairs.block(found.indices, found.indices)
    return _Found(
        replace(found, indices=indices, values=None),
        np.zeros(len(indices), dtype=np.intp) if codes is None else codes[found.indices],
        objects,
        measure.keep(objects, indices, N),
        compared if found.values is None else compared[found.indices],
        compared_rows,
        compared,
    )


def _given_landmarks(data: Dataset, rule: Given, run: Comparisons, classes: Any) -> _Found:
    """Return the landmarks that the user gave, in the same order."""
    measure, N = run.measure, data.survey().n_objects
    indices = check_landmarks(rule.indices, N)
    order = np.argsort(indices)
    back = np.argsort(order)
    ascending, labels = data.take(indices[order], measure)
    objects = take(ascending, back)
    kept = measure.keep(objects, indices, N)
    pairs = data.run_pairs(
        _checked_pairs(data, objects, measure.with_each_other(objects, kept), run)
    )
    places = np.arange(len(indices))
    between = pairs.block(places, places)
    codes = np.zeros(len(indices), dtype=np.intp)
    if classes is not None:
        codes = codes_of(labels[back], classes)
    return _Found(Selection(indices), codes, objects, kept, between, indices, between)


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


def _checked_pairs(data: Dataset, objects: Any, others: Any, run: Comparisons) -> Pairs:
    """Return the pairs of a sample; check the measure on it unless all objects were checked."""
    spent = data.check_comparisons
    if spent is None:
        objects, spent = try_symmetry(run.measure, objects, run.symmetrize, run.cache)
    run.counter.add(spent)
    return run.pairs(objects, others)
