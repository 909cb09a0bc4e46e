import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from krein.core.calibration import pair_log_shares
from krein.core.pcvm.published import (
    DIVERGED,
    MAX_CYCLES,
    _Exact,
    _LowRank,
    _original_update,
    _run,
    fit_published,
    fit_published_models,
    fit_published_nystrom,
)


def _two_clouds(seed, N=60):
    rng = np.random.default_rng(seed)
    t = np.where(np.arange(N) % 2, 1.0, -1.0)
    X = rng.normal(size=(N, 2)) + 3 * t[:, None]
    return np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1)), t


@pytest.mark.parametrize("seed", range(3))
def test_published_update_separates_easy_classes(seed):
    K, t = _two_clouds(seed)
    fit = fit_published(K, t, np.random.default_rng(seed))
    assert np.mean(np.sign(K @ fit.weights + fit.bias) == t) > 0.9
    assert (t * fit.weights >= 0).all()
    assert np.array_equal(fit.kept, np.flatnonzero(fit.weights))


def test_weights_of_large_identical_features_stay_finite():
    """Rounding swallows the identity in Υ, which has no Cholesky factor then; Υ⁻¹ is at most 1."""
    Phi, one = np.full((1, 2), 2.0**30), np.ones(2)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(Phi.T @ Phi + np.eye(2))
    v = np.array([3.0, -3.0])  # orthogonal to the features: Υ⁻¹ v = v
    np.testing.assert_allclose(_original_update(Phi, one, v), v)
    np.testing.assert_allclose(_original_update(Phi, one, one), 2.0**-61 * one, rtol=1e-9)


def test_below_a_hundred_weights_both_versions_agree():
    K, t = _two_clouds(0)
    dense = fit_published(K, t, np.random.default_rng(1))
    low = fit_published_nystrom(K, K, t, np.random.default_rng(1))
    np.testing.assert_allclose(K @ low.weights, K @ dense.weights, atol=1e-4)


def test_large_versions_end_with_finite_weights_and_a_reason():
    K, t = _two_clouds(3, N=300)
    fit = fit_published_nystrom(K[:, :40], K[:40, :40], t, np.random.default_rng(0))
    assert np.isfinite(fit.weights).all()
    assert np.isfinite(fit.bias)
    assert fit.reason


class _Growing(_LowRank):
    """An update that multiplies the weights, as an indefinite kernel can."""

    def weights(self, kept, m, t, h, rng):
        return 1e9 * m


def test_weights_that_grow_without_bound_end_the_run_before_they_overflow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    fit = _run(_Growing(X @ X[:4].T, X[:4] @ X[:4].T), rng.choice([-1.0, 1.0], 200), rng)
    assert fit.reason == "the weights diverged"
    assert not fit.converged
    assert 5 < fit.n_iter <= np.log10(DIVERGED)
    assert not fit.weights.any()


def _clouds(seed, n_classes=4, N=160, noise=0.7):
    rng = np.random.default_rng(seed)
    y = np.arange(N) % n_classes
    X = 2 * rng.normal(size=(n_classes, 4))[y] + noise * rng.normal(size=(N, 4))
    return np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(-1)), y


@pytest.mark.parametrize("seed", range(3))
def test_the_fit_starts_from_the_labels(seed):
    """From random weights, the first latent variables are noise, and most functions are pruned."""
    K, y = _clouds(seed)
    found = fit_published_models(K[:, :30], K[:30, :30], y, 4, np.random.default_rng(seed))
    T = np.linalg.pinv(K[:30, :30]) @ (K[:, :30].T @ found.weights)
    predicted = pair_log_shares(K[:, :30] @ T + found.bias).argmax(axis=1)
    assert np.mean(predicted == y) > 0.8


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("low_rank", [False, True])
def test_the_unit_of_the_kernel_does_not_matter(unit, low_rank):
    K, y = _clouds(0)
    scores = []
    for factor in (1.0, unit):
        A = factor * (K[:, :30] if low_rank else K)
        W = A[:30] if low_rank else None
        found = fit_published_models(A, W, y, 4, np.random.default_rng(0))
        scores.append(factor * K @ found.weights + found.bias)
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-5, atol=1e-5)


def test_pairs_of_two_classes_equal_the_probit():
    Z = np.linspace(-3, 3, 7)[:, None]
    S = pair_log_shares(Z)
    P = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(P[:, 1], ndtr(Z[:, 0]))


def _by_definition(K, t, rng):
    """Run the cycles as in the paper, with explicit inverses; return weights, bias and cycles."""
    N = len(K)
    w, b, H = rng.random(N) + 0.2, float(rng.standard_normal()), 10 * rng.random(N) * t
    H = H + rng.random(N)
    kept = np.arange(N)
    for cycle in range(1, MAX_CYCLES + 1):
        Phi, M = K[:, kept] * t[kept], np.diag(np.sqrt(2) * w)
        Upsilon = M @ Phi.T @ Phi @ M + np.eye(len(kept))
        new = M @ np.linalg.inv(Upsilon) @ M @ (Phi.T @ H - b * Phi.T @ np.ones(N))
        root = np.sqrt(2) * abs(b)
        b = root / (1 + root * N * root) * root * (np.ones(N) @ H - np.ones(N) @ Phi @ new)
        change, stay = np.abs(new - w).max(), new > 1e-3
        kept, w = kept[stay], new[stay]
        if cycle > 1 and change < 1e-3:
            break
        z = K[:, kept] * t[kept] @ w + b
        H = z + t * norm.pdf(z) / norm.cdf(t * z)
    weights = np.zeros(N)
    weights[kept] = t[kept] * w
    return weights, b, cycle


@pytest.mark.parametrize("seed", range(3))
def test_every_cycle_matches_the_paper(seed):
    K, y = _clouds(seed, n_classes=2, N=40)
    t = np.where(y == 1, 1.0, -1.0)
    fit = fit_published(K, t, np.random.default_rng(seed))
    weights, b, cycles = _by_definition(K, t, np.random.default_rng(seed))
    assert fit.n_iter == cycles
    assert fit.converged == fit.reason.startswith("no weight changed") == (cycles < MAX_CYCLES)
    assert fit.converged or seed > 0
    np.testing.assert_allclose(fit.weights, weights, atol=1e-6)
    np.testing.assert_allclose(fit.bias, b, atol=1e-6)


def test_the_large_update_uses_some_columns_of_upsilon():
    """Υ̃ = Υ_S Υ_SS⁺ Υ_Sᵀ for one column in a hundred, and its pseudo-inverse."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(260, 6))
    K1, t = X @ X[:12].T, np.sign(X[:, 0])
    kernel, kept = _LowRank(K1, K1[:12]), np.arange(0, 260, 2)
    m, h = rng.random(len(kept)) + 0.2, rng.normal(size=260)
    found = kernel.weights(kept, m, t[kept], h, np.random.default_rng(5))
    Phi = K1 @ np.linalg.pinv(K1[:12]) @ K1[kept].T * (t[kept] * m)
    Upsilon = Phi.T @ Phi + np.eye(len(kept))
    S = np.sort(np.random.default_rng(5).choice(len(kept), 2, replace=False))
    low = Upsilon[:, S] @ np.linalg.pinv(Upsilon[np.ix_(S, S)]) @ Upsilon[S]
    wanted = m * (np.linalg.pinv(low, rcond=1e-9) @ (Phi.T @ h))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def _indefinite(seed, N, m):
    """Landmark columns of an indefinite kernel, and its whole Nyström matrix."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, m)) + np.where(np.arange(N) % 2, 1.0, -1.0)[:, None]
    K1 = (X * np.where(np.arange(m) % 3, 1.0, -0.4)) @ X[:m].T / m
    return K1, K1 @ np.linalg.inv(K1[:m]) @ K1.T


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_exact_update_inverts_the_whole_upsilon(seed, size):
    """M Υ⁻¹ M Φᵀh with Υ = MΦᵀΦM + I of n×n, also if the weights are small or large."""
    K1, K = _indefinite(seed, 150, 8)
    assert np.linalg.eigvalsh(K1[:8]).min() < 0
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.choice(150, 120, replace=False))
    t, m, h = rng.choice([-1.0, 1.0], 150), size * (rng.random(120) + 0.2), rng.normal(size=150)
    found = _Exact(K1, K1[:8]).weights(kept, m, t[kept], h, rng)
    Phi, M = K[:, kept] * t[kept], np.diag(m)
    wanted = M @ np.linalg.solve(M @ Phi.T @ Phi @ M + np.eye(120), M @ Phi.T @ h)
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9 * scale * max(size**2, 1))


@pytest.mark.parametrize("seed", range(3))
def test_every_cycle_of_the_exact_form_is_that_of_the_dense_algorithm_on_the_nystrom_matrix(seed):
    K1, K = _indefinite(seed, 150, 8)
    t = np.where(np.arange(150) % 2, 1.0, -1.0)
    fit = fit_published_nystrom(K1, K1[:8], t, np.random.default_rng(seed), exact=True)
    weights, b, cycles = _by_definition(K, t, np.random.default_rng(seed))
    assert fit.n_iter == cycles
    np.testing.assert_allclose(K @ fit.weights, K @ weights, atol=1e-5)
    np.testing.assert_allclose(fit.bias, b, atol=1e-6)


def test_the_approximated_inverse_is_not_the_exact_one():
    """A matrix of rank n/100 cannot contain the identity of n weights."""
    K1, _ = _indefinite(0, 150, 8)
    t, rng = np.where(np.arange(150) % 2, 1.0, -1.0), np.random.default_rng(0)
    common = np.arange(150), np.ones(150), t, rng.normal(size=150), rng
    exact, low = (kernel(K1, K1[:8]).weights(*common) for kernel in (_Exact, _LowRank))
    assert np.linalg.norm(low - exact) > 0.5 * np.linalg.norm(exact)
