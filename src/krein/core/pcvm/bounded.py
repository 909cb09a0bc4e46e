"""Convex quadratic problems with bounds at zero: the M-step of PCVM with its truncated prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class BoundedSolution:
    """The minimiser, whether it is optimal, and the number of linear systems solved."""

    x: Array
    optimal: bool
    n_solves: int


class Quadratic:
    """½ xᵀHx + cᵀx with H = S + diag(a), a > 0 and S ≥ 0 given as a square matrix or as RᵀR.

    A system in f free variables costs O(f³) by Cholesky, or, if R has k < f rows, O(f k²) by
    Woodbury: (A + RᵀR)⁻¹ = A⁻¹ − A⁻¹Rᵀ(I + RA⁻¹Rᵀ)⁻¹RA⁻¹. The identity, which the paper's
    second Nyström step loses, stays exact.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.bounded import Quadratic
    >>> problem = Quadratic(np.ones(2), root=np.array([[1.0, 1.0]]))
    >>> problem.product(np.array([1.0, 0.0]))
    array([2., 1.])
    """

    def __init__(self, a: Array, *, square: Array | None = None, root: Array | None = None) -> None:
        if (square is None) == (root is None):
            raise ValueError("pass either the square matrix or its root")
        self.a = a
        self.square, self.root = square, root
        self.c = np.zeros_like(a)

    def product(self, x: Array) -> Array:
        """Return Hx."""
        if self.square is not None:
            return self.square @ x + self.a * x
        assert self.root is not None
        return self.root.T @ (self.root @ x) + self.a * x

    def minimise(self, free: Mask) -> Array:
        """Return the minimiser with all variables at zero except the free ones."""
        x = np.zeros(len(self.c))
        if not free.any():
            return x
        v, a = -self.c[free], self.a[free]
        if self.square is not None:
            x[free] = _solve(self.square[np.ix_(free, free)], a, v)
            return x
        assert self.root is not None
        R = self.root[:, free]
        if R.shape[0] >= R.shape[1]:
            x[free] = _solve(R.T @ R, a, v)
            return x
        roots = np.sqrt(a)
        S = R / roots  # R A^(−½)
        core = S @ S.T
        core[np.diag_indices_from(core)] += 1.0
        factor = cho_factor(core, overwrite_a=True, check_finite=False)

        def inverse(v: Array) -> Array:
            u = v / roots
            return (u - S.T @ cho_solve(factor, S @ u)) / roots

        u = inverse(v)
        # refine once: the difference above loses digits if RA⁻¹Rᵀ is large
        x[free] = u + inverse(v - R.T @ (R @ u) - a * u)
        return x


def _solve(S: Array, a: Array, v: Array) -> Array:
    """Return (S + diag a)⁻¹ v; S is overwritten."""
    S[np.diag_indices_from(S)] += a
    try:
        return cho_solve(cho_factor(S, check_finite=False), v)
    except np.linalg.LinAlgError:
        # a is smaller than the rounding errors of S; a step from here is still downhill
        S[np.diag_indices_from(S)] += 1e-10 * np.diag(S).max()
        return cho_solve(cho_factor(S, check_finite=False), v)


def minimise_bounded(
    problem: Quadratic, bounded: Mask, free: Mask | None = None, max_solves: int = 500
) -> BoundedSolution:
    """Minimise the quadratic with x ≥ 0 where `bounded`, by block principal pivoting.

    The solution is optimal when x ≥ 0, y = Hx + c ≥ 0 on the bounded variables and x y = 0. All
    variables that violate these conditions change sides at once. When that no longer reduces the
    number of violations, they change one at a time, largest index first, which cannot cycle. Júdice
    & Pires (1994).

    `free` is a guess of the variables off their bound. In a sequence of problems, pass the free
    variables of the last solution: most problems then need only two or three systems.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.bounded import Quadratic, minimise_bounded
    >>> problem = Quadratic(np.ones(2), square=np.zeros((2, 2)))
    >>> problem.c = np.array([-3.0, 1.0])  # without bounds the minimum is at (3, −1)
    >>> minimise_bounded(problem, np.array([True, True])).x
    array([3., 0.])
    """
    n = len(problem.c)
    free = (~bounded if free is None else free | ~bounded).copy()
    fewest, patience = n + 1, 3
    for n_solves in range(1, max_solves + 1):
        x = problem.minimise(free)
        y = problem.product(x) + problem.c
        # rounding must not count as a violation: compare each side with its own scale
        small_x = 1e-13 * np.abs(x).max(initial=0.0)
        small_y = 1e-11 * np.abs(problem.c).max(initial=0.0)
        wrong = bounded & np.where(free, x < -small_x, y < -small_y)
        count = int(wrong.sum())
        if count == 0:
            np.maximum(x, 0.0, out=x, where=bounded)
            return BoundedSolution(x, True, n_solves)
        if count < fewest:
            fewest, patience = count, 3
        else:
            patience -= 1
        if patience < 0:
            last = np.flatnonzero(wrong)[-1]
            wrong[:] = False
            wrong[last] = True
        free ^= wrong
    np.maximum(x, 0.0, out=x, where=bounded)
    return BoundedSolution(x, False, max_solves)
