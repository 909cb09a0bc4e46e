"""The model families, one line each, as read by the command, the evaluation and the model file.

To add a family, write its mathematics in `core`, its estimator in this folder, and a line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classifier import LandmarkClassifier


def find_class(home: str) -> Any:
    """Return the class for `module:Class` in this package."""
    module, _, name = home.partition(":")
    return getattr(import_module(f".{module}", __package__), name)


@dataclass(frozen=True)
class ModelFamily:
    """A family of models as users see it."""

    home: str
    """Module and class of its estimator, imported when first needed."""
    about: str
    """A short description for the command's help."""
    calibrate: bool = False
    """Whether calibration is on by default, because the probabilities need it."""

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
"""Model families by the name that `krein fit --model` and `krein.evaluation.evaluate` accept."""

_HOMES = (
    *(family.home for family in MODELS.values()),
    "embeddings:IndefiniteKernelPCA",
    "maps:NystromMap",
    "embeddings:PseudoEuclideanEmbedding",
)
ESTIMATORS: dict[str, str] = {home.partition(":")[2]: home for home in _HOMES}
"""The classes that a model file may contain, by name; `find_class` imports one.

Each declares its stored attributes in `_fitted`.
"""

FITTED: dict[str, str] = {
    "KreinClassifier": "twolooks:FittedTwoLooks",
    "IKFD": "fittedmodels:FittedIKFD",
    "IKQD": "fittedmodels:FittedIKQD",
    "PCVM": "fittedmodels:FittedPCVM",
}
"""The counterparts of these classes that can only predict, and do not need scikit-learn."""
