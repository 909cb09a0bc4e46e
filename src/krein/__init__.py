"""Probabilistic classification with similarities that are not kernels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__ as __version__

_HOME = {
    "IKFD": "estimators",
    "IKQD": "estimators",
    "PCVM": "estimators",
    "IndefiniteKernelPCA": "estimators",
    "KreinClassifier": "estimators",
    "NystromMap": "estimators",
    "PseudoEuclideanEmbedding": "estimators",
    "load": "model.file",
}

_PARTS = {
    "compare",
    "datasets",
    "evaluation",
    "io",
    "landmarks",
    "measures",
    "model",
    "neighbours",
    "reject",
    "report",
    "data",
}

if TYPE_CHECKING:
    from .estimators import (
        IKFD,
        IKQD,
        PCVM,
        IndefiniteKernelPCA,
        KreinClassifier,
        NystromMap,
        PseudoEuclideanEmbedding,
    )
    from .model.file import load

__all__ = [
    "IKFD",
    "IKQD",
    "PCVM",
    "IndefiniteKernelPCA",
    "KreinClassifier",
    "NystromMap",
    "PseudoEuclideanEmbedding",
    "load",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first access, which keeps `import krein` light."""
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    if name in _PARTS:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_PARTS, *(name for name in globals() if name.startswith("__"))})
