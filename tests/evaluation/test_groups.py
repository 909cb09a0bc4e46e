"""Groups stay in one fold; groups found by the measure equal those from comparing all pairs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from krein.compare import open_pairs
from krein.evaluation import evaluate
from krein.evaluation.groups import (
    LANDMARKS,
    NEARBY,
    NearCopies,
    _landmarks,
    find_groups,
    identity_groups,
    keep_together,
    near_copies,
    split_folds,
)

RNG = np.random.default_rng(5)
LETTERS = list("ACDEFGHIKLMNPQRSTVWY")


def families(n_families, size, rng=RNG, length=60, changes=6):
    """Sequences that descend from ancestors, and the index of the ancestor of each."""
    found, of = [], []
    for k in range(n_families):
        ancestor = rng.choice(LETTERS, length)
        for _ in range(size):
            child = ancestor.copy()
            places = rng.integers(0, length, changes)
            child[places] = rng.choice(LETTERS, changes)
            found.append("".join(child))
            of.append(k)
    return found, np.array(of)


def same_partition(one, two):
    pairs = np.unique(np.column_stack([one, two]), axis=0)
    return len(pairs) == len(np.unique(one)) == len(np.unique(two))


def greedy(S, order, threshold):
    """Groups by comparing each object with every representative: the definition."""
    first, group = [], np.empty(len(S), dtype=int)
    for i in order:
        if first and S[i, first].max() >= threshold:
            group[i] = int(S[i, first].argmax())
        else:
            group[i] = len(first)
            first.append(i)
    return group, first


@pytest.mark.parametrize("measure", ["smith-waterman", "needleman-wunsch", "levenshtein"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_families_are_found_at_linear_cost(measure, seed):
    sequences, of = families(40, 8, np.random.default_rng(seed))
    pairs = open_pairs(measure, sequences)
    codes = of % 2
    group = identity_groups(pairs, codes, 0.5, seed)
    assert same_partition(group, of)
    n = len(sequences)
    assert pairs.evaluations <= n * (LANDMARKS + NEARBY + 1)


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.75])
def test_few_landmarks_give_nearly_the_groups_of_all_comparisons(threshold):
    sequences, of = families(60, 6, changes=15)
    codes = of // 2  # labels follow descent, as they do in practice
    pairs = open_pairs("smith-waterman", sequences)
    group = identity_groups(pairs, codes, threshold, 0)
    everyone = np.arange(len(sequences))
    S = pairs.block(everyone, everyone)
    landmarks = _landmarks(codes, np.random.default_rng(0))
    order = np.argsort(-S[:, landmarks].astype(np.float32).mean(axis=1), kind="stable")
    truth, _ = greedy(S, order, threshold)
    # few pairs are separated because a representative was not among the candidates
    together = truth[:, None] == truth
    assert np.mean(group[:, None] == group, where=together) > 0.97
    for k in range(group.max() + 1):  # all members are similar enough to the first
        members = np.flatnonzero(group == k)
        assert (S[np.ix_(members, members)] >= threshold).all(axis=1).any()


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_groups_do_not_depend_on_the_unit(unit):
    sequences, of = families(12, 6)
    everyone = np.arange(len(sequences))
    D = open_pairs("levenshtein", sequences).block(everyone, everyone)
    for kind, X in (("precomputed-distance", D), ("precomputed", 60 - D)):
        pairs = open_pairs(kind, unit * X)
        assert same_partition(identity_groups(pairs, of % 2, 0.5, 0), of)


def test_every_class_is_among_the_landmarks():
    codes = np.repeat(np.arange(90), np.arange(1, 91))
    chosen = _landmarks(codes, np.random.default_rng(0))
    counts = np.bincount(codes[chosen], minlength=90)
    assert counts.tolist() == np.minimum(np.arange(1, 91), 3).tolist()
    assert len(_landmarks(np.zeros(200, dtype=int), np.random.default_rng(0))) == LANDMARKS


@pytest.mark.parametrize("seed", range(5))
def test_folds_keep_groups_together_and_stay_stratified(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 80, 600)
    codes = (groups + rng.integers(0, 2, 600)) % 3  # groups of several classes
    split = split_folds(np.arange(3), codes, 5, seed, groups)
    assert set(split) == set(range(5))
    assert all(len(set(split[groups == g])) == 1 for g in range(80))
    shares = np.array([np.bincount(codes[split == k], minlength=3) / 600 for k in range(5)])
    assert np.abs(shares - np.bincount(codes) / 600 / 5).max() < 0.04


def test_evaluate_uses_groups_and_reports_them():
    sequences, of = families(20, 6)
    labels = np.array(["even", "odd"])[of % 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given, found = (
            evaluate(
                sequences, labels, ["ikfd"], measure="smith-waterman", folds=4, groups=groups,
                calibrate=False,
            )
            for groups in ([f"family {k}" for k in of], "identity:0.4")
        )  # fmt: skip
    assert same_partition(found.groups, given.groups)
    np.testing.assert_array_equal(found.folds, given.folds)
    assert all(len(set(given.folds[of == k])) == 1 for k in range(20))
    told = found.summary()
    assert told["groups"] == 20
    assert told["settings"]["groups"] == "identity:0.4"
    assert told["near_copies"]["share"] == 0
    # the classes are arbitrary, so objects cannot be predicted while their relatives are held out
    assert found.models["ikfd"].fold_accuracy.mean() < 0.8


@pytest.mark.parametrize("everything", [False, True])
def test_near_duplicates_in_other_folds_are_warned_about_with_their_share(everything):
    sequences, of = families(150, 1, np.random.default_rng(1))
    copies = [s[:30] + "A" + s[31:] for s in sequences[:30]]  # one letter differs
    labels = np.array(["even", "odd"])[np.append(of, of[:30]) % 2]
    options = {"measure": "smith-waterman", "folds": 6, "n_landmarks": 20, "landmarks": "random"}
    options["calibrate"] = False
    models = ["ikfd", "knn"] if everything else ["ikfd"]
    with pytest.warns(UserWarning, match=r"% of the objects have a near-duplicate \(identity 0\.9"):
        found = evaluate(sequences + copies, labels, models, **options)
    apart = found.folds[:30] != found.folds[150:]
    assert found.near_copies.share == pytest.approx(2 * apart.sum() / 180)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grouped = evaluate(sequences + copies, labels, models, groups="identity:0.9", **options)
    assert grouped.near_copies.share == 0
    assert grouped.groups.max() + 1 == 150


def test_the_advice_on_near_duplicates_depends_on_the_groups_in_use():
    found = NearCopies(0.1, 100)
    for groups in (None, "identity:0.95"):
        assert "groups='identity:0.9'" in keep_together(found, groups)
    for groups in ("identity:0.4", "cdr3:0.8"):
        assert "use a lower threshold" in keep_together(found, groups)
    assert keep_together(found, "given") == "put near-duplicates into the same of your groups"


def test_near_duplicates_are_not_searched_among_vectors_or_without_a_scale():
    X = RNG.normal(size=(40, 2))
    split = np.arange(40) % 2
    for measure, objects in (("rbf", X), ("precomputed", np.zeros((40, 40)))):
        pairs = open_pairs(measure, objects)
        assert near_copies(pairs, pairs, split, np.arange(5), True, 0) is None


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("identity:0", "above 0 and at most 1"),
        ("identity:1.5", "above 0 and at most 1"),
        ("identity:nan", "above 0 and at most 1"),
        ("family", "groups='family': pass one group per object"),
        ([1, 2], r"has the shape \(2,\); it must contain one group per object, 6 in all"),
        (["a", "a", None, "b", "b", "b"], "object 2 has no group"),
        (["a", "a", "b", "b", float("nan"), "b"], "object 4 has no group"),
    ],
)
def test_invalid_groups_are_refused(groups, message):
    pairs = open_pairs("levenshtein", ["a", "b", "c", "d", "e", "f"])
    with pytest.raises(ValueError, match=message):
        find_groups(groups, pairs, np.arange(6) % 2, 0)


def test_impossible_splits_are_refused():
    codes = np.repeat([0, 1], 6)
    classes = np.array(["x", "y"])
    with pytest.raises(ValueError, match="class 'y' is in a single group"):
        split_folds(classes, codes, 2, 0, np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2]))
    with pytest.raises(ValueError, match="folds=5: there are 4 groups"):
        split_folds(classes, codes, 5, 0, np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]))
    with pytest.raises(ValueError, match="object 1 has a similarity of 0 to itself"):
        identity_groups(open_pairs("precomputed", np.diag([1.0, 0, 1])), np.arange(3), 0.5, 0)
    with pytest.raises(ValueError, match="more than half of the distances are 0"):
        identity_groups(open_pairs("levenshtein", ["a"] * 9 + ["b"]), np.arange(10) % 2, 0.5, 0)
