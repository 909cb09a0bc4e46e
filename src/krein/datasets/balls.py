"""Balls of two sizes: data whose classes show only in positive and negative eigenvalues
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
    """Make balls at random positions in a unit cube; the class is the radius.

    The measure for them is "balls", the gap between two surfaces. A small ball and a large one at
    the same position differ by the same amount in their distance to every other ball, which no
    Euclidean space can represent. The classes therefore differ only in positive and negative
    eigenvalues together. If the negative ones are clipped, IKFD is left to guess; an SVM with a
    carefully chosen C does better, but still makes errors that IKFD on the full matrix does not.

    After Duin & Pękalska (2010), *Non-Euclidean dissimilarities: causes and informativeness*. The
    paper has 100 balls for each of two classes "having a slightly different radius" and does not
    specify radii, space and overlap. We chose centres that are uniform in the unit cube of three
    dimensions, no overlapping balls (a ball that would overlap is placed again), and radii as close
    to each other as possible while the dense method remains almost without error at the paper's
    number of balls. Radii that close can be recognised only with many landmarks; a few suffice only
    if the radii differ a lot.

    Parameters
    ----------
    n_samples : int, default=200
        Number of balls; the classes alternate, so that they are equally frequent.
    radii : tuple of float, default=(0.03, 0.04)
        One radius per class.
    n_dimensions : int, default=3
    random_state : int, RandomState or None, default=None

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
