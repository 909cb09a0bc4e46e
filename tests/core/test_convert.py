"""Similarity ⇄ dissimilarity."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from krein.core.space import (
    Conversion,
    LandmarkSpace,
    double_centre,
    squared_dissimilarities,
)

from ..market import build

points = arrays(float, st.tuples(st.integers(2, 12), st.integers(1, 4)), elements=st.floats(-9, 9))


def distances(X):
    return np.linalg.norm(X[:, None] - X[None], axis=2)


@given(points)
def test_centring_distances_gives_the_centred_gram_matrix(X):
    centred = X - X.mean(axis=0)
    assert_allclose(double_centre(distances(X) ** 2), centred @ centred.T, atol=1e-9)


@given(points)
def test_dissimilarities_survive_a_round_trip(X):
    D2 = distances(X) ** 2
    assert_allclose(squared_dissimilarities(double_centre(D2)), D2, atol=1e-9)


def test_similarities_survive_up_to_the_centre(case):
    n = len(case.K)
    H = np.eye(n) - 1 / n
    expected = H @ case.K @ H
    scale = max(np.abs(case.K).max(), 1e-300)
    result = double_centre(squared_dissimilarities(case.K))
    assert_allclose(result / scale, expected / scale, atol=1e-12)


@given(points)
def test_all_objects_as_landmarks_is_double_centring(X):
    D = distances(X)
    assert_allclose(
        Conversion.of(D, "dissimilarity").similarities(D), double_centre(D**2), atol=1e-9
    )


@given(points, st.integers(0, 100))
def test_landmark_centre_is_the_origin(X, seed):
    """s(x, l) = ⟨x − o, l − o⟩ with o the mean of the landmarks, for new objects too."""
    landmarks = X[: max(1, len(X) // 2)]
    new = np.random.default_rng(seed).normal(size=(3, X.shape[1]))
    o = landmarks.mean(axis=0)
    D = np.linalg.norm(new[:, None] - landmarks[None], axis=2)
    S = Conversion.of(distances(landmarks), "dissimilarity").similarities(D)
    assert_allclose(S, (new - o) @ (landmarks - o).T, atol=1e-8)


def test_input_is_left_alone():
    D = distances(np.random.default_rng(0).normal(size=(5, 2)))
    before = D.copy()
    Conversion.of(D, "dissimilarity").similarities(D)
    assert_allclose(D, before, atol=0)


def test_squared_dissimilarities_may_be_negative():
    K = build()[1].K
    assert squared_dissimilarities(K).min() < 0


def training_centred(D2, L):
    """−½ H D̃² H of all objects, with the Nyström matrix D̃² of whole squared dissimilarities."""
    approximated = D2[:, L] @ np.linalg.pinv(D2[np.ix_(L, L)], rcond=1e-10) @ D2[L]
    return double_centre(approximated)


@given(st.integers(0, 2**32 - 1), st.integers(3, 9))
def test_centring_on_all_objects_needs_their_landmark_columns_only(seed, m):
    """Coordinates without row means have the inner products of the centred Nyström matrix of D²."""
    rng = np.random.default_rng(seed)
    D = np.abs(rng.normal(size=(30, 30))) + 1
    D = (D + D.T) * (1 - np.eye(30))  # not a metric
    L = rng.choice(30, m, replace=False)
    space = LandmarkSpace.of(D[np.ix_(L, L)], "dissimilarity", row_means=False)
    B = space.coordinates(D[:, L])
    B -= B.mean(axis=0)
    wanted = training_centred(D**2, L)
    W = D[np.ix_(L, L)] ** 2
    scale = np.abs(wanted).max() * np.linalg.cond(W) * np.linalg.cond(double_centre(W) + 1)
    assert_allclose((B * space.signs) @ B.T, wanted, atol=1e-13 * scale)


def test_with_all_objects_as_landmarks_both_centres_agree():
    X = np.random.default_rng(0).normal(size=(12, 3))
    D = distances(X) + 1 - np.eye(12)
    dense = double_centre(D**2)
    for row_means in (True, False):
        space = LandmarkSpace.of(D, "dissimilarity", row_means=row_means)
        B = space.coordinates(D)
        B -= B.mean(axis=0)
        assert_allclose((B * space.signs) @ B.T, dense, atol=1e-9)


def test_the_mean_distance_survives_only_without_row_means():
    """Objects at the same directions but other heights: −½d² differs by a constant per row."""
    rng = np.random.default_rng(1)
    D2 = rng.uniform(1, 2, size=(5, 5))
    D2 = (D2 + D2.T) * (1 - np.eye(5))
    d2 = rng.uniform(1, 2, size=5)
    pair = np.sqrt(np.stack([d2, d2 + 1]))
    for row_means, same in ((True, True), (False, False)):
        space = LandmarkSpace.of(np.sqrt(D2), "dissimilarity", row_means=row_means)
        a, b = space.coordinates(pair)
        assert np.allclose(a, b) == same
