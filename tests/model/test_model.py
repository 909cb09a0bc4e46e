"""Models alone: novelty, label sets and explanations of every classifier, and files of models."""

from dataclasses import replace

import numpy as np
import pytest

import krein
from krein import IKFD, IKQD, PCVM, IndefiniteKernelPCA, KreinClassifier, NystromMap
from krein.model.landmark_map import LandmarkMap
from krein.model.model import Model
from krein.model.parts import Comparisons


def blobs(n, seed, spread=0.9):
    """Objects of three classes around three of four corners."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    corners = 2.0 * np.array([[0, 0], [1, 0], [0, 1]])
    return corners[y] + spread * rng.normal(size=(n, 2)), y


def distances(X, Z):
    return np.linalg.norm(X[:, None] - Z[None], axis=2)


CALIBRATED = {
    "IKFD": lambda **k: IKFD("precomputed-distance", calibrate=True, **k),
    "IKFD ovr": lambda **k: IKFD("precomputed-distance", calibrate=True, multiclass="ovr", **k),
    "IKQD": lambda **k: IKQD("precomputed-distance", calibrate=True, **k),
    "PCVM": lambda **k: PCVM("precomputed-distance", calibrate=True, **k),
    "PCVM ovr": lambda **k: PCVM("precomputed-distance", calibrate=True, multiclass="ovr", **k),
}
ALL = pytest.mark.parametrize("name", CALIBRATED)
SEEDS = range(4)


@pytest.fixture(scope="module")
def held_out():
    """Novelty and label sets of new objects, from models of several training sets."""
    kept = {}

    def of(name):
        if name not in kept:
            kept[name] = []
            for seed in SEEDS:
                X, y = blobs(400, seed)
                clf = CALIBRATED[name](landmarks=np.arange(0, 400, 16)).fit(distances(X, X), y)
                X_new, y_new = blobs(1500, 1000 + seed)
                kept[name].append((clf, X, distances(X_new, X), y_new))
        return kept[name]

    return of


def test_selected_labels_are_wrong_at_most_as_often_as_allowed():
    """The bound holds in expectation over training sets, so it takes many of them."""
    fdrs = np.array([0.05, 0.1])
    shares, errors = [], []
    for seed in range(25):
        X, y = blobs(400, seed)
        clf = CALIBRATED["IKFD"](landmarks=np.arange(0, 400, 16)).fit(distances(X, X), y)
        X_new, y_new = blobs(500, 1000 + seed)
        D = distances(X_new, X)
        wrong, trusted = clf.predict(D) != y_new, [clf.select(D, fdr) for fdr in fdrs]
        shares.append([wrong[some].sum() / max(1, some.sum()) for some in trusted])
        errors.append(wrong.mean())
    assert np.mean(errors) > 1.5 * fdrs.max()  # so that selection matters
    share, spread = np.mean(shares, axis=0), np.std(shares, axis=0)
    assert (share <= fdrs + 3 * spread / np.sqrt(len(shares))).all()
    assert (share >= fdrs / 2).all()


@ALL
def test_a_list_of_some_labels_contains_no_others(name, held_out):
    clf, _, D, _ = held_out(name)[0]
    labels, trusted = clf.predict(D), clf.select(D, 0.1, labels=[0, 2])
    assert set(labels[trusted]) == {0, 2}
    np.testing.assert_array_equal(clf.select(D, 0.1, labels=[0, 1, 2]), clf.select(D, 0.1))
    with pytest.raises(ValueError, match="'x' is not a class"):
        clf.select(D, labels=["x"])
    with pytest.raises(ValueError, match="novel"):
        clf.select(D, labels=[0], novel=True)
    with pytest.raises(ValueError, match="fdr must be between 0 and 1"):
        clf.select(D, 1.0)


@ALL
def test_novelty_p_values_of_new_objects_are_uniform(name, held_out):
    p = np.concatenate([clf.novelty(D) for clf, _, D, _ in held_out(name)])
    for level in (0.05, 0.2, 0.5, 0.8):
        assert (p <= level).mean() == pytest.approx(level, abs=0.04)


@ALL
def test_label_sets_cover_new_objects(name, held_out):
    overall, each = [], []
    for clf, _, D, y in held_out(name):
        rows = np.arange(len(y))
        overall.append(clf.predict_set(D, 0.9, by_class=False)[rows, y].mean())
        covered = clf.predict_set(D, 0.9)[rows, y]
        each.append([covered[y == c].mean() for c in range(3)])
    assert np.mean(overall) == pytest.approx(0.9, abs=0.02)
    np.testing.assert_allclose(np.mean(each, axis=0), 0.9, atol=0.04)


@ALL
def test_remote_objects_are_novel(name, held_out):
    clf, X, _, _ = held_out(name)[0]
    remote = distances(np.array([[9.0, 9.0], [-9.0, 5.0]]), X)
    np.testing.assert_allclose(clf.novelty(remote), clf.model_.reference.smallest, rtol=1e-12)
    found = clf.assess(remote, coverage=0.9, evidence=1)
    assert found["status"].tolist() == ["novel", "novel"]
    np.testing.assert_array_equal(found["set"], clf.predict_set(remote))
    assert found["why"][0].label == found["label"][0]
    assert clf.last_comparisons_ == 2 * len(clf.landmarks_)


@ALL
def test_held_out_objects_are_not_compared_with_themselves(name):
    """If all objects are landmarks, a held-out object would be nearest to itself."""
    X, y = blobs(90, 0)
    clf = CALIBRATED[name](landmarks="all").fit(distances(X, X), y)
    reference = clf.model_.reference
    assert len(reference.scores) == 90
    apart = distances(X, X[clf.landmarks_])
    apart[clf.landmarks_, np.arange(len(clf.landmarks_))] = np.inf
    nearest = np.sort(apart, axis=1)[:, :3].mean(axis=1)
    np.testing.assert_allclose(np.sort(reference.scores), np.sort(nearest))


@ALL
def test_the_temperature_and_the_reference_come_from_the_same_objects(name, held_out):
    clf, _, _, _ = held_out(name)[0]
    reference = clf.model_.reference
    right = (reference.predicted == reference.codes).mean()
    new = np.mean([clf.score(D, y) for clf, _, D, y in held_out(name)])
    assert right == pytest.approx(new, abs=0.06)


@pytest.mark.parametrize("class_weight", [None, {0: 5.0}])
@pytest.mark.parametrize("make", [IKFD, IKQD, PCVM])
def test_weights_count_objects_in_the_reference_and_class_weights_do_not(make, class_weight):
    X, y = blobs(80, 1)
    weights = np.random.default_rng(0).integers(1, 4, size=80).astype(float)
    clf = make("manhattan", landmarks="all", calibrate=True, class_weight=class_weight)
    found = clf.fit(X, y, sample_weight=weights).model_.reference
    np.testing.assert_allclose(found.weights, weights)
    np.testing.assert_array_equal(found.codes, y)
    found = clf.fit(X, y).model_.reference.weights
    np.testing.assert_allclose(np.ones(80) if found is None else found, 1)


# -- explanations ----------------------------------------------------------------------------------

EXPLAINED = {
    "IKFD": lambda: IKFD("manhattan"),
    "IKFD ovr": lambda: IKFD("manhattan", multiclass="ovr", calibrate=True),
    "IKQD": lambda: IKQD("manhattan", calibrate=True),
    "PCVM": lambda: PCVM("manhattan"),
    "PCVM ovr": lambda: PCVM("manhattan", multiclass="ovr", calibrate=True),
    "PCVM as published": lambda: PCVM("manhattan", solver="paper"),
    "PCVM with basis objects": lambda: PCVM("manhattan", n_basis=30),
    "KreinClassifier": lambda: KreinClassifier("manhattan"),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("two", [False, True], ids=["three classes", "two classes"])
@pytest.mark.parametrize("name", EXPLAINED)
def test_every_classifier_explains_its_labels(name, two, tmp_path):
    X, y = blobs(250, 0)
    y = y % 2 if two else y
    clf = EXPLAINED[name]().set_params(random_state=0).fit(X, y)
    new = blobs(30, 1)[0]
    labels, log_proba = clf.predict(new), clf.predict_log_proba(new)
    reasons = clf.explain(new, n=2)
    for why, label, row, x in zip(reasons, labels, log_proba, new, strict=True):
        total = why.baseline + why.contributions.sum() + why.evidence
        # large contributions of either sign may cancel
        size = max(1.0, np.abs(why.contributions).sum())
        assert total == pytest.approx(why.score, abs=1e-9 * size)
        assert why.label == label
        assert len(why.contributions) == len(clf.landmarks_)
        if name != "KreinClassifier":  # its probabilities are bounded
            assert why.score == pytest.approx(np.sort(row)[-1] - np.sort(row)[-2], abs=1e-9)
            assert why.evidence == 0
        for near in why.nearest:
            assert near.value == pytest.approx(-np.abs(X[near.index] - x).sum())
            assert near.label == y[near.index]


def test_names_of_landmarks_are_part_of_an_explanation():
    words = ["house", "mouse", "haus", "maus"] * 3
    clf = IKFD("levenshtein").fit(words, ["en", "en", "de", "de"] * 3).name_objects(words)
    (why,) = clf.explain(["louse"], n=1)
    assert words[why.nearest[0].index] == why.nearest[0].name
    near = f"nearest: {why.nearest[0].name!r} (en)"
    assert repr(why) == f"<Explanation: en rather than de, log-odds {why.score:.3g}; {near}>"
    assert repr(replace(why, nearest=())).endswith(f"{why.score:.3g}>")


# -- models without their estimator ----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", EXPLAINED)
def test_a_model_from_a_file_gives_the_same_answers(name, tmp_path):
    X, y = blobs(250, 0)
    clf = EXPLAINED[name]().set_params(random_state=0).fit(X, y)
    clf.save(tmp_path / "m.krein")
    model, new = krein.load(tmp_path / "m.krein", only_model=True), blobs(40, 1)[0]
    assert isinstance(model, Model)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function",
                   "rank_labels"):  # fmt: skip
        np.testing.assert_array_equal(getattr(model, method)(new), getattr(clf, method)(new))
    np.testing.assert_array_equal(model.classes, clf.classes_)
    np.testing.assert_array_equal(model.landmarks.indices, clf.landmarks_)
    scores = [[why.score for why in source.explain(new)] for source in (model, clf)]
    assert scores[0] == scores[1]
    if clf.model_.reference is not None:
        np.testing.assert_array_equal(model.novelty(new), clf.novelty(new))
        np.testing.assert_array_equal(model.predict_set(new, 0.8), clf.predict_set(new, 0.8))
        np.testing.assert_array_equal(model.assess(new), clf.assess(new))
    else:
        with pytest.raises(ValueError, match="calibrate=True"):
            model.novelty(new)


@pytest.mark.parametrize(
    "estimator", [NystromMap("manhattan"), IndefiniteKernelPCA("elm", n_components=2)], ids=str
)
def test_a_map_from_a_file_gives_the_same_vectors(estimator, tmp_path):
    X, _ = blobs(100, 0)
    estimator.set_params(random_state=0).fit(X)
    estimator.save(tmp_path / "m.krein")
    found = krein.load(tmp_path / "m.krein", only_model=True)
    assert isinstance(found, LandmarkMap)
    np.testing.assert_array_equal(found.transform(X[:9]), estimator.transform(X[:9]))
    assert found.transform(X[:0]).shape == (0, found.transform(X[:1]).shape[1])


def test_comparisons_are_counted_where_the_caller_says():
    X, y = blobs(200, 0)
    model = IKFD("manhattan", random_state=0).fit(X, y).model_
    run = Comparisons(model.measure)
    model.predict(X[:10], run)
    model.predict_proba(X[:5], run)
    assert run.counter.compared == 15 * len(model.landmarks.indices)


def test_parts_that_do_not_fit_together_are_refused():
    X, y = blobs(200, 0)
    model = IKFD("manhattan", random_state=0).fit(X, y).model_
    model.check()
    with pytest.raises(ValueError, match="does not return 4 probabilities"):
        replace(model, classes=np.arange(4)).check()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda clf, X: clf.predict_set(X, 1.0), "coverage must be between 0 and 1"),
        (lambda clf, X: clf.assess(X, coverage=0.0), "coverage must be between 0 and 1"),
        (lambda clf, X: clf.explain(X, n=0), "at least 1"),
        (lambda clf, X: clf.assess(X, evidence=1.5), "whole number"),
        (lambda clf, X: clf.name_objects(["a"]), "one name for each of 100 objects"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    X, y = blobs(100, 0)
    with pytest.raises(ValueError, match=message):
        call(IKFD("manhattan", calibrate=True).fit(X, y), X[:2])
