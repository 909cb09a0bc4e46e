"""Vectors, histograms, sets, images, texts and balls against other ways to compute them."""

from __future__ import annotations

import bz2

import numpy as np
import pytest
from scipy.spatial.distance import cdist, directed_hausdorff
from sklearn.metrics import pairwise as sk

from krein.measures import get_measure

from .market import balls, counts, images, point_sets, vectors

RNG = np.random.default_rng(7)
X, Y = vectors(RNG, 30), vectors(RNG, 8)


def elm(A, B, sigma):
    c = 1 / (2 * sigma**2) + 1
    scale = np.sqrt(np.outer(c + (A**2).sum(1), c + (B**2).sum(1)))
    return 2 / np.pi * np.arcsin((1 + A @ B.T) / scale)


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("elm", {"sigma": 0.7}, elm(X, Y, 0.7)),
        ("elm", {}, elm(X, Y, 10.0)),
        ("rbf", {}, sk.rbf_kernel(X, Y)),
        ("rbf", {"gamma": 2.0}, sk.rbf_kernel(X, Y, gamma=2.0)),
        ("linear", {}, sk.linear_kernel(X, Y)),
        ("sigmoid", {}, sk.sigmoid_kernel(X, Y)),
        ("sigmoid", {"gamma": 2.0, "offset": -1.0}, sk.sigmoid_kernel(X, Y, 2.0, -1.0)),
        ("manhattan", {}, -sk.manhattan_distances(X, Y)),
        ("tl1", {}, np.maximum(2.8 - sk.manhattan_distances(X, Y), 0)),
        ("tl1", {"rho": 4.0}, np.maximum(4.0 - sk.manhattan_distances(X, Y), 0)),
    ],
)
def test_vectors(name, params, expected):
    np.testing.assert_allclose(get_measure(name, params).block(X, Y), expected, atol=1e-12)


def test_rbf_of_points_far_from_the_origin_is_still_exact():
    measure = get_measure("rbf", {"gamma": 1.0})
    far = measure.block(X + 1e6, Y + 1e6)
    np.testing.assert_allclose(far, sk.rbf_kernel(X, Y, gamma=1.0), atol=1e-7)


@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1e8, 1e60, 1e150])
def test_elm_of_vectors_of_any_length_stays_between_minus_one_and_one(scale):
    measure = get_measure("elm")
    K = measure.block(X * scale, X * scale)
    assert np.abs(K).max() <= 1
    np.testing.assert_allclose(np.diag(K), measure.diagonal(X * scale), atol=1e-6)


def test_vectors_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"vectors of 4 numbers .* vectors of 3"):
        get_measure("elm").check_alike(X, X[:, :3])


def test_histograms():
    P, Q = counts(RNG, 12) + 1.0, counts(RNG, 5) + 1.0
    p, q = (R / R.sum(1, keepdims=True) for R in (P, Q))
    kl = [[(a * np.log(a / b)).sum() + (b * np.log(b / a)).sum() for b in q] for a in p]
    measure = get_measure("symmetric-kl")
    np.testing.assert_allclose(measure.block(measure.check(P), measure.check(Q)), np.sqrt(kl))
    measure = get_measure("symmetric-kl", {"pseudocount": 1.0})
    again = measure.block(measure.check(P - 1), measure.check(Q - 1))
    np.testing.assert_allclose(again, np.sqrt(kl))
    measure = get_measure("jensen-shannon")
    M = (p[:, None] + q) / 2
    js = ((p[:, None] * np.log(p[:, None] / M)).sum(2) + (q * np.log(q / M)).sum(2)) / 2
    np.testing.assert_allclose(measure.block(measure.check(P), measure.check(Q)), np.sqrt(js))


def test_hausdorff_distances():
    sets = point_sets(RNG, 15)
    D = get_measure("hausdorff").block(sets, sets)
    M = get_measure("modified-hausdorff").block(sets, sets)
    for i, a in enumerate(sets):
        for j, b in enumerate(sets):
            both = max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0])
            assert D[i, j] == pytest.approx(both)
            d = cdist(a, b)
            assert M[i, j] == pytest.approx(max(d.min(1).mean(), d.min(0).mean()))


@pytest.mark.parametrize("sides", [1, 2])
def test_tangent_distance_is_least_squares(sides):
    measure = get_measure("tangent", {"sides": sides})
    A = measure.check(np.concatenate([images(RNG, 9), np.ones((1, 6, 7)), np.zeros((1, 6, 7))]))
    D, T = measure.block(A, A), measure._tangents(A)

    def left_over(basis, u):
        return u - basis @ np.linalg.lstsq(basis, u, rcond=1e-6)[0]

    for i in range(len(A)):
        for j in range(len(A)):
            u = (A[i] - A[j]).ravel()
            if sides == 1:
                r = np.concatenate([left_over(T[i].T, u), left_over(T[j].T, u)]) / np.sqrt(2)
            else:
                r = left_over(np.vstack([T[i], T[j]]).T, u)
            assert D[i, j] == pytest.approx(np.linalg.norm(r), abs=1e-6)


def test_tangents_are_derivatives():
    """Moving a smooth picture slightly changes it by its tangent times the movement."""
    y, x = np.mgrid[:40, :40] - 19.5

    def picture(angle, shift):
        c, s = np.cos(angle), np.sin(angle)
        u, v = c * x + s * y - shift, -s * x + c * y
        return np.exp(-(u**2) / 200 - v**2 / 80)

    deformations = ["shift-x", "rotate"]
    measure = get_measure("tangent", {"smoothing": 0.0, "deformations": deformations})
    shift, rotate = measure._tangents(picture(0, 0)[None])[0].reshape(2, 40, 40)
    for tangent, change in [
        (-shift, picture(0, 0.01) - picture(0, -0.01)),
        (rotate, picture(0.01, 0) - picture(-0.01, 0)),
    ]:
        inner = np.s_[2:-2, 2:-2]  # at the border differences are one-sided
        np.testing.assert_allclose(tangent[inner], change[inner] / 0.02, atol=0.02 * tangent.max())


def test_a_small_shift_hardly_changes_the_distance():
    y, x = np.mgrid[:20, :20]
    A = np.stack([np.exp(-((x - 9.5 - s) ** 2 + (y - 9.5) ** 2) / 12) for s in (0, 0.3)])
    tangent = get_measure("tangent").block(A, A)[0, 1]
    assert tangent < 0.1 * np.linalg.norm(A[0] - A[1])


def test_flat_images_are_squares_unless_a_shape_is_given():
    flat = RNG.uniform(size=(4, 36))
    assert np.shape(get_measure("tangent").check(flat)) == (4, 6, 6)
    assert np.shape(get_measure("tangent", {"shape": [4, 9]}).check(flat)) == (4, 4, 9)
    with pytest.raises(ValueError, match="6 × 6 pixels cannot be compared with images of 4 × 9"):
        get_measure("tangent").check_alike(flat.reshape(4, 6, 6), flat.reshape(4, 4, 9))


def test_compression_distance():
    measure = get_measure("compression", {"compressor": "bz2"})
    texts = measure.check(["abracadabra " * 30, "hocus pocus " * 30, b"\x00\x01" * 99])
    D = measure.block(texts, texts)
    for i, a in enumerate(texts):
        for j, b in enumerate(texts):
            first, second = sorted((a, b))
            joint = len(bz2.compress(first + second, 9))
            one, other = len(bz2.compress(a, 9)), len(bz2.compress(b, 9))
            assert D[i, j] == (joint - min(one, other)) / max(one, other)


def test_compression_detects_similarity():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 256, 3000, dtype=np.uint8).tobytes() for _ in range(2))
    for compressor in ("lzma", "zlib"):
        measure = get_measure("compression", {"compressor": compressor})
        near, far = measure.block([a], [a[:2900] + b[:100], b])[0]
        assert near < 0.2
        assert far > 0.9


def test_balls():
    A, B = balls(RNG, 9), balls(RNG, 4)
    gap = cdist(A[:, :3], B[:, :3]) - A[:, 3:] - B[:, 3]
    np.testing.assert_allclose(get_measure("balls").block(A, B), np.maximum(gap, 0), atol=1e-12)


def test_large_images_and_sets_are_compared_in_parts(monkeypatch):
    from krein.measures import images as images_module
    from krein.measures import sets as sets_module

    pictures, sets = images(RNG, 12), point_sets(RNG, 12)
    tangent, hausdorff = get_measure("tangent"), get_measure("hausdorff")
    whole = tangent.block(pictures, pictures[:7]), hausdorff.block(sets, sets[:7])
    monkeypatch.setattr(images_module, "_PLANES", 5 * 7 * 42)
    monkeypatch.setattr(sets_module, "_DISTANCES", 60)
    # compare squares: the root of a rounding error is far larger than the error
    parts = tangent.block(pictures, pictures[:7])
    np.testing.assert_allclose(parts**2, whole[0] ** 2, atol=1e-12)
    np.testing.assert_array_equal(hausdorff.block(sets, sets[:7]), whole[1])
