"""PCVM: a weighted sum of similarities, the weight on an object's own class never negative."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..core.calibration import fit_temperature
from ..core.checks import Array, Indices
from ..core.family import Codes
from ..core.moments import ClassMoments
from ..core.nystrom import signed_eigen
from ..core.pcvm.basis import BasisFunction, basis_values
from ..core.pcvm.family import PCVMFamily, both_scores, joined_weights
from ..core.pcvm.left_out import left_out_scores, rows_to_ask
from ..core.pcvm.mode import PCVMFit
from ..core.pcvm.powers import POWERS
from ..core.pcvm.published import PublishedFit, fit_published, fit_published_nystrom
from ..core.pcvm.rows import Features, FeaturesInMemory, Labels
from ..core.space import LandmarkSpace
from ..data.chunk import Chunk, Counted, LandmarkColumns
from ..data.dataset import Dataset, FeatureBlock
from ..landmarks.all import Given
from .base import all_or_nothing
from .calibration import CalibrationSample, cross_fit
from .classifier import LandmarkClassifier, codes_of
from .schema import Flag, Real, Schema, Text, Whole, floats, indices
from .selection import LandmarkChoice, LandmarkSet, choose_landmarks

OPTIMAL = 5e-4
"""Breach of the optimality conditions, per row, that no prediction shows any more."""


@dataclass(frozen=True)
class FeatureTerm:
    """Values of a chunk, which basis functions are made of, and the moments of its coordinates."""

    columns: LandmarkColumns
    space: LandmarkSpace
    origin: Array
    classes: NDArray[Any]
    class_weights: Array | None

    def __call__(self, chunk: Chunk) -> Counted[FeatureBlock]:
        """Compare the chunk with the landmarks."""
        found = self.columns.values(chunk)
        codes = codes_of(chunk.labels, self.classes)
        weights = chunk.weights
        if self.class_weights is not None:
            each = self.class_weights[codes]
            weights = each if weights is None else weights * each
        B = self.space.coordinates(found.value)
        moments = ClassMoments.of(B, codes, len(self.classes), origin=self.origin)
        return found.holding(FeatureBlock(found.value, codes, weights, moments))


@dataclass(frozen=True)
class Fitted:
    """A model on the landmarks: what predictions need, and what calibration needs."""

    landmarks: LandmarkSet  # those that carry a weight
    relevance: Indices  # rows of the training objects that carry a weight
    function: BasisFunction
    dual_coef: Array
    intercept: Array
    fits: list[PCVMFit]
    scales: list[float]
    features: Features | None = None  # that were fitted to
    compared: int = 0  # pairs, beyond those of the landmarks first chosen


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

    _fitted: ClassVar[Schema] = {
        **LandmarkClassifier._fitted,
        "relevance_": indices("relevant"),
        "dual_coef_": floats("m", "heads"),  # one for each class; of two classes, one
        "intercept_": floats("heads"),
        "objective_path_": floats("steps"),
        "basis_function_": Text(get_args(BasisFunction)),
        "prior_scale_": Real(0.0),
        "n_iter_": Whole(),
        "converged_": Flag(),
        "stop_reason_": Text(),
    }

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
        self._check(sample_weight)
        with all_or_nothing(self), self._open(X, y, sample_weight) as data:
            self._survey(data)
            chosen = self._choose(data)
            family = self._family()
            if isinstance(chosen.family, PCVMFamily):  # landmarks grew under its basis function
                family = replace(family, otherwise=chosen.family.otherwise)
            kept, compared = self._keep_values(data, chosen)
            try:
                more = self._fit_values(data, chosen, family, kept)
            finally:
                kept.close()
            self.kernel_evaluations_ = chosen.counter.compared + compared.compared + more
            self.kernel_reused_ = chosen.counter.reused + compared.reused
        return self

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

    def _family(self) -> PCVMFamily:
        return PCVMFamily(
            len(self.classes_),
            one_against_rest=self.multiclass == "ovr",
            sparse=self.sparse,
            function=None if self.n_basis is None else POWERS[0],
            probit=self.solver == "paper",
            rank=self.rank,
        )

    def _keep_values(
        self, data: Dataset, chosen: LandmarkChoice
    ) -> tuple[Features, Counted[ClassMoments]]:
        """Compare all objects with the landmarks, and keep the values for the passes to come."""
        space, m = chosen.landmarks.space, len(chosen.landmarks.indices)
        counts = data.survey().weights
        each = self._class_weights().of_objects(counts)
        term = FeatureTerm(chosen.columns, space, space.origin(), self.classes_, each)
        kept, total = data.keep(term, m, self._block_rows(m))
        self._set_spectrum(signed_eigen(total.value.gram(), space.signs).values)
        return kept, total

    def _fit_values(
        self, data: Dataset, chosen: LandmarkChoice, family: PCVMFamily, kept: Features
    ) -> int:
        """Fit to the values of all objects to the landmarks; return how many more it compared."""
        landmarks, classes = chosen.landmarks, chosen.classes
        assert classes is not None
        self.temperature_ = 1.0
        if self.solver == "paper":
            self._fit_published(landmarks, kept)
            return 0
        if self.n_basis is None:
            sample = CalibrationSample.of(
                self.n_objects_, landmarks.indices, rows_to_ask(len(landmarks.indices))
            )
            found = _fit_landmarks(
                landmarks, kept, classes, family, keep=self.calibrate and sample.covers_all
            )
        else:
            sample = CalibrationSample.of(self.n_objects_, np.arange(self.n_objects_))
            found = self._fit_basis(data, landmarks, kept, family)
        self._set_model(found)
        if self.calibrate:
            settled = replace(family, function=found.function, scales=tuple(found.scales))
            if self.n_basis is not None and found.function == "similarity":
                settled = replace(settled, function=POWERS[0])
            self.temperature_ = self._temperature(settled, chosen, kept, found, sample)
        return found.compared

    def _set_model(self, found: Fitted) -> None:
        """Set the fitted attributes, and note how the search ended."""
        fits, scales = found.fits, found.scales
        worst = max(fits, key=lambda fit: fit.violation)
        self._use_landmarks(found.landmarks)
        self.relevance_ = found.relevance
        self.basis_function_ = found.function
        self.dual_coef_, self.intercept_ = found.dual_coef, found.intercept
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.converged_ = all(fit.converged or fit.violation <= OPTIMAL for fit in fits)
        self.stop_reason_ = worst.reason
        self.objective_path_ = worst.objective_path
        self.prior_scale_ = float(np.exp(np.mean(np.log(scales))))
        if not self.converged_:
            warnings.warn(
                f"PCVM stopped before its optimality conditions held: {worst.reason} "
                f"(largest breach {worst.violation:.1e} per row)",
                ConvergenceWarning,
                stacklevel=2,
            )

    def _temperature(
        self,
        family: PCVMFamily,
        chosen: LandmarkChoice,
        kept: Features,
        found: Fitted,
        sample: CalibrationSample,
    ) -> float:
        """Return the temperature: of few objects from ten folds, of many from leave-one-out."""
        C = len(self.classes_)
        raw = kept.rows(np.arange(C), C)
        some = sample.among(np.arange(raw.shape[0]))
        if not sample.covers_all and raw.weight is not None:
            some = some[raw.weight[some] > 0]
        if len(some) == 0:
            return 1.0
        codes, weights = raw.y[some], None if raw.weight is None else raw.weight[some]
        if not sample.covers_all:
            assert found.features is not None
            assert chosen.classes is not None
            problems = family.problems(chosen.classes)
            scores = both_scores(left_out_scores(found.features, problems, found.fits, some))
            return fit_temperature(scores, codes, family.log_proba, weights)
        landmarks = chosen.landmarks
        used = np.flatnonzero(np.isin(landmarks.indices, self.landmarks_))
        # where predictions compare with other objects, the landmarks stand in for those
        used = used if len(used) == len(self.landmarks_) else np.arange(raw.shape[1])
        values = raw.features(some)[:, used]
        return cross_fit(family, landmarks.restricted(used), values, codes, weights)

    def _fit_basis(
        self, data: Dataset, landmarks: LandmarkSet, kept: Features, family: PCVMFamily
    ) -> Fitted:
        """Basis objects beyond the landmarks: Φ = B Q with Q = J B_basisᵀ, φ_i(x) = K̃(x, x_i)."""
        C = len(self.classes_)
        raw = kept.rows(np.arange(C), C)
        codes, weights, space = raw.y, raw.weight, landmarks.space
        basis = self._basis(len(codes), landmarks.indices)
        B = space.coordinates(raw.features(np.arange(len(codes))))
        Q = (B[basis] * space.signs).T
        F = FeaturesInMemory(B, codes, weights).under("similarity")
        fits, scales = family.solve(F, Q, codes[basis])
        W, b = joined_weights(fits, F.mean, Q)
        used = _carrying(W)
        if len(used) >= len(landmarks.indices) or space.centre is not None:
            dual = space.basis.T @ (Q @ W)
            return Fitted(landmarks, basis[used], "similarity", dual, b, fits, scales)
        # fewer basis objects than landmarks: compare with those instead, and let the weights
        # know that K(x, x_i) now stands where its approximation stood
        fewer = choose_landmarks(
            data,
            Given(np.sort(basis[used])),
            self._comparing(self._measure()),
            self._rng(),
            classes=self.classes_,
        )
        values, spent = self._keep_values(data, fewer)
        assert fewer.classes is not None
        plain = replace(family, function=None, sparse=False)
        try:
            found = _fit_landmarks(fewer.landmarks, values, fewer.classes, plain, keep=True)
        finally:
            values.close()
        return replace(found, compared=spent.compared + fewer.counter.compared)

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

    def _fit_published(self, landmarks: LandmarkSet, kept: Features) -> None:
        """One published PCVM for each class against the rest (one for two classes)."""
        space, n_classes = landmarks.space, len(self.classes_)
        raw = kept.rows(np.arange(n_classes), n_classes)
        codes: Labels = raw.y
        C = space.similarities(raw.features(np.arange(len(codes))))
        W = space.similarities(space.landmark_values)
        rng = self._rng()
        dense = len(landmarks.indices) == len(codes)
        fits: list[PublishedFit] = []
        for c in [1] if n_classes == 2 else range(n_classes):
            t = np.where(codes == c, 1.0, -1.0)
            fits.append(fit_published(C, t, rng) if dense else fit_published_nystrom(C, W, t, rng))
        T, J = space.basis.T, space.signs
        w = np.column_stack([fit.weights for fit in fits])
        # K̃ w = C W⁺ Cᵀ w, from the landmarks alone
        self.dual_coef_ = w if dense else T @ (J[:, None] * (T.T @ (C.T @ w)))
        self.intercept_ = np.array([fit.bias for fit in fits])
        self.basis_function_ = "similarity"
        self.relevance_ = np.flatnonzero((w != 0).any(axis=1))
        self._use_landmarks(landmarks)
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.converged_ = all(fit.converged for fit in fits)
        self.stop_reason_ = next((f.reason for f in fits if not f.converged), fits[0].reason)
        self.objective_path_ = np.empty(0)
        self.prior_scale_ = 1.0

    def _scores(self, values: Array) -> Array:
        if self.basis_function_ == "similarity":
            F = self.space_.similarities(values)
        else:
            F = basis_values(self.basis_function_, values)
        return both_scores(F @ self.dual_coef_ + self.intercept_)


def _fit_landmarks(
    landmarks: LandmarkSet, kept: Features, classes: Codes, family: PCVMFamily, *, keep: bool
) -> Fitted:
    """Fit to the basis functions of the landmarks.

    The landmarks are the basis objects: predictions need those alone that carry a weight. Unless
    `keep`, features may take the place of the values.
    """
    C = family.n_classes
    raw = kept.rows(np.arange(C), C)
    function = family.choose_function(landmarks.space, raw, landmarks.indices, classes)
    features = kept.under(function, keep=keep)
    fits, scales = family.solve(features, None, classes)
    W, b = joined_weights(fits, features.mean)
    used = _carrying(W)
    part = landmarks.restricted(used)
    return Fitted(part, part.indices, function, W[used], b, fits, scales, features)


def _carrying(W: Array) -> NDArray[np.intp]:
    """Places of the basis objects that carry a weight; one at least, to compare with something."""
    used = np.flatnonzero((W != 0).any(axis=1))
    return used if len(used) else np.arange(1)
