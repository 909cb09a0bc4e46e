"""Bad input is named, not mended."""

import pytest

from krein.core.checks import check_labels, check_landmarks


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
