"""Load model files. Classes come from a fixed list, and nothing in a file is executed.

`load` returns the estimator, which can be fitted again. `load_model` returns only the model,
without importing scikit-learn, which takes longer than a prediction.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import landmarks
from ..core.space import Signature
from ..io.modelfile import ModelFileError, read_model
from ..measures import get_measure
from .declaring import check_fitted, classes_within
from .fitted import FittedModel
from .registry import ESTIMATORS, FITTED, find_class
from .schema import Context

if TYPE_CHECKING:
    from ..landmarks import Rule

NOT_SAVED = {"cache", "verbose", "n_jobs"}
"""Parameters of a run or a machine, not of a model. A file that sets one is refused."""

Decode = Callable[[Any], Any]


def load(path: str | os.PathLike[str], *, measure: Any = None, max_size: int | None = None) -> Any:
    """Return the estimator of a model file.

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

    See Also
    --------
    load_model : Return a model that only predicts, without importing scikit-learn.

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
    return _restored(path, tree, ESTIMATORS, _estimator)


def load_model(
    path: str | os.PathLike[str], *, measure: Any = None, max_size: int | None = None
) -> Any:
    """Return a model that only predicts, with results bit-identical to those of the estimator.

    This function does not import scikit-learn, so a program that labels a few objects starts in a
    third of the time. The model has all methods of the classifier that take new objects, but no
    `fit`. For a file that contains a transformer instead of a classifier, the estimator is
    returned.

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

    See Also
    --------
    load : Return the estimator, which can be fitted again.

    Examples
    --------
    >>> import os, tempfile
    >>> import krein
    >>> words, languages = ["house", "mouse", "haus", "maus"], ["en", "en", "de", "de"]
    >>> clf = krein.IKFD(measure="levenshtein", landmarks="all").fit(words, languages)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(os.path.join(folder, "m.krein"))
    ...     krein.load_model(os.path.join(folder, "m.krein")).predict(["louse"])
    array(['en'], dtype='<U2')
    """
    tree = _read(path, measure, max_size)
    if tree["estimator"] not in FITTED:
        return _restored(path, tree, ESTIMATORS, _estimator)
    return _restored(path, tree, FITTED, _model)


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
                f"not part of krein: pass it with load(path, measure=...)"
            )
        params["measure"] = measure
    elif measure is not None:
        raise ValueError(f"{path} contains its measure; omit measure=")
    return tree


def _restored(
    path: str | os.PathLike[str],
    tree: dict[str, Any],
    homes: Mapping[str, str],
    unfitted: Callable[[Any, dict[str, Any], Decode], Any],
) -> Any:
    """Return the model, checked against the declarations of its class."""
    cls: type[FittedModel] = find_class(homes[tree["estimator"]])
    made_of = {part.__name__: part for part in classes_within(cls._fitted.values())}

    def decode(value: Any) -> Any:
        return _decoded(value, made_of)

    try:
        model: FittedModel = unfitted(cls, tree["params"], decode)
        model.measure_ = get_measure(model.measure, model.measure_params)
        found = {name: decode(value) for name, value in tree["fitted"].items()}
        for name, value in check_fitted(found, cls._fitted, Context(model.measure_)).items():
            setattr(model, name, value)
        model._check_fitted()
        model._try()
        return model
    except (ImportError, MemoryError):
        raise
    # a sealed file may contain any tree, and each part of krein raises its own kind of error
    except Exception as error:
        reason = " ".join(str(error).split())[:160]
        raise ModelFileError(
            f"{path} is not a krein model, or not of this version: {reason}"
        ) from error


def _estimator(cls: Any, params: dict[str, Any], decode: Decode) -> Any:
    """Return an estimator with the parameters of a file."""
    known = set(cls._get_param_names()) - NOT_SAVED
    for name in params:
        if name not in known:
            raise ValueError(f"a model file does not set {name[:60]!r}")
    return cls(**{name: decode(value) for name, value in params.items()})


def _model(cls: type[FittedModel], params: dict[str, Any], decode: Decode) -> FittedModel:
    """Return a model with the parameters that it needs from a file."""
    model = cls()
    for name in cls._parameters:
        setattr(model, name, decode(params[name]))
    return model


def _decoded(value: Any, made_of: Mapping[str, type]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, made_of) for item in value]
    if not isinstance(value, dict):
        return value
    if "measure" in value:
        return get_measure(value["measure"], value["params"])
    if "rule" in value:
        params = {key: _decoded(v, made_of) for key, v in value["params"].items()}
        return known_rules()[value["rule"]](**params)
    if "signature" in value:
        return Signature(*value["signature"])
    if "mapping" in value:
        return {_decoded(k, made_of): _decoded(v, made_of) for k, v in value["mapping"]}
    content = {key: _decoded(v, made_of) for key, v in value["fields"].items()}
    if value["value"] not in made_of:
        raise ValueError(f"{str(value['value'])[:60]!r} is not part of any model")
    return made_of[value["value"]](**content)


def known_rules() -> dict[str, type[Rule]]:
    """Return the landmark rules that a model file may name."""
    named = (getattr(landmarks, name) for name in landmarks.__all__)
    return {r.__name__: r for r in named if isinstance(r, type) and issubclass(r, landmarks.Rule)}
