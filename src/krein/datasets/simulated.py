"""Points in the plane and in ten dimensions, as in section 4.3 of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


def make_checkerboard(
    n_samples: int = 900, *, n_fields: int = 3, random_state: Any = None
) -> tuple[Array, Labels]:
    """Points on a checkerboard whose fields take turns in their label: classes of many modes.

    The paper says 3×3 and neither how many points nor where the board lies; here they are uniform
    on [−1, 1]², which leaves each class on both sides of the origin, where the ELM kernel sees it.

    Parameters
    ----------
    n_samples : int, default=900
    n_fields : int, default=3
        Fields along each side.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array (n_samples, 2)
    y : array (n_samples,) of 0 and 1

    Examples
    --------
    >>> X, y = make_checkerboard(100, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 2), [0, 1])
    """
    random = check_random_state(random_state)
    fields = random.uniform(0, n_fields, size=(n_samples, 2))
    y = fields.astype(np.intp).sum(axis=1) % 2
    return 2 * fields / n_fields - 1, y


def make_three_gaussians(
    n_large: int = 500, n_small: int = 20, *, random_state: Any = None
) -> tuple[Array, Labels]:
    """One large Gaussian (label 0) and two small ones (label 1) in ten dimensions.

    The large one is spread in two dimensions and has small noise in seven more; each small one is
    spread in one further dimension alone; all three lie apart. The paper gives the numbers and
    dimensions; chosen here: unit spread of the large one, spread 0.1 of the small ones, noise 0.1,
    and the small ones at ±1 along the third dimension. Farther away, every rule finds them.

    Parameters
    ----------
    n_large, n_small : int, default=500 and 20
        Points of the large Gaussian, and of each small one.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array (n_large + 2 n_small, 10)
    y : array of 0 and 1

    Examples
    --------
    >>> X, y = make_three_gaussians(random_state=0)
    >>> X.shape, int(y.sum())
    ((540, 10), 40)
    """
    random = check_random_state(random_state)
    large = np.zeros((n_large, 10))
    large[:, :2] = random.normal(size=(n_large, 2))
    large[:, 3:] = 0.1 * random.normal(size=(n_large, 7))
    small = np.zeros((2, n_small, 10))
    small[:, :, 2] = 0.1 * random.normal(size=(2, n_small)) + np.array([[1.0], [-1.0]])
    X = np.concatenate([large, small[0], small[1]])
    return X, np.repeat([0, 1], [n_large, 2 * n_small])
