"""The baseline without comparisons, and the cost of a prediction for each model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from krein import IKFD, KreinClassifier
from krein.compare import open_pairs
from krein.estimators import MODELS, ModelFamily
from krein.evaluation import evaluate, plan
from krein.evaluation.baselines import FeatureBaseline, have_features
from krein.evaluation.store import PairStore, Shared
from krein.measures.features import Convolutions
from krein.model import ESTIMATORS

pytestmark = pytest.mark.filterwarnings("ignore:.*have a near-duplicate")

RNG = np.random.default_rng(2)
WORDS = ["".join(RNG.choice(list("abcd" if i % 2 else "cdef"), 7)) for i in range(120)]
LABELS = np.array(["even", "odd"])[np.arange(120) % 2]


def waves(n, rng=RNG, lengths=(60, 60)):
    """Series of two frequencies at random phases."""
    found = []
    for i in range(n):
        t = np.linspace(0, 1, rng.integers(lengths[0], lengths[1] + 1))
        wave = np.sin(2 * np.pi * ((3 + 4 * (i % 2)) * t + rng.uniform()))
        found.append(wave + 0.3 * rng.normal(size=len(t)))
    return found


def test_features_depend_on_the_kind_of_object():
    images = RNG.normal(size=(6, 8, 8))
    for measure, objects, known in (
        ("levenshtein", WORDS, True),
        ("smith-waterman", ["ACD", "MKV"], True),
        ("rbf", images[:, 0], True),
        ("tangent", images, True),
        ("dtw", waves(4), True),
        ("numeric-edit", waves(4), True),
        ("hausdorff", [images[0], images[1][:5]], False),
        ("precomputed", np.eye(4), False),
        (lambda a, b: float(len(a & b)), [{1}, {2}, {3}], False),
    ):
        assert have_features(open_pairs(measure, objects)) == known, measure


@pytest.mark.parametrize("copies", [1, 3])
def test_the_baseline_is_look_zero(copies):
    """The same head and temperature as in a classifier that holds out the same objects."""
    X, y = WORDS * copies, np.tile(np.arange(120) % 2, copies)
    pairs = open_pairs("levenshtein", X)
    shared = Shared(PairStore(pairs))
    found = FeatureBaseline(shared, X, 0).fit(np.arange(len(X)), y)
    clf = KreinClassifier("levenshtein", landmarks=np.arange(100)).fit(X, y)
    zero = clf.model_.look_zero
    np.testing.assert_array_equal(found.head_.weights, zero.weights)
    assert found.head_.temperature == pytest.approx(zero.temperature)


def test_strings_are_classified_without_comparisons():
    found = evaluate(WORDS, LABELS, measure="levenshtein", folds=3)
    assert list(found.models) == ["krein", "knn", "features"]
    told = found.summary()["models"]["features"]
    assert (told["comparisons"], told["evaluations"], told["n_landmarks"]) == (0, 0, 0)
    assert told["accuracy"]["mean"] > 0.95
    assert told["log_loss"]["mean"] < 0.3
    assert "no comparisons" in told["title"]


def test_vectors_and_series_are_classified_without_comparisons():
    X, y = load_iris(return_X_y=True)
    found = evaluate(X, y, ["features", "ikfd"], measure="rbf", folds=3)
    assert found.models["features"].fold_accuracy.mean() > 0.9
    for lengths in ((60, 60), (50, 70)):
        series = waves(80, lengths=lengths)
        found = evaluate(series, LABELS[:80], ["features"], measure="dtw", folds=3)
        assert found.models["features"].fold_accuracy.mean() > 0.9


def test_look_zero_sees_the_objects_behind_the_pairs():
    """As for a model alone: n-grams, convolutions, and none for values."""
    models = {
        "with": KreinClassifier("levenshtein", n_landmarks=20, price=1e-3),
        "without": KreinClassifier("levenshtein", n_landmarks=20, features=None),
    }
    for X, measure in ((WORDS, "levenshtein"), (waves(120), "dtw")):
        found = evaluate(X, LABELS, models, measure=measure, folds=3).models
        assert found["with"].comparisons < 0.8 * found["without"].comparisons
        assert found["with"].worth.looks[-1].comparisons == found["with"].comparisons
        assert found["with"].worth.looks[1].share < 0.8  # the others need no comparison
        names = ["ikfd", "ikqd", "pcvm"]
        assert [head.name for head in found["with"].worth.heads] == ["features", *names]
        assert [head.name for head in found["without"].worth.heads] == names
        curve = found["with"].looks
        if curve is None:  # look zero answers all of these objects
            assert found["with"].comparisons < 1
        else:  # the last point of the curve is the model itself
            assert curve.comparisons[-1] < 0.8 * found["without"].comparisons
            assert curve.accuracy[-1] == pytest.approx(found["with"].right.mean())
    apart = np.abs(np.arange(120.0)[:, None] - np.arange(120))
    found = evaluate(apart, LABELS, models, measure="precomputed-distance", folds=3).models
    np.testing.assert_array_equal(found["with"].probabilities, found["without"].probabilities)


def convolutions(series):
    found = Convolutions.fit(series, np.random.default_rng(0))
    return found(series) * found.scale + found.centre  # before standardising


def test_convolutions_are_the_same_for_the_same_seed_and_any_unit():
    series = waves(10)
    one = convolutions(series)
    two = convolutions([1000 * s + 7 for s in series])
    assert np.mean(one != two) < 1e-3  # but for rounding
    np.testing.assert_allclose(one, two, atol=0.1)
    np.testing.assert_array_equal(one, convolutions(series))


def test_held_out_series_do_not_affect_the_fit():
    series = [s[:, None] for s in waves(60)]
    train = np.arange(40)
    others = [1e3 * s[:, None] + 50 for s in waves(20, lengths=(300, 300))]
    P = []
    for objects in (series, series[:40] + others):
        shared = Shared(PairStore(open_pairs("dtw", objects)))
        model = FeatureBaseline(shared, objects, 0)
        P.append(model.fit(train, LABELS[:40]).predict_proba(train))
    np.testing.assert_array_equal(*P)


def test_a_class_too_small_to_hold_out_is_learned():
    labels = np.where(np.arange(120) < 3, "rare", LABELS)
    for X, measure in ((WORDS, "levenshtein"), (RNG.normal(size=(120, 3)), "rbf")):
        P = evaluate(X, labels, ["features", "ikfd"], measure=measure, folds=3).models["features"]
        np.testing.assert_allclose(P.probabilities.sum(axis=1), 1)


def test_without_features_it_is_left_out_or_refused():
    S = RNG.normal(size=(40, 40))
    y = np.arange(40) % 2
    found = evaluate(S + S.T, y, measure="precomputed", folds=2)
    assert list(found.models) == ["krein", "knn"]
    with pytest.raises(ValueError, match="'features' needs strings, series, images"):
        evaluate(S + S.T, y, ["features"], measure="precomputed", folds=2)


class TwoLooks(IKFD):
    """A classifier that looks at some objects again, and reports the cost."""

    def predict_proba(self, X):
        self.comparisons_ = len(self.landmarks_) + 2.5
        return super().predict_proba(X)


class Bare(IKFD):
    """A classifier without the parameters that the others share."""

    def __init__(self, measure="elm", measure_params=None):
        super().__init__(measure=measure, measure_params=measure_params)


def test_comparisons_are_reported_for_every_model():
    mine = {
        "mine": TwoLooks("levenshtein", landmarks="random", n_landmarks=6, random_state=0),
        "knn": "knn",
    }
    found = evaluate(WORDS, LABELS, mine, measure="levenshtein", folds=4)
    told = {name: model["comparisons"] for name, model in found.summary()["models"].items()}
    assert told == {"mine": 8.5, "knn": 90}


def test_any_registered_model_is_evaluated(monkeypatch):
    family = ModelFamily("Bare", "has few parameters")
    monkeypatch.setattr("krein.estimators.discriminants.Bare", Bare, raising=False)
    monkeypatch.setitem(ESTIMATORS, "Bare", "estimators.discriminants")
    monkeypatch.setitem(MODELS, "bare", family)
    monkeypatch.setattr(plan, "AVAILABLE", (*plan.AVAILABLE, "bare"))
    found = evaluate(WORDS, LABELS, ["bare"], measure="levenshtein", folds=3, calibrate=True)
    assert found.models["bare"].fold_accuracy.mean() > 0.8
