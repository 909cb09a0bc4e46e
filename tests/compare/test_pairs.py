"""Blocks of pairs: each compared once, counted, in order, the same for any number of workers."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass

import numpy as np
import pytest

from krein.compare import Pairs, open_new_pairs, open_pairs
from krein.landmarks.base import given_pairs
from krein.measures import Combined, PairError, available, get_measure
from krein.measures.vectors import Vectors

N = 300
VECTORS = np.random.default_rng(0).normal(size=(N, 3))
ALL = np.arange(N)
LANDMARKS = np.array([7, 250, 3, 99])


def collect(pairs, cols, **kwargs):
    return np.vstack(list(pairs.map_columns(lambda rows, values: values, cols, **kwargs)))


class SmallBlocks(Pairs):
    """Pairs in many blocks of few rows."""

    def block_rows(self, n_cols: int) -> int:
        return 7


def overlap(a, b):
    return float(len(set(a) & set(b)))


WORDS = ["".join(w) for w in np.random.default_rng(1).choice(list("abcdefgh"), (60, 5))]


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 5])
def test_columns_come_in_row_order_and_are_counted(n_jobs):
    measure = get_measure("elm")
    pairs = SmallBlocks(measure, VECTORS, n_jobs=n_jobs)
    seen = []
    for rows, values in pairs.map_columns(lambda rows, values: (rows, values), LANDMARKS):
        seen.extend(rows)
        np.testing.assert_allclose(values, measure.block(VECTORS[rows], VECTORS[LANDMARKS]))
    assert seen == list(range(N))
    assert pairs.evaluations == N * 4


def test_values_do_not_depend_on_the_number_of_workers():
    X = np.random.default_rng(2).normal(size=(9000, 40))
    cols = np.arange(0, 9000, 100)
    results = []
    for n_jobs in (1, 2, 3):
        pairs = open_pairs("elm", X, n_jobs=n_jobs)
        gram = sum(pairs.map_columns(lambda rows, C: C.T @ C, cols))
        results.append((gram, pairs.block(cols, np.arange(2000)), collect(pairs, cols[:9])))
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_known_rows_are_not_compared_again():
    pairs = SmallBlocks(get_measure("elm"), VECTORS)
    full = collect(pairs, LANDMARKS)
    known, before = full[LANDMARKS], pairs.evaluations
    np.testing.assert_allclose(collect(pairs, LANDMARKS, known=known), full, rtol=1e-12)
    assert pairs.evaluations - before == (N - 4) * 4


def test_chosen_rows_in_their_order():
    pairs = SmallBlocks(get_measure("elm"), VECTORS)
    full = collect(pairs, LANDMARKS)
    rows = np.random.default_rng(0).permutation(N)[:50]
    before = pairs.evaluations
    np.testing.assert_allclose(collect(pairs, LANDMARKS, rows=rows), full[rows], rtol=1e-12)
    assert pairs.evaluations - before == 50 * 4
    assert list(pairs.map_columns(lambda r, v: v, LANDMARKS, rows=rows[:0])) == []


def test_a_symmetric_block_compares_little_more_than_half():
    calls = []

    def count(a, b):
        calls.append(1)
        return float(abs(a - b))

    pairs = Pairs(get_measure(count), np.arange(200.0), n_jobs=1)
    index = np.random.default_rng(0).permutation(200)
    K = pairs.block(index, index)
    np.testing.assert_array_equal(K, np.abs(index[:, None] - index))
    assert pairs.evaluations == len(calls) < 0.65 * 200**2


@pytest.mark.parametrize("name", ["elm", "linear"])
def test_large_blocks_match_the_measure(name):
    pairs = open_pairs(name, VECTORS, n_jobs=2)
    pairs.block_rows = lambda n_cols: 11
    expected = get_measure(name).block(VECTORS, VECTORS)
    np.testing.assert_allclose(pairs.block(ALL, ALL), expected, atol=1e-12)
    np.testing.assert_allclose(pairs.block(ALL, LANDMARKS), expected[:, LANDMARKS], atol=1e-12)
    K = pairs.block(ALL, ALL)
    np.testing.assert_array_equal(K, K.T)


def test_a_block_is_symmetric_to_the_last_digit():
    """Only one direction of each pair is used, even if the other differs by rounding."""

    def rounded(a, b):
        return float(a + b) * (1 + 2e-16 * float(a > b))

    index = np.random.default_rng(0).permutation(150)
    K = Pairs(get_measure(rounded), np.arange(1.0, 151.0), n_jobs=1).block(index, index)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K, index[:, None] + index + 2.0, rtol=1e-15)


def test_memory_is_bounded_by_blocks_in_flight():
    """The consumer stops at the first result: only a few blocks may have been started."""
    begun = []
    pairs = SmallBlocks(get_measure("elm"), VECTORS, n_jobs=2)
    results = pairs.map_columns(lambda rows, values: begun.append(rows[0]), LANDMARKS)
    next(results)
    results.close()
    assert len(begun) <= 2 + 2 + 2
    assert threading.active_count() < 20


def test_an_error_in_the_function_reaches_the_caller():
    def fail(rows, values):
        if 100 in rows:
            raise ZeroDivisionError("in the middle")
        return len(rows)

    pairs = SmallBlocks(get_measure("elm"), VECTORS, n_jobs=2)
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        list(pairs.map_columns(fail, LANDMARKS))


def test_a_function_may_ask_for_more_pairs():
    pairs = SmallBlocks(get_measure("elm"), VECTORS, n_jobs=2)
    sums = list(pairs.map_columns(lambda r, v: pairs.block(ALL, r).sum(), LANDMARKS))
    np.testing.assert_allclose(sum(sums), get_measure("elm").block(VECTORS, VECTORS).sum())
    assert pairs.evaluations == N * N + 4 * N


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_plain_functions_in_this_process_and_in_workers(n_jobs):
    bonus = 0.5  # a closure is sent to the workers
    pairs = open_pairs(lambda a, b: overlap(a, b) + bonus, WORDS, n_jobs=n_jobs)
    tried = pairs.evaluations
    assert 0 < tried <= 16
    pairs.block_rows = lambda n_cols: 9
    expected = [[overlap(a, b) + bonus for b in WORDS[:5]] for a in WORDS]
    np.testing.assert_array_equal(collect(pairs, np.arange(5)), expected)
    assert pairs.evaluations == tried + 60 * 5


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_function_that_fails_names_the_pair(n_jobs):
    def fragile(a, b):
        if {a, b} == {WORDS[41], WORDS[2]}:
            raise KeyError("boom")
        return overlap(a, b)

    pairs = open_pairs(fragile, WORDS, n_jobs=n_jobs)
    pairs.block_rows = lambda n_cols: 9
    with pytest.raises(PairError, match=r"row object 41 and column object 2: .*raised KeyE"):
        collect(pairs, np.arange(5))


@pytest.mark.slow
def test_a_dead_worker_is_reported():
    here = os.getpid()

    def deadly(a, b):
        if os.getpid() != here and "a" in a:
            os.kill(os.getpid(), signal.SIGKILL)
        return overlap(a, b)

    pairs = open_pairs(deadly, WORDS, n_jobs=2)
    pairs.block_rows = lambda n_cols: 9
    with pytest.raises(RuntimeError, match=r"died .* n_jobs=1"):
        collect(pairs, np.arange(5))
    pairs = open_pairs(overlap, WORDS, n_jobs=2)
    assert collect(pairs, np.arange(5)).shape == (60, 5)


def test_a_function_that_returns_nan_names_the_pair():
    pairs = open_pairs(lambda a, b: float("nan") if a == b == 17.0 else a * b, np.arange(30.0))
    with pytest.raises(ValueError, match=r"row object 17 and column object 17: .* returned nan"):
        collect(pairs, np.arange(20))


@dataclass(frozen=True)
class Cubic(Vectors):
    """A measure that overflows."""

    name = "cubic"
    kind = "similarity"

    def block(self, A, B):
        return (A @ np.transpose(B)) ** 3


def test_overflow_in_a_measure_names_the_pair():
    pairs = open_pairs(Cubic(), np.array([[1e100], [1.0], [1e100]]))
    with np.errstate(over="ignore"), pytest.raises(PairError, match="'cubic' gave inf"):
        pairs.block(np.arange(3), np.arange(3))


def test_an_asymmetric_function_is_refused_or_averaged():
    def lopsided(a, b):
        return float(a - 2 * b)

    with pytest.raises(ValueError, match=r"lopsided is not symmetric: .* symmetrize=True"):
        open_pairs(lopsided, np.arange(20.0))
    pairs = open_pairs(lopsided, np.arange(20.0), symmetrize=True)
    K = pairs.block(np.arange(20), np.arange(20))
    i = np.arange(20)
    np.testing.assert_allclose(K, -(i[:, None] + i) / 2)
    # after two self-pairs, the second of which is not 0: it is not a distance
    assert pairs.evaluations == 2 + 2 * 20 * 20
    new = open_new_pairs(lopsided, [3.0, 5.0], [1.0], symmetrize=True)
    np.testing.assert_allclose(new.block(np.arange(2), np.arange(1)), [[-2.0], [-3.0]])
    assert new.evaluations == 4


def test_new_objects_against_landmarks():
    measure = get_measure("elm")
    pairs = open_new_pairs("elm", VECTORS[:50].tolist(), VECTORS[LANDMARKS])
    assert pairs.shape == (50, 4)
    expected = measure.block(VECTORS[:50], VECTORS[LANDMARKS])
    np.testing.assert_allclose(collect(pairs, np.arange(4)), expected)
    assert pairs.evaluations == 200
    with pytest.raises(ValueError, match="vectors of 2 numbers"):
        open_new_pairs("elm", VECTORS[:, :2], VECTORS[LANDMARKS])
    with pytest.raises(ValueError, match="no diagonal"):
        pairs.diagonal(np.arange(3))


def test_diagonals_are_counted():
    pairs = open_pairs("linear", VECTORS)
    np.testing.assert_allclose(pairs.diagonal(LANDMARKS), (VECTORS[LANDMARKS] ** 2).sum(1))
    assert pairs.evaluations == 4


@pytest.mark.parametrize("n_jobs", [0, 1.5])
def test_a_bad_number_of_workers_is_refused(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be a whole number"):
        open_pairs("elm", VECTORS, n_jobs=n_jobs)


RECORDS = Combined({"name": "levenshtein", "walk": "dtw"})


@pytest.mark.parametrize(
    "measure",
    [
        *(name for name in available() if name != "combined"),
        RECORDS,
        overlap,
        "precomputed",
        "precomputed-distance",
    ],
)
def test_empty_input_is_refused(measure):
    for nothing in ([], np.empty((0, 4)), np.empty((0, 0)), np.empty((0, 3, 3)), np.array([])):
        with pytest.raises(ValueError, match="there are no objects to compare"):
            open_pairs(measure, nothing)
        if measure == "tcrdist":
            continue  # it looks at the known receptors first
        with pytest.raises(ValueError, match="there are no objects to compare"):
            open_new_pairs(measure, nothing, np.arange(3))
    with pytest.raises(TypeError, match="can be read only once: pass a list"):
        open_pairs(measure, iter([]))


def test_a_measure_that_loses_objects_is_caught():
    class Forgetful(type(get_measure("levenshtein"))):
        def check(self, objects):
            return super().check(objects)[1:]

    with pytest.raises(ValueError, match=r"X has 3 rows, but .* read 2 objects"):
        open_pairs(Forgetful(), ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"X has 3 rows, but .* read 2 objects"):
        open_new_pairs(Forgetful(), ["a", "b", "c"], ["a"])


def test_rounding_around_zero_is_not_asymmetry():
    X = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 40)))[0]

    def rounded(a, b):  # like a product that is summed in another order
        return float(a @ b) + 1e-16 * float(a[0] > b[0])

    X = np.vstack([X, X])
    assert len(open_pairs(rounded, X)) == 80
    with pytest.raises(ValueError, match=r"not symmetric: .* for objects"):
        open_pairs(lambda a, b: float(a @ b) + 1e-3 * float(a[0] > b[0]), X)


def test_pairs_count_from_many_threads():
    pairs = given_pairs(VECTORS @ VECTORS.T)
    one = np.arange(1)
    threads = [
        threading.Thread(target=lambda: [pairs.block(one, one) for _ in range(500)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pairs.evaluations == 4000


def test_no_bar_without_a_terminal(capfd):
    collect(open_pairs("elm", VECTORS, verbose=1), LANDMARKS)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_plain_function_compares_each_pair_once(n_jobs, tmp_path):
    """All pairs take N(N + 1)/2 calls, and a cache serves the corners as whole blocks."""
    X = list(np.random.default_rng(0).normal(size=100))
    pairs = open_pairs(_gap, X, measure_params={"kind": "dissimilarity"}, n_jobs=n_jobs)
    checked, everyone = pairs.evaluations, np.arange(100)
    values = pairs.block(everyone, everyone)
    np.testing.assert_array_equal(values, np.abs(np.subtract.outer(X, X)))
    assert pairs.evaluations - checked == 100 * 101 // 2
    options = {"measure_params": {"kind": "dissimilarity"}, "cache": tmp_path}
    stored = open_pairs(_gap, X, **options)
    stored.block(everyone, everyone)
    last = everyone[-4:]  # the corner of the last step
    again = open_pairs(_gap, X, **options)
    np.testing.assert_array_equal(again.block(last, last), values[-4:, -4:])
    assert (again.evaluations, again.counter.reused) == (0, 16)


def test_both_directions_of_a_function_are_compared_if_they_are_averaged():
    X = list(np.random.default_rng(0).normal(size=50))
    pairs = open_pairs(lambda a, b: a - 2 * b, X, symmetrize=True)
    checked, everyone = pairs.evaluations, np.arange(50)
    values = pairs.block(everyone, everyone)
    np.testing.assert_allclose(values, -np.add.outer(X, X) / 2, rtol=1e-12, atol=1e-12)
    assert pairs.evaluations - checked >= 2 * 50 * 49 // 2


def _gap(a, b):
    return abs(a - b)
