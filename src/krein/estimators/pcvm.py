"""PCVM: weighted sums of similarities, with a non-negative weight on an object's own class."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..compare.pairs import block_rows
from ..compare.progress import progress
from ..core.calibration import fit_temperature
from ..core.cascade import Cascade
from ..core.pcvm.left_out import left_out_scores, rows_to_ask
from ..core.pcvm.published import LEVEL, level_of
from ..core.pcvm.rows import BasisFunction, Rows
from ..core.pcvm.training import (
    POWERS,
    PCVMFamily,
    PCVMModel,
    basis_rows,
    both_scores,
    fit_as_published,
    fit_basis,
    fit_landmarks,
)
from ..core.shapes import COUNT, POSITIVE, ROW, Array, Indices
from ..core.space import Conversion, LandmarkSpace, signed_eigen
from ..landmarks import get_rule
from ..landmarks.base import Given
from ..model.heads import LinearHead, LinkName
from ..model.model import Model
from .choosing import LandmarkChoice, choose_landmarks
from .fitting import Classifier, Job, all_or_nothing, mean_values, values_of
from .heldout import (
    CalibrationSample,
    cross_fit,
    find_own_landmarks,
    reference_of,
    scaled,
    shares_of_groups,
)
from .validation import check_multiclass


class PCVM(Classifier):
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
    measure : str, Measure or callable
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
    solver : {"em", "paper", "paper-exact"}, default="em"
        "em" finds a mode of the posterior under the sign constraints. "paper" is the published PCVM
        or Ny-PCVM, for comparison. Ny-PCVM approximates the matrix Υ that it inverts on 1 % of the
        objects, which costs much of the accuracy; "paper-exact" inverts it exactly, in O(N m²).
    multiclass : {"joint", "ovr"}, default="joint"
        One multinomial model of all classes, or one class against the rest as in the paper. The
        published solvers have no joint model: there, "joint" fits one model for each pair of
        classes.
    sparse : bool or None, default=None
        Drop basis objects while the leave-one-out loss stays within one standard error. None does
        so for two classes with at least five objects per candidate; otherwise only objects whose
        weights are zero are dropped.
    class_weight : dict, "balanced" or None, default=None
        Weight of the objects of each class in the likelihood, as in scikit-learn; scaled so that
        the mean over all objects is 1.
    calibrate : bool, default=False
        Fit a temperature, without comparing any pair again. If there are more than 5,000 objects
        besides the landmarks, and five per landmark, it is fitted to approximate leave-one-out
        scores of that many (beyond 4,000 landmarks, to in-sample scores); otherwise, to the scores
        of ten folds. With `n_basis`, or if most objects are landmarks, ten folds are always used.
    symmetrize : bool, default=False
        Average both directions of a measure or matrix that is not symmetric. Values passed to
        `predict` are used unchanged.
    n_jobs : int or None, default=None
        Number of workers that compare pairs. None uses all processors for measures that release
        Python's lock, and one process for a plain function.
    cache : path or None, default=None
        Folder for finished blocks of comparisons, so that an interrupted run can resume.
    verbose : int or None, default=None
        If standard error is a terminal, None shows a progress bar for work that takes longer than
        two seconds, 1 always shows one, and 0 never does. If it is not, 1 announces how many pairs
        will be compared, and about how long it will take, if that is longer than ten seconds.
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
        class (one for each pair of classes with a published solver and multiclass="joint").
    objective_path_ : array
        Log-posterior after each iteration of the last fit, rising (empty for published solvers).
    basis_function_ : {"similarity", "-d²/2", "-d", "-√d"}
        The basis functions: the similarity itself (centred, for dissimilarities with `n_basis` or
        a published solver), or a function of a dissimilarity d. This is −½d², unless −d, and then
        −√d, lowers the leave-one-out loss by a standard error. The loss is computed on objects
        that are not landmarks, if there are at least five per landmark and at most 4,000 landmarks.
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
    comparisons_to_fit_ : int
        Number of pairs compared during fit.
    comparisons_reused_ : int
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
    >>> clf = PCVM("elm", landmarks="random", n_landmarks=30, random_state=0).fit(X, y)
    >>> clf.predict([[0.5, 0.5], [1.5, 0.5]])
    array(['white', 'black'], dtype='<U5')
    >>> len(clf.relevance_) < 30
    True
    """

    relevance_: Annotated[Indices, "relevant", ROW]
    objective_path_: Annotated[Array, "steps"]
    basis_function_: BasisFunction
    prior_scale_: Annotated[float, POSITIVE]
    n_iter_: Annotated[int, COUNT]
    converged_: bool
    stop_reason_: str

    def __init__(
        self,
        measure: Any,
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
        verbose: int | None = None,
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit to objects X with labels y.

        Parameters
        ----------
        X : sequence of N objects, or an N×N matrix of values
            The objects to compare; for a precomputed measure, the values. Objects need not be in
            memory: X may be the path of a file, a source from `krein.io` (with its labels), a
            memory map, or a Dask collection. Their N×m values are then kept in a file or on the
            cluster during the fit.
        y : array of N labels, str, or None if X contains them
            If X is the path of a file, y may name its column of labels, or a file of names and
            labels, as in `krein.io.open_source`.
        sample_weight : array of N numbers, optional
            How many objects each one counts for in the likelihood; objects of weight 0 are never
            landmarks.
        groups : array of N groups, optional
            For `calibrate=True`: objects of one group, such as near-duplicates, are held out
            together, in ten folds, and count as one held-out object.

        Returns
        -------
        self
        """
        self._check(sample_weight)
        with all_or_nothing(self), self._open(X, y, sample_weight) as data:
            survey = self._survey(data)
            grouped = self._groups(data, groups)
            if (survey.weights <= 0).any():
                label = survey.classes.tolist()[int(np.argmin(survey.weights > 0))]
                raise ValueError(
                    f"no object of class {label!r} has a sample_weight above 0; leave the class out"
                )
            job = self._job(data, survey.classes, grouped)
            family = self._family(len(survey.classes))
            rule = get_rule(self.landmarks, self.n_landmarks)
            chosen = self._choose(job, family, rule)
            kept, eigenvalues = self._keep_values(job, chosen)
            try:
                with progress(None, "fitting PCVM", self.verbose, unit=""):
                    self._learn(job, family, chosen, kept, eigenvalues)
            finally:
                kept.close()
        return self

    def _check(self, sample_weight: Any) -> None:
        if self.solver not in ("em", "paper", "paper-exact"):
            raise ValueError(f"solver must be 'em', 'paper' or 'paper-exact'; got {self.solver!r}")
        check_multiclass(self.multiclass)
        if self.rank is not None and self.n_basis is None:
            raise ValueError("rank= needs n_basis=: without it, the features are similarities")
        if self.solver != "em":
            for name in ("class_weight", "n_basis"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"solver={self.solver!r} does not support {name}: set it to None"
                    )
            if sample_weight is not None or self.calibrate:
                what = "sample_weight" if sample_weight is not None else "calibrate=True"
                raise ValueError(
                    f"solver={self.solver!r} does not support {what}; solver='em' does"
                )

    def _family(self, n_classes: int) -> PCVMFamily:
        return PCVMFamily(
            n_classes,
            one_against_rest=self.multiclass == "ovr" and self.solver == "em",
            sparse=self.sparse,
            function=None if self.n_basis is None else POWERS[0],
            rank=self.rank,
        )

    def _keep_values(self, job: Job, chosen: LandmarkChoice) -> tuple[Rows, Array]:
        """Compare all objects with the landmarks, and keep the values for later passes.

        Also returns the eigenvalues of the approximated kernel.
        """
        space, m = chosen.space, len(chosen.landmarks.indices)
        data, run = job.data, job.run
        each = self._class_costs(job.classes).weights(data.survey().weights)
        term = partial(values_of, chosen.columns, space, space.origin(), job.classes, each)
        kept, moments = data.keep(term, m, block_rows(run.measure, m), run.counter)
        return kept, signed_eigen(moments.gram(), space.signs).values

    def _learn(
        self,
        job: Job,
        family: PCVMFamily,
        chosen: LandmarkChoice,
        kept: Rows,
        eigenvalues: Array,
    ) -> None:
        """Fit to the values of all objects to the landmarks, and calibrate if requested."""
        tried = chosen.selection.family
        if isinstance(tried, PCVMFamily):  # the rule used its basis function
            family = replace(family, otherwise=tried.otherwise)
        if self.solver != "em":
            forms = self.multiclass == "ovr", self.solver == "paper-exact"
            model = fit_as_published(chosen.space, kept, family.n_classes, self._rng(), *forms)
            self._set_model(job, model, chosen.space.conversion, chosen, eigenvalues)
        elif self.n_basis is not None:
            self._learn_basis(job, family, chosen, kept, eigenvalues)
        else:
            self._learn_landmarks(job, family, chosen, kept, eigenvalues)

    def _learn_landmarks(
        self,
        job: Job,
        family: PCVMFamily,
        chosen: LandmarkChoice,
        kept: Rows,
        eigenvalues: Array,
    ) -> None:
        """Fit with the landmarks as basis objects."""
        N, landmarks = self.n_samples_seen_, chosen.landmarks.indices
        wanted = rows_to_ask(len(landmarks))
        sample = CalibrationSample.of(N, landmarks, wanted + len(landmarks), wanted)
        asked = None
        if self.calibrate and not sample.covers_all:
            # read now, because the fit may replace the values by its features
            asked = Asked.among(kept, sample.among(np.arange(N)))
        model, features = fit_landmarks(
            chosen.space,
            landmarks,
            kept,
            chosen.landmarks.codes,
            family,
            keep=self.calibrate and asked is None,
        )
        used = chosen.restricted(model.places)
        self._set_model(job, model, model.function, used, eigenvalues)
        if self.calibrate:
            settled, held_out = replace(family, function=model.function, scales=model.scales), None
            if asked is not None and job.groups is None:
                held_out = _left_out(settled, chosen, model, features, asked.rows)
            self._calibrate(job, settled, chosen, kept, asked, held_out)

    def _learn_basis(
        self,
        job: Job,
        family: PCVMFamily,
        chosen: LandmarkChoice,
        kept: Rows,
        eigenvalues: Array,
    ) -> None:
        """Fit with basis objects beyond the landmarks."""
        m = len(chosen.landmarks.indices)
        basis = basis_rows(
            self.n_basis, self.n_samples_seen_, chosen.landmarks.indices, self._rng()
        )
        model = fit_basis(chosen.space, basis, kept, family)
        if len(model.relevance) >= m or chosen.space.kind == "dissimilarity":
            features = chosen.space.conversion
            self._set_model(job, model, features, chosen, eigenvalues)
        else:
            # fewer basis objects than landmarks: compare with the basis objects instead, and refit
            # the weights because K(x, x_i) now replaces its approximation
            rule = Given(np.sort(model.relevance))
            fewer = choose_landmarks(job.data, rule, job.run, self._rng(), classes=job.classes)
            values, eigenvalues = self._keep_values(job, fewer)
            plain, landmarks = replace(family, function=None, sparse=False), fewer.landmarks
            try:
                model, _ = fit_landmarks(
                    fewer.space, landmarks.indices, values, landmarks.codes, plain, keep=True
                )
            finally:
                values.close()
            used = fewer.restricted(model.places)
            self._set_model(job, model, model.function, used, eigenvalues)
        if self.calibrate:
            power = POWERS[0] if model.function == "similarity" else model.function
            settled = replace(family, function=power, scales=model.scales)
            self._calibrate(job, settled, chosen, kept)

    def _set_model(
        self,
        job: Job,
        model: PCVMModel,
        features: Conversion | BasisFunction,
        used: LandmarkChoice,
        eigenvalues: Array,
    ) -> None:
        """Set the fitted attributes, and warn if the search stopped too early.

        Predictions need only the landmarks that are `used`, those with weights other than zero.
        """
        link: LinkName = "softmax" if self.solver == "em" else "pairs"
        if self.multiclass == "ovr":
            link = "probits"
        if len(job.classes) == 2:
            link = "probit"
        places = np.arange(len(used.landmarks.indices))
        self.model_ = Model(
            measure=job.run.measure,
            symmetrize=self.symmetrize,
            classes=job.classes,
            heads=(LinearHead(features, places, model.dual_coef, model.intercept, link),),
            cascade=Cascade.of_one(),
            baseline=mean_values(used.space.landmark_values, job.run.measure.kind),
            landmarks=used.landmarks,
            comparisons=float(len(places)),
            n_objects=self.n_samples_seen_,
            feature_names=getattr(self, "feature_names_in_", None),
        )
        self._set_fit(used, used.space, eigenvalues, job.run.counter)
        self.relevance_ = model.relevance
        self.basis_function_ = model.function
        self.n_iter_, self.converged_ = model.n_iter, model.converged
        self.stop_reason_ = model.reason
        self.objective_path_ = model.objective_path
        self.prior_scale_ = float(np.exp(np.mean(np.log(model.scales))))
        if not self.converged_ and self.solver == "em":
            warnings.warn(
                f"PCVM stopped before its optimality conditions were met: {model.reason} "
                f"(largest violation {model.violation:.1e} per row)",
                ConvergenceWarning,
                stacklevel=2,
            )
        if self.solver != "em":
            self._warn_as_published(used.space)

    def _warn_as_published(self, space: LandmarkSpace) -> None:
        """Warn if the published algorithm failed, or if it cannot succeed."""
        if not self.converged_:
            warnings.warn(
                f"the published PCVM did not converge: {self.stop_reason_}; models without weights "
                "predict by their bias alone. solver='em' finds a mode of the posterior",
                ConvergenceWarning,
                stacklevel=2,
            )
        level = level_of(space.similarities(space.landmark_values))
        if level > LEVEL:
            warnings.warn(
                f"the similarities have a common level of {level:.3g} times their differences, "
                "which the published PCVM cannot remove: subtract it from the similarities, or use "
                "solver='em'",
                UserWarning,
                stacklevel=2,
            )

    def _calibrate(
        self,
        job: Job,
        family: PCVMFamily,
        chosen: LandmarkChoice,
        kept: Rows,
        asked: Asked | None = None,
        held_out: tuple[Array, Indices] | None = None,
    ) -> None:
        """Fit the temperature to `held_out` scores of some rows, by default those of ten folds.

        Objects are held out from those `asked`, by default all.
        """
        final, groups = self.model_.landmarks.indices, job.groups
        used = np.flatnonzero(np.isin(chosen.landmarks.indices, final))
        same = len(used) == len(final)
        if not same:  # predictions use objects other than the landmarks: use all landmarks here
            used = np.arange(len(chosen.landmarks.indices))
        chosen = chosen.restricted(used)
        everyone = np.arange(kept.shape[0])
        if asked is None:
            asked = Asked.among(kept, everyone)
        values = asked.values[:, used]
        each = everyone if groups is None else groups
        if held_out is None:
            w = None if kept.weight is None else kept.weight[asked.rows]
            held_out = cross_fit(family, chosen, values, kept.y[asked.rows], w, asked.rows, each)
        scores, rows = held_out
        weights = None if kept.weight is None else kept.weight[rows]
        if len(rows) == 0:
            return
        costs = self._class_costs(job.classes).weights(job.data.survey().weights)
        if groups is not None:
            numbers = weights if costs is None or weights is None else weights / costs[kept.y[rows]]
            weights = scaled(weights, shares_of_groups(groups[rows], numbers))
        temperature = fit_temperature(scores, kept.y[rows], family.log_proba, weights)
        reference = None
        if same:
            if weights is not None and costs is not None:  # costs of errors, not numbers of objects
                weights = weights / costs[kept.y[rows]]
            reference = reference_of(
                family.log_proba(temperature * scores),
                values[np.searchsorted(asked.rows, rows)],
                kept.y[rows],
                weights,
                chosen,
                find_own_landmarks(each, rows, chosen.landmarks.indices),
            )
        (head,) = self.model_.heads
        self.model_ = replace(
            self.model_, heads=(replace(head, temperature=temperature),), reference=reference
        )

    @property
    def dual_coef_(self) -> Array:
        """Weights (m, 1 or C) of the basis functions of the landmarks."""
        return self._fitted().heads[0].weights

    @property
    def intercept_(self) -> Array:
        """Intercepts (1 or C,)."""
        return self._fitted().heads[0].bias

    @property
    def temperature_(self) -> float:
        """The factor on the scores before they become probabilities."""
        return float(self._fitted().heads[0].temperature)


@dataclass(frozen=True)
class Asked:
    """Training objects that may be held out, and their values to all landmarks."""

    rows: Indices  # (n,), ascending
    values: Array  # (n, m)

    @classmethod
    def among(cls, kept: Rows, rows: Indices) -> Asked:
        """Read the values of these rows."""
        return cls(rows, kept.features(rows))


def _left_out(
    family: PCVMFamily,
    chosen: LandmarkChoice,
    model: PCVMModel,
    features: Rows,
    some: Indices,
) -> tuple[Array, Indices]:
    """Return the leave-one-out scores of some rows, to first order, and these rows."""
    weight = features.weight
    if weight is not None:
        some = some[weight[some] > 0]
    if len(some) == 0:
        return np.empty((0, family.n_classes)), some
    problems = family.problems(chosen.landmarks.codes)
    return both_scores(left_out_scores(features, problems, model.fits, some)), some
