"""Which objects get a second look: those for which the first look is not certain enough.

An object gets a second look if its largest first-look probability is below a threshold. The
threshold is the lowest, and so the cheapest, whose held-out loss is within `TOLERANCE` of the loss
with a second look at every object. The extra loss is a mean of paired differences, to which its
standard error is added: a hundred objects cannot show that a second look is useless.
"""

from __future__ import annotations

import numpy as np

from .checks import Array

TOLERANCE = 0.01
"""Share of the held-out loss that skipping the second look may cost."""

STEPS = 100


def looked_at(confidence: Array, threshold: float) -> np.ndarray:
    """Return which objects get a second look, given their largest first-look probability."""
    return confidence < threshold


def choose_threshold(
    confidence: Array,
    first: Array,
    second: Array,
    weights: Array | None = None,
    *,
    tolerance: float = TOLERANCE,
    max_share: float = 1.0,
) -> float:
    """Return the threshold for held-out objects with these losses after the first and second look.

    `max_share` is the largest share of objects that may get a second look; it takes precedence over
    the tolerance. With a threshold above 1, every object gets a second look.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.gate import choose_threshold
    >>> confidence = np.linspace(0.5, 1.0, 1000)
    >>> first, second = np.where(confidence < 0.6, 1.0, 0.1), np.full(1000, 0.1)
    >>> 0.59 < choose_threshold(confidence, first, second) < 0.61
    True
    """
    w = np.ones(len(first)) if weights is None else weights
    w = w / w.sum()
    thresholds = np.append(np.quantile(confidence, np.linspace(0, 1, STEPS + 1)), np.inf)
    allowed = tolerance * float(w @ second)
    chosen = np.inf
    for threshold in thresholds:
        extra = np.where(looked_at(confidence, threshold), 0.0, first - second)
        mean = float(w @ extra)
        error = float(np.sqrt(np.square(w) @ np.square(extra - mean)))
        if mean + error <= allowed:
            chosen = float(threshold)
            break
    if max_share < 1.0:
        order = np.argsort(confidence, kind="stable")
        within = np.cumsum(w[order]) <= max_share
        most = confidence[order][within.sum()] if within.sum() < len(order) else np.inf
        chosen = min(chosen, float(most))
    return chosen
