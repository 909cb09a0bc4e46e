"""Mergeable moments against sums over all objects at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from krein.core.moments import ClassMoments, gram


def data(seed=0, n=200, r=5, n_classes=3, offset=0.0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, r)) + codes[:, None] + offset, codes


def within(B, codes):
    return sum(
        (B[codes == c] - B[codes == c].mean(axis=0)).T
        @ (B[codes == c] - B[codes == c].mean(axis=0))
        for c in np.unique(codes)
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 7), st.booleans())
def test_chunks_merge_to_the_whole_in_any_order(seed, pieces, by_class):
    B, codes = data(seed)
    whole = ClassMoments.of(B, codes, 3, by_class=by_class)
    order = np.array_split(np.random.default_rng(seed).permutation(len(B)), pieces)
    total = ClassMoments.of(B[:0], codes[:0], 3, by_class=by_class)
    for part in order:
        total = ClassMoments.of(B[part], codes[part], 3, by_class=by_class) + total
    for name in ("weights", "sums", "products"):
        assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-12, atol=1e-10)


def test_within_scatter_and_means():
    B, codes = data()
    moments = ClassMoments.of(B, codes, 3, origin=B[0])
    assert_allclose(moments.within(), within(B, codes), rtol=1e-10)
    assert_allclose(moments.means, [B[codes == c].mean(axis=0) for c in range(3)])
    assert_allclose(moments.gram(), B.T @ B)
    assert_allclose(moments.class_sums(), [B[codes == c].sum(axis=0) for c in range(3)])


def test_scatter_by_class():
    B, codes = data()
    moments = ClassMoments.of(B, codes, 3, by_class=True)
    for c in range(3):
        part = B[codes == c]
        assert_allclose(moments.within_class(c), within(part, np.zeros(len(part))), rtol=1e-9)
    assert_allclose(sum(moments.within_class(c) for c in range(3)), moments.within(), rtol=1e-9)


def test_an_origin_near_the_mean_keeps_precision():
    B, codes = data(offset=1e7)
    truth = within(B, codes)
    near = ClassMoments.of(B, codes, 3, origin=B[:10].mean(axis=0)).within()
    far = ClassMoments.of(B, codes, 3).within()
    assert np.abs(near - truth).max() / np.abs(truth).max() < 1e-7
    assert np.abs(far - truth).max() / np.abs(truth).max() > 1e-5


def test_whole_weights_count_like_repeated_objects():
    B, codes = data()
    weights = np.random.default_rng(1).integers(0, 4, len(B)).astype(float)
    repeat = np.repeat(np.arange(len(B)), weights.astype(int))
    a = ClassMoments.of(B, codes, 3, sample_weight=weights, by_class=True)
    b = ClassMoments.of(B[repeat], codes[repeat], 3, by_class=True)
    for name in ("weights", "sums", "products"):
        assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-10, atol=1e-10)


def test_one_against_rest_is_the_two_class_problem():
    B, codes = data()
    two = ClassMoments.of(B, codes, 3, by_class=True).one_against_rest(1)
    direct = ClassMoments.of(B, (codes == 1).astype(int), 2)
    for name in ("weights", "sums", "products"):
        assert_allclose(getattr(two, name), getattr(direct, name), rtol=1e-10)


@pytest.mark.parametrize("by_class", [False, True])
def test_transform_equals_the_moments_of_transformed_objects(by_class):
    B, codes = data()
    P = np.random.default_rng(2).normal(size=(5, 3))
    a = ClassMoments.of(B, codes, 3, by_class=by_class, origin=B[0]).transform(P)
    b = ClassMoments.of(B @ P, codes, 3, by_class=by_class, origin=B[0] @ P)
    for name in ("weights", "sums", "products"):
        assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-9, atol=1e-9)


def test_a_part_can_be_subtracted():
    B, codes = data()
    whole = ClassMoments.of(B, codes, 3)
    rest = whole - ClassMoments.of(B[:50], codes[:50], 3)
    direct = ClassMoments.of(B[50:], codes[50:], 3)
    assert_allclose(rest.products, direct.products, atol=1e-9)
    assert_allclose(rest.weights, direct.weights)


def test_moments_by_class_and_over_all_classes_can_be_combined():
    B, codes = data()
    whole = ClassMoments.of(B, codes, 3, by_class=True)
    rest = whole - ClassMoments.of(B[:50], codes[:50], 3)
    assert_allclose(rest.within(), within(B[50:], codes[50:]), atol=1e-9)


def test_different_origins_do_not_merge():
    B, codes = data()
    with pytest.raises(ValueError, match="origins"):
        _ = ClassMoments.of(B, codes, 3) + ClassMoments.of(B, codes, 3, origin=B[0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_gram(order):
    B = np.asarray(data()[0], order=order)
    assert_allclose(gram(B), B.T @ B)
    assert_allclose(gram(B[::2, 1:]), B[::2, 1:].T @ B[::2, 1:])
