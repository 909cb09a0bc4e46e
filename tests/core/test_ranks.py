"""Probabilities of ranks: sums over leaves, or learned; one path above a threshold."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from krein.core.cascade import fit_terms, pooled
from krein.core.evidence import Evidence, Neighbours, class_evidence
from krein.core.ranks import Rank, RankAnswers, RankPool, Ranks, Relatives, Seen, _fit_known

LABELS = ["A;x;1", "A;x;2", "A;y;1", "B;x;1", "B;z"]


def dirichlet(seed, n=200, sharp=0.3):
    return np.random.default_rng(seed).dirichlet(np.full(len(LABELS), sharp), n)


@pytest.mark.parametrize("seed", range(3))
def test_a_parent_is_the_sum_of_its_children(seed):
    ranks, P = Ranks.of(LABELS, ";"), dirichlet(seed)
    for rank in range(3):
        Q = ranks.probabilities(P, rank)
        np.testing.assert_allclose(Q.sum(axis=1), 1)
        for k, node in enumerate(ranks.nodes[rank]):
            below = [c for c, label in enumerate(LABELS) if (label + ";").startswith(node + ";")]
            np.testing.assert_allclose(Q[:, k], P[:, below].sum(axis=1))
    assert ranks.nodes[1] == ["A;x", "A;y", "B;x", "B;z"]


@pytest.mark.parametrize("above", [0.6, 0.9])
def test_the_answer_is_the_deepest_node_that_is_probable_enough(above):
    ranks, P = Rank.each(LABELS, ";"), dirichlet(7)
    answers = RankAnswers.of_classes(ranks, P)
    depth = answers.deepest(above)
    everyone = sorted({node for rank in ranks for node in rank.nodes})
    for i, (p, d) in enumerate(zip(P, depth, strict=True)):
        answer, q = "", 1.0
        if d:
            answer = ranks[d - 1].nodes[answers.nodes[i, d - 1, 0]]
            q = answers.probabilities[i, d - 1, 0]
        enough = {
            node: sum(v for v, label in zip(p, LABELS, strict=True)
                      if (label + ";").startswith(node + ";"))
            for node in everyone
        }  # fmt: skip
        enough = {node: v for node, v in enough.items() if v >= above}
        expected = max(enough, key=lambda node: node.count(";"), default="")
        assert answer == expected
        assert d == (answer.count(";") + 1 if answer else 0)
        assert q == pytest.approx(enough[answer] if answer else 1)
    assert {0, 1, 2, 3} == set(depth.tolist())


def test_what_is_not_a_path_is_refused():
    with pytest.raises(ValueError, match="'A;;1' has an empty rank"):
        Ranks.of(["A;;1", "B"], ";")
    with pytest.raises(ValueError, match="separator of ranks is empty"):
        Ranks.of(LABELS, "")
    with pytest.raises(ValueError, match="and at most 1; got"):
        RankAnswers.of_classes(Rank.each(LABELS, ";"), dirichlet(0)).deepest(0.5)


# -- probabilities learned from held-out objects ---------------------------------------------------


def family_points(seed, families=6, species=8, alone=0.6):
    """Objects in the plane around their family, most of them alone in their species."""
    rng = np.random.default_rng(seed)
    turn = 2 * np.pi * np.arange(families) / families
    centres = 16 * np.column_stack([np.cos(turn), np.sin(turn)])
    X, labels = [], []
    for f in range(families):
        for s in range(species):
            middle = centres[f] + 2 * rng.normal(size=2)
            for _ in range(1 if rng.random() < alone else 4):
                X.append(middle + 0.3 * rng.normal(size=2))
                labels.append(f"f{f};s{s}")
    return np.array(X), np.array(labels)


def seen_of(X, codes, C, others=None):
    """Terms and neighbours of objects, each held out unless `others` are given."""
    held_out = others is None
    others = X if held_out else others
    apart = np.square(X[:, None] - others).sum(axis=2)
    if held_out:
        np.fill_diagonal(apart, np.inf)
    scores = np.full((len(X), C), -60.0)
    for c in range(C):
        mine = apart[:, codes == c]
        nearest = mine.min(axis=1, initial=np.inf)
        scores[:, c] = np.where(np.isfinite(nearest), -0.5 * nearest, -60.0)
    near = Neighbours.nearest([(apart, np.tile(codes, (len(X), 1)), np.ones(apart.shape))], 10)
    term, rows = np.asarray(log_softmax(scores, axis=1)), np.arange(len(X))
    return [Seen(rows, [term]), Seen(rows, [term], near)]


def learned(X, y, labels=None):
    """The pool of objects that are held out one by one, all answered by the second look."""
    labels = np.unique(y) if labels is None else labels
    codes = np.array([list(labels).index(one) for one in y])
    seen, n = seen_of(X, codes, len(labels)), len(y)
    evidence = Evidence.of(0.1, seen[1].near.least, 0.1)
    sizes, rows = np.bincount(codes, minlength=len(labels)).astype(float), np.arange(n)
    relatives = Relatives(rows, codes, np.ones(n))
    depth = np.ones(n, dtype=int)
    pool = RankPool.learn(labels, ";", sizes, seen, evidence, codes, depth, relatives)
    return pool, Rank.each(labels, ";"), evidence, codes, seen


def answered(pool, ranks, evidence, one):
    nobody = Seen(np.arange(0), [term[:0] for term in one.terms])
    return pool.answers(ranks, len(one.rows), [nobody, one], evidence)


def test_terms_of_a_node_are_sums_over_its_classes():
    rng = np.random.default_rng(0)
    term = rng.normal(size=(7, len(LABELS)))
    for depth, rank in enumerate(Rank.each(LABELS, ";")):
        assert all(node.count(";") == depth for node in rank.nodes)  # "B;z" has no third rank
        found = rank.summed(term)
        for k, node in enumerate(rank.nodes):
            below = [c for c, label in enumerate(LABELS) if (label + ";").startswith(node + ";")]
            np.testing.assert_allclose(found[:, k], logsumexp(term[:, below], axis=1))
            if depth:
                above = Rank.each(LABELS, ";")[depth - 1].nodes[rank.parents[k]]
                assert node.startswith(above + ";")


def test_neighbours_of_one_family_vote_together():
    apart, codes = np.array([[1.0, 2.0, 3.0, 9.0]]), np.array([[0, 1, 4, 3]])
    near = Neighbours(apart, codes, None, np.ones((1, 4)))
    evidence = Evidence.of(1.0, np.arange(5.0), 1.0)
    first, _, third = Rank.each(LABELS, ";")
    whole = class_evidence(apart, first.codes[codes], 3, 1.0)[:, :2]
    np.testing.assert_allclose(first.voted(near, evidence)[0], whole)
    assert first.voted(near, evidence)[0].argmax() == 0
    unnamed = third.voted(near, evidence)[0]  # the third neighbour has no name there
    assert unnamed.shape == (1, 4)
    np.testing.assert_allclose(unnamed, class_evidence(apart, third.codes[codes], 5, 1.0)[:, :4])


def test_relatives_are_counted_within_their_node():
    rng = np.random.default_rng(1)
    rows, codes, numbers = rng.integers(4, size=30), rng.integers(5, size=30), rng.random(30)
    relatives = Relatives(rows, codes, numbers)
    for rank in Rank.each(LABELS, ";"):
        nodes = rng.integers(len(rank.nodes), size=4)
        expected = [
            sum(q for i, c, q in zip(rows, codes, numbers, strict=True)
                if i == row and rank.codes[c] == node)
            for row, node in enumerate(nodes)
        ]  # fmt: skip
        np.testing.assert_allclose(relatives.within(rank, nodes), expected)


@pytest.mark.parametrize("seed", range(3))
def test_a_rank_of_single_classes_has_the_weights_of_the_classes(seed):
    rng = np.random.default_rng(seed)
    codes = np.arange(120) % 3
    X = 3 * np.eye(3)[codes] + rng.normal(size=(120, 3))
    pool, (rank,), evidence, codes, seen = learned(X, np.array(list("abc"))[codes])
    terms = seen[1].terms_at(rank, evidence)
    np.testing.assert_allclose(terms[0], seen[1].terms[0], rtol=1e-12)
    weights = fit_terms(terms, codes)[0]
    np.testing.assert_array_equal(pool.looks[1].weights[0], weights)
    found, log_p = answered(pool, [rank], evidence, seen[1]), pooled(weights, terms)
    np.testing.assert_array_equal(found.nodes[:, 0, 0], log_p.argmax(axis=1))
    known = found.probabilities[:, 0, 0] / np.exp(log_p.max(axis=1))
    assert (known > 0.95).all()
    assert (known < 1).all()  # a hundred objects cannot show that no other class exists


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_never_rise_on_the_way_down(seed):
    X, y = family_points(seed)
    pool, ranks, evidence, codes, _ = learned(X, y)
    new = X + np.random.default_rng(seed).normal(size=X.shape)
    one = seen_of(new, codes, len(pool.sizes), X)[1]
    found = answered(pool, ranks, evidence, one)
    best, second = found.probabilities[:, :, 0], found.probabilities[:, :, 1]
    assert (best >= second).all()
    assert (np.diff(best, axis=1) <= 1e-12).all()
    assert (ranks[1].parents[found.nodes[:, 1, 0]] == found.nodes[:, 0, 0]).all()
    above = np.column_stack([np.ones(len(new)), best[:, 0]])
    assert (best + second + found.unknown <= above + 1e-9).all()
    assert ((found.novelty > 0) & (found.novelty <= 1)).all()
    for t in (0.6, 0.9):
        np.testing.assert_array_equal(found.deepest(t), (best >= t).sum(axis=1))


@pytest.mark.parametrize("seed", range(3))
def test_objects_alone_in_their_species_teach_their_family(seed):
    X, y = family_points(seed, alone=1.0)  # no species has a second object
    pool, ranks, evidence, codes, seen = learned(X, y)
    found = answered(pool, ranks, evidence, seen[1])
    assert (found.nodes[:, 0, 0] == ranks[0].codes[codes]).mean() > 0.9
    assert found.probabilities[:, 0, 0].mean() > 0.85
    assert found.probabilities[:, 1, 0].max() < 0.2  # no held-out species was ever known
    assert found.unknown[:, 1].mean() > 0.5


def test_the_order_of_classes_and_objects_does_not_matter():
    X, y = family_points(3)
    labels = np.unique(y)
    rng = np.random.default_rng(0)
    order, turn = rng.permutation(len(labels)), rng.permutation(len(X))
    first, ranks, evidence, _, seen = learned(X, y, labels)
    other, turned, evidence2, _, seen2 = learned(X[turn], y[turn], labels[order])
    one = answered(first, ranks, evidence, seen[1])
    two = answered(other, turned, evidence2, seen2[1])
    np.testing.assert_allclose(two.probabilities[:, :, 0], one.probabilities[turn, :, 0], atol=1e-6)
    np.testing.assert_allclose(two.novelty, one.novelty[turn], atol=1e-12)


def test_objects_with_short_labels_teach_only_the_ranks_they_have():
    X, y = family_points(4)
    short = np.array([f"{one.split(';')[0]}" for one in y])
    rng = np.random.default_rng(5)
    some = rng.random(len(y)) < 0.5
    both = np.where(some, short, y)
    pool, ranks, evidence, codes, seen = learned(X, both)
    assert [len(rank.nodes) for rank in ranks] == [6, len(np.unique(y[~some]))]
    # at the second rank, the weights are those of the other objects alone
    keep = ~some
    terms = [term[keep] for term in seen[1].terms_at(ranks[1], evidence)]
    own = ranks[1].codes[codes][keep]
    known = np.bincount(own)[own] > 1
    alone = fit_terms([term[known] for term in terms], own[known])[0]
    np.testing.assert_allclose(pool.looks[1].weights[1], alone, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_novelty_is_rare_for_objects_of_known_nodes(seed):
    X, y = family_points(seed, species=12, alone=0.2)
    pool, ranks, evidence, _, seen = learned(X, y)
    p = answered(pool, ranks, evidence, seen[1]).novelty[:, 0]  # all families are known
    for level in (0.02, 0.1, 0.5):
        assert (p <= level).mean() <= level + 2 / len(X)


def test_features_tell_known_objects_from_others():
    known = np.arange(200) % 4 > 0
    F = np.column_stack([np.ones(200), np.where(known, 3.0, -3.0), np.zeros(200), np.zeros(200)])
    v = _fit_known(F, known, np.ones(200))
    p = 1 / (1 + np.exp(-F @ v))
    assert p[known].min() > 0.9
    assert p[~known].max() < 0.3
    certain = _fit_known(F, np.ones(200, dtype=bool), np.ones(200))
    assert (certain[1:2] > 0).all()  # even if none was unknown, one without a clear node may be
    constant = _fit_known(np.eye(1, 4).repeat(200, axis=0), known, np.ones(200))
    assert 1 / (1 + np.exp(-constant[0])) == pytest.approx(0.75, abs=0.01)
