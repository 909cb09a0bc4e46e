"""Balls of two sizes: classes that can be separated only with positive and negative eigenvalues
together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

_TRIES = 10_000
"""Number of positions tried for one ball before the cube counts as full."""


def make_balls(
    n_samples: int = 200,
    *,
    radii: tuple[float, ...] = (0.03, 0.04),
    n_dimensions: int = 3,
    random_state: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Generate balls at random positions in a unit cube; the radius is the class.

    Compare them with the measure "balls", the gap between two surfaces. If a large ball replaces a
    small one at the same position, its gaps to all other balls shrink by the same amount. No
    Euclidean space can represent this, so the classes can be separated only with positive and
    negative eigenvalues together. If the negative ones are clipped, IKFD does no better than
    chance; an SVM with a carefully chosen C does better, but still makes errors that IKFD on the
    full matrix avoids.

    The data follow Duin & Pękalska (2010), *Non-Euclidean dissimilarities: causes and
    informativeness*. That paper has 100 balls in each of two classes "having a slightly different
    radius", and does not specify the radii, the space or whether balls may overlap. Here, centres
    are uniform in the unit cube, and balls do not overlap (a ball that would is placed again). The
    default radii are as close to each other as possible while the dense method still makes almost
    no errors with that number of balls. Telling such similar radii apart takes many landmarks; a
    few are enough only if the radii differ a lot.

    Parameters
    ----------
    n_samples : int, default=200
        Number of balls. Classes alternate, so they are equally frequent.
    radii : tuple of float, default=(0.03, 0.04)
        One radius per class; the side of the cube is 1.
    n_dimensions : int, default=3
        Number of dimensions of the cube.
    random_state : int, RandomState or None, default=None
        Seed for the positions.

    Returns
    -------
    X : array (n_samples, n_dimensions + 1)
        Centre, then radius.
    y : array (n_samples,)
        Index into `radii`.

    Examples
    --------
    >>> X, y = make_balls(100, random_state=0)
    >>> X.shape, sorted(set(X[:, -1].tolist()))
    ((100, 4), [0.03, 0.04])
    """
    if len(radii) < 2 or min(radii) < 0:
        raise ValueError(f"radii must be at least two non-negative numbers; got {radii}")
    random = check_random_state(random_state)
    y = np.arange(n_samples, dtype=np.intp) % len(radii)
    radius = np.asarray(radii, dtype=np.float64)[y]
    centres = np.empty((n_samples, n_dimensions))
    for k in range(n_samples):
        for _ in range(_TRIES):
            centre = random.uniform(size=n_dimensions)
            gaps = ((centres[:k] - centre) ** 2).sum(axis=1) - (radius[:k] + radius[k]) ** 2
            if (gaps >= 0).all():
                break
        else:
            raise ValueError(
                f"the cube is full: there is no room for ball {k} of {n_samples} with radius "
                f"{radius[k]:g}; use fewer balls or smaller radii"
            )
        centres[k] = centre
    return np.column_stack([centres, radius]), y
