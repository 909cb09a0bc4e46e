"""Signature, negative mass and corrections."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from krein.core.space import correct, estimate_spectrum, negative_mass, signature

from ..market import with_eigenvalues


def test_signature_counts_every_eigenvalue(case):
    p, q, z = signature(np.linalg.eigvalsh(case.K))
    assert p + q + z == len(case.K)
    assert (p, q, z) == signature(1e-9 * np.linalg.eigvalsh(case.K))


def test_signature_of_a_known_spectrum():
    assert signature(np.linalg.eigvalsh(with_eigenvalues([3, 2, -1], 10))) == (2, 1, 7)


def test_negative_mass_of_a_known_spectrum():
    lam = np.linalg.eigvalsh(with_eigenvalues([3, 2, -1], 10))
    assert_allclose(negative_mass(lam), 1 / 6, atol=1e-12)
    assert negative_mass(np.zeros(3)) == 0.0


def test_estimate_is_exact_on_a_small_matrix_and_a_lower_bound_on_a_large_one():
    K = with_eigenvalues([3, 2, -1, -1], 60)
    block = lambda rows, cols: K[np.ix_(rows, cols)]  # noqa: E731 - the protocol is a function
    whole = estimate_spectrum(block, 60, rng=np.random.default_rng(0))
    assert whole.exact
    assert whole.signature == (2, 2, 56)
    for seed in range(10):
        part = estimate_spectrum(block, 60, size=10, rng=np.random.default_rng(seed))
        assert not part.exact
        assert part.signature.positive <= 2
        assert part.signature.negative <= 2


def test_estimate_of_the_negative_mass_is_near_the_truth():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    K = -np.abs(X[:, None] - X[None]).sum(axis=2)  # the Manhattan similarity
    truth = negative_mass(np.linalg.eigvalsh(K))
    block = lambda rows, cols: K[np.ix_(rows, cols)]  # noqa: E731 - the protocol is a function
    estimates = [
        estimate_spectrum(block, 800, size=200, rng=np.random.default_rng(s)).negative_mass
        for s in range(5)
    ]
    assert abs(np.mean(estimates) - truth) < 0.05


CORRECTIONS = ["clip", "flip", "shift", "square"]


@pytest.mark.parametrize("how", CORRECTIONS)
def test_corrected_matrix_is_psd_with_the_named_spectrum(case, how):
    lam = np.linalg.eigvalsh(case.K)
    expected = {
        "clip": np.maximum(lam, 0),
        "flip": np.abs(lam),
        "shift": lam - min(lam[0], 0),
        "square": lam**2,
    }[how]
    result = np.linalg.eigvalsh(correct(case.K, how).matrix)
    scale = max(np.abs(expected).max(), 1e-300)
    assert_allclose(result / scale, np.sort(expected) / scale, atol=1e-10)


@pytest.mark.parametrize("how", CORRECTIONS)
def test_new_objects_are_corrected_by_the_map_of_the_training_objects(case, how):
    corrected = correct(case.K, how)
    mapped = corrected.map_new(case.K)
    expected = corrected.matrix
    if how == "shift":  # if K is singular, the map reaches only its range
        lam, U = np.linalg.eigh(case.K)
        U = U[:, np.abs(lam) > 1e-10 * np.abs(lam).max()]
        expected = expected @ U @ U.T
    scale = max(np.abs(expected).max(), 1e-300)
    assert_allclose(mapped / scale, expected / scale, atol=1e-6)


def test_square_maps_by_the_matrix_itself():
    K = with_eigenvalues([3, -2, 1], 12)
    k = np.random.default_rng(0).normal(size=(4, 3)) @ K[:3]  # new objects in the span
    assert_allclose(correct(K, "square").map_new(k), k @ K, atol=1e-10)


def test_an_unknown_correction_lists_the_known_ones():
    with pytest.raises(ValueError, match="clip, flip"):
        correct(np.eye(2), "cut")


def test_an_estimate_has_the_eigenvalues_of_the_symmetric_part():
    S = np.random.default_rng(3).normal(size=(6, 6))
    found = estimate_spectrum(
        lambda rows, cols: S[np.ix_(rows, cols)], 6, rng=np.random.default_rng(0)
    )
    assert_allclose(found.eigenvalues, np.linalg.eigvalsh((S + S.T) / 2), atol=1e-12)
