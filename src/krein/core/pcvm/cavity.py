"""A row's scores by the model without that row, to first order in what the row says.

Around the mode the posterior of all weights is Gaussian with the full second derivative H of the
objective. A row with features f, derivative g (C,) and curvature D (C, C) of its loss has scores of
covariance V = (I ⊗ f)ᵀ H⁻¹ (I ⊗ f). Taking the row out is one Newton step without its part of H:

    z₋ = z + (I − V D)⁻¹ V g = z + h + V R (I − Rᵀ V R)⁻¹ Rᵀ h,    h = V g,  D = R Rᵀ

(Opper & Winther 2000; Rahnama Rad & Maleki 2020). The second form has a symmetric matrix of
leverages RᵀVR, whose eigenvalues are below 1 wherever a mode is left without the row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HIGH_LEVERAGE = 0.5
"""The prior's second derivative is negative for large weights and holds for small moves. A row of
more leverage, as a basis object has on itself, may be all that keeps a weight up: without it the
weight goes to zero, and the step is taken with the prior's secant to zero, EM's α."""

_LEAST = 1e-8
"""Of 1 − leverage, which is positive but for rounding with the prior's secant."""


def without_row(Z: Array, V: Array, G: Array, R: Array) -> tuple[Array, Array, Array]:
    """Return each row's scores z₋ by the model without it, q = g + D(z₋ − z), and its leverage.

    The scores are z + V q; q tells what happens to scores beyond those of V.

    Parameters
    ----------
    Z : array (n, C)
        Scores by the model with all rows.
    V : array (n, C, C)
        Covariance of each row's scores.
    G : array (n, C)
        Derivative of each row's loss by its scores.
    R : array (n, C, C)
        D = R Rᵀ, the second derivative.

    Notes
    -----
    O(n C³).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.cavity import without_row
    >>> one = np.ones((1, 1))
    >>> without_row(0 * one, 0.5 * one[None], -one, one[None])  # leverage ½ doubles the step
    (array([[-1.]]), array([[-2.]]), array([0.5]))
    """
    h = (V @ G[:, :, None])[:, :, 0]
    Rt = R.transpose(0, 2, 1)
    lam, Q = np.linalg.eigh(Rt @ V @ R)
    turned = Q.transpose(0, 2, 1) @ (Rt @ h[:, :, None])
    turned /= np.maximum(1.0 - lam, _LEAST)[:, :, None]
    q = G + (R @ (Q @ turned))[:, :, 0]
    return Z + (V @ q[:, :, None])[:, :, 0], q, lam[:, -1]


def without_row_each(Z: Array, v: Array, G: Array, d: Array) -> tuple[Array, Array]:
    """Return the same with one score at a time: v (n, C) its variance, d (n, C) its curvature."""
    leverage = v * d
    return Z + v * G / np.maximum(1.0 - leverage, _LEAST), leverage.max(axis=1)
