"""Nyström for indefinite matrices against dense truths."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.kernel_approximation import Nystroem

from krein.core.moments import ClassMoments
from krein.core.space import (
    Eigenfunctions,
    NystromMatrix,
    landmark_basis,
    signature,
    signed_eigen,
    squared_dissimilarities,
    stable_rank,
)

from ..market import build, with_eigenvalues


def close(actual, expected, scale, tolerance=1e-8):
    """Assert equality up to `tolerance` relative to `scale`."""
    assert np.shape(actual) == np.shape(expected)
    assert np.abs(actual - expected).max(initial=0.0) <= tolerance * max(scale, 1e-300)


def low_rank(case):
    return NystromMatrix(case.C, landmark_basis(case.W))


def size(K):
    return np.linalg.norm(K, 2)


def dense_nystrom(case):
    """C W⁺ Cᵀ as the paper writes it (eq. 6)."""
    return case.C @ np.linalg.pinv(case.W, rcond=1e-10, hermitian=True) @ case.C.T


def test_dissimilarities_match_those_of_the_dense_matrix(case):
    low = low_rank(case)
    K = low.dense()
    D2 = squared_dissimilarities(K)
    scale = max(size(K), np.abs(D2).max(initial=0.0))
    close(low.diagonal(), np.diag(K), scale)
    cols = np.arange(len(K))[::3]
    close(low.squared_dissimilarities(cols), D2[:, cols], scale)
    v = np.random.default_rng(0).normal(size=(len(K), 2))
    close(low.apply_dissimilarities(v), D2 @ v, scale * len(K))
    close(low.apply_dissimilarities(v[:, 0]), D2 @ v[:, 0], scale * len(K))


def test_dissimilarities_need_no_square_matrix():
    rng = np.random.default_rng(0)
    C = rng.normal(size=(20_000, 4))
    low = NystromMatrix(C, landmark_basis(np.eye(4)))
    tracemalloc.start()
    low.squared_dissimilarities(np.arange(5))
    low.apply_dissimilarities(np.ones(20_000))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20_000 * 8 * 50


def test_eigenfunctions_of_all_objects_are_the_eigenvectors(case):
    n = len(case.C)
    if case.W.shape != (n, n):
        pytest.skip("some objects are not landmarks")
    found = Eigenfunctions.of(landmark_basis(case.W), n)
    lam = np.linalg.eigvalsh(case.W)
    lam = lam[np.abs(lam) > 1e-10 * np.abs(lam).max(initial=0.0)]
    close(np.sort(found.values), lam, size(case.W))
    Phi = found(case.C)
    close(Phi.T @ Phi, np.eye(len(lam)), 1, 1e-6)
    close(case.W @ Phi, Phi * found.values, size(case.W), 1e-6)


def test_eigenvalue_estimates_approach_the_eigenvalues():
    """From a random tenth of the objects: λ·N/m within a fifth, eigenvectors nearly parallel."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3)) * [3.0, 2.0, 1.0]
    J = np.array([1.0, -1.0, 1.0])
    K = (X * J) @ X.T
    L = np.sort(rng.choice(1000, 100, replace=False))
    found = Eigenfunctions.of(landmark_basis(K[np.ix_(L, L)]), 1000)
    lam, U = np.linalg.eigh(K)
    order = np.argsort(-np.abs(lam))[:3]
    assert_allclose(found.values, lam[order], rtol=0.2)
    Phi = found(K[:, L])
    cosine = np.abs((Phi * U[:, order]).sum(axis=0)) / np.linalg.norm(Phi, axis=0)
    assert (cosine > 0.98).all()
    assert_allclose(np.linalg.norm(Phi, axis=0), 1, rtol=0.2)


def test_approximation_matches_the_paper(case):
    expected = dense_nystrom(case)
    close(low_rank(case).dense(), expected, size(expected))


def test_exact_when_the_landmarks_span(exact):
    close(low_rank(exact).dense(), exact.K, size(exact.K))


def test_eigenvalues_keep_their_signs(exact):
    A = low_rank(exact).eigenvalues
    truth = np.linalg.eigvalsh(exact.K)
    truth = truth[np.abs(truth) > 1e-10 * np.abs(truth).max()]
    close(np.sort(A), np.sort(truth), size(exact.K))
    assert (np.diff(np.abs(A)) <= 1e-12 * size(exact.K)).all(), "largest |λ| first"


def test_eigenvectors_are_orthonormal_and_rebuild(case):
    matrix = low_rank(case)
    Q = matrix.eigenvectors()
    close(Q.T @ Q, np.eye(Q.shape[1]), 1.0)
    close((Q * matrix.eigenvalues) @ Q.T, matrix.dense(), size(matrix.dense()))


def test_each_eigenvector_solves_its_equation(exact):
    matrix = low_rank(exact)
    Q = matrix.eigenvectors()
    close(exact.K @ Q, Q * matrix.eigenvalues, size(exact.K))


def test_svd(exact):
    U, s, Vt = low_rank(exact).svd()
    close((U * s) @ Vt, exact.K, size(exact.K))
    assert (s >= 0).all()
    close(Vt @ Vt.T, np.eye(len(s)), 1.0)


def test_pseudo_inverse(exact):
    v = np.random.default_rng(1).normal(size=(len(exact.K), 3))
    expected = np.linalg.pinv(exact.K, rcond=1e-10, hermitian=True) @ v
    close(low_rank(exact).apply_pinv(v), expected, np.abs(expected).max(initial=0.0), 1e-7)


def test_products_and_row_sums(case):
    matrix, dense = low_rank(case), low_rank(case).dense()
    v = np.random.default_rng(2).normal(size=(len(dense), 2))
    close(matrix.apply(v), dense @ v, size(dense) * np.linalg.norm(v))
    close(matrix.apply(v[:, 0]), dense @ v[:, 0], size(dense) * np.linalg.norm(v))
    close(matrix.apply_square(v), dense @ (dense @ v), size(dense) ** 2 * np.linalg.norm(v))
    close(matrix.row_sums(), dense.sum(axis=1), size(dense) * len(dense))


def test_signature_matches_the_dense_one(exact):
    truth = signature(np.linalg.eigvalsh(exact.K))
    assert low_rank(exact).signature == truth


def test_coordinates_of_new_objects(exact):
    """A new object that repeats a training object gets that object's coordinates."""
    basis = landmark_basis(exact.W)
    B = basis.coordinates(exact.C)
    new = basis.coordinates(exact.K[::-1][:, exact.landmarks])
    assert_allclose(new, B[::-1], atol=1e-12 * max(1.0, np.abs(B).max(initial=0.0)))


def test_gram_from_chunks_in_any_order(case):
    basis = landmark_basis(case.W)
    B = basis.coordinates(case.C)
    parts = np.array_split(np.random.default_rng(3).permutation(len(B)), min(5, len(B)))
    moments = [ClassMoments.of(B[p], case.codes[p], 3, origin=B.mean(axis=0)) for p in parts]
    total = moments[0]
    for part in reversed(moments[1:]):
        total = part + total
    matrix = NystromMatrix(case.C, basis)
    close(total.gram(), matrix.gram, np.abs(matrix.gram).max(initial=0.0), 1e-12)
    eigen = signed_eigen(total.gram(), basis.signs)
    scale = np.abs(matrix.eigenvalues).max(initial=0.0)
    close(np.sort(eigen.values), np.sort(matrix.eigenvalues), scale, 1e-9)


def test_truncation_keeps_the_largest(case):
    full = landmark_basis(case.W)
    r = max(1, len(full.lam) // 2)
    cut = landmark_basis(case.W, rank=r)
    assert len(cut.lam) == min(r, len(full.lam))
    assert_allclose(cut.lam, full.lam[: len(cut.lam)])


def test_truncation_bounds_the_error_where_the_plain_core_does_not():
    rng = np.random.default_rng(0)
    lam = np.concatenate([np.linspace(10, 5, 10) * (-1) ** np.arange(10), rng.normal(size=190) / 5])
    errors = {None: [], 10: []}
    for seed in range(20):
        K = with_eigenvalues(lam, 200, seed)
        landmarks = np.random.default_rng(seed).choice(200, 20, replace=False)
        C, W = K[:, landmarks], K[np.ix_(landmarks, landmarks)]
        for rank, into in errors.items():
            approximation = NystromMatrix(C, landmark_basis(W, rank=rank)).dense()
            into.append(np.linalg.norm(K - approximation) / np.linalg.norm(K))
    assert np.max(errors[10]) < np.max(errors[None]) / 2
    assert np.median(errors[10]) < np.median(errors[None])


def test_the_squared_route_confuses_eigenvalues_of_opposite_sign():
    """BᵀB, which the paper decomposes, has one double eigenvalue where K has λ and −λ."""
    K = with_eigenvalues([2.0, -2.0], 30)
    basis = landmark_basis(K)
    B = basis.coordinates(K)
    assert_allclose(np.linalg.eigvalsh(B.T @ B), [2.0, 2.0])
    assert_allclose(np.sort(NystromMatrix(K, basis).eigenvalues), [-2.0, 2.0])


def test_scikit_learn_returns_the_absolute_matrix_where_ours_returns_the_matrix():
    K = with_eigenvalues([5.0, -3.0, 1.0], 20)
    lam, U = np.linalg.eigh(K)
    absolute = (U * np.abs(lam)) @ U.T
    Z = Nystroem(kernel="precomputed", n_components=20, random_state=0).fit_transform(K)
    assert_allclose(Z @ Z.T, absolute, atol=1e-6)
    ours = NystromMatrix(K, landmark_basis(K)).dense()
    assert_allclose(ours, K, atol=1e-12)
    assert np.abs(ours - absolute).max() > 0.1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-6, 1e6))
def test_eigenvalues_scale_with_the_unit(seed, unit):
    case = build(seed % 50, 20)[seed % 5]
    base = low_rank(case).eigenvalues
    scaled = NystromMatrix(unit * case.C, landmark_basis(unit * case.W)).eigenvalues
    close(np.sort(scaled), np.sort(unit * base), unit * size(case.K))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.1, 10).flatmap(lambda x: st.sampled_from([x, -x])), min_size=1, max_size=8)
)
def test_any_spectrum_is_recovered(lam):
    K = with_eigenvalues(lam, 25)
    matrix = NystromMatrix(K[:, :12], landmark_basis(K[:12, :12]))
    singular = np.linalg.svd(K[:12, :12])[1]
    if singular[len(lam) - 1] > 1e-6 * singular[0]:  # else rank(W) < rank(K) to working precision
        close(np.sort(matrix.eigenvalues), np.sort(lam), np.abs(lam).max(), 1e-8)


def test_memory_stays_below_two_copies_of_the_input():
    N, m = 50_000, 40
    C = np.random.default_rng(0).normal(size=(N, m))
    W = C[:m] + C[:m].T
    matrix = NystromMatrix(C, landmark_basis(W))
    tracemalloc.start()
    vectors = matrix.eigenvectors()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert vectors.shape == (N, m)
    assert peak < 2 * C.nbytes


@pytest.mark.parametrize("m", [1, 7])
def test_negative_definite(m):
    K = -np.eye(m)
    matrix = NystromMatrix(K, landmark_basis(K))
    assert_allclose(matrix.dense(), K)
    assert matrix.signature == (0, m, 0)


def null_landmark(N=60, gap=1e-4):
    """An indefinite matrix whose second landmark has almost no length, though K is not small."""
    X = np.random.default_rng(0).normal(size=(N, 3))
    X[0], X[1] = (5.0, 0.0, 0.0), (0.0, 1.0, 1.0 + gap)
    return (X * [1.0, 1.0, -1.0]) @ X.T


def test_a_landmark_whose_parts_cancel_is_beyond_the_stable_rank():
    K = null_landmark()
    plain = NystromMatrix(K[:, :2], landmark_basis(K[:2, :2]))
    assert stable_rank(plain.gram, plain.basis.signs) == 1
    kept = NystromMatrix(K[:, :2], landmark_basis(K[:2, :2], rank=1))
    errors = [np.linalg.norm(nystrom.dense() - K) for nystrom in (plain, kept)]
    assert errors[0] > 100 * np.linalg.norm(K) > 90 * errors[1]


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_a_psd_matrix_has_its_whole_rank(seed, m):
    X = np.random.default_rng(seed).normal(size=(20, 5)) * np.logspace(0, -3, 5)
    K = X @ X.T
    nystrom = NystromMatrix(K[:, :m], landmark_basis(K[:m, :m]))
    if (nystrom.basis.signs > 0).all():
        assert stable_rank(nystrom.gram, nystrom.basis.signs) == len(nystrom.basis.signs)
    assert stable_rank(np.diag([1.0, 100.0]), np.ones(2)) == 2
