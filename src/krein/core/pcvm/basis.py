"""The basis functions of PCVM: a similarity as it is, or a power of a dissimilarity.

−½ d² is the similarity that a squared dissimilarity stands for, uncentred; between vectors a
weighted sum of such functions is a quadratic whose second degree is a multiple of ‖x‖², and no
more. −d bends at every basis object, −√d more sharply: the smaller the power, the more the near
objects count. All of them are free of a unit and of a width to choose.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BasisFunction = Literal["similarity", "-d²/2", "-d", "-√d"]


def basis_values(function: BasisFunction, values: Array, out: Array | None = None) -> Array:
    """Return the basis functions of values of the measure, in `out` where it is given.

    A similarity is not copied. PCVM asks nothing of its basis functions, so dissimilarities need
    not be centred, and a prediction needs no landmark whose weight is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.basis import basis_values
    >>> basis_values("-d²/2", np.array([[0.0, 2.0]]))
    array([[-0., -2.]])
    """
    if function == "similarity":
        return values
    if function == "-d":
        return np.negative(values, out=out)
    if function == "-d²/2":
        squares = np.square(values, out=out)
        squares *= -0.5
        return squares
    below = values < 0  # a user's own measure may go there, as overlapping things do
    roots = np.abs(values, out=out)
    np.sqrt(roots, out=roots)
    np.negative(roots, out=roots)
    if below.any():
        roots[below] *= -1.0
    return roots
