"""Bad input is named, not mended."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from krein.core.checks import check_labels, check_landmarks, check_matrix, check_symmetric


def test_nan_and_infinity_are_named_with_their_place():
    K = np.eye(2000)
    K[1500, 3] = np.nan
    with pytest.raises(ValueError, match=r"K\[1500, 3\] is nan"):
        check_matrix(K)
    K[1500, 3] = -np.inf
    with pytest.raises(ValueError, match=r"sims\[1500, 3\] is -inf"):
        check_matrix(K, "sims")


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.zeros((2, 3)), r"square; its shape is \(2, 3\)"),
        (np.zeros((0, 0)), "empty"),
        (np.zeros(3), "1 dimension"),
        (np.eye(2) * 1j, "[Cc]omplex"),
        (np.array([[1.0, 2.0], [1.0, 1.0]]), r"K\[0, 1\] = 2 but K\[1, 0\] = 1 \(5.0e-01"),
    ],
)
def test_bad_matrices(K, message):
    with pytest.raises(ValueError, match=message):
        check_symmetric(K)


def test_asymmetry_is_averaged_only_when_asked_for():
    K = np.array([[1.0, 2.0], [1.0, 1.0]])
    assert_array_equal(check_symmetric(K, symmetrize=True), [[1.0, 1.5], [1.5, 1.0]])


def test_rounding_is_left_as_it_is():
    K = np.array([[1.0, 1.0], [1.0 + 1e-12, 1.0]])
    assert check_symmetric(K) is K or (check_symmetric(K) == K).all()


def test_asymmetry_far_down_is_found():
    K = np.eye(3000)
    K[2999, 1] = 1.0
    with pytest.raises(ValueError, match=r"K\[1, 2999\] = 0 but K\[2999, 1\] = 1"):
        check_symmetric(K)


def test_labels():
    with pytest.raises(ValueError, match="2 labels for 3 objects"):
        check_labels([0, 1], 3)
    with pytest.raises(ValueError, match="vector"):
        check_labels([[0, 1]], 2)


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 9], "landmark 9 is out of range for 5"),
        ([0, -1], "landmark -1 is out of range"),
        ([2, 3, 2], "landmark 2 is given more than once"),
        ([], "non-empty"),
        ([0.5], "whole numbers"),
    ],
)
def test_landmarks(indices, message):
    with pytest.raises(ValueError, match=message):
        check_landmarks(indices, 5)
