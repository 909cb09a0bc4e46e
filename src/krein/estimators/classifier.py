"""Code that classifiers share during fit: labels, weights, data sets, landmarks."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, column_or_1d

from ..compare.pairs import block_rows
from ..core.checks import Array, refuse_missing
from ..core.family import ClassWeights, Codes, Family
from ..core.moments import ClassMoments
from ..core.space import LandmarkSpace
from ..data.dataset import (
    Chunk,
    Counted,
    Dataset,
    FeatureBlock,
    LandmarkColumns,
    Survey,
    encode,
    is_dask,
)
from ..data.opening import in_memory, open_data
from ..landmarks import Rule, get_rule
from ..measures import Measure, get_measure
from ..measures.base import refuse_masked, unframed
from .base import LandmarkEstimator
from .fitted import FittedClassifier
from .selection import Comparing, LandmarkChoice, choose_landmarks

MOST_OBJECTS = 1e15
"""In a larger sum of weights, single objects would be lost in rounding."""


class LandmarkClassifier(FittedClassifier, ClassifierMixin, LandmarkEstimator):
    """A classifier that can be fitted: checks labels and weights, opens data, chooses landmarks."""

    class_weight: Any
    multiclass: str
    calibrate: bool

    @abstractmethod
    def _family(self) -> Family:
        """Return the family of models that the parameters describe, for `classes_`."""

    def _open(self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> Dataset:
        """Return X as a data set of labelled objects."""
        measure = get_measure(self.measure, self.measure_params) if reset else self.measure_
        if self.multiclass not in ("joint", "ovr"):
            raise ValueError(f"multiclass must be 'joint' or 'ovr'; got {self.multiclass!r}")
        if in_memory(X, measure):
            if y is None:
                name = type(self).__name__
                raise ValueError(f"{name} requires y to be passed, but the target y is None")
            X = self._validated(X, measure, reset=reset)
            refuse_masked(y, "label")
            y = unframed(y)
            refuse_missing(y)
            y = column_or_1d(y, warn=True)
            if not hasattr(X, "__fspath__") and not isinstance(X, str) and _num_samples(X) == 0:
                raise ValueError(f"there are no objects for {type(self).__name__} to learn from")
        if sample_weight is not None and not is_dask(sample_weight):
            refuse_masked(sample_weight, "sample_weight")
            n = len(np.asarray(sample_weight)) if y is None else len(y)
            sample_weight = _check_sample_weight(
                sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
            )
        data = open_data(
            X,
            y,
            sample_weight,
            measure=measure,
            n_jobs=self.n_jobs,
            cache=self.cache,
            verbose=self.verbose,
            symmetrize=self.symmetrize,
        )
        self.measure_ = data.measure
        return data

    def _survey(self, data: Dataset, classes: Any = None) -> Survey:
        """Survey the labels, and refuse them if no classes can be learned."""
        name, found = type(self).__name__, data.survey()
        if found.n_objects == 0:
            raise ValueError(f"there are no objects for {name} to learn from")
        if found.classes.dtype.kind not in "biuUS":  # whole numbers and strings are classes
            assert_all_finite(found.classes, input_name="y")
            check_classification_targets(found.classes)
        known = found if classes is None else found.among(np.unique(classes))
        if len(known.classes) < 2:
            raise ValueError(
                f"{name} needs at least two classes; y contains one class: "
                f"{known.classes.tolist()[0]!r}"
            )
        if not float(found.weights.sum()) <= MOST_OBJECTS:
            raise ValueError(
                f"sample_weight sums to {found.weights.sum():.3g} for {found.n_objects} objects: "
                "weights count objects, so scale them to sum to about that number"
            )
        if classes is None:
            present = int(np.count_nonzero(found.weights > 0))
            if present < 2:
                raise ValueError(f"{name} needs at least two classes with sample_weight above 0")
            if found.weights.sum() - present < 1 and found.weighted > present:
                raise ValueError(
                    f"sample_weight sums to {found.weights.sum():.3g} for {found.n_objects} "
                    "objects: weights count objects, so scale them to sum to about that number"
                )
        self.classes_ = known.classes
        return known

    def _comparing(self, measure: Measure) -> Comparing:
        return Comparing(measure, self.symmetrize, self.cache, self.n_jobs, self.verbose)

    def _rule(self, data: Dataset) -> Rule:
        """Return the rule that chooses the landmarks of a data set."""
        return get_rule(self.landmarks, self.n_landmarks)

    def _choose(self, data: Dataset) -> LandmarkChoice:
        """Choose landmarks for this classifier, among objects of positive weight."""
        measure = self.measure_
        chosen = choose_landmarks(
            data,
            self._rule(data),
            self._comparing(measure),
            self._rng(),
            classes=self.classes_,
            family=self._family(),
            rank=self.rank,
        )
        self.selection_ = chosen.selection
        self.n_objects_ = self.n_samples_seen_ = data.survey().n_objects
        if measure.accepts == "vectors":
            self.n_features_in_ = np.shape(chosen.landmarks.objects)[1]
        return chosen

    def _block_rows(self, n_landmarks: int) -> int:
        return block_rows(self.measure_, n_landmarks)

    def _class_weights(self) -> ClassWeights:
        """Return the cost of errors on each class, from the parameter."""
        if self.class_weight is None:
            return ClassWeights()
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(
                    f"class_weight must be 'balanced' or a dict; got {self.class_weight!r}"
                )
            return ClassWeights("balanced")
        names = self.classes_.tolist()
        unknown = [name for name in self.class_weight if name not in names]
        if unknown:
            raise ValueError(f"class_weight names {unknown[0]!r}, which is not among {names}")
        given = np.array([self.class_weight.get(name, 1.0) for name in names], dtype=float)
        if not ((given > 0) & np.isfinite(given)).all():
            raise ValueError(f"class_weight must be positive numbers; got {self.class_weight!r}")
        return ClassWeights(given)


def codes_of(labels: Any, classes: NDArray[Any]) -> Codes:
    """Return the class codes of a chunk's labels."""
    return encode(np.asarray(labels), classes)


@dataclass(frozen=True)
class FeatureTerm:
    """Values of a chunk, as input to basis functions, and the moments of its coordinates."""

    columns: LandmarkColumns
    space: LandmarkSpace
    origin: Array
    classes: NDArray[Any]
    class_weights: Array | None
    by_class: bool = False  # whether moments are weighted and separate for each class

    def __call__(self, chunk: Chunk) -> Counted[FeatureBlock]:
        """Compare the chunk with the landmarks."""
        found = self.columns.values(chunk)
        codes = codes_of(chunk.labels, self.classes)
        weights = chunk.weights
        if self.class_weights is not None:
            each = self.class_weights[codes]
            weights = each if weights is None else weights * each
        B = self.space.coordinates(found.value)
        moments = ClassMoments.of(
            B,
            codes,
            len(self.classes),
            origin=self.origin,
            sample_weight=chunk.weights if self.by_class else None,
            by_class=self.by_class,
        )
        return found.holding(FeatureBlock(found.value, codes, weights, moments))
