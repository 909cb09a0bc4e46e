"""Sequences evolved along a tree."""

import numpy as np
import pytest

from krein.compare import open_pairs
from krein.datasets import make_protein_families

pytest.importorskip("scoring_matrices", reason="the extra bio is not installed")

from scoring_matrices import ScoringMatrix

from krein.datasets.simulated import (
    ALPHABET,
    BACKGROUND,
    Population,
    delete,
    insert,
    substitute,
    substitutions,
)


def scores(X):
    all_rows = np.arange(len(X))
    K = open_pairs("smith-waterman", X).block(all_rows, all_rows)
    np.fill_diagonal(K, -np.inf)
    return K


def neighbour_accuracy(seed=0, **parameters):
    X, y = make_protein_families(300, n_families=10, random_state=seed, **parameters)
    return (y[scores(X).argmax(axis=1)] == y).mean()


def population(n=200, length=80, seed=0):
    random = np.random.RandomState(seed)
    letters = random.choice(20, size=n * length, p=BACKGROUND).astype(np.uint8)
    return Population(letters, np.full(n, length)), random


def test_substitutions_are_probabilities_in_balance_with_the_background():
    P = substitutions()
    assert (P > 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_allclose(BACKGROUND @ P, BACKGROUND)
    q = BACKGROUND[:, None] * P
    np.testing.assert_allclose(q, q.T)  # as likely forwards as backwards


def test_log_odds_of_substitutions_match_the_scores_up_to_terms_of_single_letters():
    blosum = ScoringMatrix.from_name("BLOSUM62")
    places = [blosum.alphabet.index(letter) for letter in ALPHABET]
    S = np.array(blosum, dtype=float)[np.ix_(places, places)]
    log_odds = np.log(substitutions() / BACKGROUND)
    # centring rows and columns removes the terms of single letters
    H = np.eye(20) - 1 / 20
    S, log_odds = H @ S @ H, H @ log_odds @ H
    lam = (S * log_odds).sum() / (S * S).sum()
    np.testing.assert_allclose(log_odds, lam * S, atol=1e-12)
    assert lam == pytest.approx(0.3176, abs=1e-4)  # the value in BLAST for these frequencies


def test_substitution_keeps_the_background_and_forgets_the_start():
    one_letter = Population(np.full(200_000, 17, dtype=np.uint8), np.array([200_000]))
    evolved = substitute(one_letter, np.array([25.0]), np.random.RandomState(0))
    shares = np.bincount(evolved.letters, minlength=20) / 200_000
    np.testing.assert_allclose(shares, BACKGROUND, atol=5 * np.sqrt(0.1 / 200_000))


def test_substitution_follows_its_transition_matrix_for_any_branch():
    """Poisson hits of rate t have the transition matrix exp(t(P − I))."""
    from scipy.linalg import expm

    start = Population(np.full(200_000, 4, dtype=np.uint8), np.array([120_000, 80_000]))
    evolved = substitute(start, np.array([0.3, 1.4]), np.random.RandomState(1)).letters
    for letters, t in ((evolved[:120_000], 0.3), (evolved[120_000:], 1.4)):
        expected = expm(t * (substitutions() - np.eye(20)))[4]
        share = np.bincount(letters, minlength=20) / len(letters)
        deviation = np.sqrt(expected * (1 - expected) / len(letters))
        assert (np.abs(share - expected) < 5 * deviation).all()


def test_a_branch_of_length_zero_changes_nothing():
    start, random = population()
    still = np.zeros(len(start.lengths))
    for evolved in (
        substitute(start, still, random),
        delete(start, still, 0.1, 3.0, random),
        insert(start, still, 0.1, 3.0, random),
    ):
        np.testing.assert_array_equal(evolved.letters, start.letters)
        np.testing.assert_array_equal(evolved.lengths, start.lengths)


def test_deletions_leave_a_subsequence_and_insertions_a_supersequence():
    start, random = population()
    branch = np.full(len(start.lengths), 2.0)
    shorter = delete(start, branch, 0.1, 4.0, random)
    longer = insert(start, branch, 0.1, 4.0, random)
    assert shorter.lengths.sum() == len(shorter.letters) < len(start.letters)
    assert longer.lengths.sum() == len(longer.letters) > len(start.letters)
    for original, short, long in zip(
        start.strings(), shorter.strings(), longer.strings(), strict=True
    ):
        assert is_subsequence(short, original)
        assert is_subsequence(original, long)


def test_insertions_have_the_requested_mean_length():
    start, random = population(n=4000)
    branch = np.ones(len(start.lengths))
    rate, mean = 0.02, 4.0
    added = len(insert(start, branch, rate, mean, random).letters) - len(start.letters)
    events = rate / 2 * len(start.letters)
    assert added / events == pytest.approx(mean, rel=0.1)


def test_no_sequence_vanishes():
    start, random = population(length=3)
    evolved = delete(start, np.full(len(start.lengths), 50.0), 1.0, 10.0, random)
    assert evolved.lengths.min() >= 1
    X, _ = make_protein_families(50, length=1, divergence=5.0, indel_rate=1.0, random_state=0)
    assert min(map(len, X)) >= 1


def test_choosing_sequences_keeps_their_letters():
    letters = np.arange(10, dtype=np.uint8)
    chosen = Population(letters, np.array([3, 1, 6])).take(np.array([2, 0, 2, 1]))
    np.testing.assert_array_equal(chosen.lengths, [6, 3, 6, 1])
    np.testing.assert_array_equal(chosen.letters, [*range(4, 10), 0, 1, 2, *range(4, 10), 3])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sequences_are_closer_to_their_own_family(seed):
    X, y = make_protein_families(120, n_families=4, random_state=seed)
    K = scores(X)
    same = (y[:, None] == y) & ~np.eye(len(y), dtype=bool)
    other = y[:, None] != y
    for family in range(4):
        rows = y == family
        assert K[rows][same[rows]].mean() > K[rows][other[rows]].mean()


def test_the_default_is_neither_trivial_nor_hopeless_and_divergence_makes_it_harder():
    default = neighbour_accuracy()
    assert 0.8 < default < 0.99
    assert neighbour_accuracy(divergence=0.5) > default > neighbour_accuracy(divergence=2.0)


def test_many_sequences_are_evolved_like_few():
    X, y = make_protein_families(5001, n_families=3, length=30, divergence=0.2, random_state=0)
    assert all(isinstance(x, str) and x for x in X)
    late = np.arange(4800, 5001)
    K = scores(X[late])
    assert (y[late][K.argmax(axis=1)] == y[late]).mean() > 0.8


def test_without_divergence_all_are_the_ancestor():
    X, _ = make_protein_families(20, divergence=0.0, random_state=0)
    assert len(set(X)) == 1


@pytest.mark.parametrize(
    "wrong",
    [{"n_samples": 0}, {"n_families": 0}, {"length": 0}, {"divergence": -1}, {"indel_length": 0.5}],
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make_protein_families(**wrong)


def is_subsequence(part, whole):
    letters = iter(whole)
    return all(letter in letters for letter in part)
