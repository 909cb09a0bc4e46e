"""The leave-one-out loss against actual refits, and the choices based on it."""

import numpy as np
import pytest

from krein.core.pcvm.left_out import (
    LeaveOneOut,
    choose_scale,
    compare,
    inverse_root,
    leave_one_out,
    loss_curvature,
    score_covariance,
)
from krein.core.pcvm.mode import GammaPrior, curvature, fit_pcvm
from krein.core.pcvm.rows import Rows
from krein.core.pcvm.training import kept_weights, prune_pcvm, removal_order

from .fixed import FixedPrecision


def _rings(seed, N=200, m=30, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    K = np.exp(-((X[:, None] - X[None, :m]) ** 2).sum(-1))
    y = np.digitize(np.hypot(*X.T) + 0.2 * rng.normal(size=N), [1.0, 1.8][: n_classes - 1])
    return K, y


@pytest.mark.parametrize("seed", range(3))
def test_leave_one_out_is_close_to_refits(seed):
    N, m = 200, 8
    K, y = _rings(seed, N, m)
    prior = FixedPrecision(np.array(1.0))
    rows = Rows(K, y)
    fit = fit_pcvm(rows, y[:m], prior=prior)
    quick = leave_one_out(rows, LeaveOneOut.of(rows, fit))
    slow = 0.0
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        without = fit_pcvm(Rows(K[rest], y[rest], n_classes=2), y[:m], prior=prior)
        slow -= np.log(without.probabilities(K[i : i + 1])[0, y[i]]) / N
    # only to first order: weights on their bounds stay there, and the scaling is fixed
    seen = -fit.log_likelihood / N
    assert 0.85 < (quick - seen) / (slow - seen) < 1.1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_score_covariance_is_the_same_through_a_basis(n_classes):
    K, y = _rings(1, n_classes=n_classes)
    rows = Rows(K, y)
    fit = fit_pcvm(rows, y[:30])
    wide = np.column_stack([np.eye(30), np.zeros((30, 5))])
    other = fit_pcvm(rows, np.r_[y[:30], y[:5]], wide)
    np.testing.assert_allclose(
        score_covariance(LeaveOneOut.of(rows, fit).exact, K),
        score_covariance(LeaveOneOut.of(rows, other).exact, K),
        rtol=1e-4,
    )


def test_a_curvature_that_is_not_positive_has_no_root():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 4))
    G, prior = A.T @ A, np.array([0.5, 0.0, -1.0, 2.0])
    R = inverse_root(G, prior)
    np.testing.assert_allclose(R @ R.T, np.linalg.inv(G + np.diag(prior)), rtol=1e-6)
    assert inverse_root(G, np.array([0.5, 0.0, -100.0, 2.0])) is None  # no mode
    flat = G[:, [0, 1, 2, 2]][[0, 1, 2, 2]]  # two identical features: rounding is not an error
    R = inverse_root(flat, np.zeros(4))
    np.testing.assert_allclose(flat @ R @ R.T @ flat, flat, rtol=1e-6)


def test_variance_of_a_score_matches_laplace():
    K, y = _rings(2, m=10)
    rows = Rows(K, y, np.linspace(0.5, 2, len(y)))
    fit = fit_pcvm(rows, y[:10])
    near = LeaveOneOut.of(rows, fit)
    on = np.flatnonzero(fit.weights[:, 0])
    T = np.column_stack([K[:, on], np.ones(len(K))])
    weights = rows.weight * curvature((2 * y - 1) * fit.scores(K)[:, 0])
    H = (T * weights[:, None]).T @ T
    deviation = fit.scaled[on, 0] / fit.weights[on, 0]
    H[np.arange(len(on)), np.arange(len(on))] += fit.curvature[on, 0] * deviation**2
    expected = np.einsum("ni,ij,nj->n", T, np.linalg.inv(H), T)
    np.testing.assert_allclose(score_covariance(near.exact, K)[:, 0], expected, rtol=1e-3)


def test_a_model_is_no_better_than_itself():
    K, y = _rings(3)
    rows = Rows(K, y)
    one = LeaveOneOut.of(rows, fit_pcvm(rows, y[:30]))
    assert compare(rows, one, one) == (0.0, 0.0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("through_basis", [False, True])
def test_pruning_keeps_the_quality_and_leaves_exact_zeros(n_classes, through_basis):
    K, y = _rings(4, N=400, n_classes=n_classes)
    Q = np.eye(30)[:, ::-1].copy() if through_basis else None
    basis = y[:30][::-1] if through_basis else y[:30]
    rows, prior = Rows(K, y), GammaPrior()
    full = fit_pcvm(rows, basis, Q, prior=prior)
    pruned, path = prune_pcvm(rows, basis, full, prior=prior)
    assert len(pruned.kept) < len(full.kept)
    assert set(pruned.kept) <= set(full.kept)
    assert all(more <= error for _, more, error in path)
    sizes = [size for size, _, _ in path]
    assert sizes == sorted(sizes, reverse=True)
    agree = np.argmax(full.scores(K), 1) == np.argmax(pruned.scores(K), 1)
    assert agree.mean() > 0.9
    assert pruned.converged


def _costs(x, H, left):
    """Return the increase of ½ Σ_c xᵀHx and the optimum without each remaining function."""
    found = {}
    for j in left:
        rest = [k for k in left if k != j]
        new = np.zeros_like(x)
        for c in range(len(x)):
            # the minimum of ½(z − x)ᵀH(z − x) over z that is zero outside the rest
            new[c, rest] = np.linalg.solve(H[c][np.ix_(rest, rest)], H[c][rest] @ x[c])
        found[j] = 0.5 * np.einsum("ci,cij,cj->", new - x, H, new - x), new
    return found


@pytest.mark.parametrize("n_scores", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_basis_functions_are_dropped_while_worth_less_than_half_a_unit_per_weight(n_scores, seed):
    """Backward elimination of a quadratic by refitting it from scratch."""
    rng = np.random.default_rng(seed)
    k = 12
    A = rng.normal(size=(n_scores, 30, k))
    H = A.transpose(0, 2, 1) @ A / 30
    x = rng.uniform(0.0, 2.0, k) * rng.choice([-1, 1], size=(n_scores, k))
    expected, left = [], list(range(k))
    worth = 0.0
    while len(left) > 1:
        rises = {j: cost for j, (cost, _) in _costs(x, H, left).items()}
        j = min(rises, key=rises.get)
        if rises[j] - worth > 0.5 * n_scores:
            break
        worth = rises[j]
        expected.append(j)
        left.remove(j)
    found = removal_order(x, np.linalg.inv(H))
    assert 0 < len(found) < k - 1
    assert found == expected


def test_scale_of_the_prior_does_not_depend_on_the_unit():
    K, y = _rings(5)
    choices = [choose_scale(Rows(unit * K, y), y[:30]) for unit in (1e-3, 1.0, 1e3)]
    assert len({prior.b for prior, _, _ in choices}) == 1
    losses = [[loss for _, loss in path] for _, _, path in choices]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    np.testing.assert_allclose(losses[2], losses[1], rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_as_many_basis_functions_as_objects_need_a_stronger_prior(seed):
    K, y = _rings(seed, N=100, m=100)
    prior, _, path = choose_scale(Rows(K, y), y)
    scales, losses = zip(*path, strict=True)
    assert 2 * prior.b == pytest.approx(scales[int(np.argmin(losses))])
    assert scales[:3] == (1.0, 10.0, 0.1)  # a weaker one was tried first
    assert 2 * prior.b < 1


def test_few_narrow_basis_functions_need_a_weaker_prior():
    X = np.random.default_rng(0).uniform(0, 3, size=(1500, 2))
    K = np.exp(-8 * np.square(X[:, None] - X[None, :25]).sum(axis=2))
    y = X.astype(int).sum(axis=1) % 2
    prior, _, path = choose_scale(Rows(K, y), y[:25])
    scales, losses = zip(*path, strict=True)
    assert 2 * prior.b == scales[int(np.argmin(losses))] == 10.0
    assert scales == (1.0, 10.0, 100.0)  # then no stronger one is tried


def test_thinned_rows_keep_every_class_and_its_weight():
    F = np.arange(10_000.0)[:, None]
    y = np.zeros(10_000, dtype=int)
    y[:30], y[30:33] = 1, 2
    weight = np.random.default_rng(0).random(10_000)
    rows = Rows(F, y, weight).thinned(500)
    assert 500 <= rows.shape[0] <= 600
    counts = np.bincount(rows.y)
    assert counts[1] == 30
    assert counts[2] == 3
    for c in range(3):
        np.testing.assert_allclose(rows.weight[rows.y == c].sum(), weight[y == c].sum())
    assert Rows(F, y).thinned(10_000).shape == (10_000, 1)


def test_the_error_of_a_difference_is_the_standard_error_of_a_sum():
    """It is √(Σ (dᵢ − d̄)²) if each row counts once."""
    K, y = _rings(2)
    rows = Rows(K, y)
    one, other = (
        LeaveOneOut.of(rows, fit_pcvm(rows, y[:30], prior=FixedPrecision(np.array(a))))
        for a in (0.5, 50.0)
    )
    (block,) = rows
    d = other.losses(block) - one.losses(block)
    extra, error = compare(rows, one, other)
    assert extra == pytest.approx(d.sum())
    assert error == pytest.approx(np.sqrt(((d - d.mean()) ** 2).sum()))


def test_the_cost_of_a_weight_uses_the_precisions_of_em():
    """A weight that is removed moves all the way to zero, where only the secant is right."""
    K, y = _rings(6)
    rows = Rows(K, y)
    fit = fit_pcvm(rows, y[:30], prior=GammaPrior())
    x, covariance = kept_weights(LeaveOneOut.of(rows, fit))
    on, H = fit.kept, loss_curvature(rows, fit)[0]
    T = np.zeros((31, len(on) + 1))  # scaled weights and the bias of centred features
    T[on, np.arange(len(on))] = fit.weights[on, 0] / fit.scaled[on, 0]
    T[-1, :-1], T[-1, -1] = -fit.feature_mean @ T[:-1, :-1], 1.0
    expected = np.linalg.inv(T.T @ H @ T + np.diag(np.append(fit.precision[on, 0], 0.0)))
    np.testing.assert_allclose(covariance[0], expected[:-1, :-1], rtol=1e-6)
    np.testing.assert_array_equal(x[0], fit.scaled[on, 0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pruning_bisects_the_number_of_basis_functions(n_classes, monkeypatch):
    """So the number of fits grows with the logarithm of the number of basis functions."""
    K, y = _rings(5, N=600, m=120, n_classes=n_classes)
    rows, basis, prior = Rows(K, y), y[:120], GammaPrior()
    full = fit_pcvm(rows, basis, prior=prior)
    tried = []

    def counted(*args, allowed, **options):
        tried.append(int(allowed.sum()))
        return fit_pcvm(*args, allowed=allowed, **options)

    monkeypatch.setattr("krein.core.pcvm.training.fit_pcvm", counted)
    pruned, path = prune_pcvm(rows, basis, full, prior=prior)
    accepted = {size for size, _, _ in path}
    assert len(tried) <= 2 * np.log2(len(full.kept)) + 2
    assert len(pruned.kept) == min(accepted)
    size, too_few = len(full.kept), 0
    for allowed in tried:
        assert allowed >= size - (size - too_few) // 2
        smaller = [kept for kept in accepted if kept <= allowed]
        if smaller and max(smaller) < size:
            size = max(smaller)
        else:
            too_few = allowed
    assert too_few < size
