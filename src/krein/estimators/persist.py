"""Fitted estimators to model files and back, by names on a list: nothing in a file runs."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .. import landmarks
from ..core.candidates import CandidateSpace
from ..core.convert import LandmarkCentre
from ..core.embedding import Embedding
from ..core.fisher import LinearDiscriminant
from ..core.heads import LinearHead, PCVMHead, QuadraticHead
from ..core.labelsets import LabelReference
from ..core.looks import TwoLooks
from ..core.meb import Ball
from ..core.moments import ClassMoments
from ..core.novelty import NoveltyReference
from ..core.nystrom import LandmarkBasis
from ..core.quadratic import QuadraticDiscriminant
from ..core.space import LandmarkSpace
from ..core.spectrum import Signature
from ..io.modelfile import ModelFileError, read_model, write_model
from ..landmarks import Rule, Selection
from ..measures import Measure, available, get_measure
from ..measures.given import GivenColumns
from ..version import __version__
from .base import LandmarkEstimator
from .gaussian import Stream
from .maps import IndefiniteKernelPCA, NystromMap, PseudoEuclideanEmbedding
from .reference import Reference
from .registry import MODELS
from .secondlook import KnownObjects
from .selection import LandmarkSet
from .sizing import SizeCurve

_VALUES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Ball,
        CandidateSpace,
        ClassMoments,
        Embedding,
        GivenColumns,
        KnownObjects,
        LabelReference,
        LandmarkBasis,
        LandmarkCentre,
        LandmarkSet,
        LandmarkSpace,
        LinearDiscriminant,
        LinearHead,
        NoveltyReference,
        PCVMHead,
        QuadraticDiscriminant,
        QuadraticHead,
        Reference,
        Selection,
        SizeCurve,
        Stream,
        TwoLooks,
    )
}
_NOT_SAVED = {"cache", "verbose", "n_jobs"}  # they belong to a run and a machine, not to a model
_NOT_FITTED = {"measure_"}  # it follows from the parameters, which `save` completes


_ESTIMATORS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(family.estimator for family in MODELS.values()),
        IndefiniteKernelPCA,
        NystromMap,
        PseudoEuclideanEmbedding,
    )
}


def save(estimator: LandmarkEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator: parameters, landmark objects, weights, classes."""
    check_is_fitted(estimator)
    if type(estimator) is not _ESTIMATORS.get(type(estimator).__name__):
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
    tree = {
        "estimator": type(estimator).__name__,
        "params": {name: _encoded(value, name) for name, value in params.items()},
        "fitted": {name: _encoded(value, name) for name, value in fitted.items()},
    }
    write_model(path, tree, __version__)


def load(path: str | os.PathLike[str], *, measure: Any = None) -> Any:
    """Return the estimator of a model file.

    A model that was fitted with a function of the user's own, or with a `Measure` that krein
    does not know by name, needs it again: `load(path, measure=f)`. The file names it.

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
    tree = read_model(path)
    if not isinstance(tree.get("estimator"), str):
        raise ModelFileError(f"{path} is no model of krein: it names no estimator")
    if tree["estimator"] not in _ESTIMATORS:
        raise ModelFileError(
            f"{path} holds a {tree.get('estimator')!r}, which this version of krein does not know"
        )
    params, fitted = tree.get("params"), tree.get("fitted")
    if not isinstance(params, dict) or not isinstance(fitted, dict) or "measure" not in params:
        raise ModelFileError(f"{path} is no model of krein: a part of it is missing")
    named = params["measure"]
    if isinstance(named, dict) and "function" in named:
        if measure is None:
            raise ValueError(
                f"{path} was fitted with the measure {named['function']!r}, which is not part of "
                "krein: hand it over with load(path, measure=...)"
            )
        params["measure"] = measure
    elif measure is not None:
        raise ValueError(f"{path} holds its measure; load(path) needs no measure=")
    try:
        decoded = {name: _decoded(value) for name, value in params.items()}
        estimator = _ESTIMATORS[tree["estimator"]](**decoded)
        for name, value in fitted.items():
            if not name.endswith("_") or name.startswith("_") or name in _NOT_FITTED:
                raise ValueError(f"{name!r} is nothing that is fitted")
            setattr(estimator, name, _decoded(value))
        check_is_fitted(estimator)
        estimator.measure_ = estimator._measure()
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, NotFittedError) as error:
        raise ModelFileError(
            f"{path} is no model of krein, or not of this version of it: {error}"
        ) from error
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
    return _VALUES[value["value"]](**content)


def _is_known(rule: Rule) -> bool:
    return type(rule) is _rules().get(type(rule).__name__)


def _rules() -> dict[str, type[Rule]]:
    named = (getattr(landmarks, name) for name in landmarks.__all__)
    return {r.__name__: r for r in named if isinstance(r, type) and issubclass(r, Rule)}
