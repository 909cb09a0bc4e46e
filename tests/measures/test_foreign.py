"""Objects of a different kind from the training objects are reported, and others are not."""

import pickle
import warnings

import numpy as np
import pytest

from krein import KreinClassifier, load
from krein.data.foreign import ForeignObjectWarning, ObjectProfile
from krein.datasets import make_protein_families
from krein.reject import RejectingClassifier

DNA = "ACGTTGCAACGTTGCAACGTTGCA"


@pytest.fixture(scope="module")
def proteins():
    X, y = make_protein_families(60, random_state=0)
    return KreinClassifier("smith-waterman").fit(X[:50], y[:50]), X[50:]


def families():
    return make_protein_families(60, random_state=0)


def warned(call, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args)
    return [one.message for one in caught if isinstance(one.message, ForeignObjectWarning)]


def test_ambiguous_nucleotides_do_not_make_dna_another_kind_of_object():
    """Reference sequences of marker genes contain a few codes for several nucleotides."""
    known = [DNA * 5 + code for code in "RYKMSWBDHV"]
    assert ObjectProfile.of([known]).foreign([DNA, DNA + "R"]) == {}
    assert ObjectProfile.of([["MKVLAWFPQEIHRYKMSWD" * 10]]).foreign([DNA])


def test_dna_is_named_in_one_warning(proteins, tmp_path):
    model, new = proteins
    mixed = [new[0], DNA, new[1], DNA.lower().replace("t", "u"), new[2] * 50]
    model.save(tmp_path / "m.krein")
    for one in (model, load(tmp_path / "m.krein")):
        for call in (one.predict, one.predict_proba, one.novelty, one.assess, one.explain):
            (found,) = warned(call, mixed)
            assert sorted(found.rows.values()) == [[1, 3], [4]]
            assert "object 1, object 3 (letters of DNA or RNA)" in str(found)
            assert "object 4 (far longer" in str(found)


@pytest.mark.parametrize("how", [lambda s: s.replace("T", "X"), lambda s: s + "-R" + s + "YN"])
def test_dna_with_ambiguous_letters(proteins, how):
    model, new = proteins
    (found,) = warned(model.predict, [new[0], how(2 * DNA)])
    assert list(found.rows.values()) == [[1]]


def test_objects_of_another_kind_are_novel(proteins):
    model, new = proteins
    mixed = [new[0], DNA, new[1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForeignObjectWarning)
        found, p, alone = model.assess(mixed), model.novelty(mixed), model.assess(new[:2])
        rejecting = RejectingClassifier(model, threshold=0.0, novel_below=0.0).fit(*families())
        status = rejecting.status(mixed)
    assert p[1] == found["novelty"][1] == 0
    assert found["status"][1] == status[1] == "novel"
    # the others keep their p-values
    np.testing.assert_array_equal(p[[0, 2]], alone["novelty"])
    assert status[[0, 2]].tolist() == ["known", "known"]


def test_objects_of_another_kind_are_not_compared(proteins):
    model, new = proteins
    long = new[2] * 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForeignObjectWarning)
        for call in (model.predict_proba, model.novelty, model.assess, model.explain):
            alone = call(new[:2])
            cost = model.last_comparisons_
            mixed = call([DNA, new[0], long, new[1]])
            assert model.last_comparisons_ == cost
            if call != model.explain:
                np.testing.assert_array_equal(mixed[[1, 3]], alone)
            call([DNA, long])
            assert model.last_comparisons_ == 0
        C = len(model.classes_)
        np.testing.assert_allclose(model.predict_proba([long, DNA]), 1 / C)
        assert not model.predict_set([long], 0.9).any()
        (why,) = model.explain([long])
        assert (why.nearest, why.score) == ((), 0)
        found = model.assess([long, new[0]], coverage=0.9, evidence=2)
    assert found["status"].tolist() == ["novel", "known"]
    assert not found["set"][0].any()


def test_a_file_gives_one_warning_with_names(proteins, tmp_path, monkeypatch):
    model, new = proteins
    monkeypatch.setattr("krein.data.opening.CHUNK", 3)
    path = tmp_path / "new.fasta"
    mixed = [new[0], DNA, new[1], new[2], DNA, new[3], DNA]
    path.write_text("".join(f">s{i}\n{one}\n" for i, one in enumerate(mixed)))
    for call in (model.predict, model.novelty):
        answers = call(path)
        assert warned(next, answers) == []  # more may follow
        (found,) = warned(list, answers)
        assert found.rows == {"letters of DNA or RNA": [1, 4, 6]}
        assert all(f"sequence 's{i}'" in str(found) for i in (1, 4, 6))
    clean = tmp_path / "clean.fasta"
    clean.write_text("".join(f">s{i}\n{one}\n" for i, one in enumerate(new)))
    assert warned(lambda: list(model.predict(clean))) == []


def test_only_the_first_foreign_objects_of_a_file_are_listed(proteins, tmp_path, monkeypatch):
    model, _ = proteins
    monkeypatch.setattr("krein.data.foreign.LISTED", 4)
    path = tmp_path / "new.fasta"
    path.write_text("".join(f">s{i}\n{DNA}\n" for i in range(9)))
    (found,) = warned(lambda: list(model.predict(path)))
    assert found.rows == {"letters of DNA or RNA": [0, 1, 2, 3]}
    assert "'s4' and 4 more" in str(found)


def test_a_warning_survives_pickling():
    warning = ForeignObjectWarning({"why": [3]}, {"why": (["object 3"], 1)})
    there = pickle.loads(pickle.dumps(warning))
    assert there.rows == warning.rows
    assert str(there) == str(warning)


def test_objects_of_the_same_kind_are_not_named(proteins):
    model, new = proteins
    assert warned(model.assess, new) == []
    # a tenth of other letters
    assert warned(model.predict, [DNA * 3 + "WYKLPQRS"]) == []
    # few letters, or of few kinds, may be a protein
    assert warned(model.predict, ["ACGT" * 4, "G" * 40, new[0][:20]]) == []


def test_a_model_of_dna_accepts_dna():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), 60)) for _ in range(40)]
    model = KreinClassifier("smith-waterman").fit(X, ["a", "b"] * 20)
    assert warned(model.predict, [DNA, X[0]]) == []


def test_series_of_another_length_scale():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=rng.integers(20, 30)).cumsum() for _ in range(40)]
    model = KreinClassifier("dtw").fit(X, ["a", "b"] * 20)
    assert warned(model.predict, [X[0], np.zeros(290)]) == []
    (found,) = warned(model.predict, [X[0], np.zeros(301), np.zeros(1)])
    assert sorted(found.rows.values()) == [[1], [2]]
    (found,) = warned(model.predict, np.zeros((2, 301)))  # an array: all of one length
    assert list(found.rows.values()) == [[0, 1]]
    assert warned(model.predict, np.zeros((2, 290))) == []


def test_a_new_fit_forgets_the_old_objects():
    words, labels = ["house", "mouse", "haus", "maus"] * 5, ["en", "en", "de", "de"] * 5
    model = KreinClassifier("levenshtein").fit(words, labels)
    assert len(warned(model.predict, ["m" * 60])) == 1
    model.fit([w * 20 for w in words], labels)
    assert warned(model.predict, ["m" * 60]) == []


def test_flat_images_are_the_same_images():
    rng = np.random.default_rng(0)
    images = rng.uniform(size=(40, 28, 28))
    model = KreinClassifier("tangent").fit(images, ["a", "b"] * 20)
    assert warned(model.predict, images[:2].reshape(2, -1)) == []


def test_another_number_of_channels_is_reported():
    rng = np.random.default_rng(0)
    model = KreinClassifier("dtw").fit(rng.normal(size=(20, 30, 3)), ["a", "b"] * 10)
    with pytest.raises(
        ValueError, match="series of 2 channels cannot be compared with series of 3"
    ):
        model.predict(rng.normal(size=(4, 30, 2)))


def test_objects_without_a_length_have_no_likeness():
    assert ObjectProfile.of([[1, 2, 3]]) is None
    assert ObjectProfile.of([]) is None
    assert ObjectProfile.of([[], ["ab"]]) == ObjectProfile(frozenset("AB"), 2, 2)
