"""Similarity ⇄ dissimilarity."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from krein.core.space import LandmarkCentre, double_centre, squared_dissimilarities

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
    assert_allclose(LandmarkCentre.of(D).similarities(D), double_centre(D**2), atol=1e-9)


@given(points, st.integers(0, 100))
def test_landmark_centre_is_the_origin(X, seed):
    """s(x, l) = ⟨x − o, l − o⟩ with o the mean of the landmarks, for new objects too."""
    landmarks = X[: max(1, len(X) // 2)]
    new = np.random.default_rng(seed).normal(size=(3, X.shape[1]))
    o = landmarks.mean(axis=0)
    D = np.linalg.norm(new[:, None] - landmarks[None], axis=2)
    S = LandmarkCentre.of(distances(landmarks)).similarities(D)
    assert_allclose(S, (new - o) @ (landmarks - o).T, atol=1e-8)


def test_input_is_left_alone():
    D = distances(np.random.default_rng(0).normal(size=(5, 2)))
    before = D.copy()
    LandmarkCentre.of(D).similarities(D)
    assert_allclose(D, before, atol=0)


def test_squared_dissimilarities_may_be_negative():
    K = build()[1].K
    assert squared_dissimilarities(K).min() < 0
