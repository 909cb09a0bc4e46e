"""What every estimator shares: objects in, landmarks chosen, coordinates out, a file to keep."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import add
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from ..compare import ObjectPairs, Pairs, is_precomputed, open_new_pairs, open_pairs
from ..compare.workers import in_order, single_blas
from ..core.checks import Array, Indices
from ..core.moments import ClassMoments
from ..core.ordered import ordered_sum
from ..core.space import LandmarkSpace
from ..core.spectrum import Signature
from ..landmarks import Selection, get_rule, select_landmarks
from ..measures import get_measure, take
from ..measures.vectors import Vectors

Result = TypeVar("Result")
Codes = NDArray[Any]  # whole numbers 0…C−1, in any type


@dataclass(frozen=True)
class LandmarkSet:
    """Landmarks, and the space they span."""

    space: LandmarkSpace
    indices: Indices  # rows of the objects they were chosen from
    objects: Any  # the landmarks themselves; None where values are given
    values: Array | None = None  # (N, m) of the training objects, where the rule has found them


@contextmanager
def calm_blas(size: int) -> Iterator[None]:
    """Hold BLAS to one thread for matrices of this size, unless they are large.

    Eigenproblems of some hundred rows gain little from a second thread and lose by the factor
    of tens where the machine is busy: the threads wait for each other at every column.
    """
    if size > 2000:
        yield
    else:
        with single_blas():
            yield


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Leave the estimator as it was where what is done inside fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def map_training(
    pairs: Pairs, landmarks: LandmarkSet, function: Callable[[Indices, Array], Result]
) -> Iterator[Result]:
    """Apply `function(rows, values)` to all training rows against the landmarks, once each."""
    known = landmarks.values
    if known is not None:
        n, grid = len(pairs), pairs.block_rows(known.shape[1])

        def block(start: int) -> Result:
            rows = np.arange(start, min(start + grid, n))
            return function(rows, np.ascontiguousarray(known[rows]))  # BLAS rounds by the layout

        return in_order(block, range(0, n, grid), pairs.workers)
    return pairs.map_columns(function, landmarks.indices, core=landmarks.space.core)


def training_values(pairs: Pairs, landmarks: LandmarkSet) -> Array:
    """Return the values (N, m) of all training objects to the landmarks. O(N·m) memory."""
    if landmarks.values is not None:
        return np.ascontiguousarray(landmarks.values)  # BLAS rounds by the layout
    return np.concatenate(list(map_training(pairs, landmarks, lambda _, values: values)))


def moments_of(
    space: LandmarkSpace, values: Array, codes: Codes, n_classes: int, grid: int
) -> ClassMoments:
    """Return the moments of the coordinates, block by block as they would come from a file."""
    origin = space.origin()

    def block(start: int) -> ClassMoments:
        part = slice(start, start + grid)
        B = space.coordinates(values[part])
        return ClassMoments.of(B, codes[part], n_classes, origin=origin)

    return ordered_sum(map(block, range(0, len(values), grid)), add)


class LandmarkEstimator(BaseEstimator):
    """An estimator whose view of an object is its similarities to the landmarks.

    A subclass declares in `__init__` the parameters named here and its own.
    """

    measure: Any
    measure_params: dict[str, Any] | None
    landmarks: Any
    n_landmarks: int | None
    rank: int | None
    symmetrize: bool
    n_jobs: int | None
    cache: str | os.PathLike[str] | None
    verbose: int
    random_state: Any

    space_: LandmarkSpace
    landmarks_: Indices
    landmark_objects_: Any
    selection_: Selection
    kernel_evaluations_: int
    kernel_reused_: int
    """How many values came out of the cache instead of being compared."""
    eigenvalues_: Array
    signature_: Signature
    n_objects_: int
    """How many objects the landmarks were chosen from."""
    n_samples_seen_: int
    """How many objects were fitted to, all chunks together."""

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to objects X."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, whole or not at all; `krein.load` reads it."""
        from .persist import save

        save(self, path)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return X, checked as scikit-learn does where its rows are vectors or similarities."""
        if isinstance(X, Pairs):
            return X
        precomputed = is_precomputed(self.measure)
        if precomputed and isinstance(X, str | os.PathLike | np.memmap):
            return X  # a file of values, read by block and checked there
        if precomputed and not reset:
            return check_array(X, dtype=None, estimator=self)  # n × N or n × m
        if precomputed:  # its entries are checked where it is opened, and named
            return validate_data(self, X, reset=True, dtype=None, ensure_all_finite=False)
        if not isinstance(get_measure(self.measure, self.measure_params), Vectors):
            return X
        try:
            return validate_data(self, X, reset=reset, dtype=np.float64)
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ValueError(
                f"{error}: the measure {self.measure!r} compares vectors of numbers; name one for "
                "such objects, e.g. measure='levenshtein' (krein.measures.available() lists them)"
            ) from error

    def _open(self, X: Any) -> Pairs:
        """Return the pairs of the training objects X."""
        return open_pairs(self.measure, X, **self._opening())

    def _open_new(self, X: Any, landmarks: LandmarkSet | None = None) -> Pairs:
        """Return the pairs of new objects X with the landmarks, the fitted ones by default."""
        check_is_fitted(self)
        if landmarks is None:
            landmarks = LandmarkSet(self.space_, self.landmarks_, self.landmark_objects_)
        if isinstance(X, Pairs):  # of new objects with the training objects
            return open_new_pairs(self.measure, X, landmarks.indices)
        precomputed = is_precomputed(self.measure)
        X = self._checked(X, reset=False)
        if precomputed and isinstance(X, np.ndarray) and X.ndim == 2:
            N, m = self.n_objects_, len(landmarks.indices)
            if X.shape[1] not in (N, m):
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {N} "
                    f"features as input: the values of new objects are n × {N}, to all training "
                    f"objects, or n × {m}, to the landmarks alone; got {X.shape[0]} × {X.shape[1]}"
                )
        return open_new_pairs(
            self.measure,
            X,
            landmarks.indices if precomputed else landmarks.objects,
            n_train=self.n_objects_ if precomputed else None,
            **self._opening(),
        )

    def _opening(self) -> dict[str, Any]:
        names = ("measure_params", "n_jobs", "cache", "verbose", "symmetrize")
        return {name: getattr(self, name) for name in names}

    def _rng(self) -> np.random.Generator:
        if isinstance(self.random_state, np.random.RandomState):
            return np.random.default_rng(self.random_state.randint(2**31))
        return np.random.default_rng(self.random_state)

    def _choose(self, pairs: Pairs, codes: Codes | None) -> Selection:
        """Choose landmarks by the rule asked for."""
        rule = get_rule(self.landmarks, self.n_landmarks)
        return select_landmarks(rule, pairs, codes, self._rng())

    def _span(self, pairs: Pairs, selection: Selection) -> LandmarkSet:
        """Return the landmarks of a selection with the space they span: m² values."""
        chosen = selection.indices
        known = selection.values
        core = pairs.block(chosen, chosen) if known is None else known[chosen]
        with calm_blas(len(chosen)):
            space = LandmarkSpace.of(core, pairs.kind, rank=self.rank)
        objects = take(pairs.objects, chosen) if isinstance(pairs, ObjectPairs) else None
        return LandmarkSet(space, chosen, objects, known)

    def _adopt(self, landmarks: LandmarkSet) -> None:
        self.space_ = landmarks.space
        self.landmarks_ = landmarks.indices
        self.landmark_objects_ = landmarks.objects

    def _set_spectrum(self, eigenvalues: Array) -> None:
        """Set what is known of the approximated kernel from its non-zero eigenvalues."""
        p = int((eigenvalues > 0).sum())
        q = len(eigenvalues) - p
        self.eigenvalues_ = eigenvalues
        self.signature_ = Signature(p, q, max(self.n_samples_seen_ - p - q, 0))

    def _map_new(self, X: Any, function: Callable[[Array], Array]) -> Array:
        """Apply `function(values)` to the values of new objects to the landmarks; stack."""
        pairs = self._open_new(X)
        columns = np.arange(pairs.shape[1])
        return np.concatenate(list(pairs.map_columns(lambda _, V: function(V), columns)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.measure)
        return tags
