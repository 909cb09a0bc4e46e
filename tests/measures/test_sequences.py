"""Alignment scores against biopython, and the pitfalls of letters."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from Bio.Align import PairwiseAligner, substitution_matrices
from Bio.Seq import Seq
from hypothesis import given, settings
from hypothesis import strategies as st

from krein.measures import get_measure
from krein.measures.sequences import LettersWarning, UnreadableSequence, get_scoring

from .market import proteins

NAMES = {"smith-waterman": "local", "needleman-wunsch": "global"}


def oracle(name, matrix, gap_open, gap_extend):
    aligner = PairwiseAligner(mode=NAMES[name])
    aligner.substitution_matrix = substitution_matrices.load(matrix)
    aligner.open_gap_score, aligner.extend_gap_score = -gap_open, -gap_extend
    return aligner.score


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("matrix", "gap_open", "gap_extend"),
    [("BLOSUM62", 11, 1), ("PAM250", 5, 5), ("BLOSUM45", 8, 0)],
)
def test_raw_scores_match_biopython(name, matrix, gap_open, gap_extend):
    params = {"matrix": matrix, "gap_open": gap_open, "gap_extend": gap_extend}
    measure = get_measure(name, {**params, "normalize": False})
    objects = measure.check(proteins(np.random.default_rng(1), 14))
    score = oracle(name, matrix, gap_open, gap_extend)
    expected = [[score(a, b) for b in objects[:6]] for a in objects]
    np.testing.assert_array_equal(measure.block(objects, objects[:6]), expected)
    np.testing.assert_array_equal(measure.block(objects[:6], objects), np.transpose(expected))
    np.testing.assert_array_equal(measure.diagonal(objects), [score(a, a) for a in objects])


@settings(max_examples=60, deadline=None)
@given(st.text("ARNDCQEGHILKMFPSTWYVBZX", min_size=1, max_size=30))
def test_a_self_score_equals_the_alignment_with_itself(sequence):
    for name in NAMES:
        for matrix in ("BLOSUM62", "PAM30", "BLOSUM100"):
            measure = get_measure(name, {"matrix": matrix, "normalize": False})
            aligned = measure.block([sequence], [sequence])[0, 0]
            assert measure.diagonal([sequence])[0] == aligned


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text("ACGTACGTNNRYK", min_size=1, max_size=20), min_size=1, max_size=5),
    st.sampled_from([(11, 1), (1, 1), (0, 0), (2, 3)]),
    st.booleans(),
)
def test_self_scores_of_dna_with_wildcards_equal_the_alignments(sequences, gaps, both_strands):
    params = {"matrix": "NUC.4.4", "normalize": False, "both_strands": both_strands}
    for name in NAMES:
        measure = get_measure(name, {**params, "gap_open": gaps[0], "gap_extend": gaps[1]})
        aligned = [measure.block([one], [one])[0, 0] for one in sequences]
        np.testing.assert_array_equal(measure.diagonal(sequences), aligned)


@pytest.mark.parametrize("name", NAMES)
def test_normalised_scores_are_cosines(name):
    raw, cosine = get_measure(name, {"normalize": False}), get_measure(name)
    objects = cosine.check(proteins(np.random.default_rng(2), 9))
    K, self_scores = raw.block(objects, objects), raw.diagonal(objects)
    expected = K / np.sqrt(np.outer(self_scores, self_scores))
    np.testing.assert_allclose(cosine.block(objects, objects), expected, rtol=1e-12)
    np.testing.assert_array_equal(cosine.diagonal(objects), np.ones(9))


def test_scores_beyond_sixteen_bits_are_right():
    measure = get_measure("smith-waterman", {"normalize": False})
    long = measure.check(["W" * 4000, "W" * 3500 + "A"])
    np.testing.assert_array_equal(measure.block(long, long), [[44000, 38500], [38500, 38504]])


def test_lower_case_scores_as_upper_case():
    measure = get_measure("smith-waterman")
    assert measure.check(["mkvl", "MkVL"]) == ["MKVL", "MKVL"]


def test_unknown_letters_are_replaced_on_request():
    measure = get_measure("smith-waterman", {"unknown_letters": "X"})
    with pytest.warns(LettersWarning, match="4 letters in 2 of 2 sequences"):
        assert measure.check(["MUKO", "mju"]) == ["MXKX", "MXX"]
    with pytest.warns(LettersWarning, match=r"\* left out: 2, 1 left out: 1"):
        skipped = get_measure("smith-waterman", {"unknown_letters": "skip"}).check(["M*K*1"])
    assert skipped == ["MK"]
    with pytest.raises(ValueError, match="'U' at position 2"):
        get_measure("smith-waterman", {"unknown_letters": "fail"}).check(["MUKO"])


def test_letters_are_mapped_by_convention():
    measure = get_measure("smith-waterman")
    with pytest.warns(LettersWarning) as caught:
        found = measure.check(["MUKO", "mkv*", "M-K..V", "MJ*K**", "MKV"])
    assert found == ["MCKK", "MKV", "MKV", "MXXK", "MKV"]
    (warned,) = caught
    assert warned.message.sequences == 4
    assert warned.message.letters == {
        "U as C": 1, "O as K": 1, "* left out": 3, "- left out": 1, ". left out": 2,
        "J as X": 1, "* as X": 1,
    }  # fmt: skip
    assert str(warned.message).startswith("10 letters in 4 of 5 sequences are not scored")
    assert measure.check(found) == found  # without a warning


def test_rare_letters_of_dna_are_n_and_rna_reads_as_dna():
    measure = get_measure("smith-waterman", {"matrix": "NUC.4.4"})
    assert measure.check(["acgu", "ACGRYN"]) == ["ACGT", "ACGRYN"]  # without a warning
    with pytest.warns(LettersWarning, match=r"\(X as N: 1, - left out: 1, I as N: 1\)"):
        assert measure.check(["ACXGT", "AC-GI"]) == ["ACNGT", "ACGN"]
    strict = get_measure("smith-waterman", {"matrix": "NUC.4.4", "unknown_letters": "fail"})
    assert strict.check(["ACGU"]) == ["ACGT"]


DNA = ["ACGTTGCAACGT", "TTGACCAGTNAC", "GGCATTACGGAT", "ACGTTGCATCGT"]
PROTEINS = ["MKVLAWGHEE", "HEAGAWGHEE", "PAWHEAE", "ACGTACGTACGT"]


@pytest.mark.parametrize(
    ("sequences", "matrix"),
    [
        (DNA, "NUC.4.4"),
        ([s.lower().replace("t", "u") for s in DNA], "NUC.4.4"),
        ([*DNA, "ACGTRYKMACGTACGTACGTACGTACGTACGTACGTACGT"], "NUC.4.4"),
        (PROTEINS, "BLOSUM62"),
        (["GAVLI"], "BLOSUM62"),
    ],
)
def test_the_matrix_is_chosen_by_the_letters(sequences, matrix):
    measure = get_measure("smith-waterman", {"normalize": False})
    assert measure.undecided()
    decided = measure.decide(sequences)
    assert (decided.matrix, decided.undecided()) == (matrix, False)
    assert measure.decide(np.array(sequences, dtype=object)[::-1, None]) == decided
    objects = decided.check(sequences)
    score = oracle("smith-waterman", matrix, 11, 1)
    expected = [[score(a, b) for b in objects] for a in objects]
    np.testing.assert_array_equal(decided.block(objects, objects), expected)
    np.testing.assert_array_equal(measure.block(measure.check(sequences), objects), expected)


def test_a_named_matrix_is_not_chosen_again():
    measure = get_measure("smith-waterman", {"matrix": "BLOSUM62"})
    assert measure.decide(DNA) is measure


@pytest.mark.parametrize("name", NAMES)
def test_both_strands_use_the_better_of_two(name):
    rng = np.random.default_rng(0)
    sequences = ["".join(rng.choice(list("ACGTRN"), rng.integers(5, 40))) for _ in range(12)]
    sequences += [str(Seq(s).reverse_complement()) for s in sequences[:3]]
    params = {"matrix": "NUC.4.4", "normalize": False, "both_strands": True}
    measure = get_measure(name, params)
    score = oracle(name, "NUC.4.4", 11, 1)

    def better(a, b):
        return max(score(a, b), score(a, str(Seq(b).reverse_complement())))

    K = measure.block(sequences, sequences)
    np.testing.assert_array_equal(K, [[better(a, b) for b in sequences] for a in sequences])
    np.testing.assert_array_equal(measure.block(sequences[:4], sequences), K[:4])
    np.testing.assert_array_equal(measure.diagonal(sequences), np.diag(K))
    strands = measure.block(sequences[:3], sequences[12:])
    np.testing.assert_array_equal(np.diag(strands), np.diag(K)[:3])


def test_proteins_have_one_strand():
    for params in ({"matrix": "BLOSUM62"}, {}):
        with pytest.raises(ValueError, match="both_strands needs DNA or RNA"):
            get_measure("smith-waterman", {**params, "both_strands": True}).decide(PROTEINS)


def test_each_sequence_is_checked_separately():
    measure = get_measure("smith-waterman")
    mask, reasons = measure.readable(["MKV", "MK1", None, "MUK*", "", "--", "XX"])
    assert mask.tolist() == [True, False, False, True, False, False, False]
    assert list(reasons) == [1, 2, 4, 5, 6]
    assert reasons[1].startswith("sequence ('MK1') contains '1' at position 3")
    assert reasons[4] == "sequence is empty"


def test_every_letter_that_the_matrix_knows_is_accepted():
    assert get_measure("smith-waterman").check(["ARNDCQEGHILKMFPSTWYVBZX"])


def test_a_stop_is_not_a_letter():
    with pytest.raises(ValueError, match=r"'\*' at position 3, which is not scored"):
        get_measure("smith-waterman", {"unknown_letters": "fail"}).check(["MK*"])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"matrix": "BLOSUM63"}, "unknown scoring matrix 'BLOSUM63'.*BLOSUM62"),
        ({"gap_open": -1}, "gap costs"),
        ({"gap_extend": 0.5}, "gap costs"),
        (
            {"unknown_letters": "J"},
            "unknown_letters must be one of 'map', 'X', 'skip', 'fail'; got 'J'",
        ),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        get_measure("smith-waterman", params)


def test_arrays_and_columns_of_strings_are_accepted():
    measure = get_measure("smith-waterman")
    assert measure.check(np.array(["MK", "MKV"])) == ["MK", "MKV"]
    assert measure.check(np.array([["MK"], ["MKV"]], dtype=object)) == ["MK", "MKV"]


@pytest.mark.parametrize("letter", ["ß", "ﬁ", "ı", "ſ", "é"])
def test_letters_of_other_alphabets_are_not_scored(letter):
    for sequence in (f"MK{letter}{letter}1", f"mk{letter}"):
        with pytest.raises(ValueError, match=f"'{letter}' at position 3, which is not scored"):
            get_measure("smith-waterman").check([sequence])
        with pytest.warns(LettersWarning):
            unknown = get_measure("smith-waterman", {"unknown_letters": "X"}).check([sequence])
        assert unknown == ["MK" + "X" * (len(sequence) - 2)]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_does_not_grow_with_the_number_of_pairs():
    import resource  # Windows has none

    def pages():
        return int(Path("/proc/self/statm").read_text().split()[1])

    rng = np.random.default_rng(0)
    sequences = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 60)) for _ in range(200)]
    sequences += sequences  # scores of equal ones overflow a byte, so they are aligned again
    measure = get_measure("smith-waterman")
    measure.block(sequences, sequences)
    before = pages()
    measure.block(sequences, sequences)
    grown = (pages() - before) * resource.getpagesize()
    assert grown < 8 * len(sequences) ** 2  # the values themselves are freed again


def test_an_unreadable_sequence_carries_its_reason_and_remedy():
    alphabet = get_scoring("BLOSUM62").alphabet
    with pytest.raises(UnreadableSequence) as caught:
        alphabet.read("MK1", "map", Counter())
    assert caught.value.reason == "contains '1' at position 3, which is not scored with BLOSUM62"
    assert caught.value.remedy.startswith("remove it, or have it read as X")
    assert str(caught.value) == f"{caught.value.reason}; {caught.value.remedy}"
