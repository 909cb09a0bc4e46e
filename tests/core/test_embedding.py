"""Pseudo-Euclidean embedding and indefinite kernel PCA."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA, KernelPCA

from krein import IndefiniteKernelPCA
from krein.core.space import NystromMatrix, embed, embed_dense, landmark_basis


def scale(K):
    return max(np.abs(K).max(initial=0.0), 1e-300)


def scatter(B):
    return (B - B.mean(axis=0)).T @ (B - B.mean(axis=0))


def test_dense_embedding_restores_the_matrix(case):
    V, signs = embed_dense(case.K)
    assert_allclose((V * signs) @ V.T / scale(case.K), case.K / scale(case.K), atol=1e-9)


def test_dense_embedding_is_u_root_lambda(case):
    V, signs = embed_dense(case.K)
    lam, U = np.linalg.eigh(case.K)
    kept = np.argsort(-np.abs(lam), kind="stable")[: len(signs)]
    expected = np.abs(U[:, kept]) * np.sqrt(np.abs(lam[kept]))
    if len(np.unique(np.round(np.abs(lam[kept]), 6))) == len(kept):  # vectors are unique
        assert_allclose(np.abs(V), expected, atol=1e-7 * np.sqrt(scale(case.K)))


def test_low_rank_embedding_equals_the_dense_one(exact):
    matrix = NystromMatrix(exact.C, landmark_basis(exact.W))
    embedding = embed(matrix.gram, matrix.basis.signs)
    V = embedding.coordinates(matrix.basis.coordinates(exact.C))
    assert_allclose(
        (V * embedding.signs) @ V.T / scale(exact.K), exact.K / scale(exact.K), atol=1e-8
    )
    gram = V.T @ V  # axes are orthogonal, with |λ| as their squared length
    assert_allclose(
        gram / scale(gram), np.diag(np.abs(embedding.eigenvalues)) / scale(gram), atol=1e-8
    )


def test_indefinite_pca_is_pca_for_a_linear_kernel():
    X = np.random.default_rng(0).normal(size=(60, 4)) * [4, 3, 2, 1] + 5
    basis = landmark_basis(X[:10] @ X[:10].T)
    B = basis.coordinates(X @ X[:10].T)
    pca = embed(scatter(B), basis.signs, mean=B.mean(axis=0), n_components=3)
    expected = PCA(3).fit_transform(X)
    assert_allclose(np.abs(pca.coordinates(B)), np.abs(expected), atol=1e-8)


def test_indefinite_pca_centres_an_indefinite_matrix(exact):
    n = len(exact.K)
    matrix = NystromMatrix(exact.C, landmark_basis(exact.W))
    B = matrix.basis.coordinates(exact.C)
    pca = embed(scatter(B), matrix.basis.signs, mean=B.mean(axis=0))
    V = pca.coordinates(B)
    H = np.eye(n) - 1 / n
    centred = H @ exact.K @ H
    assert_allclose((V * pca.signs) @ V.T / scale(exact.K), centred / scale(exact.K), atol=1e-8)


def test_positive_part_agrees_with_scikit_learn():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    K = X @ X.T
    basis = landmark_basis(K)
    B = basis.coordinates(K)
    pca = embed(scatter(B), basis.signs, mean=B.mean(axis=0), n_components=2)
    expected = KernelPCA(2, kernel="precomputed").fit_transform(K)
    assert_allclose(np.abs(pca.coordinates(B)), np.abs(expected), atol=1e-7)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
def test_a_constant_added_to_the_kernel_does_not_move_the_axes(offset):
    X = np.random.default_rng(0).normal(size=(40, 3)) * [5, 3, 1]
    pca = IndefiniteKernelPCA("precomputed", n_components=3, landmarks="all").fit(X @ X.T + offset)
    assert_allclose(pca.eigenvalues_, PCA(3).fit(X).singular_values_ ** 2, rtol=1e-4)
