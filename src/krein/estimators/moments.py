"""What IKFD and IKQD share: Gaussian classes, known by moments from one pass over the data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Real
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from ..core.checks import Array, Indices
from ..core.covariance import Shrinkage
from ..core.fisher import LinearDiscriminant
from ..core.moments import ClassMoments
from ..core.ordered import ordered_sum
from ..core.quadratic import QuadraticDiscriminant
from ..core.space import LandmarkSpace
from ..data import CANDIDATES, Collection, Counted
from .base import (
    Codes,
    LandmarkSet,
    all_or_nothing,
    calm_blas,
    map_training,
)
from .classifier import LandmarkClassifier, Scorer
from .elsewhere import Chosen, MomentTerm, again
from .witnesses import NOBODY, Call, Summed

Chunk = Callable[[Indices, Array], Summed]


@dataclass(frozen=True)
class Stream:
    """What further chunks are added to: the landmarks as first chosen, the moments so far."""

    landmarks: LandmarkSet
    moments: ClassMoments


def _streams(estimator: MomentClassifier) -> bool:
    if estimator.calibrate:
        raise AttributeError(
            "calibrate=True needs all objects at once: use fit, or partial_fit without it"
        )
    return True


class MomentClassifier(LandmarkClassifier):
    """A classifier that knows the data by their class moments alone."""

    shrinkage: Shrinkage
    priors: Any
    _by_class: ClassVar[bool]

    stream_: Stream

    @abstractmethod
    def _discriminant(self, moments: ClassMoments) -> LinearDiscriminant | QuadraticDiscriminant:
        """Return the model of these moments."""

    @abstractmethod
    def _conclude(self) -> None:
        """Turn the moments of the stream into the fitted attributes."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to objects X with labels y, in one pass over blocks of similarities.

        Parameters
        ----------
        X : sequence of N objects, or an N×N matrix of values
            What the measure compares; for a precomputed measure the values themselves. Objects
            that are not in memory too: the path of a file or a source out of `krein.io` (with its
            labels), a memory map, a Dask collection. Their landmarks are chosen among about
            20,000 objects.
        y : array of N labels, or None where X has them
        sample_weight : array of N numbers, optional
            How many objects each one counts for. Landmarks are chosen among those above 0,
            whatever their weight.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        data = self._elsewhere(X, y, sample_weight)
        if data is not None:
            with data:
                whole = data.in_memory(CANDIDATES)
                return self._fit_elsewhere(data) if whole is None else self._fit(*whole, None)
        X, codes, weights, self.classes_ = self._validated(X, y, sample_weight)
        self._priors(np.bincount(codes, minlength=len(self.classes_)).astype(float))  # refuse early
        pairs = self._open(X)
        self.n_objects_ = self.n_samples_seen_ = len(pairs)
        selection = self._choose(pairs, codes, weights)
        landmarks = self._span(pairs, selection)
        self.selection_ = replace(selection, values=None)
        call = self._call(len(pairs), landmarks)
        found = self._sum(
            lambda f: map_training(pairs, landmarks, f), landmarks, codes, weights, call
        )
        self._remember(landmarks, found.moments)
        with calm_blas(len(landmarks.indices)):
            self._conclude()
            self.temperature_ = self._temperature(found, call, weights)
        self.kernel_evaluations_, self.kernel_reused_ = pairs.evaluations, pairs.reused
        return self

    def _fit_elsewhere(self, data: Collection) -> Self:
        """Fit to objects in files or on a cluster, beside which the measure runs."""
        known = self._surveyed(data)
        self.classes_ = known.classes
        self._priors(known.counts.astype(float))  # refuse early
        chosen = self._chosen(data, known)
        landmarks = chosen.landmarks
        call = self._call(known.n_objects, landmarks)
        total, spent = self._sum_elsewhere(data, chosen, known.n_objects, call)
        self._remember(landmarks, total.value.moments)
        with calm_blas(len(landmarks.indices)):
            self._conclude()
            self.temperature_ = self._temperature(total.value, call, None)
        self.kernel_evaluations_ = chosen.pairs.evaluations + total.evaluated + spent
        self.kernel_reused_ = chosen.pairs.reused + total.reused
        return self

    def _sum_elsewhere(
        self, data: Collection, chosen: Chosen, n_objects: int, call: Call
    ) -> tuple[Counted[Summed], int]:
        """Return the moments of a collection, and how many pairs the plan for them took."""
        space = chosen.landmarks.space
        term = MomentTerm(
            chosen.columns, space, space.origin(), self.classes_, self._by_class, call
        )
        work, spent = chosen.plan(data, term, n_objects)
        return data.total(term, chosen.grid, add, work), spent

    @available_if(_streams)
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add a chunk of objects, in constant memory.

        The landmarks are chosen from the first chunk. The result is that of `fit` on all chunks
        with the same landmarks, to rounding. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : sequence of n objects
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
        with all_or_nothing(self):
            data = self._elsewhere(X, y, sample_weight)
            if data is None:
                return self._add(X, y, classes, sample_weight)
            with data:
                whole = data.in_memory(CANDIDATES)
                if whole is not None:
                    return self._add(*whole, classes, None)
                return self._add_elsewhere(data, classes)

    def _add(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        first, known = self._known_classes(classes)
        X, codes, weights, self.classes_ = self._validated(
            X, y, sample_weight, classes=known, reset=first
        )
        self.temperature_ = 1.0
        if first:
            pairs = self._open(X)
            selection = self._choose(pairs, codes, weights)
            landmarks = self._span(pairs, selection)
            found = self._sum(
                lambda f: map_training(pairs, landmarks, f), landmarks, codes, weights, NOBODY
            )
            moments = found.moments
            self.selection_ = replace(selection, values=None)
            self.n_objects_ = len(pairs)
            self.n_samples_seen_ = self.kernel_evaluations_ = self.kernel_reused_ = 0
        else:
            landmarks = self.stream_.landmarks
            pairs = self._open_new(X, landmarks)
            columns = np.arange(pairs.shape[1])
            found = self._sum(
                lambda f: pairs.map_columns(f, columns), landmarks, codes, weights, NOBODY
            )
            moments = self.stream_.moments + found.moments
        self.n_samples_seen_ += len(pairs)
        self._remember(landmarks, moments)
        with calm_blas(len(landmarks.indices)):
            self._conclude()
        self.kernel_evaluations_ += pairs.evaluations
        self.kernel_reused_ += pairs.reused
        return self

    def _known_classes(self, classes: Any) -> tuple[bool, NDArray[Any]]:
        """Whether this is the first call of partial_fit, and all classes there will be."""
        first = not hasattr(self, "stream_")
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs classes=, all there will be")
        known = self.classes_ if classes is None else np.unique(classes)
        if not first and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"classes={known.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}"
            )
        return first, known

    def _add_elsewhere(self, data: Collection, classes: Any) -> Self:
        first, names = self._known_classes(classes)
        known = self._surveyed(data, names)
        before = None if first else self.stream_
        self.classes_, self.temperature_ = known.classes, 1.0
        if before is None:
            chosen = self._chosen(data, known)
            self.n_samples_seen_ = self.kernel_evaluations_ = self.kernel_reused_ = 0
        else:
            chosen = again(self, data, before.landmarks, known)
        total, spent = self._sum_elsewhere(data, chosen, known.n_objects, NOBODY)
        moments = total.value.moments
        moments = moments if before is None else before.moments + moments
        self.n_samples_seen_ += known.n_objects
        self._remember(chosen.landmarks, moments)
        with calm_blas(len(chosen.landmarks.indices)):
            self._conclude()
        self.kernel_evaluations_ += chosen.pairs.evaluations + total.evaluated + spent
        self.kernel_reused_ += chosen.pairs.reused + total.reused
        return self

    def _remember(self, landmarks: LandmarkSet, moments: ClassMoments) -> None:
        """Keep the moments, and of the landmarks what does not grow with the data."""
        self.stream_ = Stream(replace(landmarks, values=None), moments)

    def _sum(
        self,
        blocks: Callable[[Chunk], Iterable[Summed]],
        landmarks: LandmarkSet,
        codes: Codes,
        weights: Array | None,
        call: Call,
    ) -> Summed:
        """Return the sum over all blocks that `blocks` maps a function of (rows, values) to."""
        space = landmarks.space
        origin = space.origin()
        n_classes = len(self.classes_)

        def chunk(rows: Indices, values: Array) -> Summed:
            moments = ClassMoments.of(
                space.coordinates(values),
                codes[rows],
                n_classes,
                origin=origin,
                sample_weight=None if weights is None else weights[rows],
                by_class=self._by_class,
            )
            return Summed.of(moments, rows, values, codes[rows], call)

        return ordered_sum(blocks(chunk), add)

    def _call(self, n_objects: int, landmarks: LandmarkSet) -> Call:
        return Call.of(n_objects, landmarks.indices) if self.calibrate else NOBODY

    def _temperature(self, found: Summed, call: Call, weights: Array | None) -> float:
        """Return the temperature that the witnesses of a pass ask for; 1 where none has a say."""
        if not self.calibrate:
            return 1.0
        own = None if weights is None else weights[found.indices]
        if call.everyone:
            columns = np.flatnonzero(np.isin(self.stream_.landmarks.indices, self.landmarks_))
            used = LandmarkSet(self.space_, self.landmarks_, None)
            return self._cross_fit(used, found.values[:, columns], found.codes, own)
        space = self.stream_.landmarks.space

        def learn(held: NDArray[np.bool_]) -> Scorer:
            part = ClassMoments.of(
                space.coordinates(found.values[held]),
                found.codes[held],
                len(self.classes_),
                origin=found.moments.origin,
                sample_weight=None if own is None else own[held],
                by_class=self._by_class,
            )
            return self._scorer(found.moments - part)

        return self._held_out(found.values, found.codes, own, learn, found.moments.weights)

    def _scorer(self, moments: ClassMoments) -> Scorer:
        """Return the scores of the model that these moments make of the same landmarks."""
        space, model = self.stream_.landmarks.space, self._discriminant(moments)
        return lambda V: model.scores(space.coordinates(V))

    def _learn(
        self, space: LandmarkSpace, own: Codes, values: Array, codes: Codes, weights: Array | None
    ) -> Scorer:
        everyone = np.arange(len(values))
        landmarks = LandmarkSet(space, everyone, None)
        found = self._sum(lambda f: [f(everyone, values)], landmarks, codes, weights, NOBODY)
        model = self._discriminant(found.moments)
        return lambda V: model.scores(space.coordinates(V))

    def _priors(self, counts: Array) -> Array:
        """Return the probability of each class before an object is seen (C,).

        The frequencies or what the user gave, times the class weights: what an error costs
        moves the boundary, it says nothing about the covariance.
        """
        rho = self.shrinkage
        if rho != "oas" and not (isinstance(rho, Real) and 0 <= rho <= 1):
            raise ValueError(f"shrinkage is 'oas' or a number from 0 to 1; got {rho!r}")
        names = self.classes_.tolist()
        if self.priors is None:
            given = counts
        elif isinstance(self.priors, str):
            if self.priors != "uniform":
                raise ValueError(f"priors are None, 'uniform' or numbers; got {self.priors!r}")
            given = np.ones(len(names))
        else:
            numbers = self.priors
            if isinstance(numbers, dict):
                missing = [name for name in names if name not in numbers]
                if missing:
                    raise ValueError(f"priors name no probability for class {missing[0]!r}")
                numbers = [numbers[name] for name in names]
            given = np.asarray(numbers, dtype=float)
            fit_for_use = (given > 0) & np.isfinite(given)
            if given.shape != (len(names),) or not fit_for_use.all():
                raise ValueError(f"priors must be {len(names)} positive numbers; got {given}")
        weights = self._class_weights(counts)
        given = given if weights is None else given * weights
        return given / given.sum()
