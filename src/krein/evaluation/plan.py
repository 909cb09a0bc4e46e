"""What is evaluated: the objects, the fold in which each is held out, and the models."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from ..compare import Pairs
from ..core.shapes import Indices
from ..data.labelling import check_labels
from ..estimators import MODELS
from ..landmarks.base import All
from ..wording import article
from .baselines import (
    Baseline,
    ClippedSVM,
    FeatureBaseline,
    LandmarkLogistic,
    NearestNeighbours,
    have_features,
)
from .groups import find_groups, groups_per_class, number_groups, split_folds

NAMED_CLASSES = 5
"""Number of classes that a warning names."""


@dataclass(frozen=True)
class Plan:
    """Which of the given objects are evaluated, and the fold in which each is held out.

    The first `n_scored` objects are held out while others of their class are in the training set.
    Next come objects whose class is not: if labels are paths, they are scored by rank. Objects
    that are never held out come last.
    """

    order: Indices | None  # (N,): their rows among the objects given; None: all, as given
    labels: NDArray[Any]
    names: list[str]  # of the objects that are scored
    folds: Indices  # (N,): −1 for objects that are in every training set
    groups: Indices | None  # (N,): objects that are held out together
    n_scored: int
    classes: NDArray[Any]  # those of the training sets

    @property
    def codes(self) -> Indices:
        """The class of each object, as its index; −1 if no training set has it."""
        places = np.searchsorted(self.classes, self.labels)
        places = np.minimum(places, len(self.classes) - 1)
        return np.where(self.classes[places] == self.labels, places, -1)

    @property
    def n_folds(self) -> int:
        """Number of folds; 1 with test objects."""
        return int(self.folds.max()) + 1


def plan_folds(
    pairs: Pairs,
    y: Any,
    *,
    names: Sequence[Any] | None,
    folds: int,
    groups: Any,
    ranked: bool,
    seed: int,
) -> Plan:
    """Divide the objects into folds that keep groups together.

    A class in a single group cannot be learned while it is held out. If labels are paths
    (`ranked`), its objects are scored by rank; otherwise they are left out.
    """
    labels = check_labels(np.asarray(y), len(pairs))
    called = _names(names, len(pairs))
    classes, codes = np.unique(labels, return_inverse=True)
    grouped = find_groups(groups, pairs, codes, seed)
    alone = np.zeros(len(classes), dtype=bool)
    if grouped is not None or ranked:
        one_each = np.arange(len(codes)) if grouped is None else grouped
        alone = groups_per_class(codes, one_each) < 2
    n, order = len(labels), None
    if alone.any() and (~alone).sum() > 1:
        kept, others = np.flatnonzero(~alone[codes]), np.flatnonzero(alone[codes])
        n, order = len(kept), np.concatenate([kept, others])
        if not ranked:
            _warn_of_classes(classes[alone], len(others))
            classes, order = classes[~alone], kept
        labels, called = labels[order], [called[i] for i in kept]
        grouped = None if grouped is None else number_groups(grouped[order])
    scored, codes = np.unique(labels[:n], return_inverse=True)
    first = None if grouped is None else grouped[:n]
    split = split_folds(scored, codes, folds, seed, first)
    # the others go where their group is, or to the folds in turn
    one_each = np.arange(len(labels)) if grouped is None else grouped
    fold_of = np.arange(one_each.max() + 1) % folds
    fold_of[one_each[:n]] = split
    return Plan(order, labels, called, fold_of[one_each], grouped, n, classes)


def plan_test(
    pairs: Pairs, y: Any, test_labels: Any, *, names: Sequence[Any] | None, ranked: bool
) -> Plan:
    """Hold out test objects, which are the first ones of the pairs, in a single fold.

    If labels are paths (`ranked`), objects of classes that `y` lacks are scored by rank; otherwise
    they are an error.
    """
    if not pairs.measure.cacheable:
        raise ValueError("test objects cannot be given for a matrix of values: use folds")
    n = len(test_labels)
    new = check_labels(np.asarray(test_labels), n)
    known = check_labels(np.asarray(y), len(pairs) - n)
    called, classes = _names(names, n), np.unique(known)
    unseen = ~np.isin(new, classes)
    if unseen.any() and not (ranked and not unseen.all()):
        raise ValueError(
            f"{unseen.sum():,} of {n:,} test objects belong to classes without training objects, "
            f"such as {np.unique(new[unseen]).tolist()[0]!r}: leave them out"
        )
    order = None
    if unseen.any():
        first = np.argsort(unseen, kind="stable")
        order = np.concatenate([first, np.arange(n, len(pairs))])
        new, called = new[first], [called[i] for i in first[~unseen[first]]]
    folds = np.where(np.arange(len(pairs)) < n, 0, -1)
    labels = np.concatenate([new, known])
    return Plan(order, labels, called, folds, None, n - int(unseen.sum()), classes)


def _names(names: Sequence[Any] | None, n: int) -> list[str]:
    if names is not None and len(names) != n:
        raise ValueError(f"{len(names)} names for {n} objects")
    return [f"row {i}" for i in range(n)] if names is None else [str(name) for name in names]


def _warn_of_classes(alone: NDArray[Any], n: int) -> None:
    named = ", ".join(str(name) for name in alone[:NAMED_CLASSES].tolist())
    more = f" and {len(alone) - NAMED_CLASSES:,} more" if len(alone) > NAMED_CLASSES else ""
    warnings.warn(
        f"left out {len(alone):,} of the classes ({n:,} objects), because all objects of such a "
        f"class are in one group, so that it cannot be used for training and for testing: "
        f"{named}{more}; use smaller groups to keep them",
        stacklevel=4,
    )


# The models: by name, or the user's own estimators

AVAILABLE = (*MODELS, "svm-clip", "knn", "logistic", "features")
"""Names that `evaluate` accepts."""

DEFAULT = ("krein", "knn", "features")
"""The models evaluated by default; "features" only if the objects have any."""

Contender = Any  # one that compares objects by a measure, or a Baseline


def name_models(
    models: str | Iterable[str] | Mapping[str, Any] | None, pairs: Pairs
) -> dict[str, Any]:
    """Return the models that are asked for: a name of `AVAILABLE`, or an estimator, for each name
    in the report."""
    if models is None:
        models = [name for name in DEFAULT if name != "features" or have_features(pairs)]
    if not isinstance(models, Mapping):
        listed = [models] if isinstance(models, str) else list(models)
        models = {name: name for name in listed}
        if len(models) < len(listed):
            raise ValueError(f"a model is listed twice: {', '.join(map(str, listed))}")
    if not models:
        raise ValueError(f"no model to evaluate; choose from {', '.join(AVAILABLE)}")
    for model in models.values():
        if isinstance(model, str) and model not in AVAILABLE:
            raise ValueError(f"unknown model {model!r}; choose from {', '.join(AVAILABLE)}")
        if model == "features" and not have_features(pairs):
            raise ValueError(
                "the model 'features' needs strings, series, images, records or vectors; these "
                "objects or values have no features: leave it out"
            )
    return {str(name): model for name, model in models.items()}


def get_models(
    named: dict[str, Any], *, pairs: Pairs, settings: dict[str, Any], opening: dict[str, Any]
) -> dict[str, Contender]:
    """Return the models, ready to be fitted.

    `settings` are those of models given by name; `opening` is how all of them compare objects.
    """
    found: dict[str, Contender] = {}
    for name, model in named.items():
        if isinstance(model, str):
            model = _by_name(model, pairs, opening["measure"], settings)
        known = model.get_params(deep=False) if isinstance(model, BaseEstimator) else {}
        if "measure" in known and hasattr(model, "predict_proba"):
            shared_by_all = {key: value for key, value in opening.items() if key in known}
            model = clone(model).set_params(**shared_by_all)  # all use the same measure
        elif not isinstance(model, Baseline):
            raise TypeError(
                f"model {name!r} is {article(type(model).__name__)}: evaluate accepts krein's "
                f"classifiers, or one of the names {', '.join(AVAILABLE)}"
            )
        found[name] = model
    return found


def _by_name(name: str, pairs: Pairs, measure: Any, settings: dict[str, Any]) -> Contender:
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
    return FeatureBaseline(measure, pairs.objects, seed)


def fresh(model: Contender) -> Contender:
    """Return an unfitted copy of the model."""
    return copy(model) if isinstance(model, Baseline) else clone(model)


def needs_all(model: Contender) -> bool:
    """Whether the model needs all pairs of its training objects."""
    if isinstance(model, Baseline):
        return model.needs_all
    rule = getattr(model, "landmarks", None)
    return isinstance(rule, All) or (isinstance(rule, str) and rule == "all")


def takes_groups(model: Contender) -> bool:
    """Whether a fit holds out the objects of a group together."""
    if isinstance(model, Baseline):
        return model.takes_groups
    return getattr(model, "calibrate", True)


def title(model: Contender) -> str:
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
