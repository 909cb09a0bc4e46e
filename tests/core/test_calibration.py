"""Scale and offsets of scores, fitted to left-out objects."""

import numpy as np

from krein.core.calibration import fit_scale_and_offsets


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
    np.testing.assert_allclose(most_of_it.scale, all_of_it.scale, rtol=0.02)
    np.testing.assert_allclose(most_of_it.offsets, all_of_it.offsets, atol=0.02)
    without = np.where(np.arange(3) == 2, -np.inf, everywhere)
    two = codes < 2
    assert abs(fit_scale_and_offsets(scores[two], without[two], codes[two]).offsets[2]) < 1e-9
