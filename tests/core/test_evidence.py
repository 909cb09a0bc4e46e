"""Evidence of the nearest known objects, against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from krein.core.cascade import Cascade, fit_terms, pooled
from krein.core.evidence import (
    LOCAL_NEIGHBOUR,
    PRIOR_MASS,
    Evidence,
    Neighbours,
    apart_from,
    class_evidence,
    nearest_landmarks,
    squared,
)

from .test_cascade import opinions, taken


def test_evidence_matches_its_formula():
    rng = np.random.default_rng(0)
    apart, codes = rng.exponential(size=(8, 25)), rng.integers(3, size=(8, 25))
    found = class_evidence(apart, codes, 3, 0.7)
    for i in range(8):
        d = np.sort(apart[i])
        h2 = 0.7 * (d[LOCAL_NEIGHBOUR] - d[0])
        w = np.exp(-0.5 * (apart[i] - d[0]) / h2)
        for c in range(3):
            top = w[codes[i] == c].sum() + PRIOR_MASS / 3
            assert found[i, c] == pytest.approx(np.log(top / (w.sum() + PRIOR_MASS)), rel=1e-12)


@given(st.floats(1e-6, 1e6), st.floats(-100, 100))
@settings(max_examples=20, deadline=None)
def test_evidence_does_not_depend_on_unit_or_offset(unit, offset):
    rng = np.random.default_rng(3)
    apart, codes = rng.exponential(size=(5, 30)), rng.integers(4, size=(5, 30))
    a = class_evidence(apart, codes, 4, 0.3)
    b = class_evidence(unit * (apart + offset), codes, 4, 0.3)
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_equidistant_neighbours_have_equal_votes():
    found = class_evidence(np.zeros((1, 4)), np.array([[0, 0, 0, 1]]), 2, 1.0)
    np.testing.assert_allclose(np.exp(found), [[3.25 / 4.5, 1.25 / 4.5]])


def test_without_neighbours_there_is_no_evidence():
    found = class_evidence(np.empty((2, 0)), np.empty((2, 0), dtype=int), 4, 1.0)
    np.testing.assert_allclose(np.exp(found), 0.25)


def test_a_larger_similarity_is_nearer():
    assert (np.diff(squared(np.array([0.1, 0.5, 0.9]), "similarity")) < 0).all()
    assert (np.diff(squared(np.array([0.1, 0.5, 0.9]), "dissimilarity")) > 0).all()


@pytest.mark.parametrize("tail", [0.1, 1.0])
def test_closeness_is_a_rank_among_held_out_objects(tail):
    rng = np.random.default_rng(0)
    nearest = rng.exponential(size=200).round(1)  # with ties
    counts = rng.integers(1, 4, size=200)
    closeness = Evidence.of(0.1, nearest, tail, counts.astype(float)).closeness
    repeated = np.repeat(nearest, counts)
    expected = [min((repeated >= d).mean() / tail, 1.0) for d in nearest]
    np.testing.assert_allclose(closeness(nearest), expected)
    everywhere = closeness(np.linspace(-1, 99, 500))
    assert (np.diff(everywhere) <= 0).all()
    assert everywhere[0] == 1.0


def test_neighbours_are_the_nearest_of_all_groups():
    near = Neighbours.nearest(
        [
            (np.array([[5.0, 1.0]]), np.array([[0, 1]]), np.array([[1.0, 2.0]])),
            (np.array([[2.0, 9.0]]), np.array([[2, 3]]), np.array([[3.0, 4.0]])),
        ],
        3,
    )
    np.testing.assert_array_equal(near.apart, [[1.0, 2.0, 5.0]])
    np.testing.assert_array_equal(near.codes, [[1, 2, 0]])
    np.testing.assert_array_equal(near.numbers, [[2.0, 3.0, 1.0]])
    np.testing.assert_array_equal(near.columns, [[1, 2, 0]])


def test_an_object_that_stands_for_several_has_as_many_votes():
    apart, codes = np.array([[0.1, 0.4, 0.9, 1.6]]), np.array([[0, 1, 1, 2]])
    numbers = np.array([[3.0, 1.0, 2.0, 1.0]])
    many = np.repeat(np.arange(4), numbers[0].astype(int))
    # the same bandwidth: that of the last neighbour
    found = class_evidence(apart, codes, 3, 0.5, numbers)
    np.testing.assert_allclose(found, class_evidence(apart[:, many], codes[:, many], 3, 0.5))
    near = Neighbours(apart, codes, None, numbers)
    np.testing.assert_array_equal(near.evidence(3, 0.5), found)
    np.testing.assert_array_equal(near.spread(np.array([1]), 2).evidence(3, 0.5)[1:], found)


def test_landmarks_are_not_their_own_neighbours():
    values = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 1.0], [1.0, 2.0, 3.0]])
    own = np.eye(3, dtype=bool) & [True, True, False]  # the last object is not a landmark
    found = nearest_landmarks(apart_from(values, "dissimilarity", own), np.array([0, 1, 2]))
    np.testing.assert_array_equal(found.apart, [[1.0, 4.0], [1.0, 9.0], [1.0, 4.0]])
    np.testing.assert_array_equal(found.codes, [[2, 1], [2, 0], [0, 1]])


def test_both_terms_are_the_evidence_and_its_product_with_the_closeness():
    rng = np.random.default_rng(4)
    near = Neighbours(rng.exponential(size=(50, 6)), rng.integers(3, size=(50, 6)))
    evidence = Evidence.of(0.3, near.least, 0.4)
    plain, close = evidence.terms(near, 3)
    np.testing.assert_array_equal(plain, class_evidence(near.apart, near.codes, 3, 0.3))
    np.testing.assert_array_equal(close, plain * evidence.closeness(near.least)[:, None])


def test_evidence_is_weighted_by_what_it_explains():
    found, codes = opinions(2, n=2000, quality=(0.5,))
    rng = np.random.default_rng(2)
    apart = np.sort(rng.exponential(size=(2000, 20)), axis=1)
    right = np.where(rng.random((2000, 20)) < 0.8, codes[:, None], rng.integers(3, size=(2000, 20)))
    losses = {}
    for name, labels in {"useful": right, "idle": rng.integers(3, size=(2000, 20))}.items():
        near = Neighbours(apart, labels)
        terms = Evidence.learn(found, codes, near, None, 2000.0).terms(near, 3)
        cascade = Cascade.learn([found, terms], codes, [50.0, 50.0], 1e-4)
        _, where = cascade.run(2000, 3, taken([found, terms]))
        losses[name] = cascade.looks[-1].weights[-2:].sum(), where.mean()
    assert losses["useful"][0] > 0.5
    assert losses["idle"][0] < 0.1
    assert losses["useful"][1] > 0.9  # nearly everything is worth a second look
    assert losses["idle"][1] < 0.2


def test_a_near_copy_is_trusted_more_than_a_remote_relative():
    found, codes = opinions(4, n=2000, quality=(0.5,))
    rng = np.random.default_rng(4)
    remote = rng.random(2000) < 0.3
    apart = np.sort(rng.exponential(size=(2000, 20)), axis=1) + 9.0 * remote[:, None]
    labels = np.where(remote[:, None], rng.integers(3, size=(2000, 20)), codes[:, None])
    near = Neighbours(apart, labels)
    terms = [*found, *Evidence.learn(found, codes, near, None, 2000.0).terms(near, 3)]
    a = fit_terms(terms, codes)[0]
    swing = np.ptp(a[-2] * terms[-2] + a[-1] * terms[-1], axis=1)
    assert swing[~remote].mean() > 4 * swing[remote].mean()
    rows = np.flatnonzero(remote)
    before, after = pooled(fit_terms(found, codes)[0], found), pooled(a, terms)
    assert after[rows, codes[rows]].mean() > before[rows, codes[rows]].mean() - 0.05


def test_neighbours_at_infinity_have_no_vote():
    rng = np.random.default_rng(0)
    apart, codes = rng.exponential(size=(7, 6)), rng.integers(0, 3, size=(7, 6))
    nowhere = np.column_stack([np.full(7, np.inf), apart, np.full((7, 20), np.inf)])
    more = np.column_stack([np.zeros(7, int), codes, np.zeros((7, 20), int)])
    for bandwidth in (0.01, 1.0):
        expected = class_evidence(apart, codes, 3, bandwidth)
        found = class_evidence(nowhere, more, 3, bandwidth)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    alone = class_evidence(np.full((1, 4), np.inf), np.zeros((1, 4), int), 3, 1.0)
    np.testing.assert_allclose(np.exp(alone), 1 / 3)
