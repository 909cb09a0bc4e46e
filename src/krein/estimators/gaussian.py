"""What IKFD and IKQD share: Gaussian classes, known by moments from one pass over the data."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Real
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from ..core.checks import Array
from ..core.covariance import Shrinkage
from ..core.family import Priors, Scorer
from ..core.gaussian import GaussianFamily
from ..core.moments import ClassMoments
from ..core.space import LandmarkSpace
from ..data.chunk import Chunk, Counted, LandmarkColumns
from ..data.dataset import Dataset
from .base import all_or_nothing
from .calibration import CalibrationSample, PassResult, cross_fit, held_out_temperature
from .classifier import LandmarkClassifier, codes_of
from .compound import Value
from .declared import CLASS_MOMENTS, LANDMARK_SET
from .schema import Schema
from .selection import LandmarkSet


@dataclass(frozen=True)
class Stream:
    """What further chunks are added to: the landmarks as first chosen, the moments so far."""

    landmarks: LandmarkSet
    moments: ClassMoments


@dataclass(frozen=True)
class MomentTerm:
    """Class moments of a chunk, and its part of the calibration sample."""

    columns: LandmarkColumns
    space: LandmarkSpace
    origin: Array
    classes: NDArray[Any]
    family: GaussianFamily
    sample: CalibrationSample

    def __call__(self, chunk: Chunk) -> Counted[PassResult]:
        """Compare the chunk with the landmarks."""
        found = self.columns.values(chunk)
        values, codes = found.value, codes_of(chunk.labels, self.classes)
        moments = self.family.moments(self.space, self.origin, values, codes, chunk.weights)
        indices = chunk.start + np.arange(len(codes))
        some = self.sample.among(indices)
        weights = None if chunk.weights is None else chunk.weights[some]
        return found.holding(PassResult(moments, indices[some], values[some], codes[some], weights))


def _streams(estimator: GaussianClassifier) -> bool:
    if estimator.calibrate:
        raise AttributeError(
            "calibrate=True needs all objects at once: use fit, or partial_fit without it"
        )
    return True


class GaussianClassifier(LandmarkClassifier):
    """A classifier that knows the data by their class moments alone."""

    shrinkage: Shrinkage
    priors: Any

    stream_: Stream

    _fitted: ClassVar[Schema] = {
        **LandmarkClassifier._fitted,
        # its landmarks are those before some were pruned
        "stream_": Value(
            Stream, {"landmarks": LANDMARK_SET, "moments": CLASS_MOMENTS}, scope="stream"
        ),
    }

    @abstractmethod
    def _family(self) -> GaussianFamily:
        """Return the family of models that the parameters ask for."""

    @abstractmethod
    def _set_model(self) -> None:
        """Turn the moments of the stream into the fitted attributes."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to objects X with labels y, in one pass over blocks of similarities.

        Parameters
        ----------
        X : sequence of N objects, or an N×N matrix of values
            What the measure compares; for a precomputed measure the values themselves, also N×m
            with `landmarks` the m rows that the columns stand for. Objects need not be in memory:
            the path of a file or a source out of `krein.io` (with its labels), a memory map, a
            Dask collection. Landmarks are then chosen among about 20,000 objects.
        y : array of N labels, or None where X has them
        sample_weight : array of N numbers, optional
            How many objects each one counts for. Landmarks are chosen among those above 0,
            whatever their weight.

        Returns
        -------
        self
        """
        with all_or_nothing(self), self._open(X, y, sample_weight) as data:
            return self._add(data, None, None)

    @available_if(_streams)
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add a chunk of objects, in constant memory.

        The landmarks are chosen from the first chunk. The result is that of `fit` on all chunks
        with the same landmarks, to rounding. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : sequence of n objects, or what else `fit` takes
            For a precomputed measure: n×n values among the first chunk, later n values to each
            object of the first chunk, or to each landmark.
        y : array of n labels
        classes : array of labels
            Every class there will be; needed in the first call.
        sample_weight : array of n numbers, optional

        Returns
        -------
        self
        """
        before = getattr(self, "stream_", None)
        if before is None and classes is None:
            raise ValueError("the first call of partial_fit needs classes=, all there will be")
        known = self.classes_ if classes is None else np.unique(classes)
        if before is not None and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"classes={known.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}"
            )
        with (
            all_or_nothing(self),
            self._open(X, y, sample_weight, reset=before is None) as data,
        ):
            return self._add(data, before, known)

    def _add(self, data: Dataset, before: Stream | None, classes: NDArray[Any] | None) -> Self:
        """Add the objects of a data set to what was fitted before, which may be nothing."""
        known = self._survey(data, classes)
        family = self._family()
        if before is None:
            chosen = self._choose(data)
            landmarks, columns, counter = chosen.landmarks, chosen.columns, chosen.counter
            self.kernel_evaluations_, self.kernel_reused_ = counter.compared, counter.reused
        else:
            landmarks = before.landmarks
            none = np.empty(0, dtype=np.intp)
            values = np.empty((0, len(landmarks.indices)))
            columns = self._comparing(self.measure_).columns(data, landmarks, none, values)
            self.n_samples_seen_ += known.n_objects
        sample = CalibrationSample.empty()
        if self.calibrate:
            sample = CalibrationSample.of(known.n_objects, landmarks.indices)
        space, m = landmarks.space, len(landmarks.indices)
        origin = space.origin() if before is None else before.moments.origin
        term = MomentTerm(columns, space, origin, self.classes_, family, sample)
        found = data.reduce(term, add, self._block_rows(m), m)
        moments = found.value.moments if before is None else before.moments + found.value.moments
        self.stream_ = Stream(landmarks, moments)
        self._set_model()
        self.temperature_ = self._temperature(family, found.value, sample)
        self.kernel_evaluations_ += found.compared
        self.kernel_reused_ += found.reused
        return self

    def _temperature(
        self, family: GaussianFamily, found: PassResult, sample: CalibrationSample
    ) -> float:
        """Return the temperature that the calibration sample asks for; 1 where it is empty."""
        if not self.calibrate:
            return 1.0
        all_landmarks = self.stream_.landmarks
        if sample.covers_all:
            used = np.flatnonzero(np.isin(all_landmarks.indices, self.landmarks_))
            landmarks = LandmarkSet(self.space_, self.landmarks_, None)
            values = found.values[:, used]
            return cross_fit(family, landmarks, values, found.codes, found.weights)
        space, total = all_landmarks.space, found.moments

        def learn(held: NDArray[np.bool_]) -> Scorer:
            weights = None if found.weights is None else found.weights[held]
            values, codes = found.values[held], found.codes[held]
            part = family.moments(space, total.origin, values, codes, weights)
            return self._scorer(family, total - part)

        return held_out_temperature(
            family, found.values, found.codes, found.weights, learn, total.weights
        )

    def _scorer(self, family: GaussianFamily, moments: ClassMoments) -> Scorer:
        """Return the scores of the model that these moments make, from values to all landmarks."""
        return family.scorer(self.stream_.landmarks.space, moments)

    def _priors(self) -> Priors:
        """Return the probability of each class before an object is seen, as the user gave it."""
        rho = self.shrinkage
        if rho != "oas" and not (isinstance(rho, Real) and 0 <= rho <= 1):
            raise ValueError(f"shrinkage is 'oas' or a number from 0 to 1; got {rho!r}")
        names = self.classes_.tolist()
        weights = self._class_weights()
        if self.priors is None:
            return Priors(None, weights)
        if isinstance(self.priors, str):
            if self.priors != "uniform":
                raise ValueError(f"priors are None, 'uniform' or numbers; got {self.priors!r}")
            return Priors(np.ones(len(names)), weights)
        numbers = self.priors
        if isinstance(numbers, dict):
            missing = [name for name in names if name not in numbers]
            if missing:
                raise ValueError(f"priors name no probability for class {missing[0]!r}")
            numbers = [numbers[name] for name in names]
        given = np.asarray(numbers, dtype=float)
        usable = (given > 0) & np.isfinite(given)
        if given.shape != (len(names),) or not usable.all():
            raise ValueError(f"priors must be {len(names)} positive numbers; got {given}")
        return Priors(given, weights)
