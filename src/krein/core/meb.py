"""Minimum enclosing ball in kernel space, by core sets (paper, section 4.1).

Points φ_i are known only through k_ii = φ_i·φ_i and the columns k_·j = φ·φ_j. The centre is
c = Σα_i φ_i with α on the simplex; the dual is

    max_α  Σ_i α_i k_ii − αᵀKα,   α ≥ 0, Σα = 1,   and its value is R².

(The paper prints k_ii² in the linear term, which is a misprint.) The core-set algorithm of
Bădoiu & Clarkson adds the farthest point until all lie within R(1+ε). It needs at most 2/ε points,
whatever the number of objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import null_space

from .shapes import Array, Indices

_ROUNDING = 1e-12  # weights and violations below this share count as zero
_IDENTICAL = 1e-14  # squared distances below this share of the squared lengths count as zero


@dataclass(frozen=True)
class Ball:
    """A ball that contains every point within (1+ε) times its radius."""

    support: Indices  # points with α > 0, in ascending order
    alpha: Array  # their weights, sum 1
    core: Indices  # all points that entered the core set, in ascending order; support among them
    radius: float
    iterations: int  # how many points were added to the first two
    violation: float  # distance of the farthest point / radius − 1; at most ε on convergence
    reason: Literal["covered", "identical points", "rounding"]
    columns_used: int  # number of columns k_·j computed


def minimum_enclosing_ball(
    squared_norms: Array,
    column: Callable[[int], Array],
    *,
    epsilon: float = 0.01,
    start: int | None = None,
) -> Ball:
    """Return the (1+ε) minimum enclosing ball of n points.

    `squared_norms` contains k_ii (n,) and `column(j)` returns k_·j (n,). The cost is one column and
    O(n) work for each point that enters the core set, and O(s³) for s core points. `start` is the
    first point, by default the one with the largest norm: the paper starts from any point, but then
    the ball depends on the order of the points. The second point is the one farthest from it.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.meb import minimum_enclosing_ball
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]])
    >>> ball = minimum_enclosing_ball((X**2).sum(axis=1), lambda j: X @ X[j])
    >>> ball.support, ball.radius
    (array([0, 1]), 1.0)
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive; got {epsilon}")
    q = squared_norms
    start = int(np.argmax(q)) if start is None else start
    first = column(start)
    distances = q - 2 * first + q[start]
    farthest = int(np.argmax(distances))
    if distances[farthest] <= _IDENTICAL * float(np.abs(q).max()):
        one = np.array([start])
        return Ball(one, np.ones(1), one, 0.0, 0, 0.0, "identical points", 1)
    # take the first point as the origin: this does not change the ball, only the rounding
    q = distances
    core, columns = [start], [np.zeros(len(q))]
    alpha = np.ones(1)
    iterations = -1
    reason: Literal["covered", "rounding"] = "covered"
    while True:
        core.append(farthest)
        new = column(farthest)
        columns.append(new - first - first[farthest] + first[start])
        iterations += 1
        Q = np.stack(columns, axis=1)  # (n, s)
        K = Q[core]
        alpha = _solve_dual((K + K.T) / 2, q[core], np.append(alpha, 0.0))
        products = Q @ alpha
        centre_norm = float(alpha @ products[core])
        squared_radius = float(alpha @ q[core]) - centre_norm
        distances = q - 2 * products + centre_norm
        farthest = int(np.argmax(distances))
        violation = np.sqrt(max(distances[farthest], 0.0) / squared_radius) - 1
        if violation <= epsilon:
            break
        if farthest in core:  # a core point is outside only by rounding
            reason = "rounding"
            break
    kept = np.flatnonzero(alpha > _ROUNDING)
    order = kept[np.argsort(np.array(core)[kept])]
    return Ball(
        np.array(core)[order],
        alpha[order] / alpha[order].sum(),
        np.sort(core),
        float(np.sqrt(squared_radius)),
        iterations,
        max(float(violation), 0.0),
        reason,
        len(columns),
    )


def _solve_dual(K: Array, q: Array, alpha: Array) -> Array:
    """Return the maximiser of qᵀα − αᵀKα on the simplex, from a feasible start. O(s³) per step.

    Primal active-set method: move towards the maximum over the points with weight, and drop the
    first weight that would turn negative. If none does, add the point farthest outside. The
    objective rises with each step, so no active set occurs twice.
    """
    scale = max(float(np.abs(K).max()), np.finfo(float).tiny)
    K, q = K / scale, q / scale
    active = alpha > 0
    active[-1] = True  # the point just added is outside the ball: it will get weight
    for _ in range(50 * len(K)):
        index = np.flatnonzero(active)
        slack = q - 2 * K @ alpha  # the gradient; its mean over the active points is μ
        step, ends = _ascent(K[np.ix_(index, index)], slack[index])
        falling = np.flatnonzero(step < 0)
        lengths = alpha[index[falling]] / -step[falling]
        if len(falling) and (not ends or lengths.min() < 1):
            first = int(np.argmin(lengths))
            alpha[index] = np.maximum(alpha[index] + lengths[first] * step, 0.0)
            alpha[index[falling[first]]] = 0.0
            active[index[falling[first]]] = False
            continue
        alpha[index] = np.maximum(alpha[index] + step, 0.0)
        slack = q - 2 * K @ alpha
        outside = slack - slack[index].max()
        outside[active] = -np.inf
        enter = int(np.argmax(outside))
        if outside[enter] <= _ROUNDING:
            break
        active[enter] = True
    return alpha / alpha.sum()


def _ascent(K: Array, gradient: Array) -> tuple[Array, bool]:
    """Return an ascent step d with Σd = 0, and whether it ends at the maximum.

    If the points are affinely dependent, the objective has no curvature along some directions. If
    it rises along one of them, the step follows it, and only a vanishing weight ends the step.
    """
    s = len(K)
    if s == 1:
        return np.zeros(1), True
    Z = null_space(np.ones((1, s)))
    lam, U = np.linalg.eigh(Z.T @ K @ Z)
    c = U.T @ (Z.T @ gradient)
    curved = lam > 1e-10 * max(float(lam[-1]), np.finfo(float).tiny)
    flat = np.where(curved, 0.0, c)
    if np.abs(flat).max() > 1e-9:
        return Z @ (U @ flat), False
    return Z @ (U @ np.divide(c, 2 * lam, out=np.zeros_like(c), where=curved)), True
