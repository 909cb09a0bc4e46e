"""Code shared by all estimators: parameters, validation, landmarks, model files."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import validate_data

from ..compare.workers import limit_blas_threads
from ..core.checks import Array
from ..core.space import Signature
from ..data.opening import in_memory
from ..measures import Measure, get_measure
from ..measures.base import refuse_masked
from ..wording import list_of_measures, parameter
from .fitted import FittedModel
from .selection import LandmarkSet


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the estimator if the body fails; BLAS runs in one thread.

    Results then do not depend on the number of BLAS threads, and small eigenproblems are faster: on
    a busy machine, BLAS threads wait for each other at every column.
    """
    before = dict(vars(estimator))
    try:
        with limit_blas_threads():
            yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class MeasureParameters(BaseEstimator):
    """Parameters in scikit-learn's style, including those of the measure.

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
        """Set parameters, including those of the measure, by the names used in a grid.

        `measure_params__normalize=True` sets one entry of `measure_params`. If `measure` is a
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
                super().set_params(**{name: value})  # its error lists the parameters
        return self


class Storable(FittedModel, MeasureParameters):
    """An estimator that can be saved to a model file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, atomically; `krein.load` reads it."""
        from .saving import save

        save(self, path)

    def _to_keep(self) -> dict[str, Any]:
        """Return the fitted attributes for a model file; the measure follows from parameters."""
        return {
            name: value
            for name, value in vars(self).items()
            if name.endswith("_") and not name.startswith("_") and name != "measure_"
        }


class LandmarkEstimator(Storable):
    """An estimator that describes objects by their similarities to the landmarks.

    A subclass declares these parameters, and its own, in `__init__`.
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

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to objects X."""

    def _validated(self, X: Any, measure: Measure, *, reset: bool) -> Any:
        """Return X; check it as scikit-learn does if its rows are vectors or precomputed values."""
        refuse_masked(X)
        if not in_memory(X, measure) or measure.accepts == "objects":
            return X
        if measure.accepts == "values":
            if isinstance(X, str | os.PathLike | np.memmap):
                return X  # read by block, and checked there
            if not reset:
                return check_array(X, dtype=None, estimator=self)  # n × N or n × m
            # entries are checked when they are read, with an error that names them
            return validate_data(self, X, reset=True, dtype=None, ensure_all_finite=False)
        try:
            return validate_data(self, X, reset=reset, dtype=np.float64)
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ValueError(
                f"{error}: the measure {self.measure!r} compares vectors of numbers; choose one "
                f"for these objects, e.g. {parameter('measure', repr('levenshtein'))} "
                f"({list_of_measures()} lists them)"
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
        """Set the attributes of the approximated kernel from its non-zero eigenvalues."""
        p = int((eigenvalues > 0).sum())
        q = len(eigenvalues) - p
        self.eigenvalues_ = eigenvalues
        self.signature_ = Signature(p, q, max(self.n_samples_seen_ - p - q, 0))

    def _check_fitted(self) -> None:
        # scikit-learn's check would look the measure up at every prediction, for its tags
        if not hasattr(self, "space_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted yet; call fit before you use it")

    def _checked(self, X: Any) -> Any:
        return self._validated(X, self.measure_, reset=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = (
            get_measure(self.measure, self.measure_params).accepts == "values"
        )
        return tags
