"""Cross-fitting: which model scores which objects, with which landmarks and weights."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.special import log_softmax

from krein import IKFD, IKQD, PCVM
from krein.core.calibration import N_FOLDS, fit_temperature
from krein.core.space import LandmarkSpace
from krein.estimators.choosing import LandmarkChoice
from krein.estimators.heldout import cross_fit, refitted_scores
from krein.estimators.secondlook import preferred
from krein.landmarks import Selection
from krein.model.parts import Landmarks

N, MANY = 60, np.arange(0, 60, 4)
CODES = np.arange(N) % 3


def named(landmarks):
    """Values that encode the object and the landmark."""
    return 1000.0 * np.arange(N)[:, None] + landmarks


@dataclass
class Observer:
    """A family that records its inputs; its scores are known beforehand."""

    scores: np.ndarray
    values: np.ndarray
    learned: list = field(default_factory=list)
    scored: list = field(default_factory=list)

    def learn(self, space, landmark_classes, values, codes, weights):
        objects, places = values[:, 0].astype(int) // 1000, values[0].astype(int) % 1000
        of = np.isin(self.values[0] % 1000, places)
        np.testing.assert_array_equal(values, self.values[np.ix_(objects, of)])
        np.testing.assert_array_equal(codes, CODES[objects])
        np.testing.assert_array_equal(landmark_classes, CODES[places])
        np.testing.assert_array_equal(space.landmark_values, distances(places))
        self.learned.append((set(objects), set(places), weights))

        def scorer(V):
            asked = V[:, 0].astype(int) // 1000
            assert set(V[0].astype(int) % 1000) == set(places)
            self.scored.append(set(asked))
            return self.scores[asked]

        return scorer

    def log_proba(self, scores):
        return log_softmax(scores, axis=1)


def distances(places):
    return np.abs(places[:, None] - places[None]).astype(float)


def observed(weights=None, landmarks=MANY, groups=None):
    scores = np.random.default_rng(0).normal(size=(N, 3))
    scores[np.arange(N), CODES] += np.where(np.arange(N) < N // 2, 3.0, -1.0)
    family = Observer(scores, named(landmarks))
    everyone = np.arange(N)
    groups = everyone if groups is None else groups
    choice = choice_of(landmarks)
    return family, cross_fit(family, choice, family.values, CODES, weights, everyone, groups)


def choice_of(places):
    space = LandmarkSpace.of(distances(places), "dissimilarity")
    return LandmarkChoice(
        Landmarks(places, CODES[places], None, None), space, None, Selection(places)
    )


@pytest.mark.parametrize("landmarks", [MANY, MANY[[1, 7]]], ids=["many", "two"])
def test_no_object_is_scored_by_a_model_that_saw_it_or_had_it_as_a_landmark(landmarks):
    family, _ = observed(landmarks=landmarks)
    assert len(family.learned) == len(family.scored) == N_FOLDS
    for (seen, places, _), asked in zip(family.learned, family.scored, strict=True):
        assert seen | asked == set(range(N))
        assert not seen & asked
        assert places == set(landmarks) - asked
    assert sum(map(len, family.scored)) == N


def test_groups_are_held_out_with_their_landmarks():
    groups = 3 * (np.arange(N) // 9) + CODES  # each of three objects of a class, except the last
    family, _ = observed(groups=groups)
    assert sum(map(len, family.scored)) == N
    for (seen, places, _), asked in zip(family.learned, family.scored, strict=True):
        assert seen | asked == set(range(N))
        assert not set(groups[list(seen)]) & set(groups[list(asked)])
        assert places == {i for i in MANY if groups[i] not in groups[list(asked)]}


def test_calibration_uses_the_weights_of_objects():
    weights = np.where(np.arange(N) < N // 2, 0.01, 10.0)  # the misclassified count
    family, (scores, rows) = observed(weights)
    for seen, _, given in family.learned:
        np.testing.assert_array_equal(given, weights[sorted(seen)])
    np.testing.assert_array_equal(rows, np.arange(N))
    np.testing.assert_array_equal(scores, family.scores)
    weighted = fit_temperature(scores, CODES, family.log_proba, weights)
    assert weighted < 0.1 < fit_temperature(scores, CODES, family.log_proba, None)


@pytest.mark.parametrize("sizes", [(19_999, 20_001), (5_100, 8_000)])
def test_pcvm_is_calibrated_by_one_rule(sizes, monkeypatch):
    """What counts is the number of objects per landmark, not a round number of objects."""
    folds = []
    monkeypatch.setattr("krein.estimators.pcvm.cross_fit", lambda *args: folds.append(args))
    rng = np.random.default_rng(0)
    y = np.arange(max(sizes)) % 2
    X = rng.normal(size=(len(y), 2)) + y[:, None]
    found = [
        PCVM("euclidean", landmarks=range(10), calibrate=True).fit(X[:n], y[:n]).temperature_
        for n in sizes
    ]
    assert not folds
    np.testing.assert_allclose(found[0], found[1], rtol=0.05)


@pytest.mark.parametrize("many", [True, False], ids=["many", "few"])
@pytest.mark.parametrize("make", [IKFD, IKQD, PCVM])
def test_tiny_weights_have_almost_no_effect(make, many, monkeypatch):
    """The temperature is continuous in the weights: a tiny weight has the same effect as none."""
    if many:
        monkeypatch.setattr("krein.core.pcvm.left_out.SAMPLE_SIZE", 300)
    rng = np.random.default_rng(1)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 2)) + 2.0 * y[:, None]
    wrong = y.copy()
    wrong[200:] = 1 - y[200:]
    found = []
    for weight in (0.0, 1e-6, 1.0):
        weights = np.where(np.arange(400) < 200, 1.0, weight)
        model = make("elm", landmarks=np.arange(0, 200, 10), calibrate=True)
        clf = model.fit(X, wrong, sample_weight=weights)
        found.append(clf.temperature_ * np.abs(clf.decision_function(X[:200])).mean())
    nothing, trace, everything = found
    np.testing.assert_allclose(trace, nothing, rtol=0.05)
    assert everything < 0.5 * nothing


@pytest.mark.parametrize("unpaired", [0, 2])
def test_held_out_scores_come_from_models_without_the_object(unpaired):
    """Objects in fold −1 are never held out: they are in every model."""
    scores = np.random.default_rng(0).normal(size=(N, 3))
    family = Observer(scores, named(MANY))
    own = np.arange(N)[:, None] == MANY
    folds = np.arange(N) % 5
    folds[:unpaired] = -1
    found = refitted_scores(family, choice_of(MANY), family.values, CODES, None, folds, own)
    np.testing.assert_array_equal(found[unpaired:], scores[unpaired:])
    assert len(family.scored) == 5
    for (objects, places, _), scored in zip(family.learned, family.scored, strict=True):
        assert set(range(unpaired)) <= objects
        assert not objects & scored
        assert not places & scored


def test_if_no_object_can_be_held_out_one_model_scores_all():
    family = Observer(np.random.default_rng(0).normal(size=(N, 3)), named(MANY))
    own, folds = np.arange(N)[:, None] == MANY, np.full(N, -1)
    found = refitted_scores(family, choice_of(MANY), family.values, CODES, None, folds, own)
    np.testing.assert_array_equal(found, family.scores)
    ((objects, places, _),) = family.learned
    assert (objects, places) == (set(range(N)), set(MANY.tolist()))


def test_which_objects_arepreferred():
    """One per class, then errors up to half of the places, then others."""
    codes, right = np.array([0, 0, 0, 0, 1, 1, 1, 2]), np.ones(8, dtype=bool)
    right[[2, 3, 6]] = False
    assert preferred(codes, right, 2).tolist() == [0, 4, 7]
    assert preferred(codes, right, 4).tolist() == [0, 2, 4, 7]
    assert preferred(codes, right, 6).tolist() == [0, 2, 3, 4, 6, 7]
    assert preferred(codes, right, 8).tolist() == list(range(8))
