"""Two looks: candidates, evidence, the pool and the gate, each against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

from krein.core.looks import (
    LOCAL,
    PRIOR_MASS,
    RIDGE,
    CandidateSpace,
    Closeness,
    EvidencePool,
    KnownObjects,
    Neighbours,
    Pool,
    apart_from,
    choose_threshold,
    class_evidence,
    fit_pool,
    learn_first_look,
    learn_second_look,
    nearest_landmarks,
    nearest_points,
    no_points,
    pooled,
    squared,
)


def opinions(seed, n=300, C=3, quality=(2.0, 0.0)):
    """Held-out log-probabilities of one opinion per quality, and the true classes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(C, size=n)
    found = []
    for q in quality:
        scores = rng.normal(size=(n, C))
        scores[np.arange(n), codes] += q
        found.append(log_softmax(scores, axis=1))
    return found, codes


# -- candidates --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_points", [1, 7, 500])
def test_nearest_points_match_a_full_search(n_points):
    rng = np.random.default_rng(n_points)
    points = rng.normal(size=(n_points, 6)).astype(np.float32)
    queries = rng.normal(size=(20, 6)).astype(np.float32)
    found, apart = nearest_points(points, queries, 5)
    D = np.linalg.norm(queries[:, None].astype(float) - points[None].astype(float), axis=2)
    k = min(5, n_points)
    np.testing.assert_array_equal(found, np.argsort(D, axis=1, kind="stable")[:, :k])
    np.testing.assert_allclose(apart, np.sort(D, axis=1)[:, :k], rtol=1e-6)


def test_a_point_is_not_its_own_neighbour():
    points = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    points[7] = points[3]  # a copy is a neighbour, the point itself is not
    everyone = np.arange(50)
    found, _ = nearest_points(points, points, 49, without=(everyone, everyone))
    assert not (found == everyone[:, None]).any()
    assert found[3, 0] == 7
    some = everyone.copy()
    some[10] = -1
    assert nearest_points(points, points, 1, without=(some, everyone))[0][10, 0] == 10


def test_points_of_the_same_group_are_no_neighbours():
    rng = np.random.default_rng(0)
    points, groups = rng.normal(size=(60, 4)).astype(np.float32), np.arange(60) // 6
    groups[:3] = 20  # groups of three, of nine and of six points
    groups[3:6] = 1
    D = np.linalg.norm(points[:, None].astype(float) - points[None].astype(float), axis=2)
    D[groups[:, None] == groups] = np.inf
    for k in (5, 60):
        found, apart = nearest_points(points, points, k, without=(groups, groups))
        n = min(k, 60 - 9)  # the same number for all
        np.testing.assert_array_equal(found, np.argsort(D, axis=1, kind="stable")[:, :n])
        np.testing.assert_allclose(apart, np.sort(D, axis=1)[:, :n], rtol=1e-6)


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


def test_candidates_do_not_depend_on_the_batch(monkeypatch):
    points = np.random.default_rng(1).normal(size=(3000, 20)).astype(np.float32)
    whole = nearest_points(points, points[:200], 30)
    monkeypatch.setattr("krein.core.looks.TILE_BYTES", 4 * 3000 * 7)
    parts = nearest_points(points, points[:200], 30)
    alone = [nearest_points(points, points[i : i + 1], 30) for i in range(200)]
    for i in range(2):
        np.testing.assert_array_equal(whole[i], parts[i])
        np.testing.assert_array_equal(whole[i], np.concatenate([one[i] for one in alone]))


def test_points_keep_the_distances_of_scaled_rows():
    rng = np.random.default_rng(2)
    values = rng.exponential(size=(200, 9)) * 10.0 ** np.arange(9)
    points = CandidateSpace.of(values).points(values, no_points(200))
    F = np.sqrt(values)
    Z = (F - F.mean(axis=0)) / F.std(axis=0) / 3  # nine columns: a total variance of 1
    np.testing.assert_allclose(
        np.linalg.norm(points[0] - points, axis=1), np.linalg.norm(Z[0] - Z, axis=1), rtol=1e-4
    )


def test_candidates_are_near_in_values_and_features_together():
    """Squared distances of both parts add up, whatever the unit of the values."""
    rng = np.random.default_rng(3)
    values, others = rng.normal(size=(80, 3)), rng.normal(size=(80, 2)).astype(np.float32)
    space = CandidateSpace.of(1e6 * values)
    known = KnownObjects(
        np.arange(80),
        np.zeros(80, dtype=int),
        np.ones(80),
        np.ones(3),
        space,
        space.points(1e6 * values, others),
        10,
        3,
    )
    found, apart = known.candidates(1e6 * values[:5], others[:5])
    F = np.copysign(np.sqrt(np.abs(values)), values)
    Z = (F - F.mean(axis=0)) / F.std(axis=0) / np.sqrt(3)
    D = np.square(Z[:5, None] - Z).sum(axis=2) + np.square(others[:5, None] - others).sum(axis=2)
    np.testing.assert_array_equal(found, np.argsort(D, axis=1)[:, :10])
    np.testing.assert_allclose(apart, np.sqrt(np.sort(D, axis=1)[:, :10]), rtol=1e-4, atol=1e-4)


def test_a_constant_column_has_no_effect():
    values = np.column_stack([np.arange(10.0), np.full(10, 3.0)])
    space = CandidateSpace.of(values)
    points = space.points(values, no_points(10))
    assert np.isfinite(points).all()
    other = values + np.array([0.0, 5.0])
    np.testing.assert_allclose(points, space.points(other, no_points(10)), atol=1e-6)


def test_a_column_that_is_constant_up_to_rounding_has_no_effect():
    constants = np.linspace(0.1, 0.9, 17)
    assert (np.sqrt(np.tile(constants, (1000, 1))).std(axis=0) > 0).any()  # the mean is rounded
    values = np.column_stack([np.arange(1000.0), np.tile(constants, (1000, 1))])
    space = CandidateSpace.of(values)
    other = values + np.append(0.0, np.full(17, 5.0))
    found, same = (space.points(each, no_points(1000)) for each in (values, other))
    np.testing.assert_allclose(found, same, atol=1e-6)


# -- evidence ----------------------------------------------------------------------------------


def test_evidence_matches_its_formula():
    rng = np.random.default_rng(0)
    apart, codes = rng.exponential(size=(8, 25)), rng.integers(3, size=(8, 25))
    found = class_evidence(apart, codes, 3, 0.7)
    for i in range(8):
        d = np.sort(apart[i])
        h2 = 0.7 * (d[LOCAL] - d[0])
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
    closeness = Closeness.of(nearest, tail, counts.astype(float))
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


# -- the pool ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_weights_of_the_pool_are_optimal(seed):
    found, codes = opinions(seed, quality=(2.0, 1.0, 0.0))
    w = np.random.default_rng(seed).uniform(0.5, 2, size=len(codes))
    prior = np.full(3, 1 / 3)
    a = fit_pool(found, codes, prior, w)

    def loss(a):
        own = pooled(a, found)[np.arange(len(codes)), codes]
        return -w @ own + 0.5 * RIDGE * np.sum((a - prior) ** 2)

    step = 1e-5
    gradient = np.array([(loss(a + e) - loss(a - e)) / (2 * step) for e in step * np.eye(3)])
    np.testing.assert_allclose(gradient[a > 0], 0, atol=1e-2)
    assert (gradient[a == 0] > -1e-2).all()


def test_an_uninformative_opinion_gets_no_weight():
    found, codes = opinions(0, n=3000, quality=(2.0, 0.0))
    good, idle = fit_pool(found, codes, np.full(2, 0.5))
    assert good > 0.8
    assert idle < 0.1


def test_weights_count_objects_in_the_pool():
    found, codes = opinions(1, n=80, quality=(1.0, 0.5))
    counts = np.random.default_rng(1).integers(0, 4, size=80)
    weighted = fit_pool(found, codes, np.full(2, 0.5), counts.astype(float))
    rows = np.repeat(np.arange(80), counts)
    repeated = fit_pool([f[rows] for f in found], codes[rows], np.full(2, 0.5))
    np.testing.assert_allclose(weighted, repeated, atol=1e-3)


def test_no_probability_claims_more_than_the_held_out_objects_can_show():
    sure = np.log(np.array([[1.0, 1e-300, 1e-300]]))
    found = np.exp(Pool(np.ones(1), 99.0).bounded(sure))
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found[0, 1:], 0.01 / 3)


# -- the gate ----------------------------------------------------------------------------------


def test_the_threshold_is_the_cheapest_within_the_tolerance():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.4, 1, size=5000)
    second = rng.exponential(0.2, size=5000)
    first = second + np.where(confidence < 0.7, 0.5, 0.0)
    threshold = choose_threshold(confidence, first, second)
    assert 0.65 < threshold < 0.72
    extra = np.where(confidence < threshold, 0, first - second)
    assert extra.mean() <= 0.01 * second.mean()


def test_few_objects_cannot_show_that_a_second_look_is_useless():
    rng = np.random.default_rng(1)
    confidence, second = rng.uniform(0.4, 1, size=40), rng.exponential(0.3, size=40)
    noise = rng.normal(0, 0.5, size=40)
    noise -= noise.mean()
    assert choose_threshold(confidence, second + noise, second) > np.median(confidence)


def test_a_budget_comes_before_the_tolerance():
    confidence = np.linspace(0, 1, 101)
    first, second = np.full(101, 1.0), np.full(101, 0.1)
    threshold = choose_threshold(confidence, first, second, max_share=0.25)
    assert 0.2 < (confidence < threshold).mean() <= 0.25


# -- both looks --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_heads", [2, 4])
def test_uninformative_heads_share_the_pool_equally(n_heads):
    found, codes = opinions(5, n=40, quality=(0.0,) * n_heads)
    same = [np.full_like(opinion, np.log(1 / 3)) for opinion in found]
    pool = learn_first_look(same, codes, None)
    np.testing.assert_allclose(pool.weights, 40 / 60 / n_heads)  # little trust in 40 objects
    assert pool.n_seen == 40


def test_objects_of_weight_0_do_not_support_a_probability():
    found, codes = opinions(6, n=40)
    weights = np.where(np.arange(40) % 4 == 0, 0.0, 2.5)
    assert learn_first_look(found, codes, weights).n_seen == 30


def test_evidence_without_weight_has_no_effect():
    found, codes = opinions(4, n=50)
    pool = learn_first_look(found, codes, None)
    near = random_neighbours(4, codes)
    idle = EvidencePool(np.append(pool.weights, [0.0, 0.0]), 1.0, Closeness.of(near.least, 0.1))
    np.testing.assert_allclose(idle(found, near), pool(found))
    assert not idle.evidence(near, 3).any()


def test_the_evidence_is_what_neighbours_add_to_the_heads():
    found, codes = opinions(4, n=50)
    near = random_neighbours(4, codes)
    second = EvidencePool(
        np.array([0.7, 0.2, 0.5, 0.3]), 1.0, Closeness.of(near.least, 0.4, np.ones(50))
    )
    scores = 0.7 * found[0] + 0.2 * found[1] + second.evidence(near, 3)
    np.testing.assert_allclose(second(found, near), log_softmax(scores, axis=1))


def random_neighbours(seed, codes):
    rng = np.random.default_rng(seed)
    return Neighbours(rng.exponential(size=(len(codes), 6)), np.tile(codes[:6], (len(codes), 1)))


def test_evidence_is_weighted_by_what_it_explains():
    found, codes = opinions(2, n=2000, quality=(0.5,))
    rng = np.random.default_rng(2)
    apart = np.sort(rng.exponential(size=(2000, 20)), axis=1)
    right = np.where(rng.random((2000, 20)) < 0.8, codes[:, None], rng.integers(3, size=(2000, 20)))
    pool = learn_first_look(found, codes, None)
    near = Neighbours(apart, right)
    useful, threshold = learn_second_look(pool, found, codes, None, near)
    noise = Neighbours(apart, rng.integers(3, size=(2000, 20)))
    idle, _ = learn_second_look(pool, found, codes, None, noise)
    assert useful.weights[-2:].sum() > 0.5
    assert idle.weights[-2:].sum() < 0.1
    rows = np.arange(2000)
    after = useful(found, near)[rows, codes].mean()
    assert after > pool(found)[rows, codes].mean() + 0.3
    confidence = np.exp(pool.bounded(pool(found)).max(axis=1))
    assert (confidence < threshold).mean() > 0.9  # nearly everything is worth a second look


def test_a_near_copy_is_trusted_more_than_a_remote_relative():
    found, codes = opinions(4, n=2000, quality=(0.5,))
    rng = np.random.default_rng(4)
    remote = rng.random(2000) < 0.3
    apart = np.sort(rng.exponential(size=(2000, 20)), axis=1) + 9.0 * remote[:, None]
    labels = np.where(remote[:, None], rng.integers(3, size=(2000, 20)), codes[:, None])
    near = Neighbours(apart, labels)
    pool = learn_first_look(found, codes, None)
    second, _ = learn_second_look(pool, found, codes, None, near)
    swing = np.ptp(second.evidence(near, 3), axis=1)
    assert swing[~remote].mean() > 4 * swing[remote].mean()
    rows = np.flatnonzero(remote)
    before, after = pool(found), second(found, near)
    assert after[rows, codes[rows]].mean() > before[rows, codes[rows]].mean() - 0.05


def test_landmarks_are_not_their_own_neighbours():
    values = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 1.0], [1.0, 2.0, 3.0]])
    own = np.eye(3, dtype=bool) & [True, True, False]  # the last object is not a landmark
    found = nearest_landmarks(apart_from(values, "dissimilarity", own), np.array([0, 1, 2]))
    np.testing.assert_array_equal(found.apart, [[1.0, 4.0], [1.0, 9.0], [1.0, 4.0]])
    np.testing.assert_array_equal(found.codes, [[2, 1], [2, 0], [0, 1]])


def test_candidates_of_known_objects_leave_out_a_class():
    values = np.random.default_rng(0).normal(size=(60, 4))
    codes, space = np.arange(60) % 3, CandidateSpace.of(values)
    points = space.points(values, no_points(60))
    numbers = 1.0 + np.arange(60)
    known = KnownObjects(np.arange(0, 120, 2), codes, numbers, np.ones(4), space, points, 5, 3)
    part, kept = known.without_class(1), np.flatnonzero(codes != 1)
    np.testing.assert_array_equal(part.numbers, numbers[kept])
    np.testing.assert_array_equal(part.codes, codes[kept])
    np.testing.assert_array_equal(part.indices, 2 * kept)
    found, apart = part.candidates(values[:10], no_points(10))
    assert found.shape == (10, 5)
    own = codes[:10] != 1
    np.testing.assert_array_equal(kept[found[own, 0]], np.flatnonzero(own))
    np.testing.assert_array_equal(apart[own, 0], 0)
    assert (apart[~own, 0] > 0).all()
