"""Check whether values look like distances or similarities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Array

LOOKED_AT = 200
"""Number of objects of a matrix that are sampled to see whether its values are distances."""

REMEDIES = ("set measure='precomputed-distance'", "set measure='precomputed'")


class KindWarning(UserWarning):
    """Values declared as similarities look like distances, or the other way round.

    Examples
    --------
    >>> import warnings
    >>> from krein.compare import open_pairs
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = open_pairs("precomputed", [[0, 1, 2], [1, 0, 2], [2, 2, 0]])
    >>> print(caught[0].message)
    This looks like a matrix of distances (its diagonal is 0 and nothing is negative): set \
measure='precomputed-distance'.
    """


def looks_like(values: Array) -> str | None:
    """Return what a square matrix looks like: "distance", "similarity" or None.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.kinds import looks_like
    >>> looks_like(1 - np.eye(3)), looks_like(np.eye(3)), looks_like(-np.eye(3))
    ('distance', 'similarity', None)
    """
    if len(values) < 3:
        return None
    diagonal = np.diag(values)
    others = values[~np.eye(len(values), dtype=bool)]
    scale = np.abs(values).max()
    if scale > 0 and np.abs(diagonal).max() <= 1e-9 * scale and others.min() >= 0:
        return "distance"
    if (diagonal >= values.max(axis=1)).mean() > 0.9 and diagonal.min() > 0:
        return "similarity"
    return None


def mistaken_for(
    found: str | None, distance: bool, remedies: tuple[str, str] = REMEDIES
) -> str | None:
    """Return a warning if a matrix looks like the other kind.

    `found` is what the values look like; `remedies` are the advice for distances and similarities.
    """
    if found == "distance" and not distance:
        return (
            "This looks like a matrix of distances (its diagonal is 0 and nothing is negative): "
            f"{remedies[0]}."
        )
    if found == "similarity" and distance:
        return (
            "This looks like a matrix of similarities (every object is most similar to itself): "
            f"{remedies[1]}."
        )
    return None


def sample_square(matrix: NDArray[Any]) -> Array:
    """Return the values between up to `LOOKED_AT` objects of a square matrix."""
    n = len(matrix)
    some = np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(int))
    return np.asarray(matrix[np.ix_(some, some)], dtype=np.float64)
