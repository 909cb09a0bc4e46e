"""Code shared by IKFD and IKQD: Gaussian classes, fitted to moments from one pass over the data."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from operator import add
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from ..compare.pairs import Counter
from ..core.calibration import fit_temperature
from ..core.checks import Array
from ..core.covariance import ChosenCovariance, LeftOutObjects
from ..core.family import Codes, Priors
from ..core.gaussian import GaussianFamily, LabelledValues, choose_power
from ..core.space import POWERS, LandmarkSpace, check_level
from ..data.dataset import Chunk, Counted, Dataset, LandmarkColumns
from .base import all_or_nothing
from .calibration import CalibrationSample, PassResult
from .classifier import LandmarkClassifier, codes_of
from .fittedmodels import FittedGaussian, Stream
from .selection import LandmarkSet

CHOICE_LANDMARKS = 1_000
"""With more landmarks than this, the power of a dissimilarity is chosen on a subset of them."""


@dataclass(frozen=True)
class MomentTerm:
    """Class moments of a chunk in each space, and its part of the calibration sample."""

    columns: LandmarkColumns
    spaces: list[LandmarkSpace]
    origins: list[Array]
    classes: NDArray[Any]
    family: GaussianFamily
    sample: CalibrationSample
    seen: int  # objects of earlier chunks

    def __call__(self, chunk: Chunk) -> Counted[PassResult]:
        """Compare the chunk with the landmarks."""
        found = self.columns.values(chunk)
        values, codes = found.value, codes_of(chunk.labels, self.classes)
        moments = [
            self.family.moments(space, origin, values, codes, chunk.weights)
            for space, origin in zip(self.spaces, self.origins, strict=True)
        ]
        indices = self.seen + chunk.start + np.arange(len(codes))
        some = self.sample.among(indices)
        weights = None if chunk.weights is None else chunk.weights[some]
        return found.holding(PassResult(moments, indices[some], values[some], codes[some], weights))


def _streams(estimator: GaussianClassifier) -> bool:
    if estimator.calibrate:
        raise AttributeError(
            "calibrate=True needs all objects at once: use fit, or partial_fit without it"
        )
    return True


class GaussianClassifier(FittedGaussian, LandmarkClassifier):
    """A classifier that needs only the class moments of the data."""

    shrinkage: float | Literal["auto", "oas"]
    priors: Any

    @abstractmethod
    def _family(self) -> GaussianFamily:
        """Return the family of models that the parameters describe."""

    @abstractmethod
    def _set_model(self, family: GaussianFamily, sample: LabelledValues) -> GaussianFamily:
        """Turn the moments of the stream into the fitted attributes; return the family used.

        If landmarks were pruned, the family has a new scale and new offsets.
        """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to objects X with labels y, in one pass over blocks of similarities.

        Parameters
        ----------
        X : sequence of N objects, or an N×N matrix of values
            The objects to compare; for a precomputed measure, the values, which may also be N×m
            with `landmarks` set to the m rows that the columns stand for. Objects need not be in
            memory: X may be the path of a file, a source from `krein.io` (with its labels), a
            memory map, or a Dask collection. Landmarks are then chosen among about 20,000 objects.
        y : array of N labels, or None if X contains them
        sample_weight : array of N numbers, optional
            Number of objects that each one counts for. Landmarks are chosen among objects of
            positive weight, regardless of its size.

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

        The landmarks are chosen from the first chunk. Up to rounding, the result is the same as
        `fit` on all chunks with the same landmarks. A call that fails leaves the model unchanged.

        Parameters
        ----------
        X : sequence of n objects, or anything else that `fit` accepts
            For a precomputed measure, the first chunk is n×n values; later chunks contain the
            values to each object of the first chunk, or to each landmark.
        y : array of n labels
        classes : array of labels
            All classes that will occur; required in the first call.
        sample_weight : array of n numbers, optional

        Returns
        -------
        self
        """
        before = getattr(self, "stream_", None)
        if before is None and classes is None:
            raise ValueError(
                "the first call of partial_fit needs classes=, with all classes that will occur"
            )
        known = self.classes_ if classes is None else np.unique(classes)
        if before is not None and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"classes={known.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}"
            )
        if before is not None and before.passed is None:
            raise ValueError(
                "this model was calibrated and then loaded from a file, which does not store the "
                "state that further chunks need: use fit, or start again with partial_fit"
            )
        with (
            all_or_nothing(self),
            self._open(X, y, sample_weight, reset=before is None) as data,
        ):
            return self._add(data, before, known)

    def _add(self, data: Dataset, before: Stream | None, classes: NDArray[Any] | None) -> Self:
        """Add the objects of a data set to the moments so far, if there are any."""
        known = self._survey(data, classes)
        family = self._family()
        if before is None:
            chosen = self._choose(data)
            landmarks, columns = chosen.landmarks, chosen.columns
            self.kernel_evaluations_ = chosen.counter.compared
            self.kernel_reused_ = chosen.counter.reused
            powers = self._powers(landmarks.space, chosen.landmark_classes)
        else:
            landmarks, powers = before.landmarks, before.powers
            none = np.empty(0, dtype=np.intp)
            values = np.empty((0, len(landmarks.indices)))
            columns = self._comparing(self.measure_).columns(data, landmarks, none, values)
            self.n_samples_seen_ += known.n_objects
        sample = CalibrationSample.empty()
        if self.calibrate or self.shrinkage == "auto":
            sample = CalibrationSample.small(self.n_samples_seen_, landmarks.indices)
        spaces, m = [landmarks.space.with_power(q) for q in powers], len(landmarks.indices)
        earlier = None if before is None else before.passed
        if earlier is None:
            origins = [space.origin() for space in spaces]
        else:
            origins = [moments.origin for moments in earlier.moments]
        seen = self.n_samples_seen_ - known.n_objects
        term = MomentTerm(columns, spaces, origins, self.classes_, family, sample, seen)
        counter = Counter()
        passed = data.reduce(term, add, self._block_rows(m), m, counter)
        passed = passed if earlier is None else earlier.within(sample) + passed
        some = LabelledValues.of(landmarks.space, passed.values, passed.codes, passed.weights)
        best, least = 0, family
        if self.shrinkage == "auto":
            choices = [
                family.chosen(space, moments, some)
                for space, moments in zip(spaces, passed.moments, strict=True)
            ]
            losses = [np.inf if np.isnan(choice.loss) else choice.loss for choice in choices]
            best = int(np.argmin(losses))
            least = choices[best].family
        landmarks = LandmarkSet(spaces[best], landmarks.indices, landmarks.objects)
        self.stream_ = Stream(landmarks, passed.moments[best], powers, passed)
        used = self._set_model(least, some)
        self.temperature_ = self._temperature(used, some)
        self.kernel_evaluations_ += counter.compared
        self.kernel_reused_ += counter.reused
        return self

    def _to_keep(self) -> dict[str, Any]:
        found = super()._to_keep()
        if self.calibrate:  # there are no further chunks, so the sample's values can be dropped
            found["stream_"] = replace(self.stream_, passed=None)
        return found

    def _powers(self, space: LandmarkSpace, codes: Codes) -> list[float]:
        """Return the powers of a dissimilarity to try: only one if it is known beforehand."""
        if space.kind == "similarity":
            check_level(space.landmark_values)
            return [1.0]
        if self.shrinkage != "auto":
            return [1.0]
        if len(space.landmark_values) <= CHOICE_LANDMARKS:
            return list(POWERS)
        # decompose the values of all landmarks only once
        return [choose_power(self._family(), space, codes, CHOICE_LANDMARKS // 2)]

    def _temperature(self, family: GaussianFamily, sample: LabelledValues) -> float:
        """Return the best temperature for the left-out scores; 1 if no object can be left out."""
        if not self.calibrate:
            return 1.0
        scores, objects = self._left_out_scores(family, sample)
        if len(objects) == 0:
            return 1.0
        return fit_temperature(scores, objects.codes, family.log_proba, objects.weights)

    def _left_out_scores(
        self, family: GaussianFamily, sample: LabelledValues
    ) -> tuple[Array, LeftOutObjects]:
        """Return the left-out scores of the sample."""
        space, moments = self.stream_.landmarks.space, self.stream_.moments
        return family.left_out_scores(space, moments, sample)

    def _priors(self) -> Priors:
        """Return the prior probability of each class, from the parameter."""
        rho = self.shrinkage
        named = isinstance(rho, str) and rho in ("auto", "oas")
        if not named and not (isinstance(rho, Real) and 0 <= rho <= 1):
            raise ValueError(
                f"shrinkage must be 'auto', 'oas' or a number from 0 to 1; got {rho!r}"
            )
        names = self.classes_.tolist()
        weights = self._class_weights()
        if self.priors is None:
            return Priors(None, weights)
        if isinstance(self.priors, str):
            if self.priors != "uniform":
                raise ValueError(f"priors must be None, 'uniform' or numbers; got {self.priors!r}")
            return Priors(np.ones(len(names)), weights)
        numbers = self.priors
        if isinstance(numbers, dict):
            missing = [name for name in names if name not in numbers]
            if missing:
                raise ValueError(f"priors contain no probability for class {missing[0]!r}")
            numbers = [numbers[name] for name in names]
        given = np.asarray(numbers, dtype=float)
        usable = (given > 0) & np.isfinite(given)
        if given.shape != (len(names),) or not usable.all():
            raise ValueError(f"priors must be {len(names)} positive numbers; got {given}")
        return Priors(given, weights)


def target_of(family: GaussianFamily) -> str | list[str]:
    """Return the shrinkage target, as a list if each class has its own."""
    each = family.shrinkage if isinstance(family.shrinkage, tuple) else (family.shrinkage,)
    names: list[str] = [x.target if isinstance(x, ChosenCovariance) else "identity" for x in each]
    return names if isinstance(family.shrinkage, tuple) else names[0]
