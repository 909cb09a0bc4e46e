"""Rules that choose landmarks, one per file, behind one small protocol.

Those that choose nothing are in `base`, with the protocol.

Rules are imported on first use: they need scikit-learn, but a model file contains only a
`Selection`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .auto import Auto
    from .base import All, Given, Rule, Selection, get_rule, select_landmarks
    from .entropy import Entropy
    from .kmeans import KMeans
    from .leverage import Leverage
    from .meb import MEB
    from .random import Random, Stratified

_MODULES = {
    "All": "base",
    "Auto": "auto",
    "Entropy": "entropy",
    "Given": "base",
    "KMeans": "kmeans",
    "Leverage": "leverage",
    "MEB": "meb",
    "Random": "random",
    "Rule": "base",
    "Selection": "base",
    "Stratified": "random",
    "get_rule": "base",
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


def __getattr__(name: str) -> Any:
    """Import a name on first access."""
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
