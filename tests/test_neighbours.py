"""Graphs of neighbours, from search engines and from scipy."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import kneighbors_graph, sort_graph_by_row_values

from krein.neighbours import check_graph, graph

X = np.random.default_rng(0).normal(size=(30, 2))


def test_lists_become_the_graph_of_scikit_learn():
    expected = kneighbors_graph(X, 4, mode="distance")
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2)) + np.diag(np.full(30, np.inf))
    order = np.argsort(D, axis=1)[:, :4]
    found = graph(np.take_along_axis(D, order, axis=1), order, 30)
    np.testing.assert_allclose(found.toarray(), expected.toarray())


def test_stored_zeros_count_and_missing_neighbours_do_not():
    found = graph([[0.0, 1.0], [0.0, np.inf]], [[2, 1], [0, -1]], 3)
    assert found.nnz == 3
    assert check_graph(found).nnz == 3
    assert check_graph(found.tocoo()).nnz == 3


def test_rows_sorted_by_value_are_a_graph_too():
    found = kneighbors_graph(X, 4, mode="distance")
    by_value = sort_graph_by_row_values(found.copy(), warn_when_not_sorted=False)
    np.testing.assert_array_equal(check_graph(by_value).toarray(), found.toarray())


@pytest.mark.parametrize(
    ("values", "neighbours", "reason"),
    [
        ([[1.0]], [[0, 1]], "one shape"),
        ([1.0], [0], "one shape"),
        ([[1.0]], [[0.0]], "right order"),
        ([[1.0, 2.0]], [[0, 3]], "neighbour 1 of query 0 is object 3"),
        ([[1.0, 2.0]], [[1, 1]], "row 0, column 1"),
        ([[np.nan]], [[1]], "not a finite number"),
    ],
)
def test_wrong_lists_are_refused(values, neighbours, reason):
    with pytest.raises((ValueError, TypeError), match=reason):
        graph(np.array(values), np.array(neighbours), 3)


def test_wrong_graphs_are_refused():
    negative = sparse.csr_matrix(np.array([[0.0, -1.0], [2.0, 0.0]]))
    assert check_graph(negative).nnz == 2
    with pytest.raises(ValueError, match="row 0, column 1 of the graph is -1, which is negative"):
        check_graph(negative, "dissimilarity")
    twice = sparse.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    with pytest.raises(ValueError, match="twice"):
        check_graph(twice)
    with pytest.raises(TypeError, match="complex"):
        check_graph(sparse.csr_matrix(np.eye(2, dtype=complex)))
