"""Baselines from scikit-learn, on the same folds.

All use similarities (n, N) to the training objects; distances are squared and centred on these.
C and k are chosen by three-fold cross-validation within the training objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from krein.core.space import NystromMatrix, correct, landmark_basis
from krein.landmarks import MEB
from krein.landmarks.base import given_pairs

INNER = StratifiedKFold(3, shuffle=True, random_state=0)


class CorrectedSVC(ClassifierMixin, BaseEstimator):
    """A support vector machine on the matrix corrected to be psd; new rows get the same map.

    With "flip", this is the Krein SVM of Loosli et al. 2016.
    """

    def __init__(self, how: str = "clip") -> None:
        self.how = how

    def fit(self, K: Any, y: Any) -> Self:
        """Correct, scale to unit mean diagonal, choose C."""
        self.corrected_ = correct(K, self.how)  # type: ignore[arg-type]
        self.unit_ = float(np.trace(self.corrected_.matrix)) / len(K) or 1.0
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 1, 10, 100]}, cv=INNER)
        self.model_ = search.fit(self.corrected_.matrix / self.unit_, y)
        self.classes_ = self.model_.classes_
        self.comparisons_ = len(K)  # the map needs the whole row
        return self

    def predict(self, k: Any) -> Any:
        """Predict from similarities (n, N) as they are."""
        # a shift K + cI only changes the diagonal, so rows of new objects stay as they are
        new = k if self.how == "shift" else self.corrected_.map_new(k)
        return self.model_.predict(new / self.unit_)


class LowRankSVC(ClassifierMixin, BaseEstimator):
    """A linear SVM on the corrected Nyström matrix of MEB's landmarks, linear in N.

    K̃ = Q A Qᵀ with eigenvectors Q = B P. Clip, flip and shift replace A by f(A); an object's
    coordinates are then b(x) P √f(A), for training and new objects alike (after Gisbrecht & Schleif
    2015, *Metric and non-metric proximity transformations at linear costs*). An SVM on the flipped
    matrix with this map is the Krein SVM of Loosli et al. 2016.
    """

    def __init__(self, how: str = "clip") -> None:
        self.how = how

    def fit(self, K: Any, y: Any) -> Self:
        """Correct, scale to unit mean square, choose C."""
        self.columns_ = _meb(K, y)
        basis = landmark_basis(K[np.ix_(self.columns_, self.columns_)])
        eigen = NystromMatrix(K[:, self.columns_], basis).eigen
        A = eigen.values
        f = {"clip": np.maximum(A, 0), "flip": np.abs(A), "shift": A - min(A.min(), 0.0)}[self.how]
        self.map_ = basis.T @ eigen.P * np.sqrt(f)
        self.map_ /= np.sqrt(np.square(K[:, self.columns_] @ self.map_).sum(axis=1).mean()) or 1.0
        search = GridSearchCV(SVC(kernel="linear"), {"C": [0.1, 1, 10, 100]}, cv=INNER)
        self.model_ = search.fit(K[:, self.columns_] @ self.map_, y)
        self.classes_ = self.model_.classes_
        self.comparisons_ = len(self.columns_)
        return self

    def predict(self, k: Any) -> Any:
        """Predict from similarities (n, N)."""
        return self.model_.predict(k[:, self.columns_] @ self.map_)


class KreinRidge(ClassifierMixin, BaseEstimator):
    """Ridge regression in the Krein space, one class against the rest (Oglic & Gärtner 2018).

    The penalty is λ times the sum of the squared norms of the positive and the negative part of f.
    With K = U diag(d) Uᵀ, the coefficients are U diag(sign d / (|d| + λ)) Uᵀ y, and the fitted
    values U diag(|d| / (|d| + λ)) Uᵀ y; λ is chosen by their leave-one-out errors, in closed form.
    """

    def fit(self, K: Any, y: Any) -> Self:
        """Choose λ, relative to the mean of |d|."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        Y = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self.offset_ = Y.mean(axis=0)
        Y = Y - self.offset_
        d, U = self._eigen(K, y)
        found = []
        for ridge in np.abs(d).mean() * np.logspace(-3, 3, 13):
            kept = np.abs(d) / (np.abs(d) + ridge)
            left_out = (Y - U * kept @ (U.T @ Y)) / (1 - np.square(U) @ kept)[:, None]
            found.append((float(np.square(left_out).sum()), float(ridge)))
        self.ridge_ = min(found)[1]
        self.dual_coef_ = self._dual(d, U, Y)
        self.comparisons_ = len(self.dual_coef_)
        return self

    def _eigen(self, K: Any, y: Any) -> Any:
        self.columns_ = np.arange(len(K))
        return np.linalg.eigh((K + K.T) / 2)

    def _dual(self, d: Any, U: Any, Y: Any) -> Any:
        return U * (np.sign(d) / (np.abs(d) + self.ridge_)) @ (U.T @ Y)

    def predict(self, k: Any) -> Any:
        """Predict from similarities (n, N)."""
        scores = k[:, self.columns_] @ self.dual_coef_ + self.offset_
        return self.classes_[scores.argmax(axis=1)]


class LowRankKreinRidge(KreinRidge):
    """The same on the Nyström matrix of MEB's landmarks, linear in N (Oglic & Gärtner 2019).

    K̃ = U diag(d) Uᵀ with U = C S from the landmark columns C: an object's values are
    k(x, L) S diag(|d| / (|d| + λ)) Uᵀ y.
    """

    def _eigen(self, K: Any, y: Any) -> Any:
        self.columns_ = _meb(K, y)
        basis = landmark_basis(K[np.ix_(self.columns_, self.columns_)])
        nystrom = NystromMatrix(K[:, self.columns_], basis)
        self.map_ = basis.T @ nystrom.eigen.P
        return nystrom.eigenvalues, nystrom.eigenvectors()

    def _dual(self, d: Any, U: Any, Y: Any) -> Any:
        return self.map_ * (np.abs(d) / (np.abs(d) + self.ridge_)) @ (U.T @ Y)


class Neighbours(ClassifierMixin, BaseEstimator):
    """The k most similar training objects."""

    def fit(self, K: Any, y: Any) -> Self:
        """Choose k."""
        self.own_ = np.diag(K).copy()
        search = GridSearchCV(
            KNeighborsClassifier(metric="precomputed"), {"n_neighbors": [1, 3, 5]}, cv=INNER
        )
        self.model_ = search.fit(self._distances(K), y)
        self.classes_ = self.model_.classes_
        self.comparisons_ = len(K)
        return self

    def _distances(self, K: Any) -> Any:
        # d² = k_xx + k_yy − 2 k_xy up to a constant per row, which does not change the order: if
        # similarities were computed from distances, the nearest neighbours are the same
        D = self.own_ - 2 * K
        return D - D.min(axis=1, keepdims=True)

    def predict_proba(self, k: Any) -> Any:
        """Return the share of each class among the neighbours."""
        return self.model_.predict_proba(self._distances(k))


class RowsLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression on standardised similarities, to all objects or to landmarks only."""

    def __init__(self, landmarks: str = "all") -> None:
        self.landmarks = landmarks

    def fit(self, K: Any, y: Any) -> Self:
        """Fit with scikit-learn's default C."""
        self.columns_ = np.arange(len(K)) if self.landmarks == "all" else _meb(K, y)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        self.model_ = model.fit(K[:, self.columns_], y)
        self.classes_ = self.model_[-1].classes_
        self.comparisons_ = len(self.columns_)
        return self

    def predict_proba(self, k: Any) -> Any:
        """Return probabilities from similarities (n, N)."""
        return self.model_.predict_proba(k[:, self.columns_])


class NystroemLogistic(ClassifierMixin, BaseEstimator):
    """scikit-learn's Nystroem on as many random landmarks as MEB finds, and logistic regression.

    `Nystroem` expects a kernel function of two objects: here an object is its row of similarities,
    with its index appended. On an indefinite kernel, it silently returns features of |K|.
    """

    def fit(self, K: Any, y: Any) -> Self:
        """Fit with scikit-learn's default parameters."""
        n = len(_meb(K, y))
        self.map_ = Nystroem(kernel=_row_and_place, n_components=n, random_state=0)
        Z = self.map_.fit_transform(_with_place(K, np.arange(len(K))))
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        self.model_ = model.fit(Z, y)
        self.classes_ = self.model_[-1].classes_
        self.comparisons_ = n
        return self

    def predict_proba(self, k: Any) -> Any:
        """Return probabilities from similarities (n, N)."""
        Z = self.map_.transform(_with_place(k, np.full(len(k), -1)))
        return self.model_.predict_proba(Z)


def _with_place(K: Any, place: Any) -> Any:
    return np.column_stack([K, place])


def _row_and_place(a: Any, b: Any) -> float:
    """Return the similarity of the object with row `a` to the training object `b`."""
    return float(a[int(b[-1])])


def _meb(K: Any, y: Any) -> Any:
    codes = np.unique(y, return_inverse=True)[1]
    return MEB().select(given_pairs(K), codes, np.random.default_rng(0)).indices


class Baseline(NamedTuple):
    """A method and its displayed name."""

    title: str
    build: Callable[[], BaseEstimator]


BASELINES = {
    "svc:clip": Baseline("SVC, clipped", lambda: CorrectedSVC("clip")),
    "svc:flip": Baseline("Krein SVC (flipped)", lambda: CorrectedSVC("flip")),
    "svc:shift": Baseline("SVC, shifted", lambda: CorrectedSVC("shift")),
    "krein-ridge": Baseline("Krein ridge regression", KreinRidge),
    "krein-ridge:meb": Baseline("Krein ridge regression, MEB landmarks", LowRankKreinRidge),
    "svc:clip:meb": Baseline("SVC, clipped, MEB landmarks", lambda: LowRankSVC("clip")),
    "svc:flip:meb": Baseline("Krein SVC (flipped), MEB landmarks", lambda: LowRankSVC("flip")),
    "svc:shift:meb": Baseline("SVC, shifted, MEB landmarks", lambda: LowRankSVC("shift")),
    "knn": Baseline("k-NN", Neighbours),
    "logistic": Baseline("logistic regression, all columns", RowsLogistic),
    "logistic:meb": Baseline("logistic regression, MEB's columns", lambda: RowsLogistic("meb")),
    "nystroem": Baseline("Nystroem + logistic regression", NystroemLogistic),
}
