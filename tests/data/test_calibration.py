"""The temperature of models of many objects, from left-out scores, in memory and from files."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

from krein import IKFD, IKQD, PCVM
from krein.core.calibration import SAMPLE_SIZE
from krein.core.gaussian import landmark_places, left_out_objects
from krein.estimators.folds import dealt_folds
from krein.estimators.heldout import CalibrationSample

from .conftest import equal_models, make_words

N, FEW = 800, 400
GIVEN = np.arange(3, N, 37)
MODELS = {
    "IKFD": IKFD("levenshtein", landmarks=GIVEN),
    "IKFD ovr": IKFD("levenshtein", landmarks=GIVEN, multiclass="ovr"),
    "IKFD by rule": IKFD("levenshtein", landmarks="stratified", random_state=0),
    "IKQD": IKQD("levenshtein", landmarks=GIVEN),
    "PCVM": PCVM("levenshtein", landmarks=GIVEN),
    "PCVM ovr": PCVM("levenshtein", landmarks=GIVEN, multiclass="ovr"),
    "PCVM by rule": PCVM("levenshtein", random_state=0),
}
ALL = pytest.mark.parametrize("name", MODELS)


@cache
def noisy_words(n, seed):
    """Words of three languages, about one in six with a wrong label."""
    words, labels = make_words(n, seed)
    rng = np.random.default_rng(seed)
    wrong = (labels == "rare") | (rng.uniform(size=n) < 1 / 6)
    labels[wrong] = rng.choice(["de", "en", "fr"], wrong.sum())
    return words, labels


def calibrated(name):
    return clone(MODELS[name]).set_params(calibrate=True)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """By size, a file, its words and their labels: N of them, more than `small_sample`, and FEW."""
    found = {}
    for n in (FEW, N):
        words, labels = noisy_words(n, 0)
        lines = [f"{word},{label}" for word, label in zip(words, labels, strict=True)]
        path = tmp_path_factory.mktemp("table") / "words.csv"
        path.write_text("\n".join(["word,label", *lines]) + "\n", encoding="utf-8")
        found[n] = (path, words, labels)
    return found


@pytest.fixture(scope="module")
def table(tables):
    return tables[N]


@pytest.fixture(scope="module")
def fitted(tables):
    """Return a calibrated model, fitted to a file or in memory: of many words with `small_sample`,
    of few without.

    A model by a rule, which chooses landmarks from a sample of the file, gets them in memory.
    """

    @cache
    def of(name, in_file, n):
        path, words, labels = tables[n]
        clf = calibrated(name)
        if "rule" not in name:
            clf.set_params(landmarks=GIVEN[len(words) > GIVEN])
        if in_file:
            return clf.fit(path)
        if "rule" in name:
            clf.set_params(landmarks=of(name, True, n).selection_.indices)
        return clf.fit(words, labels)

    return of


@ALL
def test_the_temperature_is_near_the_best_for_new_objects(name, fitted, small_sample):
    clf = fitted(name, True, N)
    words, labels = noisy_words(4000, seed=1)
    scores = clf.decision_function(words)
    own = np.arange(len(words)), np.searchsorted(clf.classes_, labels)
    (head,) = clf.model_.heads

    def loss(beta):
        return -replace(head, temperature=beta).to_log_proba(scores)[own].mean()

    best = min(loss(beta) for beta in np.exp(np.linspace(-5, 3, 81)))
    assert loss(clf.temperature_) < best + 0.01


@ALL
@pytest.mark.parametrize("n", [N, FEW])
def test_a_file_gives_the_same_temperature_as_memory(name, n, tables, fitted, request):
    if n == N:
        request.getfixturevalue("small_sample")
    from_file, in_memory = (fitted(name, in_file, n) for in_file in (True, False))
    equal_models(from_file, in_memory, tables[n][1])
    assert from_file.temperature_ == in_memory.temperature_ != 1


@ALL
def test_calibration_needs_no_more_comparisons(name, table, fitted, small_sample):
    path, words, labels = table
    for in_file, data in ((True, (path,)), (False, (words, labels))):
        by_rule_here = "rule" in name and not in_file
        clf = calibrated(name).fit(*data) if by_rule_here else fitted(name, in_file, N)
        raw = clone(MODELS[name]).fit(*data)
        assert clf.comparisons_to_fit_ == raw.comparisons_to_fit_


@pytest.mark.parametrize("shrinkage", ["auto", 0.2])
@pytest.mark.parametrize("name", ["IKFD", "IKFD ovr", "IKQD"])
def test_left_out_scores_are_close_to_a_fit_without_the_object(
    name, shrinkage, table, fitted, small_sample
):
    if shrinkage != "auto" and name == "IKQD":
        pytest.skip("the shrinkage per class changes from fit to fit")
    _, words, labels = table
    clf = fitted(name, False, N)
    if shrinkage != clf.shrinkage:
        clf = clone(clf).set_params(shrinkage=shrinkage).fit(words, labels)
    space, passed = clf.space_, clf.stream_
    moments_of_all = passed.moments[passed.powers.index(space.power)]
    values, places = passed.values, landmark_places(space, passed.values)
    sample = values, passed.codes, passed.weights, places
    objects = left_out_objects(space, moments_of_all, *sample)
    family = clf._family(clf.classes_)
    family, _ = family.chosen(space, objects)
    scores = family.left_out_scores(objects)
    found = family.log_proba(scores)
    for place in range(0, len(objects), len(objects) // 6):
        i = passed.indices[objects.rows[place]]
        rest = np.arange(N) != i
        moments = moments_of_all - family.moments(
            space,
            moments_of_all.origin,
            values[objects.rows[[place]]],
            passed.codes[objects.rows[[place]]],
        )
        assert moments.total == rest.sum()
        expected = family.scorer(space, moments)(values[objects.rows[[place]]])
        np.testing.assert_allclose(found[place], family.log_proba(expected)[0], atol=0.01)


@pytest.mark.parametrize("make", [IKFD, IKQD, PCVM])
def test_objects_of_weight_zero_have_no_effect(make, table, small_sample):
    _, words, labels = table
    weights = np.ones(N)
    weights[100:600] = 0
    wrong = labels.copy()
    wrong[100:600] = "de"
    landmarks = np.r_[0:100:5, 600:N:30]
    options = {"landmarks": landmarks, "calibrate": True}
    one = make("levenshtein", **options).fit(words, labels, sample_weight=weights)
    other = make("levenshtein", **options).fit(words, wrong, sample_weight=weights)
    np.testing.assert_allclose(one.temperature_, other.temperature_, rtol=1e-10)


@pytest.mark.parametrize("make", [IKFD, IKQD, PCVM])
@pytest.mark.parametrize("weighed", ["landmarks", "landmarks and one class"])
def test_a_class_whose_sample_has_zero_weight(make, weighed, table, small_sample):
    _, words, labels = table
    landmarks = np.arange(0, N, 10)
    weights = np.zeros(N) if weighed == "landmarks" else (labels == "de").astype(float)
    weights[landmarks] = 1
    clf = make("levenshtein", landmarks=landmarks, calibrate=True)
    clf.fit(words, labels, sample_weight=weights)
    assert 0 < clf.temperature_ < np.inf
    if weighed == "landmarks":
        assert clf.temperature_ == 1  # no other object counts


def test_a_class_of_one_object_is_never_held_out():
    codes, values = np.array([0, 0, 0, 1, 2]), np.random.default_rng(0).normal(size=(5, 3))
    assert dealt_folds(values, codes, None)[3:].tolist() == [-1, -1]
    assert (dealt_folds(values, codes, None)[:3] >= 0).all()


def test_a_class_of_two_objects_is_held_out_one_at_a_time():
    codes, values = np.array([0, 0, 0, 1, 1]), np.random.default_rng(0).normal(size=(5, 3))
    folds = dealt_folds(values, codes, None)
    assert (folds >= 0).all()
    assert folds[3] != folds[4]


def test_which_objects_are_in_the_calibration_sample():
    everyone = np.arange(100_000)
    landmarks = np.arange(50, 1000, 7)
    limits = {"all_up_to": 20_000, "wanted": SAMPLE_SIZE}
    sample = CalibrationSample.of(len(everyone), landmarks, **limits)
    drawn = sample.among(everyone)
    assert abs(len(drawn) - 5000) < 5 * np.sqrt(5000)
    assert not np.isin(drawn, landmarks).any()
    # whatever the chunks they come in
    pieces = [
        start + sample.among(everyone[start : start + 977])
        for start in range(0, len(everyone), 977)
    ]
    np.testing.assert_array_equal(np.concatenate(pieces), drawn)
    few = CalibrationSample.of(20_000, landmarks, **limits)
    assert len(few.among(everyone[:20_000])) == 20_000
    # too few are not landmarks
    assert CalibrationSample.of(30_000, everyone[:16_000], **limits).covers_all
    most = CalibrationSample.of(30_000, everyone[:4000], all_up_to=20_000, wanted=40_000)
    np.testing.assert_array_equal(most.among(everyone[:30_000]), everyone[4000:30_000])
    assert not most.covers_all
