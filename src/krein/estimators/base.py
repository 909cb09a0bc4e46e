"""What every estimator shares: objects in, landmarks chosen, coordinates out, a file to keep."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from ..compare.pairs import block_rows
from ..compare.workers import limit_blas_threads
from ..core.checks import Array, Indices
from ..core.space import LandmarkSpace
from ..core.spectrum import Signature
from ..data.chunk import Chunk, LandmarkColumns
from ..data.opening import in_memory, is_empty, map_objects
from ..landmarks import Selection
from ..measures import Measure, get_measure
from ..measures.base import refuse_masked
from .compound import IfThere, Objects, SignatureOf
from .declared import LANDMARK_SPACE, SELECTION
from .schema import Names, Schema, Whole, floats, indices
from .selection import LandmarkSet

NO_ROWS: Indices = np.empty(0, dtype=np.intp)


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Leave the estimator as it was where what is done inside fails; BLAS runs in one thread.

    Digits then depend on the number of BLAS threads nowhere, and small eigenproblems are faster:
    on a busy machine the threads of BLAS wait for each other at every column.
    """
    before = dict(vars(estimator))
    try:
        with limit_blas_threads():
            yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@dataclass(frozen=True)
class OfValues:
    """A function of the values to the landmarks, as a function of a chunk of objects."""

    columns: LandmarkColumns
    function: Callable[[Array], NDArray[Any]]

    def __call__(self, chunk: Chunk) -> NDArray[Any]:
        """Compare the chunk with the landmarks."""
        with limit_blas_threads():
            return self.function(self.columns.values(chunk).value)


class MeasureParameters(BaseEstimator):
    """Parameters as scikit-learn names them, those of the measure too.

    Examples
    --------
    >>> from krein import KreinClassifier
    >>> model = KreinClassifier("dtw").set_params(measure_params__window=0.1)
    >>> model.measure_params
    {'window': 0.1}
    """

    measure: Any
    measure_params: dict[str, Any] | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also those of the measure, `measure_params__name`."""
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            if isinstance(self.measure_params, dict):
                for name, value in self.measure_params.items():
                    params[f"measure_params__{name}"] = value
            if isinstance(self.measure, Measure):
                for field in fields(self.measure):
                    params[f"measure__{field.name}"] = getattr(self.measure, field.name)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the measure too, as a grid names them.

        `measure_params__normalize=True` sets one entry of `measure_params`; where `measure` is a
        `Measure`, `measure__normalize=True` replaces it by one with that parameter.
        """
        own = {name: value for name, value in params.items() if not name.startswith("measure_")}
        own |= {name: params[name] for name in ("measure", "measure_params") if name in params}
        super().set_params(**own)
        for name, value in params.items():
            owner, _, parameter = name.partition("__")
            if name in own:
                continue
            if owner == "measure_params":
                self.measure_params = {**(self.measure_params or {}), parameter: value}
            elif owner == "measure" and isinstance(self.measure, Measure):
                self.measure = replace(self.measure, **{parameter: value})
            else:
                super().set_params(**{name: value})  # says which parameters there are
        return self


class Storable(MeasureParameters):
    """An estimator that a model file can hold."""

    _fitted: ClassVar[Schema]
    """The fitted attributes, as a model file holds them; a subclass adds its own."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, whole or not at all; `krein.load` reads it."""
        from .persist import save

        save(self, path)

    @abstractmethod
    def _try(self) -> None:
        """Raise where the fitted attributes do not make a model together, as after loading."""


class LandmarkEstimator(Storable):
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

    measure_: Measure
    """The measure, with what the training objects decided."""
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

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to objects X."""

    def _measure(self) -> Measure:
        """Return the measure that the parameters name."""
        return get_measure(self.measure, self.measure_params)

    def _validated(self, X: Any, measure: Measure, *, reset: bool) -> Any:
        """Return X, checked as scikit-learn does where its rows are vectors or given values."""
        refuse_masked(X)
        if not in_memory(X, measure) or measure.accepts == "objects":
            return X
        if measure.accepts == "values":
            if isinstance(X, str | os.PathLike | np.memmap):
                return X  # read by block, and checked there
            if not reset:
                return check_array(X, dtype=None, estimator=self)  # n × N or n × m
            # entries are checked where they are read, and named
            return validate_data(self, X, reset=True, dtype=None, ensure_all_finite=False)
        try:
            return validate_data(self, X, reset=reset, dtype=np.float64)
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ValueError(
                f"{error}: the measure {self.measure!r} compares vectors of numbers; name one for "
                "such objects, e.g. measure='levenshtein' (krein.measures.available() lists them)"
            ) from error

    def _rng(self) -> np.random.Generator:
        if isinstance(self.random_state, np.random.RandomState):
            return np.random.default_rng(self.random_state.randint(2**31))
        return np.random.default_rng(self.random_state)

    def _use_landmarks(self, landmarks: LandmarkSet) -> None:
        """Compare new objects with these landmarks."""
        self.space_ = landmarks.space
        self.landmarks_ = landmarks.indices
        self.landmark_objects_ = landmarks.objects

    def _set_spectrum(self, eigenvalues: Array) -> None:
        """Set what is known of the approximated kernel from its non-zero eigenvalues."""
        p = int((eigenvalues > 0).sum())
        q = len(eigenvalues) - p
        self.eigenvalues_ = eigenvalues
        self.signature_ = Signature(p, q, max(self.n_samples_seen_ - p - q, 0))

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

        One array for objects in memory, an iterator of arrays for a path or a source, a
        `dask.array` for a Dask collection. `shape` and `dtype` are those of one object's result.
        """
        check_is_fitted(self)
        if is_empty(X):
            return np.empty((0, *shape), dtype=dtype)
        measure = self.measure_
        columns = self._columns(measure)
        return map_objects(
            self._validated(X, measure, reset=False),
            OfValues(columns, function),
            measure=measure,
            block_rows=block_rows(measure, len(columns)),
            shape=shape,
            dtype=dtype,
            n_jobs=self.n_jobs,
        )

    def _light(self) -> Self:
        """Return a copy with what predictions need, to be sent to other machines."""
        light = copy(self)
        light.__dict__.pop("stream_", None)  # what further chunks would be added to
        return light

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._measure().accepts == "values"
        return tags
