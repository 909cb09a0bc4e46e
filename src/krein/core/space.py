"""From values of a measure to pseudo-Euclidean coordinates, by the landmarks alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .checks import Array, Indices
from .convert import LandmarkCentre
from .nystrom import LandmarkBasis, landmark_basis
from .spectrum import RANK_TOLERANCE


@dataclass(frozen=True)
class LandmarkSpace:
    """The coordinates that m landmarks span, whether their values are similarities or not.

    A dissimilarity is squared and centred on the landmarks first. One map serves training
    objects and new ones: m values in, r coordinates out.

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

    @classmethod
    def of(
        cls,
        landmark_values: Array,
        kind: Literal["similarity", "dissimilarity"],
        *,
        tol: float = RANK_TOLERANCE,
        rank: int | None = None,
    ) -> LandmarkSpace:
        """Return the space of landmarks with these values between them. O(m³)."""
        centre = LandmarkCentre.of(landmark_values) if kind == "dissimilarity" else None
        W = landmark_values if centre is None else centre.similarities(landmark_values)
        return cls(landmark_values, landmark_basis(W, tol=tol, rank=rank), centre, rank)

    @property
    def kind(self) -> Literal["similarity", "dissimilarity"]:
        """What the values are."""
        return "similarity" if self.centre is None else "dissimilarity"

    @property
    def signs(self) -> Array:
        """The diagonal of J (r,)."""
        return self.basis.signs

    def similarities(self, values: Array) -> Array:
        """Return similarities C (n, m) from values of the measure (n, m). O(n·m)."""
        return values if self.centre is None else self.centre.similarities(values)

    def coordinates(self, values: Array) -> Array:
        """Return B (n, r) from values of the measure (n, m). O(n·m·r)."""
        return self.basis.coordinates(self.similarities(values))

    def origin(self) -> Array:
        """Return the mean coordinates of the landmarks: a point near the data. O(m²·r)."""
        return self.coordinates(self.landmark_values).mean(axis=0)

    def restricted(self, kept: Indices) -> LandmarkSpace:
        """Return the space of the landmarks `kept` alone. O(m³)."""
        return LandmarkSpace.of(self.landmark_values[np.ix_(kept, kept)], self.kind, rank=self.rank)
