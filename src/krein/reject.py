"""A reject option for any classifier with probabilities: when to say "I do not know".

An object may be rejected as *ambiguous*, because of doubt between classes, or, if the classifier
can tell, as *novel*, because it resembles none of them.

Objects are ranked by confidence, the largest probability of a class. Rejecting the least
confident gives, for every coverage, the accuracy on the rest: the accuracy–reject curve. AUGRC, the
area under the generalised risk–coverage curve (Traub et al. 2024), summarises it in one number: the
share of objects that are accepted *and* wrong, averaged over all coverages.
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

from .core.novelty import status_of

Array = NDArray[np.float64]


def _right(y: Any, probabilities: Any, classes: Any) -> tuple[NDArray[np.bool_], Array]:
    """Return whether each prediction is correct, and its confidence."""
    P = np.asarray(probabilities, dtype=float)
    y = np.asarray(y)
    if P.ndim != 2 or len(P) != len(y):
        raise ValueError(f"{len(y)} labels for probabilities of shape {P.shape}")
    if len(P) == 0:
        raise ValueError("there are no objects to rank by confidence")
    names = np.unique(y) if classes is None else np.asarray(classes)
    if len(names) != P.shape[1]:
        raise ValueError(
            f"{P.shape[1]} columns of probabilities for {len(names)} classes; name them: classes="
        )
    return names[np.argmax(P, axis=1)] == y, P.max(axis=1)


@dataclass(frozen=True)
class AccuracyRejectCurve:
    """Coverage with the corresponding accuracy and threshold, from few accepted objects to all."""

    coverage: Array
    accuracy: Array
    threshold: Array


def accuracy_reject_curve(y: Any, probabilities: Any, classes: Any = None) -> AccuracyRejectCurve:
    """Return the accuracy on the accepted objects for every threshold on the confidence.

    `probabilities` (n, C) has one column per class in `classes`, by default the sorted labels.
    Objects of equal confidence are accepted or rejected together. O(n log n).

    Examples
    --------
    >>> curve = accuracy_reject_curve([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> curve.accuracy.round(2)
    array([1.  , 1.  , 0.67])
    """
    right, confidence = _right(y, probabilities, classes)
    order = np.argsort(-confidence, kind="stable")
    right, confidence = right[order], confidence[order]
    last = np.flatnonzero(np.append(np.diff(confidence) != 0, True))  # the last of equals
    accepted = last + 1
    return AccuracyRejectCurve(
        accepted / len(right), np.cumsum(right)[last] / accepted, confidence[last]
    )


def augrc(y: Any, probabilities: Any, classes: Any = None) -> float:
    """Return the area under the generalised risk–coverage curve: 0 is best, ½ worst. O(n log n).

    The curve shows the share of all objects that are accepted and wrong against the coverage. It
    starts at (0, 0) and is straight between thresholds, so that objects of equal confidence share
    their risk.

    Examples
    --------
    >>> augrc([0, 1], [[0.9, 0.1], [0.4, 0.6]])
    0.0
    """
    curve = accuracy_reject_curve(y, probabilities, classes)
    coverage = np.append(0.0, curve.coverage)
    risk = np.append(0.0, curve.coverage * (1 - curve.accuracy))
    return float(np.trapezoid(risk, coverage))


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
    """Return the smallest threshold at which at most this share of the accepted objects is wrong.

    Pass objects that the model was not fitted to. If no threshold meets the risk, the result is
    infinite: everything is rejected.

    Parameters
    ----------
    y, probabilities, classes
        True labels, probabilities (n, C) and the classes of their columns, as in
        `accuracy_reject_curve`.
    risk : float
        Maximum share of errors among accepted objects.
    confidence : float or None, default=None
        None meets the risk on these objects, which is optimistic for others: the threshold was
        chosen among many because it did well here. With a confidence, say 0.95, the risk on *new*
        objects is at most `risk` with that probability, over the draw of independent objects. For
        each of a fixed list of J thresholds, k errors among n accepted objects bound the risk by
        the p for which Bin(n, p) ≤ k has probability (1 − confidence)/J (Clopper & Pearson 1934,
        with Bonferroni's correction for the choice); the smallest threshold with a bound of at most
        `risk` is returned. About log(J / (1 − confidence)) / risk accepted objects are needed.

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
    """A classifier that returns `reject_label` if it is not confident enough.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        Fitted by `fit`, or used unchanged if `prefit`.
    threshold : float or None, default=None
        Accept objects whose largest probability is at least this.
    coverage : float or None, default=None
        Alternatively, choose the threshold so that at least this share of the objects is accepted.
    risk : float or None, default=None
        Alternatively, choose it so that at most this share of the accepted objects is wrong.
    confidence : float or None, default=None
        None meets `risk` on the given objects, which is optimistic for new ones. With 0.95, say,
        the risk on new objects is at most `risk` with that probability: exactly if `prefit` is set
        and (X, y) are new to the estimator, and approximately with folds.
    novel_below : float or None, default=None
        Also reject objects that resemble none of the classes, with a novelty p-value of at most
        this. The estimator needs an `assess` method, as `KreinClassifier` has.
    reject_label : default=None
        What `predict` returns for a rejected object. None uses −1 for numeric labels and "rejected"
        for others. It must not be a class. If it is of another type than the labels, the result is
        an array of dtype object.
    prefit : bool, default=False
        Whether `estimator` is already fitted; then (X, y) in `fit` only determine the threshold.
    cv : int, default=5
        Number of folds. Without `prefit`, `coverage` and `risk` are met on out-of-fold
        probabilities, that is, on objects that the model has not seen.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : array of shape (C,)
        The labels, without `reject_label`.
    threshold_ : float
        Objects whose largest probability is below this are rejected.

    See Also
    --------
    accuracy_reject_curve : Return the accuracy on the accepted objects for every threshold.
    krein.KreinClassifier : Classifier that also detects objects of no known class.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import IKFD
    >>> from krein.reject import RejectingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-1, 1, (100, 1)), rng.normal(1, 1, (100, 1))])
    >>> y = np.repeat(["left", "right"], 100)
    >>> clf = RejectingClassifier(IKFD(random_state=0), threshold=0.9).fit(X, y)
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
        """Fit the estimator, and find the threshold."""
        from sklearn.model_selection import cross_val_predict

        given = [self.threshold, self.coverage, self.risk]
        if sum(value is not None for value in given) != 1:
            raise ValueError("set exactly one of threshold, coverage and risk")
        if self.confidence is not None and self.risk is None:
            raise ValueError("confidence needs risk, which it bounds")
        if self.novel_below is not None and not hasattr(self.estimator, "assess"):
            raise ValueError(
                f"a {type(self.estimator).__name__} does not recognise novel objects, so "
                f"novel_below= cannot be used; a KreinClassifier does"
            )
        self.estimator_ = self.estimator if self.prefit else clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        if self._reject_label() in self.classes_.tolist():
            raise ValueError(
                f"the label of a rejected object, {self._reject_label()!r}, is itself a class; "
                f"choose another with reject_label="
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
        """Return the most probable class, or the reject label."""
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
        """Return "known", "ambiguous" (rejected for doubt between classes) or "novel" (rejected as
        like none of them) for each object.
        """
        return self._assessed(X)[1]

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the estimator, rejected or not."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    def _assessed(self, X: Any) -> tuple[Array, NDArray[np.str_]]:
        """Return probabilities and status in one pass, because each comparison costs."""
        if self.novel_below is None:
            P = self.predict_proba(X)
            novelty = np.ones(len(P))
        else:
            check_is_fitted(self)
            found = self.estimator_.assess(X)
            P, novelty = found["probabilities"], found["novelty"]
        never = -1.0 if self.novel_below is None else self.novel_below
        return P, status_of(P.max(axis=1), novelty, self.threshold_, never)

    def _reject_label(self) -> Any:
        if self.reject_label is not None:
            return self.reject_label
        return -1 if self.classes_.dtype.kind in "iuf" else "rejected"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
