"""Types of arrays, and the vocabulary for their shapes and limits.

Shapes and limits are written once, in the annotation of a field or an attribute:

    dual_coef: Annotated[Array, "m C"]
    codes: Annotated[Codes, "n", Within(0, below="C")]

A symbol stands for the same number everywhere in a model: `m` landmarks, `C` classes. Readers find
the shapes there, and a model file is checked against them when it is loaded (`krein.model.schema`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Codes = NDArray[Any]  # whole numbers 0…C−1, in any type
Kind = Literal["similarity", "dissimilarity"]


@dataclass(frozen=True)
class Within:
    """Limits on the numbers of an annotated field: `low` ≤ x ≤ `high`, and finite.

    With `below`, they are indices, smaller than the size that the symbol stands for. `infinite`
    names the infinities that are allowed.
    """

    low: float = -np.inf
    high: float = np.inf
    below: str | None = None
    infinite: tuple[float, ...] = ()


POSITIVE = Within(1e-300, 1e300)
TEMPERATURE = Within(1e-12, 1e12)
"""Scores times a temperature must not overflow; those found in fits are within e^±13."""
NON_NEGATIVE = Within(0.0)
SHARE = Within(0.0, 1.0)
ROW = Within(0)
"""A row of the training objects, whose number a model does not need to know."""
CODE = Within(0, below="C")
LOG_SIZE = Within(0.0, 50.0)
"""The logarithm of a number of letters or numbers."""
LOG = Within(infinite=(-np.inf,))
"""A logarithm: −∞ is the logarithm of 0."""

SYMMETRY_TOLERANCE = 1e-8
"""Largest |K − Kᵀ| relative to the largest |K| that counts as rounding."""
