"""Invalid input is reported, not corrected."""

import numpy as np
import pandas as pd
import pytest

from krein import IKFD
from krein.core.space import check_level
from krein.data.labelling import check_labels, first_missing
from krein.landmarks.base import check_landmarks


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


def test_a_common_level_is_refused_only_where_it_hides_the_differences():
    X = np.random.default_rng(0).normal(size=(30, 4))
    for level in (0.0, 1e3, 1e6):
        check_level(X @ X.T + level)
    check_level(np.full((5, 5), 1e9))  # nothing to hide
    for level in (1e10, 1e13):
        with pytest.raises(ValueError, match="common level"):
            check_level(X @ X.T + level)


@pytest.mark.parametrize("landmarks", ["all", np.arange(0, 150, 10)])
@pytest.mark.parametrize("offset", [1e6, 1e8, 1e9, 1e10])
def test_a_level_changes_little_or_is_refused(landmarks, offset):
    y = np.arange(200) % 4
    X = np.random.default_rng(0).normal(size=(200, 5)) + 4 * np.eye(5)[y]
    S = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    K = S + offset
    train, test = np.arange(0, 200) < 150, np.arange(200) >= 150
    clf = IKFD("precomputed", landmarks=landmarks).fit(S[np.ix_(train, train)], y[train])
    without = clf.score(S[np.ix_(test, train)], y[test])
    if offset >= 1e9:
        with pytest.raises(ValueError, match="common level"):
            clf.fit(K[np.ix_(train, train)], y[train])
        return
    clf.fit(K[np.ix_(train, train)], y[train])
    assert clf.score(K[np.ix_(test, train)], y[test]) >= without - 0.04


def test_which_labels_are_missing():
    there = ["en", 0, 0.0, False, np.array([1, 2])]  # an array is refused elsewhere, by its shape
    for missing in (None, "", "  ", float("nan"), np.nan, pd.NA, pd.NaT):
        assert first_missing([*there, missing]) == len(there)
    assert first_missing(there) is None
