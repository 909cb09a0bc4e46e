"""scikit-learn's own estimator checks, and its tools with matrices and with strings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from krein import (
    IKFD,
    IKQD,
    PCVM,
    IndefiniteKernelPCA,
    KreinClassifier,
    NystromMap,
    PseudoEuclideanEmbedding,
)
from krein.compare import open_pairs
from krein.landmarks import MEB, Random

ESTIMATORS = [
    KreinClassifier("elm", n_landmarks=5, neighbours=5),
    IKFD("elm", landmarks="random", n_landmarks=5, multiclass="ovr", random_state=0),
    IKQD("elm", random_state=0),
    PCVM("elm", random_state=0),
    PseudoEuclideanEmbedding("elm", random_state=0),
    IndefiniteKernelPCA("elm", random_state=0),
]
OTHER_SETTINGS = [
    KreinClassifier("elm"),
    IKFD("elm", random_state=0),
    IKFD("elm", landmarks="all", calibrate=True),
    PCVM("elm", landmarks="random", n_landmarks=8, multiclass="ovr", random_state=0),
    NystromMap("elm", random_state=0),
]


def expected_failures(estimator):
    same = "check_sample_weight_equivalence_on_dense_data"
    params = estimator.get_params()
    if params["landmarks"] == "random":
        return {same: "repeating objects changes which random landmarks are drawn"}
    if params["landmarks"] == "all" and params["calibrate"]:
        return {same: "repeated objects are landmarks more than once"}
    return {}


# the checks use tiny classes
@pytest.mark.filterwarnings("ignore::krein.landmarks.meb.SmallClassWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::krein.landmarks.meb.SmallClassWarning")
@parametrize_with_checks(OTHER_SETTINGS, expected_failed_checks=expected_failures)
def test_estimator_checks_with_other_settings(estimator, check):
    check(estimator)


WORDS = ["house", "mouse", "louse", "horse", "morse", "worse", "nurse", "purse"]
WOERTER = ["haus", "maus", "laus", "ross", "torf", "wurst", "durst", "burg"]
OBJECTS, LABELS = WORDS + WOERTER, ["en"] * 8 + ["de"] * 8


@pytest.mark.parametrize("as_objects", [list, np.array, lambda x: np.array(x, dtype=object)])
def test_strings_in_cross_validation(as_objects):
    clf = IKFD("levenshtein", landmarks="all")
    scores = cross_val_score(clf, as_objects(OBJECTS), LABELS, cv=4)
    assert scores.mean() >= 0.75


def test_strings_in_a_grid_search_and_a_pipeline():
    pipe = make_pipeline(IKFD("levenshtein", random_state=0))
    search = GridSearchCV(
        pipe,
        {"ikfd__landmarks": ["all", Random(n_landmarks=4)], "ikfd__shrinkage": ["oas", 0.5]},
        cv=2,
    ).fit(OBJECTS, LABELS)
    assert set(search.predict(["house", "haus"])) == {"en", "de"}


def test_a_map_of_strings_feeds_any_classifier():
    from sklearn.linear_model import LogisticRegression

    pipe = make_pipeline(
        NystromMap("levenshtein", landmarks="all"), StandardScaler(), LogisticRegression()
    )
    assert pipe.fit(OBJECTS, LABELS).score(OBJECTS, LABELS) == 1.0


@pytest.mark.parametrize("measure", ["precomputed", "precomputed-distance"])
@pytest.mark.parametrize("cls", [IKFD, IKQD])
def test_matrices_are_split_along_both_axes(cls, measure):
    X, y = load_iris(return_X_y=True)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    K = D if measure == "precomputed-distance" else X @ X.T
    clf = cls(measure, shrinkage="oas", random_state=0)
    assert cross_val_score(clf, K, y, cv=5).mean() > 0.9
    search = GridSearchCV(clf, {"landmarks": ["meb", "all"]}, cv=3).fit(K, y)
    assert search.predict(K[:4]).shape == (4,)


def test_a_matrix_gives_the_same_scores_as_the_objects():
    X, y = load_iris(return_X_y=True)
    K = open_pairs("elm", X).block(np.arange(150), np.arange(150))
    given = np.arange(0, 150, 10)
    a = IKFD("elm", landmarks=given).fit(X, y).decision_function(X)
    b = IKFD("precomputed", landmarks=given).fit(K, y).decision_function(K)
    c = IKFD("precomputed", landmarks=given).fit(K, y).decision_function(K[:, given])
    assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert_allclose(b, c, rtol=1e-10)


def test_parameters_of_a_rule_are_reached_by_name():
    clf = IKFD("elm", landmarks=MEB(epsilon=0.5)).set_params(landmarks__epsilon=0.25)
    assert clone(clf).landmarks.epsilon == 0.25


@pytest.mark.parametrize(
    "labels",
    [np.arange(16) % 2 == 0, np.arange(16) % 2 + 5, np.where(np.arange(16) % 2, "ja", "nein")],
)
def test_labels_of_any_kind(labels):
    clf = IKFD("levenshtein", landmarks="all").fit(OBJECTS, labels)
    assert clf.classes_.dtype == labels.dtype
    assert_array_equal(np.unique(clf.predict(OBJECTS)), clf.classes_)


def test_cross_validated_probabilities_sum_to_one():
    X, y = load_iris(return_X_y=True)
    P = cross_val_predict(IKFD("elm", random_state=0), X, y, method="predict_proba")
    assert_allclose(P.sum(axis=1), 1)


def test_feature_names():
    import pandas as pd

    data = load_iris(as_frame=True)
    clf = IKFD("elm", random_state=0).fit(data.data, data.target)
    assert_array_equal(clf.feature_names_in_, data.feature_names)
    assert isinstance(clf.predict(pd.DataFrame(data.data)), np.ndarray)
    names = NystromMap("elm", random_state=0).fit(data.data).get_feature_names_out()
    assert names[0] == "nystrommap0"
