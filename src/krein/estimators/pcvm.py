"""PCVM: a weighted sum of similarities, the weight on an object's own class never negative."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp
from sklearn.exceptions import ConvergenceWarning

from ..compare import ObjectPairs, Pairs
from ..compare.progress import progress
from ..compare.workers import count_workers, in_order
from ..core.calibration import fit_temperature
from ..core.checks import Array, Indices
from ..core.nystrom import signed_eigen
from ..core.pcvm.basis import BasisFunction, basis_values
from ..core.pcvm.laplace import choose_scale
from ..core.pcvm.left_out import left_out_scores, rows_to_ask
from ..core.pcvm.mode import GammaPrior, PCVMFit, fit_pcvm
from ..core.pcvm.powers import POWERS, ROWS_A_CANDIDATE, choose_function
from ..core.pcvm.prune import prune_pcvm
from ..core.pcvm.published import PublishedFit, fit_published, fit_published_nystrom
from ..core.pcvm.rows import Each, Features, FeaturesInMemory, Labels, Rows
from ..core.space import LandmarkSpace
from ..data import CANDIDATES, Collection
from ..measures import take
from .base import (
    Codes,
    LandmarkSet,
    all_or_nothing,
    calm_blas,
    moments_of,
    training_values,
)
from .classifier import LandmarkClassifier, Scorer
from .elsewhere import FeatureTerm
from .witnesses import Call

SHARED_BYTES = 2**26
"""Features that several threads share in a pass: it takes long beside starting them."""

RESULT_BYTES = 2**30
"""What the results of the blocks of a pass may take that wait to be summed."""

OPTIMAL = 5e-4
"""Breach of the optimality conditions, a row, that no prediction shows any more."""


class PCVM(LandmarkClassifier):
    """Probabilistic classification vector machine: probabilistic, stable, sparse where asked.

    Scores are weighted sums of similarities to basis objects, each weight held to the sign of
    its object's label under a sparsity prior. With `landmarks="all"` the dense method, otherwise
    its low-rank version. For more than two classes the joint model has a weight for each class,
    the one on an object's own class never negative, the others free; since only differences
    between classes count, that acts through the prior. Weights vanish only at their bound: with
    more than two classes hardly any basis object is dropped unless `sparse=True`.

    Parameters
    ----------
    measure, measure_params, landmarks, n_landmarks : as for `IKFD`
    rank : as for `IKFD`, with `n_basis` alone: otherwise similarities are used as they are
    n_basis : int, "all" or None, default=None
        How many training objects may be basis objects: None takes the landmarks, a number takes
        them and a random sample of others up to it, "all" takes everybody. Time and memory stay
        linear in N for a fixed number.
    solver : {"em", "paper"}, default="em"
        "em" climbs to a mode of the posterior under the sign constraints. "paper" is the published
        algorithm, which is known to collapse on some data; it is here for comparison.
    multiclass : {"joint", "ovr"}, default="joint"
        One multinomial model of all classes, or one class against the rest as in the paper.
    sparse : bool or None, default=None
        Drop basis objects while the leave-one-out loss stays within one standard error. None does
        so for two classes with five objects or more to each candidate; otherwise only objects
        whose weights are zero are dropped.
    class_weight : dict, "balanced" or None, default=None
        Weight of the objects of each class in the likelihood, as in scikit-learn; scaled so that
        the mean over all objects is 1.
    calibrate : bool, default=False
        Fit a temperature: of up to 20,000 objects to scores of ten folds, of more to approximate
        leave-one-out scores of some thousand objects (beyond 4,000 landmarks to scores of objects
        that were fitted to). With `n_basis`, or where most objects are landmarks, always ten folds.
        No pair is compared again.
    symmetrize, n_jobs, cache, verbose, random_state : as for `IKFD`

    Attributes
    ----------
    classes_ : array (C,)
    relevance_ : array
        Rows of the training objects that carry a weight.
    landmarks_ : array (m,)
        Rows of the training objects that a new object is compared with.
    dual_coef_, intercept_ : arrays (m, 1 or C) and (1 or C,)
        Weights of the basis functions of `landmarks_`: one score for two classes, else one a class.
    objective_path_ : array
        Log-posterior after each iteration of the last fit, rising (empty for solver="paper").
    basis_function_ : {"similarity", "-d²/2", "-d", "-√d"}
        What basis functions are: the similarity itself (of dissimilarities with `n_basis` or
        solver="paper": centred), or of a dissimilarity −½d², unless −d, and then −√d, has the
        smaller leave-one-out loss by two standard errors. Objects that are no landmarks choose,
        where there are five or more to each landmark and at most 4,000 landmarks.
    prior_scale_ : float
        Scale of the sparsity prior on weights of unit-deviation columns: for two classes chosen
        by the leave-one-out loss, for more 1.
    n_iter_, converged_, stop_reason_ : how the search for the mode ended
    signature_, eigenvalues_, kernel_evaluations_, temperature_ : as for `IKFD`

    Examples
    --------
    >>> import numpy as np
    >>> from krein import PCVM
    >>> X = np.random.default_rng(0).uniform(0, 2, size=(300, 2))
    >>> y = np.where(X.astype(int).sum(axis=1) % 2, "black", "white")  # a 2×2 checkerboard
    >>> clf = PCVM(landmarks="random", n_landmarks=30, random_state=0).fit(X, y)
    >>> clf.predict([[0.5, 0.5], [1.5, 0.5]])
    array(['white', 'black'], dtype='<U5')
    >>> len(clf.relevance_) < 30
    True
    """

    relevance_: Indices
    dual_coef_: Array
    intercept_: Array
    objective_path_: Array
    basis_function_: BasisFunction
    prior_scale_: float
    n_iter_: int
    converged_: bool
    stop_reason_: str

    def __init__(
        self,
        measure: Any = "elm",
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "meb",
        n_landmarks: int | None = None,
        rank: int | None = None,
        n_basis: Any = None,
        solver: str = "em",
        multiclass: str = "joint",
        sparse: bool | None = None,
        class_weight: Any = None,
        calibrate: bool = False,
        symmetrize: bool = False,
        n_jobs: int | None = None,
        cache: Any = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.measure = measure
        self.measure_params = measure_params
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.n_basis = n_basis
        self.solver = solver
        self.multiclass = multiclass
        self.sparse = sparse
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to objects X with labels y.

        Parameters
        ----------
        X : sequence of N objects, or an N×N matrix of values; or, as for `IKFD`, objects that are
            not in memory. Their N×m values are kept in a file, or on the cluster, while fitting.
        y : array of N labels, or None where X has them
        sample_weight : array of N numbers, optional
            How many objects each one counts for in the likelihood; none of weight 0 is a landmark.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check(sample_weight)
        data = self._elsewhere(X, y, sample_weight)
        if data is not None:
            with data:
                whole = data.in_memory(CANDIDATES)
                return self._fit_elsewhere(data) if whole is None else self._fit(*whole, None)
        X, codes, weights, self.classes_ = self._validated(X, y, sample_weight)
        self.temperature_ = 1.0
        self._forget()
        weights = self._weighed(codes, weights)
        pairs = self._open(X)
        self.n_objects_ = self.n_samples_seen_ = len(pairs)
        selection = self._choose(pairs, codes, weights)
        self.selection_ = replace(selection, values=None)
        landmarks = self._span(pairs, selection)
        values = training_values(pairs, landmarks)
        with calm_blas(len(landmarks.indices)):
            space, grid = landmarks.space, pairs.block_rows(values.shape[1])
            moments = moments_of(space, values, codes, len(self.classes_), grid)
            self._set_spectrum(signed_eigen(moments.gram(), space.signs).values)
            if self.solver == "paper":
                self._fit_published(landmarks, values, codes)
            elif self.n_basis is None:
                F = FeaturesInMemory(values, codes, weights, self._each(values))
                fitted = self._fit_features(landmarks, F, codes[landmarks.indices])
            else:
                B = space.coordinates(values)
                self._fit_basis(pairs, landmarks, B, codes, weights)
            if self.calibrate and self.n_basis is not None:
                self.temperature_ = self._relearned(landmarks, values, codes, weights)
            elif self.calibrate:
                self.temperature_ = self._temperature(landmarks, fitted)
        self.kernel_evaluations_, self.kernel_reused_ = pairs.evaluations, pairs.reused
        return self

    def _fit_elsewhere(self, data: Collection) -> Self:
        """Fit to objects in files or on a cluster, where their basis functions are kept."""
        if self._needs_memory():
            what = "solver='paper'" if self.solver == "paper" else f"n_basis={self.n_basis!r}"
            raise ValueError(f"{what} needs all objects in memory; leave it at its default")
        known = self._surveyed(data)
        self.classes_, self.temperature_ = known.classes, 1.0
        self._forget()
        chosen = self._chosen(data, known)
        landmarks = chosen.landmarks
        m, space = len(landmarks.indices), landmarks.space
        term = FeatureTerm(chosen.columns, space, space.origin(), self.classes_)
        work, spent = chosen.plan(data, term, known.n_objects)
        class_weights = self._weight_of_classes(known.counts.astype(float))
        kept, total = data.features(term, m, chosen.grid, work, class_weights)
        with calm_blas(m), progress(None, "searching", self.verbose, "passes") as kept.shown:
            try:
                self._set_spectrum(signed_eigen(total.value.gram(), space.signs).values)
                fitted = self._fit_features(landmarks, kept, chosen.own)
                if self.calibrate:
                    self.temperature_ = self._temperature(landmarks, fitted)
            finally:
                kept.close()
        self.kernel_evaluations_ = chosen.pairs.evaluations + total.evaluated + spent
        self.kernel_reused_ = chosen.pairs.reused + total.reused
        return self

    def _forget(self) -> None:
        """Forget what the last fit has chosen: `_learn` knows nothing before this one has."""
        self._scales: list[float] | None = None
        self._function: BasisFunction | None = None
        self._power: BasisFunction = POWERS[0]

    def _each(self, values: Array) -> Each:
        """Return how passes go over features in memory: large ones by several threads."""
        workers = count_workers(self.n_jobs, default_all=True)
        result = 8 * len(self.classes_) * values.shape[1] ** 2  # as many as workers wait at a time
        workers = max(1, min(workers, RESULT_BYTES // result))
        return map if values.nbytes < SHARED_BYTES else partial(in_order, workers=workers)

    def _needs_memory(self) -> bool:
        return self.solver == "paper" or self.n_basis is not None

    def _check(self, sample_weight: Any) -> None:
        if self.solver not in ("em", "paper"):
            raise ValueError(f"solver is 'em' or 'paper'; got {self.solver!r}")
        if self.rank is not None and self.n_basis is None:
            raise ValueError("rank= goes with n_basis=: without it the features are similarities")
        if self.solver == "paper":
            for name in ("class_weight", "n_basis"):
                if getattr(self, name) is not None:
                    raise ValueError(f"solver='paper' knows no {name}: leave it None")
            if sample_weight is not None or self.calibrate:
                what = "sample_weight" if sample_weight is not None else "calibrate=True"
                raise ValueError(f"solver='paper' knows no {what}; solver='em' does")

    # -- the sound solver --------------------------------------------------------------------

    def _fit_features(
        self, landmarks: LandmarkSet, F: Features, own: Codes, *, sparse: bool | None = None
    ) -> Fitted:
        """Fit to the basis functions of the landmarks, wherever their values lie.

        The landmarks are the basis objects: predictions need those alone that carry a weight.
        """
        C = len(self.classes_)
        raw = F.rows(np.arange(C), C)
        function = self._choose_function(landmarks.space, raw, landmarks.indices, own)
        self.basis_function_ = self._function = function
        call = Call.of(raw.shape[0], landmarks.indices, rows_to_ask(len(landmarks.indices)))
        features = F.under(function, keep=self.calibrate and call.everyone)
        fits = self._solve(features, None, own, sparse=sparse)
        W, b = _joined(fits, features.mean)
        kept = _carrying(W)
        self._keep(landmarks, kept)
        self.relevance_ = self.landmarks_
        self.dual_coef_, self.intercept_ = W[kept], b
        return Fitted(raw, features, self._problems(own), fits, call)

    def _fit_basis(
        self,
        pairs: Pairs,
        landmarks: LandmarkSet,
        B: Array,
        codes: Codes,
        weights: Array | None,
    ) -> None:
        """Basis objects beyond the landmarks: Φ = B Q with Q = J B_basisᵀ, φ_i(x) = K̃(x, x_i)."""
        basis = self._basis(len(codes), landmarks.indices)
        space = landmarks.space
        Q = (B[basis] * space.signs).T
        self.basis_function_ = "similarity"
        F = FeaturesInMemory(B, codes, weights).under("similarity")
        W, b = _joined(self._solve(F, Q, codes[basis]), F.mean, Q)
        kept = _carrying(W)
        self.relevance_ = basis[kept]
        if len(kept) >= len(landmarks.indices) or space.centre is not None:
            self._adopt(replace(landmarks, values=None))
            self.dual_coef_, self.intercept_ = space.basis.T @ (Q @ W), b
            return
        # fewer basis objects than landmarks: compare with those instead, and let the weights
        # know that K(x, x_i) now stands where its approximation stood
        chosen = np.sort(basis[kept])
        objects = take(pairs.objects, chosen) if isinstance(pairs, ObjectPairs) else None
        core = pairs.block(chosen, chosen)
        fewer = LandmarkSet(LandmarkSpace.of(core, pairs.kind), chosen, objects)
        F = FeaturesInMemory(training_values(pairs, fewer), codes, weights)
        self._fit_features(fewer, F, codes[chosen], sparse=False)

    def _basis(self, n: int, landmarks: Indices) -> Indices:
        """Return the rows of the candidate basis objects: the landmarks, then a random sample."""
        if isinstance(self.n_basis, str):
            if self.n_basis != "all":
                raise ValueError(f"n_basis is a number, 'all' or None; got {self.n_basis!r}")
            return np.arange(n)
        size = int(self.n_basis)
        if not 1 <= size <= n:
            raise ValueError(f"n_basis={size} basis objects were asked for among {n} objects")
        others = np.setdiff1d(np.arange(n), landmarks)
        order = np.concatenate([landmarks, self._rng().permutation(others)])
        return np.sort(order[:size])

    def _solve(
        self, F: Features, Q: Array | None, own: Codes, *, sparse: bool | None = None
    ) -> list[PCVMFit]:
        """Return the model of each problem; note how the search ended."""
        fits, scales = [], []
        for recode, basis, size in self._problems(own):
            rows = F.rows(recode, size)
            prior, start = GammaPrior(), None
            if size == 2:
                chosen = choose_scale(rows, basis, Q)
                prior, start = chosen.prior, (chosen.fit.weights, chosen.fit.bias)
            fit = fit_pcvm(rows, basis, Q, prior=prior, start=start)
            if self._prunes(sparse, size, rows.shape[0], len(basis)):
                fit = prune_pcvm(rows, basis, Q, fit, prior=prior).fit
            fits.append(fit)
            scales.append(float(np.sqrt(2 * prior.b)))
        self._note(fits, scales)
        return fits

    def _prunes(self, sparse: bool | None, n_classes: int, n: int, candidates: int) -> bool:
        """Whether to drop basis objects that the loss does not need."""
        sparse = self.sparse if sparse is None else sparse
        return n_classes == 2 and n >= ROWS_A_CANDIDATE * candidates if sparse is None else sparse

    def _problems(self, own: Codes) -> list[tuple[Labels, Codes, int]]:
        """The problems to solve: new codes of the classes, classes of the basis objects in them,
        number of classes."""
        n_classes = len(self.classes_)
        if n_classes == 2 or self.multiclass == "joint":
            return [(np.arange(n_classes), own, n_classes)]
        alone = np.eye(n_classes, dtype=np.intp)
        return [(recode, recode[own], 2) for recode in alone]

    def _note(self, fits: list[PCVMFit], scales: list[float]) -> None:
        worst = max(fits, key=lambda fit: fit.violation)
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.converged_ = all(fit.converged or fit.violation <= OPTIMAL for fit in fits)
        self.stop_reason_ = worst.reason
        self.objective_path_ = worst.objective_path
        self._scales = scales
        self.prior_scale_ = float(np.exp(np.mean(np.log(scales))))
        if not self.converged_:
            warnings.warn(
                f"PCVM stopped before its optimality conditions held: {worst.reason} "
                f"(largest breach {worst.violation:.1e} a row)",
                ConvergenceWarning,
                stacklevel=2,
            )

    def _learn(
        self, space: LandmarkSpace, own: Codes, values: Array, codes: Codes, weights: Array | None
    ) -> Scorer:
        """Scores by the landmarks as basis objects; the scale of the prior is chosen once."""
        function = self._function
        if function is None:  # landmarks are tried, before the fit chooses for good
            raw = Rows(values, codes, weights, n_classes=len(self.classes_))
            # as far from a landmark as that is from itself: it, or one that is the same
            at_home = np.flatnonzero((values == np.diag(space.core)).any(axis=1))
            function = self._choose_function(space, raw, at_home, own)
        F = FeaturesInMemory(values, codes, weights).under(function)
        problems = self._problems(own)
        if self._scales is None:
            self._scales = [
                float(np.sqrt(2 * choose_scale(F.rows(recode, size), basis).prior.b))
                if size == 2
                else 1.0
                for recode, basis, size in problems
            ]
        fits = [
            fit_pcvm(F.rows(recode, size), basis, prior=GammaPrior(0.5, 0.5 * scale**2), tol=1e-5)
            for (recode, basis, size), scale in zip(problems, self._scales, strict=True)
        ]
        dual, intercept = _joined(fits, F.mean)
        return lambda V: self._spread(basis_values(function, V) @ dual + intercept)

    def _choose_function(
        self, space: LandmarkSpace, raw: Rows, landmarks: Indices, own: Codes
    ) -> BasisFunction:
        """Return the basis function of these landmarks; of too many of them, that of fewer.

        Landmarks grow under it too: −½d² gains nothing from more of them on a checkerboard.
        """
        if space.kind == "similarity":
            return "similarity"
        if self.n_basis is None:
            problems = self._problems(own)
            self._power = choose_function(raw, landmarks, problems, otherwise=self._power)
        return self._power

    # -- how sure it may be --------------------------------------------------------------------

    def _temperature(self, landmarks: LandmarkSet, fitted: Fitted) -> float:
        """Return the temperature: of few objects from ten folds, of many from leave-one-out."""
        raw, call = fitted.raw, fitted.call
        some = call.among(np.arange(raw.shape[0]))
        if not call.everyone and raw.weight is not None:
            some = some[raw.weight[some] > 0]
        if len(some) == 0:
            return 1.0
        codes, weights = raw.y[some], None if raw.weight is None else raw.weight[some]
        if call.everyone:
            return self._relearned(landmarks, raw.features(some), codes, weights)
        scores = left_out_scores(fitted.features, fitted.problems, fitted.fits, some)
        return fit_temperature(self._spread(scores), codes, self._log_proba, weights)

    def _relearned(
        self, landmarks: LandmarkSet, values: Array, codes: Codes, weights: Array | None
    ) -> float:
        """Return the temperature by models of nine tenths, with what a prediction compares."""
        used = np.flatnonzero(np.isin(landmarks.indices, self.landmarks_))
        # where that is no subset of the landmarks, with those
        used = used if len(used) == len(self.landmarks_) else np.arange(values.shape[1])
        part = LandmarkSet(landmarks.space.restricted(used), landmarks.indices[used], None)
        return self._cross_fit(part, values[:, used], codes, weights)

    # -- the published algorithm -------------------------------------------------------------

    def _fit_published(self, landmarks: LandmarkSet, values: Array, codes: Codes) -> None:
        """One published PCVM for each class against the rest (one for two classes)."""
        space = landmarks.space
        C, W = space.similarities(values), space.similarities(space.core)
        rng = self._rng()
        dense = len(landmarks.indices) == len(codes)
        fits: list[PublishedFit] = []
        for c in [1] if len(self.classes_) == 2 else range(len(self.classes_)):
            t = np.where(codes == c, 1.0, -1.0)
            fits.append(fit_published(C, t, rng) if dense else fit_published_nystrom(C, W, t, rng))
        T, J = space.basis.T, space.signs
        w = np.column_stack([fit.weights for fit in fits])
        # K̃ w = C W⁺ Cᵀ w, from the landmarks alone
        self.dual_coef_ = w if dense else T @ (J[:, None] * (T.T @ (C.T @ w)))
        self.intercept_ = np.array([fit.bias for fit in fits])
        self.basis_function_ = "similarity"
        self.relevance_ = np.flatnonzero((w != 0).any(axis=1))
        self._adopt(replace(landmarks, values=None))
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.converged_ = all(fit.converged for fit in fits)
        self.stop_reason_ = next((f.reason for f in fits if not f.converged), fits[0].reason)
        self.objective_path_ = np.empty(0)
        self.prior_scale_ = 1.0

    # -- scores and probabilities ------------------------------------------------------------

    def _keep(self, landmarks: LandmarkSet, kept: Indices) -> None:
        """Compare new objects with these landmarks alone."""
        objects = None if landmarks.objects is None else take(landmarks.objects, kept)
        space = landmarks.space.restricted(kept)
        self._adopt(LandmarkSet(space, landmarks.indices[kept], objects))

    def _scores(self, values: Array) -> Array:
        if self.basis_function_ == "similarity":
            F = self.space_.similarities(values)
        else:
            F = basis_values(self.basis_function_, values)
        return self._spread(F @ self.dual_coef_ + self.intercept_)

    def _spread(self, Z: Array) -> Array:
        """Return scores (n, C): the one score of two classes is their difference."""
        return np.hstack([-Z / 2, Z / 2]) if Z.shape[1] == 1 else Z

    def _log_proba(self, scores: Array) -> Array:
        """Return log-probabilities: probit for two classes, softmax or shares of probits."""
        if scores.shape[1] == 2:
            z = scores[:, 1] - scores[:, 0]
            return np.column_stack([log_ndtr(-z), log_ndtr(z)])
        if self.multiclass == "ovr" or self.solver == "paper":
            own = log_ndtr(scores)
            return own - logsumexp(own, axis=1, keepdims=True)
        return super()._log_proba(scores)

    def _weighed(self, codes: Codes, weights: Array | None) -> Array | None:
        counts = np.bincount(codes, weights=weights, minlength=len(self.classes_)).astype(float)
        each = self._weight_of_classes(counts)
        if each is None:
            return weights
        return each[codes] if weights is None else weights * each[codes]

    def _weight_of_classes(self, counts: Array) -> Array | None:
        """Return the weight of the objects of each class; the mean over all objects is 1, for a
        weight tells no number of objects."""
        each = self._class_weights(counts)
        return None if each is None else each / ((each @ counts) / counts.sum())


@dataclass(frozen=True)
class Fitted:
    """The models of all problems, and the rows they were fitted to."""

    raw: Rows  # values as they came, and the classes
    features: Features
    problems: list[tuple[Labels, Codes, int]]
    fits: list[PCVMFit]
    call: Call  # who tells how sure they may be


def _joined(fits: list[PCVMFit], mean: Array, Q: Array | None = None) -> tuple[Array, Array]:
    """Return weights (M, 1 or C) and bias of all problems, for features not yet centred."""
    W = np.hstack([fit.weights for fit in fits])
    return W, np.concatenate([fit.bias for fit in fits]) - mean @ (W if Q is None else Q @ W)


def _carrying(W: Array) -> NDArray[np.intp]:
    """Places of the basis objects that carry a weight; one at least, to compare with something."""
    kept = np.flatnonzero((W != 0).any(axis=1))
    return kept if len(kept) else np.arange(1)
