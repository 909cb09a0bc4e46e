"""The cascade: one loop, one rule for its thresholds, and weights that are optimal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

from krein.core.cascade import (
    MANY,
    RIDGE,
    Cascade,
    Look,
    among_most_probable,
    best_threshold,
    fit_pool,
    fit_terms,
    look_worth,
    loss_of_pool,
    losses_of,
    pooled,
    thresholds,
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


def cascade_of(seed, n=40, C=3, depth=3):
    """A cascade with random weights and thresholds, and terms of each look."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 3, size=depth)
    terms = [[log_softmax(rng.normal(size=(n, C)), axis=1) for _ in range(k)] for k in sizes]
    looks = [
        Look(rng.exponential(size=k), float(t))
        for k, t in zip(np.cumsum(sizes), np.append(rng.uniform(0.3, 1, depth - 1), 0), strict=True)
    ]
    return Cascade(tuple(looks), 99.0), terms


def taken(terms):
    """What a cascade asks for, of objects whose terms are all known."""
    return lambda k, rows: [term[rows] for term in terms[k]]


# -- the loop ----------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_each_object_is_answered_at_the_first_look_that_is_certain_enough(seed, depth):
    cascade, terms = cascade_of(seed, depth=depth)
    found, where = cascade.run(40, 3, taken(terms))
    for i in range(40):
        so_far = []
        for k, look in enumerate(cascade.looks):
            so_far += [term[i] for term in terms[k]]
            log_p = log_softmax(
                np.sum([a * z for a, z in zip(look.weights, so_far, strict=True)], 0)
            )
            if k == depth - 1 or (0.99 * np.exp(log_p) + 0.01 / 3).max() >= look.enough:
                break
        assert where[i] == k
        np.testing.assert_allclose(found[i], log_p, atol=1e-12)


def test_only_uncertain_objects_are_asked_for():
    cascade, terms = cascade_of(1)
    asked = []

    def terms_of(k, rows):
        asked.append(rows)
        return taken(terms)(k, rows)

    _, where = cascade.run(40, 3, terms_of)
    for k, rows in enumerate(asked):
        np.testing.assert_array_equal(rows, np.flatnonzero(where >= k))


def test_a_cascade_of_one_look_returns_its_only_term():
    (opinion,), _ = opinions(0, n=10, quality=(1.0,))
    found, where = Cascade.of_one().run(10, 3, lambda k, rows: [opinion[rows]])
    np.testing.assert_allclose(found, opinion, atol=1e-12)
    assert not where.any()


def test_no_objects_need_no_look():
    found, where = Cascade.of_one().run(0, 3, lambda k, rows: pytest.fail("nothing to look at"))
    assert found.shape == (0, 3)
    assert len(where) == 0


def test_no_probability_claims_more_than_the_held_out_objects_can_show():
    sure = np.log(np.array([[1.0, 1e-300, 1e-300]]))
    found = np.exp(Cascade((Look(np.ones(1), 0.0),), 99.0).bounded(sure))
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found[0, 1:], 0.01 / 3)


# -- the rule ----------------------------------------------------------------------------------


def saved_at(threshold, confidence, saved, w):
    """Mean of what is saved, less its standard error."""
    each = np.where(confidence >= threshold, saved, 0.0)
    mean = w @ each
    return mean - np.sqrt(np.square(w) @ np.square(each - mean))


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_a_threshold_saves_most_less_a_standard_error(seed):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.3, 1, size=60).round(2)  # with ties
    saved = rng.normal(0.2 * (confidence - 0.6), 0.1)
    w = rng.uniform(0.1, 1, size=60)
    w /= w.sum()
    found = best_threshold(confidence, saved, w)
    tried = [saved_at(t, confidence, saved, w) for t in [*np.unique(confidence), np.inf]]
    assert saved_at(found, confidence, saved, w) == pytest.approx(max(tried), abs=1e-12)
    if max(tried) <= 1e-12:
        assert found == np.inf


def test_few_objects_cannot_show_that_a_look_is_useless():
    rng = np.random.default_rng(1)
    confidence, later = rng.uniform(0.4, 1, size=40), rng.exponential(0.3, size=40)
    noise = rng.normal(0, 0.5, size=40)
    noise -= noise.mean()
    found, cost = thresholds(
        [later + noise, later], [confidence] * 2, [1, 10], 1e-4, np.full(40, 1 / 40)
    )
    assert found == [np.inf, 0.0]
    assert cost == 11


def test_an_answer_weighs_all_looks_that_would_follow():
    """The middle look averts nothing by itself, but the last one does."""
    n = 2000
    confidence = np.linspace(0.4, 1, n)
    first = np.where(confidence < 0.6, 1.0, 0.1)
    last = np.full(n, 0.1)
    found, cost = thresholds(
        [first, first, last], [confidence] * 3, [5, 20, 30], 1e-4, np.full(n, 1 / n)
    )
    assert found[0] == pytest.approx(0.6, abs=2e-3)
    assert found[2] == 0.0
    assert cost == pytest.approx(5 + (20 + 30) / 3, abs=0.5)


def test_the_dearer_a_comparison_the_fewer_are_made():
    found, codes = opinions(3, n=3000, quality=(1.5, 1.5, 1.5))
    terms, costs = [[one] for one in found], [0.0, 50.0, 100.0]
    spent = []
    for price in (0.0, 1e-4, 1e-3, 1e-2, 1.0):
        cascade = Cascade.learn(terms, codes, costs, price)
        _, where = cascade.run(3000, 3, taken(terms))
        spent.append(np.cumsum(costs)[where].mean())
    assert (np.diff(spent) <= 0).all()
    assert spent[0] > 100
    assert spent[-1] == 0


@pytest.mark.parametrize("budget", [0.0, 20.0, 60.0, 150.0])
def test_a_budget_bounds_the_comparisons(budget):
    found, codes = opinions(3, n=1000, quality=(1.5, 1.5, 1.5))
    terms, costs = [[one] for one in found], [0.0, 50.0, 100.0]
    cascade = Cascade.learn(terms, codes, costs, 0.0, budget=budget)
    _, where = cascade.run(1000, 3, taken(terms))
    spent = np.cumsum(costs)[where].mean()
    assert spent <= budget
    free = Cascade.learn(terms, codes, costs, 0.0)
    _, where = free.run(1000, 3, taken(terms))
    assert spent >= min(0.8 * budget, np.cumsum(costs)[where].mean())  # and it is used


def test_few_objects_are_not_ranked_by_weights_learned_from_them(monkeypatch):
    found, codes = opinions(5, n=60, quality=(1.0, 2.0))
    terms, costs = [[one] for one in found], [10.0, 50.0]
    cascade, folds = Cascade.learn(terms, codes, costs, 1e-4), np.arange(60) % 4 - 1
    log_p = cascade.held_out(terms, codes, folds)
    for fold in range(3):
        rest, held = folds != fold, np.flatnonzero(folds == fold)
        a = [fit_terms([one[rest] for one in found[:k]], codes[rest])[0] for k in (1, 2)]
        first, second = (pooled(a[k], [one[held] for one in found[: k + 1]]) for k in (0, 1))
        sure = cascade.confidence(first) >= cascade.looks[0].enough
        np.testing.assert_allclose(log_p[held], np.where(sure[:, None], first, second), atol=1e-9)
    own, _ = cascade.run(60, 3, taken(terms))
    np.testing.assert_array_equal(log_p[folds == -1], own[folds == -1])
    monkeypatch.setattr("krein.core.cascade.CROSS_FITTED", 59)
    np.testing.assert_array_equal(cascade.held_out(terms, codes, folds), own)


def test_worth_is_that_of_a_cascade_cut_short():
    found, codes = opinions(5, n=500, quality=(1.0, 2.0))
    terms, costs = [[one] for one in found], [10.0, 50.0]
    cascade = Cascade.learn(terms, codes, costs, 1e-4)
    first, second = look_worth(["first", "second"], cascade, terms, codes, costs, None)
    alone = cascade.bounded(pooled(cascade.looks[0].weights, terms[0]))
    assert first.log_loss == pytest.approx(losses_of(alone, codes).mean())
    assert (first.share, first.comparisons) == (1.0, 10.0)
    log_p, where = cascade.run(500, 3, taken(terms))
    assert second.share == pytest.approx((where == 1).mean())
    assert second.comparisons == pytest.approx(10 + 50 * second.share)
    assert second.log_loss == pytest.approx(losses_of(cascade.bounded(log_p), codes).mean())


# -- the weights -------------------------------------------------------------------------------


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


@pytest.mark.parametrize("n_terms", [2, 4])
def test_uninformative_terms_share_the_pool_equally(n_terms):
    found, codes = opinions(5, n=40, quality=(0.0,) * n_terms)
    same = [np.full_like(opinion, np.log(1 / 3)) for opinion in found]
    cascade = Cascade.learn([same], codes, [10.0], 1e-4)
    np.testing.assert_allclose(cascade.looks[0].weights, 40 / 60 / n_terms)  # 40 objects are few
    assert cascade.n_seen == 40


def test_objects_of_weight_0_do_not_support_a_probability():
    found, codes = opinions(6, n=40)
    weights = np.where(np.arange(40) % 4 == 0, 0.0, 2.5)
    assert Cascade.learn([found], codes, [10.0], 1e-4, weights=weights).n_seen == 30


def test_classes_that_are_all_alike_can_be_treated_as_one():
    """With one term of weight 1, or with equal rest classes, the loss is that of all classes."""
    rng = np.random.default_rng(7)
    n, C = 50, MANY + 60
    term = np.full((n, C), -9.0)
    near = rng.permuted(np.tile(np.arange(C), (n, 1)), axis=1)[:, :MANY]
    np.put_along_axis(term, near, rng.normal(size=(n, MANY)), axis=1)
    other = 0.3 * term
    codes = np.where(rng.random(n) < 0.9, near[:, 0], rng.integers(C, size=n))
    parts, few, offset = among_most_probable([term, other], [term, other], codes)
    for a in ([1.0, 0.0], [0.4, 1.7]):
        whole = losses_of(pooled(np.array(a), [term, other]), codes)
        rest = ~(near == codes[:, None]).any(axis=1)
        whole[rest] -= np.log(C - MANY)  # the class that stands for all others
        loss = loss_of_pool(np.array(a), parts, few, None, offset)
        assert loss == pytest.approx(whole.mean(), rel=1e-9)
    assert fit_terms([term, other], codes)[0].shape == (2,)
