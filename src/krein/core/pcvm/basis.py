"""The basis functions of PCVM: the similarity itself, or a power of a dissimilarity.

−½ d² is the uncentred similarity that corresponds to a squared dissimilarity. For vectors, a
weighted sum of such functions is a quadratic whose second-degree term is a multiple of ‖x‖². −d has
a kink at every basis object, and −√d a sharper one: the smaller the power, the more the near
objects count. None of them has a unit or a width to choose.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BasisFunction = Literal["similarity", "-d²/2", "-d", "-√d"]


def basis_values(function: BasisFunction, values: Array, out: Array | None = None) -> Array:
    """Return the basis functions of values of the measure, in `out` if it is given.

    A similarity is not copied. PCVM places no conditions on its basis functions, so dissimilarities
    need not be centred, and predictions do not need landmarks with zero weight.

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
    below = values < 0  # possible with a user's own measure, e.g. for overlapping objects
    roots = np.abs(values, out=out)
    np.sqrt(roots, out=roots)
    np.negative(roots, out=roots)
    if below.any():
        roots[below] *= -1.0
    return roots
