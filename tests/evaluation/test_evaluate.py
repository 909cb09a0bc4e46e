"""Evaluating several models together gives the same results with fewer comparisons."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from krein import IKFD, IKQD, PCVM, KreinClassifier
from krein.compare import open_pairs
from krein.core.evidence import VOTERS
from krein.core.ranks import RankAnswers
from krein.estimators.secondlook import N_RANDOM
from krein.evaluation import AVAILABLE, evaluate
from krein.evaluation.heldout import log_losses, reliability
from krein.evaluation.hits import evaluate_hits
from krein.evaluation.result import MAPPED, _as_others, shown_objects

pytestmark = pytest.mark.filterwarnings("ignore:.*have a near-duplicate")  # short words have some

RNG = np.random.default_rng(0)
STEMS = ["stone", "river", "cloud"]


def _word(stem):
    letters = list(stem)
    for _ in range(RNG.integers(1, 4)):
        letters[RNG.integers(len(letters))] = RNG.choice(list("aeioust"))
    return "".join(letters) + "".join(RNG.choice(list("en"), RNG.integers(0, 3)))


LABELS = np.array(STEMS)[np.arange(180) % 3]
WORDS = [_word(stem) for stem in LABELS]
FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def both():
    """The words evaluated by a model and by neighbours."""
    models, options = ["ikfd", "knn"], {"folds": 3, "calibrate": False}
    return evaluate(WORDS, LABELS, models, measure="levenshtein", names=WORDS, **options)


def alone(model, words, labels, n_folds):
    """Return held-out probabilities and the mean number of comparisons, one fit per fold."""
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    words = np.array(words, dtype=object)
    P, evaluations = np.empty((len(words), len(STEMS))), []
    for train, test in folds.split(words, labels):
        model.fit(words[train].tolist(), labels[train])
        P[test] = model.predict_proba(words[test].tolist())
        evaluations.append(model.comparisons_to_fit_)
    return P, np.mean(evaluations)


TOGETHER = {
    "balls": IKFD("elm", random_state=0),
    "all": IKQD("elm", landmarks="all"),
    "calibrated": IKFD("elm", landmarks="random", n_landmarks=12, calibrate=True, random_state=3),
    "grown": IKFD("elm", landmarks="auto", random_state=1),
    "weights": PCVM("elm", landmarks="kmeans", n_landmarks=9, random_state=0),
    "drawn": IKFD("elm", landmarks="stratified", n_landmarks=15, random_state=0),
}
LOOKS = {"all": TOGETHER["all"], "looks": KreinClassifier("elm", n_landmarks=15, price=1e-3)}


# a fit to 120 words holds out enough of them to need random objects
@pytest.mark.parametrize(("models", "n"), [(TOGETHER, 60), (LOOKS, 180)], ids=["heads", "looks"])
def test_probabilities_and_counts_match_each_model_alone(models, n):
    words, labels = WORDS[:n], LABELS[:n]
    found = evaluate(words, labels, models, measure="levenshtein", folds=3)
    for name, model in models.items():
        P, evaluations = alone(clone(model).set_params(measure="levenshtein"), words, labels, 3)
        np.testing.assert_allclose(found.models[name].probabilities, P, atol=1e-9, err_msg=name)
        # an evaluation needs no random objects, which show how near an object is by chance
        random = N_RANDOM * (15 + VOTERS) if name == "looks" else 0
        assert found.models[name].evaluations == round(evaluations) - random
    assert found.pairs.compared <= n * (n + 32) / 2  # half the pairs, once, in strips of 32
    assert "grown" not in models or found.models["grown"].curve is not None


def test_few_pairs_are_compared_unless_a_model_needs_all():
    options = {"measure": "levenshtein", "landmarks": "random", "n_landmarks": 5, "folds": 3}
    found = evaluate(WORDS * 5, np.tile(LABELS, 5), ["ikfd", "pcvm", "logistic"], **options)
    n = 5 * len(WORDS)
    # five landmarks in three folds, half of the pairs of 500 objects for the eigenvalues, and ten
    # candidates for a near-duplicate of each object
    assert found.pairs.compared <= n * 15 + 500 * 540 / 2 + 10 * n
    assert not found.spectrum.exact


@pytest.mark.parametrize("kind", ["precomputed", "precomputed-distance"])
def test_a_matrix_gives_the_same_probabilities_as_cross_validation(kind):
    D = open_pairs("levenshtein", WORDS).block(np.arange(180), np.arange(180))
    X = D if kind == "precomputed-distance" else 10 - D
    model = IKFD(kind, random_state=0)
    P = cross_val_predict(model, X, LABELS, cv=FOLDS, method="predict_proba")
    found = evaluate(X, LABELS, {"m": model}, measure=kind, folds=4)
    np.testing.assert_allclose(found.models["m"].probabilities, P, atol=1e-9)
    assert found.pairs.given
    assert found.pairs.compared == 0
    assert found.spectrum.exact


def test_every_model_by_name_on_similarities_and_distances():
    for measure in ("levenshtein", "smith-waterman"):
        words = [w.upper() for w in WORDS] if measure == "smith-waterman" else WORDS
        words = [w.translate(str.maketrans("OU", "QV")) for w in words[:120]]
        found = evaluate(words, LABELS[:120], AVAILABLE, measure=measure, folds=2)
        for name, model in found.models.items():
            np.testing.assert_allclose(model.probabilities.sum(axis=1), 1, err_msg=name)
            assert model.fold_accuracy.mean() > 0.6, name
            assert model.fold_log_loss.mean() < np.log(3), name
            assert model.predicted.tolist() == [
                found.classes[k] for k in model.probabilities.argmax(axis=1)
            ]


def test_figures_agree_with_scikit_learn(both):
    found, model = both, both.models["ikfd"]
    assert model.right.mean() == np.mean(model.predicted == LABELS)
    losses = [
        log_loss(LABELS[found.folds == k], model.probabilities[found.folds == k]) for k in range(3)
    ]
    np.testing.assert_allclose(model.fold_log_loss, losses)
    assert model.confusion.sum() == 180
    assert model.confusion.trace() == model.right.sum()


def test_the_summary_is_json(both):
    again = json.loads(json.dumps(both.summary(), allow_nan=False))
    assert again["models"]["knn"]["accuracy"]["mean"] > 0.6
    assert again["pairs"]["all"] == 180**2
    assert again["best"] in ("ikfd", "knn")


def test_the_same_seed_gives_the_same_evaluation(both):
    options = {"measure": "levenshtein", "folds": 3, "calibrate": False}
    found = evaluate(WORDS, LABELS, ["ikfd", "knn"], **options)
    np.testing.assert_array_equal(found.map.xy, both.map.xy)
    np.testing.assert_array_equal(
        found.models["ikfd"].probabilities, both.models["ikfd"].probabilities
    )


def test_a_cache_serves_a_second_run(tmp_path):
    options = {"measure": "levenshtein", "folds": 3, "calibrate": False, "cache": tmp_path}
    one = evaluate(WORDS, LABELS, ["ikfd"], **options)
    two = evaluate(WORDS, LABELS, ["ikfd"], **options)
    assert one.pairs.compared > 0
    assert two.pairs.compared == 0
    assert two.pairs.reused == one.pairs.compared
    np.testing.assert_array_equal(
        one.models["ikfd"].probabilities, two.models["ikfd"].probabilities
    )


def test_duplicates_are_found_and_contradictions_counted():
    words = [f"{i:04b}" for i in range(12)] + ["0000", "0000", "0101"]
    labels = ["a", "b"] * 6 + ["a", "b", "b"]
    found = evaluate(words, labels, ["ikfd"], measure="levenshtein", folds=2)
    groups = [group.tolist() for group in found.duplicates.groups]
    assert groups == [[0, 12, 13], [5, 14]]
    assert found.duplicates.conflicting == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": ["svm"]}, "unknown model 'svm'; choose from krein, ikfd"),
        ({"models": []}, "no model to evaluate"),
        ({"models": ["ikfd", "ikfd"]}, "listed twice"),
        ({"names": ["one"]}, "1 names for 180 objects"),
        ({"folds": 61}, "at most the size of the largest class, 60"),
        ({"y": ["x", *LABELS[1:]]}, r"class 'x' has one object \(row 0\)"),
        ({"y": ["x"] * 180}, "contains one: 'x'"),
    ],
)
def test_invalid_evaluations_are_refused(change, message):
    options = {"X": WORDS, "y": LABELS, "models": ["ikfd"], "measure": "levenshtein"} | change
    with pytest.raises(ValueError, match=message):
        evaluate(**options)


def test_an_estimator_of_another_kind_is_refused():
    from sklearn.svm import SVC

    with pytest.raises(TypeError, match="model 'mine' is an SVC"):
        evaluate(WORDS, LABELS, {"mine": SVC()}, measure="levenshtein")


def test_a_class_smaller_than_the_folds_is_in_every_training_set():
    labels = LABELS.copy()
    labels[[0, 1, 2]] = "rare"
    options = {"measure": "levenshtein", "folds": 5, "calibrate": False}
    found = evaluate(WORDS, labels, ["ikfd", "knn"], **options)
    assert "rare" in found.classes
    assert np.isfinite(found.models["ikfd"].probabilities).all()


def test_a_map_of_many_keeps_landmarks_and_errors():
    errors = np.zeros(10_000, dtype=bool)
    errors[::7] = True
    landmarks = np.arange(3, 10_000, 100)
    shown = shown_objects(10_000, landmarks, errors, np.random.default_rng(0))
    assert len(shown) == MAPPED
    assert np.isin(landmarks, shown).all()
    assert np.isin(np.flatnonzero(errors), shown).all()
    everyone_wrong = shown_objects(10_000, landmarks, ~errors, np.random.default_rng(0))
    assert len(everyone_wrong) == MAPPED


def test_a_landmark_is_mapped_like_an_object_that_resembles_it():
    rng = np.random.default_rng(0)
    values = rng.uniform(1, 2, (9, 3))
    rows, landmarks = np.array([1, 2, 4, 5, 7, 8, 9, 11, 12]), np.array([2, 6, 11])
    values[1, 0] = values[7, 2] = 0.0  # to themselves; object 6 is not on the map
    values[5] = values[1] + [1.5, 0.01, 0.01]  # like the first landmark, by the others
    found = _as_others(values, rows, landmarks)
    assert found[1, 0] == values[5, 0]
    changed = np.argwhere(found != values).tolist()
    assert changed == [[1, 0], [7, 2]]


class TestReliability:
    def test_calibrated_probabilities_have_little_error(self):
        p = RNG.uniform(0.5, 1, 20_000)
        P = np.column_stack([p, 1 - p])
        codes = (RNG.uniform(size=20_000) > p).astype(int)
        assert reliability(P, codes).error < 0.02

    def test_the_error_is_the_gap_of_overconfidence(self):
        P = np.tile([0.95, 0.05], (100, 1))
        codes = np.repeat([0, 1], [70, 30])
        assert reliability(P, codes).error == pytest.approx(0.25)

    def test_certainty_falls_into_the_last_bin(self):
        bins = reliability(np.array([[1.0, 0.0]]), np.array([0]))
        assert bins.count[-1] == 1

    def test_log_loss_of_an_impossible_class_is_finite(self):
        assert np.isfinite(log_losses(np.array([[1.0, 0.0]]), np.array([1]))).all()


def test_ranks_are_computed_from_one_model():
    paths = np.array(["land;stone", "water;river", "water;cloud"])[np.arange(180) % 3]
    options = {"measure": "levenshtein", "folds": 3, "calibrate": False}
    found = evaluate(WORDS, paths, ["ikfd"], label_ranks=";", **options)
    first, leaf = found.summary()["ranks"]["ikfd"]
    model = found.models["ikfd"]
    water = model.probabilities[:, 1:].sum(axis=1)
    assert first["nodes"] == 2
    assert first["accuracy"] == np.mean((water > 0.5) == np.char.startswith(paths, "water"))
    assert leaf["accuracy"] == model.right.mean()
    assert leaf["calibration_error"] == pytest.approx(model.reliability.error)
    assert leaf["answered"] == np.mean(model.probabilities.max(axis=1) >= 0.9)
    assert first["answered"] >= leaf["answered"]
    with pytest.raises(ValueError, match="has an empty rank"):
        evaluate(WORDS, np.char.add(LABELS, ";;x"), measure="levenshtein", label_ranks=";")


def test_balanced_weights_are_those_of_the_model():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 3)), rng.normal(1.0, 1.0, (8, 3))])
    y = np.repeat(["many", "few"], [80, 8])
    options = {"measure": "rbf", "folds": 4, "calibrate": False, "landmarks": "all"}
    plain = evaluate(X, y, ["ikfd"], **options).models["ikfd"]
    found = evaluate(X, y, ["ikfd"], class_weight="balanced", **options).models["ikfd"]
    own = {"own": IKFD("elm", class_weight="balanced", landmarks="all", random_state=0)}
    same = evaluate(X, y, own, **options).models["own"]
    np.testing.assert_allclose(found.probabilities, same.probabilities, atol=1e-8)
    assert (found.predicted == "few").sum() > (plain.predicted == "few").sum()


def test_test_objects_are_predicted_by_one_model():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)) + np.repeat([0, 2], 30)[:, None]
    y = np.repeat(["a", "b"], 30)
    new = rng.normal(size=(11, 3)) + 2.0
    truth = np.array(["b"] * 10 + ["a"])
    options = {"measure": "rbf", "calibrate": False, "landmarks": "all"}
    found = evaluate(list(X), y, ["ikfd"], test=(list(new), truth), **options)
    clf = IKFD("rbf", landmarks="all", random_state=0).fit(X, y)
    model = found.models["ikfd"]
    np.testing.assert_allclose(model.probabilities, clf.predict_proba(new), atol=1e-8)
    assert found.labels.tolist() == truth.tolist()
    assert (found.n_train, len(found.names)) == (60, 11)
    assert len(found.map.objects) == 11
    with pytest.raises(ValueError, match="1 of 11 test objects belong to classes without"):
        evaluate(list(X), y, ["ikfd"], test=(list(new), ["b"] * 10 + ["c"]), **options)
    with pytest.raises(ValueError, match="cannot be given for a matrix"):
        evaluate(X @ X.T, y, ["ikfd"], measure="precomputed", test=((X @ X.T)[:2], ["a", "b"]))


def by_hand(P, classes, labels, rank, above=0.9):
    """Return the share of objects that are correct at a rank, and that of unknown ones answered.

    The names of a rank are the first parts of labels that are long enough.
    """
    nodes = sorted({";".join(c.split(";")[:rank]) for c in classes if c.count(";") >= rank - 1})
    Q = np.array(
        [[P[i, [c.startswith(n) for c in classes]].sum() for n in nodes] for i in range(len(P))]
    )
    right, unknown = [], []
    for q, label in zip(Q, labels, strict=True):
        if label.count(";") < rank - 1:
            continue
        true = ";".join(label.split(";")[:rank])
        if true in nodes:
            right.append(nodes[int(q.argmax())] == true)
        else:
            unknown.append(q.max() >= above)
    return np.mean(right), len(right), len(unknown), np.mean(unknown) if unknown else None


def test_objects_are_scored_at_the_ranks_that_their_labels_have():
    paths = np.array(["land;stone", "water;river", "water;cloud"])[np.arange(180) % 3]
    train, test = np.arange(120), np.arange(120, 180)
    labels = paths.copy()
    labels[121:180:9] = "water"  # known to the first rank
    labels[120:180:12] = "land;sand"  # of a class without training objects
    labels[125] = "fire;ash"
    words = [WORDS[i] for i in test]
    options = {"measure": "levenshtein", "label_ranks": ";", "landmarks": "all"}
    found = evaluate(
        [WORDS[i] for i in train], paths[train], ["ikfd"], test=(words, labels[test]), **options
    )
    model = found.models["ikfd"]
    known = np.isin(labels[test], paths)
    assert found.labels.tolist() == labels[test][known].tolist()
    assert found.names == [f"row {i}" for i in np.flatnonzero(known)]
    clf = IKFD("levenshtein", landmarks="all", calibrate=True, random_state=0)
    P = clf.fit([WORDS[i] for i in train], paths[train]).predict_proba(words)
    np.testing.assert_allclose(model.probabilities, P[known], atol=1e-8)
    for told in model.by_rank(";", 0.9):
        right, n, unknown, answered = by_hand(P, clf.classes_.tolist(), labels[test], told["rank"])
        assert (told["objects"], told["unknown"]) == (n, unknown)
        assert told["accuracy"] == pytest.approx(right)
        assert told["answered_unknown"] == answered
    with pytest.raises(ValueError, match="test objects belong to classes without"):
        evaluate(WORDS, paths, ["ikfd"], test=(words, labels[test]), measure="levenshtein")


def below_the_best(P, classes):
    """Return the most probable class with two ranks below the most probable first rank."""
    above, first = np.unique([path.split(";")[0] for path in classes], return_inverse=True)
    summed = np.stack([P[:, first == k].sum(axis=1) for k in range(len(above))], axis=1)
    inside = first == summed.argmax(axis=1)[:, None]
    full = np.char.count(classes.astype(str), ";") == 1
    return classes[np.where(inside & full, P, 0).argmax(axis=1)]


@pytest.mark.parametrize("groups", [None, np.arange(180) // 2])
def test_a_class_of_one_object_is_scored_above_it(groups):
    paths = np.array(["land;stone", "water;river", "water;cloud"])[np.arange(180) % 3]
    paths[[4, 5]] = "water;lake", "fire;ash"  # alone in their class, and in the first rank too
    options = {"measure": "levenshtein", "folds": 2, "groups": groups}
    found = evaluate(WORDS, paths, ["krein", "knn"], label_ranks=";", **options)
    assert len(found.classes) == 5
    for model in found.models.values():
        assert len(model.labels) == 178
        first, leaf = model.by_rank(";", 0.9)
        assert (first["objects"], first["unknown"]) == (179, 1)
        assert (leaf["objects"], leaf["unknown"]) == (178, 2)
        if model.learned_ranks is None:
            best = below_the_best(model.probabilities, model.classes)
            assert leaf["accuracy"] == np.mean(best == model.labels)
        held = model.rank_only
        columns = np.searchsorted(model.classes, held.labels)
        assert held.labels.tolist() == ["water;lake", "fire;ash"]
        assert held.probabilities[[0, 1], columns].tolist() == [0, 0]  # they were not learned
        np.testing.assert_allclose(held.probabilities.sum(axis=1), 1)
    if groups is None:
        with pytest.raises(ValueError, match="class 'fire;ash' has one object"):
            evaluate(WORDS, paths, ["knn"], **options)


def test_a_shorter_label_is_no_answer_at_a_deeper_rank():
    paths = np.array(["land;stone", "water;river", "water"])[np.arange(180) % 3]
    options = {"measure": "levenshtein", "folds": 3, "calibrate": False}
    found = evaluate(WORDS, paths, ["ikfd"], label_ranks=";", **options)
    model = found.models["ikfd"]
    first, leaf = model.by_rank(";", 0.9)
    assert (first["objects"], first["nodes"], leaf["objects"], leaf["nodes"]) == (180, 2, 120, 2)
    full = np.char.count(paths, ";") == 1
    best = below_the_best(model.probabilities, model.classes)
    assert leaf["accuracy"] == np.mean(best[full] == paths[full])
    P = model.probabilities[:, 1:].sum(axis=1)
    assert first["accuracy"] == np.mean((P > 0.5) == np.char.startswith(paths, "water"))


def test_learned_ranks_are_those_that_the_model_answers_with():
    paths = np.array(["land;stone", "water;river", "water;cloud"])[np.arange(180) % 3]
    train, test = np.arange(120), np.arange(120, 180)
    labels = paths[test]
    labels[::9], labels[1::12] = "water", "land;sand"
    words = [WORDS[i] for i in test]
    options = {"measure": "levenshtein", "label_ranks": ";"}
    known = [WORDS[i] for i in train]
    found = evaluate(known, paths[train], ["krein", "knn"], test=(words, labels), **options)
    model = found.models["krein"]
    assert found.models["knn"].learned_ranks is None
    one = KreinClassifier("levenshtein", random_state=0).fit(known, paths[train]).model_
    answers = RankAnswers.of_fields(one.assess(words, ranks=True))
    depths = answers.deepest(0.9, one.novel_below)
    scored = np.isin(labels, paths)
    order = np.concatenate([np.flatnonzero(scored), np.flatnonzero(~scored)])
    stated = model.learned_ranks
    np.testing.assert_array_equal(stated.depths, depths[order])
    np.testing.assert_allclose(stated.probabilities, answers.probabilities[order, :, 0], atol=1e-8)
    for told in model.by_rank(";", 0.9):
        r = told["rank"] - 1
        nodes = np.array(one.taxonomy[r].nodes)[answers.nodes[:, r, 0]]
        own = np.array([";".join(path.split(";")[: r + 1]) for path in labels.tolist()])
        named = np.char.count(labels, ";") >= r
        there = named & np.isin(own, one.taxonomy[r].nodes)
        right = there & (nodes == own)
        assert (told["objects"], told["unknown"]) == (there.sum(), (named & ~there).sum())
        assert told["accuracy"] == pytest.approx(right[there].mean())
        assert told["answered"] == pytest.approx((depths > r)[there].mean())
        assert told["answered_right"] == pytest.approx(right[there & (depths > r)].mean())


def test_hits_of_classes_of_one_object_each_are_refused():
    graph = sparse.csr_matrix(np.ones((4, 4)) - np.eye(4))
    with pytest.raises(
        ValueError, match=r"class 'a' has one object \(row 0\), and so have 3 other"
    ):
        evaluate_hits(graph, list("abcd"), names=list("abcd"), folds=2)
