import numpy as np
import pytest

from krein.core.pcvm.published import DIVERGED, _LowRank, _run, fit_published, fit_published_nystrom


def _two_clouds(seed, N=60):
    rng = np.random.default_rng(seed)
    t = np.where(np.arange(N) % 2, 1.0, -1.0)
    X = rng.normal(size=(N, 2)) + 3 * t[:, None]
    return np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1)), t


@pytest.mark.parametrize("seed", range(3))
def test_published_update_separates_what_is_easy(seed):
    K, t = _two_clouds(seed)
    fit = fit_published(K, t, np.random.default_rng(seed))
    assert np.mean(np.sign(K @ fit.weights + fit.bias) == t) > 0.9
    assert (t * fit.weights >= 0).all()
    assert np.array_equal(fit.kept, np.flatnonzero(fit.weights))


def test_below_a_hundred_weights_both_versions_are_one():
    K, t = _two_clouds(0)
    dense = fit_published(K, t, np.random.default_rng(1))
    low = fit_published_nystrom(K, K, t, np.random.default_rng(1))
    np.testing.assert_allclose(K @ low.weights, K @ dense.weights, atol=1e-4)


def test_large_versions_end_with_finite_weights_and_say_how():
    K, t = _two_clouds(3, N=300)
    fit = fit_published_nystrom(K[:, :40], K[:40, :40], t, np.random.default_rng(0))
    assert np.isfinite(fit.weights).all()
    assert np.isfinite(fit.bias)
    assert fit.reason


class _Growing(_LowRank):
    """An update that multiplies the weights, as an indefinite kernel can."""

    def weights(self, kept, m, t, v, rng):
        return 1e9 * m


def test_weights_that_grow_without_bound_end_the_run_before_they_overflow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    fit = _run(_Growing(X @ X[:4].T, X[:4] @ X[:4].T), rng.choice([-1.0, 1.0], 200), rng)
    assert fit.reason == "the weights diverged"
    assert not fit.converged
    assert 5 < fit.n_iter <= np.log10(DIVERGED)
    assert not fit.weights.any()
