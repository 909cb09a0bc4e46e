"""Balls of two sizes: data whose classes show in positive and negative eigenvalues together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

_TRIES = 10_000
"""Places tried for one ball before the cube counts as full."""


def make_balls(
    n_samples: int = 200,
    *,
    radii: tuple[float, ...] = (0.03, 0.04),
    n_dimensions: int = 3,
    random_state: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Balls at random places in a unit cube; the class is the radius.

    They are objects for the measure "balls", the gap between two surfaces. A small ball and a
    large one at the same place differ by the same amount in their distance to every other ball,
    which no Euclidean space can hold: what tells the classes apart lies in positive and negative
    eigenvalues together, and IKFD on a matrix whose negative ones are clipped is left with a guess
    (an SVM on it, its C chosen with care, is not, and yet errs where IKFD on all does not).

    After Duin & Pękalska (2010), *Non-Euclidean dissimilarities: causes and informativeness*. The
    paper gives 100 balls for each of two classes "having a slightly different radius" and is silent
    on radii, space and overlap. Chosen here: centres uniform in the unit cube of three dimensions,
    no two balls overlapping (a ball that would is placed anew), and radii as near to each other as
    leaves the dense method almost without error at the paper's number of balls. Radii as near as
    that show by many landmarks together; a few tell them apart only where radii differ by far.

    Parameters
    ----------
    n_samples : int, default=200
        The classes take turns, so that they are equally frequent.
    radii : tuple of float, default=(0.03, 0.04)
        One for each class.
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
        raise ValueError(f"radii are two numbers or more, none of them negative; got {radii}")
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
                f"the cube is full: no place was found for ball {k} of {n_samples} with radius "
                f"{radius[k]:g}; take fewer balls or smaller radii"
            )
        centres[k] = centre
    return np.column_stack([centres, radius]), y
