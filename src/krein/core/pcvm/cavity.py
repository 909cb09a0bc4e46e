"""Left-out scores: the scores of a row from the model without that row, to first order.

Around the mode, the posterior of all weights is approximately Gaussian with the full Hessian H of
the objective. Consider a row with features f whose loss has gradient g (C,) and curvature D (C, C).
Its scores have covariance V = (I ⊗ f)ᵀ H⁻¹ (I ⊗ f). Removing the row is one Newton step without its
part of H:

    z₋ = z + (I − V D)⁻¹ V g = z + h + V R (I − Rᵀ V R)⁻¹ Rᵀ h,    h = V g,  D = R Rᵀ

(Opper & Winther 2000; Rahnama Rad & Maleki 2020). The second form has a symmetric matrix of
leverages RᵀVR, whose eigenvalues are below 1 if a mode remains without the row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HIGH_LEVERAGE = 0.5
"""Above this leverage, the step uses the prior's secant to zero, EM's α, instead of its second
derivative, which is negative for large weights and valid only for small moves. A row with high
leverage, such as a basis object's own row, may be all that keeps a weight above zero."""

_LEAST = 1e-8
"""Lower bound on 1 − leverage, which with the prior's secant is positive except for rounding."""


def without_row(Z: Array, V: Array, G: Array, R: Array) -> tuple[Array, Array, Array]:
    """Return each row's left-out scores z₋, q = g + D(z₋ − z), and its leverage.

    The scores are z + V q. With q, the left-out scores of classes outside V can be computed too.

    Parameters
    ----------
    Z : array (n, C)
        Scores from the model with all rows.
    V : array (n, C, C)
        Covariance of each row's scores.
    G : array (n, C)
        Derivative of each row's loss with respect to its scores.
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
    """Return z₋ and the leverage, one score at a time, from variances v and curvatures d (n, C)."""
    leverage = v * d
    return Z + v * G / np.maximum(1.0 - leverage, _LEAST), leverage.max(axis=1)
