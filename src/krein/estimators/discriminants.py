"""IKFD and IKQD: Gaussian classes, fitted to moments from one pass over the data."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from operator import add
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from ..compare.pairs import block_rows
from ..core.calibration import SAMPLE_SIZE, Priors, fit_temperature
from ..core.cascade import Cascade
from ..core.conformal import Reference
from ..core.covariance import ChosenCovariance, LeftOutObjects, Target
from ..core.gaussian import (
    CHOICE_LANDMARKS,
    GaussianFamily,
    LinearDiscriminant,
    QuadraticDiscriminant,
    choose_power,
    fit_fisher_as_published,
    landmark_places,
    least_loss,
    left_out_objects,
)
from ..core.moments import ClassMoments
from ..core.shapes import CODE, NON_NEGATIVE, ROWS, SHARE, Array, Codes, Indices
from ..core.space import POWERS, LandmarkSpace, Power, check_level, signed_eigen
from ..data.chunks import Chunk, Costed, LandmarkColumns
from ..data.labelling import codes_of
from ..landmarks import Selection, get_rule
from ..model.heads import LinearHead, LinkName, QuadraticHead
from ..model.model import Model
from ..model.schema import LOCAL
from .choosing import Centre, LandmarkChoice
from .fitting import Classifier, Job, all_or_nothing, mean_values
from .heldout import (
    CalibrationSample,
    cross_fit,
    find_own_landmarks,
    reference_of,
    scaled,
    shares_of_groups,
)
from .validation import check_multiclass

_NOT_PUBLISHED: dict[str, Any] = {
    "calibrate": False,
    "centre": "landmarks",
    "class_weight": None,
    "priors": None,
}
"""Parameters that the published method does not have, and their defaults."""


@dataclass(frozen=True)
class Stream:
    """What is known of all objects so far: their moments, and the calibration sample.

    A pass sums it over blocks, and `partial_fit` over chunks. A file of a calibrated model, which
    does not accept further chunks, contains none.
    """

    powers: Annotated[tuple[Power, ...], "powers"]  # of a dissimilarity, to choose from
    moments: Annotated[tuple[ClassMoments, ...], "powers"]  # in the space of each power
    indices: Annotated[Indices, "n_sample", ROWS]  # of the sample among all objects
    values: Annotated[Array, "n_sample m"]
    codes: Annotated[Codes, "n_sample", CODE]
    weights: Annotated[Array, "n_sample", NON_NEGATIVE] | None

    def within(self, sample: CalibrationSample) -> Stream:
        """Return the same, restricted to the objects that belong to `sample`."""
        some = sample.among(self.indices)
        return replace(
            self,
            indices=self.indices[some],
            values=self.values[some],
            codes=self.codes[some],
            weights=self.weights_at(some),
        )

    def left_out(
        self, space: LandmarkSpace, moments: ClassMoments, places: Indices
    ) -> LeftOutObjects:
        """Return the objects of the sample that can be left out; `places` are their landmarks."""
        return left_out_objects(space, moments, self.values, self.codes, self.weights, places)

    def weights_at(self, rows: Indices) -> Array | None:
        """Return the weights of some objects of the sample; None if there are none."""
        return None if self.weights is None else self.weights[rows]

    def __add__(self, other: Stream) -> Stream:
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = np.concatenate([self.weights, other.weights])
        return Stream(
            self.powers,
            tuple(map(add, self.moments, other.moments)),
            np.concatenate([self.indices, other.indices]),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.codes, other.codes]),
            weights,
        )


def moments_of(
    columns: LandmarkColumns,
    spaces: list[LandmarkSpace],
    origins: list[Array],
    classes: NDArray[Any],
    family: GaussianFamily,
    sample: CalibrationSample,
    seen: int,
    chunk: Chunk,
) -> Costed[Stream]:
    """Compare a chunk with the landmarks, after `seen` objects of earlier chunks.

    Returns its class moments in each space, and its part of the calibration sample.
    """
    values, cost = columns.values(chunk)
    codes = codes_of(np.asarray(chunk.labels), classes)
    moments = tuple(
        family.moments(space, origin, values, codes, chunk.weights)
        for space, origin in zip(spaces, origins, strict=True)
    )
    indices = seen + chunk.start + np.arange(len(codes))
    some = sample.among(indices)
    weights = None if chunk.weights is None else chunk.weights[some]
    powers = tuple(space.power for space in spaces)
    return Stream(powers, moments, indices[some], values[some], codes[some], weights), cost


def _streams(estimator: Any) -> bool:
    if estimator.calibrate:
        raise AttributeError(
            "calibrate=True needs all objects at once: use fit, or partial_fit without it"
        )
    return True


def _calibration(
    family: GaussianFamily,
    chosen: GaussianFamily,
    choice: LandmarkChoice,
    moments: ClassMoments,
    passed: Stream,
    places: Indices,
    groups: Indices | None,
) -> tuple[float, Reference | None]:
    """Return the temperature and the reference that follow from held-out scores of the sample.

    Single objects are left out in closed form. Groups are held out in ten folds, in each of which
    `family` chooses its covariance again.
    """
    landmarks = choice.landmarks.indices
    if groups is None:
        objects = passed.left_out(choice.space, moments, places)
        scores, rows, shares = chosen.left_out_scores(objects), objects.rows, None
        own = places[rows][:, None] == np.arange(len(landmarks))
    else:
        scores, held = cross_fit(
            family, choice, passed.values, passed.codes, passed.weights, passed.indices, groups
        )
        rows = np.searchsorted(passed.indices, held)
        own = find_own_landmarks(groups, held, landmarks)
        shares = shares_of_groups(groups[held], passed.weights_at(rows))
    if len(rows) == 0:
        return 1.0, None
    codes, weights = passed.codes[rows], scaled(passed.weights_at(rows), shares)
    temperature = fit_temperature(scores, codes, chosen.log_proba, weights)
    log_proba = chosen.log_proba(temperature * scores)
    return temperature, reference_of(log_proba, passed.values[rows], codes, weights, choice, own)


def _target_of(family: GaussianFamily) -> Any:
    """Return the shrinkage target, as a list if each class has its own."""
    each = family.shrinkage if isinstance(family.shrinkage, tuple) else (family.shrinkage,)
    names = [x.target if isinstance(x, ChosenCovariance) else "identity" for x in each]
    return names if isinstance(family.shrinkage, tuple) else names[0]


class Discriminant(Classifier):
    """Gaussian classes: what IKFD and IKQD share, which differ in their family and its head."""

    rank: int | None
    centre: Centre
    shrinkage: float | Literal["auto", "oas"]
    priors: Any
    calibrate: bool

    class_count_: Annotated[Array, "C", NON_NEGATIVE]
    stream_: Annotated[Stream, LOCAL] | None
    target_: Target | Annotated[list[Target], "C"]

    @abstractmethod
    def _family(self, classes: NDArray[Any]) -> GaussianFamily:
        """Return what is fitted to the moments."""

    @abstractmethod
    def _head(
        self, family: GaussianFamily, space: LandmarkSpace, moments: ClassMoments
    ) -> LinearHead | QuadraticHead:
        """Fit the head to the moments."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit to objects X with labels y, in one pass over blocks of similarities.

        Parameters
        ----------
        X : sequence of N objects, or an N×N matrix of values
            The objects to compare; for a precomputed measure, the values, which may also be N×m
            with `landmarks` set to the m rows that the columns stand for. Objects need not be in
            memory: X may be the path of a file, a source from `krein.io` (with its labels), a
            memory map, or a Dask collection. Landmarks are chosen among all objects, or among about
            20,000 of them and at least 200 per class.
        y : array of N labels, str, or None if X contains them
            If X is the path of a file, y may name its column of labels, or a file of names and
            labels, as in `krein.io.open_source`.
        sample_weight : array of N numbers, optional
            Number of objects that each one counts for. Landmarks are chosen among objects of
            positive weight, regardless of its size.
        groups : array of N groups, optional
            For `calibrate=True`: objects of one group, such as near-duplicates, are held out
            together, in ten folds, and count as one held-out object. The shrinkage is still chosen
            by leaving out single objects.

        Returns
        -------
        self
        """
        with all_or_nothing(self), self._open(X, y, sample_weight) as data:
            job = self._job(data, self._survey(data).classes, self._groups(data, groups))
            family = self._family(job.classes)
            rule = get_rule(self.landmarks, self.n_landmarks)
            self._add(job, family, self._choose(job, family, rule), None)
        return self

    @available_if(_streams)
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add a chunk of objects, in constant memory.

        The landmarks are chosen from the first chunk. Up to rounding, the result is the same as
        `fit` on all chunks with the same landmarks. A call that fails leaves the model unchanged.

        Parameters
        ----------
        X : sequence of n objects, or anything else that `fit` accepts
            For a precomputed measure, the first chunk is n×n values; later chunks contain the
            values to each object of the first chunk, or to each landmark.
        y : array of n labels
        classes : array of labels
            All classes that will occur; required in the first call.
        sample_weight : array of n numbers, optional

        Returns
        -------
        self
        """
        before: Stream | None = getattr(self, "stream_", None)
        if before is None and "stream_" in vars(self):
            raise ValueError(
                "this model was calibrated and then loaded from a file, which does not store the "
                "state that further chunks need: use fit, or start again with partial_fit"
            )
        if before is None and classes is None:
            raise ValueError(
                "the first call of partial_fit needs classes=, with all classes that will occur"
            )
        known = self.classes_ if classes is None else np.unique(classes)
        if before is not None and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"classes={known.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}"
            )
        measure = None if before is None else self.measure_
        with all_or_nothing(self), self._open(X, y, sample_weight, measure) as data:
            n_objects = self._survey(data, known).n_objects
            job, family = self._job(data, known), self._family(known)
            if before is None:
                choice = self._choose(job, family, get_rule(self.landmarks, self.n_landmarks))
            else:
                landmarks, run = self.model_.landmarks, replace(job.run, n_jobs=data.n_jobs)
                columns = run.columns(landmarks.objects, landmarks.indices)
                # a model file does not say how the landmarks were chosen
                selection = getattr(self, "selection_", Selection(landmarks.indices))
                choice = LandmarkChoice(landmarks, self.space_, columns, selection)
                self.n_samples_seen_ += n_objects
                job.run.counter.add(self.comparisons_to_fit_, self.comparisons_reused_)
            self._add(job, family, choice, before)
        return self

    def stored(self, attribute: str) -> Any:
        """Return a fitted attribute as it is stored in a model file."""
        if (
            attribute == "stream_" and self.calibrate
        ):  # no further chunks: the values can be dropped
            return None
        return getattr(self, attribute)

    @property
    def power_(self) -> float | None:
        """The power of a dissimilarity that was chosen; None for a similarity."""
        return self.space_.power if self.space_.kind == "dissimilarity" else None

    @property
    def temperature_(self) -> float:
        """The factor on the scores before they become probabilities."""
        return float(self._fitted().heads[0].temperature)

    def _add(
        self, job: Job, family: GaussianFamily, choice: LandmarkChoice, before: Stream | None
    ) -> None:
        """Add the objects of a data set to the moments so far, if there are any; fit the model."""
        spaces, passed = self._pass(job, family, choice, before)
        places = landmark_places(choice.space, passed.values)
        best, chosen = 0, family
        if self._chooses():
            choices = [
                family.chosen(space, passed.left_out(space, moments, places))
                for space, moments in zip(spaces, passed.moments, strict=True)
            ]
            best = least_loss(choices)
            chosen, _ = choices[best]
        space, moments = spaces[best], passed.moments[best]
        choice = replace(choice, space=space)
        head, reference = self._head(chosen, space, moments), None
        if self.calibrate:
            temperature, reference = _calibration(
                family, chosen, choice, moments, passed, places, job.groups
            )
            head = replace(head, temperature=temperature)
        self.stream_, self.class_count_ = passed, moments.weights
        self.target_ = _target_of(chosen)
        self.model_ = Model(
            measure=job.run.measure,
            symmetrize=self.symmetrize,
            classes=job.classes,
            heads=(head,),
            cascade=Cascade.of_one(),
            baseline=mean_values(space.landmark_values, job.run.measure.kind),
            landmarks=choice.landmarks,
            reference=reference,
            comparisons=float(len(choice.landmarks.indices)),
            n_objects=self.model_.n_objects if before is not None else self.n_samples_seen_,
            feature_names=getattr(self, "feature_names_in_", None),
        )
        eigenvalues = signed_eigen(moments.gram(), space.signs).values
        self._set_fit(choice, space, eigenvalues, job.run.counter)

    def _pass(
        self, job: Job, family: GaussianFamily, choice: LandmarkChoice, before: Stream | None
    ) -> tuple[list[LandmarkSpace], Stream]:
        """Compare all objects with the landmarks; return the spaces to choose from, and the sums.

        There is a space for each power of a dissimilarity.
        """
        m = len(choice.landmarks.indices)
        sample = CalibrationSample.empty()
        if self.calibrate or self._chooses():
            sample = CalibrationSample.of(
                self.n_samples_seen_,
                choice.landmarks.indices,
                all_up_to=SAMPLE_SIZE,
                wanted=SAMPLE_SIZE,
            )
        powers = self._powers(choice, family) if before is None else before.powers
        spaces = [choice.space.with_power(power) for power in powers]
        if before is None:
            origins = [space.origin() for space in spaces]
        else:
            origins = [moments.origin for moments in before.moments]
        seen, run = self.n_samples_seen_ - job.data.survey().n_objects, job.run
        term = partial(
            moments_of, choice.columns, spaces, origins, job.classes, family, sample, seen
        )
        passed = job.data.reduce(term, add, block_rows(run.measure, m), m, run.counter)
        return spaces, passed if before is None else before.within(sample) + passed

    def _chooses(self) -> bool:
        """Whether the leave-one-out loss chooses the covariance, and the power of a distance."""
        return self.shrinkage == "auto"

    def _powers(self, choice: LandmarkChoice, family: GaussianFamily) -> tuple[Power, ...]:
        """Return the powers of a dissimilarity to try: only one if it is known beforehand."""
        space = choice.space
        if space.kind == "similarity":
            check_level(space.landmark_values)
            return (1.0,)
        if not self._chooses():
            return (1.0,)
        if len(space.landmark_values) <= 2 * CHOICE_LANDMARKS:
            return POWERS
        # decompose the values of all landmarks only once
        return (choose_power(family, space, choice.landmarks.codes),)

    def _priors(self, classes: NDArray[Any]) -> Priors:
        """Return the prior probability of each class, from the parameter."""
        rho = self.shrinkage
        named = isinstance(rho, str) and rho in ("auto", "oas")
        if not named and not (isinstance(rho, Real) and 0 <= rho <= 1):
            raise ValueError(
                f"shrinkage must be 'auto', 'oas' or a number from 0 to 1; got {rho!r}"
            )
        names, priors = classes.tolist(), self._class_costs(classes)
        if self.priors is None:
            return priors
        if isinstance(self.priors, str):
            if self.priors != "uniform":
                raise ValueError(f"priors must be None, 'uniform' or numbers; got {self.priors!r}")
            return replace(priors, given=np.ones(len(names)))
        numbers = self.priors
        if isinstance(numbers, dict):
            missing = [name for name in names if name not in numbers]
            if missing:
                raise ValueError(f"priors contain no probability for class {missing[0]!r}")
            numbers = [numbers[name] for name in names]
        given = np.asarray(numbers, dtype=float)
        usable = (given > 0) & np.isfinite(given)
        if given.shape != (len(names),) or not usable.all():
            raise ValueError(f"priors must be {len(names)} positive numbers; got {given}")
        return replace(priors, given=given)


class IKFD(Discriminant):
    """Indefinite kernel Fisher discriminant: probabilistic, linear in N, nothing to tune.

    With `landmarks="all"`, this is the dense method; otherwise its Nyström version, which makes one
    pass over blocks of similarities and keeps only class counts, sums and one Gram matrix.

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
        Number of dimensions of the landmark space to keep, largest |λ| first. None keeps all.
    centre : {"landmarks", "training"}, default="landmarks"
        What dissimilarities are centred on. Centring on the landmarks removes the mean distance of
        an object from them. Centring on the training objects keeps it as one more coordinate,
        without further comparisons, which helps if classes differ in size, such as small and large
        balls.
    shrinkage : "auto", "oas" or float, default="auto"
        How the shared covariance is shrunk. "auto" chooses the target, amount, scale and class
        offsets by the leave-one-out log-loss, which has a closed form. For a dissimilarity d, it
        also chooses whether similarities are computed from d², d or √d. "oas", or a fraction from 0
        to 1, shrinks towards a multiple of the identity in the landmark coordinates, with d². At 0,
        the pseudo-inverse of a singular covariance is used, as in the paper.
    solver : {"gaussian", "paper", "paper-ridge"}, default="gaussian"
        "gaussian" fits Gaussian classes with a shared, shrunk covariance. "paper" is the published
        iKFD and Ny-iKFD to the letter, for comparison: one class against the rest, with the
        pseudo-inverse of the within-class scatter of the columns k(x), and d² for a dissimilarity.
        The paper does not say how scores become probabilities; here, by the logistic function.
        "paper-ridge" adds a ridge to the scatter instead, 1 for a kernel of unit diagonal, as
        public implementations do. Neither uses `shrinkage`, `multiclass` or `priors`.
    multiclass : {"joint", "ovr"}, default="joint"
        One model of all classes with a shared covariance, or one class against the rest.
    priors : "uniform", dict, array or None, default=None
        Prior probability of each class. None uses the class frequencies.
    class_weight : dict, "balanced" or None, default=None
        Cost of an error on each class, as in scikit-learn: a factor on the prior.
    calibrate : bool, default=False
        Fit a temperature to leave-one-out scores, which have a closed form, without comparing any
        pair again. With more than 5,000 objects, a sample of about 5,000 that are not landmarks is
        used. It changes little if `shrinkage="auto"` has chosen the scale.
    symmetrize : bool, default=False
        Average both directions of a measure or matrix that is not symmetric. Values passed to
        `predict` are used unchanged.
    n_jobs : int or None, default=None
        Number of workers that compare pairs. None uses all processors for measures that release
        Python's lock, and one process for a plain function.
    cache : path or None, default=None
        Folder for finished blocks of comparisons, so that an interrupted run can resume. A block is
        reused if the same objects meet the same landmarks again.
    verbose : int or None, default=None
        If standard error is a terminal, None shows a progress bar for work that takes longer than
        two seconds, 1 always shows one, and 0 never does. If it is not, 1 announces how many pairs
        will be compared, and about how long it will take, if that is longer than ten seconds.
    random_state : int, RandomState or None, default=None
        Seed for the choice of landmarks.

    Attributes
    ----------
    classes_ : array (C,)
        Class labels, sorted.
    landmarks_ : array (m,)
        Rows of the training objects that a new object is compared with.
    dual_coef_, intercept_ : arrays (m, C) and (C,)
        Scores are similarities to the landmarks times `dual_coef_`, plus `intercept_`.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues of the approximated kernel.
    eigenvalues_ : array
        Its non-zero eigenvalues with their signs, largest magnitude first.
    shrinkage_ : float or array (C,)
        The amount of shrinkage used; one per class with `multiclass="ovr"`.
    class_count_ : array (C,)
        Number of training objects of each class: the sum of their weights.
    target_ : str or list of str
        What the covariance was shrunk towards: "similarities" (the identity in similarities to
        the landmarks), "identity" (the identity in landmark coordinates), "landmarks" (the
        landmarks' own scatter) or "diagonal".
    power_ : float or None
        1, 1/2 or 1/4: similarities are computed from d², d or √d. None if the measure is a
        similarity.
    comparisons_to_fit_ : int
        Number of pairs compared during fit.
    comparisons_reused_ : int
        Number of values read from the cache instead.
    temperature_ : float
        Factor on the scores before they become probabilities (an inverse temperature); 1 unless
        `calibrate=True`.

    See Also
    --------
    IKQD : One covariance per class: curved boundaries.
    KreinClassifier : Combines IKFD with IKQD and PCVM; the recommended default.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import IKFD
    >>> words = ["house", "mouse", "horse", "haus", "maus", "ross"]
    >>> languages = ["en", "en", "en", "de", "de", "de"]
    >>> clf = IKFD(measure="levenshtein", landmarks="all").fit(words, languages)
    >>> clf.predict(["louse", "laus"])
    array(['en', 'de'], dtype='<U2')
    """

    shrinkage_: Annotated[float, SHARE] | Annotated[Array, "C", SHARE]

    def __init__(
        self,
        measure: Any,
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "meb",
        n_landmarks: int | None = None,
        rank: int | None = None,
        centre: Centre = "landmarks",
        shrinkage: float | Literal["auto", "oas"] = "auto",
        solver: Literal["gaussian", "paper", "paper-ridge"] = "gaussian",
        multiclass: str = "joint",
        priors: Any = None,
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
        self.centre = centre
        self.shrinkage = shrinkage
        self.solver = solver
        self.multiclass = multiclass
        self.priors = priors
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    @property
    def dual_coef_(self) -> Array:
        """Weights (m, C) of the similarities to the landmarks."""
        return self._fitted().heads[0].weights

    @property
    def intercept_(self) -> Array:
        """Intercepts (C,)."""
        return self._fitted().heads[0].bias

    def _family(self, classes: NDArray[Any]) -> GaussianFamily:
        check_multiclass(self.multiclass)
        if self.solver not in ("gaussian", "paper", "paper-ridge"):
            raise ValueError(
                f"solver must be 'gaussian', 'paper' or 'paper-ridge'; got {self.solver!r}"
            )
        if self.solver != "gaussian":
            for name, unset in _NOT_PUBLISHED.items():
                given = getattr(self, name)
                if given is not unset and not (isinstance(given, str) and given == unset):
                    raise ValueError(
                        f"solver={self.solver!r} does not support {name}: set it to {unset!r}"
                    )
        return GaussianFamily(
            len(classes),
            self.shrinkage,
            self._priors(classes),
            one_against_rest=self.multiclass == "ovr",
            rank=self.rank,
        )

    def _chooses(self) -> bool:
        return self.solver == "gaussian" and super()._chooses()

    def _head(
        self, family: GaussianFamily, space: LandmarkSpace, moments: ClassMoments
    ) -> LinearHead | QuadraticHead:
        if self.solver != "gaussian":
            return self._published(space, moments)
        model = family.discriminant(moments)
        rho = model.shrinkage
        self.shrinkage_ = float(rho[0]) if len(rho) == 1 else rho
        alone = family.one_against_rest and family.n_classes > 2
        return head_of(space, model, "sigmoid" if alone else "softmax")

    def _published(self, space: LandmarkSpace, moments: ClassMoments) -> LinearHead | QuadraticHead:
        W = space.similarities(space.landmark_values)
        unit = float(np.abs(np.diag(W)).mean())
        ridge = None if self.solver == "paper" else unit**2 or 1.0
        model = fit_fisher_as_published(moments, space.signs, ridge)
        self.shrinkage_ = 0.0
        if len(moments.weights) > 2:
            return head_of(space, model, "sigmoid")
        # one score f for two classes, as −f/2 and f/2: the probability is the sigmoid of f
        half = replace(model, coef=model.coef / 2, intercept=model.intercept / 2)
        return head_of(space, half, "softmax")


class IKQD(Discriminant):
    """Indefinite kernel quadratic discriminant: one covariance per class.

    It works like `IKFD`, but with curved boundaries between the classes. Each class covariance is
    shrunk towards the shared one, more strongly for smaller classes.

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
        Number of dimensions of the landmark space to keep, largest |λ| first. None keeps all.
    centre : {"landmarks", "training"}, default="landmarks"
        What dissimilarities are centred on. Centring on the landmarks removes the mean distance of
        an object from them. Centring on the training objects keeps it as one more coordinate,
        without further comparisons, which helps if classes differ in size, such as small and large
        balls.
    shrinkage : "auto", "oas" or float, default="auto"
        How far the shared covariance is shrunk. "auto" chooses target and amount, and how many
        objects the shared covariance counts for in each class, by the leave-one-out log-loss;
        "oas" is the OAS formula towards the identity; a number is a fraction from 0 to 1.
    priors : "uniform", dict, array or None, default=None
        Prior probability of each class. None uses the class frequencies.
    class_weight : dict, "balanced" or None, default=None
        Cost of an error on each class, as in scikit-learn: a factor on the prior.
    calibrate : bool, default=False
        Fit a temperature to leave-one-out scores, which have a closed form, without comparing any
        pair again. With more than 5,000 objects, a sample of about 5,000 that are not landmarks is
        used.
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
        Seed for the choice of landmarks.

    Attributes
    ----------
    classes_ : array (C,)
        Class labels, sorted.
    landmarks_ : array (m,)
        Rows of the training objects that a new object is compared with.
    discriminant_ : QuadraticDiscriminant
        Means, covariances and how far each was shrunk towards the shared one.
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
    class_count_ : array (C,)
        Number of training objects of each class: the sum of their weights.
    target_ : str or list of str
        What the covariance was shrunk towards.
    power_ : float or None
        Power of a dissimilarity that was chosen; None for similarities.

    See Also
    --------
    IKFD : One covariance shared by all classes: straight boundaries, fewer parameters.
    KreinClassifier : Combines IKQD with IKFD and PCVM; the recommended default.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import IKQD
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(80, 2)), 4 * rng.normal(size=(80, 2))])
    >>> y = np.repeat(["narrow", "wide"], 80)
    >>> IKQD("elm", random_state=0).fit(X, y).predict([[0.1, 0.2], [6.0, -5.0]])
    array(['narrow', 'wide'], dtype='<U6')
    """

    def __init__(
        self,
        measure: Any,
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "meb",
        n_landmarks: int | None = None,
        rank: int | None = None,
        centre: Centre = "landmarks",
        shrinkage: float | Literal["auto", "oas"] = "auto",
        priors: Any = None,
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
        self.centre = centre
        self.shrinkage = shrinkage
        self.priors = priors
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    @property
    def discriminant_(self) -> QuadraticDiscriminant:
        """Means, covariances and how far each was shrunk towards the shared one."""
        return self._fitted().heads[0].discriminant

    def _family(self, classes: NDArray[Any]) -> GaussianFamily:
        priors = self._priors(classes)
        return GaussianFamily(len(classes), self.shrinkage, priors, rank=self.rank, by_class=True)

    def _head(
        self, family: GaussianFamily, space: LandmarkSpace, moments: ClassMoments
    ) -> LinearHead | QuadraticHead:
        return head_of(space, family.discriminant(moments))


def head_of(
    space: LandmarkSpace,
    model: LinearDiscriminant | QuadraticDiscriminant,
    link: LinkName = "softmax",
) -> LinearHead | QuadraticHead:
    """Return the head of a discriminant of coordinates in `space`."""
    if isinstance(model, QuadraticDiscriminant):
        return QuadraticHead(space.conversion, space.T, model)
    dual = space.T @ model.coef
    bias = model.intercept - model.centre @ model.coef
    return LinearHead(space.conversion, np.arange(len(dual)), dual, bias, link)
