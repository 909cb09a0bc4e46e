"""Left-out scores of PCVM: the scores of a row from the model without that row, to first order.

Around the mode, the posterior of all weights is approximately Gaussian with the full Hessian H of
the objective. Consider a row with features f whose loss has gradient g (C,) and curvature D (C, C).
Its scores have covariance V = (I ⊗ f)ᵀ H⁻¹ (I ⊗ f). Removing the row is one Newton step without its
part of H:

    z₋ = z + (I − V D)⁻¹ V g = z + h + V R (I − Rᵀ V R)⁻¹ Rᵀ h,    h = V g,  D = R Rᵀ

(Opper & Winther 2000; Rahnama Rad & Maleki 2020). The second form has a symmetric matrix of
leverages RᵀVR, whose eigenvalues are below 1 if a mode remains without the row. So a leave-one-out
loss costs only one pass.

H is the curvature of the objective in the weights off their bounds: the Hessian of the likelihood
with all blocks between classes, plus the second derivative of the prior. The latter is negative for
large weights, where the prior is concave. Using EM's α instead, the curvature of the Gaussian that
touches the prior, would constrain the weights too strongly and find only 0.6 to 0.9 of the optimism
seen in refits (`tests/core/test_pcvm_left_out.py`).

With many classes, the coupling between them is computed per row. If p are the probabilities of a
row, the curvature of its loss is diag(p) − p pᵀ: the first part treats each class separately, the
second has rank one. So H = A − U Uᵀ, where A has one block per class and U one column per row, and
by Woodbury

    H⁻¹ = A⁻¹ + A⁻¹ U M⁻¹ Uᵀ A⁻¹,    M = I − Uᵀ A⁻¹ U = I − Σ_c p_c p_cᵀ ∘ X_c A_c⁻¹ X_cᵀ.

M has one row per object, whereas H has one per weight (Rasmussen & Williams 2006, section 3.5).
Most classes are very improbable for most objects. An entry of p below a threshold is treated as
uncoupled: it adds p_c(1 − p_c) to A and nothing to U, and costs almost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cholesky, eigh, qr, solve_triangular

from ..calibration import SAMPLE_SIZE
from ..moments import weights_of
from ..shapes import Array, Codes, Indices, Mask
from .mode import GammaPrior, Link, PCVMFit, fit_pcvm, hessian, softmax, softmax_root
from .rows import Block, Rows

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
    >>> from krein.core.pcvm.left_out import without_row
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


JOINT_LIMIT = 1200
"""Up to this many weights (features times classes) the joint covariance of the scores is used. Its
matrix has one row per weight, and costs their square in additions per row of data. Beyond that,
scores are treated as independent."""

_JITTER = 1e-10
"""Share of the diagonal added to a curvature, which is singular: adding a constant to all scores
changes nothing."""


Covariance = Array | list[Array]
"""Covariance of the scores. Joint: B (C, r+1, C, r+1) of the (weights, bias) of all scores, so that
of a row's scores is (f, 1) B (f, 1)ᵀ. One score at a time, which is exact for one score and an
approximation for more: C roots (r+1, ·); the variance of a score is ‖(f, 1) root‖²."""


def score_covariance(near: Covariance, F: Array) -> Array:
    """Return V (n, C, C), or the variance (n, C) of each score. O(n r² C²), or O(n r² C)."""
    if isinstance(near, list):
        return np.column_stack([np.square(F @ R[:-1] + R[-1]).sum(axis=1) for R in near])
    C = len(near)
    F1 = np.column_stack([F, np.ones(len(F))])
    V = np.empty((len(F), C, C))
    for c in range(C):
        for d in range(c + 1):
            V[:, c, d] = V[:, d, c] = np.einsum("nr,nr->n", F1 @ near[c, :, d], F1)
    return V


def scores_without(near: Covariance, Z: Array, block: Block, link: Link) -> tuple[Array, Array]:
    """Return each row's scores by the model without it, and its leverage."""
    own, V = block.s / block.drawn, score_covariance(near, block.F)
    G = link.loss_residual(Z, block.y, own)[1]
    if isinstance(near, list):
        leverage = V * link.curvatures(Z, block.y, own)
        return Z + V * G / np.maximum(1.0 - leverage, _LEAST), leverage.max(axis=1)
    left, _, leverage = without_row(Z, V, G, link.curvature_root(Z, block.y, own))
    return left, leverage


def loss_curvature(rows: Rows, fit: PCVMFit, *, limit: int = JOINT_LIMIT) -> Array:
    """Return the second derivative of the loss in the feature weights and the bias.

    Up to `limit` weights, all blocks (C, r+1, C, r+1), in one pass of O(N (r C)²). Otherwise only
    the diagonal ones (C, r+1, r+1), in C passes of O(N r²).
    """
    C, width = fit.weights.shape[1], rows.shape[1] + 1
    V = fit.feature_weights
    if C > 1 and C * width <= limit:
        return hessian(rows, fit.link, V, fit.bias).reshape(C, width, C, width)

    def term(block: Block, c: int) -> tuple[Array]:
        Z = block.F @ V + fit.bias
        return (fit.link.class_hessian(block.F, Z, block.y, block.s, c),)

    return np.stack([rows.total(partial(term, c=c))[0] for c in range(C)])


def diagonal_blocks(curvature: Array) -> list[Array]:
    """Return the second derivatives (r+1, r+1) in the weights of each score."""
    if curvature.ndim == 3:
        return list(curvature)
    return [curvature[c, :, c] for c in range(len(curvature))]


def inverse_curvatures(curvature: Array, fit: PCVMFit) -> tuple[Covariance, Covariance]:
    """Return the covariance of the scores: joint if the curvature is, else one score at a time.

    The first is that with the prior's second derivative, the other with its secant to zero. Solves
    a system with one unknown per weight off its bound, or C smaller ones, each twice.
    """
    C, width = curvature.shape[:2]
    if curvature.ndim == 3:
        exact: list[Array] = []
        firm: list[Array] = []
        for c, H in enumerate(curvature):
            T = off_bound(fit, c)
            G = T.T @ H @ T
            priors = (prior_curvature(fit, c, secant=secant) for secant in (False, True))
            for found, root in zip((exact, firm), inverse_roots(G, *priors), strict=True):
                R = T @ root
                found.append(R if R.shape[1] <= width else qr(R.T, mode="r")[0][:width].T)
        return exact, firm
    T = block_diag(*(off_bound(fit, c, bias=c > 0) for c in range(C)))
    priors = (
        np.concatenate([prior_curvature(fit, c, bias=c > 0, secant=secant) for c in range(C)])
        for secant in (False, True)
    )
    G = T.T @ curvature.reshape(C * width, -1) @ T
    one, other = (T @ root for root in inverse_roots(G, *priors))
    shape = C, width, C, width
    return (one @ one.T).reshape(shape), (other @ other.T).reshape(shape)


def off_bound(fit: PCVMFit, c: int, *, bias: bool = True) -> Array:
    """Return T (r+1, ·), which maps the unknowns of score c to its feature weights and bias.

    The unknowns are the scaled weights off their bounds and the bias of centred features. One of
    several softmax scores needs no bias: adding a constant to all of them changes nothing.
    """
    mean = fit.feature_mean
    r = len(mean)
    on = np.flatnonzero(fit.scaled[:, c])
    n = len(on)
    unit = fit.weights[on, c] / fit.scaled[on, c]  # 1 / deviation
    T = np.zeros((r + 1, n + bias))
    T[:-1, :n] = (np.eye(r)[:, on] if fit.Q is None else fit.Q[:, on]) * unit
    T[-1, :n] = -mean @ T[:-1, :n]
    T[-1, n:] = 1.0
    return T


def prior_curvature(fit: PCVMFit, c: int, *, bias: bool = True, secant: bool = False) -> Array:
    """Return the prior's second derivative in the unknowns of score c; 0 for the bias.

    Alternatively, return the secant to zero, EM's α: (derivative at u − derivative at 0) / u.
    """
    found = (fit.precision if secant else fit.curvature)[:, c][fit.scaled[:, c] != 0]
    return np.append(found, 0.0) if bias else found


def inverse_roots(G: Array, prior: Array, secant: Array) -> tuple[Array, Array]:
    """Return R with R Rᵀ = (G + diag(prior))⁻¹, for both priors.

    At a mode the first sum is positive semi-definite, but the search may have stopped early.
    """
    firm = inverse_root(G, secant)
    assert firm is not None  # the secant is positive
    exact = firm if np.array_equal(prior, secant) else inverse_root(G, prior)
    return firm if exact is None else exact, firm


def inverse_root(G: Array, prior: Array) -> Array | None:
    """Return R with R Rᵀ = (G + diag(prior))⁻¹, or None if the sum is not positive definite."""
    n = len(G)
    A = G.copy()
    A[np.diag_indices(n)] += prior + _JITTER * np.diag(G) + np.finfo(float).tiny
    try:
        return solve_triangular(cholesky(A), np.eye(n))
    except LinAlgError:
        if (prior < 0).any():
            return None
    lam, U = eigh(A)  # semi-definite except for rounding
    return U / np.sqrt(np.maximum(lam, _JITTER * lam[-1]))


ROWS_PER_CANDIDATE = 5
"""Basis functions are chosen only with at least this many objects for each of them, not counting
landmarks. With fewer objects, the choice overfits the leave-one-out loss."""

SCALE_ROWS = 20_000
"""The scale of the prior is chosen on about this many rows: enough to tell tenfold steps apart."""

SCALE_TOLERANCE = 1e-5
"""Tolerance per row of the fits that choose the scale."""

MAX_FACTOR = 4
"""The search for the scale goes up to this many tenfold steps either way from the half-Cauchy."""


@dataclass(frozen=True)
class LeaveOneOut:
    """A model with what its scores without any one row follow from."""

    fit: PCVMFit
    curvature: Array  # of the loss: (C, r+1, C, r+1), or (C, r+1, r+1) one score at a time
    exact: Covariance  # with the prior's second derivative
    secant: Covariance  # with its secant to zero

    @classmethod
    def of(cls, rows: Rows, fit: PCVMFit, *, limit: int = JOINT_LIMIT) -> LeaveOneOut:
        """Return that of a fit; up to `limit` weights, scores are treated jointly."""
        curvature = loss_curvature(rows, fit, limit=limit)
        return cls(fit, curvature, *inverse_curvatures(curvature, fit))

    def left_out(self, block: Block) -> Array:
        """Return the scores of each row of a block by the model without it."""
        Z, link = self.fit.scores(block.F), self.fit.link
        left, leverage = scores_without(self.exact, Z, block, link)
        high = np.flatnonzero(leverage > HIGH_LEVERAGE)
        if len(high):
            left[high] = scores_without(self.secant, Z[high], block.part(high), link)[0]
        return left

    def losses(self, block: Block) -> Array:
        """Return the leave-one-out loss of each row of a block."""
        return self.fit.link.losses(self.left_out(block), block.y)


def leave_one_out(rows: Rows, one: LeaveOneOut) -> float:
    """Return the mean leave-one-out loss per row. One pass of O(N r k C)."""

    def term(block: Block) -> tuple[Array, ...]:
        return block.weights @ one.losses(block), block.weights.sum()

    loss, total = rows.total(term)
    return float(loss / total)


def compare(rows: Rows, one: LeaveOneOut, other: LeaveOneOut) -> tuple[float, float]:
    """Return the extra loss of `other` over `one`, summed over rows, and its standard error.

    A row that stands for f rows adds f² times its variance: it is one observation, not f.
    """

    def term(block: Block) -> tuple[Array, ...]:
        s, d = block.weights, other.losses(block) - one.losses(block)
        e = s * block.drawn
        return s @ d, s.sum(), e @ d**2, e @ d, e.sum()

    first, total, *moments = (float(v) for v in rows.total(term))
    mean = first / total
    second = moments[0] - 2 * mean * moments[1] + mean**2 * moments[2]
    return first, float(np.sqrt(max(second, 0.0)))


def choose_scale(
    rows: Rows, basis_classes: Codes, Q: Array | None = None
) -> tuple[GammaPrior, PCVMFit, list[tuple[float, float]]]:
    """Return the prior whose scale, in tenfold steps of b, has the least leave-one-out loss.

    Only for two classes; with more, the scale is 1. Also returns the fit to the rows that chose it,
    and 2b and the loss of each trial.

    Users cannot know the size of the weights: it is about ten for an easy problem with few
    landmarks, and a tenth for a hundred objects with as many basis functions. The search takes
    three to five warm-started fits on at most about SCALE_ROWS rows.
    """
    rows = rows.thinned(SCALE_ROWS)

    def attempt(k: int, start: PCVMFit | None) -> tuple[PCVMFit, LeaveOneOut]:
        prior = GammaPrior(0.5, 0.5 * 10.0**k)
        at = None if start is None else (start.weights, start.bias)
        fit = fit_pcvm(rows, basis_classes, Q, tol=SCALE_TOLERANCE, prior=prior, start=at)
        return fit, LeaveOneOut.of(rows, fit)

    best, (fit, candidate) = 0, attempt(0, None)
    path = [(1.0, leave_one_out(rows, candidate))]
    for direction in (1, -1):
        k, last = best, fit
        while abs(k) < MAX_FACTOR:
            k += direction
            last, trial = attempt(k, last)
            more, error = compare(rows, candidate, trial)
            path.append((10.0**k, leave_one_out(rows, trial)))
            # a weaker prior must be better by one standard error, a stronger one by any amount
            if more > (-error if direction > 0 else 0.0):
                break
            best, fit, candidate = k, last, trial
        if best > 0:
            break
    return GammaPrior(0.5, 0.5 * 10.0**best), fit, path


THRESHOLDS = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""Thresholds below which probabilities are not coupled; the lowest with few couplings is used."""

PART_BYTES = 2**27
"""Memory for the couplings of the rows that are processed together."""

COUPLED_PER_ROW = 8
"""The threshold rises if the mean number of classes coupled per row exceeds this."""


def coupled_classes(P: Array, y: Codes) -> Mask:
    """Return which classes (n, C) are coupled in each row: its own class and the likely ones.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.left_out import coupled_classes
    >>> coupled_classes(np.array([[0.9, 0.0999, 0.0001]]), np.array([0]))
    array([[ True,  True, False]])
    """
    for least in THRESHOLDS:
        coupled: Mask = least < P
        coupled[np.arange(len(P)), y] = True
        if coupled.sum() <= COUPLED_PER_ROW * len(P):
            break
    return coupled


def coupled_left_out(F: Array, y: Codes, s: Array, each: Array, fit: PCVMFit) -> Array:
    """Return the left-out scores (n, C) of each row.

    Parameters
    ----------
    F : array (n, r)
        Features, in memory.
    y : array (n,)
        Classes.
    s : array (n,)
        Weight that is removed with each row.
    each : array (n,)
        Weight of the row in the curvature.
    fit : PCVMFit
        A fit with the softmax link.

    Notes
    -----
    O(n r² C + n³ + k n²) time with k couplings, k ≤ 8 n. Memory is 8 (2 n² + n r C) bytes plus two
    parts of `PART_BYTES`.
    """
    Z = fit.scores(F)
    P, left = softmax(Z), np.empty_like(Z)
    on = coupled_classes(P, y)
    every = high = np.arange(len(y))
    exact = _Coupled.of(F, each, fit, P, on, secant=False)
    if exact is not None:
        leverage = np.empty(len(y))
        for part in _parts(every, on):
            left[part], leverage[part] = exact.without(part, Z, P, on, y, s)
        high = np.flatnonzero(leverage > HIGH_LEVERAGE)
    if len(high):
        del exact
        firm = _Coupled.of(F, each, fit, P, on, secant=True)
        assert firm is not None
        for part in _parts(high, on):
            left[part] = firm.without(part, Z, P, on, y, s)[0]
    return left


def _parts(rows: Indices, on: Mask) -> list[Indices]:
    """Return the rows in parts whose couplings, n numbers each, take at most PART_BYTES."""
    places = np.cumsum(8 * len(on) * (on[rows].sum(axis=1) + 1)) // PART_BYTES
    return [part for part in np.split(rows, np.flatnonzero(np.diff(places)) + 1) if len(part)]


@dataclass(frozen=True)
class _Coupled:
    """The factors of H⁻¹."""

    E: list[Array]  # C arrays (·, n): X_c A_c⁻¹ X_cᵀ = E_cᵀ E_c
    U: Array  # (n, C), zero where a class is not coupled
    L: Array  # (n, n), L Lᵀ = M

    @classmethod
    def of(
        cls, F: Array, each: Array, fit: PCVMFit, P: Array, on: Mask, *, secant: bool
    ) -> _Coupled | None:
        """Return H⁻¹ with the prior's curvature or secant, or None if H is indefinite."""
        n, C = P.shape
        U = np.where(on, P, 0.0) * np.sqrt(each)[:, None]
        A = np.where(on, P, P * (1 - P)) * each[:, None]
        M, E = np.eye(n), []
        for c in range(C):
            T = off_bound(fit, c, bias=c > 0)
            X = F @ T[:-1] + T[-1]
            prior = prior_curvature(fit, c, bias=c > 0, secant=secant)
            root = inverse_root((X * A[:, c, None]).T @ X, prior)
            if root is None:
                return None
            E.append(root.T @ X.T)
            J = np.flatnonzero(on[:, c])
            EJ = E[c][:, J]
            M[np.ix_(J, J)] -= np.outer(U[J, c], U[J, c]) * (EJ.T @ EJ)
        if secant:
            M[np.diag_indices(n)] += _JITTER
        try:
            return cls(E, U, cholesky(M, lower=True))
        except LinAlgError:
            if secant:
                raise
            return None

    def without(
        self, rows: Indices, Z: Array, P: Array, on: Mask, y: Codes, s: Array
    ) -> tuple[Array, Array]:
        """Return the left-out scores of these rows, and their leverage."""
        N, n = len(Z), len(rows)
        Z, P, on, y, s = Z[rows], P[rows], on[rows], y[rows], s[rows]
        C = Z.shape[1]
        starts = np.concatenate([[0], np.cumsum(on.sum(axis=1))])
        place = starts[:-1, None] + np.cumsum(on, axis=1) - 1
        V = np.zeros((n, C, C))
        B = np.zeros((N, starts[-1]))  # one column per coupling: L⁻¹ (u_c ∘ X_c A_c⁻¹ x_ic)
        for c in range(C):
            own, all_of = np.flatnonzero(on[:, c]), np.flatnonzero(self.U[:, c])
            K = self.E[c][:, all_of].T @ self.E[c][:, rows[own]]
            B[np.ix_(all_of, place[own, c])] = self.U[all_of, c, None] * K
            V[own, c, c] = np.square(self.E[c][:, rows[own]]).sum(axis=0)
        B = solve_triangular(self.L, B, lower=True, overwrite_b=True)
        for i in range(n):
            part, S = B[:, starts[i] : starts[i + 1]], np.flatnonzero(on[i])
            V[i][np.ix_(S, S)] += part.T @ part
        p = np.where(on, P, 0.0)
        residual = p.copy()
        residual[np.arange(n), y] -= 1.0
        left, q, leverage = without_row(Z, V, residual * s[:, None], softmax_root(p, s))
        # the other classes affect an uncoupled class through M
        pull = np.empty((N, n))
        for i in range(n):
            pull[:, i] = B[:, starts[i] : starts[i + 1]] @ q[i, on[i]]
        pull = solve_triangular(self.L, pull, lower=True, trans=1, overwrite_b=True)
        for c in range(C):
            other, all_of = np.flatnonzero(~on[:, c]), np.flatnonzero(self.U[:, c])
            K = self.E[c][:, all_of].T @ self.E[c][:, rows[other]]
            K *= self.U[all_of, c, None]
            left[other, c] += np.einsum("ji,ji->i", K, pull[np.ix_(all_of, other)])
        return left, leverage


COUPLED_BYTES = 2**30
"""Up to this many bytes, 8 (2 n² + n m C), the coupling of the classes is computed per row."""

JOINT_WEIGHTS = 3_000
"""Up to this many weights of all classes, scores are treated jointly: one matrix row per weight."""


def rows_to_ask(n_basis: int) -> int:
    """Return the approximate number of rows to pass to `left_out_scores`.

    They are more than `SAMPLE_SIZE` if there are more than a thousand basis objects.
    """
    wanted = max(SAMPLE_SIZE, ROWS_PER_CANDIDATE * n_basis)
    return wanted if wanted <= SCALE_ROWS else SAMPLE_SIZE


def left_out_scores(
    rows: Rows,
    problems: Sequence[tuple[Indices, Codes, int]],
    fits: Sequence[PCVMFit],
    some: Indices,
    *,
    removed: Array | None = None,
    coupled: bool = True,
) -> Array:
    """Return the left-out scores (n, one per column of all problems) of some rows.

    Each row is left out by itself, or a weight of `removed` (n,) with it: that of its copies. The
    scores are correct to first order, with all classes treated jointly. These rows represent all
    rows in the curvature of the likelihood, so there must be several per basis function. The model
    has not seen rows of weight 0, so their scores stay unchanged. Softmax scores are determined
    only up to a constant per row.

    Beyond 4,000 basis functions, too many rows would be needed, so ordinary scores of the fitted
    model are returned instead. With more than two classes, if both 3,000 weights and a gigabyte
    would be exceeded, or unless `coupled`, scores are treated one at a time, at O(n m² C).

    Notes
    -----
    Solves the smaller of two systems, in the weights of all classes or in the rows: O(n (m C)²) or
    O(n m² C + n³ + 8 n³). The second bound holds if few classes are probable for most rows.
    """
    F: Array | None = None
    found = []
    for (recode, _, size), fit in zip(problems, fits, strict=True):
        F = rows.features(some) if F is None else F
        weight = weights_of(rows.weight, rows.shape[0])
        Z = fit.scores(F)
        seen = np.flatnonzero(weight[some] > 0)
        if ROWS_PER_CANDIDATE * F.shape[1] <= SCALE_ROWS and len(seen):
            s = weight[some][seen]
            each = s * (weight.sum() / s.sum())
            s = s if removed is None else removed[seen]
            Z[seen] = _left_out(F[seen], recode[rows.y[some][seen]], s, each, fit, size, coupled)
        found.append(Z)
    return np.hstack(found)


def _left_out(
    F: Array, y: Codes, s: Array, each: Array, fit: PCVMFit, size: int, coupled: bool
) -> Array:
    """Return the left-out scores of rows; `each` is the weight that a row represents."""
    n, unknowns = len(y), (F.shape[1] + 1) * fit.weights.shape[1]
    joint = unknowns <= min(n, JOINT_WEIGHTS)
    room = 8 * (2 * n**2 + n * unknowns) <= COUPLED_BYTES
    if fit.weights.shape[1] > 1 and not joint and coupled and room:
        return coupled_left_out(F, y, s, each, fit)
    rows = Rows(F, y, each, n_classes=size)
    model = LeaveOneOut.of(rows, fit, limit=JOINT_WEIGHTS if joint else 0)
    parts = (slice(k, k + rows.block_rows) for k in range(0, n, rows.block_rows))
    return np.concatenate([model.left_out(Block(F[part], y[part], s[part])) for part in parts])
