"""From similarities to dissimilarities and back.

Sources: the footnotes of section 2.2 of the paper; the landmark form comes from
landmark multidimensional scaling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .checks import Array


def squared_dissimilarities(K: Array) -> Array:
    """Return d²_ij = k_ii + k_jj − 2 k_ij, which may be negative. O(N²).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.convert import squared_dissimilarities
    >>> squared_dissimilarities(np.eye(2))
    array([[0., 2.],
           [2., 0.]])
    """
    diagonal = np.diag(K)
    return diagonal[:, None] + diagonal[None, :] - 2 * K


def double_centre(D2: Array) -> Array:
    """Return S = −½ H D² H with H = I − 11ᵀ/N, from *squared* dissimilarities. O(N²).

    `squared_dissimilarities(double_centre(D2))` is D2 if its diagonal is zero, and
    `double_centre(squared_dissimilarities(K))` is H K H.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.convert import double_centre
    >>> double_centre(np.array([[0.0, 4.0], [4.0, 0.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    rows = D2.mean(axis=1)
    return -0.5 * (D2 - rows[:, None] - D2.mean(axis=0)[None, :] + rows.mean())


POWERS = (1.0, 0.5, 0.25)
"""Powers of a dissimilarity d: similarities are computed from −½d², −½d or −½√d."""


def powered(D: Array, power: float) -> Array:
    """Return |d|^power, D itself for power 1. O(n·m).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.convert import powered
    >>> powered(np.array([16.0]), 0.5), powered(np.array([16.0]), 0.25)
    (array([4.]), array([2.]))
    """
    if power == 1:
        return D
    roots = np.sqrt(np.abs(D))
    if power == 0.5:
        return roots
    if power != 0.25:
        raise ValueError(f"power must be one of {POWERS}; got {power}")
    return np.sqrt(roots)


@dataclass(frozen=True)
class LandmarkCentre:
    """The centre of the landmarks, as the origin of similarities computed from dissimilarities.

    s(x, l) = −½ (d²(x, l) − mean_l' d²(x, l') − mean_l' d²(l', l) + mean d²(L, L))

    It needs only the m dissimilarities of an object to the landmarks, so the same map serves
    training objects and new ones. If every object is a landmark, it equals `double_centre`.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.convert import LandmarkCentre
    >>> centre = LandmarkCentre.of(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> centre.similarities(np.array([[1.0, 3.0]]))
    array([[ 2., -2.]])
    """

    column_means: Array  # (m,): mean_l' d²(l', l)
    grand_mean: float

    @classmethod
    def of(cls, D: Array) -> LandmarkCentre:
        """Return the centre from the dissimilarities D (m, m) of the landmarks. O(m²)."""
        column_means = (D**2).mean(axis=0)
        return cls(column_means, float(column_means.mean()))

    def similarities(self, D: Array) -> Array:
        """Return similarities (n, m) from dissimilarities D (n, m) to the landmarks. O(n·m)."""
        S = np.square(D)
        S -= S.mean(axis=1, keepdims=True)
        S -= self.column_means
        S += self.grand_mean
        S *= -0.5
        return S
