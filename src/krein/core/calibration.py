"""One temperature for all scores: p = softmax(β s), fitted to scores of held-out objects.

Temperature scaling (Guo et al. 2017) with a standard normal prior on log β, worth less than a
handful of objects: without it, held-out objects that are all classified right would drive β to
infinity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from .checks import Array


def fit_temperature(
    scores: Array,
    codes: NDArray[np.intp],
    log_proba: Callable[[Array], Array],
    weights: Array | None = None,
) -> float:
    """Return β that maximises Σ w log p(code | β·scores) − ½(log β)². O(n·C) a step.

    `log_proba` turns scores (n, C) into log-probabilities, e.g. log-softmax.
    """
    rows = np.arange(len(codes))
    w = np.ones(len(codes)) if weights is None else weights

    def loss(log_beta: float) -> float:
        return float(-w @ log_proba(np.exp(log_beta) * scores)[rows, codes] + 0.5 * log_beta**2)

    return float(np.exp(minimize_scalar(loss, bounds=(-10.0, 10.0), method="bounded").x))
