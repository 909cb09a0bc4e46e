"""A fitted model: what a model file contains, and how it predicts.

Nothing here needs scikit-learn. An estimator is a model that can also be fitted.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import block_rows
from ..compare.workers import limit_blas_threads
from ..core.checks import Array, Indices
from ..core.space import LandmarkSpace, Signature
from ..data.dataset import Chunk, LandmarkColumns
from ..data.opening import is_empty, map_objects
from ..landmarks import Selection
from ..measures import Measure
from .compound import IfThere, Objects, SignatureOf
from .declared import LANDMARK_SPACE, SELECTION
from .schema import LabelArray, Names, Real, Schema, Whole, floats, indices

NO_ROWS: Indices = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class OfValues:
    """Applies a function of the values to the landmarks to a chunk of objects."""

    columns: LandmarkColumns
    function: Callable[[Array], NDArray[Any]]

    def __call__(self, chunk: Chunk) -> NDArray[Any]:
        """Compare the chunk with the landmarks."""
        with limit_blas_threads():
            return self.function(self.columns.values(chunk).value)


class FittedModel:
    """A model that describes objects by their similarities to the landmarks."""

    measure: Any
    measure_params: dict[str, Any] | None
    symmetrize: bool
    n_jobs: int | None = None
    cache: str | os.PathLike[str] | None = None

    measure_: Measure
    """The measure, with the settings derived from the training objects."""
    space_: LandmarkSpace
    landmarks_: Indices
    landmark_objects_: Any
    selection_: Selection
    kernel_evaluations_: int
    kernel_reused_: int
    """Number of values read from the cache instead of being compared."""
    eigenvalues_: Array
    signature_: Signature
    n_objects_: int
    """Number of objects that the landmarks were chosen from."""
    n_samples_seen_: int
    """Number of training objects in all chunks."""

    _parameters: ClassVar[tuple[str, ...]] = ("measure", "measure_params", "symmetrize")
    """The parameters that predictions depend on; a subclass adds its own."""
    _fitted: ClassVar[Schema] = {
        "space_": LANDMARK_SPACE,
        "landmarks_": indices("m"),
        "landmark_objects_": Objects("m"),
        "selection_": SELECTION,
        "kernel_evaluations_": Whole(),
        "kernel_reused_": Whole(),
        "eigenvalues_": floats("eigenvalues"),
        "signature_": SignatureOf(),
        "n_objects_": Whole(1),
        "n_samples_seen_": Whole(1),
        "n_features_in_": IfThere(Whole(1, size="d")),
        "feature_names_in_": IfThere(Names("d")),
    }
    """The fitted attributes, as stored in a model file; a subclass adds its own."""

    def _check_fitted(self) -> None:
        """Raise an error if the model is not fitted; a loaded model always is."""

    def _checked(self, X: Any) -> Any:
        """Return new objects as `map_objects` expects them; the measure checks each one."""
        return X

    @abstractmethod
    def _try(self) -> None:
        """Raise an error if the fitted attributes are inconsistent, e.g. after loading."""

    def _columns(self, measure: Measure) -> LandmarkColumns:
        """Return the landmarks that new objects are compared with."""
        return LandmarkColumns(
            measure,
            self.landmark_objects_,
            self.landmarks_,
            NO_ROWS,
            np.empty((0, len(self.landmarks_))),
            self.symmetrize,
            self.cache,
            self.n_jobs,
        )

    def _map_new(
        self,
        X: Any,
        function: Callable[[Array], NDArray[Any]],
        shape: tuple[int, ...],
        dtype: Any = np.float64,
    ) -> Any:
        """Return `function(values)` of the values of new objects to the landmarks.

        This is one array for objects in memory, an iterator of arrays for a path or a source, and a
        `dask.array` for a Dask collection. `shape` and `dtype` are those of one object's result.
        """
        self._check_fitted()
        if is_empty(X):
            return np.empty((0, *shape), dtype=dtype)
        measure = self.measure_
        columns = self._columns(measure)
        return map_objects(
            self._checked(X),
            OfValues(columns, function),
            measure=measure,
            block_rows=block_rows(measure, len(columns)),
            shape=shape,
            dtype=dtype,
            n_jobs=self.n_jobs,
        )

    def _light(self) -> Self:
        """Return a copy with only what predictions need, to be sent to other machines."""
        light = copy(self)
        light.__dict__.pop("stream_", None)  # only partial_fit needs it
        return light


class FittedClassifier(FittedModel):
    """Computes scores from values to the landmarks, and predictions from the scores."""

    classes_: NDArray[Any]
    temperature_: float
    """The factor on scores before they become probabilities; 1 without calibration."""

    _fitted: ClassVar[Schema] = {
        **FittedModel._fitted,
        "classes_": LabelArray("C"),
        "temperature_": Real(0.0),
    }

    @abstractmethod
    def _scores(self, values: Array) -> Array:
        """Return the scores (n, C)."""

    @abstractmethod
    def _log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C) from scores, with the temperature applied."""

    def decision_function(self, X: Any) -> Any:
        """Return scores: (n,) for two classes, positive for the second; (n, C) for more.

        For a path or a source, return an iterator with one array per chunk; for a Dask collection,
        a `dask.array`.
        """
        C = self._n_classes()
        return self._map_new(X, self._light()._decisions, () if C == 2 else (C,))

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of the probabilities (n, C)."""
        return self._map_new(X, self._light()._log_probabilities, (self._n_classes(),))

    def predict_proba(self, X: Any) -> Any:
        """Return the probability (n, C) of each class, in the order of `classes_`.

        For a path or a source, return an iterator with one array per chunk; for a Dask collection,
        a `dask.array`.
        """
        return self._map_new(X, self._light()._probabilities, (self._n_classes(),))

    def predict(self, X: Any) -> Any:
        """Return the most probable class of each object."""
        self._n_classes()
        return self._map_new(X, self._light()._labels, (), self.classes_.dtype)

    def rank_labels(self, X: Any) -> Any:
        """Return all labels for each object (n, C), most probable first."""
        C = self._n_classes()
        return self._map_new(X, self._light()._ranked, (C,), self.classes_.dtype)

    # -- from values to results ----------------------------------------------------------------

    def _decisions(self, values: Array) -> Array:
        scores = self._scores(values)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _log_probabilities(self, values: Array) -> Array:
        return self._log_proba(self.temperature_ * self._scores(values))

    def _probabilities(self, values: Array) -> Array:
        return np.exp(self._log_probabilities(values))

    def _labels(self, values: Array) -> NDArray[Any]:
        return self.classes_[np.argmax(self._probabilities(values), axis=1)]

    def _ranked(self, values: Array) -> NDArray[Any]:
        order = np.argsort(-self._probabilities(values), axis=1, kind="stable")
        return self.classes_[order]

    def _try(self) -> None:
        with np.errstate(all="ignore"):
            found = self._probabilities(self.space_.landmark_values[:1])
        if found.shape != (1, len(self.classes_)):
            raise ValueError(f"it has {found.shape[1]} scores for {len(self.classes_)} classes")

    def _n_classes(self) -> int:
        self._check_fitted()
        return len(self.classes_)
