"""PCVM: weighted sums of similarities, with a non-negative weight on an object's own class."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..compare.pairs import Counter
from ..core.pcvm.fit import (
    POWERS,
    PCVMFamily,
    PCVMModel,
    basis_rows,
    fit_as_published,
    fit_basis,
    fit_landmarks,
    left_out_temperature,
)
from ..core.pcvm.left_out import rows_to_ask
from ..core.pcvm.rows import Features
from ..core.space import signed_eigen
from ..data.dataset import Dataset
from ..landmarks.all import Given
from .base import all_or_nothing
from .calibration import CalibrationSample, cross_fit
from .classifier import FeatureTerm, LandmarkClassifier
from .fittedmodels import FittedPCVM
from .selection import LandmarkChoice, LandmarkSet, choose_landmarks


class PCVM(FittedPCVM, LandmarkClassifier):
    """Probabilistic classification vector machine: probabilistic, stable, optionally sparse.

    Scores are weighted sums of similarities to basis objects. Each weight is constrained to the
    sign of its object's label, under a sparsity prior. With `landmarks="all"`, this is the dense
    method; otherwise its low-rank version. For more than two classes, the joint model has one
    weight per class: the weight on an object's own class is never negative, and the others are
    free. Since only differences between classes count, the constraint acts through the prior.
    Weights vanish only at their bound: with more than two classes, hardly any basis object is
    dropped unless `sparse=True`.

    Parameters
    ----------
    measure : str, Measure or callable, default="elm"
        How two objects are compared: a name from `krein.measures.available()`, a `Measure`, a
        function of two objects, "precomputed" (X contains similarities) or "precomputed-distance".
    measure_params : dict or None, default=None
        Parameters of a measure given by name. For a function, pass {"kind": "dissimilarity"} if
        larger values mean less similar.
    landmarks : str, Rule or array of int, default="meb"
        Which objects represent the others: "all", "meb", "kmeans", "entropy", "random", "leverage",
        "stratified", "auto" (as many as lower the loss by more than their price), a rule from
        `krein.landmarks`, or row indices.
    n_landmarks : int or None, default=None
        Number of landmarks, for rules that take one. None uses as many as "meb" would choose.
    rank : int or None, default=None
        Number of dimensions of the landmark space to keep, largest |λ| first. Requires `n_basis`;
        without it, similarities are used directly.
    n_basis : int, "all" or None, default=None
        Number of training objects that may be basis objects. None uses the landmarks; a number
        adds a random sample of others to the landmarks; "all" uses all objects. Time and memory
        stay linear in N for a fixed number.
    solver : {"em", "paper"}, default="em"
        "em" finds a mode of the posterior under the sign constraints. "paper" is the published
        algorithm, for comparison: one model per pair of classes, whatever `multiclass` is.
    multiclass : {"joint", "ovr"}, default="joint"
        One multinomial model of all classes, or one class against the rest as in the paper.
    sparse : bool or None, default=None
        Drop basis objects while the leave-one-out loss stays within one standard error. None does
        so for two classes with at least five objects per candidate; otherwise only objects whose
        weights are zero are dropped.
    class_weight : dict, "balanced" or None, default=None
        Weight of the objects of each class in the likelihood, as in scikit-learn; scaled so that
        the mean over all objects is 1.
    calibrate : bool, default=False
        Fit a temperature, without comparing any pair again. With up to 20,000 objects, it is fitted
        to the scores of ten folds; with more, to approximate leave-one-out scores of a few thousand
        objects (beyond 4,000 landmarks, to in-sample scores). With `n_basis`, or if most objects
        are landmarks, ten folds are always used.
    symmetrize : bool, default=False
        Average both directions of a measure or matrix that is not symmetric. Values passed to
        `predict` are used unchanged.
    n_jobs : int or None, default=None
        Number of workers that compare pairs. None uses all processors for measures that release
        Python's lock, and one process for a plain function.
    cache : path or None, default=None
        Folder for finished blocks of comparisons, so that an interrupted run can resume.
    verbose : int, default=0
        Above 0, show a progress bar if standard error is a terminal.
    random_state : int, RandomState or None, default=None
        Seed for the choice of landmarks and basis objects.

    Attributes
    ----------
    classes_ : array (C,)
        Class labels, sorted.
    relevance_ : array
        Rows of the training objects with non-zero weight.
    landmarks_ : array (m,)
        Rows of the training objects that a new object is compared with.
    dual_coef_, intercept_ : arrays (m, 1 or C) and (1 or C,)
        Weights of the basis functions of `landmarks_`: one score for two classes, else one per
        class (one for each pair of classes with solver="paper").
    objective_path_ : array
        Log-posterior after each iteration of the last fit, rising (empty for solver="paper").
    basis_function_ : {"similarity", "-d²/2", "-d", "-√d"}
        The basis functions: the similarity itself (centred, for dissimilarities with `n_basis` or
        solver="paper"), or a function of a dissimilarity d. This is −½d², unless −d, and then −√d,
        lowers the leave-one-out loss by two standard errors. The loss is computed on objects that
        are not landmarks, if there are at least five per landmark and at most 4,000 landmarks.
    prior_scale_ : float
        Scale of the sparsity prior on weights of columns with unit standard deviation. For two
        classes, the leave-one-out loss chooses it; for more, it is 1.
    n_iter_ : int
        Number of iterations of the last fit.
    converged_ : bool
        Whether the optimality conditions were met at the end.
    stop_reason_ : str
        Why the search for the mode stopped.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues of the approximated kernel.
    eigenvalues_ : array
        Its non-zero eigenvalues with their signs, largest magnitude first.
    kernel_evaluations_ : int
        Number of pairs compared during fit.
    kernel_reused_ : int
        Number of values read from the cache instead.
    temperature_ : float
        Factor on the scores before they become probabilities (an inverse temperature); 1 unless
        `calibrate=True`.

    See Also
    --------
    KreinClassifier : Combines PCVM with IKFD and IKQD; the recommended default.
    IKFD : Linear model fitted in one pass, with constant memory.

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
        X : sequence of N objects, or an N×N matrix of values
            The objects to compare; for a precomputed measure, the values. Objects need not be in
            memory: X may be the path of a file, a source from `krein.io` (with its labels), a
            memory map, or a Dask collection. Their N×m values are then kept in a file or on the
            cluster during the fit.
        y : array of N labels, or None if X contains them
        sample_weight : array of N numbers, optional
            How many objects each one counts for in the likelihood; objects of weight 0 are never
            landmarks.

        Returns
        -------
        self
        """
        self._check(sample_weight)
        with all_or_nothing(self), self._open(X, y, sample_weight) as data:
            found = self._survey(data)
            if (found.weights <= 0).any():
                label = self.classes_.tolist()[int(np.argmin(found.weights > 0))]
                raise ValueError(
                    f"no object of class {label!r} has a sample_weight above 0; leave the class out"
                )
            chosen = self._choose(data)
            self.kernel_evaluations_ = chosen.counter.compared
            self.kernel_reused_ = chosen.counter.reused
            kept = self._keep_values(data, chosen)
            try:
                self._learn(data, chosen, kept)
            finally:
                kept.close()
        return self

    def _check(self, sample_weight: Any) -> None:
        if self.solver not in ("em", "paper"):
            raise ValueError(f"solver must be 'em' or 'paper'; got {self.solver!r}")
        if self.rank is not None and self.n_basis is None:
            raise ValueError("rank= needs n_basis=: without it, the features are similarities")
        if self.solver == "paper":
            for name in ("class_weight", "n_basis"):
                if getattr(self, name) is not None:
                    raise ValueError(f"solver='paper' does not support {name}: set it to None")
            if sample_weight is not None or self.calibrate:
                what = "sample_weight" if sample_weight is not None else "calibrate=True"
                raise ValueError(f"solver='paper' does not support {what}; solver='em' does")

    def _family(self) -> PCVMFamily:
        return PCVMFamily(
            len(self.classes_),
            one_against_rest=self.multiclass == "ovr" and self.solver != "paper",
            sparse=self.sparse,
            function=None if self.n_basis is None else POWERS[0],
            rank=self.rank,
        )

    def _keep_values(self, data: Dataset, chosen: LandmarkChoice) -> Features:
        """Compare all objects with the landmarks, and keep the values for later passes."""
        space, m = chosen.landmarks.space, len(chosen.landmarks.indices)
        each = self._class_weights().of_objects(data.survey().weights)
        term = FeatureTerm(chosen.columns, space, space.origin(), self.classes_, each)
        counter = Counter()
        kept, moments = data.keep(term, m, self._block_rows(m), counter)
        self._set_spectrum(signed_eigen(moments.gram(), space.signs).values)
        self.kernel_evaluations_ += counter.compared
        self.kernel_reused_ += counter.reused
        return kept

    def _learn(self, data: Dataset, chosen: LandmarkChoice, kept: Features) -> None:
        """Fit to the values of all objects to the landmarks, and calibrate if requested."""
        landmarks, family = chosen.landmarks, self._family()
        if isinstance(chosen.family, PCVMFamily):  # the rule used its basis function
            family = replace(family, otherwise=chosen.family.otherwise)
        self.temperature_ = 1.0
        if self.solver == "paper":
            model = fit_as_published(landmarks.space, kept, family.n_classes, self._rng())
            self._set_model(model, landmarks)
        elif self.n_basis is not None:
            self._learn_basis(data, chosen, family, kept)
        elif self.calibrate:
            m = len(landmarks.indices)
            sample = CalibrationSample.of(self.n_objects_, landmarks.indices, rows_to_ask(m))
            model, features = self._learn_landmarks(chosen, family, kept, keep=sample.covers_all)
            settled = replace(family, function=model.function, scales=model.scales)
            if sample.covers_all:
                self.temperature_ = self._cross_fit(settled, landmarks, kept)
            else:
                some = sample.among(np.arange(self.n_objects_))
                self.temperature_ = left_out_temperature(
                    settled, chosen.landmark_classes, model.fits, features, some
                )
        else:
            self._learn_landmarks(chosen, family, kept, keep=False)

    def _learn_landmarks(
        self, chosen: LandmarkChoice, family: PCVMFamily, kept: Features, *, keep: bool
    ) -> tuple[PCVMModel, Features]:
        """Fit with the landmarks as basis objects; predictions need those with non-zero weight."""
        landmarks = chosen.landmarks
        model, features = fit_landmarks(
            landmarks.space, landmarks.indices, kept, chosen.landmark_classes, family, keep=keep
        )
        self._set_model(model, landmarks.restricted(model.places))
        return model, features

    def _learn_basis(
        self, data: Dataset, chosen: LandmarkChoice, family: PCVMFamily, kept: Features
    ) -> None:
        """Fit with basis objects beyond the landmarks."""
        landmarks = chosen.landmarks
        m = len(landmarks.indices)
        basis = basis_rows(self.n_basis, self.n_objects_, landmarks.indices, self._rng())
        model = fit_basis(landmarks.space, basis, kept, family)
        if len(model.relevance) >= m or landmarks.space.centre is not None:
            self._set_model(model, landmarks)
        else:
            # fewer basis objects than landmarks: compare with the basis objects instead, and refit
            # the weights because K(x, x_i) now replaces its approximation
            fewer = choose_landmarks(
                data,
                Given(np.sort(model.relevance)),
                self._comparing(self.measure_),
                self._rng(),
                classes=self.classes_,
            )
            self.kernel_evaluations_ += fewer.counter.compared
            self.kernel_reused_ += fewer.counter.reused
            values = self._keep_values(data, fewer)
            plain = replace(family, function=None, sparse=False)
            try:
                model, _ = self._learn_landmarks(fewer, plain, values, keep=True)
            finally:
                values.close()
        if self.calibrate:
            power = POWERS[0] if model.function == "similarity" else model.function
            settled = replace(family, function=power, scales=model.scales)
            self.temperature_ = self._cross_fit(settled, landmarks, kept)

    def _set_model(self, model: PCVMModel, landmarks: LandmarkSet) -> None:
        """Set the fitted attributes, and warn if the search stopped too early."""
        self._use_landmarks(landmarks)
        self.relevance_ = model.relevance
        self.basis_function_ = model.function
        self.dual_coef_, self.intercept_ = model.dual_coef, model.intercept
        self.n_iter_, self.converged_ = model.end.n_iter, model.end.converged
        self.stop_reason_ = model.end.reason
        self.objective_path_ = model.end.objective_path
        self.prior_scale_ = float(np.exp(np.mean(np.log(model.scales))))
        if not self.converged_ and self.solver == "em":
            warnings.warn(
                f"PCVM stopped before its optimality conditions were met: {model.end.reason} "
                f"(largest violation {model.end.violation:.1e} per row)",
                ConvergenceWarning,
                stacklevel=2,
            )

    def _cross_fit(self, family: PCVMFamily, landmarks: LandmarkSet, kept: Features) -> float:
        """Return the temperature from ten folds over the values of all objects."""
        C = family.n_classes
        raw = kept.rows(np.arange(C), C)
        used = np.flatnonzero(np.isin(landmarks.indices, self.landmarks_))
        # if predictions use objects other than the landmarks, use the landmarks here instead
        used = used if len(used) == len(self.landmarks_) else np.arange(raw.shape[1])
        values = raw.features(np.arange(raw.shape[0]))[:, used]
        return cross_fit(family, landmarks.restricted(used), values, raw.y, raw.weight)
