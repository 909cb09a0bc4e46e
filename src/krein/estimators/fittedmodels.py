"""The fitted models of IKFD, IKQD and PCVM: what their files contain, and how they score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

from ..core.checks import Array, Indices
from ..core.covariance import TARGETS
from ..core.family import log_proba_joint
from ..core.gaussian import FisherFamily, QuadraticDiscriminant
from ..core.moments import ClassMoments
from ..core.pcvm.fit import PCVMFamily, both_scores
from ..core.pcvm.published import pair_log_shares
from ..core.pcvm.rows import BasisFunction, basis_values
from .calibration import PassResult
from .compound import Either, ListOf, Optional, Value
from .declared import CLASS_MOMENTS, LANDMARK_SET, PASS_RESULT, POWER
from .fitted import FittedClassifier
from .schema import Flag, Real, Schema, Text, Whole, floats, indices
from .selection import LandmarkSet

TARGET = Either(Text(TARGETS), ListOf(Text(TARGETS), "C"))
"""The shrinkage target of a covariance, as declared in the schema of a model file."""


@dataclass(frozen=True)
class Stream:
    """The state of `partial_fit`: the landmarks as first chosen, and the sums so far."""

    landmarks: LandmarkSet  # in the space of the chosen power
    moments: ClassMoments  # in that space
    powers: list[float]  # the powers to choose from
    passed: PassResult | None  # moments per power, and the sample for the choice; None for a
    # calibrated model, which does not accept further chunks


class FittedGaussian(FittedClassifier):
    """Code shared by IKFD and IKQD: moments, to which further chunks can be added."""

    stream_: Stream

    _fitted: ClassVar[Schema] = {
        **FittedClassifier._fitted,
        # its landmarks are those before pruning
        "stream_": Value(
            Stream,
            {
                "landmarks": LANDMARK_SET,
                "moments": CLASS_MOMENTS,
                "powers": ListOf(POWER, "powers"),
                "passed": Optional(PASS_RESULT),
            },
            scope="stream",
        ),
    }

    @property
    def power_(self) -> float | None:
        """The power of a dissimilarity that was chosen; None for a similarity."""
        space = self.stream_.landmarks.space
        return space.power if space.kind == "dissimilarity" else None


class FittedIKFD(FittedGaussian):
    """Scores linear in the similarities to the landmarks."""

    multiclass: str

    dual_coef_: Array
    intercept_: Array
    shrinkage_: float | Array
    target_: str | list[str]

    _parameters: ClassVar[tuple[str, ...]] = (*FittedGaussian._parameters, "multiclass")
    _fitted: ClassVar[Schema] = {
        **FittedGaussian._fitted,
        "dual_coef_": floats("m", "C"),
        "intercept_": floats("C", minus_infinity=True),
        "shrinkage_": Either(Real(0.0), floats("C")),
        "target_": TARGET,
    }

    def _scores(self, values: Array) -> Array:
        return self.space_.similarities(values) @ self.dual_coef_ + self.intercept_

    def _log_proba(self, scores: Array) -> Array:
        family = FisherFamily(len(self.classes_), one_against_rest=self.multiclass == "ovr")
        return family.log_proba(scores)


class FittedIKQD(FittedGaussian):
    """Scores quadratic in the landmark coordinates."""

    discriminant_: QuadraticDiscriminant
    target_: str | list[str]

    _fitted: ClassVar[Schema] = {
        **FittedGaussian._fitted,
        "target_": TARGET,
        "discriminant_": Value(
            QuadraticDiscriminant,
            {
                "centre": floats("r"),
                "whiten": floats("r", "s"),
                "means": floats("C", "s"),
                "roots": floats("C", "s", "s"),
                "intercept": floats("C", minus_infinity=True),
                "shrinkage": floats("C"),
            },
        ),
    }

    def _scores(self, values: Array) -> Array:
        return self.discriminant_.scores(self.space_.coordinates(values))

    def _log_proba(self, scores: Array) -> Array:
        return log_proba_joint(scores)


class FittedPCVM(FittedClassifier):
    """Weighted sums of basis functions."""

    multiclass: str
    solver: str

    relevance_: Indices
    dual_coef_: Array
    intercept_: Array
    objective_path_: Array
    basis_function_: BasisFunction
    prior_scale_: float
    n_iter_: int
    converged_: bool
    stop_reason_: str

    _parameters: ClassVar[tuple[str, ...]] = (*FittedClassifier._parameters, "multiclass", "solver")
    _fitted: ClassVar[Schema] = {
        **FittedClassifier._fitted,
        "relevance_": indices("relevant"),
        "dual_coef_": floats("m", "heads"),  # one per class, or a single one for two classes
        "intercept_": floats("heads"),
        "objective_path_": floats("steps"),
        "basis_function_": Text(get_args(BasisFunction)),
        "prior_scale_": Real(0.0),
        "n_iter_": Whole(),
        "converged_": Flag(),
        "stop_reason_": Text(),
    }

    def _scores(self, values: Array) -> Array:
        if self.basis_function_ == "similarity":
            F = self.space_.similarities(values)
        else:
            F = basis_values(self.basis_function_, values)
        Z = F @ self.dual_coef_ + self.intercept_
        if self.solver == "paper" and len(self.classes_) > 2:
            return pair_log_shares(Z, len(self.classes_))
        return both_scores(Z)

    def _log_proba(self, scores: Array) -> Array:
        apart = self.multiclass == "ovr" and self.solver != "paper"
        return PCVMFamily(len(self.classes_), one_against_rest=apart).log_proba(scores)
