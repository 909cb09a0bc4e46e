"""Lists of hits against dense matrices and scikit-learn's neighbours."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer

from krein.core.hits import can_be_held_out, log_class_shares, nearest_hits

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))


def lists(D):
    """Return all values of a matrix as lists, in a random order of the columns."""
    order = RNG.permutation(D.shape[1])
    n, m = D.shape
    return np.arange(0, n * m + 1, m), np.tile(order, n), D[:, order].ravel()


def test_the_same_neighbours_as_in_a_dense_matrix():
    apart, columns = nearest_hits(*lists(D), 7)
    order = np.argsort(D, axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(columns, order)
    np.testing.assert_array_equal(apart, np.take_along_axis(D, order, axis=1))


def test_the_same_neighbours_as_scikit_learn():
    found = KNeighborsTransformer(mode="distance", n_neighbors=12).fit_transform(X)
    _, columns = nearest_hits(found.indptr, found.indices, found.data, 5)
    model = KNeighborsClassifier(n_neighbors=5, metric="precomputed").fit(found, np.zeros(60))
    np.testing.assert_array_equal(columns, model.kneighbors(found, return_distance=False))


@pytest.mark.parametrize("seed", range(3))
def test_no_hit_within_a_group(seed):
    groups = np.random.default_rng(seed).integers(20, size=60)
    apart, columns = nearest_hits(*lists(D), 5, (groups, groups))
    masked = np.where(groups[:, None] == groups, np.inf, D)
    np.testing.assert_array_equal(apart, np.sort(masked, axis=1)[:, :5])
    assert (groups[columns] != groups[:, None]).all()


def test_missing_hits_are_infinitely_far():
    apart, _ = nearest_hits(np.array([0, 1, 1]), np.array([3]), np.array([2.0]), 3)
    np.testing.assert_array_equal(apart, [[2.0, np.inf, np.inf], [np.inf] * 3])


@pytest.mark.parametrize("seed", range(3))
def test_class_sizes_are_those_of_the_other_groups(seed):
    rng = np.random.default_rng(seed)
    codes, groups = rng.integers(5, size=80), rng.integers(30, size=80)
    numbers, asked = rng.uniform(0.5, 2, size=80), rng.integers(40, size=20)
    found = log_class_shares(codes, numbers, 5, (asked, groups))
    for i, group in enumerate(asked):
        rest = groups != group
        np.testing.assert_allclose(found[i], log_class_shares(codes[rest], numbers[rest], 5))


def test_an_object_does_not_count_for_its_own_class():
    codes, everyone = np.array([0, 0, 1, 1, 1]), np.arange(5)
    found = log_class_shares(codes, np.ones(5), 2, (everyone, everyone))
    for i in range(5):
        rest = np.delete(codes, i)
        np.testing.assert_allclose(found[i], log_class_shares(rest, np.ones(4), 2))


@pytest.mark.parametrize("seed", range(3))
def test_held_out_objects_leave_their_class_behind(seed):
    rng = np.random.default_rng(seed)
    codes, groups = rng.integers(12, size=30), rng.integers(10, size=30)
    known_codes, known_groups = rng.integers(12, size=20), rng.integers(10, size=20)
    there = [
        ((known_codes == c) & (known_groups != g)).any() for c, g in zip(codes, groups, strict=True)
    ]
    np.testing.assert_array_equal(can_be_held_out(codes, groups, known_codes, known_groups), there)
