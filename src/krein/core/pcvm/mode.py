"""PCVM solved soundly: weights held to their labels' signs under a proper sparsity prior.

N rows with features F (N, r); basis functions Φ = FQ with Q (r, M), or Φ = F. Scores
Z = ΦW + 1bᵀ with one score (two classes, probit) or one a class (softmax). The posterior mode of

    log p(y | Z) − Σ_jc (a + ½) log(1 + u_jc² / 2b),    u_jc = W_jc · deviation of Φ_j,

is sought under u_jc ≥ 0 (≤ 0) wherever W_jc is held to a sign. The second term is the truncated
Gaussian prior of PCVM, u ~ N_t(0, 1/α), with α ~ Gamma(a, b) integrated out: for a = b = ½ a half
Cauchy distribution. Its EM step is α ← (2a + 1)/(u² + 2b), then a convex problem under bounds.

Paper, section 2.4; a = b → 0 would be the published choice, whose log posterior has no upper bound:
it goes to +∞ as u → 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh
from scipy.optimize import minimize

from .bounded import Quadratic, minimise_bounded
from .prior import FixedPrecision, GammaPrior, Prior
from .probit import Probit
from .rows import Link, Rows, column_statistics, hessian, loss_gradient
from .softmax import Softmax

__all__ = ["FixedPrecision", "GammaPrior", "PCVMFit", "Posterior", "Prior", "fit_pcvm", "signs"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Solver = Literal["newton", "lbfgs"]

BIAS_PRECISION = 1e-6
"""Of the bias of centred features. It tells apart what the likelihood cannot: softmax scores
that differ by a constant."""

NEWTON_LIMIT = 1200
"""Newton's matrix has (r C)² entries and costs as many additions a row. Beyond this size the
gradient method takes less time to the same mode."""


@dataclass(frozen=True)
class PCVMFit:
    """The model, and how the search for it ended."""

    weights: Array  # (M, C), in the unit of Φ
    bias: Array  # (C,)
    scaled: Array  # (M, C), weights of basis functions of unit deviation
    precision: Array  # (M, C), α of each scaled weight
    curvature: Array  # (M, C), second derivative of −log prior by each scaled weight
    link: Link
    log_likelihood: float
    objective_path: Array  # log posterior after each step, rising
    n_iter: int
    n_passes: int  # over all rows
    converged: bool
    reason: str
    violation: float  # of the optimality conditions, a row

    @property
    def kept(self) -> NDArray[np.intp]:
        """Indices of the basis functions that carry a weight."""
        return np.flatnonzero(np.any(self.weights != 0, axis=1))

    def scores(self, F: Array, Q: Array | None = None) -> Array:
        """Return Z = FQW + b of new rows."""
        V = self.weights if Q is None else Q @ self.weights
        return F @ V + self.bias

    def probabilities(self, F: Array, Q: Array | None = None) -> Array:
        """Return class probabilities of new rows."""
        return self.link.probabilities(self.scores(F, Q))


def signs(basis_classes: Labels, link: Link, n_classes: int) -> Array:
    """Return the sign of each weight (M, C): +1, −1, or 0 where it is free.

    One score: the sign of the label. A score a class: the weight on the own class is positive,
    the weights on the others are free.
    """
    basis_classes = np.asarray(basis_classes, dtype=np.intp)
    if link.n_scores(n_classes) == 1:
        return np.where(basis_classes == 1, 1.0, -1.0)[:, None]
    S = np.zeros((len(basis_classes), n_classes))
    S[np.arange(len(basis_classes)), basis_classes] = 1.0
    return S


@dataclass
class Posterior:
    """−log posterior of x, where u = flip ∘ x, so that every bound reads x ≥ 0, and of the bias
    of centred basis functions."""

    rows: Rows
    link: Link
    Q: Array | None
    sign: Array
    prior: Prior
    allowed: NDArray[np.bool_] | None = None  # basis functions that may carry a weight
    mean: Array = field(init=False)  # of Φ
    deviation: Array = field(init=False)  # of Φ, infinite where a basis function is constant
    total: float = field(init=False)
    shares: Array = field(init=False)
    n_passes: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        known = column_statistics(self.rows, full=self.Q is not None)
        self.total = known.total
        self.shares = known.class_weight / known.total
        self.feature_mean = known.mean
        if self.Q is None:
            self.mean, variance = known.mean, known.scatter
        else:
            self.mean = known.mean @ self.Q
            variance = np.einsum("im,im->m", self.Q, known.scatter @ self.Q)
        # a constant basis function is a second bias; rounding gives it a deviation all the same
        largest = max(float(variance.max(initial=0.0)), np.finfo(float).tiny)
        constant = variance <= 1e-20 * np.maximum(self.mean**2, largest)
        with np.errstate(invalid="ignore"):
            self.deviation = np.where(constant, np.inf, np.sqrt(variance))
        if self.allowed is not None:
            # infinite: neither weight nor gradient, and the start, zero, is where it stays
            self.deviation[~self.allowed] = np.inf
        self.flip = np.where(self.sign < 0, -1.0, 1.0)
        self.bounded = self.sign != 0
        self.n_passes += 2

    def weights(self, x: Array, beta: Array) -> tuple[Array, Array]:
        """Return weights in the unit of Φ and the bias of Φ as it is."""
        W = self.flip * x / self.deviation[:, None]
        return W, beta - self.mean @ W

    def value_gradient(self, x: Array, beta: Array) -> tuple[float, Array, Array]:
        """Return −log posterior and its derivatives by x and beta. One pass, O(N r C + r M C)."""
        W, b = self.weights(x, beta)
        V = W if self.Q is None else self.Q @ W
        loss, gV, gb = loss_gradient(self.rows, self.link, V, b)
        self.n_passes += 1
        u = self.flip * x
        gW = gV if self.Q is None else self.Q.T @ gV
        gW -= np.outer(self.mean, gb)
        gx = self.flip * (gW / self.deviation[:, None] + self.prior.gradient(u))
        value = loss + self.prior.value(u) + 0.5 * BIAS_PRECISION * float(beta @ beta)
        return value, gx, gb + BIAS_PRECISION * beta

    def log_likelihood(self, value: float, x: Array, beta: Array) -> float:
        """Return the likelihood's part of −value."""
        prior = self.prior.value(self.flip * x) + 0.5 * BIAS_PRECISION * float(beta @ beta)
        return prior - value

    def violation(self, x: Array, gx: Array, gb: Array) -> float:
        """Return the largest breach of the optimality conditions: g = 0, or g ≥ 0 where x = 0."""
        breach = np.where(self.bounded & (x <= 0), np.maximum(-gx, 0.0), np.abs(gx))
        return max(float(breach.max(initial=0.0)), float(np.abs(gb).max()))

    def newton_step(
        self, x: Array, beta: Array, gx: Array, gb: Array, off_bound: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """Return the minimiser of the quadratic model under the bounds.

        The model is the M-step of PCVM, ridge regression under bounds, with the bias eliminated:
        S = H_VV − H_Vb H_bb⁻¹ H_bV. One pass of O(N (r C)²), then no more data.
        """
        W, b = self.weights(x, beta)
        V = W if self.Q is None else self.Q @ W
        H = hessian(self.rows, self.link, V, b)
        self.n_passes += 1
        M, C = x.shape
        r = self.rows.shape[1]
        H4 = H.reshape(C, r + 1, C, r + 1)
        # bias of centred features: b = beta − mean · V, so column V_i loses mean_i times column b
        mean = self.feature_mean
        Hbb = H4[:, r, :, r] + BIAS_PRECISION * np.eye(C)
        HbV = H4[:, r, :, :r] - H4[:, r, :, r][:, :, None] * mean  # (C, C, r)
        HVV = (
            H4[:, :r, :, :r]
            - mean[None, :, None, None] * H4[:, r, :, :r][:, None]
            - HbV.transpose(1, 2, 0)[:, :, :, None] * mean
        ).reshape(C * r, C * r)
        HbV = HbV.reshape(C, C * r)
        bias = cho_factor(Hbb)
        S = HVV - HbV.T @ cho_solve(bias, HbV)
        # weights of basis functions, classes outermost: V_c = Q (flip_c ∘ x_c / deviation)
        scale = (self.flip / self.deviation[:, None]).T  # (C, M)
        if self.Q is None:
            by_x = scale.ravel()
            square, root = S * by_x * by_x[:, None], None
            HbX = HbV * by_x
        else:
            HbX = ((HbV.reshape(C, C, r) @ self.Q) * scale).reshape(C, C * M)
            if r >= M:
                SQ = (S.reshape(C * r, C, r) @ self.Q).reshape(C, r, C * M)
                square = (self.Q.T @ SQ).reshape(C * M, C * M) * scale.ravel()
                square, root = square * scale.ravel()[:, None], None
            else:
                root = ((_root(S).reshape(-1, C, r) @ self.Q) * scale).reshape(-1, C * M)
                square = None
        u = self.flip * x
        # beyond the inflexion the prior is concave; a share of the EM precision keeps the model
        # convex there and its steps longer than EM's
        a = np.maximum(self.prior.curvature(u), 0.1 * self.prior.precision(u)).T.ravel()
        model = Quadratic(a, square=square, root=root)
        start = x.T.ravel()
        reduced = gx.T.ravel() - HbX.T @ cho_solve(bias, gb)
        model.c = reduced - model.product(start)
        solution = minimise_bounded(model, self.bounded.T.ravel(), off_bound.T.ravel())
        step = solution.x - start
        return (
            solution.x.reshape(C, M).T,
            beta - cho_solve(bias, gb + HbX @ step),
        )


def _root(S: Array) -> Array:
    """Return R with RᵀR = S for a positive semi-definite S."""
    try:
        return cholesky(S)
    except np.linalg.LinAlgError:
        lam, U = eigh(S)
        return np.sqrt(np.maximum(lam, 0.0))[:, None] * U.T


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
            reason = "optimality conditions hold"
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
    result = minimize(
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
        Class index of each basis object, whose sign holds the weights.
    Q : array (r, M) or None
        Φ = FQ; Φ = F where None.
    link : Link or None
        Probit for two classes, Softmax for more.
    prior : Prior or None
        Of the scaled weights; a half-Cauchy where None.
    allowed : array of bool (M,) or None
        Which basis functions may carry a weight; all, where None.
    start : (weights (M, C), bias (C,)) or None
        Of an earlier fit; weights of new basis objects are zero. Without it the first step is ridge
        regression under the bounds.
    solver : {"newton", "lbfgs"} or None
        None takes Newton's up to a size.
    tol : float or None
        Largest breach of the optimality conditions, a row: 1e-9 for Newton; 1e-4 by gradients,
        where held-out loss gains nothing from more.
    max_iter : int or None
        None takes 100 for Newton and 2,000 for gradients.

    Notes
    -----
    A step costs O(N r C) by gradients, O(N (r C)²) by Newton; some 15 against some 300 steps.
    Memory beyond the features: one block of rows and M C numbers, (r C)² for Newton.

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
        raise ValueError(f"no row of class {', '.join(map(str, empty))} carries weight")
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
        link=link,
        log_likelihood=post.log_likelihood(value, state.x, state.beta),
        objective_path=np.array(state.path),
        n_iter=state.n_iter,
        n_passes=post.n_passes,
        converged=violation <= tol,
        reason=state.reason,
        violation=violation,
    )
