"""Models by name, and the user's own estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from inspect import signature
from typing import Any

from sklearn.base import BaseEstimator, clone

from ..compare import Pairs
from ..estimators.registry import MODELS, ModelFamily
from ..landmarks.all import All
from .baselines import Baseline, ClippedSVM, LandmarkLogistic, NearestNeighbours
from .features import FeatureBaseline, feature_kind

AVAILABLE = (*MODELS, "svm-clip", "knn", "logistic", "features")
"""Names that `evaluate` accepts."""

DEFAULT = ("auto", "knn", "features")
"""The models evaluated by default; "features" only if the objects have any."""

Model = Any  # a classifier of the library, by `_is_ours`, or a Baseline


def get_models(
    models: str | Iterable[str] | Mapping[str, Any] | None,
    *,
    pairs: Pairs,
    landmarks: Any,
    n_landmarks: int | None,
    calibrate: bool,
    random_state: int,
    opening: dict[str, Any],
) -> dict[str, Model]:
    """Return the models by their names in the report, ready to be fitted."""
    chosen = {"n_landmarks": n_landmarks, "random_state": random_state}
    if landmarks is not None:
        chosen["landmarks"] = landmarks
    shared = opening["measure"]
    made: dict[str, Callable[[], Model]] = {
        name: partial(_build, family, {"calibrate": calibrate and family.calibrate, **chosen})
        for name, family in MODELS.items()
    }
    made |= {
        "svm-clip": lambda: ClippedSVM(shared),
        "knn": lambda: NearestNeighbours(shared),
        "logistic": lambda: LandmarkLogistic(
            shared, landmarks or "stratified", n_landmarks, random_state
        ),
        "features": lambda: _features(pairs, shared, random_state),
    }
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
            if model not in made:
                raise ValueError(f"unknown model {model!r}; choose from {', '.join(AVAILABLE)}")
            model = made[model]()
        if _is_ours(model):
            known = model.get_params(deep=False)
            shared_by_all = {key: value for key, value in opening.items() if key in known}
            model = clone(model).set_params(**shared_by_all)  # all use the same measure
        elif not isinstance(model, Baseline):
            raise TypeError(
                f"model {name!r} is a {type(model).__name__}: evaluate accepts krein's "
                f"classifiers, or one of the names {', '.join(AVAILABLE)}"
            )
        found[str(name)] = model
    return found


def _build(family: ModelFamily, params: dict[str, Any]) -> Model:
    """Return the estimator, with those parameters that it accepts."""
    known = signature(family.estimator).parameters
    return family.estimator(**{key: value for key, value in params.items() if key in known})


def _is_ours(model: Any) -> bool:
    """Whether the model is a classifier that compares objects by a measure."""
    return (
        isinstance(model, BaseEstimator)
        and hasattr(model, "predict_proba")
        and "measure" in model.get_params(deep=False)
    )


def _features(pairs: Pairs, shared: Any, seed: int) -> FeatureBaseline:
    kind = feature_kind(pairs)
    if kind is None:
        raise ValueError(
            "the model 'features' needs strings, vectors or series; these objects or values have "
            "no features: leave it out"
        )
    return FeatureBaseline(shared, pairs.objects, kind, seed)


def fresh(model: Model) -> Model:
    """Return an unfitted copy of the model."""
    return deepcopy(model) if isinstance(model, Baseline) else clone(model)


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
    return f"{type(model).__name__}, {how}" + (
        ", calibrated" if getattr(model, "calibrate", False) else ""
    )
