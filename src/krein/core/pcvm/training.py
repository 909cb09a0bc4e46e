"""Fit a PCVM to values: choose its basis function and its prior, fit it, drop basis functions.

Basis functions. None of −½ d², −d and −√d is best everywhere: accuracy differs by one percentage
point on words and digits, and by thirty on balls, and not always in the same direction. So the
function is chosen from the data (`choose_function`).

Fewer basis functions at the same quality (`prune_pcvm`). The prior is flat at zero, so only the
sign constraint makes weights vanish, and many of those that remain contribute next to nothing.
Around the mode the loss is ½ xᵀHx. Removing basis function j and moving the others to their new
optimum costs x_j² / (2 [H⁻¹]_jj) (optimal brain surgeon, Hassibi & Stork 1993). It is removed if
that is below the price of its weights (half a unit each; one in Akaike's criterion), and if the
leave-one-out loss stays within one standard error of the full model's.

`PCVMFamily` contains the settings, and the problems to solve: a joint one, or one per class. The
functions at the end take the values of all objects to the landmarks L and return the weights of a
score F(x, L) w + b, where F is the basis function: on the landmarks, on more basis objects, or as
published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import log_ndtr

from ..calibration import (
    HELD_OUT_OBJECTS,
    N_FOLDS,
    SAMPLE_SIZE,
    Scorer,
    log_proba_joint,
    normalised,
)
from ..gaussian import GaussianFamily, choose_power
from ..moments import weights_of
from ..shapes import Array, Codes, Indices
from ..space import POWERS as EXPONENTS
from ..space import LandmarkSpace
from .left_out import (
    ROWS_PER_CANDIDATE,
    SCALE_ROWS,
    LeaveOneOut,
    choose_scale,
    compare,
    diagonal_blocks,
    inverse_root,
    left_out_scores,
    off_bound,
    prior_curvature,
)
from .mode import GammaPrior, PCVMFit, Solver, fit_pcvm
from .published import fit_published_models
from .rows import BasisFunction, Rows, basis_values

CHOICE_BYTES = 2**28
"""If the curvature, 8 C m² bytes, would exceed this size, nothing is chosen."""

CHOICE_TOLERANCE = 1e-4
"""Tolerance per row of the fits that are compared, whose losses differ by more than this."""

POWERS: tuple[BasisFunction, ...] = ("-d²/2", "-d", "-√d")

Problem = tuple[Indices, Codes, int]
"""A problem: the new codes of the classes, the classes of the basis objects, the class count."""


def choose_function(
    raw: Rows,
    landmarks: Indices,
    problems: Sequence[Problem],
    *,
    otherwise: BasisFunction = POWERS[0],
) -> BasisFunction:
    """Return the basis function with the best leave-one-out loss.

    Starts with −½ d² and moves on to the next smaller power as long as that is clearly better. The
    loss excludes objects of weight 0, and landmarks, because no new object has distance 0 to a
    landmark.

    Parameters
    ----------
    raw : Rows
        Untransformed dissimilarities to the landmarks, and the classes of the objects.
    landmarks : array (m,)
        Which of the rows are the landmarks.
    problems : list of (classes in this problem (C,), classes of the landmarks (m,), how many)
        One joint problem, or one for each class against the rest.
    otherwise : {"-d²/2", "-d", "-√d"}
        The basis function to use if the data do not suffice: fewer than five objects per landmark,
        a class without usable objects, more than 4,000 landmarks, or 8 C m² beyond 256 MB.

    Notes
    -----
    Fits two or three joint models to about `SAMPLE_SIZE` objects, or as many binary models per
    class, each with a choice of the prior's scale; each fit solves C systems of size m. The
    difference in leave-one-out loss between −½d² and −d predicts the difference on new objects
    (`benchmarks/powers.py`): −0.023 predicted and −0.028 observed on words, −0.027 and −0.021 on
    tangent distances, +0.42 and +0.39 on balls.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.training import choose_function
    >>> from krein.core.pcvm.rows import Rows
    >>> X = np.random.default_rng(0).uniform(0, 2, size=(500, 2))
    >>> y = X.astype(int).sum(axis=1) % 2  # a 2×2 checkerboard
    >>> landmarks = np.arange(40)
    >>> D = np.linalg.norm(X[:, None] - X[landmarks], axis=2)
    >>> choose_function(Rows(D, y), landmarks, [(np.arange(2), y[landmarks], 2)])
    '-√d'
    """
    N, m = raw.shape
    wanted = max(SAMPLE_SIZE, ROWS_PER_CANDIDATE * m)
    curvature = max(8 * size * m**2 for _, _, size in problems)
    if wanted > SCALE_ROWS or curvature > CHOICE_BYTES:
        return otherwise
    weight = raw.weight
    silent = landmarks if weight is None else np.union1d(landmarks, np.flatnonzero(weight == 0))
    if N - len(silent) < ROWS_PER_CANDIDATE * m:
        return otherwise
    some = raw.thinned(wanted, without=silent)
    if len(np.unique(some.y)) < raw.n_classes:
        return otherwise
    s = weights_of(some.weight, len(some.y))
    s = s / s.mean()
    best, *smaller = POWERS
    least, _ = leave_one_out_losses(best, some, s, problems)
    for function in smaller:
        losses, _ = leave_one_out_losses(function, some, s, problems)
        if not clearly_positive(least - losses, s):
            break
        best, least = function, losses
    return best


def clearly_positive(gain: Array, weight: Array) -> bool:
    """Whether the weighted mean is above 0 by a standard error.

    The standard error is the jackknife's, so an object with most of the weight dominates it.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.pcvm.training import clearly_positive
    >>> gain = np.array([1.0, 0.8, 1.2, 0.9, -0.5])
    >>> clearly_positive(gain, np.ones(5)), clearly_positive(gain, np.array([1, 1, 1, 1, 9.0]))
    (True, False)
    """
    p = weight / weight.sum()
    if p.max() >= 1:
        return False
    mean = float(p @ gain)
    error = float(np.sqrt(np.sum(np.square(p * (gain - mean) / (1 - p)))))
    return mean > error


def leave_one_out_losses(
    function: BasisFunction, raw: Rows, weight: Array, problems: Sequence[Problem]
) -> tuple[Array, list[PCVMFit]]:
    """Return the leave-one-out loss of each row, summed over the problems, and their models."""
    features = Rows(raw.F, raw.y, weight).under(function)
    total, fits = np.zeros(len(raw.y)), []
    for recode, basis, size in problems:
        rows = features.recoded(recode, size)
        fit = quick_fit(rows, basis)[1]
        candidate = LeaveOneOut.of(rows, fit)
        total += np.concatenate([candidate.losses(block) for block in rows])
        fits.append(fit)
    return total, fits


def quick_fit(rows: Rows, basis: Codes) -> tuple[GammaPrior, PCVMFit]:
    """Return the prior and a model that are good enough to compare or to start from."""
    if rows.n_classes == 2:
        return choose_scale(rows, basis)[:2]
    return GammaPrior(), fit_pcvm(rows, basis, tol=CHOICE_TOLERANCE)


PRICE = 0.5
"""The log-likelihood that a weight must be worth to be kept."""


def kept_weights(model: LeaveOneOut) -> tuple[Array, Array]:
    """Return the scaled weights (C, k) of kept basis functions, and their covariance (C, k, k).

    One score at a time, and zero for weights on their bound. Solves C systems of size k. The
    curvature of the prior is EM's α, that of the Gaussian that touches it: a weight has to move all
    the way to zero, but the second derivative is valid only for small moves.
    """
    fit = model.fit
    x = fit.scaled[fit.kept].T
    C, k = x.shape
    covariance = np.zeros((C, k, k))
    for c, H in enumerate(diagonal_blocks(model.curvature)):
        T, on = off_bound(fit, c), np.flatnonzero(x[c])
        root = inverse_root(T.T @ H @ T, prior_curvature(fit, c, secant=True))
        assert root is not None  # the secant is positive
        covariance[c][np.ix_(on, on)] = (root @ root.T)[:-1, :-1]
    return x, covariance


def removal_order(x: Array, S: Array) -> list[int]:
    """Return which of the weights x (C, k) to remove, while each costs less than its price.

    S (C, k, k) is their covariance. O(C k²) each.
    """
    x, S = x.copy(), S.copy()
    left = np.ones(x.shape[1], dtype=bool)
    out: list[int] = []
    while left.sum() > 1:
        d = np.maximum(np.einsum("cjj->cj", S), 0.0)
        on = d > 0
        cost = np.sum(np.divide(x**2, 2 * d, out=np.zeros_like(x), where=on), axis=0)
        net = np.where(left, cost - PRICE * on.sum(axis=0), np.inf)
        j = int(np.argmin(net))
        if net[j] > 0:
            break
        out.append(j)
        left[j] = False
        for c in np.flatnonzero(on[:, j]):
            # condition the Gaussian on x_j = 0
            s = S[c, :, j] / S[c, j, j]
            x[c] -= s * x[c, j]
            S[c] -= np.outer(s, S[c, j])
            S[c, j, :] = S[c, :, j] = x[c, j] = 0.0
    return out


def prune_pcvm(
    rows: Rows,
    basis_classes: Codes,
    fit: PCVMFit,
    *,
    prior: GammaPrior,
    tol: float | None = None,
) -> tuple[PCVMFit, list[tuple[int, float, float]]]:
    """Return a model with fewer basis functions whose leave-one-out loss is not clearly worse.

    Also returns, for each round, the number of basis functions, the leave-one-out loss minus the
    full model's, and the standard error of this difference, both summed over the rows.

    A round removes basis functions whose price exceeds their cost in the quadratic model, at most
    half of them, and refits from there. If the loss rises too far, the round is undone, and from
    then on each round goes halfway to the number that was too small. Hence there are O(log r)
    rounds, however many rows there are, each with a warm-started fit and two passes of O(N r² C),
    or O(N r² C²) with joint covariances of the scores.
    """
    full = LeaveOneOut.of(rows, fit)
    around, path = kept_weights(full), [(len(fit.kept), 0.0, 0.0)]
    too_few = 0
    while order := removal_order(*around)[: max(0, len(fit.kept) - too_few) // 2]:
        allowed = np.zeros(len(fit.weights), dtype=bool)
        allowed[fit.kept] = True
        allowed[fit.kept[order]] = False
        start = fit.weights, fit.bias
        trial = fit_pcvm(
            rows, basis_classes, fit.Q, prior=prior, allowed=allowed, start=start, tol=tol
        )
        candidate = LeaveOneOut.of(rows, trial)
        more, error = compare(rows, full, candidate)
        if more <= error:
            fit, around = trial, kept_weights(candidate)
            path.append((len(fit.kept), more, error))
        else:
            too_few = int(allowed.sum())
    return fit, path


LEARN_TOLERANCE = 1e-5
"""Tolerance per row of fits that only inform a choice and are then discarded."""


@dataclass(frozen=True)
class PCVMFamily:
    """Settings of a PCVM; settings that are None are chosen from the data.

    `scales` are the scales of the prior, one per problem. `otherwise` is the basis function of a
    dissimilarity if the data do not suffice for a choice.
    """

    n_classes: int
    one_against_rest: bool = False
    sparse: bool | None = None
    function: BasisFunction | None = None
    scales: tuple[float, ...] | None = None
    otherwise: BasisFunction = POWERS[0]
    rank: int | None = None
    tol: float | None = None
    """Tolerance per row of the search, by gradient steps; None for Newton's method to the end."""

    def problems(self, landmark_classes: Codes) -> list[Problem]:
        """Return the problems to solve: a joint one, or one for each class against the rest."""
        C = self.n_classes
        if C == 2 or not self.one_against_rest:
            return [(np.arange(C), landmark_classes, C)]
        alone = np.eye(C, dtype=np.intp)
        return [(recode, recode[landmark_classes], 2) for recode in alone]

    def choose_function(
        self, space: LandmarkSpace, raw: Rows, landmarks: Indices, landmark_classes: Codes
    ) -> BasisFunction:
        """Return the basis function for these landmarks, chosen on a subset if there are many.

        The number of landmarks is chosen with this function too: on a checkerboard, −½d² gains
        nothing from more landmarks. If most objects are landmarks, the power is the one with the
        least left-out loss of the Fisher discriminant, whose closed form needs only the landmarks.
        """
        if space.kind == "similarity":
            return "similarity"
        if self.function is not None:
            return self.function
        otherwise = self.otherwise
        if 2 * len(landmarks) > len(raw.y):
            fisher = GaussianFamily(self.n_classes)
            power = choose_power(fisher, space, landmark_classes)
            otherwise = POWERS[EXPONENTS.index(power)]
        problems = self.problems(landmark_classes)
        return choose_function(raw, landmarks, problems, otherwise=otherwise)

    def solve(
        self, F: Rows, Q: Array | None, landmark_classes: Codes
    ) -> tuple[list[PCVMFit], list[float]]:
        """Return the model of each problem, and the scale of its prior."""
        fits, scales = [], []
        for recode, basis, size in self.problems(landmark_classes):
            rows = F.recoded(recode, size)
            prior, start = GammaPrior(), None
            if size == 2:
                prior, quick, _ = choose_scale(rows, basis, Q)
                start = quick.weights, quick.bias
            solver: Solver | None = None if self.tol is None or size == 2 else "lbfgs"
            tol = None if solver is None else self.tol
            fit = fit_pcvm(rows, basis, Q, prior=prior, start=start, solver=solver, tol=tol)
            if self.prunes(size, rows.shape[0], len(basis)):
                fit, _ = prune_pcvm(rows, basis, fit, prior=prior)
            fits.append(fit)
            scales.append(prior.scale)
        return fits, scales

    def prunes(self, n_classes: int, n: int, n_basis: int) -> bool:
        """Whether to drop basis objects that do not improve the loss."""
        if self.sparse is not None:
            return self.sparse
        return n_classes == 2 and n >= ROWS_PER_CANDIDATE * n_basis

    def learn(
        self,
        space: LandmarkSpace,
        landmark_classes: Codes,
        values: Array,
        codes: Codes,
        weights: Array | None,
    ) -> Scorer:
        """Return a scoring function with the landmarks as basis objects, fitted in memory."""
        raw = Rows(values, codes, weights, n_classes=self.n_classes)
        # as far from a landmark as the landmark is from itself: the landmark, or a copy of it
        at_home = np.flatnonzero((values == np.diag(space.landmark_values)).any(axis=1))
        function = self.choose_function(space, raw, at_home, landmark_classes)
        F = raw.under(function)
        problems = self.problems(landmark_classes)
        fits = []
        for k, (recode, basis, size) in enumerate(problems):
            rows = F.recoded(recode, size)
            if self.scales is not None:
                scale = self.scales[k]
            else:
                scale = choose_scale(rows, basis)[0].scale if size == 2 else 1.0
            prior = GammaPrior(0.5, 0.5 * scale**2)
            fits.append(fit_pcvm(rows, basis, prior=prior, tol=LEARN_TOLERANCE))
        W, b = joined_weights(fits, F.mean)
        return lambda values: both_scores(basis_values(function, values) @ W + b)

    def log_proba(self, scores: Array) -> Array:
        """Return log-probabilities: probit for two classes, else softmax or normalised probits."""
        if scores.shape[1] == 2:
            z = scores[:, 1] - scores[:, 0]
            return np.column_stack([log_ndtr(-z), log_ndtr(z)])
        return normalised(log_ndtr(scores)) if self.one_against_rest else log_proba_joint(scores)

    def judged_landmarks(self, n_objects: int) -> int:
        """Return the number of landmarks up to which left-out scores of n objects are reliable."""
        return n_objects // (2 if n_objects <= HELD_OUT_OBJECTS else ROWS_PER_CANDIDATE)

    def left_out(
        self, space: LandmarkSpace, values: Array, codes: Codes, landmarks: Indices
    ) -> tuple[Array, Indices, PCVMFamily]:
        """Return the left-out scores of some objects.

        For few objects, they come from ten folds, assigned in turn. For many objects, they come
        from a first-order approximation, which is too optimistic with fewer than five objects per
        landmark.
        Landmarks are not scored, because no new object has distance 0 to a landmark. The returned
        family has this basis function as its fallback.
        """
        basis = codes[landmarks]
        raw = Rows(values, codes, None, n_classes=self.n_classes)
        function = self.choose_function(space, raw, landmarks, basis)
        features = raw.under(function)
        problems = self.problems(basis)
        found = [quick_fit(features.recoded(recode, size), its) for recode, its, size in problems]
        family = replace(self, otherwise=function if function in POWERS else self.otherwise)
        others = np.setdiff1d(np.arange(len(codes)), landmarks)
        if len(codes) > HELD_OUT_OBJECTS:
            asked = others[-HELD_OUT_OBJECTS:]
            Z = left_out_scores(features, problems, [fit for _, fit in found], asked)
            return both_scores(Z), asked, family
        held_out, scores = [np.empty(0, dtype=np.intp)], [np.empty((0, self.n_classes))]
        for held in (others[k::N_FOLDS] for k in range(N_FOLDS)):
            rest = np.setdiff1d(np.arange(len(codes)), held)
            if len(held) == 0 or len(np.unique(codes[rest])) < self.n_classes:
                continue
            F = Rows(values[rest], codes[rest]).under(function)
            fits = []
            for (recode, its, size), (prior, fit) in zip(problems, found, strict=True):
                start = fit.weights, fit.bias
                rows = F.recoded(recode, size)
                fits.append(fit_pcvm(rows, its, prior=prior, start=start, tol=CHOICE_TOLERANCE))
            W, b = joined_weights(fits, F.mean)
            held_out.append(held)
            scores.append(both_scores(basis_values(function, values[held]) @ W + b))
        return np.concatenate(scores), np.concatenate(held_out), family


def joined_weights(
    fits: Sequence[PCVMFit], mean: Array, Q: Array | None = None
) -> tuple[Array, Array]:
    """Return weights (M, 1 or C) and bias of all problems, for features not yet centred."""
    W = np.hstack([fit.weights for fit in fits])
    return W, np.concatenate([fit.bias for fit in fits]) - mean @ (W if Q is None else Q @ W)


def both_scores(Z: Array) -> Array:
    """Return scores (n, C). With two classes, the single score is their difference."""
    return np.hstack([-Z / 2, Z / 2]) if Z.shape[1] == 1 else Z


OPTIMAL = 5e-4
"""Violations of the optimality conditions per row below this do not affect any prediction."""


@dataclass(frozen=True)
class PCVMModel:
    """Weights on landmarks, and how they were found; for several problems, the worst outcome."""

    places: Indices  # of the landmarks that predictions need, among those given
    relevance: Indices  # rows of the training objects with non-zero weight
    function: BasisFunction
    dual_coef: Array  # (len(places), 1 or C)
    intercept: Array
    n_iter: int
    converged: bool
    reason: str
    fits: tuple[PCVMFit, ...] = ()
    scales: tuple[float, ...] = (1.0,)  # of the prior, one per problem
    violation: float = 0.0  # of the optimality conditions, per row
    objective_path: Array = field(default_factory=lambda: np.empty(0))  # log posterior by step

    @classmethod
    def of(
        cls,
        places: Indices,
        relevance: Indices,
        function: BasisFunction,
        dual_coef: Array,
        intercept: Array,
        fits: list[PCVMFit],
        scales: list[float],
    ) -> PCVMModel:
        """Return the model with these weights, from the fits of all problems."""
        worst = max(fits, key=lambda fit: fit.violation)
        return cls(
            places,
            relevance,
            function,
            dual_coef,
            intercept,
            max(fit.n_iter for fit in fits),
            all(fit.converged or fit.violation <= OPTIMAL for fit in fits),
            worst.reason,
            tuple(fits),
            tuple(scales),
            worst.violation,
            worst.objective_path,
        )


def fit_landmarks(
    space: LandmarkSpace,
    indices: Indices,
    values: Rows,
    landmark_classes: Codes,
    family: PCVMFamily,
    *,
    keep: bool,
) -> tuple[PCVMModel, Rows]:
    """Return the model whose basis objects are the landmarks, and the features it was fitted to.

    `indices` are the landmarks' rows. Unless `keep`, the features may overwrite the values.
    """
    function = family.choose_function(space, values, indices, landmark_classes)
    features = values.under(function, keep=keep)
    fits, scales = family.solve(features, None, landmark_classes)
    W, b = joined_weights(fits, features.mean)
    used = _carrying(W)
    return PCVMModel.of(used, indices[used], function, W[used], b, fits, scales), features


def fit_basis(space: LandmarkSpace, basis: Indices, values: Rows, family: PCVMFamily) -> PCVMModel:
    """Return the model with basis objects at rows `basis`, as weights on all landmarks.

    Φ = B Q with Q = J B_basisᵀ, so φ_i(x) = K̃(x, x_i) = k(x, L) T J b_i. O(N r) memory.
    """
    codes, weights = values.y, values.weight
    B = space.coordinates(values.features(np.arange(len(codes))))
    Q = (B[basis] * space.signs).T
    F = Rows(B, codes, weights).under("similarity")
    fits, scales = family.solve(F, Q, codes[basis])
    W, b = joined_weights(fits, F.mean, Q)
    places, dual = np.arange(len(space.landmark_values)), space.T @ (Q @ W)
    return PCVMModel.of(places, basis[_carrying(W)], "similarity", dual, b, fits, scales)


def fit_as_published(
    space: LandmarkSpace,
    values: Rows,
    n_classes: int,
    rng: np.random.Generator,
    one_against_rest: bool = False,
    exact: bool = False,
) -> PCVMModel:
    """Return one published PCVM for each pair of classes, or for each class against the rest.

    The dense version is used if every object is a landmark, otherwise the Nyström version.
    """
    codes: Codes = values.y
    C = space.similarities(values.features(np.arange(len(codes))))
    W = space.similarities(space.landmark_values)
    dense = len(W) == len(codes)
    W1, how = None if dense else W, {"one_against_rest": one_against_rest, "exact": exact}
    found = fit_published_models(C, W1, codes, n_classes, rng, **how)
    T, J = space.T, space.signs
    fits, w = found.fits, found.weights
    # K̃ w = C W⁺ Cᵀ w, from the landmarks alone
    dual = w if dense else T @ (J[:, None] * (T.T @ (C.T @ w)))
    failed = Counter(f.reason for f in fits if not f.converged)
    told = [f"{reason} ({n} of {len(fits)} models)" for reason, n in failed.items()]
    reason = "; ".join(told) or fits[0].reason
    return PCVMModel(
        np.arange(len(W)),
        np.flatnonzero((w != 0).any(axis=1)),
        "similarity",
        dual,
        found.bias,
        max(f.n_iter for f in fits),
        all(f.converged for f in fits),
        reason,
    )


def basis_rows(n_basis: int | str, n: int, landmarks: Indices, rng: np.random.Generator) -> Indices:
    """Return the rows of the candidate basis objects: the landmarks, then a random sample."""
    if isinstance(n_basis, str):
        if n_basis != "all":
            raise ValueError(f"n_basis must be a number, 'all' or None; got {n_basis!r}")
        return np.arange(n)
    size = int(n_basis)
    if not 1 <= size <= n:
        raise ValueError(f"n_basis={size} is out of range for {n} objects")
    others = np.setdiff1d(np.arange(n), landmarks)
    order = np.concatenate([landmarks, rng.permutation(others)])
    return np.sort(order[:size])


def _carrying(W: Array) -> Indices:
    """Return the positions of basis objects with a weight; at least one, which predictions need."""
    used = np.flatnonzero((W != 0).any(axis=1))
    return used if len(used) else np.arange(1)
