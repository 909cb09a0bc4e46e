"""Fitted models: what predicts, explains, and is stored in a model file. Needs no scikit-learn."""

from __future__ import annotations

from importlib import import_module
from typing import Any

ESTIMATORS = {
    "KreinClassifier": "estimators.krein",
    "IKFD": "estimators.discriminants",
    "IKQD": "estimators.discriminants",
    "PCVM": "estimators.pcvm",
    "NystromMap": "estimators.maps",
    "PseudoEuclideanEmbedding": "estimators.maps",
    "IndefiniteKernelPCA": "estimators.maps",
}
"""The classes that a model file may contain, and their modules."""


def find_estimator(name: str) -> Any:
    """Return the class of an estimator; its module is imported when first needed."""
    return getattr(import_module(f"krein.{ESTIMATORS[name]}"), name)
