"""From values of a measure to pseudo-Euclidean coordinates, using only the landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .checks import Array, Indices
from .convert import LandmarkCentre, powered
from .nystrom import LandmarkBasis, landmark_basis
from .spectrum import RANK_TOLERANCE

SAFE = (1e-50, 1e50)
"""If the largest value is outside this range, values are divided by a power of two, so that their
squares, and products of these, neither overflow nor underflow."""

_LEAST = 1e-300
"""Values below this have lost digits."""

_LEVEL = 1e-10
"""Similarities that differ by less than this share of their common level count as constant."""


@dataclass(frozen=True)
class Conversion:
    """The map from values of the measure to similarities to the landmarks.

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
        """Return values divided by the unit and raised to the power, but not squared yet."""
        values = values if self.unit == 1 else values / self.unit
        return values if self.centre is None else powered(values, self.power)


@dataclass(frozen=True)
class LandmarkSpace:
    """The coordinates that m landmarks span, for similarities and dissimilarities.

    A dissimilarity is first raised to `power`, squared and centred on the landmarks. The same map
    serves training objects and new ones: m values in, r coordinates out. All values are divided by
    `unit`, which is 1 unless they are beyond 10^±50.

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

    landmark_values: Array  # (m, m): values of the measure between the landmarks, unscaled
    basis: LandmarkBasis
    centre: LandmarkCentre | None  # None for a similarity
    rank: int | None = None  # the largest number of coordinates
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
        """The kind of the values."""
        return "similarity" if self.centre is None else "dissimilarity"

    @property
    def conversion(self) -> Conversion:
        """The map from values to similarities."""
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
        """Return the space spanned by the landmarks `kept`. O(m³)."""
        return LandmarkSpace.of(
            self.landmark_values[np.ix_(kept, kept)],
            self.kind,
            rank=self.rank,
            power=self.power,
            unit=self.unit,
        )


def unit_of(values: Array) -> float:
    """Return the divisor of the values: 1, or a power of two if they are beyond 10^±50.

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
            f"the largest value between the landmarks is {largest:.3g}, too small for floating-"
            "point precision: multiply the objects or the values of the measure by a constant"
        )
    if largest == 0 or SAFE[0] <= largest <= SAFE[1]:
        return 1.0
    return float(2.0 ** np.floor(np.log2(largest)))


def check_level(values: Array) -> None:
    """Refuse similarities (m, m) that are one large constant except for their last digits.

    The differences between objects are then lost in rounding: ‖H W H‖ is below 10⁻¹⁰ of ‖W‖.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if np.ptp(values) <= 1e-14 * largest:  # an exact constant is allowed
        return
    rows = values.mean(axis=1)
    rest = values - rows[:, None] - values.mean(axis=0) + rows.mean()
    if float(np.abs(rest).max()) < _LEVEL * largest:
        raise ValueError(
            f"the similarities have a common level of {largest:.3g}, and their differences are "
            "lost in rounding: remove the level first, e.g. subtract the column means from X"
        )
