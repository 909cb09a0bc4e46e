"""Pruning landmarks: the closed form against refits, and its effect on the loss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax

from krein.core.calibration import fit_temperature
from krein.core.gaussian import discriminant_on, fit_fisher, prune_landmarks
from krein.core.moments import ClassMoments
from krein.core.space import LandmarkSpace
from krein.measures.vectors import ELM


def problem(seed=0, n=400, m=15, kind="similarity"):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 6))
    X[:, :2] += 2.0 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    landmarks = np.sort(rng.choice(n, m, replace=False))
    if kind == "similarity":
        signs = np.array([1, 1, 1, 1, -1, -1])
        values = np.tanh((X * signs) @ X[landmarks].T / 4)
    else:
        values = np.abs(X[:, None] - X[landmarks][None]).sum(axis=2) ** 0.8
    space = LandmarkSpace.of(values[landmarks], kind)
    moments = ClassMoments.of(space.coordinates(values), y, 3, origin=space.origin())
    return values, y, space, moments


def criterion(C, y, kept):
    """Wilks' log|I + Q| of the similarities to the kept landmarks, by definition."""
    C = C[:, kept]
    mean = C.mean(axis=0)
    between = sum(
        (y == c).mean() * np.outer(C[y == c].mean(0) - mean, C[y == c].mean(0) - mean)
        for c in range(3)
    )
    within = sum(
        (C[y == c] - C[y == c].mean(0)).T @ (C[y == c] - C[y == c].mean(0)) for c in range(3)
    ) / (len(y) - 3)
    return np.linalg.slogdet(np.eye(len(kept)) + np.linalg.solve(within, between))[1]


@pytest.mark.parametrize("seed", range(3))
def test_the_criterion_is_wilks_and_the_greedy_step_is_the_best(seed):
    values, y, space, moments = problem(seed)
    model = fit_fisher(moments, shrinkage=0.0)
    pruned = prune_landmarks(space, moments, model, 0.0)
    everyone = np.arange(values.shape[1])
    assert_allclose(pruned.criterion[0], criterion(values, y, everyone), rtol=1e-4)
    one_less = max(criterion(values, y, np.delete(everyone, j)) for j in everyone)
    if len(pruned.criterion) > 1:
        assert_allclose(pruned.criterion[1], one_less, rtol=1e-4)
    assert_allclose(pruned.criterion[-1], criterion(values, y, pruned.kept), rtol=1e-3)
    assert (np.diff(pruned.criterion) <= 1e-9).all()


@pytest.mark.parametrize("kind", ["similarity", "dissimilarity"])
def test_scores_stay_and_landmarks_go(kind):
    values, y, space, moments = problem(kind=kind)
    model = fit_fisher(moments)
    full = model.scores(space.coordinates(values))
    pruned = prune_landmarks(space, moments, model, "oas")
    dual, intercept = discriminant_on(pruned.kept, space, moments, model, "oas")
    C = space.restricted(pruned.kept).similarities(values[:, pruned.kept])
    scores = C @ dual + intercept
    assert len(pruned.kept) < values.shape[1]
    before, after = (full.argmax(1) == y).mean(), (scores.argmax(1) == y).mean()
    assert after > before - np.sqrt(before * (1 - before) / len(y))
    centred = [s - s.mean(axis=1, keepdims=True) for s in (full, scores)]
    assert np.corrcoef(centred[0].ravel(), centred[1].ravel())[0, 1] > 0.95


@pytest.mark.parametrize("kind", ["similarity", "dissimilarity"])
def test_nothing_to_prune_leaves_the_scores_as_they_are(kind):
    """With no landmark dropped, the similarity-space solution is the discriminant itself."""
    values, _, space, moments = problem(m=8, kind=kind)
    model = fit_fisher(moments, shrinkage=0.01)
    pruned = prune_landmarks(space, moments, model, 0.01, penalty=0.0)
    dual, intercept = discriminant_on(pruned.kept, space, moments, model, 0.01)
    assert len(pruned.kept) == 8
    scores = space.similarities(values) @ dual + intercept
    expected = model.scores(space.coordinates(values))
    spread = np.ptp(expected)
    assert np.abs((scores - scores[:, :1]) - (expected - expected[:, :1])).max() < 1e-4 * spread


@pytest.mark.parametrize("m", [50, 100])
def test_an_ill_conditioned_kernel_keeps_its_scores_if_nothing_is_pruned(m):
    X = np.random.default_rng(0).normal(size=(500, 3))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)
    values = ELM().block(X, X[:m])
    space = LandmarkSpace.of(values[:m], "similarity")
    moments = ClassMoments.of(space.coordinates(values), y, 3, origin=space.origin())
    model = fit_fisher(moments)
    pruned = prune_landmarks(space, moments, model, "oas", penalty=0.0)
    dual, intercept = discriminant_on(pruned.kept, space, moments, model, "oas")
    scores = values[:, pruned.kept] @ dual + intercept
    expected = model.scores(space.coordinates(values))
    a, b = scores - scores[:, :1], expected - expected[:, :1]
    assert np.abs(a - b).max() < 1e-3 * np.ptp(b)


@pytest.mark.parametrize("kind", ["similarity", "dissimilarity"])
def test_no_landmark_is_kept_twice(kind):
    values, y, space, _ = problem(m=10, kind=kind)
    twice = np.r_[0:10, 0:10]
    double = LandmarkSpace.of(space.landmark_values[np.ix_(twice, twice)], kind)
    B = double.coordinates(values[:, twice])
    moments2 = ClassMoments.of(B, y, 3, origin=double.origin())
    model2 = fit_fisher(moments2)
    pruned = prune_landmarks(double, moments2, model2, "oas")
    assert len(np.unique(twice[pruned.kept])) == len(pruned.kept)
    assert np.isfinite(discriminant_on(pruned.kept, double, moments2, model2, "oas")[0]).all()
    assert np.isfinite(pruned.criterion).all()


def test_temperature_recovers_a_known_one():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(20_000, 3))
    p = np.exp(log_softmax(true, axis=1))
    y = (rng.random((len(p), 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    for factor in (0.1, 1.0, 30.0):
        beta = fit_temperature(factor * true, y, lambda s: log_softmax(s, axis=1))
        assert_allclose(beta, 1 / factor, rtol=0.05)


def test_temperature_stays_finite_where_everything_is_right():
    scores = np.eye(3)[np.arange(30) % 3] * 5.0
    beta = fit_temperature(scores, np.arange(30) % 3, lambda s: log_softmax(s, axis=1))
    wrong = 2 / (2 + np.exp(5 * beta))
    assert 1 / 60 < wrong < 1 / 30  # 2/3 of one object in 31, minus the effect of the prior on β
