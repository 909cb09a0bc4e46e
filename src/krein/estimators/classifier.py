"""What the classifiers share: labels, weights, linear scores, calibration, probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax, logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, column_or_1d

from ..compare import Pairs, SubsetPairs, is_precomputed
from ..compare.matrix import as_matrix
from ..core.calibration import fit_temperature
from ..core.checks import Array, check_labels
from ..core.space import LandmarkSpace
from ..data import Collection, Survey, open_collection, survey
from ..landmarks import Given, Learner, Selection, get_rule, select_landmarks
from ..measures import get_measure
from .base import Codes, LandmarkEstimator, LandmarkSet, calm_blas
from .elsewhere import Chosen, choose, wherever
from .labels import coded, distinct

Scorer = Callable[[Array], Array]
"""Values of objects to the landmarks (n, m) → scores (n, C)."""

_FOLDS = 10


class LandmarkClassifier(ClassifierMixin, LandmarkEstimator):
    """Scores from the values of an object to the landmarks, and what follows from them."""

    class_weight: Any
    multiclass: str
    calibrate: bool

    classes_: NDArray[Any]
    temperature_: float
    """Scores are multiplied by it before they become probabilities; 1 without calibration."""

    @abstractmethod
    def _learn(
        self, space: LandmarkSpace, own: Codes, values: Array, codes: Codes, weights: Array | None
    ) -> Scorer:
        """Return the scores learned from values (n, m) of objects to the landmarks of `space`.

        `own` (m,) are the classes of the landmarks themselves.

        Used where several models are fitted to values that are there already: calibration and
        growing landmarks.
        """

    @abstractmethod
    def _scores(self, values: Array) -> Array:
        """Return the scores (n, C) of the fitted model."""

    @wherever
    def decision_function(self, X: Any) -> Array:
        """Return scores: (n,) for two classes, positive for the second; (n, C) for more."""
        scores = self._map_new(X, self._scores)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @wherever
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the probabilities (n, C)."""
        return self._map_new(X, lambda values: self._calibrated(self._scores(values)))

    @wherever
    def predict_proba(self, X: Any) -> Array:
        """Return the probability (n, C) of each class, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    @wherever
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each object."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    @wherever
    def rank_labels(self, X: Any) -> NDArray[Any]:
        """Return all labels of each object (n, C), the most probable first."""
        order = np.argsort(-self.predict_proba(X), axis=1, kind="stable")
        return self.classes_[order]

    def _log_proba(self, scores: Array) -> Array:
        """Return log-probabilities (n, C): softmax of joint scores, or shares of one-vs-rest."""
        if self.multiclass == "ovr" and scores.shape[1] > 2:
            own = log_expit(scores)
            return own - logsumexp(own, axis=1, keepdims=True)
        return log_softmax(scores, axis=1)

    def _calibrated(self, scores: Array) -> Array:
        return self._log_proba(self.temperature_ * scores)

    def _validated(
        self, X: Any, y: Any, sample_weight: Any, *, classes: Any = None, reset: bool = True
    ) -> tuple[Any, Codes, Array | None, NDArray[Any]]:
        """Return objects, class codes, weights and classes."""
        name = type(self).__name__
        if y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        if self.multiclass not in ("joint", "ovr"):
            raise ValueError(f"multiclass is 'joint' or 'ovr'; got {self.multiclass!r}")
        X = self._checked(X, reset=reset)
        n = _length(X)
        if n == 0:
            raise ValueError(f"there are no objects for {name} to learn from")
        y = check_labels(column_or_1d(y, warn=True), n)
        if y.dtype.kind not in "biuUS":  # whole numbers and strings are classes, whatever they are
            assert_all_finite(y, input_name="y")
            check_classification_targets(y)
        known = distinct(y) if classes is None else np.unique(classes)
        self._refuse_one_class(known)
        codes = coded(y, known)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
            )
            present = np.unique(codes[weights > 0])
            if classes is None and len(present) < 2:
                raise ValueError(f"{name} needs two classes or more with sample_weight above 0")
            if classes is None and weights.sum() - len(present) < 1:
                raise ValueError(
                    f"sample_weight sums to {weights.sum():.3g} for {n} objects: weights count "
                    "objects, so scale them to sum to about as many"
                )
        return X, codes, weights, known

    def _refuse_one_class(self, known: NDArray[Any]) -> None:
        if len(known) < 2:
            raise ValueError(
                f"{type(self).__name__} needs two classes or more; y holds one class: "
                f"{known.tolist()[0]!r}"
            )

    def _elsewhere(self, X: Any, y: Any, sample_weight: Any) -> Collection | None:
        """Return the collection that X is, or None where its objects are in memory."""
        if isinstance(X, np.memmap) and (sample_weight is not None or self._needs_memory()):
            return None  # a map can be treated as an array
        precomputed = is_precomputed(self.measure)
        threads = precomputed or get_measure(self.measure, self.measure_params).releases_gil
        data = open_collection(
            X,
            y,
            precomputed=precomputed,
            threads=threads,
            n_jobs=self.n_jobs,
            cache=None if precomputed else self.cache,
            verbose=self.verbose,
        )
        if data is not None and sample_weight is not None:
            raise ValueError(
                "sample_weight goes with objects in memory; class_weight= weighs classes anywhere"
            )
        return data

    def _needs_memory(self) -> bool:
        """Whether what is asked for needs all objects at hand."""
        return False

    def _surveyed(self, data: Collection, classes: Any = None) -> Survey:
        """Look at the labels of a collection; they are refused where no class can be learned."""
        if self.multiclass not in ("joint", "ovr"):
            raise ValueError(f"multiclass is 'joint' or 'ovr'; got {self.multiclass!r}")
        found = survey(data)
        if found.n_objects == 0:
            raise ValueError(f"there are no objects for {type(self).__name__} to learn from")
        if found.classes.dtype.kind not in "biuUS":
            assert_all_finite(found.classes, input_name="y")
            check_classification_targets(found.classes)
        if classes is None:
            self._refuse_one_class(found.classes)
            return found
        known = np.unique(classes)
        counts = np.zeros(len(known), dtype=int)
        counts[coded(found.classes, known)] = found.counts
        return Survey(found.n_objects, known, counts)

    def _chosen(self, data: Collection, known: Survey) -> Chosen:
        """Choose landmarks of a collection, and note them."""
        self.classes_ = known.classes
        self.n_objects_ = self.n_samples_seen_ = known.n_objects
        chosen = choose(self, data, known)
        self.selection_ = chosen.selection
        return chosen

    def _choose(self, pairs: Pairs, codes: Codes | None, weights: Array | None = None) -> Selection:
        """Choose landmarks for this classifier, among objects of weight above 0."""
        rule = get_rule(self.landmarks, self.n_landmarks)
        learner = Learner(self._learn, self._log_proba, self.rank)
        if weights is None or (weights > 0).all() or isinstance(rule, Given):
            return select_landmarks(rule, pairs, codes, self._rng(), learner)
        counted = np.flatnonzero(weights > 0)
        part = None if codes is None else codes[counted]
        found = rule.select(SubsetPairs(pairs, counted), part, self._rng(), learner)
        return Selection(counted[found.indices], found.details)

    def _class_weights(self, counts: Array) -> Array | None:
        """Return the weight of each class, of which there are `counts` objects."""
        if self.class_weight is None:
            return None
        present = counts > 0
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(f"class_weight is 'balanced' or a dict; got {self.class_weight!r}")
            balanced = counts.sum() / (present.sum() * np.where(present, counts, 1.0))
            return np.where(present, balanced, 1.0)
        names = self.classes_.tolist()
        unknown = [name for name in self.class_weight if name not in names]
        if unknown:
            raise ValueError(f"class_weight names {unknown[0]!r}, which is not among {names}")
        given = np.array([self.class_weight.get(name, 1.0) for name in names], dtype=float)
        if not ((given > 0) & np.isfinite(given)).all():
            raise ValueError(f"class_weight must be positive numbers; got {self.class_weight!r}")
        return given

    def _cross_fit(
        self, landmarks: LandmarkSet, values: Array, codes: Codes, weights: Array | None
    ) -> float:
        """Return the temperature, from scores of objects that the scoring model never saw.

        Ten folds over the values (N, m) that are there, so no pair is compared again. A
        landmark in the held-out fold is left out as a landmark too: a new object is never its
        own landmark.
        """
        space, places = landmarks.space, landmarks.indices

        def learn(held: NDArray[np.bool_]) -> Scorer:
            kept = np.flatnonzero(~held[places])
            if len(kept) == 0:
                kept = np.arange(len(places))
            w = None if weights is None else weights[~held]
            part, own = space.restricted(kept), codes[places[kept]]
            scorer = self._learn(part, own, values[np.ix_(~held, kept)], codes[~held], w)
            return lambda V: scorer(V[:, kept])

        with calm_blas(len(places)):
            return self._held_out(values, codes, weights, learn)

    def _held_out(
        self,
        values: Array,
        codes: Codes,
        weights: Array | None,
        learn: Callable[[NDArray[np.bool_]], Scorer],
        totals: Array | None = None,
    ) -> float:
        """Return the temperature of the scores that `learn` gives without those held out.

        1 where nobody can be. `totals` (C,) is the weight of each class, where there are more
        objects than these.
        """
        folds = _stratified_folds(codes, weights, np.random.default_rng(0), totals)
        if not (folds >= 0).any():
            return 1.0
        scores = np.full((len(codes), len(self.classes_)), np.nan)
        for fold in range(folds.max() + 1):
            held = folds == fold
            scores[held] = learn(held)(values[held])
        fair = folds >= 0
        w = None if weights is None else weights[fair]
        return fit_temperature(scores[fair], codes[fair], self._log_proba, w)


def _length(X: Any) -> int:
    """How many objects; a path names a file of values."""
    return len(as_matrix(X)) if isinstance(X, str) or hasattr(X, "__fspath__") else _num_samples(X)


def _stratified_folds(
    codes: Codes,
    weights: Array | None,
    rng: np.random.Generator,
    totals: Array | None = None,
) -> Codes:
    """Deal the objects of each class out to the folds, in random order, going round.

    Fold −1 is never held out: a class of one object would be absent from what is learned.
    """
    counted = np.ones(len(codes), dtype=bool) if weights is None else weights > 0
    counts = np.bincount(codes[counted], minlength=int(codes.max(initial=0)) + 1)
    fellows = counts[codes] > 1
    if totals is not None:  # others of the class may be elsewhere
        own = 1.0 if weights is None else weights
        fellows |= totals[codes] - own > 1e-9 * totals[codes]
    dealt = np.flatnonzero(counted & fellows)
    order = rng.permutation(dealt)
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.full(len(codes), -1, dtype=np.intp)
    folds[order] = np.arange(len(order)) % min(_FOLDS, max(len(order), 1))
    return folds
