"""The model families: one line each. The command, the evaluation and the model file read it.

To add a family: its mathematics in `core`, its estimator in a file beside this one, a line here.
"""

from __future__ import annotations

from dataclasses import dataclass

from .classifier import LandmarkClassifier
from .ikfd import IKFD
from .ikqd import IKQD
from .krein import KreinClassifier
from .pcvm import PCVM


@dataclass(frozen=True)
class ModelFamily:
    """A family of models as users meet it."""

    estimator: type[LandmarkClassifier]
    about: str
    """What it is, for the help of the command."""
    calibrate: bool = False
    """Whether its probabilities need calibration, so that it is on by default."""


MODELS: dict[str, ModelFamily] = {
    "auto": ModelFamily(KreinClassifier, "three models and a second look; the one to begin with"),
    "ikfd": ModelFamily(IKFD, "one pass, linear boundaries", calibrate=True),
    "ikqd": ModelFamily(IKQD, "one pass, curved boundaries", calibrate=True),
    "pcvm": ModelFamily(PCVM, "often the most accurate, in several passes"),
}
"""By the name that `krein fit --model` and `krein.evaluation.evaluate` take."""
