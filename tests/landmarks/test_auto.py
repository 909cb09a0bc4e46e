"""The rule "auto": the learning curve, the price of a landmark, and stable results."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from krein import IKFD, IKQD, PCVM, NystromMap
from krein.compare import Pairs
from krein.core.gaussian import GaussianFamily
from krein.core.pcvm.training import PCVMFamily
from krein.core.space import LandmarkSpace
from krein.landmarks import Auto
from krein.landmarks import auto as module
from krein.landmarks.auto import fall
from krein.landmarks.base import given_pairs
from krein.measures.vectors import ELM, Manhattan

MODELS = [IKFD, IKQD, PCVM]


def checkerboard(n=600, seed=0):
    X = np.random.default_rng(seed).uniform(0, 3, size=(n, 2))
    return X, X.astype(int).sum(axis=1) % 2


def test_it_grows_if_few_landmarks_are_not_enough():
    X, y = checkerboard()
    X_new, y_new = checkerboard(1000, seed=1)
    few = IKFD("elm", landmarks="stratified", n_landmarks=16, random_state=0).fit(X, y)
    auto = IKFD("elm", landmarks="auto", random_state=0).fit(X, y)
    curve = auto.selection_.details["curve"]
    assert (np.diff(curve["landmarks"]) > 0).all()
    assert (np.diff(curve["evaluations"]) > 0).all()
    assert auto.score(X_new, y_new) > few.score(X_new, y_new) + 0.02


def test_it_stops_early_if_nothing_is_left_to_learn():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 2)) + 20 * y[:, None]
    clf = IKFD("elm", landmarks="auto", random_state=0).fit(X, y)
    assert len(clf.selection_.details["curve"]["landmarks"]) == 4
    assert len(clf.landmarks_) < 25
    assert clf.score(X, y) == 1.0


def test_results_are_stable_across_seeds():
    X, y = checkerboard(600)
    X_new, y_new = checkerboard(1000, seed=1)
    rule = Auto(price=3e-4)
    fits = [IKFD("elm", landmarks=rule, random_state=s).fit(X, y) for s in range(3)]
    sizes = [len(clf.selection_.indices) for clf in fits]
    scores = [clf.score(X_new, y_new) for clf in fits]
    assert 20 < min(sizes) <= max(sizes) < min(1.5 * min(sizes), 300)
    assert np.ptp(scores) < 0.02


@pytest.mark.parametrize("model", MODELS)
def test_the_order_of_the_rows_does_not_matter(model):
    X, y = checkerboard(300)
    X_new, _ = checkerboard(100, seed=1)
    order = np.random.default_rng(3).permutation(300)
    one = model("manhattan", landmarks="auto", random_state=0).fit(X, y)
    other = model("manhattan", landmarks="auto", random_state=0).fit(X[order], y[order])
    assert_array_equal(np.sort(order[other.selection_.indices]), one.selection_.indices)
    for name, values in one.selection_.details["curve"].items():
        assert_array_equal(values, other.selection_.details["curve"][name])
    assert_allclose(one.predict_proba(X_new), other.predict_proba(X_new), atol=1e-6)


def test_a_lower_price_buys_more_landmarks():
    X, y = checkerboard()
    sizes = [
        len(IKFD("elm", landmarks=Auto(price), random_state=0).fit(X, y).landmarks_)
        for price in (1e-2, 1e-3, 0.0)
    ]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == 300, "at no price, half of the objects"


@pytest.mark.parametrize("b", [0.5, 5.0])
def test_growth_stops_where_the_gain_equals_the_price(b, monkeypatch):
    def losses(family, pairs, values, codes):
        return np.full(len(codes), 0.2 + b * values.shape[1] ** -0.75), family

    monkeypatch.setattr(module, "_left_out_losses", losses)
    X, y = checkerboard(1000)
    price = 1e-3
    found = Auto(price).select(Pairs(ELM(), X), y, np.random.default_rng(0))
    m = len(found.indices)

    def gain(n):
        return b * (n**-0.75 - (n + 1) ** -0.75)

    assert gain(m - 2) > price > gain(m + 1)
    assert found.values.shape == (1000, m)


def test_the_fall_of_a_curve_matches_weighted_least_squares():
    n = np.array([16.0, 23, 32, 45, 64, 91])
    assert fall(n, 0.1 + 3 * n**-0.75) == pytest.approx(3)
    rough = 0.1 + 3 * n**-0.75 + 0.02 * np.cos(n)
    assert fall(n, rough) == pytest.approx(np.polyfit(n**-0.75, rough, 1, w=n**0.75)[0])


@pytest.mark.parametrize("kind", ["similarity", "dissimilarity"])
@pytest.mark.parametrize(
    "family",
    [GaussianFamily(2), GaussianFamily(2, by_class=True), PCVMFamily(2)],
    ids=["ikfd", "ikqd", "pcvm"],
)
def test_left_out_losses_match_new_objects(family, kind):
    X, y = checkerboard(500)
    X_new, y_new = checkerboard(2000, seed=5)
    measure, sign = (ELM(), 1) if kind == "similarity" else (Manhattan(), -1)
    values, new = sign * measure.block(X, X[:40]), sign * measure.block(X_new, X[:40])
    space = LandmarkSpace.of(values[:40], kind)
    scores, rows, _ = family.left_out(space, values, y, np.arange(40))
    losses = -family.log_proba(scores)[np.arange(len(rows)), y[rows]]
    choices = [
        family.learn(space.with_power(q), y[:40], values, y, None)(new) for q in powers(kind)
    ]
    theirs = [-family.log_proba(s)[np.arange(2000), y_new].mean() for s in choices]
    assert losses.mean() == pytest.approx(min(theirs), abs=3 * losses.std() / np.sqrt(len(losses)))


def powers(kind):
    return (1.0, 0.5, 0.25) if kind == "dissimilarity" else (1.0,)


def test_every_evaluation_is_reused():
    X, y = checkerboard(300)
    clf = IKFD("elm", landmarks="auto", random_state=0).fit(X, y)
    tried = max(clf.selection_.details["curve"]["landmarks"][-1], len(clf.landmarks_))
    assert clf.comparisons_to_fit_ <= 300 * tried
    assert clf.selection_.values is None, "the values are released once the model is fitted"


def test_a_sample_decides_for_many_objects(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_SIZE", 200)
    X, y = checkerboard(600)
    pairs = Pairs(Manhattan(), X)
    found = Auto().select(pairs, y, np.random.default_rng(0))
    assert found.details["curve"]["evaluations"][-1] <= 200 * 100
    assert_allclose(found.values, Manhattan().block(X, X[found.indices]))


def test_the_same_seed_gives_the_same_landmarks():
    X, y = checkerboard(300)
    a, b = (IKFD("elm", landmarks="auto", random_state=7).fit(X, y) for _ in range(2))
    assert_array_equal(a.landmarks_, b.landmarks_)
    assert_array_equal(a.dual_coef_, b.dual_coef_)


def test_max_landmarks_is_respected():
    X, y = checkerboard(300)
    clf = IKFD("elm", landmarks=Auto(max_landmarks=25), random_state=0).fit(X, y)
    assert len(clf.landmarks_) == 25
    assert_array_equal(clf.selection_.details["curve"]["landmarks"], [16, 23, 25])


def test_a_map_grows_with_a_fisher_discriminant():
    X, y = checkerboard(300)
    assert len(NystromMap("elm", landmarks="auto", random_state=0).fit(X, y).landmarks_) > 2
    with pytest.raises(ValueError, match="needs labels y"):
        NystromMap("elm", landmarks="auto").fit(X)


def test_from_a_matrix_of_distances():
    X, y = checkerboard(200)
    D = -Manhattan().block(X, X)
    clf = IKFD("precomputed-distance", landmarks="auto", random_state=0).fit(D, y)
    assert clf.score(D, y) > 0.6


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n", [4, 6, 20, 40])
def test_few_objects(model, n):
    X, y = checkerboard(n)
    y[:2] = 0, 1
    clf = model("elm", landmarks="auto", random_state=0).fit(X, y)
    assert len(clf.selection_.indices) <= n // 2
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.parametrize("model", MODELS)
def test_a_class_of_one(model):
    X, y = checkerboard(100)
    y[0] = 2
    clf = model("elm", landmarks="auto", random_state=0).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"price": -1e-4}, "price must be a number, at least 0"),
        ({"price": np.nan}, "price must be a number, at least 0"),
        ({"max_landmarks": 0}, "max_landmarks must be at least 1"),
    ],
)
def test_parameters(options, message):
    X, y = checkerboard(100)
    with pytest.raises(ValueError, match=message):
        Auto(**options).select(given_pairs(X @ X.T), y, np.random.default_rng(0))
