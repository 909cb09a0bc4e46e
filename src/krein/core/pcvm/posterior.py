"""The posterior of PCVM: its value, its gradient, and a Newton step under the bounds.

N rows with features F (N, r); basis functions Φ = FQ with Q (r, M), or Φ = F. Scores
Z = ΦW + 1bᵀ with one score (two classes, probit) or one per class (softmax). The log posterior is

    log p(y | Z) − Σ_jc (a + ½) log(1 + u_jc² / 2b),    u_jc = W_jc · deviation of Φ_j,

with u_jc ≥ 0 (≤ 0) if W_jc has a sign constraint. The second term is the truncated Gaussian prior
of PCVM, u ~ N_t(0, 1/α), with α ~ Gamma(a, b) integrated out: a half-Cauchy distribution for
a = b = ½.

Source: paper, section 2.4. The published choice is a = b → 0, whose log posterior is unbounded: it
goes to +∞ as u → 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh

from .bounded import Quadratic, minimise_bounded
from .prior import Prior
from .rows import Array, Labels, Link, Rows, column_statistics, hessian, loss_gradient

BIAS_PRECISION = 1e-6
"""Prior precision of the bias of centred features. It determines the constant that can be added to
all softmax scores without changing the likelihood."""


def signs(basis_classes: Labels, link: Link, n_classes: int) -> Array:
    """Return the sign of each weight (M, C): +1, −1, or 0 where it is free.

    With one score, it is the sign of the label. With one score per class, the weight for the basis
    object's own class is non-negative, and the weights for the others are free.
    """
    basis_classes = np.asarray(basis_classes, dtype=np.intp)
    if link.n_scores(n_classes) == 1:
        return np.where(basis_classes == 1, 1.0, -1.0)[:, None]
    S = np.zeros((len(basis_classes), n_classes))
    S[np.arange(len(basis_classes)), basis_classes] = 1.0
    return S


@dataclass
class Posterior:
    """−log posterior as a function of x and of the bias of centred basis functions.

    Here u = flip ∘ x, which turns every bound into x ≥ 0.
    """

    rows: Rows
    link: Link
    Q: Array | None
    sign: Array
    prior: Prior
    allowed: NDArray[np.bool_] | None = None  # which weights may be non-zero
    mean: Array = field(init=False)  # of Φ
    deviation: Array = field(init=False)  # of Φ, infinite for a constant basis function
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
        # a constant basis function is a second bias, but rounding gives it a small deviation
        largest = max(float(variance.max(initial=0.0)), np.finfo(float).tiny)
        constant = variance <= 1e-20 * np.maximum(self.mean**2, largest)
        with np.errstate(invalid="ignore"):
            self.deviation = np.where(constant, np.inf, np.sqrt(variance))
        if self.allowed is not None:
            # an infinite deviation makes the gradient zero, so the weight stays zero
            self.deviation[~self.allowed] = np.inf
        self.flip = np.where(self.sign < 0, -1.0, 1.0)
        self.bounded = self.sign != 0
        self.n_passes += 2

    def weights(self, x: Array, beta: Array) -> tuple[Array, Array]:
        """Return weights in the unit of Φ and the bias for uncentred Φ."""
        W = self.flip * x / self.deviation[:, None]
        return W, beta - self.mean @ W

    def value_gradient(self, x: Array, beta: Array) -> tuple[float, Array, Array]:
        """Return −log posterior and its gradients in x and beta. One pass, O(N r C + r M C)."""
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
        """Return the log-likelihood, i.e. −value without the prior."""
        prior = self.prior.value(self.flip * x) + 0.5 * BIAS_PRECISION * float(beta @ beta)
        return prior - value

    def violation(self, x: Array, gx: Array, gb: Array) -> float:
        """Return the largest violation of the optimality conditions: g = 0, or g ≥ 0 if x = 0."""
        breach = np.where(self.bounded & (x <= 0), np.maximum(-gx, 0.0), np.abs(gx))
        return max(float(breach.max(initial=0.0)), float(np.abs(gb).max()))

    def newton_step(
        self, x: Array, beta: Array, gx: Array, gb: Array, off_bound: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """Return the minimiser of the quadratic model under the bounds.

        The model is the M-step of PCVM, ridge regression under bounds, with the bias eliminated:
        S = H_VV − H_Vb H_bb⁻¹ H_bV. Needs a single pass over the data, of O(N (r C)²).
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
        # beyond the inflexion point the prior is concave; a share of the EM precision keeps the
        # model convex there, with longer steps than EM's
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
