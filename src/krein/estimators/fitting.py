"""What estimators share: parameters, fitted attributes, opening data, answers about new objects.

An estimator is a thin façade. Its `fit` opens a data set, chooses landmarks, makes one pass or
several, and builds a model; everything that concerns new objects is a method of the model.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.validation import column_or_1d

from ..compare.pairs import Counter
from ..compare.workers import limit_blas_threads
from ..core.calibration import Family, Priors
from ..core.moments import ClassMoments
from ..core.shapes import COUNT, Array, Indices, Mask, Within
from ..core.space import LandmarkSpace, Signature
from ..data.chunks import Chunk, Costed, LandmarkColumns
from ..data.collection import is_dask
from ..data.dataset import Dataset, FeatureBlock, Survey
from ..data.labelling import check_groups, codes_of, first_equal, joined_groups, refuse_missing
from ..data.opening import as_source, in_memory, is_empty, open_data
from ..landmarks import Rule
from ..measures import Measure, get_measure
from ..measures.objects import (
    refuse_masked,
    refuse_unordered,
    unframed,
)
from ..model.file import save
from ..model.landmark_map import LandmarkMap
from ..model.model import Model
from ..model.parts import Comparisons
from ..model.schema import OPTIONAL
from .choosing import LandmarkChoice, choose_landmarks
from .validation import check_survey, check_weights, checked_values, checked_vectors


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the estimator if the body fails; BLAS runs in one thread.

    Results then do not depend on the number of BLAS threads, and small eigenproblems are faster: on
    a busy machine, BLAS threads wait for each other at every column.
    """
    before = dict(vars(estimator))
    try:
        with limit_blas_threads():
            yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@dataclass(frozen=True)
class Job:
    """What one call of `fit` is about: the objects, how to compare them, and their classes."""

    data: Dataset
    run: Comparisons
    classes: NDArray[Any]  # sorted
    groups: Indices | None = None  # (N,): held out together to calibrate


class LandmarkEstimator(BaseEstimator):
    """An estimator that compares objects with landmarks, and holds a model of the result.

    A subclass declares these parameters, and its own, in `__init__`. The annotations of fitted
    attributes are the schema of its model files.
    """

    measure: Any
    measure_params: dict[str, Any] | None
    landmarks: Any
    n_landmarks: int | None
    rank: int | None = None
    symmetrize: bool
    n_jobs: int | None
    cache: str | os.PathLike[str] | None
    verbose: int | None
    random_state: Any

    takes_graphs = False
    """Whether values of some pairs are enough, in a sparse matrix."""

    model_: Model | LandmarkMap
    space_: Annotated[LandmarkSpace, OPTIONAL]
    eigenvalues_: Annotated[Array, "eigenvalues"]
    signature_: Signature
    comparisons_to_fit_: Annotated[int, COUNT]
    comparisons_reused_: Annotated[int, COUNT]
    """Number of values read from the cache instead of being compared."""
    n_samples_seen_: Annotated[int, Within(1, 2**53)]
    """Number of training objects in all chunks."""
    n_features_in_: Annotated[int, "d", Within(1, 2**53), OPTIONAL]
    feature_names_in_: Annotated[NDArray[np.str_], "d", OPTIONAL]

    @property
    def measure_(self) -> Measure:
        """The measure, with the settings derived from the training objects."""
        return self._fitted().measure

    @property
    def landmarks_(self) -> Indices:
        """Rows of the training objects that a new object is compared with."""
        return self._fitted().landmarks.indices

    @property
    def landmark_objects_(self) -> Any:
        """These objects, in the measure's form."""
        return self._fitted().landmarks.objects

    # -- parameters, as in scikit-learn -----------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also those of the measure, `measure_params__name`."""
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            if isinstance(self.measure_params, dict):
                for name, value in self.measure_params.items():
                    params[f"measure_params__{name}"] = value
            if isinstance(self.measure, Measure):
                for item in fields(self.measure):
                    params[f"measure__{item.name}"] = getattr(self.measure, item.name)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including those of the measure, by the names used in a grid.

        `measure_params__normalize=True` sets one entry of `measure_params`. If `measure` is a
        `Measure`, `measure__normalize=True` replaces it by one with that parameter.
        """
        own = {name: value for name, value in params.items() if not name.startswith("measure_")}
        own |= {name: params[name] for name in ("measure", "measure_params") if name in params}
        super().set_params(**own)
        for name, value in params.items():
            owner, _, parameter = name.partition("__")
            if name in own:
                continue
            if owner == "measure_params":
                self.measure_params = {**(self.measure_params or {}), parameter: value}
            elif owner == "measure" and isinstance(self.measure, Measure):
                self.measure = replace(self.measure, **{parameter: value})
            else:
                super().set_params(**{name: value})  # its error lists the parameters
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        accepts = get_measure(self.measure, self.measure_params).accepts
        tags.input_tags.pairwise = accepts == "values"
        if accepts == "objects":
            tags.input_tags.two_d_array = False
            tags.input_tags.one_d_array = tags.input_tags.string = True
        return tags

    # -- what fits and predictions share -----------------------------------------------------------

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to objects X."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, atomically; `krein.load` reads it."""
        self._fitted()
        save(self, path)

    def stored(self, attribute: str) -> Any:
        """Return a fitted attribute as it is stored in a model file."""
        return getattr(self, attribute)

    def _fitted(self) -> Any:
        """Return the model, or raise an error if there is none."""
        # scikit-learn's check would look the measure up at every prediction, for its tags
        if "model_" not in vars(self):
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted yet; call fit before you use it")
        return self.model_

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def _comparisons(self, measure: Measure) -> Comparisons:
        return Comparisons(measure, self.symmetrize, self.n_jobs, self.cache, self.verbose)

    def _rng(self) -> np.random.Generator:
        if isinstance(self.random_state, np.random.RandomState):
            return np.random.default_rng(self.random_state.randint(2**31))
        return np.random.default_rng(self.random_state)

    def _validated(self, X: Any, measure: Measure, *, reset: bool) -> Any:
        """Return X; check it as scikit-learn does if its rows are vectors or precomputed values."""
        refuse_unordered(X)
        refuse_masked(X)
        if not in_memory(X, measure) or measure.accepts == "objects":
            return X
        if measure.accepts == "vectors":
            return checked_vectors(self, X, reset=reset)
        return checked_values(self, X, measure, reset=reset, graphs=self.takes_graphs)

    def _set_fit(
        self, choice: LandmarkChoice, space: LandmarkSpace, eigenvalues: Array, counter: Counter
    ) -> None:
        """Set the attributes that every fit has: the spectrum of the kernel, and the cost."""
        p = int((eigenvalues > 0).sum())
        q = len(eigenvalues) - p
        self.space_, self.selection_, self.eigenvalues_ = space, choice.selection, eigenvalues
        self.signature_ = Signature(p, q, max(self.n_samples_seen_ - p - q, 0))
        self.comparisons_to_fit_, self.comparisons_reused_ = counter.compared, counter.reused


class Classifier(ClassifierMixin, LandmarkEstimator):
    """A classifier: checks labels and weights, opens data, and passes new objects to its model."""

    class_weight: Any
    model_: Model

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels, sorted."""
        found: NDArray[Any] = self._fitted().classes
        return found

    @property
    def n_objects_(self) -> int:
        """Number of objects that the landmarks were chosen from."""
        return int(self._fitted().n_objects)

    @property
    def last_comparisons_(self) -> int:
        """Number of comparisons in the last call on objects in memory."""
        self._fitted()
        return self._last_call.compared if "_last_call" in vars(self) else 0

    # -- new objects -------------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """Return the most probable class of each object.

        For a path or a source, return an iterator with one array per chunk; for a Dask collection,
        a `dask.array`.
        """
        return self._fitted().predict(*self._new(X))

    def predict_proba(self, X: Any) -> Any:
        """Return the probability (n, C) of each class, in the order of `classes_`.

        For a path or a source, return an iterator with one array per chunk; for a Dask collection,
        a `dask.array`.
        """
        return self._fitted().predict_proba(*self._new(X))

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of the probabilities (n, C)."""
        return self._fitted().predict_log_proba(*self._new(X))

    def decision_function(self, X: Any) -> Any:
        """Return scores: (n,) for two classes, positive for the second; (n, C) for more.

        For a path or a source, return an iterator with one array per chunk; for a Dask collection,
        a `dask.array`.
        """
        return self._fitted().decision_function(*self._new(X))

    def rank_labels(self, X: Any) -> Any:
        """Return all labels for each object (n, C), most probable first."""
        return self._fitted().rank_labels(*self._new(X))

    def novelty(self, X: Any) -> Any:
        """Return the novelty p-value of each object: small if it resembles none of the classes.

        An object is novel if nothing is near, or if no class fits. The distance is the mean to the
        three nearest of all objects that it is compared with, ranked among those of held-out
        training objects with the same predicted label and, for `KreinClassifier`, of similar size.
        The log-odds of the label are ranked likewise, and a harmonic mean of both ranks is ranked
        once more. Among objects from the same source as the training objects, at most a share t has
        a p-value of t or less. An object of another kind, such as DNA for a model of proteins, gets
        0 (`ForeignObjectWarning`). `KreinClassifier` gives every object a second look, which costs
        up to `neighbours` additional comparisons; other classifiers need `calibrate=True`.

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> from krein.datasets import make_protein_families
        >>> X, y = make_protein_families(150, divergence=0.3, random_state=0)
        >>> clf = KreinClassifier("smith-waterman").fit(X[:-1], y[:-1])
        >>> p = clf.novelty([X[-1], "GSGSGSGSGSGSGSGSGSGSGSGS"])
        >>> bool(p[0] > 0.05), bool(p[1] < 0.01)
        (True, True)
        """
        return self._fitted().novelty(*self._new(X))

    def assess(
        self,
        X: Any,
        *,
        coverage: float | None = None,
        evidence: int | None = None,
        ranks: bool = False,
    ) -> Any:
        """Return the label, probabilities, novelty and status of each object, in one pass.

        The status is "novel" if the novelty p-value is at most `novel_below`, otherwise "ambiguous"
        if no class has a probability of at least `ambiguous_below`, or if more than 1 % of random
        objects of the same size would be as near to known ones, otherwise "known".

        Parameters
        ----------
        X : objects
        coverage : float or None, default=None
            Add the field `set`, the result of `predict_set` for this coverage.
        evidence : int or None, default=None
            Add the field `why`, the result of `explain` with this many known objects.

        Returns
        -------
        structured array (n,)
            With fields `label`, `probabilities`, `novelty`, `far`, `unfit`, `doubt`, `chance` and
            `status`. `novelty` is a p-value, small if the object resembles none of the classes. It
            combines two others: `far` is small if nothing is near, `unfit` if no class fits.
            `doubt` is small if the label can be trusted. `chance` is the share of random objects of
            the same size that are as near to known ones; 0 if sizes do not differ. With `ranks`,
            objects that an early look answers are compared no further: `far` is 1, `novelty` is
            `unfit`, and `chance` depends on their size alone.

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> from krein.datasets import make_protein_families
        >>> X, y = make_protein_families(150, divergence=0.3, random_state=0)
        >>> clf = KreinClassifier("smith-waterman").fit(X, y)
        >>> clf.assess(["GSGSGSGSGSGSGSGSGSGSGSGS"])["status"]
        array(['novel'], dtype='<U9')
        """
        model = self._fitted()
        named = ("novel_below", "ambiguous_below")
        model = replace(
            model, **{name: getattr(self, name, getattr(model, name)) for name in named}
        )
        X, run = self._new(X)
        return model.assess(X, coverage=coverage, evidence=evidence, ranks=ranks, run=run)

    def predict_set(self, X: Any, coverage: float = 0.9, *, by_class: bool = True) -> Any:
        """Return which labels cannot be ruled out: a Boolean array (n, C), in the order of
        `classes_`.

        The set contains the true label for about a share `coverage` of objects from the same source
        as the training objects. A set may contain several labels. If every label could be ruled
        out, it contains the most probable one; `novelty` tells whether any label fits.
        Classifiers other than `KreinClassifier` need `calibrate=True`.

        Parameters
        ----------
        X : objects
        coverage : float, default=0.9
            Between 0 and 1.
        by_class : bool, default=True
            Reach the coverage within each class that has at least 30 held-out objects, and jointly
            over the smaller classes, if they have at least 9. Otherwise reach it over all objects,
            with smaller sets, which may hardly ever contain the label of a rare class.

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> from krein.datasets import make_protein_families
        >>> X, y = make_protein_families(150, random_state=0)
        >>> clf = KreinClassifier("smith-waterman").fit(X[:-1], y[:-1])
        >>> sets = clf.predict_set(X[-1:], coverage=0.99)
        >>> y[-1] in clf.classes_[sets[0]]
        True
        """
        model = self._fitted()
        X, run = self._new(X)
        return model.predict_set(X, coverage, by_class=by_class, run=run)

    def select(
        self, X: Any, fdr: float = 0.1, *, labels: Any = None, novel: bool = False
    ) -> NDArray[np.bool_]:
        """Return a list one can act on: which labels of these objects can be trusted.

        In expectation, at most a share `fdr` of the selected objects have a wrong label (false
        discovery rate), if the objects come from the same source as the training objects. This is
        conformal selection: p-values from held-out objects, and the Benjamini–Hochberg procedure.
        The list depends on all objects in X, so pass all of them in one call. Classifiers other
        than `KreinClassifier` need `calibrate=True`.

        Parameters
        ----------
        X : objects
            Also the path of a file, or a Dask collection: all p-values are computed, and kept in
            memory.
        fdr : float, default=0.1
            Between 0 and 1.
        labels : label or list of labels, default=None
            Select only objects with these predicted labels; the bound holds for this list. Use it
            if some classes do not interest you, such as that of the controls.
        novel : bool, default=False
            Select novel objects instead: at most a share `fdr` of those selected come from a known
            class.

        Returns
        -------
        Boolean array (n,)

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> from krein.datasets import make_protein_families
        >>> X, y = make_protein_families(400, divergence=0.6, random_state=0)
        >>> clf = KreinClassifier("smith-waterman").fit(X[:250], y[:250])
        >>> trusted = clf.select(X[250:], fdr=0.05)
        >>> wrong = clf.predict(X[250:]) != y[250:]
        >>> bool(trusted.mean() > 0.5), bool(wrong[trusted].mean() < 0.1)
        (True, True)
        """
        model = self._fitted()
        X, run = self._new(X)
        return model.select(X, fdr, labels=labels, novel=novel, run=run)

    def explain(self, X: Any, n: int = 3) -> Any:
        """Explain the label of each object; return an array of `Explanation`.

        Each contains the `n` nearest known objects with their values of the measure, the
        contribution of each landmark to the log-odds of the label against the runner-up, and the
        features of the object that counted most.

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> from krein.datasets import make_protein_families
        >>> X, y = make_protein_families(150, random_state=0)
        >>> clf = KreinClassifier("smith-waterman").fit(X[:-1], y[:-1])
        >>> why = clf.explain(X[-1:])[0]
        >>> bool(all(near.label == why.label for near in why.nearest))
        True
        >>> parts = why.baseline + why.contributions.sum() + why.from_features + why.evidence
        >>> bool(abs(parts - why.score) < 1e-9)
        True
        """
        model = self._fitted()
        X, run = self._new(X)
        return model.explain(X, n, run)

    def name_objects(self, names: Any) -> Self:
        """Store the names of the training objects, one per object in order, for use by `explain`.

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> words, labels = ["house", "mouse", "haus", "maus"], ["en", "en", "de", "de"]
        >>> clf = KreinClassifier("levenshtein").fit(words, labels).name_objects(words)
        >>> clf.explain(["louse"], n=2)[0].nearest[1].name
        'mouse'
        """
        self.model_ = self._fitted().with_names(names)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict(X)`, for objects in memory or in a file."""
        found = self.predict(X)
        found = np.concatenate(list(found)) if isinstance(found, Iterator) else np.asarray(found)
        return float(accuracy_score(y, found, sample_weight=sample_weight))

    def _new(self, X: Any) -> tuple[Any, Comparisons]:
        """Return new objects, checked as scikit-learn does, and how to compare them."""
        measure = self._fitted().measure
        # scikit-learn asks that a prediction sets no attribute: one counter serves all
        counter: Counter = self.__dict__.setdefault("_last_call", Counter())
        counter.reset()
        run = replace(self._comparisons(measure), counter=counter)
        return X if is_empty(X) else self._validated(X, measure, reset=False), run

    # -- training objects --------------------------------------------------------------------------

    def _open(self, X: Any, y: Any, sample_weight: Any, measure: Measure | None = None) -> Dataset:
        """Return X as a data set of labelled objects; `measure` is that of an earlier chunk."""
        reset = measure is None
        measure = get_measure(self.measure, self.measure_params) if measure is None else measure
        if in_memory(X, measure):
            if y is None:
                name = type(self).__name__
                raise ValueError(f"{name} requires y to be passed, but the target y is None")
            X = self._validated(X, measure, reset=reset)
            refuse_masked(y, "label")
            y = unframed(y)
            refuse_missing(y)
            y = column_or_1d(y, warn=True)
            if is_empty(X):
                raise ValueError(f"there are no objects for {type(self).__name__} to learn from")
        elif isinstance(y, str):
            X, y = as_source(X, measure, labels=y), None
        if sample_weight is not None and not is_dask(sample_weight):
            refuse_masked(sample_weight, "sample_weight")
            sample_weight = check_weights(sample_weight, None if y is None else len(y))
        return open_data(
            X,
            y,
            sample_weight,
            measure=measure,
            n_jobs=self.n_jobs,
            cache=self.cache,
            verbose=self.verbose,
            symmetrize=self.symmetrize,
        )

    def _survey(self, data: Dataset, classes: Any = None) -> Survey:
        """Survey the labels, and refuse them if no classes can be learned."""
        return check_survey(type(self).__name__, data.survey(), classes)

    def _groups(self, data: Dataset, groups: Any) -> Indices | None:
        """Return the groups that are held out together to calibrate; None if nothing is related.

        Copies are in one group.
        """
        if not getattr(self, "calibrate", True):
            if groups is not None:
                raise ValueError("groups are held out together to calibrate: set calibrate=True")
            return None
        given = check_groups(groups, data.survey().n_objects)
        found = joined_groups(given, first_equal(data.contents()[0]))
        return None if (found == np.arange(len(found))).all() else found

    def _job(self, data: Dataset, classes: NDArray[Any], groups: Indices | None = None) -> Job:
        """Return what this call of `fit` is about."""
        return Job(data, self._comparisons(data.measure), classes, groups)

    def _choose(
        self, job: Job, family: Family, rule: Rule, among: Mask | None = None
    ) -> LandmarkChoice:
        """Choose landmarks for this classifier, of positive weight, `among` (N,) the objects.

        Also sets what is known of the objects from then on.
        """
        chosen = choose_landmarks(
            job.data,
            rule,
            job.run,
            self._rng(),
            classes=job.classes,
            family=family,
            rank=self.rank,
            among=among,
            centre=getattr(self, "centre", "landmarks"),
        )
        self._last_call = Counter()
        self.n_samples_seen_ = job.data.survey().n_objects
        if job.run.measure.accepts == "vectors":
            self.n_features_in_ = np.shape(chosen.landmarks.objects)[1]
        return chosen

    def _class_costs(self, classes: NDArray[Any]) -> Priors:
        """Return the class frequencies as priors, with the costs of errors from the parameter."""
        if self.class_weight is None:
            return Priors()
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(
                    f"class_weight must be 'balanced' or a dict; got {self.class_weight!r}"
                )
            return Priors(costs="balanced")
        names = classes.tolist()
        unknown = [name for name in self.class_weight if name not in names]
        if unknown:
            raise ValueError(f"class_weight names {unknown[0]!r}, which is not among {names}")
        given = np.array([self.class_weight.get(name, 1.0) for name in names], dtype=float)
        if not ((given > 0) & np.isfinite(given)).all():
            raise ValueError(f"class_weight must be positive numbers; got {self.class_weight!r}")
        return Priors(costs=given)


def values_of(
    columns: LandmarkColumns,
    space: LandmarkSpace,
    origin: Array,
    classes: NDArray[Any],
    class_weights: Array | None,
    chunk: Chunk,
    *,
    by_class: bool = False,
    weighted: bool = False,
) -> Costed[FeatureBlock]:
    """Compare a chunk with the landmarks, and return its values, to be kept for several passes.

    Also returns the moments of its coordinates, `weighted` or not; with `by_class`, products are
    separate for each class.
    """
    values, cost = columns.values(chunk)
    codes, weights = codes_of(np.asarray(chunk.labels), classes), chunk.weights
    if class_weights is not None:
        each = class_weights[codes]
        weights = each if weights is None else weights * each
    moments = ClassMoments.of(
        space.coordinates(values),
        codes,
        len(classes),
        origin=origin,
        sample_weight=chunk.weights if weighted else None,
        by_class=by_class,
    )
    return FeatureBlock(values, codes, weights, moments), cost


def mean_values(values: Array, kind: str, weights: Array | None = None) -> Array:
    """Return the mean of values (n, m) over the objects; for dissimilarities, root mean squares."""
    power = 2 if kind == "dissimilarity" else 1
    mean: Array = np.average(values**power, axis=0, weights=weights) ** (1 / power)
    return mean
