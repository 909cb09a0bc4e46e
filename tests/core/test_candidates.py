"""Candidates for the second look, against a full search."""

from dataclasses import replace

import numpy as np
import pytest

from krein.core.candidates import KnownObjects, nearest_points, no_points


def known_objects(values, others=None, n_candidates=5):
    """All objects with these values to the landmarks, each of which counts as one."""
    n, m = values.shape
    others = no_points(n) if others is None else others
    rows, each, landmarks = np.arange(n), np.ones(n), np.arange(m)
    return KnownObjects.of(
        rows, 0 * rows, each, np.ones(m), landmarks, values, others, n_candidates, 3
    )


@pytest.mark.parametrize("n_points", [1, 7, 500])
def test_nearest_points_match_a_full_search(n_points):
    rng = np.random.default_rng(n_points)
    points = rng.normal(size=(n_points, 6)).astype(np.float32)
    queries = rng.normal(size=(20, 6)).astype(np.float32)
    found, apart = nearest_points(points, queries, 5)
    D = np.linalg.norm(queries[:, None].astype(float) - points[None].astype(float), axis=2)
    k = min(5, n_points)
    np.testing.assert_array_equal(found, np.argsort(D, axis=1, kind="stable")[:, :k])
    np.testing.assert_allclose(apart, np.sort(D, axis=1)[:, :k], rtol=1e-6)


def test_a_point_is_not_its_own_neighbour():
    points = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    points[7] = points[3]  # a copy is a neighbour, the point itself is not
    everyone = np.arange(50)
    found, _ = nearest_points(points, points, 49, without=(everyone, everyone))
    assert not (found == everyone[:, None]).any()
    assert found[3, 0] == 7
    some = everyone.copy()
    some[10] = -1
    assert nearest_points(points, points, 1, without=(some, everyone))[0][10, 0] == 10


def test_points_of_the_same_group_are_no_neighbours():
    rng = np.random.default_rng(0)
    points, groups = rng.normal(size=(60, 4)).astype(np.float32), np.arange(60) // 6
    groups[:3] = 20  # groups of three, of nine and of six points
    groups[3:6] = 1
    D = np.linalg.norm(points[:, None].astype(float) - points[None].astype(float), axis=2)
    D[groups[:, None] == groups] = np.inf
    for k in (5, 60):
        found, apart = nearest_points(points, points, k, without=(groups, groups))
        n = min(k, 60 - 9)  # the same number for all
        np.testing.assert_array_equal(found, np.argsort(D, axis=1, kind="stable")[:, :n])
        np.testing.assert_allclose(apart, np.sort(D, axis=1)[:, :n], rtol=1e-6)


def test_candidates_do_not_depend_on_the_batch(monkeypatch):
    points = np.random.default_rng(1).normal(size=(3000, 20)).astype(np.float32)
    whole = nearest_points(points, points[:200], 30)
    monkeypatch.setattr("krein.core.candidates.TILE_BYTES", 4 * 3000 * 7)
    parts = nearest_points(points, points[:200], 30)
    alone = [nearest_points(points, points[i : i + 1], 30) for i in range(200)]
    for i in range(2):
        np.testing.assert_array_equal(whole[i], parts[i])
        np.testing.assert_array_equal(whole[i], np.concatenate([one[i] for one in alone]))


def test_points_keep_the_distances_of_scaled_rows():
    rng = np.random.default_rng(2)
    values = rng.exponential(size=(200, 9)) * 10.0 ** np.arange(9)
    points = known_objects(values).points
    F = np.sqrt(values)
    Z = (F - F.mean(axis=0)) / F.std(axis=0) / 3  # nine columns: a total variance of 1
    np.testing.assert_allclose(
        np.linalg.norm(points[0] - points, axis=1), np.linalg.norm(Z[0] - Z, axis=1), rtol=1e-4
    )


def test_candidates_are_near_in_values_and_features_together():
    """Squared distances of both parts add up, whatever the unit of the values."""
    rng = np.random.default_rng(3)
    values, others = rng.normal(size=(80, 3)), rng.normal(size=(80, 2)).astype(np.float32)
    known = known_objects(1e6 * values, others, n_candidates=10)
    found, apart = known.candidates(1e6 * values[:5], others[:5])
    F = np.copysign(np.sqrt(np.abs(values)), values)
    Z = (F - F.mean(axis=0)) / F.std(axis=0) / np.sqrt(3)
    D = np.square(Z[:5, None] - Z).sum(axis=2) + np.square(others[:5, None] - others).sum(axis=2)
    np.testing.assert_array_equal(found, np.argsort(D, axis=1)[:, :10])
    np.testing.assert_allclose(apart, np.sqrt(np.sort(D, axis=1)[:, :10]), rtol=1e-4, atol=1e-4)


def test_a_constant_column_has_no_effect():
    values = np.column_stack([np.arange(10.0), np.full(10, 3.0)])
    known = known_objects(values)
    assert np.isfinite(known.points).all()
    other = values + np.array([0.0, 5.0])
    np.testing.assert_allclose(known.points, known.points_of(other, no_points(10)), atol=1e-6)


def test_a_column_that_is_constant_up_to_rounding_has_no_effect():
    constants = np.linspace(0.1, 0.9, 17)
    assert (np.sqrt(np.tile(constants, (1000, 1))).std(axis=0) > 0).any()  # the mean is rounded
    values = np.column_stack([np.arange(1000.0), np.tile(constants, (1000, 1))])
    known = known_objects(values)
    other = values + np.append(0.0, np.full(17, 5.0))
    np.testing.assert_allclose(known.points, known.points_of(other, no_points(1000)), atol=1e-6)


def test_candidates_of_known_objects_leave_out_a_class():
    values = np.random.default_rng(0).normal(size=(60, 4))
    codes, numbers = np.arange(60) % 3, 1.0 + np.arange(60)
    known = replace(
        known_objects(values), indices=np.arange(0, 120, 2), codes=codes, numbers=numbers
    )
    part, kept = known.without_class(1), np.flatnonzero(codes != 1)
    np.testing.assert_array_equal(part.numbers, numbers[kept])
    np.testing.assert_array_equal(part.codes, codes[kept])
    np.testing.assert_array_equal(part.indices, 2 * kept)
    found, apart = part.candidates(values[:10], no_points(10))
    assert found.shape == (10, 5)
    own = codes[:10] != 1
    np.testing.assert_array_equal(kept[found[own, 0]], np.flatnonzero(own))
    np.testing.assert_array_equal(apart[own, 0], 0)
    assert (apart[~own, 0] > 0).all()
