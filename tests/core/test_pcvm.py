"""Properties of the posterior mode, over a collection of kernels that may occur in practice."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from krein.core.pcvm.left_out import choose_scale
from krein.core.pcvm.mode import GammaPrior, Posterior, Probit, Softmax, fit_pcvm, signs
from krein.core.pcvm.rows import Rows, column_statistics
from krein.core.pcvm.training import PCVMFamily, prune_pcvm
from krein.core.space import LandmarkSpace

from .fixed import FixedPrecision


def _psd(rng, N):
    X = rng.normal(size=(N, 3))
    return np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))


def _indefinite(rng, N):
    A = rng.normal(size=(N, N))
    return A + A.T


def _pairs(rng, N):
    U = np.linalg.qr(rng.normal(size=(N, N)))[0]
    lam = np.repeat(rng.random(N // 2 + 1), 2)[:N] * np.where(np.arange(N) % 2, -1, 1)
    return (U * lam) @ U.T


def _rank_two(rng, N):
    B = rng.normal(size=(N, 2))
    return (B * [1, -1]) @ B.T


def _duplicates(rng, N):
    K = _indefinite(rng, N)
    half = np.arange(N) // 2
    return K[np.ix_(half, half)]


def _zero(rng, N):
    return np.zeros((N, N))


def _separable(rng, N):
    y = np.arange(N) % 2
    return np.where(y[:, None] == y, 1.0, -1.0) * 1e3


def _constant_column(rng, N):
    K = _psd(rng, N)
    K[:, 0] = 7.0
    return K


MARKET = [
    _psd, _indefinite, _pairs, _rank_two, _duplicates, _zero, _separable, _constant_column
]  # fmt: skip


def _labels(rng, N, n_classes, tiny=False):
    y = np.arange(N) % n_classes
    if tiny:  # one class with a single object
        y = np.where(np.arange(N) == 0, n_classes - 1, y % max(1, n_classes - 1))
    return y


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_features_whose_squares_overflow_or_underflow_are_refused(unit):
    """This does not depend on their signs, which cancel here."""
    y = np.arange(40) % 2
    F = unit * np.random.default_rng(0).permutation(np.repeat([-1.0, 1.0], 20))[:, None]
    with pytest.raises(ValueError, match="outside the range of floating-point numbers"):
        column_statistics(Rows(F, y), full=True)


@pytest.mark.parametrize("make", MARKET)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_posterior_rises_and_optimality_holds(make, n_classes, tiny, solver):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        N = 30
        K, y = make(rng, N), _labels(rng, N, n_classes, tiny)
        fit = fit_pcvm(Rows(K, y), y, solver=solver, tol=1e-8 if solver == "newton" else 1e-5)
        steps = np.diff(fit.objective_path)
        assert (steps >= -1e-12 * np.abs(fit.objective_path[1:])).all()
        assert fit.converged, (fit.reason, fit.violation)
        assert np.isfinite(fit.weights).all()
        S = signs(y, fit.link, n_classes)
        assert (S * fit.weights >= 0).all()


@pytest.mark.parametrize("make", MARKET)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_unit_of_the_kernel_does_not_matter(make, n_classes):
    rng = np.random.default_rng(5)
    K, y = make(rng, 40), _labels(rng, 40, n_classes)
    reference = fit_pcvm(Rows(K, y), y)
    for unit in (1e-3, 1e3):
        other = fit_pcvm(Rows(unit * K, y), y)
        np.testing.assert_allclose(
            other.scores(unit * K), reference.scores(K), atol=1e-6, rtol=1e-6
        )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_m_step_matches_the_brute_force_solution(n_classes):
    rng = np.random.default_rng(2)
    N, M = 25, 6
    F, y, basis = rng.normal(size=(N, M)), _labels(rng, N, n_classes), rng.integers(0, n_classes, M)
    link = Probit() if n_classes == 2 else Softmax()
    C = link.n_scores(n_classes)
    prior = FixedPrecision(0.2 + rng.random((M, C)))
    s = 0.5 + rng.random(N)
    fit = fit_pcvm(Rows(F, y, s), basis, prior=prior)
    S = signs(basis, link, n_classes)
    X = (F - np.average(F, axis=0, weights=s)) / np.sqrt(
        np.average((F - np.average(F, axis=0, weights=s)) ** 2, axis=0, weights=s)
    )

    def objective(v):
        U, beta = v[: M * C].reshape(M, C), v[M * C :]
        loss = link.loss_residual(X @ U + beta, y, s)[0]
        return loss + prior.value(U) + 0.5e-6 * beta @ beta

    bounds = [(0 if q > 0 else None, 0 if q < 0 else None) for q in S.ravel()]
    brute = minimize(
        objective, np.zeros(M * C + C), bounds=bounds + [(None, None)] * C, method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxfun": 10**6, "maxiter": 10**5},
    )  # fmt: skip
    assert -fit.objective_path[-1] <= brute.fun + 1e-9
    np.testing.assert_allclose(fit.scaled.ravel(), brute.x[: M * C], atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("q", [None, 9, 3])
def test_gradient_of_the_posterior_agrees_with_differences(n_classes, q):
    rng = np.random.default_rng(3)
    N, r = 20, 5
    F, y = rng.normal(size=(N, r)), _labels(rng, N, n_classes)
    Q = None if q is None else rng.normal(size=(r, q))
    M = q or r
    link = Probit() if n_classes == 2 else Softmax()
    S = signs(rng.integers(0, n_classes, M), link, n_classes)
    post = Posterior(Rows(F, y, block_rows=7), link, Q, S, GammaPrior())
    C = S.shape[1]
    v = rng.random(M * C + C)

    def value(v):
        return post.value_gradient(v[: M * C].reshape(M, C), v[M * C :])[0]

    _, gx, gb = post.value_gradient(v[: M * C].reshape(M, C), v[M * C :])
    np.testing.assert_allclose(
        np.concatenate([gx.ravel(), gb]), approx_fprime(v, value, 1e-7), atol=1e-5
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("definite", [True, False])
def test_low_rank_equals_dense_on_a_kernel_of_low_rank(n_classes, definite):
    rng = np.random.default_rng(4)
    N, r = 60, 6
    B, J = rng.normal(size=(N, r)), np.ones(r) if definite else np.array([1, 1, 1, 1, -1, -1])
    K, y = (B * J) @ B.T, (B[:, 0] + 0.3 * rng.normal(size=N) > 0).astype(int)
    if n_classes == 3:
        y[B[:, 1] > 0.7] = 2
    dense = fit_pcvm(Rows(K, y), y)
    low = fit_pcvm(Rows(B, y), y, J[:, None] * B.T)
    np.testing.assert_allclose(low.scores(B), dense.scores(K), atol=1e-6, rtol=1e-6)


def test_result_does_not_depend_on_the_blocks():
    rng = np.random.default_rng(6)
    K, y = _psd(rng, 50), _labels(rng, 50, 2)
    one, many = (fit_pcvm(Rows(K, y, block_rows=b), y) for b in (50, 7))
    np.testing.assert_allclose(one.scores(K), many.scores(K), atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weighted_rows_count_as_repeated_rows(n_classes):
    rng = np.random.default_rng(7)
    K, y = _psd(rng, 30), _labels(rng, 30, n_classes)
    s = rng.integers(0, 3, 30)
    s[:n_classes] = 1
    weighted = fit_pcvm(Rows(K, y, s), y)
    repeated = fit_pcvm(Rows(np.repeat(K, s, axis=0), np.repeat(y, s)), y)
    np.testing.assert_allclose(weighted.scores(K), repeated.scores(K), atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_warm_start_with_more_columns_finds_the_mode_sooner(n_classes):
    rng = np.random.default_rng(8)
    N = 200
    X = rng.normal(size=(N, 2))
    K = np.exp(-((X[:, None] - X[None, :40]) ** 2).sum(-1))
    y = (np.hypot(*X.T) > 1).astype(int) + (X[:, 0] > 1) * (n_classes - 2)
    few = fit_pcvm(Rows(K[:, :36], y), y[:36], solver="lbfgs")
    W = np.zeros((40, few.weights.shape[1]))
    W[:36] = few.weights
    warm = fit_pcvm(Rows(K, y), y[:40], start=(W, few.bias), solver="lbfgs")
    cold = fit_pcvm(Rows(K, y), y[:40], solver="lbfgs")
    assert warm.n_passes < cold.n_passes
    assert warm.objective_path[0] > cold.objective_path[0]
    np.testing.assert_allclose(warm.objective_path[0], few.objective_path[-1], rtol=1e-6)


def test_class_without_weight_is_named():
    with pytest.raises(ValueError, match="no row of class 1"):
        fit_pcvm(Rows(np.eye(4), np.array([0, 0, 2, 2])), np.array([0, 0, 2, 2]))


def test_basis_and_labels_must_match():
    with pytest.raises(ValueError, match="4 basis functions but 3 classes"):
        fit_pcvm(Rows(np.eye(4), np.array([0, 1, 0, 1])), np.array([0, 0, 1]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_extreme_units_change_nothing_or_are_refused(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.digitize(X[:, 0], [0.0, 0.8][: n_classes - 1])
    K = np.exp(-((X[:, None] - X[None, :10]) ** 2).sum(-1))
    rows, basis = Rows(K, y), y[:10]
    pruned = prune_pcvm(rows, basis, fit_pcvm(rows, basis), prior=GammaPrior())[0]
    for unit in (2.0**-450, 2.0**450):
        other = Rows(unit * K, y)
        found = prune_pcvm(other, basis, fit_pcvm(other, basis), prior=GammaPrior())[0]
        np.testing.assert_array_equal(found.kept, pruned.kept)
        np.testing.assert_allclose(found.scores(unit * K), pruned.scores(K), rtol=1e-6)
    for unit in (1e-160, 1e160):
        with pytest.raises(ValueError, match="multiply the values of the measure"):
            fit_pcvm(Rows(unit * K, y), basis)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_start_with_wrong_signs_leads_to_the_same_mode(n_classes):
    rng = np.random.default_rng(4)
    K, y = _psd(rng, 40), _labels(rng, 40, n_classes)
    cold = fit_pcvm(Rows(K, y), y)
    wrong = (-3 * signs(y, cold.link, n_classes), np.zeros(np.shape(cold.bias)))
    warm = fit_pcvm(Rows(K, y), y, start=wrong)
    assert (signs(y, warm.link, n_classes) * warm.weights >= 0).all()
    np.testing.assert_allclose(warm.scores(K), cold.scores(K), atol=1e-5)


def test_one_against_rest_solves_a_problem_per_class():
    classes = np.array([0, 1, 2, 1])
    found = PCVMFamily(3, one_against_rest=True).problems(classes)
    assert [C for _, _, C in found] == [2, 2, 2]
    for c, (recode, landmarks, _) in enumerate(found):
        np.testing.assert_array_equal(recode, np.arange(3) == c)
        np.testing.assert_array_equal(landmarks, classes == c)
    for family in (PCVMFamily(3), PCVMFamily(2, one_against_rest=True)):
        ((recode, _, C),) = family.problems(classes % family.n_classes)
        assert C == family.n_classes == len(recode)


def test_a_model_learned_without_a_scale_has_the_default_prior():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 3
    X = X + 2 * np.eye(3)[y, :2]
    K = np.exp(-((X[:, None] - X[None, :12]) ** 2).sum(-1))
    space = LandmarkSpace.of(K[:12], "similarity")
    scorer = PCVMFamily(3).learn(space, y[:12], K, y, None)
    fit = fit_pcvm(Rows(K, y), y[:12], prior=GammaPrior(0.5, 0.5))
    ours, theirs = scorer(K), fit.scores(K)
    ours, theirs = (S - S.mean(axis=1, keepdims=True) for S in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, atol=0.01 * np.abs(theirs).max())


def test_the_reported_scale_is_the_chosen_one():
    """GammaPrior(½, ½ scale²) is the prior that was chosen."""
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 3, size=(400, 2))
    y = (np.floor(X).sum(axis=1) % 2).astype(int)
    K = np.exp(-2 * ((X[:, None] - X[None, :40]) ** 2).sum(-1))
    F = Rows(K, y)
    _, scales = PCVMFamily(2).solve(F, None, y[:40])
    chosen = choose_scale(F, y[:40], None)[0]
    assert chosen.b != GammaPrior().b
    assert 0.5 * scales[0] ** 2 == pytest.approx(chosen.b)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_passes_over_the_rows_are_counted(n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % n_classes
    passes = []

    class Counted(Rows):
        def total(self, *args, **options):
            passes.append(1)
            return super().total(*args, **options)

    fit = fit_pcvm(Counted(X, y), y[:4])
    assert fit.n_passes == len(passes)
