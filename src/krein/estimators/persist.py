"""Fitted estimators to model files and back, by names on a list: nothing in a file runs."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import landmarks
from ..core.spectrum import Signature
from ..io.modelfile import ModelFileError, read_model, write_model
from ..landmarks import Rule
from ..measures import Measure, available, get_measure
from ..version import __version__
from .base import LandmarkEstimator
from .declaring import check_declared, check_fitted, classes_within
from .registry import ESTIMATORS, find_class
from .schema import Context

_CLASSES: dict[str, type[LandmarkEstimator]] = {
    name: find_class(home) for name, home in ESTIMATORS.items()
}
_VALUES: dict[str, type] = {
    cls.__name__: cls
    for estimator in _CLASSES.values()
    for cls in classes_within(estimator._fitted.values())
}
"""The dataclasses that fitted attributes are made of."""
_NOT_SAVED = {"cache", "verbose", "n_jobs"}
"""They belong to a run and a machine, not to a model. A file that sets one is refused."""
_NOT_FITTED = {"measure_"}
"""It follows from the parameters, which `save` completes."""


def save(estimator: LandmarkEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator: parameters, landmark objects, weights, classes."""
    check_is_fitted(estimator)
    if type(estimator) is not _CLASSES.get(type(estimator).__name__):
        raise TypeError(f"a {type(estimator).__name__} is not one of krein's own: it has no file")
    params = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _NOT_SAVED
    }
    params |= _measure_params(estimator)
    if not isinstance(params["random_state"], int | np.integer):
        params["random_state"] = None  # landmarks are chosen: nothing random is left
    if not isinstance(params["landmarks"], str | Rule):
        params["landmarks"] = np.asarray(params["landmarks"])
    if isinstance(params["landmarks"], Rule) and not _is_known(params["landmarks"]):
        params["landmarks"] = estimator.selection_.indices  # what the user's own rule has found
    if params.get("priors") is not None and not isinstance(params["priors"], str | dict):
        params["priors"] = np.asarray(params["priors"], dtype=float)
    fitted = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_") and name not in _NOT_FITTED
    }
    check_declared(fitted, estimator._fitted, type(estimator).__name__)
    tree = {
        "estimator": type(estimator).__name__,
        "params": {name: _encoded(value, name) for name, value in params.items()},
        "fitted": {name: _encoded(value, name) for name, value in fitted.items()},
    }
    write_model(path, tree, __version__)


def load(path: str | os.PathLike[str], *, measure: Any = None, max_size: int | None = None) -> Any:
    """Return the estimator of a model file.

    A model that was fitted with a function of the user's own, or with a `Measure` that krein
    does not know by name, needs it again: `load(path, measure=f)`. The file names it.

    Nothing in the file runs, and it sets nothing but what `save` writes. Every array is checked
    against the others, and landmarks as the measure checks any objects, before this returns.
    `max_size` is how many bytes the arrays may take: by default 256 MiB, or 20 times the size of
    the file where that is more.

    Examples
    --------
    >>> import os, tempfile
    >>> import krein
    >>> words, languages = ["house", "mouse", "haus", "maus"], ["en", "en", "de", "de"]
    >>> clf = krein.IKFD(measure="levenshtein", landmarks="all").fit(words, languages)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(os.path.join(folder, "m.krein"))
    ...     krein.load(os.path.join(folder, "m.krein")).predict(["louse"])
    array(['en'], dtype='<U2')
    """
    tree = read_model(path, max_size)
    if not isinstance(tree.get("estimator"), str):
        raise ModelFileError(f"{path} is not a krein model: it names no estimator")
    if tree["estimator"] not in _CLASSES:
        raise ModelFileError(
            f"{path} holds a {tree['estimator'][:60]!r}, which this version of krein does not know"
        )
    params, fitted = tree.get("params"), tree.get("fitted")
    if not isinstance(params, dict) or not isinstance(fitted, dict) or "measure" not in params:
        raise ModelFileError(f"{path} is not a krein model: a part of it is missing")
    named = params["measure"]
    if isinstance(named, dict) and "function" in named:
        if measure is None:
            raise ValueError(
                f"{path} was fitted with the measure {str(named['function'])[:60]!r}, which is not "
                "part of krein: hand it over with load(path, measure=...)"
            )
        params["measure"] = measure
    elif measure is not None:
        raise ValueError(f"{path} holds its measure; load(path) needs no measure=")
    try:
        return _restored(_CLASSES[tree["estimator"]], params, fitted)
    except (ImportError, MemoryError):
        raise
    # a sealed file may hold anything that a tree can, and each part of krein raises its own
    except Exception as error:
        reason = " ".join(str(error).split())[:160]
        raise ModelFileError(
            f"{path} is not a krein model, or not of this version: {reason}"
        ) from error


def _restored(
    cls: type[LandmarkEstimator], params: dict[str, Any], fitted: dict[str, Any]
) -> LandmarkEstimator:
    """Return the estimator, checked by what its class declares."""
    known = set(cls._get_param_names()) - _NOT_SAVED
    for name in params:
        if name not in known:
            raise ValueError(f"a model file does not set {name[:60]!r}")
    estimator = cls(**{name: _decoded(value) for name, value in params.items()})
    found = {name: _decoded(value) for name, value in fitted.items()}
    estimator.measure_ = estimator._measure()
    context = Context(estimator.measure_)
    for name, value in check_fitted(found, cls._fitted, context).items():
        setattr(estimator, name, value)
    check_is_fitted(estimator)
    estimator._try()
    return estimator


def _measure_params(estimator: LandmarkEstimator) -> dict[str, Any]:
    """Return the parameters that name the measure, with what the training objects decided."""
    named, decided = estimator._measure(), estimator.measure_
    if not named.undecided():
        return {}
    if isinstance(estimator.measure, Measure):
        return {"measure": decided}
    before, after = named.params(), decided.params()
    chosen = {name: value for name, value in after.items() if value != before[name]}
    return {"measure_params": {**(estimator.measure_params or {}), **chosen}}


def _encoded(value: Any, name: str) -> Any:
    """Return `value` as a tree of what a model file holds."""
    if isinstance(value, Measure):
        if value.name in available() and type(value) is type(get_measure(value.name)):
            return {"measure": value.name, "params": value.params()}
        return {"function": _called(value)}
    if isinstance(value, Rule):
        params = {key: _encoded(v, key) for key, v in value.get_params(deep=False).items()}
        return {"rule": type(value).__name__, "params": params}
    if isinstance(value, Signature):
        return {"signature": list(value)}
    if is_dataclass(value) and type(value).__name__ in _VALUES:
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


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "measure" in value:
        return get_measure(value["measure"], value["params"])
    if "rule" in value:
        params = {key: _decoded(v) for key, v in value["params"].items()}
        return _rules()[value["rule"]](**params)
    if "signature" in value:
        return Signature(*value["signature"])
    if "mapping" in value:
        return {_decoded(k): _decoded(v) for k, v in value["mapping"]}
    content = {key: _decoded(v) for key, v in value["fields"].items()}
    if value["value"] not in _VALUES:
        raise ValueError(f"{str(value['value'])[:60]!r} is not a part of any model")
    return _VALUES[value["value"]](**content)


def _is_known(rule: Rule) -> bool:
    return type(rule) is _rules().get(type(rule).__name__)


def _rules() -> dict[str, type[Rule]]:
    named = (getattr(landmarks, name) for name in landmarks.__all__)
    return {r.__name__: r for r in named if isinstance(r, type) and issubclass(r, Rule)}
