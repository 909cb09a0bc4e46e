"""Heads: fitted models that turn an object's values to the landmarks into log-probabilities.

A head holds what predictions need and nothing else: no landmark space, no moments. Heads of one
classifier share the same values, so that a further head costs no comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from .calibration import fit_temperature
from .checks import Array, Indices
from .convert import LandmarkCentre
from .family import Codes, log_proba_joint
from .fisher import LinearDiscriminant
from .pcvm.basis import BasisFunction, basis_values
from .pcvm.family import PCVMFamily, both_scores
from .pcvm.model import PCVMModel
from .quadratic import QuadraticDiscriminant
from .space import LandmarkSpace


class Head(Protocol):
    """A fitted model behind one of several opinions."""

    @property
    def temperature(self) -> float:
        """Scores are multiplied by it before they become probabilities."""

    def scores(self, values: Array) -> Array:
        """Return scores (n, C) from values (n, m) to the landmarks."""

    def to_log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C) from scores."""


def log_proba_of(head: Head, scores: Array) -> Array:
    """Return the log-probabilities (n, C) of objects with these scores, at the temperature."""
    return head.to_log_proba(head.temperature * scores)


@dataclass(frozen=True)
class LinearHead:
    """IKFD: scores s(x, L) W + b, with s the similarities to the landmarks."""

    centre: LandmarkCentre | None  # None for similarities
    dual_coef: Array  # (m, C)
    intercept: Array  # (C,)
    temperature: float = 1.0

    @classmethod
    def of(cls, space: LandmarkSpace, model: LinearDiscriminant) -> Self:
        """Return the head of a discriminant of coordinates in `space`."""
        dual = space.basis.T @ model.coef
        return cls(space.centre, dual, model.intercept - model.centre @ model.coef)

    def scores(self, values: Array) -> Array:
        """Return scores (n, C). O(n·m·C)."""
        S = values if self.centre is None else self.centre.similarities(values)
        return S @ self.dual_coef + self.intercept

    def to_log_proba(self, scores: Array) -> Array:
        """Return log-probabilities: softmax."""
        return log_proba_joint(scores)


@dataclass(frozen=True)
class QuadraticHead:
    """IKQD: scores −½‖(s(x, L) P − o − mean_c) root_c‖² + intercept_c."""

    centre: LandmarkCentre | None
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
        return cls(space.centre, project, offset, model.means, model.roots, model.intercept)

    def scores(self, values: Array) -> Array:
        """Return scores (n, C). O(n·C·m²)."""
        S = values if self.centre is None else self.centre.similarities(values)
        Z = S @ self.project - self.offset
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
    places: Indices  # (k,): of the landmarks that carry a weight
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
    """Return the head at the temperature that suits held-out scores (n, C) best."""
    temperature = fit_temperature(held_out, codes, head.to_log_proba, weights)
    return replace(head, temperature=temperature)  # type: ignore[type-var]
