"""Discriminants against the paper's dense formulas and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.covariance import OAS
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)

from krein.core.covariance import ChosenCovariance, oas, shrinkage_to_identity, within_root
from krein.core.gaussian import (
    GaussianFamily,
    fit_fisher,
    fit_fisher_one_against_rest,
    fit_quadratic,
)
from krein.core.moments import ClassMoments
from krein.core.space import LandmarkSpace

from ..market import with_eigenvalues


def indefinite_problem(seed=0, n=60, lam=(9, -7, 5, -3, 2)):
    """Two classes that differ in their means, with an indefinite kernel of low rank."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    V = rng.normal(size=(n, len(lam))) + 1.5 * y[:, None]
    signs = np.sign(lam)
    return (V * signs) @ V.T, y, V, signs


def moments_of(B, y, n_classes=2, **kwargs):
    return ClassMoments.of(B, y, n_classes, origin=B.mean(axis=0), **kwargs)


def paper_ikfd(K, y):
    """α = N⁺(μ₊ − μ₋), b = −αᵀ(μ₊ + μ₋)/2, where μ± and N are computed from the columns of K."""
    plus, minus = K[:, y == 1], K[:, y == 0]
    mu_plus, mu_minus = plus.mean(axis=1), minus.mean(axis=1)
    N = sum(
        (part - part.mean(axis=1, keepdims=True)) @ (part - part.mean(axis=1, keepdims=True)).T
        for part in (plus, minus)
    )
    alpha = np.linalg.pinv(N, rcond=1e-10, hermitian=True) @ (mu_plus - mu_minus)
    return alpha, -alpha @ (mu_plus + mu_minus) / 2


@pytest.mark.parametrize("seed", range(5))
def test_decision_values_match_the_paper(seed):
    K, y, _, _ = indefinite_problem(seed)
    alpha, b = paper_ikfd(K, y)
    space = LandmarkSpace.of(K, "similarity")
    B = space.coordinates(K)
    model = fit_fisher(moments_of(B, y), shrinkage=0.0, priors=np.array([0.5, 0.5]))
    scores = model.scores(B)
    expected = (len(y) - 2) * (K @ alpha + b)
    assert_allclose(scores[:, 1] - scores[:, 0], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_pseudo_euclidean_and_associated_euclidean_space_give_the_same_scores(seed):
    """Haasdonk: with Σ_b J and Σ_w J in the quotient, w = J w_E, and ⟨w, x⟩_pE = w_Eᵀx."""
    _, y, V, signs = indefinite_problem(seed)
    J = np.diag(signs)
    means = np.array([V[y == c].mean(axis=0) for c in (0, 1)])
    within = sum((V[y == c] - means[c]).T @ (V[y == c] - means[c]) for c in (0, 1))
    w_pe = np.linalg.solve(within @ J, means[1] - means[0])  # maximises the quotient in pE
    scores_pe = V @ J @ w_pe
    model = fit_fisher(moments_of(V, y), shrinkage=0.0, priors=np.array([0.5, 0.5]))
    scores = model.scores(V)
    difference = (scores[:, 1] - scores[:, 0]) / (len(y) - 2)
    assert_allclose(difference - difference.mean(), scores_pe - scores_pe.mean(), rtol=1e-8)


def test_landmarks_that_span_give_the_dense_scores():
    K, y, _, _ = indefinite_problem(n=80)
    results = []
    for landmarks in (np.arange(80), np.arange(12), np.arange(40, 60)):
        space = LandmarkSpace.of(K[np.ix_(landmarks, landmarks)], "similarity")
        B = space.coordinates(K[:, landmarks])
        results.append(fit_fisher(moments_of(B, y), shrinkage=0.0).scores(B))
    spread = np.abs(results[0]).max()
    for other in results[1:]:
        d = (other[:, 1] - other[:, 0]) - (results[0][:, 1] - results[0][:, 0])
        assert np.abs(d).max() < 1e-8 * spread


def test_posteriors_match_linear_discriminant_analysis():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    B = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)) + 2 * y[:, None]
    ours = softmax(fit_fisher(moments_of(B, y, 3), shrinkage=0.0).scores(B), axis=1)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(B, y).predict_proba(B)
    assert_allclose(ours, theirs, atol=0.02)  # they divide the scatter by n, we by n − C
    assert (ours.argmax(axis=1) == theirs.argmax(axis=1)).mean() > 0.99


def test_each_one_against_rest_is_the_two_class_problem():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 200)
    B = rng.normal(size=(200, 5)) + y[:, None]
    together = fit_fisher_one_against_rest(moments_of(B, y, 4)).scores(B)
    for c in range(4):
        alone = fit_fisher(moments_of(B, (y == c).astype(int))).scores(B)
        assert_allclose(together[:, c], alone[:, 1] - alone[:, 0], rtol=1e-8, atol=1e-8)


def test_one_against_rest_probabilities_are_normalised():
    scores = np.random.default_rng(0).normal(size=(20, 4))
    for n_classes in (3, 4):
        s = scores[:, :n_classes]
        each = 1 / (1 + np.exp(-s))
        found = np.exp(GaussianFamily(n_classes, one_against_rest=True).log_proba(s))
        assert_allclose(found, each / each.sum(axis=1, keepdims=True))
        assert_allclose(np.exp(GaussianFamily(n_classes).log_proba(s)), softmax(s, axis=1))
    two = scores[:, :2]  # the joint problem, each class against the other
    found = np.exp(GaussianFamily(2, one_against_rest=True).log_proba(two))
    assert_allclose(found, softmax(two, axis=1))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-8, 1e8))
def test_the_unit_of_the_coordinates_does_not_matter(seed, unit):
    rng = np.random.default_rng(seed)
    y = np.arange(50) % 3
    B = rng.normal(size=(50, 6)) + y[:, None]
    for fit, by_class in (
        (fit_fisher, False),
        (fit_fisher_one_against_rest, False),
        (fit_quadratic, True),
    ):
        a = fit(moments_of(B, y, 3, by_class=by_class)).scores(B)
        b = fit(moments_of(unit * B, y, 3, by_class=by_class)).scores(unit * B)
        a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
        assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_oas_agrees_with_scikit_learn_except_for_a_missing_term():
    """scikit-learn omits the −2/p of the paper's equation 23; the results agree for large p."""
    X = np.random.default_rng(0).normal(size=(30, 400)) * np.linspace(1, 3, 400)
    estimator = OAS().fit(X)
    S = (X - X.mean(axis=0)).T @ (X - X.mean(axis=0)) / 30
    assert_allclose(oas(S, 30), estimator.shrinkage_, rtol=0.02)


def test_oas_by_the_papers_formula():
    S, n, p = np.diag([4.0, 2.0, 1.0]), 20, 3
    numerator = (1 - 2 / p) * np.trace(S @ S) + np.trace(S) ** 2
    denominator = (n + 1 - 2 / p) * (np.trace(S @ S) - np.trace(S) ** 2 / p)
    assert_allclose(oas(S, n), numerator / denominator)
    assert oas(np.eye(3), 20) == 1.0
    assert oas(S, 1) == 1.0


def test_shrinkage_to_identity_finds_the_best_share_on_average():
    rng = np.random.default_rng(0)
    sigma = np.diag([3.0, 1.5, 1.0, 0.5, 0.2])
    n, shares, best = 12, [], []
    grid = np.linspace(0, 1, 51)
    for _ in range(400):
        X = rng.normal(size=(n + 1, 5)) @ np.sqrt(sigma)
        S = np.cov(X.T)
        shares.append(shrinkage_to_identity(S, n))
        best.append([(((1 - r) * S + r * np.eye(5) - sigma) ** 2).sum() for r in grid])
    oracle = grid[np.argmin(np.mean(best, axis=0))]
    assert abs(np.median(shares) - oracle) < 0.15


def test_shrinkage_to_identity_is_a_share():
    rng = np.random.default_rng(1)
    found = []
    for scale in (0.1, 1.0, 10.0):
        for n in (2, 3, 5, 50):
            X = scale * rng.normal(size=(n + 1, 5))
            found.append(shrinkage_to_identity(np.cov(X.T), n))
    assert min(found) >= 0
    assert max(found) == 1.0  # few objects whose covariance is the identity
    # with n = 2, the estimated trace of Σ² is negative
    assert 0 <= shrinkage_to_identity(np.diag([1e-3, 1e-3, 1e-3]), 2) <= 1
    assert shrinkage_to_identity(np.diag([1.0, 2.0]), 1) == 1.0  # nothing to estimate it from
    assert shrinkage_to_identity(np.eye(3), 1e6) == 1.0


def test_within_root_inverts_the_shrunk_covariance():
    S = with_eigenvalues([4, 3, 2, 1, 0.5], 5)
    moments = ClassMoments(np.zeros(5), np.array([11.0]), np.zeros((1, 5)), 10 * S)
    A, _ = within_root(moments, 0.0)
    assert_allclose(A @ A.T, np.linalg.inv(S), rtol=1e-8)
    A, rho = within_root(moments, 0.3)
    assert rho == 0.3
    expected = np.linalg.inv(0.7 * S + 0.3 * np.trace(S) / 5 * np.eye(5))
    assert_allclose(A @ A.T, expected, rtol=1e-8)
    places = np.repeat([[4.0, 2.0], [-4.0, -2.0]], 5, axis=0)  # variances 16 and 4
    A, rho = within_root(moments_of(places, np.repeat([0, 1], 5), 2), "oas")
    assert_allclose(A @ A.T, np.eye(2) / 10)
    assert rho == 1.0


def test_classes_without_scatter_are_told_apart_by_the_nearest_mean():
    B = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], 5, axis=0)
    y = np.repeat([0, 1, 2], 5)
    for fit, by_class in ((fit_fisher, False), (fit_quadratic, True)):
        scores = fit(moments_of(B, y, 3, by_class=by_class)).scores(B + 0.1)
        assert (scores.argmax(axis=1) == y).all()


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_does_not_matter_for_classes_without_scatter(unit):
    B = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], 5, axis=0)
    y = np.repeat([0, 1, 2], 5)
    for fit, by_class in ((fit_fisher, False), (fit_quadratic, True)):
        ours, theirs = (
            softmax(fit(moments_of(u * B, y, 3, by_class=by_class)).scores(u * (B + 0.3)), axis=1)
            for u in (1.0, unit)
        )
        assert_allclose(ours, theirs, rtol=1e-6)


def test_an_absent_class_has_probability_zero():
    B = np.random.default_rng(0).normal(size=(20, 2))
    y = np.arange(20) % 2
    for fit, by_class in (
        (fit_fisher, False),
        (fit_fisher_one_against_rest, False),
        (fit_quadratic, True),
    ):
        scores = fit(moments_of(B, y, 3, by_class=by_class)).scores(B)
        assert (scores[:, 2] == -np.inf).all()
        assert np.isfinite(scores[:, :2]).all()


def test_quadratic_finds_what_linear_cannot():
    rng = np.random.default_rng(0)
    B = np.concatenate([rng.normal(size=(200, 3)), 4 * rng.normal(size=(200, 3))])
    y = np.repeat([0, 1], 200)
    quadratic = fit_quadratic(moments_of(B, y, by_class=True)).scores(B).argmax(axis=1)
    linear = fit_fisher(moments_of(B, y)).scores(B).argmax(axis=1)
    theirs = QuadraticDiscriminantAnalysis().fit(B, y).predict(B)
    assert (linear == y).mean() < 0.7
    assert (quadratic == y).mean() > 0.9
    assert (quadratic == theirs).mean() > 0.98


def test_quadratic_with_few_objects_falls_back_on_the_shared_covariance():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(41, 10))
    y = np.append(np.arange(40) % 2, 2)
    model = fit_quadratic(moments_of(B, y, 3, by_class=True))
    assert model.shrinkage[2] == 1.0
    assert np.isfinite(model.scores(B)).all()


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_quadratic_posteriors_match_gaussian_classes(shift):
    """The result does not depend on the origin of the coordinates."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 6000)
    B = shift + rng.normal(size=(6000, 3)) * (1 + y[:, None]) + 2 * np.eye(3)[y]
    moments = ClassMoments.of(B, y, 3, origin=np.full(3, shift - 1.0), by_class=True)
    unshrunk = ChosenCovariance("identity", np.ones(3), 0.0, 1.0, np.zeros(3), pseudo_objects=0.0)
    ours = softmax(fit_quadratic(moments, shrinkage=unshrunk).scores(B), axis=1)
    density = [
        multivariate_normal(own.mean(axis=0), np.cov(own.T)).logpdf(B) + np.log(len(own))
        for own in (B[y == c] for c in range(3))
    ]
    assert_allclose(ours, softmax(np.stack(density, axis=1), axis=1), rtol=1e-6, atol=1e-12)


def test_the_traces_behind_the_shrinkage_are_unbiased():
    """E tr S² = (1 + 1/n) tr Σ² + tr²Σ/n and E tr²S = tr²Σ + 2 tr Σ²/n, solved for Σ."""
    rng = np.random.default_rng(0)
    variances, n, draws = np.array([3.0, 1.5, 1.0, 0.5]), 10, 20_000
    X = rng.normal(size=(draws, n, 4)) * np.sqrt(variances)
    S = np.einsum("dni,dnj->dij", X, X) / n
    trace, squares = np.trace(S, axis1=1, axis2=2), (S**2).sum(axis=(1, 2))
    sigma_squares = (squares - trace**2 / n) / (1 + 1 / n - 2 / n**2)
    sigma_trace = trace**2 - 2 * sigma_squares / n
    assert_allclose(sigma_squares.mean(), (variances**2).sum(), rtol=0.02)
    assert_allclose(sigma_trace.mean(), variances.sum() ** 2, rtol=0.02)
    # and the function computes their quotient
    one = S[0]
    distance = ((one - np.eye(4)) ** 2).sum()
    expected = np.clip((sigma_trace[0] + sigma_squares[0]) / n / distance, 0, 1)
    assert_allclose(shrinkage_to_identity(one, n), expected)


def test_quadratic_separates_classes_of_very_different_spread():
    rng = np.random.default_rng(0)
    B = np.concatenate([rng.normal(size=(500, 3)), 100 * rng.normal(size=(500, 3))])
    y = np.repeat([0, 1], 500)
    P = softmax(fit_quadratic(moments_of(B, y, by_class=True)).scores(B), axis=1)
    assert -np.log(P[np.arange(1000), y]).mean() < 0.01


@pytest.mark.parametrize("n_dimensions", [2, 3])
def test_a_direction_without_variance_gets_a_thousandth_of_the_mean(n_dimensions):
    rng = np.random.default_rng(0)
    n = 20_000  # too many for the shared covariance to matter
    B = rng.normal(size=(2 * n, n_dimensions))
    B[n:, 0] = 0.0
    y = np.repeat([0, 1], n)
    model = fit_quadratic(moments_of(B, y, by_class=True), shrinkage=0.0)
    assert model.shrinkage[1] < 1e-3
    root = model.whiten @ model.roots[1]
    variances = np.linalg.eigvalsh(np.linalg.inv(root @ root.T))
    assert_allclose(variances[1:], 1.0, rtol=0.05)
    # relative to the shared covariance, diag(½, 1, …, 1), the other directions have variance 1, so
    # the mean is (r − 1)/r; the floor is a thousandth of that, in a direction whose unit is √½
    assert_allclose(variances[0], 0.5e-3 * (n_dimensions - 1) / n_dimensions, rtol=0.05)
