"""Points in the plane and in ten dimensions, as in sections 4.3 and 6 of the paper."""

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
    """Generate points on a checkerboard with alternating labels, so that classes are multimodal.

    The paper specifies 3×3 fields, but neither the number of points nor the position of the board.
    Here, the points are uniform on [−1, 1]². Each class then lies on both sides of the origin,
    where the ELM kernel can separate it.

    Parameters
    ----------
    n_samples : int, default=900
        Number of points.
    n_fields : int, default=3
        Number of fields along each side.
    random_state : int, RandomState or None, default=None
        Seed for the points.

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


def make_two_gaussians(
    n_samples: int = 200, *, separation: float = 2.5, random_state: Any = None
) -> tuple[Array, Labels]:
    """Generate two spherical, overlapping Gaussians in the plane: the paper's *Gauss*.

    The paper mentions "substantial overlap", but gives neither the number of points nor the
    distance between the means. The default number matches the step size of the published
    accuracies. At the default distance, the Bayes error is about the error of the paper's dense
    method.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points. Classes alternate, so they are equally frequent.
    separation : float, default=2.5
        Distance between the means, in standard deviations.
    random_state : int, RandomState or None, default=None
        Seed for the points.

    Returns
    -------
    X : array (n_samples, 2)
    y : array (n_samples,) of 0 and 1

    Examples
    --------
    >>> X, y = make_two_gaussians(100, random_state=0)
    >>> X.shape, int(y.sum())
    ((100, 2), 50)
    """
    random = check_random_state(random_state)
    y = np.arange(n_samples, dtype=np.intp) % 2
    X = random.normal(size=(n_samples, 2))
    X[:, 0] += separation * (y - 0.5)
    return X, y


def make_pseudo_euclidean_gaussians(
    n_samples: int = 200, *, separation: float = 3.0, random_state: Any = None
) -> tuple[Array, Labels]:
    """Generate two slightly overlapping Gaussians in the pseudo-Euclidean plane ℝ^(1,1).

    The inner product of the vectors is indefinite, ⟨x, y⟩ = x₁y₁ − x₂y₂. To use it, pass the matrix
    `X @ np.diag([1, -1]) @ X.T` with `measure="precomputed"`, or pass X with the measure
    `lambda x, y: x[0] * y[0] - x[1] * y[1]`.

    The paper gives neither the means nor the spread. Here, the Gaussians are spherical with unit
    variance, and their means differ by the same amount in both coordinates. The squared
    pseudo-Euclidean distance between the means is then zero, but the discriminant still separates
    the classes.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points. Classes alternate, so they are equally frequent.
    separation : float, default=3.0
        Distance between the means in the associated Euclidean plane, in standard deviations.
    random_state : int, RandomState or None, default=None
        Seed for the points.

    Returns
    -------
    X : array (n_samples, 2)
        The first coordinate counts as positive in the inner product, the second as negative.
    y : array (n_samples,) of 0 and 1

    Examples
    --------
    >>> X, y = make_pseudo_euclidean_gaussians(100, random_state=0)
    >>> K = X @ np.diag([1, -1]) @ X.T
    >>> lam = np.linalg.eigvalsh(K)
    >>> int((lam > 1e-9).sum()), int((lam < -1e-9).sum())
    (1, 1)
    """
    random = check_random_state(random_state)
    y = np.arange(n_samples, dtype=np.intp) % 2
    X = random.normal(size=(n_samples, 2))
    X += separation / np.sqrt(2) * (y - 0.5)[:, None]
    return X, y


def make_three_gaussians(
    n_large: int = 500, n_small: int = 20, *, random_state: Any = None
) -> tuple[Array, Labels]:
    """Generate one large Gaussian (label 0) and two small ones (label 1) in ten dimensions.

    The large Gaussian varies in two dimensions, with small noise in seven more. Each small one
    varies only in the remaining dimension. The three do not overlap. The paper gives the numbers of
    points and dimensions. The rest is our choice: a standard deviation of 1 for the large Gaussian,
    0.1 for the small ones and 0.1 for the noise, and the positions of the small ones, at ±1 along
    the third dimension. If they were farther away, every landmark rule would find them.

    Parameters
    ----------
    n_large, n_small : int, default=500 and 20
        Number of points in the large Gaussian, and in each small one.
    random_state : int, RandomState or None, default=None
        Seed for the points.

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
