"""Groups of related objects are held out together, so that probabilities hold for new groups."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GroupKFold, cross_validate

from krein import IKFD, IKQD, PCVM, KreinClassifier
from krein.data import open_data
from krein.data.labelling import check_groups
from krein.estimators.folds import dealt_folds
from krein.estimators.heldout import shares_of_groups
from krein.estimators.lookzero import fit_features
from krein.measures import get_measure

CENTRES = np.array([[0.0, 0.0], [1.5, 0.0], [0.75, 1.3]])


def draw(n, rng):
    """Objects of three overlapping classes."""
    y = np.arange(n) % 3
    return CENTRES[y] + rng.normal(size=(n, 2)), y


def near_copies(seed, n=120, copies=3, noise=0.02):
    """Objects in random order, each with near-copies; their classes and groups."""
    rng = np.random.default_rng(seed)
    X, y = draw(n, rng)
    order = rng.permutation(n * (copies + 1))
    groups = np.repeat(np.arange(n), copies + 1)[order]
    return X[groups] + noise * rng.normal(size=(len(order), 2)), y[groups], groups


def promises(make, grouped, seeds, copies=3):
    """Return accuracy, mean confidence, coverage at 90 % and alarms at 5 %, on fresh objects."""
    found = []
    for seed in seeds:
        X, y, groups = near_copies(seed, copies=copies)
        new, truth = draw(2000, np.random.default_rng(1000 + seed))
        clf = make().fit(X, y, groups=groups if grouped else None)
        P = clf.predict_proba(new)
        sets = clf.predict_set(new, 0.9)[np.arange(2000), truth]
        alarms = clf.novelty(new) <= 0.05
        found.append([np.mean(P.argmax(1) == truth), P.max(1).mean(), sets.mean(), alarms.mean()])
    return np.mean(found, axis=0)


def test_near_copies_break_promises_that_groups_keep():
    make, seeds = lambda: KreinClassifier("manhattan"), range(3)
    accuracy, confidence, coverage, alarms = promises(make, False, seeds, copies=5)
    assert confidence > accuracy + 0.2
    assert coverage < 0.75
    assert alarms > 0.3
    before = accuracy
    accuracy, confidence, coverage, alarms = promises(make, True, seeds, copies=5)
    assert accuracy > before  # the weights of the heads are honest, too
    assert abs(confidence - accuracy) < 0.1
    assert abs(coverage - 0.9) < 0.06
    assert abs(alarms - 0.05) < 0.045


@pytest.mark.parametrize("make", [IKFD, IKQD, PCVM])
def test_single_models_keep_their_promises_with_groups(make):
    def calibrated():
        landmarks = {"landmarks": "stratified", "n_landmarks": 40, "random_state": 0}
        return make("manhattan", calibrate=True, **landmarks)

    alone = promises(calibrated, False, range(3))[2]
    _, _, coverage, alarms = promises(calibrated, True, range(3))
    assert alone < 0.87
    assert abs(coverage - 0.9) < 0.06
    assert abs(alarms - 0.05) < 0.045


def test_a_group_counts_as_one_held_out_object():
    X, y, groups = near_copies(0)
    pooled = KreinClassifier("manhattan")
    for clf in (pooled, IKFD("manhattan", calibrate=True), PCVM("manhattan", calibrate=True)):
        assert clf.fit(X, y, groups=groups).model_.reference.smallest == pytest.approx(1 / 121)
    assert pooled.model_.cascade.n_seen == 120


@pytest.mark.parametrize(
    "clf",
    [KreinClassifier("manhattan"), PCVM("manhattan", calibrate=True, random_state=0)],
    ids=["krein", "pcvm"],
)
def test_objects_that_are_groups_of_their_own(clf):
    X, y, _ = near_copies(0, n=90, copies=2)
    alone = clf.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(clf.fit(X, y, groups=np.arange(270)).predict_proba(X), alone)


def test_results_depend_neither_on_the_order_nor_on_the_names_of_groups():
    X, y, groups = near_copies(1, n=40, copies=2)
    new, _ = draw(50, np.random.default_rng(2))
    names = np.array([f"group {(7 * g) % 40}" for g in groups])
    order = np.random.default_rng(3).permutation(len(y))
    found = KreinClassifier("manhattan", random_state=0).fit(X, y, groups=groups)
    other = KreinClassifier("manhattan", random_state=0)
    other.fit(X[order], y[order], groups=names[order])
    np.testing.assert_allclose(other.predict_proba(new), found.predict_proba(new), rtol=1e-8)
    np.testing.assert_allclose(other.novelty(new), found.novelty(new), rtol=1e-9)


def test_groups_of_objects_on_a_cluster():
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    X, y, groups = near_copies(2, n=80, copies=2)
    here = KreinClassifier("manhattan").fit(X, y, groups=groups)
    with distributed.Client(n_workers=1, processes=False, dashboard_address="127.0.0.1:0"):
        chunks = da.from_array(X, chunks=(50, 2))
        there = KreinClassifier("manhattan").fit(chunks, y, groups=groups)
    np.testing.assert_array_equal(there.predict_proba(X), here.predict_proba(X))
    np.testing.assert_array_equal(there.novelty(X), here.novelty(X))


def test_folds_keep_groups_together_and_every_class_in_training():
    rng = np.random.default_rng(0)
    values, codes = rng.normal(size=(200, 5)), rng.integers(0, 4, size=200)
    groups = rng.integers(0, 30, size=200)  # of several classes
    groups[codes == 3] = 77  # all of one class
    folds = dealt_folds(values, codes, None, groups=groups)
    assert (folds[codes == 3] == -1).all()
    held = folds >= 0
    for group in np.unique(groups[held]):
        assert len(set(folds[held & (groups == group)])) == 1
    for fold in range(folds.max() + 1):
        assert set(codes[folds != fold]) == {0, 1, 2, 3}
    order = rng.permutation(200)
    again = dealt_folds(values[order], codes[order], None, groups=groups[order])
    np.testing.assert_array_equal(again, folds[order])


def test_each_group_has_the_weight_of_one_object():
    groups = np.array([0, 0, 0, 3, 4, 4])
    np.testing.assert_allclose(shares_of_groups(groups, None), [1 / 3, 1 / 3, 1 / 3, 1, 0.5, 0.5])
    weights = np.array([4.0, 1.0, 1.0, 0.5, 1.0, 1.0])  # four copies, and half an object
    total = np.bincount(groups, weights=weights * shares_of_groups(groups, weights))
    np.testing.assert_allclose(total[[0, 3, 4]], [1, 0.5, 1])
    assert shares_of_groups(np.arange(3), None) is None


def test_look_zero_learns_nothing_from_copies_with_random_labels():
    rng = np.random.default_rng(0)
    stems = ["".join(rng.choice(list("abcdefghijklmnop"), size=30)) for _ in range(90)]
    words = [stem[:i] + "x" + stem[i + 1 :] for stem in stems for i in (3, 9, 15, 21)]
    groups = np.repeat(np.arange(0, 360, 4), 4)
    everyone, measure = np.arange(360), get_measure("levenshtein")
    for n_classes in (2, 150):  # by logistic regression, and by neighbours
        y = np.repeat(rng.integers(0, 2, size=90), 4)
        data = open_data(words, y, measure=measure)
        accuracy = []
        for held_together in (groups, everyone):
            fit = fit_features(data, measure, y, None, n_classes, everyone, held_together)
            accuracy.append((fit.scores[:, :2].argmax(axis=1) == y).mean())
        assert accuracy[1] > 0.95
        assert accuracy[0] < 0.7


def test_scikit_learn_passes_groups_on():
    X, y, groups = near_copies(0, n=60, copies=2)
    clf = IKFD("manhattan", calibrate=True)
    with sklearn.config_context(enable_metadata_routing=True):
        clf.set_fit_request(groups=True)
        found = cross_validate(
            clf, X, y, params={"groups": groups}, cv=GroupKFold(3), return_estimator=True
        )
    for fitted in found["estimator"]:
        assert fitted.model_.reference.smallest == pytest.approx(1 / 41)


def test_classes_in_a_single_group():
    X, y, _ = near_copies(0, n=30)
    with pytest.warns(UserWarning, match="every class is in a single group"):
        KreinClassifier("manhattan").fit(X, y, groups=y)
    groups = np.where(y == 0, 0, np.arange(len(y)))
    clf = KreinClassifier("manhattan").fit(X, y, groups=groups)
    assert 0 not in clf.model_.reference.codes  # never held out, but learned
    assert set(clf.predict(X)) == {0, 1, 2}


def test_what_is_refused():
    X, y, groups = near_copies(0, n=30)
    with pytest.raises(ValueError, match="one group per object, 120 in all"):
        KreinClassifier("manhattan").fit(X, y, groups=groups[1:])
    with pytest.raises(ValueError, match="object 1 has no group"):
        check_groups(["a", None, "b"], 3)
    with pytest.raises(ValueError, match="set calibrate=True"):
        IKFD("manhattan").fit(X, y, groups=groups)
