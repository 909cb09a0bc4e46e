"""Temperature scaling: one inverse temperature β for all scores, p = softmax(β s).

β is fitted to held-out scores.

This is the method of Guo et al. (2017) with a wide normal prior on log β. Without the prior, β
would go to infinity whenever all held-out objects are classified correctly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy  # scipy.optimize loads on first use; predictions never need it
from scipy.special import log_softmax

from .checks import Array, Indices, weights_of

_SPREAD = 3.0  # standard deviation of the prior on log β
_FAR = 12.0  # the search covers |log β| up to this
_NEWTON_STEPS = 50


def fit_temperature(
    scores: Array, codes: Indices, log_proba: Callable[[Array], Array], weights: Array | None = None
) -> float:
    """Return β that maximises Σ w log p(code | β·scores) − ½(log β / 3)². O(n·C) per step.

    `log_proba` turns scores (n, C) into log-probabilities, e.g. log-softmax. The sum includes one
    pseudo-object, which averages over all objects and classes: even if all n objects are
    classified correctly, the next one is wrong with a probability of about 1/n. The objective may
    have two local maxima, so the search starts from the best point of a grid.

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
    w = weights_of(weights, len(codes))
    share = w / max(float(w.sum()), np.finfo(float).tiny)

    def loss(log_beta: float) -> float:
        log_p = log_proba(np.exp(log_beta) * scores)
        possible = np.isfinite(log_p)
        any_class = np.where(possible, log_p, 0.0).sum(axis=1) / np.maximum(possible.sum(axis=1), 1)
        known = w @ log_p[rows, codes] + share @ any_class
        return float(-known + log_beta**2 / (2 * _SPREAD**2))

    grid = np.linspace(-_FAR, _FAR, 41)
    best = grid[np.argmin([loss(x) for x in grid])]
    step = grid[1] - grid[0]
    around = (best - step, best + step)
    return float(np.exp(scipy.optimize.minimize_scalar(loss, bounds=around, method="bounded").x))


class ScaleAndOffsets(NamedTuple):
    """p = softmax(scale · s + prior + offsets), and the mean loss at these values."""

    scale: float
    offsets: Array  # (C,)
    loss: float


def fit_scale_and_offsets(
    scores: Array,
    log_prior: Array,
    codes: Indices,
    weights: Array | None = None,
    start: ScaleAndOffsets | None = None,
) -> ScaleAndOffsets:
    """Return the β and o with the least −Σ w log softmax(β·s + log π + o)[code] + penalty.

    The penalty β − 1 − log β + ½‖o‖² weighs about as much as one object, and keeps β above 0. The
    sum includes one pseudo-object, which averages over all objects and classes: even if all n
    objects are classified correctly, the next one is wrong with a probability of about 1/n. The
    objective is convex; Newton's method with step halving finds its minimum from any start, at
    O(n·C²) per step. Classes with a log prior of −∞ are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.calibration import fit_scale_and_offsets
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 500)
    >>> s = np.where(y == 0, -1, 1) + rng.normal(size=1000)
    >>> scores = np.column_stack([-s, s])  # log-odds 2s: calibrated
    >>> found = fit_scale_and_offsets(3 * scores, np.zeros((1000, 2)), y)
    >>> abs(3 * found.scale - 1) < 0.1
    True
    """
    n, C = scores.shape
    rows = np.arange(n)
    w = weights_of(weights, n)
    total = float(w.sum())
    used = np.isfinite(log_prior).any(axis=0)
    wanted = np.where(used, (w / (total * used.sum()))[:, None], 0.0)  # the pseudo-object
    wanted[rows, codes] += w
    w = wanted.sum(axis=1)
    s = np.where(np.isfinite(scores), scores, 0.0)
    s = s - s.max(axis=1, keepdims=True)  # a constant per row changes nothing

    def objective(theta: Array) -> tuple[float, Array]:
        beta, o = theta[0], theta[1:]
        log_p = log_softmax(beta * s + log_prior + o, axis=1)
        penalty = beta - 1 - np.log(beta) + 0.5 * float(o @ o)
        return float(-(wanted[:, used] * log_p[:, used]).sum()) + penalty, log_p

    theta = np.append(1.0, np.zeros(C))
    if start is not None:
        theta = np.append(start.scale, start.offsets)
    value, log_p = objective(theta)
    for _ in range(_NEWTON_STEPS):
        p = np.exp(log_p)
        residual = p * w[:, None] - wanted
        mean = (p * s).sum(axis=1)
        gradient = np.concatenate([[float((residual * s).sum())], residual.sum(axis=0)])
        gradient += np.concatenate([[1 - 1 / theta[0]], theta[1:]])
        H = np.zeros((1 + C, 1 + C))
        H[0, 0] = float(w @ ((p * s**2).sum(axis=1) - mean**2)) + theta[0] ** -2
        H[0, 1:] = H[1:, 0] = (w[:, None] * p * (s - mean[:, None])).sum(axis=0)
        H[1:, 1:] = np.diag(w @ p) - (p * w[:, None]).T @ p + np.eye(C)
        step = np.linalg.solve(H, gradient)
        step[1:][~used] = 0.0
        decrease = float(gradient @ step)
        if decrease <= 1e-8 * max(total, 1.0):
            break
        length = 1.0
        while length > 1e-8:
            trial = theta - length * step
            if trial[0] > 0:
                found, log_q = objective(trial)
                if found <= value - 1e-4 * length * decrease:
                    theta, value, log_p = trial, found, log_q
                    break
            length /= 2
        else:
            break
    return ScaleAndOffsets(float(theta[0]), theta[1:], value / total)
