"""The model families: one line each. The command, the evaluation and the model file read it.

To add a family: its mathematics in `core`, its estimator in a file beside this one, a line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classifier import LandmarkClassifier


def find_class(home: str) -> Any:
    """Return the class of `module:Class` beside this file."""
    module, _, name = home.partition(":")
    return getattr(import_module(f".{module}", __package__), name)


@dataclass(frozen=True)
class ModelFamily:
    """A family of models as users meet it."""

    home: str
    """Module and class of its estimator, imported when first needed."""
    about: str
    """What it is, for the help of the command."""
    calibrate: bool = False
    """Whether its probabilities need calibration, so that it is on by default."""

    @property
    def estimator(self) -> type[LandmarkClassifier]:
        """The class of its estimators."""
        found: type[LandmarkClassifier] = find_class(self.home)
        return found


MODELS: dict[str, ModelFamily] = {
    "auto": ModelFamily(
        "krein:KreinClassifier", "three models and a second look; start with this one"
    ),
    "ikfd": ModelFamily("ikfd:IKFD", "one pass, linear boundaries", calibrate=True),
    "ikqd": ModelFamily("ikqd:IKQD", "one pass, curved boundaries", calibrate=True),
    "pcvm": ModelFamily("pcvm:PCVM", "often the most accurate, in several passes"),
}
"""By the name that `krein fit --model` and `krein.evaluation.evaluate` take."""

_HOMES = (
    *(family.home for family in MODELS.values()),
    "embeddings:IndefiniteKernelPCA",
    "maps:NystromMap",
    "embeddings:PseudoEuclideanEmbedding",
)
ESTIMATORS: dict[str, str] = {home.partition(":")[2]: home for home in _HOMES}
"""The classes that a model file may hold, by name; `find_class` imports one.

Each declares in `_fitted` what the file says of it.
"""

FITTED: dict[str, str] = {
    "KreinClassifier": "twolooks:FittedTwoLooks",
    "IKFD": "fittedmodels:FittedIKFD",
    "IKQD": "fittedmodels:FittedIKQD",
    "PCVM": "fittedmodels:FittedPCVM",
}
"""What such a class is without scikit-learn: all that a prediction needs."""
