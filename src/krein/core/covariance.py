"""Invertible covariances: shrinkage in closed form, computed from traces.

Source: Chen, Wiesel, Eldar & Hero 2010, *Shrinkage algorithms for MMSE covariance estimation*
(OAS, eq. 23), and the same argument for a known target.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from .checks import Array
from .spectrum import RANK_TOLERANCE
from .within import ChosenCovariance

Shrinkage = float | Literal["oas"] | ChosenCovariance


def oas(S: Array, n: float) -> float:
    """Return how far to shrink S (r, r), with n degrees of freedom, towards (tr S / r) I. O(r²).

    ρ = ((1 − 2/r) tr S² + tr² S) / ((n + 1 − 2/r)(tr S² − tr² S / r)), at most 1.
    It does not depend on the unit of S.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.covariance import oas
    >>> S = np.diag([4.0, 1.0])
    >>> oas(S, 10) > oas(S, 1000)  # more objects, less shrinkage
    True
    """
    r = len(S)
    trace, squares = float(np.trace(S)), float((S**2).sum())
    spread = squares - trace**2 / r
    if spread <= RANK_TOLERANCE * squares:
        return 1.0
    return min(1.0, ((1 - 2 / r) * squares + trace**2) / ((n + 1 - 2 / r) * spread))


def shrinkage_to_identity(S: Array, n: float) -> float:
    """Return how far to shrink S (r, r), with n degrees of freedom, towards I. O(r²).

    The expected ‖(1−ρ)S + ρI − Σ‖² is least at ρ = E‖S − Σ‖² / E‖S − I‖². For a Gaussian,
    E‖S − Σ‖² = (tr²Σ + tr Σ²)/n. Unbiased estimates of both traces follow from
    E tr S² = (1 + 1/n) tr Σ² + tr²Σ/n  and  E tr²S = tr²Σ + 2 tr Σ²/n.
    """
    if n <= 1:
        return 1.0
    trace, squares = float(np.trace(S)), float((S**2).sum())
    sigma_squares = (squares - trace**2 / n) / (1 + 1 / n - 2 / n**2)
    sigma_trace = trace**2 - 2 * sigma_squares / n
    distance = float(((S - np.eye(len(S))) ** 2).sum())
    if distance == 0:
        return 1.0
    return float(np.clip((sigma_trace + sigma_squares) / n / distance, 0.0, 1.0))


def inverse_root(
    scatter: Array, n: float, shrinkage: float | Literal["oas"], fallback: float
) -> tuple[Array, float]:
    """Return A (r, s) with A Aᵀ = Σ⁺, and the shrinkage used, for Σ = shrunk scatter / n. O(r³).

    `shrinkage` is "oas" or a share of (tr Σ / r) I. At 0, the pseudo-inverse of a singular Σ is
    used, taken in the coordinates of the scatter (the paper takes it in those of k(x)). If there is
    no scatter at all, Σ is `fallback` · I.
    """
    r = len(scatter)
    S = scatter / max(n, 1.0)
    S = (S + S.T) / 2
    mean_variance = float(np.trace(S)) / max(r, 1)
    if mean_variance <= RANK_TOLERANCE * fallback:
        return np.eye(r) / np.sqrt(fallback if fallback > 0 else 1.0), 1.0
    rho = oas(S, max(n, 1.0)) if shrinkage == "oas" else float(shrinkage)
    lam, V = np.linalg.eigh(S)
    lam = (1 - rho) * np.maximum(lam, 0.0) + rho * mean_variance
    keep = lam > RANK_TOLERANCE * lam.max()
    return V[:, keep] / np.sqrt(lam[keep]), rho
