"""The fit of PCVM: the mode of its posterior under the sign constraints.

The log posterior is defined in `posterior`. An EM step sets α ← (2a + 1)/(u² + 2b) and solves a
convex problem under bounds. Newton's method takes longer steps to the same mode; for large problems
a limited-memory gradient method (L-BFGS) is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # scipy.optimize loads on first use; predictions never need it
from numpy.typing import NDArray

from .posterior import Posterior, signs
from .prior import GammaPrior, Prior
from .probit import Probit
from .rows import Array, Labels, Link, Rows
from .softmax import Softmax

Solver = Literal["newton", "lbfgs"]

NEWTON_LIMIT = 1200
"""Newton's matrix has (r C)² entries and costs as many additions per row. Beyond this size, the
gradient method reaches the same mode in less time."""


@dataclass(frozen=True)
class PCVMFit:
    """The model, and how the search for it ended."""

    weights: Array  # (M, C), in the unit of Φ
    bias: Array  # (C,)
    scaled: Array  # (M, C), weights of basis functions scaled to unit deviation
    precision: Array  # (M, C), α of each scaled weight
    curvature: Array  # (M, C), second derivative of −log prior in each scaled weight
    feature_mean: Array  # (r,), of the rows that were fitted to
    link: Link
    log_likelihood: float
    objective_path: Array  # log posterior after each step, rising
    n_iter: int
    n_passes: int  # over all rows
    converged: bool
    reason: str
    violation: float  # of the optimality conditions, per row

    @property
    def kept(self) -> NDArray[np.intp]:
        """Indices of the basis functions with a non-zero weight."""
        return np.flatnonzero(np.any(self.weights != 0, axis=1))

    def scores(self, F: Array, Q: Array | None = None) -> Array:
        """Return Z = FQW + b of new rows."""
        V = self.weights if Q is None else Q @ self.weights
        return F @ V + self.bias

    def probabilities(self, F: Array, Q: Array | None = None) -> Array:
        """Return class probabilities of new rows."""
        return self.link.probabilities(self.scores(F, Q))


@dataclass
class _State:
    x: Array
    beta: Array
    path: list[float]
    n_iter: int
    reason: str


def _newton(post: Posterior, x: Array, beta: Array, tol: float, max_iter: int) -> _State:
    """Newton steps under the bounds, each followed by a search that never lowers the posterior."""
    value, gx, gb = post.value_gradient(x, beta)
    path, reason = [-value], f"no convergence in {max_iter} iterations"
    for n_iter in range(max_iter + 1):
        if post.violation(x, gx, gb) <= tol * post.total:
            reason = "the optimality conditions are met"
            break
        if n_iter == max_iter:
            break
        off_bound = (x > 0) | (gx < 0)
        x_model, beta_model = post.newton_step(x, beta, gx, gb, off_bound)
        dx, db = x_model - x, beta_model - beta
        slope = float(np.sum(gx * dx) + gb @ db)
        step = 1.0
        while step > 1e-10:
            x_new, beta_new = x + step * dx, beta + step * db
            # rounding must not push a weight over its bound
            np.maximum(x_new, 0.0, out=x_new, where=post.bounded)
            new = post.value_gradient(x_new, beta_new)
            if new[0] <= value + 1e-4 * step * slope:
                break
            step /= 2
        else:
            reason = "no step raises the posterior at this precision"
            break
        x, beta, (value, gx, gb) = x_new, beta_new, new
        path.append(-value)
    return _State(x, beta, path, n_iter, reason)


def _lbfgs(post: Posterior, x: Array, beta: Array, tol: float, max_iter: int) -> _State:
    """Gradient steps with limited memory under the bounds (Byrd, Lu, Nocedal & Zhu 1995)."""
    M, C = x.shape
    n = M * C

    def function(v: Array) -> tuple[float, Array]:
        value, gx, gb = post.value_gradient(v[:n].reshape(M, C), v[n:])
        return value, np.concatenate([gx.ravel(), gb])

    path: list[float] = []

    def note(intermediate_result: object) -> None:
        path.append(-float(intermediate_result.fun))  # type: ignore[attr-defined]

    start = np.concatenate([x.ravel(), beta])
    path.append(-function(start)[0])
    lower = np.concatenate([np.where(post.bounded, 0.0, -np.inf).ravel(), np.full(C, -np.inf)])
    result = scipy.optimize.minimize(
        function,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([lower, np.full(n + C, np.inf)]),
        callback=note,
        options={
            "maxiter": max_iter,
            "maxfun": 4 * max_iter,
            "maxcor": 20,
            "gtol": tol * post.total,
            "ftol": 1e-13,
        },
    )
    return _State(
        result.x[:n].reshape(M, C), result.x[n:], path, int(result.nit), str(result.message)
    )


def fit_pcvm(
    rows: Rows,
    basis_classes: Labels,
    Q: Array | None = None,
    *,
    link: Link | None = None,
    prior: Prior | None = None,
    allowed: NDArray[np.bool_] | None = None,
    start: tuple[Array, Array] | None = None,
    solver: Solver | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
) -> PCVMFit:
    """Return the posterior mode of PCVM.

    Parameters
    ----------
    rows : Rows
        Features, class indices and row weights.
    basis_classes : array (M,)
        Class index of each basis object, which determines the signs of its weights.
    Q : array (r, M) or None
        Φ = FQ; Φ = F if None.
    link : Link or None
        Probit for two classes, Softmax for more.
    prior : Prior or None
        Prior of the scaled weights; a half-Cauchy if None.
    allowed : array of bool (M,) or None
        Which basis functions may have a non-zero weight; all if None.
    start : (weights (M, C), bias (C,)) or None
        Result of an earlier fit, with zero weights for new basis objects. If None, the first step
        is ridge regression under the bounds.
    solver : {"newton", "lbfgs"} or None
        None uses Newton's method for small problems and L-BFGS for large ones.
    tol : float or None
        Largest violation of the optimality conditions per row. The default is 1e-9 for Newton, and
        1e-4 for L-BFGS, because a smaller value does not improve the held-out loss.
    max_iter : int or None
        The default is 100 for Newton and 2,000 for L-BFGS.

    Notes
    -----
    Newton takes about 15 steps of O(N (r C)²) each, L-BFGS about 300 of O(N r C). Memory beyond the
    features is one block of rows and M C numbers, plus (r C)² for Newton.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.mode import fit_pcvm
    >>> from krein.core.pcvm.rows import Rows
    >>> K = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    >>> rows = Rows(K, np.array([1, 1, 0, 0]), None, n_classes=2)
    >>> fit = fit_pcvm(rows, np.array([1, 0]))
    >>> np.sign(fit.weights).ravel(), fit.converged
    (array([ 1., -1.]), True)
    """
    link = link or (Probit() if rows.n_classes == 2 else Softmax())
    C = link.n_scores(rows.n_classes)
    M = rows.shape[1] if Q is None else Q.shape[1]
    if len(basis_classes) != M:
        raise ValueError(f"{M} basis functions but {len(basis_classes)} classes of basis objects")
    S = signs(basis_classes, link, rows.n_classes)
    post = Posterior(rows, link, Q, S, prior or GammaPrior(), allowed)
    if np.any(post.shares <= 0):
        empty = np.flatnonzero(post.shares <= 0)
        raise ValueError(f"no row of class {', '.join(map(str, empty))} has a positive weight")
    if start is None:
        x, beta = np.zeros((M, C)), link.start(post.shares)
    else:
        finite = np.where(np.isfinite(post.deviation), post.deviation, 0.0)
        W = np.asarray(start[0], dtype=np.float64).reshape(M, C) * (finite > 0)[:, None]
        x = post.flip * W * finite[:, None]
        np.maximum(x, 0.0, out=x, where=post.bounded)
        beta = np.asarray(start[1], dtype=np.float64) + post.mean @ W
    solver = solver or ("newton" if rows.shape[1] * C <= NEWTON_LIMIT else "lbfgs")
    run: Callable[[Posterior, Array, Array, float, int], _State]
    run = _newton if solver == "newton" else _lbfgs
    tol = tol or (1e-9 if solver == "newton" else 1e-4)
    state = run(post, x, beta, tol, max_iter or (100 if solver == "newton" else 2000))
    value, gx, gb = post.value_gradient(state.x, state.beta)
    violation = post.violation(state.x, gx, gb) / post.total
    W, b = post.weights(state.x, state.beta)
    u = post.flip * state.x
    return PCVMFit(
        weights=W,
        bias=b,
        scaled=u,
        precision=np.array(post.prior.precision(u)),
        curvature=np.array(post.prior.curvature(u)),
        feature_mean=post.feature_mean,
        link=link,
        log_likelihood=post.log_likelihood(value, state.x, state.beta),
        objective_path=np.array(state.path),
        n_iter=state.n_iter,
        n_passes=post.n_passes,
        converged=violation <= tol,
        reason=state.reason,
        violation=violation,
    )
