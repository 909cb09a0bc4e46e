"""Minimum enclosing balls: the guarantee, an exact quadratic programme, and known answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from krein.core.meb import minimum_enclosing_ball


def ball_of(X, **kwargs):
    return minimum_enclosing_ball((X**2).sum(axis=1), lambda j: X @ X[j], **kwargs)


def centre_and_distances(ball, X):
    centre = ball.alpha @ X[ball.support]
    return centre, np.linalg.norm(X - centre, axis=1)


def exact_radius(X):
    """Solve the quadratic programme over all points with a general solver."""
    K = X @ X.T
    q = np.diag(K)
    n = len(X)
    result = minimize(
        lambda a: a @ K @ a - q @ a,
        np.full(n, 1 / n),
        jac=lambda a: 2 * K @ a - q,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(n)},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return np.sqrt(-result.fun)


clouds = arrays(float, st.tuples(st.integers(2, 40), st.integers(1, 5)), elements=st.floats(-5, 5))


@settings(max_examples=150, deadline=None)
@given(clouds, st.sampled_from([0.001, 0.01, 0.1]))
def test_every_point_lies_within_the_guarantee(X, epsilon):
    ball = ball_of(X, epsilon=epsilon)
    _, distances = centre_and_distances(ball, X)
    slack = 1e-6 * np.abs(X).max()
    assert distances.max() <= ball.radius * (1 + epsilon) + slack
    assert (ball.alpha > 0).all()
    assert_allclose(ball.alpha.sum(), 1)
    assert len(set(ball.support)) == len(ball.support)
    if ball.reason == "covered":
        seen = max(distances.max() / ball.radius - 1, 0.0)
        assert_allclose(ball.violation, seen, atol=1e-4)
        assert ball.violation <= epsilon
        assert ball.columns_used == 2 + ball.iterations  # the first two are not counted


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 15), st.integers(1, 6))
def test_radius_is_exact_within_epsilon(seed, n, d):
    X = np.random.default_rng(seed).normal(size=(n, d))
    truth = exact_radius(X)
    ball = ball_of(X, epsilon=1e-6)
    assert_allclose(ball.radius, truth, rtol=1e-5)
    loose = ball_of(X, epsilon=0.1)
    assert truth / 1.1 - 1e-6 <= loose.radius <= truth * (1 + 1e-6)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_unit_and_place_do_not_matter(seed, unit, shift):
    X = np.random.default_rng(seed).normal(size=(30, 3))
    a, b = ball_of(X, start=0), ball_of(unit * (X + shift), start=0)
    assert_allclose(b.radius, unit * a.radius, rtol=1e-4)


def test_support_lies_on_the_sphere():
    X = np.random.default_rng(0).normal(size=(200, 4))
    ball = ball_of(X, epsilon=1e-8)
    _, distances = centre_and_distances(ball, X)
    assert_allclose(distances[ball.support], ball.radius, rtol=1e-6)
    assert len(ball.support) <= 5, "d + 1 points determine a ball in general position"


def test_two_points():
    ball = ball_of(np.array([[0.0, 0.0], [6.0, 8.0]]))
    assert_allclose(ball.radius, 5)
    assert_allclose(ball.alpha, [0.5, 0.5])


def test_points_on_a_sphere():
    X = np.random.default_rng(1).normal(size=(500, 3))
    X = 7 * X / np.linalg.norm(X, axis=1, keepdims=True) + [1, 2, 3]
    ball = ball_of(X, epsilon=1e-4)
    centre, _ = centre_and_distances(ball, X)
    assert_allclose(ball.radius, 7, rtol=1e-3)
    assert_allclose(centre, [1, 2, 3], atol=0.05)


@pytest.mark.parametrize("X", [np.ones((6, 3)), np.zeros((4, 2)), np.ones((1, 2))])
def test_identical_points(X):
    ball = ball_of(X, start=len(X) - 1)
    assert ball.radius == 0
    assert ball.reason == "identical points"
    assert list(ball.support) == [len(X) - 1]
    assert (ball.iterations, ball.violation, ball.columns_used) == (0, 0.0, 1)


def test_corners_of_a_cube_need_two():
    X = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T.astype(float)
    ball = ball_of(X)
    assert_allclose(ball.radius, np.sqrt(3) / 2)
    assert_allclose(X[ball.support].sum(axis=0), 1)  # two opposite corners
    assert len(ball.support) == ball.columns_used == 2


@pytest.mark.parametrize("n", [20, 1000, 50_000])
def test_core_set_does_not_grow_with_the_number_of_points(n):
    """Unit vectors: any k of them have R² = 1 − 1/k, and the others lie at √(1 + 1/k)."""
    ball = minimum_enclosing_ball(
        np.ones(n), lambda j: (np.arange(n) == j).astype(float), epsilon=0.1
    )
    k = np.arange(2, 20)
    needed = k[np.sqrt((1 + 1 / k) / (1 - 1 / k)) <= 1.1][0]
    assert ball.columns_used == len(ball.support) == needed == 11  # the bound is 2/ε = 20


def test_core_set_ignores_points_between_others():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 10))
    between = (
        rng.dirichlet(np.ones(5), size=5000)[:, :, None] * X[rng.integers(500, size=(5000, 5))]
    )
    a, b = ball_of(X), ball_of(np.concatenate([X, between.sum(axis=1)]))
    assert a.columns_used == b.columns_used
    assert_allclose(a.radius, b.radius)


def test_epsilon_must_be_positive():
    with pytest.raises(ValueError, match="epsilon must be positive; got 0"):
        ball_of(np.eye(3), epsilon=0)
