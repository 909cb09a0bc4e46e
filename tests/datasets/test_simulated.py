"""Properties that all generators share, and those of single generators."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.model_selection import StratifiedKFold, cross_val_score

from krein import IKFD
from krein.compare import open_pairs
from krein.core.space import correct, double_centre, negative_mass, signature
from krein.datasets import (
    make_balls,
    make_checkerboard,
    make_protein_families,
    make_pseudo_euclidean_gaussians,
    make_three_gaussians,
    make_two_gaussians,
)

MAKERS = [
    make_balls,
    make_checkerboard,
    make_protein_families,
    make_pseudo_euclidean_gaussians,
    make_two_gaussians,
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_seed_gives_the_same_data_and_another_seed_others(make):
    X, y = make(60, random_state=3)
    again, y_again = make(60, random_state=np.random.RandomState(3))
    other, _ = make(60, random_state=4)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, y_again)
    assert len(X) == len(y) == 60
    assert (np.asarray(X) != np.asarray(other)).any()


@pytest.mark.parametrize(
    "make", [make for make in MAKERS if make is not make_checkerboard], ids=lambda m: m.__name__
)
def test_classes_are_equally_frequent_up_to_one(make):
    _, y = make(61, random_state=0)
    sizes = np.bincount(y)
    assert sizes.max() - sizes.min() <= 1


def test_three_gaussians_have_the_sizes_of_the_paper():
    X, y = make_three_gaussians(random_state=0)
    assert X.shape == (540, 10)
    np.testing.assert_array_equal(np.bincount(y), [500, 40])


def test_the_overlap_of_two_gaussians_matches_their_separation():
    X, y = make_two_gaussians(40_000, separation=2.0, random_state=0)
    right = ((X[:, 0] > 0) == y).mean()
    deviation = np.sqrt(right * (1 - right) / len(X))
    assert abs(right - norm.cdf(1.0)) < 5 * deviation


def test_pseudo_euclidean_gaussians_are_separate_at_zero_distance():
    X, y = make_pseudo_euclidean_gaussians(20_000, random_state=0)
    K = X[:300] @ np.diag([1, -1]) @ X[:300].T
    assert signature(np.linalg.eigvalsh(K))[:2] == (1, 1)
    gap = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    assert np.hypot(*gap) == pytest.approx(3.0, abs=0.1)
    assert gap[0] ** 2 - gap[1] ** 2 == pytest.approx(0.0, abs=0.3)


def test_balls_do_not_overlap_and_lie_in_the_cube():
    X, y = make_balls(radii=(0.02, 0.05, 0.01), n_dimensions=2, n_samples=60, random_state=0)
    centres, radii = X[:, :-1], X[:, -1]
    np.testing.assert_array_equal(radii, np.array([0.02, 0.05, 0.01])[y])
    assert centres.min() >= 0
    assert centres.max() <= 1
    gaps = np.linalg.norm(centres[:, None] - centres, axis=2) - radii[:, None] - radii
    assert (gaps[np.triu_indices(60, 1)] >= 0).all()


def test_balls_are_not_metric():
    X, _ = make_balls(60, random_state=0)
    D = distances(X)
    excess = D[:, None, :] - D[:, :, None] - D[None, :, :]  # d(i, k) − d(i, j) − d(j, k)
    assert excess.max() > 0


@pytest.mark.parametrize("seed", [0, 1])
def test_the_negative_eigenvalues_separate_balls(seed):
    X, y = make_balls(random_state=seed)
    K = double_centre(distances(X) ** 2)
    assert negative_mass(np.linalg.eigvalsh(K)) > 0.05
    # unchanged, the matrix separates the classes; clipped, it is little better than a guess
    assert accuracy(K, y) > 0.95
    assert accuracy(correct(K, "clip").matrix, y) < 0.65


def test_a_full_cube_is_reported():
    with pytest.raises(ValueError, match=r"there is no room for ball \d+ of 100 .*smaller radii"):
        make_balls(100, radii=(0.2, 0.3), random_state=0)


def test_radii_are_checked():
    with pytest.raises(ValueError, match="radii"):
        make_balls(10, radii=(0.1,))
    with pytest.raises(ValueError, match="radii"):
        make_balls(10, radii=(0.1, -0.1))


def distances(X):
    all_rows = np.arange(len(X))
    return open_pairs("balls", X).block(all_rows, all_rows)


def accuracy(K, y):
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    return cross_val_score(
        IKFD("precomputed", landmarks="all", shrinkage="oas"), K, y, cv=folds
    ).mean()
