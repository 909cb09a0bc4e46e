"""Models by name, and estimators of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

from sklearn.base import clone

from ..estimators.classifier import LandmarkClassifier
from ..estimators.registry import MODELS
from ..landmarks.all import All
from .baselines import Baseline, ClippedSVM, LandmarkLogistic, Neighbours

AVAILABLE = (*MODELS, "svm-clip", "knn", "logistic")
"""Names that `evaluate` knows."""

Model = LandmarkClassifier | Baseline


def get_models(
    models: str | Iterable[str] | Mapping[str, Any],
    *,
    landmarks: Any,
    n_landmarks: int | None,
    calibrate: bool,
    random_state: int,
    opening: dict[str, Any],
) -> dict[str, Model]:
    """Return the models by the name that the report calls them, ready to be fitted."""
    chosen = {"landmarks": landmarks, "n_landmarks": n_landmarks, "random_state": random_state}
    shared = opening["measure"]
    made: dict[str, Callable[[], Model]] = {
        name: partial(family.estimator, calibrate=calibrate and family.calibrate, **chosen)
        for name, family in MODELS.items()
    }
    made |= {
        "svm-clip": lambda: ClippedSVM(shared),
        "knn": lambda: Neighbours(shared),
        "logistic": lambda: LandmarkLogistic(shared, landmarks, n_landmarks, random_state),
    }
    named: dict[str, Any]
    if isinstance(models, Mapping):
        named = dict(models)
    else:
        listed = [models] if isinstance(models, str) else list(models)
        named = {name: name for name in listed}
        if len(named) < len(listed):
            raise ValueError(f"a model is named twice: {', '.join(map(str, listed))}")
    if not named:
        raise ValueError(f"no model to evaluate; there are {', '.join(AVAILABLE)}")
    found: dict[str, Model] = {}
    for name, model in named.items():
        if isinstance(model, str):
            if model not in made:
                raise ValueError(f"no model is called {model!r}; there are {', '.join(AVAILABLE)}")
            model = made[model]()
        if isinstance(model, LandmarkClassifier):
            model = clone(model).set_params(**opening)  # all compare alike
        elif not isinstance(model, Baseline):
            raise TypeError(
                f"model {name!r} is a {type(model).__name__}: evaluate takes IKFD, IKQD and PCVM, "
                f"or one of the names {', '.join(AVAILABLE)}"
            )
        found[str(name)] = model
    return found


def fresh(model: Model) -> Model:
    """Return the model, not fitted."""
    return clone(model) if isinstance(model, LandmarkClassifier) else deepcopy(model)


def needs_all(model: Model) -> bool:
    """Whether the model looks at all pairs of its training objects."""
    if isinstance(model, Baseline):
        return model.needs_all
    rule = model.landmarks
    return isinstance(rule, All) or (isinstance(rule, str) and rule == "all")


def title(model: Model) -> str:
    """Say in some words what the model is."""
    if isinstance(model, Baseline):
        return model.title
    rule = model.landmarks
    if isinstance(rule, str):
        how = "every object a landmark" if rule == "all" else f"{rule} landmarks"
    else:
        how = f"landmarks by {rule}" if hasattr(rule, "get_params") else "given landmarks"
    return f"{type(model).__name__}, {how}" + (", calibrated" if model.calibrate else "")
