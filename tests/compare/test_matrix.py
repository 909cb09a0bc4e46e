"""Precomputed matrices, in memory and in files."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from krein.compare import open_new_pairs, open_pairs
from krein.compare.pairs import VALUES_BYTES
from krein.measures import precomputed as matrix_module
from krein.measures.precomputed import PrecomputedColumns

RNG = np.random.default_rng(0)
S = RNG.normal(size=(50, 50))
S = S + S.T
D = np.abs(S)
np.fill_diagonal(D, 0)


@pytest.fixture(params=["array", "list", "float32", "int", "map", "path"])
def given(request, tmp_path):
    whole = np.round(S * 100)
    np.save(tmp_path / "S.npy", S)
    return {
        "array": (S, S),
        "list": (S.tolist(), S),
        "float32": (S.astype(np.float32), S.astype(np.float32)),
        "int": (whole.astype(int), whole),
        "map": (np.load(tmp_path / "S.npy", mmap_mode="r"), S),
        "path": (tmp_path / "S.npy", S),
    }[request.param]


def test_a_matrix_is_read_in_blocks(given):
    matrix, expected = given
    pairs = open_pairs("precomputed", matrix)
    assert pairs.kind == "similarity"
    assert pairs.shape == (50, 50)
    rows, cols = np.array([3, 1, 40]), np.array([9, 2])
    block = pairs.block(rows, cols)
    assert block.dtype == np.float64
    np.testing.assert_array_equal(block, expected[np.ix_(rows, cols)])
    np.testing.assert_array_equal(pairs.diagonal(rows), np.diag(expected)[rows])
    columns = np.vstack(list(pairs.map_columns(lambda r, v: v, cols)))
    np.testing.assert_array_equal(columns, expected[:, cols])
    assert pairs.evaluations == 6 + 3 + 100


@pytest.mark.parametrize("mapped", [False, True])
def test_errors_name_the_entry(mapped, tmp_path, monkeypatch):
    monkeypatch.setattr(matrix_module, "TILE", 16)

    def opened(matrix, measure="precomputed", **kwargs):
        if mapped:
            np.save(tmp_path / "M.npy", matrix)
            matrix = np.load(tmp_path / "M.npy", mmap_mode="r")
        return open_pairs(measure, matrix, **kwargs)

    def changed(matrix, place, value):
        M = matrix.copy()
        M[place] = value
        return M

    for place in [(3, 44), (44, 3), (20, 20)]:
        for value in (np.nan, -np.inf):
            with pytest.raises(ValueError, match=rf"entry \({place[0]}, {place[1]}\) .* {value}"):
                opened(changed(S, place, value))
    with pytest.raises(ValueError, match=r"entry \(41, 7\) of the distance matrix is negative"):
        opened(changed(D, (41, 7), -1.0), "precomputed-distance")
    with pytest.raises(ValueError, match=r"not symmetric: entry \(7, 41\) .*symmetrize=True"):
        opened(changed(S, (41, 7), 100.0))
    with pytest.raises(ValueError, match=r"N × N, or N × m .* got rows of 49 values"):
        opened(S[:, :49]).block(np.arange(3), np.arange(3))
    pairs = opened(changed(S, (41, 7), 100.0), symmetrize=True)
    one, two = np.array([41]), np.array([7])
    assert pairs.block(one, two) == pairs.block(two, one) == (100 + S[7, 41]) / 2


def test_rounding_is_not_asymmetry():
    open_pairs("precomputed", S * (1 + 1e-12 * RNG.normal(size=S.shape)))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_tolerance_depends_on_the_type(kind):
    K = S.astype(kind)
    K[3, 44] = np.nextafter(K[3, 44], kind(np.inf), dtype=kind)
    open_pairs("precomputed", K)
    K[3, 44] = K[44, 3] + kind(0.2)
    with pytest.raises(ValueError, match=r"not symmetric: entry \(3, 44\)"):
        open_pairs("precomputed", K)


def test_an_asymmetry_is_reported_with_enough_digits():
    K = S.copy()
    K[3, 44] += 1e-7
    with pytest.raises(ValueError, match="not symmetric") as caught:
        open_pairs("precomputed", K)
    assert f"is {K[3, 44]} but" in str(caught.value)
    assert f"is {K[44, 3]}, " in str(caught.value)


@pytest.mark.parametrize("kind", [np.float32, np.int16, np.float64])
def test_a_matrix_is_never_copied_as_a_whole(kind, tmp_path):
    n = 2500
    np.save(tmp_path / "M.npy", np.zeros((n, n), dtype=kind))
    columns = np.arange(0, n, 2)
    for matrix in (np.zeros((n, n), dtype=kind), tmp_path / "M.npy"):
        tracemalloc.start()
        pairs = open_pairs("precomputed", matrix, n_jobs=1)
        tracemalloc.reset_peak()
        total = sum(pairs.map_columns(lambda rows, values: values.sum(), columns))
        peak = tracemalloc.get_traced_memory()[1]
        assert total == 0
        assert peak < 6 * VALUES_BYTES < n * len(columns) * 8
        tracemalloc.reset_peak()
        block = pairs.block(np.arange(n), columns)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < block.nbytes + 2.5 * VALUES_BYTES


def test_at_hand_is_false_for_values_in_a_file(tmp_path):
    np.save(tmp_path / "S.npy", S)
    mapped = np.load(tmp_path / "S.npy", mmap_mode="r")
    for matrix in (tmp_path / "S.npy", mapped, np.asarray(mapped), mapped[:, :]):
        assert not open_pairs("precomputed", matrix).at_hand
    for matrix in (S, S.tolist(), np.array(mapped)):
        assert open_pairs("precomputed", matrix).at_hand
    assert not open_pairs("elm", S).at_hand


def test_a_large_map_is_sampled_and_checked_when_read(tmp_path, monkeypatch):
    monkeypatch.setattr(matrix_module, "TILE", 4)
    monkeypatch.setattr(matrix_module, "SAMPLED_TILES", 5)
    sampled = {start for tile in matrix_module._tiles(50, sample=True) for start in tile}
    inside, outside = min(sampled), min(set(range(0, 50, 4)) - sampled)  # 13 tiles, at most 10 seen

    def saved_with_nan(k):
        M = S.copy()
        M[:, k] = M[k, :] = np.nan
        np.save(tmp_path / "M.npy", M)
        return tmp_path / "M.npy"

    with pytest.raises(ValueError, match=r"of the matrix is nan"):
        open_pairs("precomputed", saved_with_nan(inside))
    pairs = open_pairs("precomputed", saved_with_nan(outside))
    with pytest.raises(
        ValueError, match=rf"object 0 and column object {outside}: the value is nan"
    ):
        pairs.block(np.arange(50), np.array([outside + 1, outside]))
    with pytest.raises(
        ValueError, match=rf"{outside} and column object {outside}: the value is nan"
    ):
        pairs.diagonal(np.arange(50))


def test_the_check_does_not_copy_the_matrix():
    n = 3000
    matrix = np.zeros((n, n))
    tracemalloc.start()
    open_pairs("precomputed", matrix)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.7 * matrix.nbytes


def test_new_objects_in_both_shapes():
    landmarks = np.array([40, 2, 9])
    kept = PrecomputedColumns(landmarks, 50)
    for X in (S[:7], S[:7, landmarks]):
        pairs = open_new_pairs("precomputed", X, kept)
        assert pairs.shape == (7, 3)
        block = pairs.block(np.arange(7), np.arange(3))
        np.testing.assert_array_equal(block, S[:7, landmarks])
    with pytest.raises(ValueError, match=r"n × 50, .* or n × 3, .*; got 7 × 20"):
        open_new_pairs("precomputed", S[:7, :20], kept)
    X = S[:7].copy()
    X[3, 9] = np.nan
    pairs = open_new_pairs("precomputed", X, kept)
    with pytest.raises(ValueError, match=r"row object 3 and column object 2: the value is nan"):
        pairs.block(np.arange(7), np.arange(3))


def test_invalid_matrices_are_refused(tmp_path):
    for wrong, message in [
        (S[0], "two axes"),
        (np.array([["a", "b"], ["c", "d"]]), "consist of numbers"),
        (S + 1j, "real"),
        (tmp_path / "S.csv", ".npy"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            open_pairs("precomputed", wrong)
    with pytest.raises(ValueError, match="cannot be used"):
        open_pairs("precomputed", S, measure_params={"sigma": 1})
