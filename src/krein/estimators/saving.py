"""Save fitted estimators to model files: parameters and attributes as a tree of plain values."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..core.space import Signature
from ..io.modelfile import write_model
from ..landmarks import Rule
from ..measures import Measure, available, get_measure
from ..version import __version__
from .base import LandmarkEstimator
from .declaring import check_declared
from .loading import NOT_SAVED, known_rules
from .registry import ESTIMATORS, find_class


def save(estimator: LandmarkEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator: parameters, landmark objects, weights, classes."""
    estimator._check_fitted()
    home = ESTIMATORS.get(type(estimator).__name__)
    if home is None or type(estimator) is not find_class(home):
        raise TypeError(f"a {type(estimator).__name__} is not part of krein and cannot be saved")
    params = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in NOT_SAVED
    }
    params |= _measure_params(estimator)
    if not isinstance(params["random_state"], int | np.integer):
        params["random_state"] = None  # landmarks are already chosen: nothing random remains
    if not isinstance(params["landmarks"], str | Rule):
        params["landmarks"] = np.asarray(params["landmarks"])
    if isinstance(params["landmarks"], Rule) and not _is_known(params["landmarks"]):
        params["landmarks"] = estimator.selection_.indices  # the choice of the user's own rule
    if params.get("priors") is not None and not isinstance(params["priors"], str | dict):
        params["priors"] = np.asarray(params["priors"], dtype=float)
    fitted = estimator._to_keep()
    check_declared(fitted, estimator._fitted, type(estimator).__name__)
    tree = {
        "estimator": type(estimator).__name__,
        "params": {name: _encoded(value, name) for name, value in params.items()},
        "fitted": {name: _encoded(value, name) for name, value in fitted.items()},
    }
    write_model(path, tree, __version__)


def _measure_params(estimator: LandmarkEstimator) -> dict[str, Any]:
    """Return the parameters of the measure, with the settings derived from the training objects."""
    named, decided = get_measure(estimator.measure, estimator.measure_params), estimator.measure_
    if not named.undecided():
        return {}
    if isinstance(estimator.measure, Measure):
        return {"measure": decided}
    before, after = named.params(), decided.params()
    chosen = {name: value for name, value in after.items() if value != before[name]}
    return {"measure_params": {**(estimator.measure_params or {}), **chosen}}


def _encoded(value: Any, name: str) -> Any:
    """Return `value` as a tree of plain values for a model file."""
    if isinstance(value, Measure):
        if value.name in available() and type(value) is type(get_measure(value.name)):
            return {"measure": value.name, "params": value.params()}
        return {"function": _called(value)}
    if isinstance(value, Rule):
        params = {key: _encoded(v, key) for key, v in value.get_params(deep=False).items()}
        return {"rule": type(value).__name__, "params": params}
    if isinstance(value, Signature):
        return {"signature": list(value)}
    if is_dataclass(value) and not isinstance(value, type):
        content = {f.name: _encoded(getattr(value, f.name), f.name) for f in fields(value)}
        return {"value": type(value).__name__, "fields": content}
    if isinstance(value, dict):
        return {"mapping": [[_encoded(k, name), _encoded(v, name)] for k, v in value.items()]}
    if isinstance(value, list):
        return [_encoded(item, name) for item in value]
    if callable(value):
        return {"function": _called(value)}
    return value


def _called(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _is_known(rule: Rule) -> bool:
    return type(rule) is known_rules().get(type(rule).__name__)
