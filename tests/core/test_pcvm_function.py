"""The function of a dissimilarity that suits new objects is chosen from the training objects."""

import numpy as np
import pytest

from krein.core.pcvm import training as pcvm_function
from krein.core.pcvm.mode import fit_pcvm
from krein.core.pcvm.rows import Rows, basis_values
from krein.core.pcvm.training import POWERS, choose_function, clearly_positive

SMALLER = POWERS[1:]


def board(rng, n):
    """A 3×3 checkerboard: no quadratic separates it."""
    X = rng.uniform(0, 3, (n, 2))
    return X, X.astype(int).sum(axis=1) % 2


def halves(rng, n):
    """A noisy linear boundary in ten dimensions, which −½ d² models well."""
    X = rng.normal(size=(n, 10))
    return X, (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)


def thirds(rng, n):
    X = rng.uniform(0, 3, (n, 2))
    return X, X.astype(int).sum(axis=1) % 3


def distances(X, landmarks):
    return np.sqrt(np.square(X[:, None] - landmarks).sum(axis=2))


def problem(make, seed, n=900, m=40):
    """Return n objects, their classes, m of them as landmarks, and the problem to solve."""
    X, y = make(np.random.default_rng(seed), n)
    L = np.random.default_rng(seed + 1).choice(n, m, replace=False)
    C = int(y.max()) + 1
    return X, y, L, [(np.arange(C), y[L], C)]


def held_out_loss(function, make, seed):
    X, y, L, ((_, own, _),) = problem(make, seed)
    F = Rows(distances(X, X[L]), y).under(function)
    fit = fit_pcvm(F, own)
    new, truth = make(np.random.default_rng(seed + 2), 3000)
    P = fit.probabilities(basis_values(function, distances(new, X[L])) - F.mean)
    return -np.log(P[np.arange(len(truth)), truth]).mean()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [board, thirds, halves])
def test_the_choice_serves_new_objects(make, seed):
    X, y, L, problems = problem(make, seed)
    chosen = choose_function(Rows(distances(X, X[L]), y), L, problems)
    losses = {function: held_out_loss(function, make, seed) for function in POWERS}
    assert losses[chosen] < min(losses.values()) + 0.01
    if make is halves:
        assert chosen == "-d²/2"
    else:
        assert losses[chosen] < losses["-d²/2"] - 0.05


def test_one_class_against_the_rest_chooses_too():
    X, y, L, _ = problem(thirds, 0)
    alone = np.eye(3, dtype=int)
    problems = [(recode, recode[y[L]], 2) for recode in alone]
    assert choose_function(Rows(distances(X, X[L]), y), L, problems) in SMALLER


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_does_not_matter(unit):
    for make in (board, halves):
        X, y, L, problems = problem(make, 3)
        D = distances(X, X[L])
        assert choose_function(Rows(unit * D, y), L, problems) == choose_function(
            Rows(D, y), L, problems
        )


@pytest.mark.parametrize("weight", [None, 0.0])
def test_landmarks_and_objects_of_zero_weight_do_not_affect_the_choice(weight):
    """Half as many additional objects that −½d² cannot separate would favour another power."""
    X, y, L, problems = problem(halves, 4)
    D = distances(X, X[L])
    rng = np.random.default_rng(0)
    Z, z = board(rng, 450)
    loud = np.hstack([4 * distances(Z, Z[:10])] * 4)
    rows = np.vstack([D, loud]), np.concatenate([y, z])
    extra = np.arange(900, 1350)
    assert choose_function(Rows(*rows), L, problems) in SMALLER
    if weight is None:
        silent = Rows(*rows), np.concatenate([L, extra])
    else:
        s = np.ones(1350)
        s[extra] = weight
        silent = Rows(*rows, s), L
    assert choose_function(*silent, problems) == "-d²/2"


def test_objects_of_zero_weight_are_not_counted():
    """They count neither towards the five objects per landmark nor towards a class."""
    X, y, L, problems = problem(board, 5, n=1000)
    weight = np.zeros(1000)
    weight[L] = 1.0
    raw = distances(X, X[L])
    assert choose_function(Rows(raw, y, weight), L, problems) == "-d²/2"
    weight[np.setdiff1d(np.arange(300), L)] = 1.0
    assert choose_function(Rows(raw, y, weight), L, problems) in SMALLER
    weight[150:] = 0.0
    assert choose_function(Rows(raw, y, weight), L, problems) == "-d²/2"
    weight[:] = 1.0
    weight[y == 1] = 0.0
    weight[L] = 1.0
    assert choose_function(Rows(raw, y, weight), L, problems) == "-d²/2"


def test_the_choice_needs_a_standard_error():
    rng = np.random.default_rng(0)
    gain = rng.normal(size=1000)
    gain += 0.5 * gain.std() / np.sqrt(1000) - gain.mean()
    ones = np.ones(1000)
    assert not clearly_positive(gain, ones)
    assert clearly_positive(gain + gain.std() / np.sqrt(1000), ones)


def test_the_standard_error_depends_on_the_weights():
    rng = np.random.default_rng(1)
    gain = rng.normal(size=900)
    gain -= gain.mean()
    gain[0] = 3.0
    weight = np.ones(900)
    weight[0] = 1e4
    assert not clearly_positive(gain, weight)
    assert not clearly_positive(np.array([1.0, 1.0]), np.array([1.0, 0.0]))
    # doubling all weights adds no evidence
    some = np.tile([1.0, -0.75, 0.4], 4)
    assert clearly_positive(some, np.ones(12)) == clearly_positive(some, np.full(12, 2.0))


def test_too_few_objects_keep_the_given_function():
    X, y, L, problems = problem(board, 5, n=200, m=40)
    raw = Rows(distances(X, X[L]), y)
    assert choose_function(raw, L, problems, otherwise="-√d") == "-√d"


def test_too_many_classes_and_landmarks_are_not_tried(monkeypatch):
    X, y, L, problems = problem(thirds, 0)
    raw = Rows(distances(X, X[L]), y)
    assert choose_function(raw, L, problems) in SMALLER
    monkeypatch.setattr(pcvm_function, "CHOICE_BYTES", 8 * 3 * 40**2 - 1)
    assert choose_function(raw, L, problems) == "-d²/2"


def test_few_objects_keep_the_default():
    X, y, L, problems = problem(board, 5, n=200, m=40)
    assert choose_function(Rows(distances(X, X[L]), y), L, problems) == "-d²/2"
    everyone = np.arange(200)
    problems = [(np.arange(2), y, 2)]
    assert choose_function(Rows(distances(X, X), y), everyone, problems) == "-d²/2"


def test_a_class_with_only_landmarks_keeps_the_default():
    X, y, L, problems = problem(board, 6)
    y[L[0]] = 2
    problems = [(np.arange(3), y[L], 3)]
    assert choose_function(Rows(distances(X, X[L]), y), L, problems) == "-d²/2"


def test_many_objects_are_thinned_without_the_landmarks():
    X, y, L, problems = problem(board, 7, n=20_000)
    raw = Rows(distances(X, X[L]), y)
    some = raw.thinned(5_000, without=L)
    assert len(some.y) == pytest.approx(5_000, abs=2)
    assert some.F.min() > 0  # no object at distance 0 from a landmark
    others = np.setdiff1d(np.arange(len(y)), L)
    np.testing.assert_allclose(np.bincount(some.y, some.weight), np.bincount(y[others]), rtol=1e-12)
    assert choose_function(raw, L, problems) in SMALLER


def test_features_under_a_function_are_centred():
    D = np.random.default_rng(0).uniform(1, 2, (50, 3))
    raw = Rows(D, np.zeros(50, dtype=int))
    before = D.copy()
    powers = {"-d²/2": -0.5 * D**2, "-d": -D, "-√d": -np.sqrt(D), "similarity": D}
    for function, expected in powers.items():
        found = raw.under(function)
        np.testing.assert_allclose(found.F + found.mean, expected, rtol=1e-14)
        np.testing.assert_allclose(found.F.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_array_equal(D, before)


def test_powers_extend_below_zero():
    values = np.array([[-4.0, 0.0, 4.0]])
    np.testing.assert_array_equal(basis_values("-√d", values), [[2.0, 0.0, -2.0]])
    np.testing.assert_array_equal(basis_values("-d", values), [[4.0, 0.0, -4.0]])
