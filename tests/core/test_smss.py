"""SMSS: dense, at linear cost, and by its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from krein.core.moments import ClassMoments
from krein.core.smss import margin, margin_low_rank, smss
from krein.core.space import NystromMatrix, landmark_basis

from ..market import with_eigenvalues


def by_definition(K, codes):
    total = 0.0
    for c in np.unique(codes):
        inside, outside = codes == c, codes != c
        total += abs(K[np.ix_(inside, inside)].mean() - K[np.ix_(inside, outside)].mean())
    return total


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_dense_matches_the_definition(n_classes):
    K = with_eigenvalues([5, -3, 2, -1], 50)
    codes = np.random.default_rng(0).integers(0, n_classes, 50)
    codes[:n_classes] = np.arange(n_classes)
    assert_allclose(margin(K, codes, n_classes), by_definition(K, codes), rtol=1e-12)


def test_linear_cost_agrees_with_dense(case):
    if len(case.K) < 3:
        return  # one row has no second class; the error is tested below
    matrix = NystromMatrix(case.C, landmark_basis(case.W))
    B = matrix.basis.coordinates(case.C)
    moments = ClassMoments.of(B, case.codes, 3, origin=B.mean(axis=0))
    fast = margin_low_rank(moments.class_sums(), matrix.basis.signs, moments.weights)
    dense = margin(matrix.dense(), case.codes, 3)
    assert abs(fast - dense) <= 1e-10 * max(np.abs(matrix.dense()).max(), 1e-300)


def test_an_empty_class_adds_nothing():
    K = with_eigenvalues([5, -3, 2], 20)
    codes = np.arange(20) % 2
    assert_allclose(margin(K, codes, 5), margin(K, codes, 2))


def test_the_matrix_itself_scores_one_and_the_ideal_kernel_more():
    rng = np.random.default_rng(0)
    codes = np.arange(40) % 2
    ideal = (codes[:, None] == codes[None]).astype(float)
    K = 0.5 * ideal + 0.1 * with_eigenvalues(rng.normal(size=40), 40)
    assert smss(margin(K, codes, 2), margin(K, codes, 2)) == 1.0
    assert smss(margin(ideal, codes, 2), margin(K, codes, 2)) > 1.0


def test_one_class_and_no_margin_are_errors():
    with pytest.raises(ValueError, match="two classes"):
        margin(np.eye(3), np.zeros(3, int), 1)
    with pytest.raises(ValueError, match="margin 0"):
        smss(1.0, 0.0)
