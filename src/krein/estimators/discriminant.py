"""IKFD and IKQD: Gaussian classes in pseudo-Euclidean space, from one pass over the data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Real
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from ..core.checks import Array, Indices
from ..core.covariance import Shrinkage
from ..core.fisher import LinearDiscriminant, fit_fisher, fit_fisher_one_against_rest
from ..core.moments import ClassMoments
from ..core.nystrom import signed_eigen
from ..core.prune import prune_landmarks
from ..core.quadratic import QuadraticDiscriminant, fit_quadratic
from ..core.space import LandmarkSpace
from ..measures import take
from .base import (
    Codes,
    LandmarkSet,
    all_or_nothing,
    calm_blas,
    map_training,
    training_values,
)
from .classifier import LandmarkClassifier, Scorer

Chunk = Callable[[Indices, Array], ClassMoments]


@dataclass(frozen=True)
class Stream:
    """What further chunks are added to: the landmarks as first chosen, the moments so far."""

    landmarks: LandmarkSet
    moments: ClassMoments


def _streams(estimator: MomentClassifier) -> bool:
    if estimator.calibrate:
        raise AttributeError(
            "calibrate=True needs all objects at once: use fit, or partial_fit without it"
        )
    return True


class MomentClassifier(LandmarkClassifier):
    """A classifier that knows the data by their class moments alone."""

    shrinkage: Shrinkage
    priors: Any
    _by_class: ClassVar[bool]

    stream_: Stream

    @abstractmethod
    def _discriminant(self, moments: ClassMoments) -> LinearDiscriminant | QuadraticDiscriminant:
        """Return the model of these moments."""

    @abstractmethod
    def _conclude(self) -> None:
        """Turn the moments of the stream into the fitted attributes."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to objects X with labels y, in one pass over blocks of similarities.

        Parameters
        ----------
        X : sequence of N objects, or an N×N matrix of values
            What the measure compares; for a precomputed measure the values themselves.
        y : array of N labels
        sample_weight : array of N numbers, optional
            How many objects each one counts for. Landmarks are chosen among those above 0,
            whatever their weight.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        X, codes, weights, self.classes_ = self._validated(X, y, sample_weight)
        self._priors(np.bincount(codes, minlength=len(self.classes_)).astype(float))  # refuse early
        pairs = self._open(X)
        self.n_objects_ = self.n_samples_seen_ = len(pairs)
        selection = self._choose(pairs, codes, weights)
        landmarks = self._span(pairs, selection)
        self.selection_ = replace(selection, values=None)
        if self.calibrate:
            values = training_values(pairs, landmarks)
            landmarks = replace(landmarks, values=values)
        moments = self._sum(lambda f: map_training(pairs, landmarks, f), landmarks, codes, weights)
        self._remember(landmarks, moments)
        with calm_blas(len(landmarks.indices)):
            self._conclude()
        self.temperature_ = 1.0
        if self.calibrate:
            columns = np.flatnonzero(np.isin(landmarks.indices, self.landmarks_))
            used = LandmarkSet(self.space_, self.landmarks_, self.landmark_objects_)
            self.temperature_ = self._cross_fit(used, values[:, columns], codes, weights)
        self.kernel_evaluations_ = pairs.evaluations
        return self

    @available_if(_streams)
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add a chunk of objects, in constant memory.

        The landmarks are chosen from the first chunk. The result is that of `fit` on all chunks
        with the same landmarks, to rounding. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : sequence of n objects
            For a precomputed measure: n×n values among the first chunk, later n values to each
            object of the first chunk, or to each landmark.
        y : array of n labels
        classes : array of labels
            Every class there will be; needed in the first call.
        sample_weight : array of n numbers, optional

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self._add(X, y, classes, sample_weight)

    def _add(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        first = not hasattr(self, "stream_")
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs classes=, all there will be")
        known = self.classes_ if classes is None else np.unique(classes)
        if not first and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"classes={known.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}"
            )
        X, codes, weights, self.classes_ = self._validated(
            X, y, sample_weight, classes=known, reset=first
        )
        self.temperature_ = 1.0
        if first:
            pairs = self._open(X)
            selection = self._choose(pairs, codes, weights)
            landmarks = self._span(pairs, selection)
            moments = self._sum(
                lambda f: map_training(pairs, landmarks, f), landmarks, codes, weights
            )
            self.selection_ = replace(selection, values=None)
            self.n_objects_ = len(pairs)
            self.n_samples_seen_ = self.kernel_evaluations_ = 0
        else:
            landmarks = self.stream_.landmarks
            pairs = self._open_new(X, landmarks)
            columns = np.arange(pairs.shape[1])
            moments = self.stream_.moments + self._sum(
                lambda f: pairs.map_columns(f, columns), landmarks, codes, weights
            )
        self.n_samples_seen_ += len(pairs)
        self._remember(landmarks, moments)
        with calm_blas(len(landmarks.indices)):
            self._conclude()
        self.kernel_evaluations_ += pairs.evaluations
        return self

    def _remember(self, landmarks: LandmarkSet, moments: ClassMoments) -> None:
        """Keep the moments, and of the landmarks what does not grow with the data."""
        self.stream_ = Stream(replace(landmarks, values=None), moments)

    def _sum(
        self,
        blocks: Callable[[Chunk], Iterable[ClassMoments]],
        landmarks: LandmarkSet,
        codes: Codes,
        weights: Array | None,
    ) -> ClassMoments:
        """Return the moments over all blocks that `blocks` maps a function of (rows, values) to."""
        space = landmarks.space
        origin = space.origin()
        n_classes = len(self.classes_)

        def chunk(rows: Indices, values: Array) -> ClassMoments:
            return ClassMoments.of(
                space.coordinates(values),
                codes[rows],
                n_classes,
                origin=origin,
                sample_weight=None if weights is None else weights[rows],
                by_class=self._by_class,
            )

        return reduce(add, blocks(chunk))

    def _learn(
        self, space: LandmarkSpace, own: Codes, values: Array, codes: Codes, weights: Array | None
    ) -> Scorer:
        everyone = np.arange(len(values))
        landmarks = LandmarkSet(space, everyone, None)
        moments = self._sum(lambda f: [f(everyone, values)], landmarks, codes, weights)
        model = self._discriminant(moments)
        return lambda V: model.scores(space.coordinates(V))

    def _priors(self, counts: Array) -> Array:
        """Return the probability of each class before an object is seen (C,).

        The frequencies or what the user gave, times the class weights: what an error costs
        moves the boundary, it says nothing about the covariance.
        """
        rho = self.shrinkage
        if rho != "oas" and not (isinstance(rho, Real) and 0 <= rho <= 1):
            raise ValueError(f"shrinkage is 'oas' or a number from 0 to 1; got {rho!r}")
        names = self.classes_.tolist()
        if self.priors is None:
            given = counts
        elif isinstance(self.priors, str):
            if self.priors != "uniform":
                raise ValueError(f"priors are None, 'uniform' or numbers; got {self.priors!r}")
            given = np.ones(len(names))
        else:
            numbers = self.priors
            if isinstance(numbers, dict):
                missing = [name for name in names if name not in numbers]
                if missing:
                    raise ValueError(f"priors name no probability for class {missing[0]!r}")
                numbers = [numbers[name] for name in names]
            given = np.asarray(numbers, dtype=float)
            fit_for_use = (given > 0) & np.isfinite(given)
            if given.shape != (len(names),) or not fit_for_use.all():
                raise ValueError(f"priors must be {len(names)} positive numbers; got {given}")
        weights = self._class_weights(counts)
        given = given if weights is None else given * weights
        return given / given.sum()


class IKFD(MomentClassifier):
    """Indefinite kernel Fisher discriminant: probabilistic, linear in N, nothing to tune.

    With `landmarks="all"` the dense method, otherwise its Nyström version: one pass over
    blocks of similarities, of which only class counts, sums and one Gram matrix are kept.

    Parameters
    ----------
    measure : str, Measure or callable, default="elm"
        How two objects are compared: a name out of `krein.measures.available()`, a `Measure`, a
        function of two objects, "precomputed" (X holds similarities) or "precomputed-distance".
    measure_params : dict or None, default=None
        Parameters of a measure given by name.
    landmarks : str, Rule or array of int, default="meb"
        Which objects stand for all: "all", "meb", "kmeans", "entropy", "random", "leverage",
        "auto" (grown until more no longer help), a rule out of `krein.landmarks`, or indices.
    n_landmarks : int or None, default=None
        How many, for rules that take a number; None takes as many as "meb" would.
    rank : int or None, default=None
        Keep so many dimensions of the landmark space, the largest |λ|. Not with `prune`.
    shrinkage : "oas" or float, default="oas"
        How far the covariance is shrunk towards a multiple of the identity: by the OAS formula,
        or a share from 0 to 1. At 0 a singular one has its pseudo-inverse, as in the paper.
    multiclass : {"joint", "ovr"}, default="joint"
        One model of all classes with a shared covariance, or one class against the rest.
    priors : "uniform", dict, array or None, default=None
        Probability of each class before its objects are seen; None takes their frequencies.
    class_weight : dict, "balanced" or None, default=None
        What an error on each class costs, as in scikit-learn: a factor of its prior.
    prune : bool, default=False
        Drop landmarks that the discriminant does not need, so that a prediction costs fewer
        comparisons. With `multiclass="joint"`.
    calibrate : bool, default=False
        Fit a temperature to held-out scores (ten folds, no pair compared again). Keeps the N×m
        values while fitting.
    symmetrize : bool, default=False
        Average both directions of a measure or matrix that is not symmetric. At predict, given
        values are used as they are.
    n_jobs : int or None, default=None
        Workers that compare pairs. None: all processors for measures that release Python's
        lock, one process for a plain function.
    cache : path or None, default=None
        Folder that keeps finished blocks, so that a killed run goes on where it stopped. It serves
        any objects of the same measure.
    verbose : int, default=0
        Above 0, a progress bar where standard error is a terminal.
    random_state : int, RandomState or None, default=None
        Seed of everything random in the choice of landmarks.

    Attributes
    ----------
    classes_ : array (C,)
    landmarks_ : array (m,)
        Rows of the training objects that a new object is compared with.
    dual_coef_, intercept_ : arrays (m, C) and (C,)
        Scores are similarities to the landmarks times `dual_coef_`, plus `intercept_`.
    signature_ : Signature
        Positive, negative and vanishing eigenvalues of the approximated kernel.
    eigenvalues_ : array
        The non-zero ones with their signs, largest magnitude first.
    shrinkage_ : float or array (C,)
        The share that was used, for each class where `multiclass="ovr"`.
    kernel_evaluations_ : int
        How many pairs were compared to fit.
    temperature_ : float
        What scores are multiplied by before they become probabilities.

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

    _by_class = False

    dual_coef_: Array
    intercept_: Array
    shrinkage_: float | Array

    def __init__(
        self,
        measure: Any = "elm",
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "meb",
        n_landmarks: int | None = None,
        rank: int | None = None,
        shrinkage: Shrinkage = "oas",
        multiclass: str = "joint",
        priors: Any = None,
        class_weight: Any = None,
        prune: bool = False,
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
        self.shrinkage = shrinkage
        self.multiclass = multiclass
        self.priors = priors
        self.class_weight = class_weight
        self.prune = prune
        self.calibrate = calibrate
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    def _discriminant(self, moments: ClassMoments) -> LinearDiscriminant:
        ovr = self.multiclass == "ovr" and len(moments.weights) > 2
        fit = fit_fisher_one_against_rest if ovr else fit_fisher
        return fit(moments, shrinkage=self.shrinkage, priors=self._priors(moments.weights))

    def _conclude(self) -> None:
        landmarks, moments = self.stream_.landmarks, self.stream_.moments
        space = landmarks.space
        model = self._discriminant(moments)
        rho = model.shrinkage
        self.shrinkage_ = float(rho[0]) if len(rho) == 1 else rho
        self._adopt(landmarks)
        if self.prune:
            if self.multiclass != "joint":
                raise ValueError("prune=True goes with multiclass='joint'")
            if self.rank is not None:
                raise ValueError("prune=True drops landmarks, rank= dimensions: use one of them")
            pruned = prune_landmarks(space, moments, model, self.shrinkage)
            kept = pruned.kept
            objects = None if landmarks.objects is None else take(landmarks.objects, kept)
            self._adopt(LandmarkSet(space.restricted(kept), landmarks.indices[kept], objects))
            self.dual_coef_, self.intercept_ = pruned.dual_coef, pruned.intercept
        else:
            self.dual_coef_ = space.basis.T @ model.coef
            self.intercept_ = model.intercept - model.centre @ model.coef
        self._set_spectrum(signed_eigen(moments.gram(), space.signs).values)

    def _scores(self, values: Array) -> Array:
        return self.space_.similarities(values) @ self.dual_coef_ + self.intercept_


class IKQD(MomentClassifier):
    """Indefinite kernel quadratic discriminant: a covariance for each class.

    As `IKFD`, with curved boundaries between the classes. Each class covariance is shrunk
    towards the shared one, as far as the number of its objects asks for.

    Parameters
    ----------
    measure, measure_params, landmarks, n_landmarks, rank : as for `IKFD`
    shrinkage : "oas" or float, default="oas"
        Shrinkage of the shared covariance, as for `IKFD`.
    priors, class_weight, calibrate : as for `IKFD`
    symmetrize, n_jobs, cache, verbose, random_state : as for `IKFD`

    Attributes
    ----------
    classes_, landmarks_, signature_, eigenvalues_ : as for `IKFD`
    kernel_evaluations_, temperature_ : as for `IKFD`
    discriminant_ : QuadraticDiscriminant
        Means, covariances and how far each was shrunk towards the shared one.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import IKQD
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(80, 2)), 4 * rng.normal(size=(80, 2))])
    >>> y = np.repeat(["narrow", "wide"], 80)
    >>> IKQD(random_state=0).fit(X, y).predict([[0.1, 0.2], [6.0, -5.0]])
    array(['narrow', 'wide'], dtype='<U6')
    """

    _by_class = True
    multiclass = "joint"

    discriminant_: QuadraticDiscriminant

    def __init__(
        self,
        measure: Any = "elm",
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "meb",
        n_landmarks: int | None = None,
        rank: int | None = None,
        shrinkage: Shrinkage = "oas",
        priors: Any = None,
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
        self.shrinkage = shrinkage
        self.priors = priors
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    def _discriminant(self, moments: ClassMoments) -> QuadraticDiscriminant:
        priors = self._priors(moments.weights)
        return fit_quadratic(moments, shrinkage=self.shrinkage, priors=priors)

    def _conclude(self) -> None:
        self._adopt(self.stream_.landmarks)
        self.discriminant_ = self._discriminant(self.stream_.moments)
        G, signs = self.stream_.moments.gram(), self.stream_.landmarks.space.signs
        self._set_spectrum(signed_eigen(G, signs).values)

    def _scores(self, values: Array) -> Array:
        return self.discriminant_.scores(self.space_.coordinates(values))
