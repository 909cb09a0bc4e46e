"""What each landmark contributed to a label: an exact decomposition of the log-odds.

The score of label c against label r is the difference of their pooled log-probabilities,

    f = Σ_h a_h (log p_h(c) − log p_h(r)) + (b + b′ q)(e_c − e_r).

The last term, the evidence of the neighbours, is not decomposed. Every other term is a function of
the values to the landmarks, and is decomposed relative to a baseline, an object with mean values.
Along the straight line from the baseline to the object, landmark l contributes

    φ_l = (u_l − ū_l) ∫₀¹ ∂f/∂u_l (ū + t (u − ū)) dt,      f(u) = f(ū) + Σ_l φ_l

(Aumann & Shapley 1974; "integrated gradients"). The integral has a closed form for every head. IKFD
is linear in u, the similarities or squared dissimilarities: φ_l = w_l (u_l − ū_l). IKQD is
quadratic, so the integral is the gradient at the midpoint. PCVM is linear in its basis functions;
with two classes its log-odds are a function of that sum, and each part is multiplied by the slope
of the chord.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import numpy as np
from scipy.special import log_ndtr

from .checks import Array
from .heads import Head, LinearHead, PCVMHead, QuadraticHead, log_proba_of
from .looks import squared
from .pcvm.rows import basis_values


def head_contributions(
    heads: Sequence[Head], weights: Array, values: Array, baseline: Array, label: int, other: int
) -> tuple[float, Array]:
    """Return f(baseline), and the contribution of each landmark (m,), for one object.

    `values` and `baseline` (m,) are values of the measure. O(m²) per head.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.contributions import head_contributions
    >>> from krein.core.heads import PCVMHead
    >>> weights, bias = np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2)
    >>> head = PCVMHead("similarity", np.arange(2), weights, bias)
    >>> start, parts = head_contributions(
    ...     [head], np.ones(1), np.array([0.9, 0.2]), np.array([0.5, 0.5]), label=0, other=1
    ... )
    >>> round(start, 9), parts.round(9)
    (0.0, array([0.4, 0.3]))
    """
    start, parts = 0.0, np.zeros(len(values))
    for head, a in zip(heads, weights, strict=False):  # the last weights may belong to the evidence
        if a:
            at_baseline = log_proba_of(head, head.scores(baseline[None]))[0]
            start += float(a * (at_baseline[label] - at_baseline[other]))
            parts += a * _parts(head, values, baseline, label, other)
    return start, parts


@singledispatch
def _parts(head: Head, values: Array, baseline: Array, label: int, other: int) -> Array:
    raise TypeError(f"a {type(head).__name__} cannot be decomposed")


@_parts.register
def _linear(head: LinearHead, values: Array, baseline: Array, label: int, other: int) -> Array:
    slope = head.temperature * (head.dual_coef[:, label] - head.dual_coef[:, other])
    return _of_similarities(head, slope, values, baseline)


@_parts.register
def _quadratic(
    head: QuadraticHead, values: Array, baseline: Array, label: int, other: int
) -> Array:
    S = head.conversion.similarities(np.stack([values, baseline]))
    middle = (S.mean(axis=0) @ head.project) - head.offset

    def gradient(c: int) -> Array:
        root = head.roots[c]
        return -(((middle - head.means[c]) @ root) @ root.T) @ head.project.T

    slope = head.temperature * (gradient(label) - gradient(other))
    return _of_similarities(head, slope, values, baseline)


@_parts.register
def _pcvm(head: PCVMHead, values: Array, baseline: Array, label: int, other: int) -> Array:
    places = head.places
    F = basis_values(head.function, values[None, places])[0]
    F0 = basis_values(head.function, baseline[None, places])[0]
    found = np.zeros(len(values))
    if head.weights.shape[1] > 1:
        found[places] = (head.weights[:, label] - head.weights[:, other]) * (F - F0)
        return head.temperature * found
    w, bias = head.temperature * head.weights[:, 0], head.temperature * float(head.bias[0])
    z, z0 = float(F @ w) + bias, float(F0 @ w) + bias
    chord = _probit_log_odds(z) - _probit_log_odds(z0)
    step = float(w @ (F - F0))
    sign = 1.0 if label > other else -1.0
    if abs(step) > 1e-9 * (1 + abs(z)):
        found[places] = sign * chord / step * w * (F - F0)
    else:  # the chord is too short for an accurate slope: use the tangent
        h = 1e-4 * (1 + abs(z))
        slope = (_probit_log_odds(z + h) - _probit_log_odds(z - h)) / (2 * h)
        found[places] = sign * slope * w * (F - F0)
    return found


def _of_similarities(
    head: LinearHead | QuadraticHead, slope: Array, values: Array, baseline: Array
) -> Array:
    """Return φ from ∂f/∂s, the `slope`; for dissimilarities, ∂f/∂d² = −½ (slope − mean slope)."""
    v, v0 = head.conversion.raised(values), head.conversion.raised(baseline)
    if head.conversion.centre is None:
        return slope * (v - v0)
    u, u0 = squared(v, "dissimilarity"), squared(v0, "dissimilarity")
    return -0.5 * (slope - slope.mean()) * (u - u0)


def _probit_log_odds(z: float) -> float:
    return float(log_ndtr(z) - log_ndtr(-z))
