"""Conversion of the values of a measure, before they become coordinates."""

import numpy as np

from krein.core.space import Conversion


def test_only_dissimilarities_are_raised_to_a_power():
    values = np.array([[1.0, 4.0], [9.0, 16.0]])
    between = np.array([[0.0, 4.0], [4.0, 0.0]])
    raised = Conversion.of(between, "dissimilarity", power=0.5, unit=4.0).raised(values)
    np.testing.assert_allclose(raised, np.sqrt(values / 4))
    np.testing.assert_array_equal(
        Conversion.of(between, "similarity", power=0.5).raised(values), values
    )
