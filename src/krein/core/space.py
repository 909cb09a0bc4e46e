"""From values of a measure to pseudo-Euclidean coordinates, by the landmarks alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .checks import Array, Indices
from .convert import LandmarkCentre, powered
from .nystrom import LandmarkBasis, landmark_basis
from .spectrum import RANK_TOLERANCE

SAFE = (1e-50, 1e50)
"""Where the largest value lies outside, values are divided by a power of two: their squares, and
products of those, must be numbers."""

_LEAST = 1e-300
"""Values below it have lost digits."""

_LEVEL = 1e-10
"""Similarities that differ by less than this share of their common level count as constant."""


@dataclass(frozen=True)
class Conversion:
    """From values of the measure to similarities to the landmarks.

    Values are divided by `unit`; a dissimilarity is raised to `power`, squared and centred.
    """

    centre: LandmarkCentre | None  # None for a similarity
    power: float = 1.0
    unit: float = 1.0

    def similarities(self, values: Array) -> Array:
        """Return similarities (n, m) from values of the measure (n, m). O(n·m)."""
        values = self.raised(values)
        return values if self.centre is None else self.centre.similarities(values)

    def raised(self, values: Array) -> Array:
        """Return values in the unit, dissimilarities raised to the power, not squared yet."""
        values = values if self.unit == 1 else values / self.unit
        return values if self.centre is None else powered(values, self.power)


@dataclass(frozen=True)
class LandmarkSpace:
    """The coordinates that m landmarks span, whether their values are similarities or not.

    A dissimilarity is raised to `power`, squared and centred on the landmarks first. One map serves
    training objects and new ones: m values in, r coordinates out. Values are divided by `unit`
    where they enter, which is 1 unless they are beyond 10^±50.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import LandmarkSpace
    >>> D = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> space = LandmarkSpace.of(D, "dissimilarity")
    >>> np.abs(space.coordinates(D)).round(6)
    array([[1.],
           [1.]])
    """

    landmark_values: Array  # (m, m): values of the measure between the landmarks, as they came
    basis: LandmarkBasis
    centre: LandmarkCentre | None  # None for a similarity
    rank: int | None = None  # at most so many coordinates
    power: float = 1.0  # of a dissimilarity: 1, 1/2 or 1/4
    unit: float = 1.0

    @classmethod
    def of(
        cls,
        landmark_values: Array,
        kind: Literal["similarity", "dissimilarity"],
        *,
        tol: float = RANK_TOLERANCE,
        rank: int | None = None,
        power: float = 1.0,
        unit: float = 1.0,
    ) -> LandmarkSpace:
        """Return the space of landmarks with these values between them. O(m³)."""
        values = landmark_values if unit == 1 else landmark_values / unit
        centre = None
        if kind == "dissimilarity":
            values = powered(values, power)
            centre = LandmarkCentre.of(values)
            values = centre.similarities(values)
        basis = landmark_basis(values, tol=tol, rank=rank)
        return cls(landmark_values, basis, centre, rank, power, unit)

    def with_power(self, power: float) -> LandmarkSpace:
        """Return the space of the same landmarks with dissimilarities raised to `power`. O(m³)."""
        if power == self.power:
            return self
        return LandmarkSpace.of(
            self.landmark_values, self.kind, rank=self.rank, power=power, unit=self.unit
        )

    @property
    def kind(self) -> Literal["similarity", "dissimilarity"]:
        """What the values are."""
        return "similarity" if self.centre is None else "dissimilarity"

    @property
    def conversion(self) -> Conversion:
        """The way from values to similarities."""
        return Conversion(self.centre, self.power, self.unit)

    @property
    def signs(self) -> Array:
        """The diagonal of J (r,)."""
        return self.basis.signs

    def similarities(self, values: Array) -> Array:
        """Return similarities C (n, m) from values of the measure (n, m). O(n·m)."""
        return self.conversion.similarities(values)

    def coordinates(self, values: Array) -> Array:
        """Return B (n, r) from values of the measure (n, m). O(n·m·r)."""
        return self.basis.coordinates(self.similarities(values))

    def origin(self) -> Array:
        """Return the mean coordinates of the landmarks: a point near the data. O(m²·r)."""
        return self.coordinates(self.landmark_values).mean(axis=0)

    def restricted(self, kept: Indices) -> LandmarkSpace:
        """Return the space of the landmarks `kept` alone. O(m³)."""
        return LandmarkSpace.of(
            self.landmark_values[np.ix_(kept, kept)],
            self.kind,
            rank=self.rank,
            power=self.power,
            unit=self.unit,
        )


def unit_of(values: Array) -> float:
    """Return what to divide values by: 1, or a power of two near values far beyond 10^±50.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.space import unit_of
    >>> unit_of(np.array([3.0, -1e4])), unit_of(np.array([1.5 * 2.0**400])) == 2.0**400
    (1.0, True)
    """
    largest = float(np.abs(values).max(initial=0.0))
    if 0 < largest < _LEAST:
        raise ValueError(
            f"the largest value between the landmarks is {largest:.3g}, where numbers have lost "
            "their digits: multiply what the measure compares by a constant"
        )
    if largest == 0 or SAFE[0] <= largest <= SAFE[1]:
        return 1.0
    return float(2.0 ** np.floor(np.log2(largest)))


def check_level(values: Array) -> None:
    """Refuse similarities (m, m) that are one large constant but for their last digits.

    What tells objects apart is then lost in rounding: ‖H W H‖ is below 10⁻¹⁰ of ‖W‖.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if np.ptp(values) <= 1e-14 * largest:  # one constant: there is nothing to tell
        return
    rows = values.mean(axis=1)
    rest = values - rows[:, None] - values.mean(axis=0) + rows.mean()
    if float(np.abs(rest).max()) < _LEVEL * largest:
        raise ValueError(
            f"the similarities have a common level of {largest:.3g}, and what they differ by is "
            "lost in rounding: take the level away first, e.g. subtract the column means from X"
        )
