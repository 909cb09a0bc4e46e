"""One number for all scores, the inverse temperature β: p = softmax(β s), fitted held-out.

Temperature scaling (Guo et al. 2017) with a wide normal prior on log β: without it, held-out
objects that are all classified right would drive β to infinity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from .checks import Array

_SPREAD = 3.0  # standard deviation of the prior on log β
_FAR = 12.0  # how far log β is sought


def fit_temperature(
    scores: Array,
    codes: NDArray[np.intp],
    log_proba: Callable[[Array], Array],
    weights: Array | None = None,
) -> float:
    """Return β that maximises Σ w log p(code | β·scores) − ½(log β / 3)². O(n·C) a step.

    `log_proba` turns scores (n, C) into log-probabilities, e.g. log-softmax. Likelihood and prior
    may each have their own maximum, so the best of a grid is found first.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.calibration import fit_temperature
    >>> from scipy.special import log_softmax
    >>> scores = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0]])
    >>> too_sure = fit_temperature(scores, np.array([0, 0, 1]), lambda s: log_softmax(s, axis=1))
    >>> too_sure < 1
    True
    """
    rows = np.arange(len(codes))
    w = np.ones(len(codes)) if weights is None else weights

    def loss(log_beta: float) -> float:
        return float(
            -w @ log_proba(np.exp(log_beta) * scores)[rows, codes] + log_beta**2 / (2 * _SPREAD**2)
        )

    grid = np.linspace(-_FAR, _FAR, 41)
    best = grid[np.argmin([loss(x) for x in grid])]
    step = grid[1] - grid[0]
    around = (best - step, best + step)
    return float(np.exp(minimize_scalar(loss, bounds=around, method="bounded").x))
