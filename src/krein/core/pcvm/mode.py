"""The fit of PCVM: the mode of its posterior under the sign constraints (paper, section 2.4).

N rows with features F (N, r); basis functions Φ = FQ with Q (r, M), or Φ = F. Scores
Z = ΦW + 1bᵀ with one score (two classes, probit) or one per class (softmax). The log posterior is

    log p(y | Z) − Σ_jc (a + ½) log(1 + u_jc² / 2b),    u_jc = W_jc · deviation of Φ_j,

with u_jc ≥ 0 (≤ 0) if W_jc has a sign constraint. The second term is the truncated Gaussian prior
of PCVM, u ~ N_t(0, 1/α), with α ~ Gamma(a, b) integrated out: a half-Cauchy distribution for
a = b = ½. The published choice is a = b → 0, whose log posterior is unbounded: it goes to +∞ as
u → 0.

An EM step sets α ← (2a + 1)/(u² + 2b) and solves a convex problem under bounds, `minimise_bounded`.
Newton's method takes longer steps to the same mode; for large problems a limited-memory gradient
method (L-BFGS) is faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # scipy.optimize loads on first use; predictions never need it
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from ..shapes import Array, Codes, Indices, Mask
from .rows import Block, Rows, column_statistics


@dataclass(frozen=True)
class GammaPrior:
    """The prior of a weight u of a basis function scaled to unit deviation, up to a constant.

    u ~ N(0, 1/α), α ~ Gamma(a, b): −log p(u) = (a + ½) log(1 + u²/2b).

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.mode import GammaPrior
    >>> GammaPrior().precision(np.array([0.0, 1.0, 10.0]))
    array([2.        , 1.        , 0.01980198])
    """

    a: float = 0.5
    b: float = 0.5

    @property
    def scale(self) -> float:
        """The typical size of a weight, √(2b): 1 for the half-Cauchy with a = b = ½."""
        return float(np.sqrt(2 * self.b))

    def value(self, u: Array) -> float:
        """Return −log p(u), 0 at u = 0."""
        return (self.a + 0.5) * float(np.log1p(u**2 / (2 * self.b)).sum())

    def gradient(self, u: Array) -> Array:
        """Return (2a + 1) u / (u² + 2b)."""
        return self.precision(u) * u

    def curvature(self, u: Array) -> Array:
        """Return the second derivative (2a + 1)(2b − u²)/(u² + 2b)², which may be negative."""
        return self.precision(u) * (2 * self.b - u**2) / (u**2 + 2 * self.b)

    def precision(self, u: Array) -> Array:
        """Return α = (2a + 1)/(u² + 2b) of the Gaussian that touches the prior: the E-step."""
        return (2 * self.a + 1) / (u**2 + 2 * self.b)


_FAR = -1e4
"""Below this λ(λ + z) = 1 − O(1/z²) is 1 to eight digits, and the difference λ + z loses more."""


def hazard(z: Array) -> Array:
    """Return λ(z) = φ(z)/Ψ(z), finite for every finite z.

    φ(z)/Ψ(z) = √(2/π) / erfcx(−z/√2): numerator and denominator share the factor exp(−z²/2), which
    underflows at z = −38; erfcx omits it. For large z the quotient is φ(z) itself.
    """
    z = np.asarray(z, dtype=np.float64)
    # erfcx(−z/√2) overflows to infinity near z = 38, where λ is 0 to machine precision
    with np.errstate(over="ignore"):
        return np.sqrt(2 / np.pi) / erfcx(-z / np.sqrt(2))


def curvature(z: Array) -> Array:
    """Return −d²/dz² log Ψ(z) = λ(z)(λ(z) + z), which lies between 0 and 1."""
    z = np.asarray(z, dtype=np.float64)
    lam = hazard(z)
    near = np.where(z < _FAR, 0.0, z)
    return np.clip(np.where(z < _FAR, 1.0, lam * (lam + near)), 0.0, 1.0)


class Probit:
    """Two classes, one score per row: log p(y | z) = log Ψ(t z), t = +1 for class 1, −1 for 0.

    Ψ is the distribution function of N(0, 1).

    Scores are (n, 1) so that two classes and more share one shape.
    """

    def n_scores(self, n_classes: int) -> int:
        """Return the number of scores per row: one, for two classes only."""
        if n_classes != 2:
            raise ValueError(f"the probit link is for two classes; got {n_classes}")
        return 1

    def loss_residual(self, Z: Array, y: Codes, s: Array | float) -> tuple[float, Array]:
        """Return −Σ s log Ψ(t z) and its gradient in the scores, −s t λ(t z). O(n)."""
        t = 2.0 * y - 1.0
        tz = t * Z[:, 0]
        return -float(np.sum(s * log_ndtr(tz))), (-s * t * hazard(tz))[:, None]

    def hessian(self, F: Array, Z: Array, y: Codes, s: Array | float) -> Array:
        """Return Σ s λ(λ + tz) (f, 1)(f, 1)ᵀ, (r+1) × (r+1): one product of n r² additions."""
        return _weighted_gram(F, np.sqrt(self.curvatures(Z, y, s)[:, 0]))

    def class_hessian(self, F: Array, Z: Array, y: Codes, s: Array | float, c: int) -> Array:
        """Return the Hessian of the only score."""
        return self.hessian(F, Z, y, s)

    def curvature_root(self, Z: Array, y: Codes, s: Array | float) -> Array:
        """Return R (n, 1, 1), the square root of the second derivative of each row's loss."""
        return np.sqrt(self.curvatures(Z, y, s))[:, :, None]

    def curvatures(self, Z: Array, y: Codes, s: Array | float) -> Array:
        """Return the second derivative of each row's loss with respect to its score (n, 1)."""
        return (s * curvature((2.0 * y - 1.0) * Z[:, 0]))[:, None]

    def losses(self, Z: Array, y: Codes) -> Array:
        """Return −log p(y | z) of each row."""
        return -log_ndtr((2.0 * y - 1.0) * Z[:, 0])

    def start(self, shares: Array) -> Array:
        """Return the bias of a model without weights: Ψ⁻¹ of the share of class 1."""
        return ndtri(shares[1:2])

    def probabilities(self, Z: Array) -> Array:
        """Return (n, 2) class probabilities."""
        # both from ndtr: 1 − Ψ(z) would round a small probability to zero
        return np.column_stack([ndtr(-Z[:, 0]), ndtr(Z[:, 0])])


def softmax(Z: Array) -> Array:
    """Return exp(z_c) / Σ_d exp(z_d) for every row, without overflow."""
    P = Z - Z.max(axis=1, keepdims=True)
    np.exp(P, out=P)
    P /= P.sum(axis=1, keepdims=True)
    return P


def softmax_root(P: Array, s: Array | float) -> Array:
    """Return R (n, C, C) with R Rᵀ = s (diag p − p pᵀ), for p ≥ 0 whose sum τ is at most 1.

    R = √s diag(√p) (I − a √p √pᵀ), where (1 − aτ)² = 1 − τ.
    """
    tau = P.sum(axis=1)
    rest = 1 - np.sqrt(np.maximum(1 - tau, 0.0))
    a = np.divide(rest, tau, out=np.full_like(tau, 0.5), where=tau > 0)
    v = np.sqrt(P)
    inner = np.eye(P.shape[1]) - a[:, None, None] * v[:, :, None] * v[:, None, :]
    root = np.sqrt(s) * np.ones(len(P))
    found: Array = (root[:, None] * v)[:, :, None] * inner
    return found


class Softmax:
    """C classes, C scores per row: log p(y | z) = z_y − log Σ_d exp(z_d)."""

    def n_scores(self, n_classes: int) -> int:
        """Return the number of scores per row: one per class."""
        return n_classes

    def loss_residual(self, Z: Array, y: Codes, s: Array | float) -> tuple[float, Array]:
        """Return −Σ s log p(y | z) and its gradient in the scores, s (p − e_y). O(n C)."""
        rows = np.arange(len(Z))
        G = Z - Z.max(axis=1, keepdims=True)
        own = G[rows, y]
        np.exp(G, out=G)
        total = G.sum(axis=1)
        loss = float(np.sum(s * (np.log(total) - own)))
        G /= total[:, None]
        G[rows, y] -= 1.0
        G *= np.asarray(s)[..., None]
        return loss, G

    def hessian(self, F: Array, Z: Array, y: Codes, s: Array | float) -> Array:
        """Return Σ s (diag p − p pᵀ) ⊗ (f, 1)(f, 1)ᵀ, classes outermost. O(n (r C)²)."""
        n, C = Z.shape
        width = F.shape[1] + 1
        P = softmax(Z)
        F1 = np.column_stack([F, np.ones(n)])
        root = np.sqrt(s) * np.ones(n)
        A = ((P * root[:, None])[:, :, None] * F1[:, None, :]).reshape(n, C * width)
        H = -(A.T @ A)
        for c in range(C):
            part = slice(c * width, (c + 1) * width)
            D = F1 * (root * np.sqrt(P[:, c]))[:, None]
            H[part, part] += D.T @ D
        return H

    def class_hessian(self, F: Array, Z: Array, y: Codes, s: Array | float, c: int) -> Array:
        """Return a diagonal block of the Hessian, Σ s p_c (1 − p_c) (f, 1)(f, 1)ᵀ, O(n r²)."""
        p = softmax(Z)[:, c]
        return _weighted_gram(F, np.sqrt(p * (1 - p) * s))

    def curvature_root(self, Z: Array, y: Codes, s: Array | float) -> Array:
        """Return R (n, C, C) with R Rᵀ = s (diag p − p pᵀ). O(n C²)."""
        return softmax_root(softmax(Z), s)

    def curvatures(self, Z: Array, y: Codes, s: Array | float) -> Array:
        """Return the diagonal of each row's Hessian, s p_c (1 − p_c)."""
        P = softmax(Z)
        found: Array = (s * np.ones(len(Z)))[:, None] * P * (1 - P)
        return found

    def losses(self, Z: Array, y: Codes) -> Array:
        """Return −log p(y | z) of each row."""
        Z = Z - Z.max(axis=1, keepdims=True)
        own = Z[np.arange(len(Z)), y]
        return np.log(np.exp(Z).sum(axis=1)) - own

    def start(self, shares: Array) -> Array:
        """Return the biases of a model without weights: the logarithms of the shares, centred."""
        logs = np.log(shares)
        return logs - logs.mean()

    def probabilities(self, Z: Array) -> Array:
        """Return (n, C) class probabilities."""
        return softmax(Z)


Link = Probit | Softmax
"""How scores become probabilities, with the loss and its derivatives.

`loss_residual` and `losses` are of a block and of each row; `hessian` is in the (weights, bias) of
all scores, classes outermost; `class_hessian` is its diagonal block of one score; `curvature_root`
and `curvatures` are of each row's loss in its scores; `start` is a model without weights.
"""


def _weighted_gram(F: Array, root: Array) -> Array:
    """Return Σ root² (f, 1)(f, 1)ᵀ, (r+1) × (r+1): one product of n r² additions."""
    A = np.empty((F.shape[0], F.shape[1] + 1))
    np.multiply(F, root[:, None], out=A[:, :-1])
    A[:, -1] = root
    return A.T @ A


def loss_gradient(rows: Rows, link: Link, V: Array, b: Array) -> tuple[float, Array, Array]:
    """Return the loss at scores FV + b, and its gradients in V (r, C) and b (C,). O(N r C)."""

    def term(block: Block) -> tuple[Array, ...]:
        loss, G = link.loss_residual(block.F @ V + b, block.y, block.s)
        return np.asarray(loss), block.F.T @ G, G.sum(axis=0)

    loss, gV, gb = rows.total(term)
    return float(loss), gV, gb


def hessian(rows: Rows, link: Link, V: Array, b: Array) -> Array:
    """Return the Hessian in (V, b), (r+1)C square, classes outermost. O(N (r C)²)."""
    return rows.total(lambda block: (link.hessian(block.F, block.F @ V + b, block.y, block.s),))[0]


class Quadratic:
    """½ xᵀHx + cᵀx with H = S + diag(a), a > 0 and S ≥ 0 given as a square matrix or as RᵀR.

    A system in f free variables costs O(f³) by Cholesky, or, if R has k < f rows, O(f k²) by
    Woodbury: (A + RᵀR)⁻¹ = A⁻¹ − A⁻¹Rᵀ(I + RA⁻¹Rᵀ)⁻¹RA⁻¹. The identity, which the paper's
    second Nyström step loses, stays exact.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.mode import Quadratic
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
            some = self.square.copy() if free.all() else self.square[np.ix_(free, free)]
            x[free] = _solve(some, a, v)
            return x
        assert self.root is not None
        R = self.root[:, free]
        if len(R) >= len(a):
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
) -> tuple[Array, bool]:
    """Minimise the quadratic with x ≥ 0 where `bounded`, by block principal pivoting.

    Also returns whether the result is optimal, or the number of systems was exhausted.

    The solution is optimal when x ≥ 0, y = Hx + c ≥ 0 on the bounded variables and x y = 0. All
    variables that violate these conditions change sides at once. When that no longer reduces the
    number of violations, they change one at a time, largest index first, which cannot cycle. Júdice
    & Pires (1994).

    `free` is a guess of the variables off their bound. In a sequence of problems, pass the free
    variables of the last solution: most problems then need only two or three systems.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.mode import Quadratic, minimise_bounded
    >>> problem = Quadratic(np.ones(2), square=np.zeros((2, 2)))
    >>> problem.c = np.array([-3.0, 1.0])  # without bounds the minimum is at (3, −1)
    >>> minimise_bounded(problem, np.array([True, True]))[0]
    array([3., 0.])
    """
    n = len(problem.c)
    free = (~bounded if free is None else free | ~bounded).copy()
    fewest, patience = n + 1, 3
    for _ in range(max_solves):
        x = problem.minimise(free)
        y = problem.product(x) + problem.c
        # rounding must not count as a violation: compare each side with its own scale
        small_x = 1e-13 * np.abs(x).max(initial=0.0)
        small_y = 1e-11 * np.abs(problem.c).max(initial=0.0)
        wrong = bounded & np.where(free, x < -small_x, y < -small_y)
        count = int(wrong.sum())
        if count == 0:
            np.maximum(x, 0.0, out=x, where=bounded)
            return x, True
        fewest, patience = (count, 3) if count < fewest else (fewest, patience - 1)
        if patience < 0:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
    np.maximum(x, 0.0, out=x, where=bounded)
    return x, False


BIAS_PRECISION = 1e-6
"""Prior precision of the bias of centred features. It determines the constant that can be added to
all softmax scores without changing the likelihood."""


def signs(basis_classes: Codes, link: Link, n_classes: int) -> Array:
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
    prior: GammaPrior
    allowed: Mask | None = None  # which weights may be non-zero

    def __post_init__(self) -> None:
        weights, mean, variance = column_statistics(self.rows, full=self.Q is not None)
        self.n_passes = 2
        self.total = float(weights.sum())
        self.shares = weights / self.total
        self.feature_mean = self.mean = mean  # of F, and of Φ
        if self.Q is not None:
            self.mean = mean @ self.Q
            variance = np.einsum("im,im->m", self.Q, variance @ self.Q)
        # a constant basis function is a second bias, but rounding gives it a small deviation
        largest = max(float(variance.max(initial=0.0)), np.finfo(float).tiny)
        constant = variance <= 1e-20 * np.maximum(self.mean**2, largest)
        # an infinite deviation makes the gradient zero, so the weight stays zero
        with np.errstate(invalid="ignore"):
            self.deviation = np.where(constant, np.inf, np.sqrt(variance))
        if self.allowed is not None:
            self.deviation[~self.allowed] = np.inf
        self.flip = np.where(self.sign < 0, -1.0, 1.0)
        self.bounded = self.sign != 0

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
        self, x: Array, beta: Array, gx: Array, gb: Array, off_bound: Mask
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
        # the matrix is large, so it is changed in place: H_VV becomes S
        S = H4[:, :r, :, :r] - mean[None, :, None, None] * H4[:, r, :, :r][:, None]
        S -= HbV.transpose(1, 2, 0)[:, :, :, None] * mean
        S, HbV = S.reshape(C * r, C * r), HbV.reshape(C, C * r)
        bias = cho_factor(Hbb)
        S -= HbV.T @ cho_solve(bias, HbV)
        # weights of basis functions, classes outermost: V_c = Q (flip_c ∘ x_c / deviation)
        scale = (self.flip / self.deviation[:, None]).T  # (C, M)
        by_x, square, root = scale.ravel(), None, None
        if self.Q is None:
            S *= by_x
            S *= by_x[:, None]
            square, HbX = S, HbV * by_x
        else:
            HbX = ((HbV.reshape(C, C, r) @ self.Q) * scale).reshape(C, C * M)
            if r >= M:
                SQ = (S.reshape(C * r, C, r) @ self.Q).reshape(C, r, C * M)
                square = (self.Q.T @ SQ).reshape(C * M, C * M) * by_x * by_x[:, None]
            else:
                root = ((_root(S).reshape(-1, C, r) @ self.Q) * scale).reshape(-1, C * M)
        u = self.flip * x
        # beyond the inflexion point the prior is concave; a share of the EM precision keeps the
        # model convex there, with longer steps than EM's
        a = np.maximum(self.prior.curvature(u), 0.1 * self.prior.precision(u)).T.ravel()
        model = Quadratic(a, square=square, root=root)
        start = x.T.ravel()
        reduced = gx.T.ravel() - HbX.T @ cho_solve(bias, gb)
        model.c = reduced - model.product(start)
        end, _ = minimise_bounded(model, self.bounded.T.ravel(), off_bound.T.ravel())
        return end.reshape(C, M).T, beta - cho_solve(bias, gb + HbX @ (end - start))


def _root(S: Array) -> Array:
    """Return R with RᵀR = S for a positive semi-definite S."""
    try:
        return cholesky(S)
    except np.linalg.LinAlgError:
        lam, U = eigh(S)
        return np.sqrt(np.maximum(lam, 0.0))[:, None] * U.T


Solver = Literal["newton", "lbfgs"]

NEWTON_LIMIT = 1200
"""Newton's matrix has (r C)² entries and costs as many additions per row. Beyond this size, the
gradient method reaches the same mode in less time."""


@dataclass(frozen=True)
class PCVMFit:
    """The model, and how the search for it ended."""

    weights: Array  # (M, C), in the unit of Φ
    bias: Array  # (C,)
    Q: Array | None  # (r, M), Φ = FQ; Φ = F if None
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
    def kept(self) -> Indices:
        """Indices of the basis functions with a non-zero weight."""
        return np.flatnonzero(np.any(self.weights != 0, axis=1))

    @property
    def feature_weights(self) -> Array:
        """V = QW (r, C): the weights of the features."""
        return self.weights if self.Q is None else self.Q @ self.weights

    def scores(self, F: Array) -> Array:
        """Return Z = FV + b of new rows."""
        return F @ self.feature_weights + self.bias

    def probabilities(self, F: Array) -> Array:
        """Return class probabilities of new rows."""
        return self.link.probabilities(self.scores(F))


State = tuple[Array, Array, list[float], int, str]
"""How a search ended: x, the bias, the log posterior after each step, steps, and why it stopped."""


def _newton(post: Posterior, x: Array, beta: Array, tol: float, max_iter: int) -> State:
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
    return x, beta, path, n_iter, reason


def _lbfgs(post: Posterior, x: Array, beta: Array, tol: float, max_iter: int) -> State:
    """Gradient steps with limited memory under the bounds (Byrd, Lu, Nocedal & Zhu 1995)."""
    M, C = x.shape
    n = M * C

    def function(v: Array) -> tuple[float, Array]:
        value, gx, gb = post.value_gradient(v[:n].reshape(M, C), v[n:])
        return value, np.concatenate([gx.ravel(), gb])

    start = np.concatenate([x.ravel(), beta])
    path = [-function(start)[0]]

    def note(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        path.append(-float(intermediate_result.fun))

    lower = np.concatenate([np.where(post.bounded, 0.0, -np.inf).ravel(), np.full(C, -np.inf)])
    limits = {"maxiter": max_iter, "maxfun": 4 * max_iter}
    result = scipy.optimize.minimize(
        function,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([lower, np.full(n + C, np.inf)]),
        callback=note,
        options=limits | {"maxcor": 20, "gtol": tol * post.total, "ftol": 1e-13},
    )
    x, beta = result.x[:n].reshape(M, C), result.x[n:]
    return x, beta, path, int(result.nit), str(result.message)


def fit_pcvm(
    rows: Rows,
    basis_classes: Codes,
    Q: Array | None = None,
    *,
    link: Link | None = None,
    prior: GammaPrior | None = None,
    allowed: Mask | None = None,
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
    prior : GammaPrior or None
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
    if (solver or ("newton" if rows.shape[1] * C <= NEWTON_LIMIT else "lbfgs")) == "newton":
        tol = tol or 1e-9
        x, beta, path, n_iter, reason = _newton(post, x, beta, tol, max_iter or 100)
    else:
        tol = tol or 1e-4
        x, beta, path, n_iter, reason = _lbfgs(post, x, beta, tol, max_iter or 2000)
    value, gx, gb = post.value_gradient(x, beta)
    violation = post.violation(x, gx, gb) / post.total
    W, b = post.weights(x, beta)
    u = post.flip * x
    return PCVMFit(
        weights=W,
        bias=b,
        Q=Q,
        scaled=u,
        precision=np.array(post.prior.precision(u)),
        curvature=np.array(post.prior.curvature(u)),
        feature_mean=post.feature_mean,
        link=link,
        log_likelihood=post.log_likelihood(value, x, beta),
        objective_path=np.array(path),
        n_iter=n_iter,
        n_passes=post.n_passes,
        converged=violation <= tol,
        reason=reason,
        violation=violation,
    )
