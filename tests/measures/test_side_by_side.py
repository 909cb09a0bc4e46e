"""The view of a comparison agrees with the value that the measure computes."""

import numpy as np
import pytest

from krein.measures import get_measure
from krein.measures.alignments import (
    ALIKE,
    GAP,
    OTHER,
    SAME,
    Letters,
    Numbers,
    Pictures,
    Words,
    least_path,
)

from .market import dna, gestures, images, proteins, series, unequal, vectors, words


def letters_of(measure, a, b):
    found = measure.side_by_side(a, b)
    assert isinstance(found, Letters)
    assert len(found.first) == len(found.second) == len(found.marks)
    return found


def score_of(found, matrix, gap_open, gap_extend):
    """The score of an alignment, from its columns alone."""
    from scoring_matrices import ScoringMatrix

    M = ScoringMatrix.from_name(matrix)
    total, side = 0, None
    for x, y in zip(found.first, found.second, strict=True):
        if "-" in (x, y):
            now = "first" if x == "-" else "second"
            total -= gap_extend if side == now else gap_open
            side = now
        else:
            total += M[M.alphabet.index(x)][M.alphabet.index(y)]
            side = None
    return total


@pytest.mark.parametrize("name", ["smith-waterman", "needleman-wunsch"])
@pytest.mark.parametrize(
    ("objects", "params"),
    [
        (proteins, {"matrix": "BLOSUM62"}),
        (proteins, {"matrix": "PAM250", "gap_open": 3, "gap_extend": 2}),
        (dna, {"matrix": "NUC.4.4"}),
        (dna, {"matrix": "NUC.4.4", "both_strands": True}),
    ],
)
def test_the_score_of_the_columns_matches_the_measure(name, objects, params):
    measure = get_measure(name, {**params, "normalize": False})
    X = measure.check([*objects(np.random.default_rng(0), 12), "A", "G"])
    values = measure.block(X, X)
    for i in range(len(X)):
        for j in range(len(X)):
            found = letters_of(measure, X[i], X[j])
            assert (
                score_of(found, measure.matrix, measure.gap_open, measure.gap_extend)
                == (values[i, j])
            )
            own = found.first.replace("-", "")
            if not found.reversed:
                assert X[i][found.starts[0] :].startswith(own)
            assert X[j][found.starts[1] :].startswith(found.second.replace("-", ""))
            assert found.lengths == (len(X[i]), len(X[j]))


def test_a_reverse_complement_is_found():
    measure = get_measure("smith-waterman", {"matrix": "NUC.4.4", "both_strands": True})
    found = letters_of(measure, "GATTACAGG", "CCTGTAATC")
    assert found.reversed
    assert found.identity == 1.0


def test_marks_distinguish_same_alike_other_and_gap():
    measure = get_measure("needleman-wunsch", {"matrix": "BLOSUM62", "gap_open": 1})
    found = letters_of(measure, "WIWKWWCWW", "WVWWWWWW")
    for x, y, mark in zip(found.first, found.second, found.marks, strict=True):
        wanted = GAP if "-" in (x, y) else SAME if x == y else None
        assert mark == wanted if wanted else mark in (ALIKE, OTHER)
    assert found.marks[1] == ALIKE  # isoleucine and valine
    assert found.identity == found.marks.count(SAME) / len(found.marks)


def test_sequences_with_nothing_in_common_have_no_columns():
    measure = get_measure("smith-waterman", {"matrix": "BLOSUM62"})
    found = letters_of(measure, "WWWW", "PPPP")
    assert found.marks == ""
    assert found.identity == 0.0


@pytest.mark.parametrize("name", ["levenshtein", "damerau", "lcs", "jaro-winkler"])
def test_edits_of_strings(name):
    measure = get_measure(name)
    X = measure.check([*words(np.random.default_rng(1), 15), "", "hamburg", "amber"])
    for a in X:
        for b in X:
            found = letters_of(measure, a, b)
            assert found.first.replace(found.gap, "") == a
            assert found.second.replace(found.gap, "") == b
            changed = len(found.marks) - found.marks.count(SAME)
            value = measure.block([a], [b])[0, 0]
            if name == "levenshtein":
                assert changed == value
            elif name == "lcs":
                assert found.marks.count(SAME) == value


@pytest.mark.parametrize("objects", [series, unequal])
@pytest.mark.parametrize(
    ("name", "params"),
    [("dtw", {}), ("dtw", {"band": 2}), ("dtw", {"band": 0.1}), ("erp", {"gap": 0.3}),
     ("msm", {"cost": 0.5}), ("numeric-edit", {"gap": 0.3})],
)  # fmt: skip
def test_the_cost_of_the_path_matches_the_measure(name, params, objects):
    measure = get_measure(name, params)
    X = objects(np.random.default_rng(2), 8)
    measure = measure.decide(X)
    X = measure.check(X)
    values = measure.block(X, X)
    for i in range(len(X)):
        for j in range(len(X)):
            steps = measure.steps(np.asarray(X[i]), np.asarray(X[j]), *measure.costs())
            total = least_path(steps)[0]
            total = np.sqrt(total) if name == "dtw" else total
            assert total == pytest.approx(values[i, j], rel=1e-12, abs=1e-12)
            path = measure.side_by_side(X[i], X[j]).path
            assert (np.diff(path, axis=0) >= 0).all()
            assert (path >= 0).all()
            assert (path.max(axis=0) < (len(X[i]), len(X[j]))).all()
            if name not in ("erp", "numeric-edit"):
                ends = [[0, 0], [len(X[i]) - 1, len(X[j]) - 1]]
                np.testing.assert_array_equal(path[[0, -1]], ends)


def test_channels_that_are_warped_separately_have_no_common_path():
    X = gestures(np.random.default_rng(3), 2)
    found = get_measure("msm", {"layout": "times-channels"}).side_by_side(X[0], X[1])
    np.testing.assert_array_equal(found.first, X[0])
    assert found.path.shape == (0, 2)


@pytest.mark.parametrize("layout", ["times-channels", "channels-times"])
def test_the_path_of_several_channels(layout):
    X = gestures(np.random.default_rng(3), 6)
    measure = get_measure("dtw", {"layout": layout})
    X = measure.check(X if layout == "times-channels" else X.swapaxes(1, 2))
    found = measure.side_by_side(X[0], X[1])
    assert found.first.shape == (11, 3)
    i, j = found.path.T
    total = np.square(found.first[i] - found.second[j]).sum()
    assert np.sqrt(total) == pytest.approx(measure.block(X[:1], X[1:2])[0, 0])


def test_matched_samples_of_erp_and_gaps_make_its_distance():
    measure = get_measure("erp", {"gap": 0.5})
    X = measure.check(unequal(np.random.default_rng(4), 5))
    a, b = X[0], X[1]
    i, j = measure.side_by_side(a, b).path.T
    alone = np.abs(np.delete(a, i) - 0.5).sum() + np.abs(np.delete(b, j) - 0.5).sum()
    total = np.abs(a[i] - b[j]).sum() + alone
    assert total == pytest.approx(measure.block(X[:1], X[1:2])[0, 0])


def test_pictures_numbers_and_words():
    rng = np.random.default_rng(0)
    pictures = get_measure("tangent").check(images(rng, 2))
    assert isinstance(get_measure("tangent").side_by_side(*pictures), Pictures)
    rows = get_measure("manhattan").check(vectors(rng, 2))
    assert isinstance(get_measure("manhattan").side_by_side(*rows), Numbers)
    own = get_measure(lambda a, b: abs(len(a) - len(b)), {"kind": "dissimilarity"})
    assert own.side_by_side("ab", "c" * 10_000) == Words("ab", "c" * 600 + "…")
