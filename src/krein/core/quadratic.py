"""Indefinite kernel quadratic discriminant: one covariance per class (paper, section 2.3).

Each class covariance is shrunk towards the shared one. In coordinates where the shared covariance
is I, the target is I, and the amount has a closed form in the traces, with the observed ‖S − I‖² in
place of its expectation, clipped to [0, 1] (`covariance.shrinkage_to_identity`). A class of one or
two objects gets the shared covariance. Eigenvalues are floored at 10⁻³ of their mean. If the
covariance has been chosen by the left-out loss, the shared one counts as κ objects in each class:
Σ_c = (S_c + κ Σ)/(n_c − 1 + κ).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .checks import Array
from .covariance import Shrinkage, shrinkage_to_identity
from .fisher import log_priors, within_root
from .moments import ClassMoments
from .within import ChosenCovariance


@dataclass(frozen=True)
class QuadraticDiscriminant:
    """Scores −½‖((b − centre) whiten − mean_c) root_c‖² + intercept_c."""

    centre: Array  # (r,)
    whiten: Array  # (r, s)
    means: Array  # (C, s), whitened
    roots: Array  # (C, s, s)
    intercept: Array  # (C,)
    shrinkage: Array  # (C,): towards the shared covariance

    def scores(self, B: Array) -> Array:
        """Return (n, C) scores from coordinates B (n, r). O(n·C·r²)."""
        Z = (B - self.centre) @ self.whiten
        distances = [
            (((Z - mean) @ root) ** 2).sum(axis=1)
            for mean, root in zip(self.means, self.roots, strict=True)
        ]
        return self.intercept - 0.5 * np.stack(distances, axis=1)


def fit_quadratic(
    moments: ClassMoments, *, shrinkage: Shrinkage = "oas", priors: Array | None = None
) -> QuadraticDiscriminant:
    """Return the discriminant from per-class moments. O(C·r³).

    `shrinkage` applies to the shared covariance, as for the Fisher discriminant.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.moments import ClassMoments
    >>> from krein.core.quadratic import fit_quadratic
    >>> rng = np.random.default_rng(0)
    >>> B = np.concatenate([rng.normal(size=(50, 1)), 5 * rng.normal(size=(50, 1))])
    >>> moments = ClassMoments.of(B, np.repeat([0, 1], 50), 2, by_class=True)
    >>> fit_quadratic(moments).scores(np.array([[0.0], [9.0]])).argmax(axis=1)
    array([0, 1])
    """
    chosen = shrinkage if isinstance(shrinkage, ChosenCovariance) else None
    if chosen is not None:  # the scale applies to the class covariances, not to the shared one
        shrinkage = replace(chosen, scale=1.0)
    scale = 1.0 if chosen is None else chosen.scale
    A, _ = within_root(moments, shrinkage)
    centre = moments.origin + moments.sums.sum(axis=0) / moments.total
    C, s = len(moments.weights), A.shape[1]
    roots, intercept, rho = np.zeros((C, s, s)), log_priors(moments.weights, priors), np.ones(C)
    for c in np.flatnonzero(moments.weights > 0).tolist():
        n = moments.weights[c] - 1
        S = A.T @ moments.within_class(c) @ A / max(n, 1.0)
        rho[c] = shrinkage_to_identity(S, n) if chosen is None else _share(chosen, n)
        lam, V = np.linalg.eigh((1 - rho[c]) * (S + S.T) / 2 + rho[c] * np.eye(s))
        # a class that fills fewer dimensions than the rest is flat, not infinitely dense
        if lam.size and chosen is None:  # a zero matrix leaves no dimensions
            lam = np.maximum(lam, max(1e-3 * float(lam.mean()), 1e-8))
        roots[c] = V * np.sqrt(scale / lam)
        intercept[c] -= 0.5 * scale * np.log(lam).sum()
    if chosen is not None:
        intercept = intercept + chosen.offsets
    return QuadraticDiscriminant(centre, A, (moments.means - centre) @ A, roots, intercept, rho)


def _share(chosen: ChosenCovariance, n: float) -> float:
    """Return κ/(n + κ) for a class of n degrees of freedom."""
    if np.isinf(chosen.pseudo_objects):
        return 1.0
    return chosen.pseudo_objects / (max(n, 0.0) + chosen.pseudo_objects)
