"""Types of arrays, and the vocabulary for their shapes and limits.

Shapes and limits are written once, in the annotation of a field or an attribute:

    dual_coef: Annotated[Array, "m C"]
    codes: Annotated[Codes, "n", Within(0, below="C")]

A symbol stands for the same number everywhere in a model: `m` landmarks, `C` classes. `H+2` and
`2*kernels` are computed from one. Readers find the shapes there, and a model file is checked
against them when it is loaded (`krein.model.schema`).
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

    With `below`, they are smaller than the size that the symbol stands for, such as indices; with
    `below="bytes"`, than the number of bytes of the model. With `ascending`, none is smaller than
    the one before. With `spans`, they are offsets: ascending, from 0 to the size that the symbol
    stands for. `infinite` names the infinities that are allowed.

    A whole number needs one of `high`, `below` and `spans`, because work and memory may depend on
    it.
    """

    low: float = -np.inf
    high: float = np.inf
    below: str | None = None
    infinite: tuple[float, ...] = ()
    ascending: bool = False
    spans: str | None = None


POSITIVE = Within(1e-300, 1e300)
TEMPERATURE = Within(1e-12, 1e12)
"""Scores times a temperature must not overflow; those found in fits are within e^±13."""
NON_NEGATIVE = Within(0.0, 1e300)
"""At most so large that sums do not overflow."""
WEIGHT = Within(-1e100, 1e100)
"""A learned weight. Its products with values in the model's unit do not overflow."""
SHARE = Within(0.0, 1.0)
COUNT = Within(0, 2**53)
"""A number that is only shown: neither work nor memory depends on it."""
ROW = COUNT
"""A row of the training objects, whose number a model does not need to know."""
ROWS = Within(0, 2**53, ascending=True)
"""Rows of the training objects in their order."""
CODE = Within(0, below="C")
LOG_SIZE = Within(0.0, 50.0)
"""The logarithm of a number of letters or numbers."""
LOG = Within(infinite=(-np.inf,))
"""A logarithm: −∞ is the logarithm of 0."""

LOCAL = "local symbols"
"""Metadata of an annotation: the symbols within this part have their own sizes, except C and d."""
