"""A store of pairs: each compared once, whoever asks, in whatever order."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from krein.compare import MatrixPairs, ObjectPairs, PairStore, open_new_pairs, open_pairs
from krein.measures import PairError

N = 120
RNG = np.random.default_rng(0)
WORDS = ["".join(w) for w in RNG.choice(list("abcdefgh"), (N, 6))]
ALL = np.arange(N)


class Counting:
    """A symmetric function of two words that notes every pair it was asked for."""

    def __init__(self):
        self.seen = []
        self.lock = threading.Lock()

    def __call__(self, a, b):
        with self.lock:
            self.seen.append((a, b))
        return float(len(set(a) & set(b)))


def store(**options):
    return PairStore(open_pairs("levenshtein", WORDS, **options))


TRUTH = open_pairs("levenshtein", WORDS).block(ALL, ALL)


def subsets(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield (
            rng.choice(N, rng.integers(1, N), replace=False),
            rng.choice(N, rng.integers(1, 40), replace=False),
        )


def test_values_are_those_of_the_measure_whatever_was_asked_before():
    shared = store()
    for rows, cols in subsets(12):
        np.testing.assert_array_equal(shared.read(rows, cols), TRUTH[np.ix_(rows, cols)])
    np.testing.assert_array_equal(shared.read(ALL, ALL), TRUTH)
    before = shared.evaluations
    for rows, cols in subsets(5, seed=1):
        shared.read(rows, cols)
    assert shared.evaluations == before


def test_no_pair_is_compared_again_in_either_direction():
    measure = Counting()
    shared = PairStore(ObjectPairs(open_pairs(measure, WORDS).measure, WORDS))
    measure.seen.clear()
    parts = np.array_split(RNG.permutation(N), 6)
    for a in parts:
        for b in parts:
            if a is not b:
                shared.read(a, b)
    unordered = {frozenset(pair) for pair in measure.seen}
    assert len(measure.seen) == len(unordered) == shared.evaluations


def test_a_square_costs_little_more_than_half_of_it():
    shared = store()
    shared.read(ALL[:20], ALL[30:70])  # holes in the square
    shared.read(ALL, ALL)
    assert shared.evaluations < 0.5 * N * (N + 40) + N


def test_a_measure_that_is_not_symmetric_is_compared_both_ways():
    def lead(a, b):
        return float(a[0] == b[0]) + 0.1 * (a < b)

    pairs = open_pairs(lead, WORDS, symmetrize=True)
    shared = PairStore(pairs)
    values = shared.read(ALL[:5], ALL[5:9])
    expected = [[(lead(a, b) + lead(b, a)) / 2 for b in WORDS[5:9]] for a in WORDS[:5]]
    np.testing.assert_allclose(values, expected)
    np.testing.assert_array_equal(shared.read(ALL[5:9], ALL[:5]), values.T)
    assert shared.evaluations == 2 * 20


def test_a_part_counts_and_reads_as_if_it_stood_alone():
    shared = store()
    shared.read(ALL, ALL)
    spent = shared.evaluations
    chosen = np.sort(RNG.choice(N, 70, replace=False))
    alone = open_pairs("levenshtein", [WORDS[i] for i in chosen])
    part = shared.part(chosen)
    everyone, cols = np.arange(70), np.array([3, 60, 8])
    for pairs in (alone, part):
        pairs.core = pairs.block(cols, cols)
        pairs.all = pairs.block(everyone, everyone)
        pairs.columns = np.vstack(list(pairs.map_columns(lambda _, V: V, cols, core=pairs.core)))
    np.testing.assert_array_equal(part.all, alone.all)
    np.testing.assert_array_equal(part.columns, alone.columns)
    assert part.evaluations == alone.evaluations
    assert shared.evaluations == spent


def test_new_objects_against_landmarks_by_their_places_in_training():
    shared = store()
    train, test = ALL[:90], ALL[90:]
    landmarks = np.array([80, 2, 41])
    new = open_new_pairs("levenshtein", shared.part(test, train), landmarks)
    assert new.shape == (30, 3)
    values = new.block(np.arange(30), np.arange(3))
    np.testing.assert_array_equal(values, TRUTH[np.ix_(test, train[landmarks])])
    assert shared.evaluations == new.evaluations == 90
    with pytest.raises(ValueError, match="no diagonal"):
        super(type(new), new).diagonal(np.arange(2))


def test_many_threads_compare_nothing_twice():
    measure = Counting()
    shared = PairStore(ObjectPairs(open_pairs(measure, WORDS).measure, WORDS))
    measure.seen.clear()
    cols = ALL[:4]
    threads = [
        threading.Thread(target=shared.read, args=(ALL[4 + i :: 3], cols)) for i in (0, 1, 2, 0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(measure.seen) == shared.evaluations == 4 * (N - 4)


def test_the_diagonal_is_compared_once():
    shared = store()
    part = shared.part(ALL[10:20])
    assert part.diagonal(np.arange(10)).tolist() == [0.0] * 10
    spent = shared.evaluations
    shared.diagonal(ALL[12:18])
    assert shared.evaluations == spent


def test_an_error_names_the_objects_among_all():
    def bad(a, b):
        return float("nan") if WORDS[77] in (a, b) else 1.0

    shared = PairStore(ObjectPairs(open_pairs(bad, WORDS, symmetrize=True).measure, WORDS))
    with pytest.raises(PairError, match="object 77"):
        shared.part(ALL[70:]).block(np.arange(3), np.arange(5, 9))


@pytest.mark.parametrize("symmetrize", [False, True])
def test_parts_of_parts_of_a_matrix(symmetrize):
    K = RNG.normal(size=(20, 20))
    pairs = MatrixPairs(K, symmetrize=symmetrize)
    rows, cols = np.array([4, 9, 17]), np.array([1, 0, 19, 6])
    part = pairs.part(rows, cols).part(np.array([2, 0]), np.array([3, 1]))
    truth = (K + K.T) / 2 if symmetrize else K
    np.testing.assert_array_equal(
        part.block(np.arange(2), np.arange(2)), truth[np.ix_([17, 4], [6, 0])]
    )
    np.testing.assert_array_equal(pairs.part(rows, rows).diagonal(np.array([1])), truth[[9], [9]])


def test_a_subset_has_columns_of_its_own():
    pairs = open_pairs("levenshtein", WORDS)
    part = pairs.part(ALL[:7], ALL[50:53])
    assert part.shape == (7, 3)
    np.testing.assert_array_equal(part.block(np.arange(7), np.arange(3)), TRUTH[:7, 50:53])
    with pytest.raises(ValueError, match="no diagonal"):
        part.diagonal(np.arange(2))
