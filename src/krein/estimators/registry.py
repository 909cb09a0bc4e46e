"""The model families: one line each. The command, the evaluation and the model file read it.

To add a family: its mathematics in `core`, its estimator in a file beside this one, a line here.
"""

from __future__ import annotations

from dataclasses import dataclass

from .base import LandmarkEstimator
from .classifier import LandmarkClassifier
from .ikfd import IKFD
from .ikqd import IKQD
from .maps import IndefiniteKernelPCA, NystromMap, PseudoEuclideanEmbedding
from .pcvm import PCVM


@dataclass(frozen=True)
class ModelFamily:
    """A family of models as users meet it."""

    estimator: type[LandmarkClassifier]
    about: str
    """What it is, for the help of the command."""
    calibrate: bool = False
    """Whether its probabilities need calibration, so that it is on unless somebody says no."""


MODELS: dict[str, ModelFamily] = {
    "ikfd": ModelFamily(IKFD, "one pass, linear boundaries", calibrate=True),
    "ikqd": ModelFamily(IKQD, "one pass, curved boundaries", calibrate=True),
    "pcvm": ModelFamily(PCVM, "often the most accurate, in several passes"),
}
"""By the name that `krein fit --model` and `krein.evaluation.evaluate` take."""

ESTIMATORS: dict[str, type[LandmarkEstimator]] = {
    cls.__name__: cls
    for cls in (
        *(family.estimator for family in MODELS.values()),
        IndefiniteKernelPCA,
        NystromMap,
        PseudoEuclideanEmbedding,
    )
}
"""The classes that a model file may hold; each declares in `_fitted` what the file says of it."""
