"""Log-linear pooling of the probabilities of several models, with non-negative weights.

    p(c | x) ∝ exp(Σ_h a_h log p_h(c | x)),   a_h ≥ 0.

The weights minimise the log-loss on objects that the pooled models have not seen, plus a ridge
that pulls them towards equal shares. The problem is convex. A useless model gets weight 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # scipy.optimize loads on first use; predictions never need it
from scipy.special import log_softmax

from .checks import Array
from .family import Codes

RIDGE = 20.0
"""Precision of the prior on each weight, in objects; chosen on the protein and aural-sonar data."""


def pooled(weights: Array, log_proba: Sequence[Array]) -> Array:
    """Return the log-probabilities (n, C) of the pool.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pooling import pooled
    >>> sure, unsure = np.log([[0.9, 0.1]]), np.log([[0.5, 0.5]])
    >>> np.exp(pooled(np.array([1.0, 1.0]), [sure, unsure])).round(2)
    array([[0.9, 0.1]])
    """
    total = np.zeros_like(log_proba[0])
    for a, part in zip(weights, log_proba, strict=True):
        if a:
            total += a * part
    found: Array = log_softmax(total, axis=1)
    return found


def fit_pool(
    log_proba: Sequence[Array],
    codes: Codes,
    prior: Array,
    weights: Array | None = None,
    ridge: float = RIDGE,
) -> Array:
    """Return the weights a (H,) for H arrays (n, C) of held-out log-probabilities.

    Minimises Σ_i w_i (−log p(code_i)) + ½ ridge ‖a − prior‖² over a ≥ 0. O(H·n·C) per step.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pooling import fit_pool
    >>> codes = np.arange(300) % 2
    >>> right = np.log(np.where(np.eye(2)[codes] == 1, 0.9, 0.1))
    >>> idle = np.log(np.full((300, 2), 0.5))
    >>> bool(fit_pool([right, idle], codes, np.full(2, 0.5))[0] > 1)
    True
    """
    stacked = np.stack(log_proba)  # (H, n, C)
    rows = np.arange(len(codes))
    own = stacked[:, rows, codes]  # (H, n)
    w = np.ones(len(codes)) if weights is None else weights

    def loss(a: Array) -> tuple[float, Array]:
        mixed = log_softmax(np.tensordot(a, stacked, 1), axis=1)
        expected = np.einsum("nc,hnc->hn", np.exp(mixed), stacked)
        away = a - prior
        value = -w @ mixed[rows, codes] + 0.5 * ridge * away @ away
        return float(value), (expected - own) @ w + ridge * away

    result = scipy.optimize.minimize(
        loss,
        prior,
        jac=True,
        bounds=[(0, None)] * len(stacked),
        method="L-BFGS-B",
        options={"ftol": 1e-14, "gtol": 1e-7 * float(w.sum())},
    )
    return np.asarray(result.x, dtype=np.float64)


def bounded(log_proba: Array, n_seen: float, n_classes: int) -> Array:
    """Return log-probabilities no more extreme than `n_seen` held-out objects can support.

    Mixes in the uniform distribution with a share of 1/(n + 1): even n objects without an error do
    not show that the error rate is below 1/n.
    """
    share = 1.0 / (n_seen + 1.0)
    return np.log((1 - share) * np.exp(log_proba) + share / n_classes)
