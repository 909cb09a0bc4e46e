"""The models that `evaluate` compares: by name, or the user's own estimators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from inspect import signature
from typing import Any

from sklearn.base import BaseEstimator, clone

from ..compare import Pairs
from ..estimators import MODELS
from ..landmarks.all import All
from .baselines import (
    Baseline,
    ClippedSVM,
    FeatureBaseline,
    LandmarkLogistic,
    NearestNeighbours,
    feature_kind,
)

AVAILABLE = (*MODELS, "svm-clip", "knn", "logistic", "features")
"""Names that `evaluate` accepts."""

DEFAULT = ("krein", "knn", "features")
"""The models evaluated by default; "features" only if the objects have any."""

Model = Any  # a classifier that compares objects by a measure, or a Baseline


def get_models(
    models: str | Iterable[str] | Mapping[str, Any] | None,
    *,
    pairs: Pairs,
    settings: dict[str, Any],
    opening: dict[str, Any],
) -> dict[str, Model]:
    """Return the models by their names in the report, ready to be fitted.

    `settings` are those of models given by name; `opening` is how all of them compare objects.
    """
    named: dict[str, Any]
    if models is None:
        models = [name for name in DEFAULT if name != "features" or feature_kind(pairs)]
    if isinstance(models, Mapping):
        named = dict(models)
    else:
        listed = [models] if isinstance(models, str) else list(models)
        named = {name: name for name in listed}
        if len(named) < len(listed):
            raise ValueError(f"a model is listed twice: {', '.join(map(str, listed))}")
    if not named:
        raise ValueError(f"no model to evaluate; choose from {', '.join(AVAILABLE)}")
    found: dict[str, Model] = {}
    for name, model in named.items():
        if isinstance(model, str):
            model = _by_name(model, pairs, opening["measure"], settings)
        known = model.get_params(deep=False) if isinstance(model, BaseEstimator) else {}
        if "measure" in known and hasattr(model, "predict_proba"):
            shared_by_all = {key: value for key, value in opening.items() if key in known}
            model = clone(model).set_params(**shared_by_all)  # all use the same measure
        elif not isinstance(model, Baseline):
            raise TypeError(
                f"model {name!r} is a {type(model).__name__}: evaluate accepts krein's "
                f"classifiers, or one of the names {', '.join(AVAILABLE)}"
            )
        found[str(name)] = model
    return found


def _by_name(name: str, pairs: Pairs, measure: Any, settings: dict[str, Any]) -> Model:
    """Return the model of this name, with those settings that it accepts."""
    landmarks, seed = settings["landmarks"], settings["random_state"]
    if name in MODELS:
        family = MODELS[name]
        known = set(signature(family.estimator).parameters)
        known -= {"landmarks"} if landmarks is None else set()
        given = settings | {"calibrate": settings["calibrate"] and family.calibrate}
        return family.estimator(measure, **{key: given[key] for key in known & set(given)})
    if name == "svm-clip":
        return ClippedSVM(measure)
    if name == "knn":
        return NearestNeighbours(measure)
    if name == "logistic":
        return LandmarkLogistic(measure, landmarks or "stratified", settings["n_landmarks"], seed)
    if name == "features":
        kind = feature_kind(pairs)
        if kind is None:
            raise ValueError(
                "the model 'features' needs strings, vectors or series; these objects or values "
                "have no features: leave it out"
            )
        return FeatureBaseline(measure, pairs.objects, kind, seed)
    raise ValueError(f"unknown model {name!r}; choose from {', '.join(AVAILABLE)}")


def fresh(model: Model) -> Model:
    """Return an unfitted copy of the model."""
    return copy(model) if isinstance(model, Baseline) else clone(model)


def needs_all(model: Model) -> bool:
    """Whether the model needs all pairs of its training objects."""
    if isinstance(model, Baseline):
        return model.needs_all
    rule = getattr(model, "landmarks", None)
    return isinstance(rule, All) or (isinstance(rule, str) and rule == "all")


def title(model: Model) -> str:
    """Return a short description of the model."""
    if isinstance(model, Baseline):
        return model.title
    rule = getattr(model, "landmarks", "its own")
    if isinstance(rule, str):
        how = "every object is a landmark" if rule == "all" else f"{rule} landmarks"
    else:
        how = f"landmarks by {rule}" if hasattr(rule, "get_params") else "given landmarks"
    calibrated = ", calibrated" if getattr(model, "calibrate", False) else ""
    return f"{type(model).__name__}, {how}{calibrated}"
