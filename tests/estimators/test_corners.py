"""Corner cases in which an estimator might be silently wrong."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

import krein
from krein import IKFD, IKQD, PCVM, KreinClassifier, NystromMap
from krein.core.ranks import Ranks
from krein.landmarks import Random, Rule, Selection
from krein.measures.strings import Levenshtein
from krein.reject import RejectingClassifier

X, y = load_iris(return_X_y=True)
WORDS = ["house", "mouse", "louse", "horse", "haus", "maus", "laus", "ross"]
LANGUAGES = ["en"] * 4 + ["de"] * 4


def noisy(n=300, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    return Z, (Z[:, 0] + 0.7 * rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("cls", [IKFD, IKQD])
def test_rank_and_calibration_use_the_same_model(cls):
    Z, labels = noisy()
    Z_new, labels_new = noisy(2000, seed=1)
    options = {"measure": "elm", "landmarks": "random", "n_landmarks": 100, "rank": 4}
    options["random_state"] = 0
    raw = cls(**options).fit(Z, labels)
    calibrated = cls(calibrate=True, **options).fit(Z, labels)
    losses = [log_loss(labels_new, clf.predict_proba(Z_new)) for clf in (raw, calibrated)]
    assert losses[1] < losses[0] + 0.02


@pytest.mark.parametrize("landmarks", ["all", "random"])
def test_temperature_is_near_the_best_for_new_objects(landmarks):
    Z, labels = noisy(400)
    Z_new, labels_new = noisy(4000, seed=1)
    number = 60 if landmarks == "random" else None
    clf = IKFD("elm", landmarks=landmarks, n_landmarks=number, calibrate=True, random_state=0)
    scores = clf.fit(Z, labels).decision_function(Z_new)
    signed = np.where(labels_new == 1, scores, -scores)
    grid = np.exp(np.linspace(-5, 3, 81))
    losses = [np.logaddexp(0, -beta * signed).mean() for beta in grid]
    assert np.logaddexp(0, -clf.temperature_ * signed).mean() < min(losses) + 0.02


def test_indices_count_objects_of_weight_zero():
    weights = np.ones(8)
    weights[0] = 0
    series = pd.Series(WORDS, index=range(7, -1, -1))
    a = IKFD("levenshtein", landmarks="all").fit(series, LANGUAGES, sample_weight=weights)
    b = IKFD("levenshtein", landmarks="all").fit(WORDS[1:], LANGUAGES[1:])
    assert_array_equal(a.landmarks_, np.arange(1, 8))
    assert_allclose(a.predict_proba(WORDS), b.predict_proba(WORDS), atol=1e-9)
    given = IKFD("levenshtein", landmarks=[2, 5]).fit(WORDS, LANGUAGES, sample_weight=weights)
    assert_array_equal(given.landmark_objects_, ["louse", "maus"])
    K = X @ X.T
    weights = np.r_[0.0, np.ones(149)]
    clf = IKFD("precomputed", random_state=0).fit(K, y, sample_weight=weights)
    assert clf.predict(K).shape == (150,)
    assert 0 not in clf.landmarks_
    pcvm = PCVM("precomputed", random_state=0).fit(K, y, sample_weight=weights)
    assert 0 not in pcvm.landmarks_


def test_weights_far_below_one_are_refused():
    with pytest.raises(ValueError, match="weights count objects"):
        IKFD("elm").fit(X, y, sample_weight=np.full(150, 1e-6))


def state(estimator):
    return {name: id(value) for name, value in vars(estimator).items()}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_call_changes_nothing(method):
    clf = IKFD("elm", landmarks=[0, 10, 60, 70, 110]).partial_fit(X, y, classes=[0, 1, 2])
    clf.set_params(priors=[1, 2])
    before = state(clf)
    with pytest.raises(ValueError, match="priors"):
        getattr(clf, method)(X, y)
    assert state(clf) == before
    new = IKFD("elm", multiclass="one")
    with pytest.raises(ValueError, match="multiclass"):
        new.partial_fit(X, y, classes=[0, 1, 2])
    assert not hasattr(new, "classes_")


def test_signature_counts_all_chunks():
    whole = IKFD("elm", landmarks=[0, 10, 20]).fit(X, y)
    parts = IKFD("elm", landmarks=[0, 10, 20]).partial_fit(X[:50], y[:50], classes=[0, 1, 2])
    parts.partial_fit(X[50:], y[50:])
    assert parts.signature_ == whole.signature_


def test_partial_fit_resets_the_temperature():
    clf = IKFD("elm", calibrate=True, random_state=0).fit(X, y)
    assert clf.temperature_ != 1.0
    clf.set_params(calibrate=False).partial_fit(X[:10], y[:10])
    assert clf.temperature_ == 1.0


def test_grown_landmarks_in_chunks():
    Z, labels = noisy()
    clf = IKFD("elm", landmarks="auto", random_state=0).partial_fit(Z, labels, classes=[0, 1])
    assert clf.score(Z, labels) > 0.6


@pytest.mark.filterwarnings("ignore::krein.landmarks.meb.SmallClassWarning")
@pytest.mark.parametrize("cls", [IKFD, IKQD, PCVM])
def test_calibration_with_a_class_of_one(cls):
    labels = np.append(y[:100], 2)
    P = cls("elm", calibrate=True, random_state=0).fit(X[:101], labels).predict_proba(X)
    assert_allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("cls", [IKFD, IKQD, PCVM, KreinClassifier])
def test_classes_of_one_and_two_objects_in_every_answer(cls, size):
    """No class is lost, tiny ones are found, and their probabilities beat guessing."""
    C, large, rng = 12, 8, np.random.default_rng(size)
    means = 4 * rng.normal(size=(C, 6))
    labels = np.array([f"f{3 * c // C};g{c:02d}" for c in range(C)])
    y = np.repeat(np.arange(C), np.where(np.arange(C) < large, 10, size))
    new = np.repeat(np.arange(C), 5)
    X, Z = (means[codes] + rng.normal(size=(len(codes), 6)) for codes in (y, new))
    options = {} if cls is KreinClassifier else {"calibrate": True}
    rule = "random" if options else "stratified"
    clf = cls("manhattan", landmarks=rule, n_landmarks=40, random_state=0)
    clf.set_params(**options).fit(X, labels[y])
    assert clf.classes_.tolist() == labels.tolist()
    log_p = np.log(clf.predict_proba(Z))
    tiny = new >= large
    assert np.isfinite(log_p).all()
    if (cls, size) != (IKFD, 1):  # calibrated on larger classes, it is too certain of these
        assert -log_p[tiny, new[tiny]].mean() < np.log(C)
    assert np.isin(np.arange(large, C), log_p.argmax(axis=1)).mean() > 0.5
    assert ((clf.novelty(Z) > 0) & (clf.novelty(Z) <= 1)).all()
    assert clf.predict_set(Z)[np.arange(len(Z)), new].mean() > 0.7
    ranks = Ranks.of(clf.classes_.tolist(), ";")
    families = ranks.probabilities(np.exp(log_p), 0)
    np.testing.assert_allclose(families.sum(axis=1), 1)
    assert (families.argmax(axis=1) == 3 * new // C).mean() > 2 / 3  # twice what guessing gives


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_pcvm_does_not_depend_on_a_constant_added_to_the_similarity(offset):
    Z, labels = noisy(200)
    K = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    landmarks = np.arange(0, 200, 10)
    a = PCVM("precomputed", landmarks=landmarks).fit(K, labels).predict_proba(K)
    b = PCVM("precomputed", landmarks=landmarks).fit(K + offset, labels).predict_proba(K + offset)
    assert_allclose(a, b, atol=1e-4)


def test_pcvm_with_a_rare_class_among_many():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30_000, 2))
    labels = (Z[:, 0] > 0).astype(int)
    clf = PCVM("elm", landmarks=np.arange(20), sparse=False).fit(Z, labels)
    rare = labels.copy()
    rare[:2] = 2
    again = PCVM("elm", landmarks=np.arange(20)).fit(Z, rare)
    assert clf.score(Z, labels) > 0.98
    assert again.score(Z, rare) > 0.98


def test_refitting_gives_the_same_model():
    Z, labels = noisy(200)
    clf = PCVM("elm", landmarks="auto", random_state=0)
    first = clf.fit(Z, labels).predict_proba(Z)
    assert_array_equal(clf.fit(Z, labels).predict_proba(Z), first)


def test_identical_objects_have_the_class_frequencies():
    clf = IKFD("levenshtein").fit(["aa"] * 6, [0, 0, 0, 1, 1, 1])
    assert_allclose(clf.predict_proba(["aa", "b"]), 0.5)


def test_a_numeric_target_is_not_treated_as_classes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe = make_pipeline(NystromMap("elm", random_state=0), Ridge()).fit(X, X[:, 0])
    assert len(pipe[0].landmarks_) < 40


class First(Rule):
    def select(self, pairs, codes, rng, learner=None):
        return Selection(np.arange(5))


class Shouting(Levenshtein):
    def block(self, A, B):
        return 2.0 * super().block(A, B)


def test_a_custom_rule_is_saved_as_its_result(tmp_path):
    clf = IKFD("elm", landmarks=First()).fit(X[::2], y[::2])
    clf.save(tmp_path / "m.krein")
    assert_array_equal(krein.load(tmp_path / "m.krein").predict_proba(X), clf.predict_proba(X))


def test_loading_asks_for_a_custom_measure(tmp_path):
    clf = IKFD(Shouting(), landmarks="all").fit(WORDS, LANGUAGES)
    clf.save(tmp_path / "m.krein")
    with pytest.raises(ValueError, match="Shouting"):
        krein.load(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein", measure=Shouting())
    assert_array_equal(again.predict_proba(WORDS), clf.predict_proba(WORDS))


def test_a_subclass_is_not_saved_as_its_base(tmp_path):
    class Mine(IKFD):
        pass

    with pytest.raises(TypeError, match="Mine is not part of krein"):
        Mine("elm", random_state=0).fit(X, y).save(tmp_path / "m.krein")


@pytest.mark.parametrize(
    "options",
    [
        {"landmarks": range(0, 150, 10)},
        {"landmarks": pd.Series([0, 60, 120])},
        {"priors": pd.Series([1.0, 1.0, 2.0])},
        {"random_state": np.random.default_rng(0)},
        {"landmarks": Random(n_landmarks=np.int64(9))},
    ],
)
def test_parameters_of_many_kinds_are_saved(tmp_path, options):
    clf = IKFD("elm", **options).fit(X, y)
    clf.save(tmp_path / "m.krein")
    assert_array_equal(krein.load(tmp_path / "m.krein").predict_proba(X), clf.predict_proba(X))


def test_objects_of_many_kinds_are_saved(tmp_path):
    def overlap(a, b):
        return float(len(set(a) & set(b)))

    for objects in (
        [{1, 2}, {2, 3}, {7, 8}, {8, 9}],
        [{1: 0.5}, {2: 1.0}, {7: 0.1}, {8: 1.0}],
        [(1, 2), (2, 3), (7, 8), (8, 9)],
        [b"ab", b"bc", b"yz", b"xy"],
    ):
        clf = IKFD(overlap, landmarks="all").fit(objects, [0, 0, 1, 1])
        clf.save(tmp_path / "m.krein")
        again = krein.load(tmp_path / "m.krein", measure=overlap)
        assert again.landmark_objects_ == clf.landmark_objects_


class TestReject:
    def test_a_class_may_not_be_the_reject_label(self):
        with pytest.raises(ValueError, match="choose another one with reject_label="):
            RejectingClassifier(IKFD("elm"), threshold=0.9).fit(X, y - 1)
        with pytest.raises(ValueError, match="threshold must be a probability"):
            RejectingClassifier(IKFD("elm"), threshold=90).fit(X, y)

    @pytest.mark.parametrize(
        ("labels", "label"), [(y == 1, None), (y, "?"), (y, None), (y.astype(str), None)]
    )
    def test_accepted_labels_are_unchanged(self, labels, label):
        clf = RejectingClassifier(IKFD("elm", random_state=0), threshold=0.99, reject_label=label)
        predicted = clf.fit(X, labels).predict(X)
        rejected = clf.rejects(X)
        assert 0 < rejected.sum() < 150
        assert set(predicted[~rejected].tolist()) <= set(labels.tolist())
        assert len(set(predicted[rejected].tolist())) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank must be a positive integer"),
        ({"rank": 2.5}, "rank must be a positive integer"),
        ({"class_weight": {0: np.inf}}, "positive numbers"),
        ({"priors": [np.inf, 1, 1]}, "positive numbers"),
        ({"landmarks": "random", "n_landmarks": 10.5}, "whole number"),
        ({"landmarks": np.arange(150) < 5}, "flatnonzero"),
    ],
)
def test_parameters_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        IKFD("elm", **options).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 3}, "needs n_basis="),
        ({"solver": "paper", "calibrate": True}, "does not support calibrate=True"),
        ({"solver": "paper", "class_weight": "balanced"}, "does not support class_weight"),
    ],
)
def test_parameters_that_pcvm_would_ignore(options, message):
    with pytest.raises(ValueError, match=message):
        PCVM("elm", **options).fit(X, y)
    with pytest.raises(ValueError, match="does not support sample_weight"):
        PCVM("elm", solver="paper").fit(X, y, sample_weight=np.ones(150))


@pytest.mark.parametrize("shrinkage", [np.int64(0), np.float32(0.5), 1])
def test_shrinkage_may_be_any_number(shrinkage):
    assert IKFD("elm", shrinkage=shrinkage, random_state=0).fit(X, y).score(X, y) > 0.8


def test_messages_suggest_a_remedy():
    with pytest.raises(ValueError, match="measure='levenshtein'"):
        IKFD("elm").fit(WORDS, LANGUAGES)
    with pytest.raises(ValueError, match="no objects"):
        IKFD("levenshtein").fit([], [])


def test_a_float32_matrix_is_judged_by_its_own_rounding():
    Z = X.astype(np.float32)
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    K = Z @ Z.T
    K[3, 5] += 6e-8
    assert IKFD("precomputed", random_state=0).fit(K, y).score(K, y) > 0.8


def test_a_matrix_on_disk_is_sketched(tmp_path):
    Z, labels = noisy(600)
    K = np.abs(Z[:, None] - Z[None]).sum(axis=2)
    np.save(tmp_path / "D.npy", K)
    clf = IKFD("precomputed-distance", random_state=0).fit(str(tmp_path / "D.npy"), labels)
    assert clf.comparisons_to_fit_ <= 600 * (100 + len(clf.landmarks_))
    assert clf.predict(K[:5]).shape == (5,)


def test_one_cache_serves_folds_and_predictions(tmp_path):
    from sklearn.model_selection import cross_val_score

    clf = IKFD("levenshtein", landmarks="all", cache=tmp_path / "cache")
    first = cross_val_score(clf, WORDS, LANGUAGES, cv=2)
    assert_array_equal(cross_val_score(clf, WORDS, LANGUAGES, cv=2), first)
    assert clf.fit(WORDS, LANGUAGES).predict(["louse"]).tolist() == ["en"]
    again = IKFD("levenshtein", landmarks="all", cache=tmp_path / "cache").fit(WORDS, LANGUAGES)
    assert again.comparisons_to_fit_ == 0


@pytest.mark.parametrize("landmarks", ["meb", "kmeans", "entropy", "leverage", "random", "auto"])
def test_few_objects_are_compared_once(landmarks):
    calls = []

    def likeness(a, b):
        calls.append((a, b))
        return -abs(a - b)

    rng = np.random.default_rng(0)
    labels = np.arange(100) % 2
    objects = (rng.normal(size=100) + 2 * labels).tolist()
    clf = IKFD(likeness, landmarks=landmarks, random_state=0).fit(objects, labels)
    assert clf.comparisons_to_fit_ == len(calls)
    assert len(calls) <= 100 * (100 + 32) / 2 + 16, "half of the pairs, in blocks, and a trial"
    given = IKFD(likeness, landmarks="random", n_landmarks=3, random_state=0)
    assert given.fit(objects, labels).comparisons_to_fit_ <= 3 * 100 + 16, "no more than needed"


def test_a_single_series_is_refused():
    series = np.random.default_rng(0).normal(size=(12, 20))
    clf = IKFD("dtw", landmarks="all").fit(series, np.arange(12) % 2)
    with pytest.raises(ValueError, match="pass a list of series"):
        clf.predict(list(series[0]))


# -- what the training objects decide -----------------------------------------------------------


def gestures_of_two_kinds(rng, n=30, channels=12, times=30):
    X = rng.normal(size=(n, times, channels)).cumsum(axis=1)
    y = np.arange(n) % 2
    X += 3 * y[:, None, None] * np.sin(np.arange(times) / 3)[:, None]
    return X, y


def test_the_guessed_layout_is_saved_with_the_model(tmp_path):
    X, y = gestures_of_two_kinds(np.random.default_rng(0))
    new = X[:5, :12]  # 12 times and 12 channels: the layout cannot be guessed
    models = []
    for layout, turned in (("times-channels", X), ("channels-times", X.swapaxes(1, 2))):
        clf = IKFD("dtw", landmarks="random", n_landmarks=6, random_state=0).fit(turned, y)
        assert clf.measure_.layout == layout
        assert clf.measure == "dtw"
        assert clf.measure_params is None
        clf.save(tmp_path / "m.krein")
        loaded = krein.load(tmp_path / "m.krein")
        assert loaded.measure_ == clf.measure_
        assert loaded.measure_params == {"layout": layout}
        given = new if layout == "times-channels" else new.swapaxes(1, 2)
        models.append(loaded.predict_proba(given))
        np.testing.assert_array_equal(models[-1], clf.predict_proba(given))
    np.testing.assert_allclose(*models, atol=1e-9)


RANDOM = ["".join(word) for word in np.random.default_rng(0).choice(list("abcdef"), size=(40, 7))]
DEGENERATE = {
    "one of 40": (RANDOM, [0] * 39 + [1], None),
    "two objects": (RANDOM[:2], [0, 1], None),
    "three objects": (RANDOM[:3], [0, 1, 1], None),
    "one object per class": (RANDOM[:20], list(range(20)), None),
    "two distinct objects": (
        RANDOM[:1] * 12 + RANDOM[1:2] * 12,
        [0] * 12 + [1] * 12,
        None,
    ),
    "all identical": (RANDOM[:1] * 20, [0, 1] * 10, None),
    "every object in both classes": (RANDOM[:10] * 2, [0] * 10 + [1] * 10, None),
    "groups are classes": (RANDOM, [0, 1] * 20, [0, 1] * 20),
    "one group": (RANDOM, [0, 1] * 20, [0] * 40),
}


@pytest.mark.filterwarnings("ignore:every class is in a single group")
@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("options", [{}, {"n_landmarks": 2}, {"features": None}], ids=str)
def test_degenerate_classes_and_groups_are_fitted(case, options):
    X, y, groups = DEGENERATE[case]
    clf = KreinClassifier("levenshtein", **options).fit(X, y, groups=groups)
    found = clf.assess([*RANDOM[:3], "zebra"], coverage=0.9, evidence=1)
    np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1)
    assert np.isfinite(found["novelty"]).all()
