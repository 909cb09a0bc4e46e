"""Temperature, scale and offsets of scores, fitted to left-out objects."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import log_softmax

from krein.core.calibration import fit_scale_and_offsets, fit_temperature


def test_a_class_without_prior_for_some_objects_is_still_fitted():
    """The only member of a class, left out, has no prior for it, but other objects have one."""
    rng = np.random.default_rng(0)
    codes = np.arange(300) % 3
    scores = 2 * np.eye(3)[codes] + rng.normal(size=(300, 3))
    everywhere = np.zeros((300, 3))
    somewhere = everywhere.copy()
    somewhere[0, 2] = -np.inf  # object 0 belongs to class 0
    all_of_it = fit_scale_and_offsets(scores, everywhere, codes)
    most_of_it = fit_scale_and_offsets(scores, somewhere, codes)
    assert_allclose(most_of_it.scale, all_of_it.scale, rtol=0.02)
    assert_allclose(most_of_it.offsets, all_of_it.offsets, atol=0.02)
    without = np.where(np.arange(3) == 2, -np.inf, everywhere)
    two = codes < 2
    assert abs(fit_scale_and_offsets(scores[two], without[two], codes[two]).offsets[2]) < 1e-9


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
