"""Promises of the documentation, on sets small enough for a test; the audit is a benchmark."""

import warnings

import numpy as np
import pytest

from benchmarks.promises import CASES, judged, one_split
from krein import IKFD, IKQD, PCVM, KreinClassifier

SPLITS = 4


@pytest.mark.parametrize(
    ("name", "n"), [("two classes", 150), ("words", 100), ("groups of 6", 150)]
)
def test_new_objects_are_answered_as_held_out_ones_are(name, n):
    """The bounds are several standard errors away from what is measured over many splits."""
    found = [one_split(CASES[name], n, seed).values for seed in range(SPLITS)]
    mean = {key: np.mean([one[key] for one in found]) for key in found[0]}
    for key, value in mean.items():
        if key.startswith("difference of confidence"):
            assert abs(value) < 0.06, key
    assert abs(mean["confidence - accuracy"]) < 0.09
    assert mean["coverage at 90 %"] > 0.82
    assert mean["coverage by class at 90 %"] > 0.82
    assert mean["false alarms at 5 %"] < 0.1


def test_features_are_as_certain_of_new_objects_as_of_held_out_ones():
    """A model of all words would be more certain than those without a fold, by 1.5 points."""
    each = [
        one_split(CASES["words"], 600, seed).values["difference of confidence, features"]
        for seed in range(300, 306)
    ]
    assert abs(np.mean(each)) < 0.008


@pytest.mark.filterwarnings("ignore::krein.landmarks.meb.SmallClassWarning")
@pytest.mark.parametrize(("cls", "seed"), [(IKFD, 2), (IKQD, 2), (PCVM, 0)])
def test_no_label_is_selected_in_classes_of_one_or_two_objects(cls, seed):
    """All labels are about equally certain, held-out ones by chance a little less than new ones."""
    rng, measure = np.random.default_rng(seed), "euclidean"
    X = rng.normal(size=(260, 5))
    if cls is PCVM:
        rng, measure = np.random.default_rng(seed), "levenshtein"
        X = ["".join(rng.choice(list("abcdefghijklmno"), rng.integers(3, 11))) for _ in X]
    y = rng.integers(40, size=260)
    clf = cls(measure, calibrate=True).fit(X[:60], y[:60])
    assert not clf.select(X[60:], fdr=0.1).any()
    assert clf.predict_proba(X[60:]).max() < 0.5


@pytest.mark.parametrize(
    ("key", "kept", "missed"),
    [
        ("confidence - accuracy", 0.014, 0.08),
        ("confidence - accuracy", -0.014, -0.08),
        ("coverage at 90 %", 0.891, 0.83),
        ("wrong labels at 10 %", 0.1, 0.2),
        ("false alarms at 1 %", 0.01, 0.06),
        ("distance of p-values", 0.9, 1.3),
        ("difference of loss, pcvm", 0.02, 0.1),
        ("difference of confidence, ikfd", 0.01, 0.05),
    ],
)
def test_a_promise_is_kept_or_missed(key, kept, missed):
    noise = np.array([-0.01, 0.0, 0.01])
    assert judged(key, kept + noise).verdict == "yes"
    assert judged(key, missed + noise).verdict == "no"
    assert judged(key, missed + 100 * noise).verdict != "no"  # too noisy to tell


def test_what_is_not_promised_has_no_verdict():
    assert judged("coverage of the rare class, not by class at 90 %", np.zeros(3)).verdict == ""


def test_the_number_of_held_out_objects_counts_groups():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.repeat([0, 1], 60)
    clf = KreinClassifier("manhattan").fit(X, y)
    assert clf.n_held_out_ == 120
    assert clf.fit(X, y, groups=np.arange(120) // 4).n_held_out_ == 30


@pytest.mark.parametrize("n", [40, 60])
def test_a_fit_to_few_objects_warns(n):
    X, y = np.random.default_rng(0).normal(size=(n, 2)), np.arange(n) % 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = KreinClassifier("euclidean").fit(X, y)
    assert clf.n_held_out_ == n
    told = [one for one in caught if "could be held out" in str(one.message)]
    assert len(told) == (n < 50)
    assert all(one.filename == __file__ for one in told)
