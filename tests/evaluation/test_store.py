"""A store of pairs: each is compared once, for any caller and in any order."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from krein.compare import Pairs, open_pairs
from krein.evaluation.store import PairStore, Shared
from krein.measures import PairError

N = 120
RNG = np.random.default_rng(0)
WORDS = ["".join(w) for w in RNG.choice(list("abcdefgh"), (N, 6))]
ALL = np.arange(N)


class Counting:
    """A symmetric function of two words that records every pair it compares."""

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


def test_values_match_the_measure_whatever_was_read_before():
    shared = store()
    for rows, cols in subsets(12):
        np.testing.assert_array_equal(shared.read(rows, cols), TRUTH[np.ix_(rows, cols)])
    np.testing.assert_array_equal(shared.read(ALL, ALL), TRUTH)
    before = shared.compared
    for rows, cols in subsets(5, seed=1):
        shared.read(rows, cols)
    assert shared.compared == before


def test_no_pair_is_compared_again_in_either_direction():
    measure = Counting()
    shared = PairStore(Pairs(open_pairs(measure, WORDS).measure, WORDS))
    measure.seen.clear()
    parts = np.array_split(RNG.permutation(N), 6)
    for a in parts:
        for b in parts:
            if a is not b:
                shared.read(a, b)
    unordered = {frozenset(pair) for pair in measure.seen}
    assert len(measure.seen) == len(unordered) == shared.compared


def test_a_square_costs_little_more_than_half_of_its_pairs():
    shared = store()
    shared.read(ALL[:20], ALL[30:70])  # holes in the square
    shared.read(ALL, ALL)
    assert shared.compared < 0.5 * N * (N + 40) + N


def test_a_measure_that_is_not_symmetric_is_compared_both_ways():
    def lead(a, b):
        return float(a[0] == b[0]) + 0.1 * (a < b)

    pairs = open_pairs(lead, WORDS, symmetrize=True)
    shared = PairStore(pairs)
    values = shared.read(ALL[:5], ALL[5:9])
    expected = [[(lead(a, b) + lead(b, a)) / 2 for b in WORDS[5:9]] for a in WORDS[:5]]
    np.testing.assert_allclose(values, expected)
    np.testing.assert_array_equal(shared.read(ALL[5:9], ALL[:5]), values.T)
    assert shared.compared == 1 + 2 * 20  # a self-pair shows that it is not a distance


def test_a_part_counts_and_reads_like_separate_pairs():
    shared = store()
    shared.read(ALL, ALL)
    spent = shared.compared
    chosen = np.sort(RNG.choice(N, 70, replace=False))
    alone = open_pairs("levenshtein", [WORDS[i] for i in chosen])
    part = Pairs(Shared(shared), chosen)
    everyone, cols = np.arange(70), np.array([3, 60, 8])
    found = []
    for pairs in (alone, part):
        known = pairs.block(cols, cols)
        columns = np.vstack(list(pairs.map_columns(lambda _, V: V, cols, known=known)))
        found.append((pairs.block(everyone, everyone), columns, pairs.evaluations))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert shared.compared == spent


def test_a_store_has_the_properties_of_its_measure():
    pairs = open_pairs("elm", RNG.normal(size=(9, 2)))
    shared = Shared(PairStore(pairs))
    for name in ("kind", "psd", "expensive", "releases_gil", "block_pairs"):
        assert getattr(shared, name) == getattr(pairs.measure, name)
    K = RNG.normal(size=(9, 9))
    given = Shared(PairStore(open_pairs("precomputed-distance", np.abs(K + K.T))))
    assert given.kind == "dissimilarity"
    assert given.at_hand(ALL[:3])
    np.testing.assert_array_equal(given.block(ALL[:2], ALL[3:5]), np.abs(K + K.T)[:2, 3:5])


def test_many_threads_compare_nothing_twice():
    measure = Counting()
    shared = PairStore(Pairs(open_pairs(measure, WORDS).measure, WORDS))
    measure.seen.clear()
    cols = ALL[:4]
    threads = [threading.Thread(target=shared.read, args=(ALL[4 + i :: 5], cols)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(measure.seen) == shared.compared == 4 * (N - 4)


def test_the_diagonal_is_compared_once():
    shared = store()
    part = Pairs(Shared(shared), ALL[10:20])
    assert part.diagonal(np.arange(10)).tolist() == [0.0] * 10
    spent = shared.compared
    shared.diagonal(ALL[12:18])
    assert shared.compared == spent


def test_an_error_names_the_index_among_all_objects():
    def bad(a, b):
        return float("nan") if WORDS[77] in (a, b) else 1.0

    shared = PairStore(Pairs(open_pairs(bad, WORDS, symmetrize=True).measure, WORDS))
    with pytest.raises(PairError, match="object 77"):
        shared.read(ALL[70:73], ALL[75:79])


@pytest.mark.parametrize("symmetrize", [False, True])
def test_parts_of_parts_of_a_matrix(symmetrize):
    K = RNG.normal(size=(20, 20))
    K = K if symmetrize else K + K.T
    pairs = open_pairs("precomputed", K, symmetrize=symmetrize)
    part = pairs.part(np.array([4, 9, 17, 6])).part(np.array([2, 0, 3]))
    truth = (K + K.T) / 2
    chosen = [17, 4, 6]
    np.testing.assert_array_equal(
        part.block(np.arange(3), np.arange(3)), truth[np.ix_(chosen, chosen)]
    )
    np.testing.assert_array_equal(part.diagonal(np.array([1])), truth[[4], [4]])
    assert part.evaluations == pairs.evaluations == 10


def test_a_part_is_the_pairs_of_its_objects():
    pairs = open_pairs("levenshtein", WORDS)
    part = pairs.part(ALL[50:57])
    assert part.shape == (7, 7)
    np.testing.assert_array_equal(part.block(np.arange(7), np.arange(3)), TRUTH[50:57, 50:53])
    assert part.evaluations == pairs.evaluations == 21
