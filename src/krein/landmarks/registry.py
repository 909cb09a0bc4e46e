"""Selection rules by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from ..wording import parameter
from .all import All, Given
from .auto import Auto
from .base import Rule
from .entropy import Entropy
from .kmeans import KMeans
from .leverage import Leverage
from .meb import MEB
from .random import Random, Stratified

RULES: dict[str, type[Rule]] = {
    "all": All,
    "meb": MEB,
    "kmeans": KMeans,
    "entropy": Entropy,
    "random": Random,
    "stratified": Stratified,
    "leverage": Leverage,
    "auto": Auto,
}


def get_rule(landmarks: Any, n_landmarks: int | None = None) -> Rule:
    """Return the rule given by name, as a `Rule`, or as an array of indices.

    Examples
    --------
    >>> from krein.landmarks import get_rule
    >>> get_rule("random", n_landmarks=20)
    Random(n_landmarks=20)
    """
    if isinstance(landmarks, str):
        if landmarks not in RULES:
            raise ValueError(
                f"unknown landmark rule {landmarks!r}; choose one of {', '.join(RULES)}"
            )
        rule = RULES[landmarks]()
    elif isinstance(landmarks, Rule):
        rule = clone(landmarks)
    else:
        rule = Given(np.asarray(landmarks))
    if n_landmarks is None:
        return rule
    if "n_landmarks" not in rule.get_params():
        raise ValueError(
            f"{parameter('n_landmarks', n_landmarks)} was given, but {type(rule).__name__} finds "
            f"its own number"
        )
    return rule.set_params(n_landmarks=n_landmarks)
