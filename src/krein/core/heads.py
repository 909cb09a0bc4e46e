"""Heads: fitted models that turn an object's values to the landmarks into log-probabilities.

A head contains only what predictions need: no landmark space, no moments. All heads of a classifier
share the same values, so an additional head needs no further comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from .calibration import fit_temperature
from .checks import Array, Indices
from .family import Codes, log_proba_joint
from .gaussian import LinearDiscriminant, QuadraticDiscriminant
from .pcvm.fit import PCVMFamily, PCVMModel, both_scores
from .pcvm.rows import BasisFunction, basis_values
from .space import Conversion, LandmarkSpace


class Head(Protocol):
    """A fitted model, one of several that a classifier pools."""

    @property
    def temperature(self) -> float:
        """The factor on the scores before they become probabilities."""

    def scores(self, values: Array) -> Array:
        """Return scores (n, C) from values (n, m) to the landmarks."""

    def to_log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C) from scores."""


def log_proba_of(head: Head, scores: Array) -> Array:
    """Return the log-probabilities (n, C) for these scores, with the temperature applied."""
    return head.to_log_proba(head.temperature * scores)


@dataclass(frozen=True)
class LinearHead:
    """IKFD: scores s(x, L) W + b, with s the similarities to the landmarks."""

    conversion: Conversion
    dual_coef: Array  # (m, C)
    intercept: Array  # (C,)
    temperature: float = 1.0

    @classmethod
    def of(cls, space: LandmarkSpace, model: LinearDiscriminant) -> Self:
        """Return the head of a discriminant of coordinates in `space`."""
        dual = space.basis.T @ model.coef
        return cls(space.conversion, dual, model.intercept - model.centre @ model.coef)

    def scores(self, values: Array) -> Array:
        """Return scores (n, C). O(n·m·C)."""
        return self.conversion.similarities(values) @ self.dual_coef + self.intercept

    def to_log_proba(self, scores: Array) -> Array:
        """Return log-probabilities: softmax."""
        return log_proba_joint(scores)


@dataclass(frozen=True)
class QuadraticHead:
    """IKQD: scores −½‖(s(x, L) P − o − mean_c) root_c‖² + intercept_c."""

    conversion: Conversion
    project: Array  # (m, s)
    offset: Array  # (s,)
    means: Array  # (C, s)
    roots: Array  # (C, s, s)
    intercept: Array  # (C,)
    temperature: float = 1.0

    @classmethod
    def of(cls, space: LandmarkSpace, model: QuadraticDiscriminant) -> Self:
        """Return the head of a discriminant of coordinates in `space`."""
        project = space.basis.T @ model.whiten
        offset = model.centre @ model.whiten
        return cls(space.conversion, project, offset, model.means, model.roots, model.intercept)

    def scores(self, values: Array) -> Array:
        """Return scores (n, C). O(n·C·m²)."""
        Z = self.conversion.similarities(values) @ self.project - self.offset
        apart = [
            np.square((Z - mean) @ root).sum(axis=1)
            for mean, root in zip(self.means, self.roots, strict=True)
        ]
        return self.intercept - 0.5 * np.stack(apart, axis=1)

    def to_log_proba(self, scores: Array) -> Array:
        """Return log-probabilities: softmax."""
        return log_proba_joint(scores)


@dataclass(frozen=True)
class PCVMHead:
    """PCVM: scores F(x, L) W + b, with F a basis function of the values to some landmarks."""

    function: BasisFunction
    places: Indices  # (k,): of the landmarks with non-zero weight
    weights: Array  # (k, 1 or C)
    bias: Array
    temperature: float = 1.0

    @classmethod
    def of(cls, model: PCVMModel) -> Self:
        """Return the head of a model on landmarks."""
        return cls(model.function, model.places, model.dual_coef, model.intercept)

    def scores(self, values: Array) -> Array:
        """Return scores (n, C). O(n·m·C)."""
        F = basis_values(self.function, values[:, self.places])
        return both_scores(F @ self.weights + self.bias)

    def to_log_proba(self, scores: Array) -> Array:
        """Return log-probabilities: probit for two classes, softmax for more."""
        return PCVMFamily(scores.shape[1]).log_proba(scores)


def calibrated(head: Head, held_out: Array, codes: Codes, weights: Array | None) -> Head:
    """Return the head with the temperature that fits held-out scores (n, C) best."""
    temperature = fit_temperature(held_out, codes, head.to_log_proba, weights)
    return replace(head, temperature=temperature)  # type: ignore[type-var]
