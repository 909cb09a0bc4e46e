"""Strong baselines: the methods that you would use instead of krein.

Each is fitted to training objects, given by their indices in a store of pairs, and predicts for new
ones. They are not public estimators, but a standard of comparison for the library's own.

`FeatureBaseline` makes no comparisons, so it shows whether a measure is worth its comparisons: it
is look zero alone, or gradient boosting for vectors.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..compare import Pairs
from ..core.shapes import Array, Indices
from ..core.space import Conversion, correct
from ..estimators.lookzero import fit_alone
from ..landmarks import get_rule, select_landmarks
from ..measures import Measure, take
from .heldout import log_losses
from .store import columns


class Baseline:
    """A classifier on pairs; `landmarks_` are the training objects that a new one is compared with.

    A subclass has `fit(X, y)` for training objects X with labels y, and `predict_proba(X)` for new
    ones, which returns probabilities (n, C).
    """

    title: str
    """A short description of the model."""
    needs_all = False
    """Whether it needs all pairs of training objects."""
    takes_groups = False
    """Whether `fit` also takes the groups of the objects."""
    landmarks_: Indices
    comparisons_to_fit_: int

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    def _all_values(self, X: Indices) -> Array:
        """Return the values among all training objects."""
        self.train_, self.landmarks_ = X, np.arange(len(X))
        pairs = Pairs(self.measure, X)
        values = pairs.block(self.landmarks_, self.landmarks_)
        self.comparisons_to_fit_ = pairs.evaluations
        return values

    def _new_values(self, X: Indices) -> Array:
        """Return the values of new objects to the landmarks."""
        pairs = Pairs(self.measure, X, self.train_[self.landmarks_])
        return pairs.block(np.arange(len(X)), np.arange(len(self.landmarks_)))


class ClippedSVM(Baseline):
    """SVM on the training matrix without its negative eigenvalues; new rows are mapped in the same
    way.

    Three inner folds choose C from `grid`. Probabilities are calibrated on the scores of five inner
    folds, with Platt's sigmoid for two classes and a temperature for more.
    """

    needs_all = True
    title = "SVM on the clipped matrix, C by inner folds"
    grid = (1.0, 10.0, 100.0)

    def fit(self, X: Indices, y: NDArray[Any]) -> Self:
        """Clip, choose C, calibrate."""
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.model_selection import GridSearchCV, StratifiedKFold
        from sklearn.svm import SVC

        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            alone = classes.tolist()[counts.argmin()]
            raise ValueError(
                f"svm-clip calibrates on inner folds, but class {alone!r} has one training object; "
                f"leave out the class or the model"
            )
        values = self._all_values(X)
        self.conversion_ = Conversion.of(values, self.measure.kind)
        S = self.conversion_.similarities(values)
        clipped = correct((S + S.T) / 2, "clip")
        # C must not depend on the unit of the measure
        self.scale_ = float(np.trace(clipped.matrix) / len(S)) or 1.0
        self.P_ = clipped.P
        K = clipped.matrix / self.scale_
        three, five = (
            StratifiedKFold(min(k, int(counts.min())), shuffle=True, random_state=0) for k in (3, 5)
        )
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": self.grid}, cv=three).fit(K, y)
        svm = SVC(kernel="precomputed", C=search.best_params_["C"])
        # use the better of the two: two classes need an offset, which a temperature does not have
        method = "sigmoid" if len(classes) == 2 else "temperature"
        self.model_ = CalibratedClassifierCV(svm, method=method, ensemble=False, cv=five)
        self.model_.fit(K, y)
        return self

    def predict_proba(self, X: Indices) -> Array:
        """Return calibrated probabilities."""
        K = self.conversion_.similarities(self._new_values(X)) @ self.P_ / self.scale_
        return np.asarray(self.model_.predict_proba(K))


class NearestNeighbours(Baseline):
    """The k most similar training objects vote; leave-one-out chooses k.

    Values are ranked without any transformation. p_c = (1 − ε) votes_c / k + ε share_c is never 0;
    k maximises the accuracy, and ε minimises the log-loss.
    """

    needs_all = True
    title = "nearest neighbours, k by leave-one-out"
    grid = (1, 3, 5, 7, 9, 15, 25)
    smoothing = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)

    def fit(self, X: Indices, y: NDArray[Any]) -> Self:
        """Choose k."""
        values = self._all_values(X)
        self.codes_ = np.unique(y, return_inverse=True)[1]
        self.sign_ = 1.0 if self.measure.kind == "dissimilarity" else -1.0
        self.shares_ = np.bincount(self.codes_) / len(y)
        apart = self.sign_ * values
        np.fill_diagonal(apart, np.inf)  # no object is its own neighbour
        sizes = [k for k in self.grid if k < len(y)] or [1]
        right = [np.mean(self._proba(apart, k).argmax(axis=1) == self.codes_) for k in sizes]
        self.k_ = sizes[int(np.argmax(right))]
        losses = [
            log_losses(self._proba(apart, self.k_, epsilon), self.codes_).mean()
            for epsilon in self.smoothing
        ]
        self.epsilon_ = self.smoothing[int(np.argmin(losses))]
        return self

    def predict_proba(self, X: Indices) -> Array:
        """Return smoothed shares of the votes."""
        return self._proba(self.sign_ * self._new_values(X), self.k_, self.epsilon_)

    def _proba(self, apart: Array, k: int, epsilon: float = 0.001) -> Array:
        nearest = np.argpartition(apart, k - 1, axis=1)[:, :k]
        votes = np.zeros((len(apart), len(self.shares_)))
        np.add.at(votes, (np.arange(len(apart))[:, None], self.codes_[nearest]), 1.0)
        return (1 - epsilon) * votes / k + epsilon * self.shares_


class LandmarkLogistic(Baseline):
    """Logistic regression on standardised values to landmarks, at the same cost as our own models.

    The rule chooses the landmarks; for "auto", which needs a model, that model is a Fisher
    discriminant.
    """

    def __init__(
        self, measure: Measure, landmarks: Any, n_landmarks: int | None, random_state: int
    ) -> None:
        super().__init__(measure)
        self.landmarks, self.n_landmarks = landmarks, n_landmarks
        self.random_state = random_state
        rule = landmarks if isinstance(landmarks, str) else "the same"
        self.title = f"logistic regression on values to {rule} landmarks"

    def fit(self, X: Indices, y: NDArray[Any]) -> Self:
        """Choose landmarks, standardise, fit."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        rule = get_rule(self.landmarks, self.n_landmarks)
        codes = np.unique(y, return_inverse=True)[1]
        rng = np.random.default_rng(self.random_state)
        pairs = Pairs(self.measure, X)
        found = select_landmarks(rule, pairs, codes, rng)
        self.train_, self.landmarks_, values = X, found.indices, found.values
        if values is None:
            core = pairs.block(found.indices, found.indices)
            values = columns(pairs, found.indices, known=core)
        self.comparisons_to_fit_ = pairs.evaluations
        self.model_ = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
        self.model_.fit(values, y)
        return self

    def predict_proba(self, X: Indices) -> Array:
        """Return probabilities from the values to the landmarks."""
        return np.asarray(self.model_.predict_proba(self._new_values(X)))


# Features that need no comparisons


class FeatureBaseline(Baseline):
    """Look zero alone: a classifier of the objects themselves, without comparisons.

    Vectors have no look zero; they are classified by gradient boosting.
    """

    comparisons_to_fit_ = 0
    comparisons_ = 0.0
    title = "features of the objects (look zero), no comparisons"

    def __init__(self, measure: Measure, objects: Any, random_state: int) -> None:
        super().__init__(measure)
        self.random_state = random_state
        self.landmarks_ = np.empty(0, dtype=np.intp)
        self.vectors_: Array | None = None
        if are_vectors(objects):
            self.vectors_ = np.asarray(objects, dtype=np.float64)
            self.title = "gradient boosting on the vectors, no comparisons"

    def fit(self, X: Indices, y: NDArray[Any]) -> Self:
        """Fit to the contents of training objects; nothing is learned from any others."""
        if self.vectors_ is not None:
            self.model_ = _boosted(self.vectors_[X], y, self.random_state)
            return self
        classes, codes = np.unique(y, return_inverse=True)
        self.head_ = fit_alone(self.measure, X, codes, len(classes))
        return self

    def predict_proba(self, X: Indices) -> Array:
        """Return probabilities."""
        if self.vectors_ is not None:
            return np.asarray(self.model_.predict_proba(self.vectors_[X]))
        assert self.head_ is not None
        scores, _ = self.head_.look(self.measure.contents(X))
        return np.exp(self.head_.to_log_proba(scores))


def have_features(pairs: Pairs) -> bool:
    """Whether objects can be classified without comparisons."""
    contents = pairs.measure.contents(pairs.objects)
    if contents is None:
        return False
    some = take(contents, np.arange(min(len(contents), 2)))
    found = pairs.measure.feature_map(some, np.random.default_rng(0))
    return found is not None or are_vectors(pairs.objects)


def are_vectors(objects: Any) -> bool:
    """Whether objects are the rows of a matrix of numbers."""
    return isinstance(objects, np.ndarray) and objects.dtype.kind in "biuf" and objects.ndim == 2


def _boosted(vectors: Array, y: NDArray[Any], seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    # a tenth is held out for early stopping, if every class can spare one
    enough = bool(np.unique(y, return_counts=True)[1].min() >= 10)
    model = HistGradientBoostingClassifier(
        max_iter=300 if enough else 100, early_stopping=enough, random_state=seed
    )
    with threadpool_limits(1):  # on a busy machine, OpenMP threads wait for each other
        return model.fit(vectors, y)
