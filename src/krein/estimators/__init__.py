"""Thin scikit-learn façades over `krein.core`, each imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ikfd import IKFD
    from .ikqd import IKQD
    from .krein import KreinClassifier
    from .loading import load, load_model
    from .maps import IndefiniteKernelPCA, NystromMap, PseudoEuclideanEmbedding
    from .pcvm import PCVM

_HOME = {
    "IKFD": "ikfd",
    "IKQD": "ikqd",
    "PCVM": "pcvm",
    "IndefiniteKernelPCA": "maps",
    "KreinClassifier": "krein",
    "NystromMap": "maps",
    "PseudoEuclideanEmbedding": "maps",
    "load": "loading",
    "load_model": "loading",
}

__all__ = [
    "IKFD",
    "IKQD",
    "PCVM",
    "IndefiniteKernelPCA",
    "KreinClassifier",
    "NystromMap",
    "PseudoEuclideanEmbedding",
    "load",
    "load_model",
]


def __getattr__(name: str) -> Any:
    """Import an estimator: to read the names in the registry is then cheap."""
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
