"""Objects that tell how sure a model may be: of the pass over all, their values are kept.

Of few objects all are, and models are learned anew without a tenth of them. Of many some thousand
are: sums over all objects less those of a tenth of the witnesses make a model that has not seen
that tenth and is, but for it, the model itself. A model of the witnesses alone would not do: what
is learned from fewer objects may be far less sure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.checks import Array, Indices
from ..core.moments import ClassMoments
from ..data import CANDIDATES
from ..data.collection import uniform_keys
from .base import Codes

WITNESSES = 5_000
"""About so many of many objects: the temperature is one number."""

_SEED = 0


@dataclass(frozen=True)
class Call:
    """Which objects are called as witnesses: a share of all, but none of some."""

    share: float
    without: Indices

    @classmethod
    def of(cls, n_objects: int, landmarks: Indices, wanted: int | None = None) -> Call:
        """All of few objects; of many some thousand that are no landmarks, as no new object is."""
        m = len(landmarks)
        if n_objects <= CANDIDATES or 2 * m > n_objects:
            return cls(1.0, np.empty(0, dtype=np.intp))
        return cls((wanted or WITNESSES) / (n_objects - m), np.sort(landmarks))

    @property
    def everyone(self) -> bool:
        """Whether all objects are witnesses."""
        return self.share >= 1 and len(self.without) == 0

    def among(self, indices: Indices) -> NDArray[np.intp]:
        """Return the places of the witnesses among these objects, whatever else is there."""
        if self.everyone or self.share == 0:
            return np.arange(len(indices) if self.everyone else 0)
        called = uniform_keys(_SEED, indices) < self.share
        return np.flatnonzero(called & ~np.isin(indices, self.without))


NOBODY = Call(0.0, np.empty(0, dtype=np.intp))


@dataclass(frozen=True)
class Summed:
    """What a pass leaves behind: moments of all objects; values and classes of the witnesses."""

    moments: ClassMoments
    indices: Indices  # of the witnesses among all objects, ascending
    values: Array  # (n, m)
    codes: Codes

    @classmethod
    def of(
        cls, moments: ClassMoments, indices: Indices, values: Array, codes: Codes, call: Call
    ) -> Summed:
        """Return the moments of a piece, and which of its objects are called."""
        some = call.among(indices)
        return cls(moments, indices[some], values[some], codes[some])

    def __add__(self, other: Summed) -> Summed:
        return Summed(
            self.moments + other.moments,
            np.concatenate([self.indices, other.indices]),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.codes, other.codes]),
        )
