"""Growing landmarks: the curve, its end, and no pair compared twice."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from krein import IKFD, NystromMap
from krein.compare import Pairs
from krein.landmarks import MEB, Auto
from krein.landmarks.auto import _better, _sample, _settled, _smallest_good
from krein.landmarks.base import given_pairs
from krein.measures.vectors import ELM, Manhattan


def checkerboard(n=600, seed=0):
    X = np.random.default_rng(seed).uniform(0, 3, size=(n, 2))
    return X, X.astype(int).sum(axis=1) % 2


def test_it_grows_where_meb_has_too_few():
    X, y = checkerboard()
    X_new, y_new = checkerboard(1000, seed=1)
    meb = IKFD("elm", random_state=0).fit(X, y)
    auto = IKFD("elm", landmarks="auto", random_state=0).fit(X, y)
    curve = auto.selection_.details["curve"]
    assert (np.diff(curve["landmarks"]) > 0).all()
    assert (np.diff(curve["evaluations"]) > 0).all()
    assert len(auto.landmarks_) in curve["landmarks"]
    assert len(auto.landmarks_) > len(meb.landmarks_)
    assert auto.score(X_new, y_new) > meb.score(X_new, y_new) + 0.02


def test_it_stops_at_once_where_nothing_is_left_to_learn():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 2)) + 20 * y[:, None]
    clf = IKFD(landmarks="auto", random_state=0).fit(X, y)
    assert len(clf.selection_.details["curve"]["landmarks"]) <= 3
    assert clf.score(X, y) == 1.0


def test_every_evaluation_is_used_again():
    X, y = checkerboard(300)
    clf = IKFD("elm", landmarks="auto", random_state=0).fit(X, y)
    tried = clf.selection_.details["curve"]["landmarks"][-1]
    spent = Pairs(ELM(), X)
    MEB().select(spent, y, np.random.default_rng(0))
    assert clf.kernel_evaluations_ <= spent.evaluations + 300 * tried
    assert clf.selection_.values is None, "the values are let go when the model stands"


def test_the_same_seed_gives_the_same_landmarks():
    X, y = checkerboard(300)
    a, b = (IKFD("elm", landmarks="auto", random_state=7).fit(X, y) for _ in range(2))
    assert_array_equal(a.landmarks_, b.landmarks_)
    assert_array_equal(a.dual_coef_, b.dual_coef_)


def test_at_most_as_many_as_asked_for():
    X, y = checkerboard(300)
    clf = IKFD("elm", landmarks=Auto(max_landmarks=25), random_state=0).fit(X, y)
    assert len(clf.landmarks_) <= 25
    assert clf.selection_.details["curve"]["landmarks"].max() <= 25


def test_a_map_grows_by_a_fisher_discriminant():
    X, y = checkerboard(300)
    assert len(NystromMap("elm", landmarks="auto", random_state=0).fit(X, y).landmarks_) > 2
    with pytest.raises(ValueError, match="needs labels y"):
        NystromMap("elm", landmarks="auto").fit(X)


def test_from_a_matrix_of_distances():
    X, y = checkerboard(200)
    D = -Manhattan().block(X, X)
    clf = IKFD("precomputed-distance", landmarks="auto", random_state=0).fit(D, y)
    assert clf.score(D, y) > 0.6


def test_the_rule_of_one_standard_error():
    base = np.random.default_rng(0).random(200)  # standard error 0.02
    assert _better(base, base - 0.1)
    assert not _better(base, base + 0.1)
    assert not _better(base, base - 0.01)
    assert _smallest_good([base, base - 0.1, base - 0.2, base - 0.19]) == 2
    assert _smallest_good([base, base - 0.1, base - 0.11]) == 1
    assert _settled([base, base - 0.1, base, base], patience=2)
    assert not _settled([base, base - 0.1, base - 0.2], patience=2)


def test_sampling_follows_the_loss_and_takes_nobody_twice():
    objects, losses = np.arange(100), np.r_[np.zeros(90), np.full(10, 5.0)]
    chosen = _sample(objects, losses, 50, np.random.default_rng(0))
    assert_array_equal(np.sort(chosen), np.arange(90, 100))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"growth": 0}, "growth must be positive"),
        ({"held_out": 1.0}, "held_out must be"),
        ({"patience": 0}, "patience"),
    ],
)
def test_parameters(options, message):
    X, y = checkerboard(100)
    with pytest.raises(ValueError, match=message):
        Auto(**options).select(given_pairs(X @ X.T), y, np.random.default_rng(0))


def test_too_few_objects():
    with pytest.raises(ValueError, match="too few objects"):
        IKFD("precomputed", landmarks="auto").fit(np.eye(4), [0, 0, 1, 1])
