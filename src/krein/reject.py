"""A reject option for any classifier with probabilities: abstain instead of guessing.

An object can be rejected as *ambiguous*, because no class is probable enough, or, if the classifier
detects this, as *novel*, because it does not resemble any known class.

Objects are ranked by confidence, the largest class probability. The accuracy–reject curve shows,
for every coverage, the accuracy on the objects that are left when the least confident are rejected.
AUGRC, the area under the generalised risk–coverage curve (Traub et al. 2024), summarises the curve
in one number: the share of objects that are accepted *and* misclassified, averaged over all
coverages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .core.conformal import status_of
from .core.shapes import Array


def _right(y: Any, probabilities: Any, classes: Any) -> tuple[NDArray[np.bool_], Array]:
    """Return whether each prediction is correct, and its confidence."""
    P = np.asarray(probabilities, dtype=float)
    y = np.asarray(y)
    if P.ndim != 2 or len(P) != len(y):
        raise ValueError(f"got {len(y)} labels, but probabilities of shape {P.shape}")
    if len(P) == 0:
        raise ValueError("there are no objects to rank by confidence")
    names = np.unique(y) if classes is None else np.asarray(classes)
    if len(names) != P.shape[1]:
        raise ValueError(
            f"{P.shape[1]} columns of probabilities for {len(names)} classes; pass classes= to "
            f"name the class of each column"
        )
    return names[np.argmax(P, axis=1)] == y, P.max(axis=1)


@dataclass(frozen=True)
class AccuracyRejectCurve:
    """Accuracy and threshold at each coverage, in order of increasing coverage."""

    coverage: Array
    accuracy: Array
    threshold: Array


def accuracy_reject_curve(y: Any, probabilities: Any, classes: Any = None) -> AccuracyRejectCurve:
    """Return the accuracy on the accepted objects for every confidence threshold.

    `probabilities` (n, C) has one column per class in `classes`, which defaults to the sorted
    labels. Objects of equal confidence are accepted or rejected together. O(n log n).

    Examples
    --------
    >>> curve = accuracy_reject_curve([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> curve.accuracy.round(2)
    array([1.  , 1.  , 0.67])
    """
    right, confidence = _right(y, probabilities, classes)
    order = np.argsort(-confidence, kind="stable")
    right, confidence = right[order], confidence[order]
    last = np.flatnonzero(np.append(np.diff(confidence) != 0, True))  # the last of each run of ties
    accepted = last + 1
    return AccuracyRejectCurve(
        accepted / len(right), np.cumsum(right)[last] / accepted, confidence[last]
    )


def augrc(y: Any, probabilities: Any, classes: Any = None) -> float:
    """Return the area under the generalised risk–coverage curve: 0 is best, ½ worst. O(n log n).

    The curve plots the share of all objects that are accepted and misclassified against the
    coverage. It starts at (0, 0) and is linear between thresholds, so objects of equal confidence
    share their risk.

    Examples
    --------
    >>> augrc([0, 1], [[0.9, 0.1], [0.4, 0.6]])
    0.0
    """
    curve = accuracy_reject_curve(y, probabilities, classes)
    coverage = np.append(0.0, curve.coverage)
    risk = np.append(0.0, curve.coverage * (1 - curve.accuracy))
    return float(np.diff(coverage) @ (risk[1:] + risk[:-1])) / 2  # NumPy 1.26 has no trapezoid


def threshold_for_coverage(probabilities: Any, coverage: float) -> float:
    """Return the largest threshold that accepts at least this share of the objects.

    Examples
    --------
    >>> from krein.reject import threshold_for_coverage
    >>> threshold_for_coverage([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], 2 / 3)
    0.8
    """
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage must be above 0 and at most 1; got {coverage}")
    confidence = np.sort(np.asarray(probabilities, dtype=float).max(axis=1))[::-1]
    return float(confidence[max(1, int(np.ceil(coverage * len(confidence) - 1e-9))) - 1])


BOUNDED_THRESHOLDS = np.array(
    [0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999]
)
"""Candidate thresholds for a bound on the risk, fixed before the objects are seen."""


def threshold_for_risk(
    y: Any, probabilities: Any, risk: float, classes: Any = None, *, confidence: float | None = None
) -> float:
    """Return the smallest threshold at which the error rate on accepted objects is at most `risk`.

    Pass held-out objects, to which the model was not fitted. If no threshold achieves the risk, the
    result is infinite: everything is rejected.

    Parameters
    ----------
    y, probabilities, classes
        True labels, probabilities (n, C) and the classes of their columns, as in
        `accuracy_reject_curve`.
    risk : float
        Maximum share of errors among accepted objects.
    confidence : float or None, default=None
        None achieves the risk on these objects. This is optimistic for new objects, because the
        threshold was selected on the same data. With a confidence such as 0.95, the risk on *new*
        objects is at most `risk` with that probability, over random draws of independent objects.
        For each of a fixed list of J thresholds, k errors among n accepted objects give an upper
        bound on the risk: the p for which Bin(n, p) ≤ k has probability (1 − confidence)/J (Clopper
        & Pearson 1934, with Bonferroni correction for the selection). The smallest threshold whose
        bound is at most `risk` is returned. This needs about log(J / (1 − confidence)) / risk
        accepted objects.

    Examples
    --------
    >>> from krein.reject import threshold_for_risk
    >>> threshold_for_risk([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], risk=0.0)
    0.8
    """
    if not 0 <= risk < 1:
        raise ValueError(f"risk must be at least 0 and below 1; got {risk}")
    if confidence is not None:
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1; got {confidence}")
        right, sure = _right(y, probabilities, classes)
        return _bounded_threshold(right, sure, risk, confidence)
    curve = accuracy_reject_curve(y, probabilities, classes)
    kept = np.flatnonzero(1 - curve.accuracy <= risk + 1e-12)
    return float(curve.threshold[kept[-1]]) if len(kept) else float("inf")


def _bounded_threshold(
    right: NDArray[np.bool_], sure: Array, risk: float, confidence: float
) -> float:
    from scipy.stats import binom

    level = (1 - confidence) / len(BOUNDED_THRESHOLDS)
    for threshold in BOUNDED_THRESHOLDS:
        accepted = sure >= threshold
        n, k = int(accepted.sum()), int((accepted & ~right).sum())
        if n and binom.cdf(k, n, risk) <= level:  # the bound on the risk is at most `risk`
            return float(threshold)
    return float("inf")


class RejectingClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier that returns `reject_label` for objects that it is not confident about.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        The classifier. `fit` fits a clone of it, or uses it unchanged if `prefit=True`.
    threshold : float or None, default=None
        Accept objects whose largest probability is at least this. Set exactly one of `threshold`,
        `coverage` and `risk`.
    coverage : float or None, default=None
        Choose the threshold so that at least this share of the objects is accepted.
    risk : float or None, default=None
        Choose the threshold so that at most this share of the accepted objects is misclassified.
    confidence : float or None, default=None
        None achieves `risk` on the given objects, which is optimistic for new ones. With a value
        such as 0.95, the risk on new objects is at most `risk` with that probability. This holds
        exactly if `prefit=True` and the estimator has not seen (X, y), and approximately with
        cross-validation.
    novel_below : float or None, default=None
        Also reject objects that do not resemble any class: those with a novelty p-value of at most
        this. The estimator must have an `assess` method, as `KreinClassifier` does.
    reject_label : default=None
        What `predict` returns for a rejected object. It must not be a class. None uses −1 for
        numeric labels and "rejected" for others. If its type differs from that of the labels,
        `predict` returns an array of dtype object.
    prefit : bool, default=False
        Whether `estimator` is already fitted. If so, `fit` uses (X, y) only to choose the
        threshold.
    cv : int, default=5
        Number of cross-validation folds. Without `prefit`, the threshold for `coverage` or `risk`
        is chosen on out-of-fold probabilities.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : array of shape (C,)
        The class labels, without `reject_label`.
    threshold_ : float
        Objects whose largest probability is below this are rejected.

    See Also
    --------
    accuracy_reject_curve : Return the accuracy on the accepted objects for every threshold.
    krein.KreinClassifier : Classifier that also detects objects of unknown classes.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import IKFD
    >>> from krein.reject import RejectingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-1, 1, (100, 1)), rng.normal(1, 1, (100, 1))])
    >>> y = np.repeat(["left", "right"], 100)
    >>> clf = RejectingClassifier(IKFD("elm", random_state=0), threshold=0.9).fit(X, y)
    >>> clf.predict([[-3.0], [0.05], [3.0]])
    array(['left', 'rejected', 'right'], dtype='<U8')
    """

    threshold_: float
    classes_: NDArray[Any]

    def __init__(
        self,
        estimator: Any,
        *,
        threshold: float | None = None,
        coverage: float | None = None,
        risk: float | None = None,
        confidence: float | None = None,
        novel_below: float | None = None,
        reject_label: Any = None,
        prefit: bool = False,
        cv: int = 5,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.coverage = coverage
        self.risk = risk
        self.confidence = confidence
        self.novel_below = novel_below
        self.reject_label = reject_label
        self.prefit = prefit
        self.cv = cv

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator and choose the threshold."""
        from sklearn.model_selection import cross_val_predict

        given = [self.threshold, self.coverage, self.risk]
        if sum(value is not None for value in given) != 1:
            raise ValueError("set exactly one of threshold, coverage and risk")
        if self.confidence is not None and self.risk is None:
            raise ValueError("confidence needs risk: it is the confidence of the bound on the risk")
        self.estimator_ = self.estimator if self.prefit else clone(self.estimator).fit(X, y)
        model = getattr(self.estimator_, "model_", None)
        if self.novel_below is not None and getattr(model, "reference", None) is None:
            raise ValueError(
                f"{type(self.estimator).__name__} does not recognise novel objects; use a "
                f"KreinClassifier or calibrate=True, or leave out novel_below="
            )
        self.classes_ = self.estimator_.classes_
        if self._reject_label() in self.classes_.tolist():
            raise ValueError(
                f"the reject label {self._reject_label()!r} is also a class; choose another one "
                f"with reject_label="
            )
        if self.threshold is not None:
            if not 0 <= self.threshold <= 1:
                raise ValueError(
                    f"threshold must be a probability from 0 to 1; got {self.threshold}"
                )
            self.threshold_ = float(self.threshold)
            return self
        if self.prefit:
            P = self.estimator_.predict_proba(X)
        else:
            P = cross_val_predict(clone(self.estimator), X, y, cv=self.cv, method="predict_proba")
        if self.coverage is not None:
            self.threshold_ = threshold_for_coverage(P, self.coverage)
        else:
            assert self.risk is not None
            self.threshold_ = threshold_for_risk(
                y, P, self.risk, self.classes_, confidence=self.confidence
            )
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each object, or the reject label."""
        P, status = self._assessed(X)
        labels = self.classes_[np.argmax(P, axis=1)]
        rejected = np.asarray(self._reject_label())
        if (labels.dtype.kind in "US") != (rejected.dtype.kind in "US") or labels.dtype == bool:
            labels = labels.astype(object)  # otherwise NumPy would turn the labels into strings
        elif labels.dtype.kind in "US":
            labels = labels.astype(np.result_type(labels, rejected))
        labels[status != "known"] = self._reject_label()
        return labels

    def rejects(self, X: Any) -> NDArray[np.bool_]:
        """Return whether each object is rejected."""
        return self.status(X) != "known"

    def status(self, X: Any) -> NDArray[np.str_]:
        """Return the status of each object: "known" if accepted, otherwise "ambiguous" (no class is
        probable enough) or "novel" (it does not resemble any class).
        """
        return self._assessed(X)[1]

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Return the estimator's probabilities, including those of rejected objects."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    def _assessed(self, X: Any) -> tuple[Array, NDArray[np.str_]]:
        """Return probabilities and status from one pass, because comparisons are expensive."""
        if self.novel_below is None:
            P = self.predict_proba(X)
            return P, status_of(P.max(axis=1), np.ones(len(P)), self.threshold_, -1.0)
        check_is_fitted(self)
        found = self.estimator_.assess(X)
        P, p, by_chance = found["probabilities"], found["novelty"], found["chance"]
        return P, status_of(P.max(axis=1), p, self.threshold_, self.novel_below, by_chance)

    def _reject_label(self) -> Any:
        if self.reject_label is not None:
            return self.reject_label
        return -1 if self.classes_.dtype.kind in "iuf" else "rejected"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
