"""Left-out scores in closed form against refits, and the choices based on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax

from krein.core.calibration import fit_scale_and_offsets, fit_temperature
from krein.core.covariance import (
    TARGETS,
    ChosenCovariance,
    LeftOutObjects,
    WithinPath,
    choose_linear,
    left_out_linear,
    left_out_quadratic,
    oas_amount,
    target_metric,
)
from krein.core.gaussian import (
    GaussianFamily,
    fit_fisher,
    fit_quadratic,
    landmark_places,
    left_out_objects,
)
from krein.core.moments import ClassMoments
from krein.core.space import POWERS, LandmarkSpace

from ..market import with_eigenvalues


def problem(seed=0, n=40, landmarks=None, kind="similarity"):
    """Three classes, and an indefinite matrix of full rank or Manhattan distances."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    Z = rng.normal(size=(n, 5)) + np.eye(5)[y] * 3
    if kind == "similarity":
        V = Z @ Z.T + 3 * with_eigenvalues(rng.normal(size=n), n, seed)
    else:
        V = np.abs(Z[:, None] - Z[None]).sum(axis=2)
    L = np.arange(n) if landmarks is None else np.asarray(landmarks)
    space = LandmarkSpace.of(V[np.ix_(L, L)], kind)
    return V, y, L, space


def moments_of(B, y, weights=None, by_class=False):
    return ClassMoments.of(B, y, 3, origin=B.mean(axis=0), sample_weight=weights, by_class=by_class)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("amount", [1e-3, 0.3, 1.0])
def test_a_path_inverts_the_shrunk_covariance(target, dense, amount):
    V, y, L, space = problem(landmarks=None if dense else range(0, 40, 3))
    B = space.coordinates(V[:, L])
    moments = moments_of(B, y)
    t = target_metric(target, space.lam, moments)
    S = moments.within()
    mean = np.trace(S / t[:, None]) / len(t)
    sigma = ((1 - amount) * S + amount * mean * np.diag(t)) / (len(y) - 3)
    path = WithinPath.of(moments, t)
    # if every object is a landmark, BᵀB is diagonal and needs no eigendecomposition
    assert (path.rotation is None) == dense
    root = path.root(amount)
    assert_allclose(root @ root.T @ sigma, np.eye(len(t)), atol=1e-6)
    chosen = ChosenCovariance(target, t, amount, 2.0, np.array([0.0, 1.0, -1.0]))
    model = fit_fisher(moments, shrinkage=chosen)
    centre = B.mean(axis=0)
    d = moments.means - centre
    expected = (B - centre) @ np.linalg.solve(sigma, d.T) - 0.5 * np.einsum(
        "cr,rc->c", d, np.linalg.solve(sigma, d.T)
    )
    expected = 2 * expected + np.log(np.bincount(y) / len(y)) + chosen.offsets
    assert_allclose(model.scores(B), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_objects_with_company_in_their_class_can_be_left_out():
    """One other object of the class is enough, however small its weight, unless it is 0."""
    B = np.arange(14.0).reshape(7, 2) ** 2
    codes, weights = np.array([0, 0, 1, 1, 2, 2, 2]), np.array([1, 1e-5, 1, 0, 5, 0.5, 0.5])
    moments = moments_of(B, codes, weights)
    found = LeftOutObjects.of(moments, B, codes, weights)
    assert found.rows.tolist() == [0, 1, 4, 5, 6]
    assert_allclose(found.left_out, [1, 1e-5, 1, 0.5, 0.5])
    without = [[1e-5, 1, 6], [1, 1, 6], [1 + 1e-5, 1, 5], [1 + 1e-5, 1, 5.5], [1 + 1e-5, 1, 5.5]]
    assert_allclose(found.log_priors(), np.log(without))


@pytest.mark.parametrize("unit", [0.02, 1.0])
def test_a_path_counts_weights_below_one(unit):
    """The dense path inverts the shrunk covariance, however little a class weighs."""
    V, y, L, space = problem()
    B = space.coordinates(V[:, L])
    moments = moments_of(B, y, np.full(len(y), unit))
    t = np.abs(space.lam)
    dense = WithinPath.of(moments, t)
    assert dense.rotation is None
    S = moments.within()
    mean = np.trace(S / t[:, None]) / len(t)
    sigma = (0.7 * S + 0.3 * mean * np.diag(t)) / max(unit * len(y) - 3, 1.0)
    root = dense.root(0.3)
    assert_allclose(root @ root.T @ sigma, np.eye(len(t)), atol=1e-6)


def without(C, y, weights, i, share, ridge, drop=None):
    """−½d² of object i by plain formulas on the columns of C, without i and column `drop`."""
    w = weights.copy()
    w[i] -= min(w[i], 1.0)
    F = C if drop is None else np.delete(C, drop, axis=1)
    R = ridge if drop is None else np.delete(np.delete(ridge, drop, 0), drop, 1)
    means = np.stack([np.average(F[y == c], axis=0, weights=w[y == c]) for c in range(3)])
    U = F - means[y]
    sigma = share * (U * w[:, None]).T @ U + R
    v = F[i] - means
    return -0.5 * np.einsum("cr,rc->c", v, np.linalg.solve(sigma, v.T)), sigma, v


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_linear_scores_match_a_refit_in_similarities(dense, weighted):
    V, y, L, space = problem(landmarks=None if dense else range(0, 40, 3))
    C = V[:, L]
    # with unequal weights, BᵀB is no longer diagonal and the general path is used
    weights = 1.0 + np.arange(40) % 2 if weighted else np.ones(40)
    B = space.coordinates(C)
    moments = moments_of(B, y, weights)
    place = np.full(40, -1)
    place[L] = np.arange(len(L))
    objects = LeftOutObjects.of(moments, B, y, weights, space.T, place)
    path = WithinPath.of(moments, target_metric("similarities", space.lam, moments))
    assert (path.rotation is None) == (dense and not weighted)
    amounts = (0.02, 0.5)
    found = left_out_linear(objects, path, iter(amounts))
    for amount, scores in zip(amounts, found, strict=True):
        share = (1 - amount) / path.freedom
        ridge = amount * path.mean / path.freedom * np.eye(len(L))
        for i in range(40):
            drop = place[i] if place[i] >= 0 else None
            expected, _, _ = without(C, y, weights, i, share, ridge, drop)
            assert_allclose(scores[i], expected, rtol=1e-6)


@pytest.mark.parametrize("pseudo", [2.0, 30.0, np.inf])
def test_quadratic_scores_match_a_refit(pseudo):
    V, y, L, space = problem(n=60, landmarks=range(0, 60, 6))
    C, n = V[:, L], 60
    B = space.coordinates(C)
    moments = moments_of(B, y, by_class=True)
    place = np.full(n, -1)
    place[L] = np.arange(len(L))
    objects = LeftOutObjects.of(moments, B, y, None, space.T, place)
    path = WithinPath.of(moments, target_metric("similarities", space.lam, moments))
    share = path.share(0.1)
    (scores,) = left_out_quadratic(objects, path.root(0.1), share, [pseudo])
    ridge = 0.1 * path.mean / path.freedom * np.eye(len(L))
    constant = []
    for i in range(n):
        drop = place[i] if place[i] >= 0 else None
        _, sigma, v = without(C, y, np.ones(n), i, share, ridge, drop)
        F = C if drop is None else np.delete(C, drop, axis=1)
        rest = np.arange(n) != i
        expected = []
        for c in range(3):
            own = F[rest & (y == c)]
            S = (own - own.mean(axis=0)).T @ (own - own.mean(axis=0))
            cov = sigma if np.isinf(pseudo) else (S + pseudo * sigma) / (len(own) - 1 + pseudo)
            d = v[c] @ np.linalg.solve(cov, v[c])
            expected.append(-0.5 * (d + np.linalg.slogdet(cov)[1]))
        difference = scores[i] - np.array(expected)
        # the coordinates add the same constant to all classes
        assert_allclose(difference - difference.mean(), 0, atol=1e-7 * np.abs(expected).max())
        constant.append(difference.mean())
    assert np.isfinite(constant).all()


def test_quadratic_model_and_left_out_scores_use_the_same_covariances():
    V, y, L, space = problem(n=600, landmarks=range(0, 600, 60))
    B = space.coordinates(V[:, L])
    moments = moments_of(B, y, by_class=True)
    metric = target_metric("identity", space.lam, moments)
    chosen = ChosenCovariance("identity", metric, 0.1, 0.5, np.array([0.1, 0, -0.1]), 20.0)
    model = fit_quadratic(moments, shrinkage=chosen).scores(B)
    path = WithinPath.of(moments, metric)
    objects = LeftOutObjects.of(moments, B, y)
    (found,) = left_out_quadratic(objects, path.root(0.1), path.share(0.1), [20.0])
    found = log_softmax(0.5 * found + objects.log_priors() + chosen.offsets, axis=1)
    # leaving out one of 600 objects changes little, and is worse on average
    gap = (log_softmax(model, axis=1) - found)[np.arange(600), y]
    assert 0 < gap.mean() < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_the_ridge_is_searched_if_every_object_is_a_landmark(seed):
    """The exact left-out loss decides; the identity is tried with the amount given by OAS."""
    V, y, L, space = problem(seed)
    B = space.coordinates(V)
    moments = moments_of(B, y)
    objects = LeftOutObjects.of(moments, B, y, None, space.T, L)
    assert objects.mostly_landmarks
    ridge, loss = choose_linear(objects, space.lam, exact=True)
    assert ridge.target == "similarities"
    amounts = [1e-4, 1e-2, oas_amount(moments), 0.3, 0.7, 1.0]
    path = WithinPath.of(moments, ridge.metric)
    found = [
        fit_scale_and_offsets(scores, objects.log_priors(), y).loss
        for scores in left_out_linear(objects, path, iter(amounts))
    ]
    assert loss < 1.01 * min(found)
    both, least = choose_linear(objects, space.lam)
    assert least <= loss
    if both.target == "identity":
        assert both.amount == oas_amount(moments)


def test_scale_and_offsets_are_at_the_minimum():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    scores = 5 * (np.eye(3)[y] + rng.normal(size=(200, 3)))
    prior = np.log(np.tile([0.5, 0.3, 0.2], (200, 1)))
    w = rng.integers(1, 4, 200).astype(float)
    found = fit_scale_and_offsets(scores, prior, y, w)

    def objective(theta):
        beta, o = np.exp(theta[0]), theta[1:]
        log_p = log_softmax(beta * scores + prior + o, axis=1)
        loss = -w @ log_p[np.arange(200), y] - w @ log_p.mean(axis=1) / w.sum()
        return loss + beta - 1 - np.log(beta) + 0.5 * o @ o

    best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    assert_allclose(found.loss * w.sum(), best.fun, rtol=1e-8)
    assert_allclose(
        np.append(found.scale, found.offsets),
        [np.exp(best.x[0]), *best.x[1:]],
        rtol=1e-3,
        atol=1e-4,
    )


def test_separable_objects_do_not_make_the_scale_infinite():
    y = np.repeat([0, 1], 20)
    scores = 100.0 * np.eye(2)[y]
    scale = fit_scale_and_offsets(scores, np.zeros((40, 2)), y).scale
    beta = fit_temperature(scores, y, lambda s: log_softmax(s, axis=1))
    for found in (scale, beta):  # 40 of 40 are right: expect about one error in 40 to 80
        assert 1 / 160 < 1 / (1 + np.exp(100 * found)) < 1 / 20


def test_nothing_is_chosen_if_too_few_can_be_left_out():
    V, _, L, space = problem(n=6)
    y = np.array([0, 0, 0, 1, 1, 2])
    B = space.coordinates(V[:, L])
    moments = moments_of(B, y)
    three = LeftOutObjects.of(moments, B[3:], y[3:])
    assert len(three) == 2
    assert choose_linear(three, space.lam) is None


def test_classes_without_any_spread_choose_nothing():
    """Rounding does not count as spread, wherever the classes are."""
    y = np.arange(40) % 2
    B = 1e3 + np.c_[y, 1 - y] + 1e-13 * np.random.default_rng(0).normal(size=(40, 2))
    moments = ClassMoments.of(B, y, 2, origin=np.array([1e3, 1e3]))
    assert choose_linear(LeftOutObjects.of(moments, B, y), np.ones(2)) is None
    B += 0.1 * np.random.default_rng(1).normal(size=B.shape)
    moments = ClassMoments.of(B, y, 2, origin=np.array([1e3, 1e3]))
    assert choose_linear(LeftOutObjects.of(moments, B, y), np.ones(2)) is not None


@pytest.mark.parametrize("kind", ["similarity", "dissimilarity"])
@pytest.mark.parametrize("by_class", [False, True])
def test_left_out_scores_match_the_best_power(by_class, kind):
    family = GaussianFamily(3, by_class=by_class)
    V, y, L, space = problem(n=60, landmarks=range(0, 60, 5), kind=kind)
    if kind == "dissimilarity":
        V = V**4  # so that a lower power is better
        space = LandmarkSpace.of(V[np.ix_(L, L)], kind)
    values = np.ascontiguousarray(V[:, L])
    scores, _, _ = family.left_out(space, values, y, L)
    places = landmark_places(space, values)
    tried = []
    for power in POWERS if kind == "dissimilarity" else (1.0,):
        its = space.with_power(power) if kind == "dissimilarity" else space
        moments = family.moments(its, its.origin(), values, y)
        objects = left_out_objects(its, moments, values, y, None, places)
        chosen, loss = family.chosen(its, objects)
        tried.append((loss, chosen.left_out_scores(objects)))
    best = min(tried, key=lambda one: one[0])[1]
    assert_allclose(scores, best)
    assert len(tried) == 1 or not np.allclose(best, tried[0][1])
