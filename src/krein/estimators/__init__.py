"""Thin scikit-learn façades over `krein.core`, each imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .registry import ESTIMATORS, find_class

if TYPE_CHECKING:
    from .embeddings import IndefiniteKernelPCA, PseudoEuclideanEmbedding
    from .ikfd import IKFD
    from .ikqd import IKQD
    from .krein import KreinClassifier
    from .loading import load, load_model
    from .maps import NystromMap
    from .pcvm import PCVM

_HOME = {**ESTIMATORS, "load": "loading:load", "load_model": "loading:load_model"}

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
    """Import an estimator on first use, so that reading the registry stays cheap."""
    if name in _HOME:
        return find_class(_HOME[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
