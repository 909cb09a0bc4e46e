"""Objects of another kind than a model was fitted to are named, and others are not."""

import warnings

import numpy as np
import pytest

from krein import KreinClassifier, load
from krein.datasets import make_protein_families
from krein.measures.likeness import Likeness, OtherKindWarning

DNA = "ACGTTGCAACGTTGCAACGTTGCA"


@pytest.fixture(scope="module")
def proteins():
    X, y = make_protein_families(60, random_state=0)
    return KreinClassifier("smith-waterman").fit(X[:50], y[:50]), X[50:]


def warned(call, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args)
    return [one.message for one in caught if isinstance(one.message, OtherKindWarning)]


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


def test_objects_of_the_same_kind_are_not_named(proteins):
    model, new = proteins
    assert warned(model.assess, new) == []
    # few letters, or of few kinds, may be a protein
    assert warned(model.predict, ["ACGT" * 4, "G" * 40, new[0][:20]]) == []


def test_a_model_of_dna_takes_dna():
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


def test_another_number_of_channels_is_an_error_that_says_so():
    rng = np.random.default_rng(0)
    model = KreinClassifier("dtw").fit(rng.normal(size=(20, 30, 3)), ["a", "b"] * 10)
    with pytest.raises(
        ValueError, match="series of 2 channels cannot be compared with series of 3"
    ):
        model.predict(rng.normal(size=(4, 30, 2)))


def test_objects_without_a_length_have_no_likeness():
    assert Likeness.of([[1, 2, 3]]) is None
    assert Likeness.of([]) is None
    assert Likeness.of([[], ["ab"]]) == Likeness(frozenset("AB"), 2, 2)
