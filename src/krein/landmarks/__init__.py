"""Rules that choose landmarks, one per file, behind one small protocol.

Rules are imported on first use: they need scikit-learn, but a model file contains only a
`Selection`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..wording import parameter

if TYPE_CHECKING:
    from .all import All, Given
    from .auto import Auto
    from .base import Rule, Selection, select_landmarks
    from .entropy import Entropy
    from .kmeans import KMeans
    from .leverage import Leverage
    from .meb import MEB
    from .random import Random, Stratified

_MODULES = {
    "All": "all",
    "Auto": "auto",
    "Entropy": "entropy",
    "Given": "all",
    "KMeans": "kmeans",
    "Leverage": "leverage",
    "MEB": "meb",
    "Random": "random",
    "Rule": "base",
    "Selection": "base",
    "Stratified": "random",
    "select_landmarks": "base",
}

__all__ = [
    "MEB",
    "All",
    "Auto",
    "Entropy",
    "Given",
    "KMeans",
    "Leverage",
    "Random",
    "Rule",
    "Selection",
    "Stratified",
    "get_rule",
    "select_landmarks",
]

_NAMED = ("All", "MEB", "KMeans", "Entropy", "Random", "Stratified", "Leverage", "Auto")
_RULES = {name.lower(): name for name in _NAMED}
"""The class of each rule, by the name that `landmarks=` accepts."""


def __getattr__(name: str) -> Any:
    """Import a name on first access."""
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_rule(landmarks: Any, n_landmarks: int | None = None) -> Rule:
    """Return the rule given by name, as a `Rule`, or as an array of indices.

    Examples
    --------
    >>> from krein.landmarks import get_rule
    >>> get_rule("random", n_landmarks=20)
    Random(n_landmarks=20)
    """
    from sklearn.base import clone

    from .all import Given
    from .base import Rule

    if isinstance(landmarks, str):
        if landmarks not in _RULES:
            raise ValueError(
                f"unknown landmark rule {landmarks!r}; choose one of {', '.join(_RULES)}"
            )
        rule = __getattr__(_RULES[landmarks])()
    else:
        rule = clone(landmarks) if isinstance(landmarks, Rule) else Given(np.asarray(landmarks))
    if n_landmarks is None:
        return rule
    if "n_landmarks" not in rule.get_params():
        raise ValueError(
            f"{parameter('n_landmarks', n_landmarks)} was given, but {type(rule).__name__} finds "
            f"its own number: use {parameter('landmarks', repr('stratified'))}, or another rule "
            f"that takes a number"
        )
    return rule.set_params(n_landmarks=n_landmarks)
