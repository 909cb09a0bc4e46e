"""Graphs of neighbours: the values of some pairs, found by somebody else's search.

A graph is a sparse matrix in the convention of scikit-learn's `KNeighborsTransformer`: row i
contains the values of object i with its neighbours. A stored 0 is a value, and a missing entry is
unknown, not 0. Search engines return lists of neighbours, which `graph` turns into such a matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .core.shapes import Kind

__all__ = ["graph"]


def graph(values: Any, neighbours: Any, n: int) -> sparse.csr_matrix:
    """Return the graph of the neighbours that a search found.

    Parameters
    ----------
    values : array (q, k)
        The distance or similarity of each query to its neighbours, such as FAISS's `D`.
    neighbours : array (q, k) of integers
        The positions of the neighbours among the objects searched, such as FAISS's `I`. A
        negative position means that there is no further neighbour.
    n : int
        Number of objects searched.

    Returns
    -------
    graph : sparse matrix (q, n)
        Each row in the order of its neighbours. For `KreinClassifier("precomputed-distance")`, or
        "precomputed" if the values are similarities.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.neighbours import graph
    >>> D, I = np.array([[0.0, 2.0], [0.5, np.inf]]), np.array([[4, 0], [1, -1]])
    >>> graph(D, I, 5).toarray()
    array([[2. , 0. , 0. , 0. , 0. ],
           [0. , 0.5, 0. , 0. , 0. ]])
    """
    values, neighbours = np.asarray(values, dtype=np.float64), np.asarray(neighbours)
    if values.ndim != 2 or values.shape != neighbours.shape:
        raise ValueError(
            f"values and neighbours must be arrays of one shape (queries, k); got "
            f"{values.shape} and {neighbours.shape}"
        )
    if neighbours.dtype.kind not in "iu":
        raise TypeError(
            f"neighbours must be integers, the positions of objects; got {neighbours.dtype}: are "
            "values and neighbours in the right order?"
        )
    if neighbours.size and neighbours.max() >= n:
        query, k = np.argwhere(neighbours == neighbours.max())[0].tolist()
        raise ValueError(
            f"neighbour {k} of query {query} is object {neighbours.max()}, but there are {n} "
            "objects, counted from 0"
        )
    there = neighbours >= 0
    starts = np.append(0, np.cumsum(there.sum(axis=1)))
    shape = (len(values), n)
    found = sparse.csr_matrix((values[there], neighbours[there], starts), shape=shape)
    check_graph(found)
    return found


def check_graph(given: Any, kind: Kind = "similarity") -> sparse.csr_matrix:
    """Return a graph as a CSR matrix of float64, columns ascending; refuse values that are wrong.

    Stored zeros stay. A pair that is stored twice is refused: scipy would add up its values.
    """
    dtype = np.dtype(given.dtype)
    if dtype.kind not in "fiub":
        what = "real" if dtype.kind == "c" else "numbers"
        raise TypeError(f"the values of a graph must be {what}; got {dtype}")
    nnz = given.nnz
    found = sparse.csr_matrix(given, dtype=np.float64)
    if not found.has_sorted_indices:
        found = found.sorted_indices()
    starts, rows = found.indptr, stored_rows(found)
    again = (np.diff(found.indices) == 0) & (np.diff(rows) == 0)
    if found.nnz < nnz or again.any():
        where = ""
        if again.any():
            i = int(again.argmax())
            where = f": row {rows[i]}, column {found.indices[i]}"
        raise ValueError(f"the graph contains a pair twice{where}; keep the best of its values")
    wrong = ~np.isfinite(found.data)
    if kind == "dissimilarity":
        wrong |= found.data < 0
    if wrong.any():
        i = int(wrong.argmax())
        value = found.data[i]
        reason = "which is negative" if np.isfinite(value) else "not a finite number"
        raise ValueError(
            f"the value in row {rows[i]}, column {found.indices[i]} of the graph is {value:g}, "
            f"{reason}; leave out what is unknown"
        )
    assert starts[-1] == found.nnz
    return found


def stored_rows(found: sparse.csr_matrix) -> NDArray[np.intp]:
    """Return the row (nnz,) of each stored value."""
    return np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
