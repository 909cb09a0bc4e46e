"""Probabilities of ranks: sums over leaves, one path above a threshold."""

import numpy as np
import pytest

from krein.core.ranks import Ranks

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
    ranks, P = Ranks.of(LABELS, ";"), dirichlet(7)
    answers, probability, depth = ranks.deepest(P, above)
    everyone = sorted({node for nodes in ranks.nodes for node in nodes})
    for p, answer, q, d in zip(P, answers, probability, depth, strict=True):
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
        Ranks.of(LABELS, ";").deepest(dirichlet(0), 0.5)
