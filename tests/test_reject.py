"""The reject option: curves, areas and thresholds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from krein import IKFD, KreinClassifier
from krein.reject import (
    BOUNDED_THRESHOLDS,
    RejectingClassifier,
    accuracy_reject_curve,
    augrc,
    threshold_for_coverage,
    threshold_for_risk,
)


def predictions(seed, n=50, ties=False):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([1, 1, 1], size=n)
    if ties:
        P = np.round(P, 1)
    return rng.integers(0, 3, n), P


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.booleans())
def test_the_curve_matches_each_threshold(seed, ties):
    y, P = predictions(seed, ties=ties)
    curve = accuracy_reject_curve(y, P, classes=[0, 1, 2])
    for coverage, accuracy, threshold in zip(
        curve.coverage, curve.accuracy, curve.threshold, strict=True
    ):
        accepted = P.max(axis=1) >= threshold
        assert_allclose(coverage, accepted.mean())
        assert_allclose(accuracy, (P.argmax(axis=1) == y)[accepted].mean())
    assert curve.coverage[-1] == 1.0
    assert (np.diff(curve.coverage) > 0).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000))
def test_augrc_matches_its_definition(seed):
    """AUGRC = P(wrong, and accepted at a random coverage): without ties, the sum over wrong
    objects of the share of coverages at which they are accepted, divided by n."""
    y, P = predictions(seed)
    order = np.argsort(-P.max(axis=1))
    wrong = (P.argmax(axis=1) != y)[order]
    n = len(y)
    expected = sum((n - position - 0.5) / n for position in np.flatnonzero(wrong)) / n
    assert_allclose(augrc(y, P, classes=[0, 1, 2]), expected, rtol=1e-9)


def test_augrc_at_its_extremes():
    right = np.eye(2)[[0, 1, 0, 1]] * 0.8 + 0.1
    assert augrc([0, 1, 0, 1], right) == 0.0
    assert_allclose(augrc([1, 0, 1, 0], right), 0.5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.floats(0.01, 1.0))
def test_coverage_is_met_and_no_more_than_needed(seed, coverage):
    _, P = predictions(seed)
    t = threshold_for_coverage(P, coverage)
    accepted = (P.max(axis=1) >= t).mean()
    assert accepted >= coverage - 1e-9
    assert (P.max(axis=1) > t).mean() < coverage


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.floats(0.0, 0.9))
def test_risk_is_met(seed, risk):
    y, P = predictions(seed)
    t = threshold_for_risk(y, P, risk, classes=[0, 1, 2])
    accepted = P.max(axis=1) >= t
    if np.isfinite(t):
        assert (P.argmax(axis=1) != y)[accepted].mean() <= risk + 1e-9
    else:
        assert (accuracy_reject_curve(y, P, [0, 1, 2]).accuracy < 1 - risk).all()


@pytest.mark.parametrize(
    "estimator", [IKFD("elm", random_state=0), LogisticRegression(max_iter=1000)]
)
def test_any_classifier_with_probabilities(estimator):
    X, y = load_iris(return_X_y=True)
    clf = RejectingClassifier(estimator, coverage=0.8).fit(X, y)
    rejected = clf.rejects(X)
    assert_array_equal(clf.predict(X) == -1, rejected)
    assert 0.7 < 1 - rejected.mean() < 0.95
    kept = clf.predict(X)[~rejected]
    assert (kept == y[~rejected]).mean() >= 0.97
    risky = RejectingClassifier(estimator, risk=0.0).fit(X, y)
    assert risky.rejects(X).mean() < 0.5


def test_a_fitted_classifier_is_used_unchanged():
    X, y = load_iris(return_X_y=True)
    fitted = IKFD("elm", random_state=0).fit(X, y)
    clf = RejectingClassifier(fitted, coverage=0.5, prefit=True, reject_label=99).fit(X, y)
    assert clf.estimator_ is fitted
    assert 99 in clf.predict(X)


def test_bad_requests():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="exactly one"):
        RejectingClassifier(IKFD("elm")).fit(X, y)
    with pytest.raises(ValueError, match="exactly one"):
        RejectingClassifier(IKFD("elm"), risk=0.1, coverage=0.5).fit(X, y)
    with pytest.raises(ValueError, match="coverage must be"):
        threshold_for_coverage(np.eye(2), 0.0)
    with pytest.raises(ValueError, match="risk must be"):
        threshold_for_risk([0, 1], np.eye(2), 1.0)
    with pytest.raises(ValueError, match="pass classes= to name the class of each column"):
        augrc([0, 1], np.eye(3)[:2])
    with pytest.raises(ValueError, match="no objects"):
        augrc([], np.empty((0, 2)))


def test_a_bound_on_the_risk_holds_as_often_as_stated():
    """With calibrated probabilities, the risk of a threshold is known. The observed risk is too
    low in about half of the draws, a bound with confidence 0.9 in at most a tenth."""
    rng = np.random.default_rng(0)

    def draw(n):
        p = rng.beta(4, 1, n) / 2 + 0.5
        return (rng.uniform(size=n) >= p).astype(int), np.column_stack([p, 1 - p])

    _, P_all = draw(200_000)
    certainty = P_all.max(axis=1)

    def risk_of(threshold):
        accepted = certainty >= threshold
        return (1 - certainty[accepted]).mean() if accepted.any() else 0.0

    exceeded = {None: 0, 0.9: 0}
    coverage = []
    for _ in range(200):
        y, P = draw(2000)
        for confidence in exceeded:
            t = threshold_for_risk(y, P, 0.05, [0, 1], confidence=confidence)
            exceeded[confidence] += risk_of(t) > 0.05
            if confidence is not None:
                coverage.append((certainty >= t).mean())
    assert exceeded[0.9] <= 0.1 * 200
    assert exceeded[None] > 0.3 * 200
    assert np.mean(coverage) > 0.2


def test_the_bound_matches_clopper_and_pearson():
    from scipy.stats import beta

    y, P = predictions(3, n=2000)
    y = np.where(np.random.default_rng(0).uniform(size=2000) < 0.97, P.argmax(axis=1), y)
    t = threshold_for_risk(y, P, 0.06, [0, 1, 2], confidence=0.95)
    level = 0.05 / len(BOUNDED_THRESHOLDS)

    def bound(threshold):
        accepted = P.max(axis=1) >= threshold
        wrong = (P.argmax(axis=1) != y)[accepted].sum()
        return beta.ppf(1 - level, wrong + 1, accepted.sum() - wrong)

    assert bound(t) <= 0.06
    assert all(bound(s) > 0.06 for s in BOUNDED_THRESHOLDS[t > BOUNDED_THRESHOLDS])


def test_novel_objects_are_rejected_as_such():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-2, 1, (150, 1)), rng.normal(2, 1, (150, 1))])
    y = np.repeat(["left", "right"], 150)
    clf = RejectingClassifier(KreinClassifier("manhattan"), threshold=0.9, novel_below=0.01)
    clf.fit(X, y)
    new = [[-2.0], [0.0], [40.0], [2.1]]
    assert clf.status(new).tolist() == ["known", "ambiguous", "novel", "known"]
    assert clf.predict(new).tolist() == ["left", "rejected", "rejected", "right"]
    assert clf.rejects(new).tolist() == [False, True, True, False]
    plain = RejectingClassifier(KreinClassifier("manhattan"), threshold=0.9).fit(X, y)
    assert plain.status([[40.0]]).tolist() == ["known"]
    with pytest.raises(ValueError, match="does not recognise novel objects"):
        RejectingClassifier(IKFD("elm"), threshold=0.9, novel_below=0.01).fit(X, y)
    with pytest.raises(ValueError, match="confidence needs risk"):
        RejectingClassifier(IKFD("elm"), threshold=0.9, confidence=0.9).fit(X, y)
