"""Labels to class codes and back, without holding more than a part of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LABELS = 65_536  # looked at together, so that memory does not grow with their number


def distinct(y: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted distinct labels."""
    parts = [np.unique(y[i : i + _LABELS]) for i in range(0, len(y), _LABELS)]
    return np.unique(np.concatenate(parts))


def coded(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return the place of each label among the classes, in the smallest type that holds it."""
    codes = np.empty(len(y), dtype=np.min_scalar_type(len(classes) - 1))
    for i in range(0, len(y), _LABELS):
        part = y[i : i + _LABELS]
        found = np.searchsorted(classes, part).clip(max=len(classes) - 1)
        unseen = classes[found] != part
        if unseen.any():
            label = part[unseen].tolist()[0]
            raise ValueError(f"label {label!r} is not among the classes {classes.tolist()}")
        codes[i : i + _LABELS] = found
    return codes
