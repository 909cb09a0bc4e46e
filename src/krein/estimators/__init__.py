"""Thin scikit-learn façades that fit models, each imported on first use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..model import ESTIMATORS, find_estimator

if TYPE_CHECKING:
    from .discriminants import IKFD, IKQD
    from .krein import KreinClassifier
    from .maps import IndefiniteKernelPCA, NystromMap, PseudoEuclideanEmbedding
    from .pcvm import PCVM

__all__ = [
    "IKFD",
    "IKQD",
    "MODELS",
    "PCVM",
    "IndefiniteKernelPCA",
    "KreinClassifier",
    "ModelFamily",
    "NystromMap",
    "PseudoEuclideanEmbedding",
]


@dataclass(frozen=True)
class ModelFamily:
    """A family of models as users see it."""

    name: str
    """The name of its estimator."""
    about: str
    """A short description for the command's help."""
    calibrate: bool = False
    """Whether calibration is on by default, because the probabilities need it."""

    @property
    def estimator(self) -> Any:
        """The class of its estimators."""
        return find_estimator(self.name)


MODELS: dict[str, ModelFamily] = {
    "krein": ModelFamily("KreinClassifier", "three models and a second look; start with this one"),
    "ikfd": ModelFamily("IKFD", "one pass, linear boundaries", calibrate=True),
    "ikqd": ModelFamily("IKQD", "one pass, curved boundaries", calibrate=True),
    "pcvm": ModelFamily("PCVM", "often the most accurate, in several passes"),
}
"""Model families by the name that `krein fit --model` and `krein.evaluation.evaluate` accept."""


def __getattr__(name: str) -> Any:
    """Import an estimator on first use, so that reading the list of families stays cheap."""
    if name in ESTIMATORS:
        return find_estimator(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
