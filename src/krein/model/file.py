"""Save fitted estimators to model files, and load them. Nothing in a file is executed.

A file contains the parameters of the estimator and its fitted attributes; `model_` is the `Model`.
Classes come from a fixed list, and their annotations are the schema (`schema`). `load` returns the
estimator, which can be fitted again, or the model alone, without importing scikit-learn, which
takes longer than a prediction.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..io.modelfile import ModelFileError, read_model, write_model
from ..measures import Combined, Measure, get_measure
from ..version import __version__
from ..wording import article, own_measure, parameter
from . import ESTIMATORS, find_estimator
from .landmark_map import LandmarkMap
from .model import Model
from .schema import Context, check_schema, decode, decode_attributes, encode, hints_of

NOT_SAVED = {"cache", "verbose", "n_jobs"}
"""Parameters of a run or a machine, not of a model. A file that sets one is refused."""

_ALSO_OF_THE_MODEL = {"symmetrize", "novel_below", "ambiguous_below"}
"""Parameters of estimators that predictions use, and that the annotations of `Model` check."""

_ANY_SIZE = 2**62
"""A file that has just been written may have any size."""

# -- saving ----------------------------------------------------------------------------------------


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator: its parameters and what its class declares.

    The file is read back before it gets its name, so that no model is written that cannot be
    loaded.
    """
    name = type(estimator).__name__
    if name not in ESTIMATORS or type(estimator) is not find_estimator(name):
        raise TypeError(f"{article(name)} is not part of krein and cannot be saved")
    features = getattr(estimator, "features", None)
    if features is not None and not isinstance(features, str):
        raise TypeError(
            f"the features of this model are your own {type(features).__name__}, and a model file "
            f"contains no code: keep the model with pickle or joblib, or fit it with "
            f"{parameter('features', 'auto')} or {parameter('features', None)}"
        )
    tree = to_tree(estimator)
    named = tree["params"]["measure"]
    own = estimator.measure if isinstance(named, dict) and "function" in named else None
    if isinstance(own, str):  # "combined", with a function for one of its parts
        own = estimator.measure_

    def read_back(written: str) -> None:
        try:
            load(written, measure=own, max_size=_ANY_SIZE)
        except ValueError as error:
            reason = str(error).replace(f"{written} ", "").replace(f"{written}: ", "")
            raise ValueError(
                f"{path}: the model is not written, because it could not be loaded: it {reason}"
            ) from error

    write_model(path, tree, __version__, read_back)


def to_tree(estimator: Any) -> dict[str, Any]:
    """Return a fitted estimator as a tree of plain values and arrays."""
    name, fitted = type(estimator).__name__, {}
    for attribute in hints_of(find_estimator(name)):
        if attribute in vars(estimator):
            fitted[attribute] = encode(estimator.stored(attribute))
    return {"estimator": name, "params": _params(estimator), "fitted": fitted}


def _params(estimator: Any) -> dict[str, Any]:
    """Return the parameters as plain values."""
    from ..landmarks import Rule  # only estimators need it, and with it scikit-learn

    params = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in NOT_SAVED
    }
    params |= _decided(estimator)
    if not isinstance(params["random_state"], int | np.integer):
        params["random_state"] = None  # landmarks are already chosen: nothing random remains
    if isinstance(params["landmarks"], Rule):
        rule = params["landmarks"]
        known = type(rule) is known_rules().get(type(rule).__name__)
        plain = {"rule": type(rule).__name__, "params": rule.get_params(deep=False)}
        # the choice of the user's own rule
        params["landmarks"] = plain if known else estimator.landmarks_
    elif not isinstance(params["landmarks"], str):
        params["landmarks"] = np.asarray(params["landmarks"])
    if params.get("priors") is not None and not isinstance(params["priors"], str | dict):
        params["priors"] = np.asarray(params["priors"], dtype=float)
    return {name: _plain(value) for name, value in params.items()}


def _plain(value: Any) -> Any:
    """Return a parameter in its plain form."""
    if isinstance(value, Measure):
        return encode(value)
    if callable(value):
        return {"function": getattr(value, "__qualname__", None) or type(value).__qualname__}
    if isinstance(value, dict) and "rule" not in value:
        return {"mapping": [list(item) for item in value.items()]}
    return value


def _from_plain(value: Any) -> Any:
    """Return a parameter from its plain form."""
    if not isinstance(value, dict):
        return value
    if "rule" in value:
        return known_rules()[value["rule"]](**value["params"])
    if "mapping" in value:
        return dict(value["mapping"])
    if "measure" in value and "params" in value:
        return get_measure(value["measure"], value["params"])
    return value


def _decided(estimator: Any) -> dict[str, Any]:
    """Return the parameters of the measure, with the settings derived from the training objects."""
    named, decided = get_measure(estimator.measure, estimator.measure_params), estimator.measure_
    if isinstance(decided, Combined):  # parameters given by name may contain other measures
        return {"measure": decided, "measure_params": None}
    if not named.undecided():
        return {}
    if isinstance(estimator.measure, Measure):
        return {"measure": decided}
    before, after = named.params(), decided.params()
    chosen = {name: value for name, value in after.items() if value != before[name]}
    return {"measure_params": {**(estimator.measure_params or {}), **chosen}}


def known_rules() -> dict[str, Any]:
    """Return the landmark rules that a model file may name."""
    from .. import landmarks

    named = (getattr(landmarks, name) for name in landmarks.__all__)
    return {r.__name__: r for r in named if isinstance(r, type) and issubclass(r, landmarks.Rule)}


# -- loading ---------------------------------------------------------------------------------------


def load(
    path: str | os.PathLike[str],
    *,
    measure: Any = None,
    max_size: int | None = None,
    only_model: bool = False,
) -> Any:
    """Return the estimator of a model file, or the model that it holds.

    Nothing in the file is executed, and it sets only what `save` writes. Every array is checked
    against the others, and the measure checks the landmarks, before this function returns.

    Parameters
    ----------
    path : str or path
        File that `save` wrote.
    measure : callable, Measure or None, default=None
        Your own measure, if the model was fitted with a function or with a `Measure` that krein
        does not know by name. The file contains its name but not its code.
    max_size : int or None, default=None
        Maximum size of the arrays in bytes. None stands for 256 MiB, or 20 times the size of the
        file if that is more.
    only_model : bool, default=False
        Return the `Model` alone, with results bit-identical to those of the estimator. It has all
        methods of the classifier that take new objects (`transform` for a transformer), but no
        `fit`. scikit-learn is not imported, so a program that labels a few objects starts in a
        third of the time.

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
    tree = _read(path, measure, max_size)
    try:
        return from_tree(tree, only_model=only_model)
    except (ImportError, MemoryError):
        raise
    # a sealed file may contain any tree, and each part of krein raises its own kind of error
    except Exception as error:
        raise _refused(path, error) from error


def _read(path: str | os.PathLike[str], measure: Any, max_size: int | None) -> dict[str, Any]:
    """Return the tree of a model file, with the user's own measure filled in."""
    tree = read_model(path, max_size)
    if not isinstance(tree.get("estimator"), str):
        raise ModelFileError(f"{path} is not a krein model: it does not name an estimator")
    if tree["estimator"] not in ESTIMATORS:
        raise ModelFileError(
            f"{path} contains a {tree['estimator'][:60]!r}, unknown to this version of krein"
        )
    params, fitted = tree.get("params"), tree.get("fitted")
    if not isinstance(params, dict) or not isinstance(fitted, dict) or "measure" not in params:
        raise ModelFileError(f"{path} is not a krein model: a part of it is missing")
    named = params["measure"]
    if isinstance(named, dict) and "function" in named:
        if measure is None:
            raise ValueError(
                f"{path} was fitted with the measure {str(named['function'])[:60]!r}, which is "
                f"not part of krein: pass it with {own_measure()}"
            )
        params["measure"] = measure
        own = get_measure(measure, _from_plain(params.get("measure_params")))
        fitted["model_"]["fields"]["measure"] = own
    elif measure is not None:
        raise ValueError(f"{path} contains its measure; omit {parameter('measure')}")
    return tree


def _refused(path: str | os.PathLike[str], error: Exception) -> ModelFileError:
    reason = " ".join(str(error).split())[:160]
    return ModelFileError(f"{path} is not a krein model, or not of this version: {reason}")


def from_tree(tree: dict[str, Any], *, only_model: bool = False) -> Any:
    """Return the estimator of a tree, or its model, with every part checked.

    A tree that krein did not write may raise any error.
    """
    return _model(tree) if only_model else _estimator(tree)


def _model(tree: dict[str, Any]) -> Model | LandmarkMap:
    """Return the model alone."""
    context = Context()
    for cls in (Model, LandmarkMap):
        check_schema(cls)
    model: Model | LandmarkMap = decode(
        tree["fitted"]["model_"], Model | LandmarkMap, "model_", context
    )
    context.settle()
    model.check()
    return model


def _estimator(tree: dict[str, Any]) -> Any:
    """Return the estimator, with its parameters and its fitted attributes."""
    cls = find_estimator(tree["estimator"])
    known = set(cls._get_param_names()) - NOT_SAVED
    for name in tree["params"]:
        if name not in known:
            raise ValueError(f"a model file does not set {name[:60]!r}")
    estimator = cls(**{name: _from_plain(value) for name, value in tree["params"].items()})
    get_measure(estimator.measure, estimator.measure_params)
    for name in _ALSO_OF_THE_MODEL & set(tree["params"]):
        decode(tree["params"][name], hints_of(Model)[name], name, Context())
    found = decode_attributes(tree["fitted"], cls, Context())
    for name, value in found.items():
        setattr(estimator, name, value)
    estimator.model_.check()
    return estimator
