"""Look zero: the features of the objects, pooled with the measure, and predictions without it."""

import dataclasses
import pickle
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import issparse
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import krein
from krein import KreinClassifier
from krein.core.cascade import pooled
from krein.datasets import make_protein_families
from krein.estimators import lookzero
from krein.estimators.folds import equal_on_purpose, folds_in_order
from krein.measures import available, get_measure
from krein.measures.registry import measure_class
from krein.measures.series import _Elastic
from krein.model.heads import FeatureHead, NeighbourHead

SERIES = [name for name in available() if issubclass(measure_class(name), _Elastic)]


@pytest.fixture(scope="module")
def families():
    X, y = make_protein_families(260, divergence=0.6, random_state=0)
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def fitted(families):
    X, y, _, _ = families
    return KreinClassifier("smith-waterman", n_landmarks=30).fit(X, y)


@pytest.fixture(scope="module")
def plain(families):
    """The same model without features."""
    X, y, _, _ = families
    return KreinClassifier("smith-waterman", n_landmarks=30, features=None).fit(X, y)


@pytest.fixture(scope="module")
def dear(families):
    """A model that compares only some of the objects."""
    X, y, _, _ = families
    return KreinClassifier("smith-waterman", n_landmarks=30, price=3e-3).fit(X, y)


def test_features_are_a_head_of_the_pool(fitted, plain, families):
    _, _, new, true = families
    assert isinstance(fitted.model_.look_zero, FeatureHead)
    assert plain.model_.look_zero is None
    assert len(plain.model_.heads) == len(fitted.model_.heads) - 1
    assert plain.model_.look_names == ("first look", "second look")
    losses = [log_loss(true, clf.predict_proba(new)) for clf in (fitted, plain)]
    assert losses[0] < losses[1] + 0.05


def test_certain_objects_are_not_compared(dear, families):
    new = families[2]
    P = dear.predict_proba(new)
    zero, cascade = dear.model_.look_zero, dear.model_.cascade
    look = cascade.looks[0]
    alone = cascade.bounded(pooled(look.weights, [zero.to_log_proba(zero.scores(new))]))
    sure = np.exp(alone.max(axis=1)) >= look.enough
    assert 0 < sure.sum() < len(new)
    np.testing.assert_allclose(P[sure], np.exp(alone[sure]), rtol=1e-12)
    assert dear.last_comparisons_ < len(new) * 30
    assert dear.last_comparisons_ >= 30 * (~sure).sum()
    # novelty compares all objects, and labels and probabilities stay the same
    found = dear.assess(new)
    np.testing.assert_array_equal(found["probabilities"], P)
    assert dear.last_comparisons_ >= 30 * len(new)


def test_without_a_price_everything_is_compared(families):
    X, y, new, _ = families
    free = KreinClassifier("smith-waterman", n_landmarks=30, price=0).fit(X, y)
    free.predict(new)
    assert free.last_comparisons_ >= 30 * len(new)


@pytest.mark.parametrize("price", [1e-4, 0.05])
def test_explanations_add_up(families, price):
    X, y, new, _ = families
    clf = KreinClassifier("smith-waterman", n_landmarks=30, price=price).fit(X, y)
    for why, one in zip(clf.explain(new), new, strict=True):
        total = why.baseline + why.contributions.sum() + why.from_features + why.evidence
        assert abs(total - why.score) < 1e-9 * (1 + np.abs(why.contributions).sum())
        for share in why.features:
            a, b = share.places[0]
            assert one[a:b] == share.name.strip("^$")
        assert why.along.shape == (len(one),)
        assert abs(why.along.sum() - why.from_features) < 1e-9
        assert not (why.sure and why.contributions.any())


def test_the_worth_of_heads_and_looks_is_that_of_the_model(dear, plain, tmp_path):
    worth, model = dear.worth_, dear.model_
    assert [head.name for head in worth.heads] == ["features", "ikfd", "ikqd", "pcvm"]
    pool = model.cascade.looks[1].weights
    np.testing.assert_array_equal([head.weight for head in worth.heads], pool)
    zero, first, second = worth.looks
    assert tuple(look.name for look in worth.looks) == model.look_names
    assert (zero.share, zero.comparisons) == (1.0, 0.0)
    assert 0 < first.share < 1
    assert first.comparisons == pytest.approx(30 * first.share)
    k = model.second_look.known.n_candidates
    assert second.comparisons == pytest.approx(30 * first.share + k * second.share)
    assert second.comparisons == dear.comparisons_
    # without features, the other heads have the same scores, and there is no look zero
    without = plain.worth_
    for with_features, alone in zip(worth.heads[1:], without.heads, strict=True):
        assert with_features.alone == alone.alone
    assert without.looks[0].log_loss == worth.heads[0].without
    assert [look.name for look in without.looks] == ["first look", "second look"]
    dear.save(tmp_path / "m.krein")
    assert krein.load(tmp_path / "m.krein").worth_ == worth


def test_a_useless_head_is_worth_nothing(families):
    X, y, _, _ = families
    shuffled = np.random.default_rng(0).permutation(y)
    worth = KreinClassifier("smith-waterman", n_landmarks=30).fit(X, shuffled).worth_
    for head in worth.heads:
        assert head.without < worth.looks[-1].log_loss + 0.02
    lone = KreinClassifier("smith-waterman", n_landmarks=30, features=None, neighbours=0)
    assert [look.name for look in lone.fit(X, y).worth_.looks] == ["first look"]


def test_a_file_keeps_the_features(fitted, families, tmp_path):
    fitted.save(tmp_path / "m.krein")
    again, light = (
        load(tmp_path / "m.krein") for load in (krein.load, partial(krein.load, only_model=True))
    )
    expected = fitted.predict_proba(families[2])
    np.testing.assert_array_equal(again.predict_proba(families[2]), expected)
    np.testing.assert_array_equal(light.predict_proba(families[2]), expected)
    assert again.features == "auto"


def test_precomputed_values_have_no_features():
    D = np.abs(np.arange(60.0)[:, None] - np.arange(60.0))
    clf = KreinClassifier("precomputed-distance").fit(D, np.arange(60) // 30)
    assert clf.model_.look_zero is None


def test_a_wrong_choice_of_features_is_refused(families):
    X, y, _, _ = families
    with pytest.raises(ValueError, match="features must be 'auto', None or a cl"):
        KreinClassifier("smith-waterman", features="n-grams").fit(X, y)
    with pytest.raises(ValueError, match="with predict_proba"):
        KreinClassifier("smith-waterman", features=LinearSVC()).fit(X, y)


# -- the user's own classifier ---------------------------------------------------------------------


def of_letters():
    return make_pipeline(
        TfidfVectorizer(analyzer="char", lowercase=False), LogisticRegression(tol=1e-6)
    )


@pytest.fixture(scope="module")
def own(families):
    X, y, _, _ = families
    return KreinClassifier("smith-waterman", n_landmarks=30, features=of_letters()).fit(X, y)


def test_a_classifier_of_the_user_is_a_head_of_the_pool(own, plain, families):
    X, y, new, true = families
    assert not hasattr(own.features, "classes_")  # it was cloned
    zero = own.model_.look_zero
    alone = of_letters().fit(X, y)
    order = np.argsort(X, kind="stable")  # the order of the rows does not matter
    np.testing.assert_allclose(
        zero.scores(new), np.maximum(alone.predict_log_proba(new), np.log(1e-6)), atol=0.01
    )
    P = own.predict_proba(new)
    assert log_loss(true, P) < log_loss(true, plain.predict_proba(new)) + 0.05
    again = clone(own).fit(X[order], y[order])
    np.testing.assert_allclose(again.predict_proba(new), P, atol=1e-9)
    for why in own.explain(new[:5]):
        total = why.baseline + why.contributions.sum() + why.from_features + why.evidence
        assert abs(total - why.score) < 1e-9 * (1 + np.abs(why.contributions).sum())


def test_a_classifier_of_the_user_is_pickled_but_not_saved(own, families, tmp_path):
    again = pickle.loads(pickle.dumps(own))
    np.testing.assert_array_equal(again.predict_proba(families[2]), own.predict_proba(families[2]))
    (tmp_path / "m.krein").write_text("precious")
    with pytest.raises(TypeError, match=r"your own Pipeline.*pickle or joblib, or fit it with"):
        own.save(tmp_path / "m.krein")
    assert (tmp_path / "m.krein").read_text() == "precious"
    assert own.get_params()["features__logisticregression__tol"] == 1e-6


def test_a_classifier_learns_from_weights_and_any_objects():
    """Vectors have no built-in features, but a classifier may take them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    flipped = rng.random(300) < 0.3
    X[:, 0] += 6 * (y ^ flipped)
    w = np.where(flipped, 1e-3, 1.0)  # wrong labels hardly count
    heads = [
        KreinClassifier("manhattan", features=one, n_landmarks=20)
        .fit(X, y, sample_weight=w)
        .model_.look_zero
        for one in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression()))
    ]
    for head in heads:
        assert np.exp(head.to_log_proba(head.scores(np.array([[6.0, 0, 0]]))))[0, 1] > 0.95


def test_held_out_scores_are_from_models_without_the_object():
    """A classifier that remembers its training objects must not be trusted for that."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)  # no pattern
    clf = KreinClassifier(
        "manhattan", features=KNeighborsClassifier(1), n_landmarks=20, neighbours=0
    ).fit(X, y)
    P = clf.predict_proba(rng.normal(size=(200, 3)))
    assert np.abs(P - 0.5).max() < 0.25


def test_folds_are_dealt_without_regard_to_the_classes():
    """Else, models without a fold would know how many objects of each class are in it."""
    rng = np.random.default_rng(0)
    place, groups = rng.permutation(90)[:60], rng.integers(0, 50, 90)
    codes, others = rng.integers(0, 3, 90), rng.integers(0, 3, 90)
    folds = folds_in_order(codes, place, groups)
    np.testing.assert_array_equal(folds, folds_in_order(others, place, groups))
    for group in groups[place]:
        assert len(set(folds[groups[place] == group])) == 1
    assert np.bincount(folds).max() < 0.2 * 90
    # but one of two objects of a class stays
    rare = np.zeros(90, dtype=int)
    same = np.flatnonzero(folds == folds[0])
    rare[place[same[groups[place[same]] != groups[place[0]]][:1]]] = rare[place[0]] = 1
    folds = folds_in_order(rare, place, groups)
    assert len(set(folds[rare[place] == 1])) == 2


DISTINCT = ["".join(word) for word in np.random.default_rng(0).choice(list("abcdef"), (40, 7))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("X", "y", "groups"),
    [
        (DISTINCT, np.arange(40) < 1, None),
        (DISTINCT[:2], [0, 1], None),
        (DISTINCT[:3], [0, 1, 1], None),
        (DISTINCT[:2] * 12, [0, 1] * 12, None),
        (["abc"] * 20, [0, 1] * 10, None),
        (DISTINCT, [0, 1] * 20, [0, 1] * 20),
        (DISTINCT, [0, 1] * 20, [0] * 40),
    ],
)
def test_a_single_class_cannot_be_learned_from(X, y, groups):
    clf = KreinClassifier("levenshtein").fit(X, np.asarray(y), groups=groups)
    np.testing.assert_allclose(clf.predict_proba(X[:2]).sum(axis=1), 1)


@pytest.mark.parametrize("name", ["strings", "series"])
def test_results_do_not_depend_on_the_order_of_the_rows(name, families):
    X, y, new, _ = families
    if name == "series":
        rng = np.random.default_rng(0)
        y, X = np.arange(80) % 2, []
        for c in y:
            X.append(np.sin(np.arange(30) * (0.3 + 0.1 * c)) + rng.normal(size=30))
        new = X[:5]
    measure = "dtw" if name == "series" else "smith-waterman"
    order = np.random.default_rng(1).permutation(len(y))
    first = KreinClassifier(measure, n_landmarks=10).fit(list(X), y)
    second = KreinClassifier(measure, n_landmarks=10).fit([X[i] for i in order], y[order])
    a, b = first.model_.look_zero, second.model_.look_zero
    np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(a.bias, b.bias)
    np.testing.assert_allclose(first.predict_proba(new), second.predict_proba(new), atol=1e-7)


def series(n_channels, ragged, n=36):
    """Series of two frequencies, as (times, channels)."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(n):
        t = np.arange(rng.integers(17, 24) if ragged else 20)[:, None]
        wave = np.sin((0.4 + 0.5 * (i % 2)) * t + rng.uniform(0, 6, n_channels))
        found.append(wave + rng.normal(size=wave.shape))
    return found if ragged else np.stack(found)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("name", SERIES)
def test_features_see_what_the_measure_sees(name, ragged):
    """Both layouts, with equal and different lengths, give the same model of series."""
    X, y = series(2, ragged), np.arange(36) % 2
    turned = [x.T for x in X] if ragged else X.swapaxes(1, 2)
    found = []
    for objects, layout in ((X, "times-channels"), (turned, "channels-times")):
        clf = KreinClassifier(name, measure_params={"layout": layout}, n_landmarks=6)
        clf.fit(objects[:30], y[:30])
        (why,) = clf.explain(objects[30:31])
        zero = clf.model_.look_zero
        scores = None if zero is None else zero.scores(clf.model_.measure.contents(objects))
        found.append((clf.predict_proba(objects), clf.comparisons_, scores, why.along))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


class Seen(LogisticRegression):
    """A classifier of lengths that records what it was given."""

    shapes: ClassVar = []

    def fit(self, X, y):
        return super().fit(self.lengths(X), y)

    def predict_proba(self, X):
        return super().predict_proba(self.lengths(X))

    def lengths(self, X):
        self.shapes.append({np.shape(one) for one in X})
        return np.array([[np.size(one)] for one in X])


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("n_channels", [0, 1, 3])
def test_a_classifier_gets_series_as_they_were_given(n_channels, ragged):
    X, y = series(max(n_channels, 1), ragged), np.arange(36) % 2
    if n_channels == 0:  # one axis
        X = [x[:, 0] for x in X] if ragged else X[:, :, 0]
    else:
        X = [x.T for x in X] if ragged else X.swapaxes(1, 2)
    Seen.shapes.clear()
    clf = KreinClassifier("dtw", n_landmarks=6, features=Seen()).fit(X, y)
    clf.predict(X)
    given = {np.shape(one) for one in X}
    assert Seen.shapes
    assert all(some <= given for some in Seen.shapes)


def test_features_are_the_same_from_files_and_clusters(families, tmp_path):
    bag = pytest.importorskip("dask.bag")
    X, y, new, _ = families
    path = tmp_path / "families.fasta"
    path.write_text("".join(f">{i}\n{x}\n" for i, x in enumerate(X)))
    here, *others = (
        KreinClassifier("smith-waterman", landmarks=np.arange(0, 200, 20)).fit(objects, y)
        for objects in (list(X), path, bag.from_sequence([str(x) for x in X], npartitions=3))
    )
    for there in others:
        a, b = here.model_.look_zero, there.model_.look_zero
        np.testing.assert_array_equal(a.weights, b.weights)
        np.testing.assert_array_equal(a.features.columns, b.features.columns)
        np.testing.assert_array_equal(here.predict_proba(list(new)), there.predict_proba(list(new)))


def test_rotated_features_give_the_same_scores(families, monkeypatch):
    """One coordinate per object instead of one per n-gram: the same logistic regression."""
    X, y, new, _ = families
    monkeypatch.setattr(lookzero, "STRENGTH", 30.0 * np.sqrt(len(X)))
    found = []
    for most in (lookzero.MOST_ROTATED, 0):
        monkeypatch.setattr(lookzero, "MOST_ROTATED", most)
        clf = KreinClassifier("smith-waterman", n_landmarks=10).fit(X, y)
        zero = clf.model_.look_zero
        found.append(zero.to_log_proba(zero.scores(new)))
    np.testing.assert_allclose(np.exp(found[0]), np.exp(found[1]), atol=0.02)


@pytest.fixture(scope="module")
def species():
    """150 species of DNA, four sequences each, and one more of each that is new."""
    rng = np.random.default_rng(0)
    ancestors = rng.integers(0, 4, (150, 90))

    def evolve():
        mutated = np.where(
            rng.random(ancestors.shape) < 0.04, rng.integers(0, 4, (150, 90)), ancestors
        )
        return ["".join("ACGT"[i] for i in row) for row in mutated]

    old = [evolve() for _ in range(4)]
    return [one for part in old for one in part], np.tile(np.arange(150), 4), evolve()


@pytest.fixture(scope="module")
def of_species(species):
    """A model with the head that is used if there are many classes."""
    X, y, _ = species
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookzero, "MOST_WORK", 0.0)
        return KreinClassifier("levenshtein", n_landmarks=20).fit(X, y)


def test_many_classes_are_judged_by_the_most_similar_objects(of_species, species, tmp_path):
    X, y, new = species
    clf, zero = of_species, of_species.model_.look_zero
    assert isinstance(zero, NeighbourHead)
    scores = zero.scores(new)
    assert (scores.argmax(axis=1) == np.arange(150)).mean() > 0.95
    # the nearest by the cosine of the features, one pair at a time
    F = zero.features(X)
    S = (zero.features(new) @ F.T).toarray()
    nearest = y[S.argmax(axis=1)]
    assert (nearest == scores.argmax(axis=1)).mean() > 0.95
    P = clf.predict_proba(new)
    assert (P.argmax(axis=1) == np.arange(150)).mean() > 0.95
    clf.save(tmp_path / "m.krein")
    np.testing.assert_array_equal(
        krein.load(tmp_path / "m.krein", only_model=True).predict_proba(new), P
    )
    for why in clf.explain(new[:5]):
        total = why.baseline + why.contributions.sum() + why.from_features + why.evidence
        assert abs(total - why.score) < 1e-9 * (1 + np.abs(why.contributions).sum())


@pytest.fixture(scope="module")
def small_classes():
    """Probabilities of new strings of 40 classes, each with five known ones, and the classes."""
    rng = np.random.default_rng(0)
    letters, C = np.array(list("ACDEFGHIKLMNPQRSTVWY")), 40
    ancestors = rng.integers(0, 20, (C, 40))

    def evolve(n):
        drawn = rng.random((n, C, 40)) < 0.6
        rows = np.where(drawn, rng.integers(0, 20, drawn.shape), ancestors).reshape(-1, 40)
        return ["".join(row) for row in letters[rows]], np.tile(np.arange(C), n)

    (X, y), (new, true) = evolve(5), evolve(8)
    measure = get_measure("levenshtein")
    head = lookzero.fit_alone(measure, X, y, C)
    P = np.exp(head.to_log_proba(head.scores(new)))
    return P, true


def test_small_classes_are_recognised(small_classes):
    """A held-out object must not be less probable because its own class lacks it."""
    P, true = small_classes
    assert (P.argmax(axis=1) == true).mean() > 0.3
    assert log_loss(true, P) < 0.8 * np.log(40)


def test_small_classes_are_recognised_with_confidence(small_classes):
    P, true = small_classes
    accuracy = (P.argmax(axis=1) == true).mean()
    assert abs(P.max(axis=1).mean() - accuracy) < 0.1


@pytest.mark.parametrize(("n_classes", "size"), [(40, 5), (11, 13), (3, 50)])
def test_classes_of_equal_size_lose_equally_many_objects_in_a_fold(n_classes, size):
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(n_classes), size))
    everyone = np.arange(len(codes))
    folds = folds_in_order(codes, everyone, everyone)
    table = np.zeros((n_classes, folds.max() + 1), dtype=int)
    np.add.at(table, (codes, folds), 1)
    assert (np.ptp(table, axis=0) <= 1).all()
    assert table.sum(axis=0).min() > 0


@pytest.mark.parametrize("n_classes", [2, 11, 40])
def test_sizes_that_vary_by_chance_are_not_equal_on_purpose(n_classes):
    rng = np.random.default_rng(0)
    draws = rng.multinomial(15 * n_classes, np.full(n_classes, 1 / n_classes), size=1000)
    assert np.mean([equal_on_purpose(sizes) for sizes in draws]) <= 0.02


@pytest.mark.parametrize("groups", [np.arange(30), np.arange(30) // 4])
def test_sizes_do_not_count_an_objects_own_group(groups):
    rng = np.random.default_rng(0)
    codes, weights, place = rng.integers(0, 4, 30), rng.integers(1, 4, 30) / 3, np.arange(5, 25)
    found = lookzero.LabelsInFolds(codes, weights, 4, groups, place).sizes_without()
    for row, i in zip(found, place, strict=True):
        others = groups != groups[i]
        np.testing.assert_allclose(row, np.bincount(codes[others], weights[others], 4))


def test_more_than_a_hundred_classes_of_images_have_a_look_zero():
    rng = np.random.default_rng(0)
    kinds = rng.random((110, 8, 8))
    y = np.tile(np.arange(110), 6)
    X = kinds[y] + 0.15 * rng.normal(size=(len(y), 8, 8))
    new = kinds + 0.15 * rng.normal(size=kinds.shape)
    measure = get_measure("tangent")
    head = lookzero.fit_alone(measure, measure.check(X), y, 110)
    scores = head.scores(measure.check(new))
    assert (scores.argmax(axis=1) == np.arange(110)).mean() > 0.8


def test_images_are_judged_by_their_edges(tmp_path):
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X, y, new, true = X[:300], y[:300], X[300:400], y[300:400]
    clf = KreinClassifier("tangent").fit(X, y)
    plain = KreinClassifier("tangent", features=None).fit(X, y)
    losses = [log_loss(true, one.predict_proba(new)) for one in (clf, plain)]
    assert losses[0] < losses[1]
    for why in clf.explain(new[:5]):
        total = why.baseline + why.contributions.sum() + why.from_features + why.evidence
        assert abs(total - why.score) < 1e-9 * (1 + np.abs(why.contributions).sum())
        assert all(share.name.startswith("edges in rows") for share in why.features)
    clf.save(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein", only_model=True)
    np.testing.assert_array_equal(again.predict_proba(new), clf.predict_proba(new))
    with pytest.raises(ValueError, match="9 × 9 pixels cannot be compared with images of 8 × 8"):
        clf.predict(np.zeros((1, 81)))


@pytest.fixture(scope="module")
def similar(of_species):
    """The head for many classes, of objects that stand for one to three others."""
    zero = of_species.model_.look_zero
    numbers = np.random.default_rng(1).integers(1, 4, len(zero.codes))
    return dataclasses.replace(zero, numbers=numbers / 3)  # sums of thirds are rounded


@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_held_out_object_is_not_its_own_neighbour(similar, size):
    """Leaving out a group gives the same scores as a head that never knew its objects."""
    F, N = similar.known, len(similar.codes)
    groups = np.arange(N) // size  # also of several classes
    for i in (0, 7, N - 1):
        others = np.flatnonzero(groups != groups[i])
        part = NeighbourHead.of(
            similar.features,
            F[others],
            similar.codes[others],
            similar.numbers[others],
            150,
            similar.directions,
        )
        without = groups[[i]], groups
        expected = part.evidence(part.nearest(F[[i]]), 0.1)
        found = similar.evidence(similar.nearest(F[[i]], without), 0.1)
        np.testing.assert_allclose(found, expected, atol=1e-4)
        np.testing.assert_allclose(similar.sizes_without(*without), [part.sizes])
        # how common n-grams are is that of all objects, whoever is held out
        smoothing = similar._smoothing
        vars(part)["_smoothing"] = smoothing
        np.testing.assert_allclose(
            similar.profile_scores(F[[i]], without), part.profile_scores(F[[i]]), rtol=1e-9
        )


def test_a_class_whose_objects_are_all_left_out_is_empty(similar):
    F, codes = similar.known, similar.codes
    i = np.flatnonzero(codes == codes[0])
    assert (similar.sizes_without(codes[i], codes)[:, codes[0]] == 0).all()
    found = similar.profile_scores(F[i], (codes[i], codes))
    assert (found[:, codes[0]] <= found.min(axis=1)).all()


def test_profiles_are_sums_over_the_n_grams_of_an_object(similar):
    """One n-gram and one class at a time."""
    F, grams = similar.known.toarray(), similar.features
    x = grams(["ACGTACGATTTACCAGGACT"])
    alpha, N = 1e-4, len(F)
    found = similar.profile_scores(x)[0]
    expected = np.zeros(150)
    constant = 0.0
    for w in x.indices:
        prior = alpha * ((F[:, w] > 0).sum() + 0.5) / (N + 1)
        constant += grams.rarity[w] * np.log(prior)
        for c in range(150):
            own = similar.codes == c
            m, n = similar.numbers[own] @ (F[own, w] > 0), similar.numbers[own].sum()
            expected[c] += grams.rarity[w] * np.log((m + prior) / (n + alpha))
    np.testing.assert_allclose(found, expected - constant, rtol=1e-6)
    assert np.ptp(found) > 1


def test_a_weight_counts_as_that_many_similar_objects(similar):
    """Fewer than are asked for, so that repetitions do not push others out."""
    F, some = similar.known, np.arange(0, len(similar.codes), 60)
    numbers = (3 * similar.numbers[some]).round().astype(int)
    codes = similar.codes[some] % 4
    once = NeighbourHead.of(
        similar.features, F[some], codes, numbers.astype(float), 4, similar.directions
    )
    many = np.repeat(np.arange(len(some)), numbers)
    repeated = NeighbourHead.of(
        similar.features, F[some[many]], codes[many], np.ones(len(many)), 4, similar.directions
    )
    x = F[1:30]
    np.testing.assert_allclose(once.sizes, repeated.sizes)
    found = []
    for head in (once, repeated):
        near = head.nearest(x)
        near = dataclasses.replace(near, apart=np.ones_like(near.apart))  # only votes count
        found.append(head.evidence(near, 1.0))
    np.testing.assert_allclose(log_softmax(found[0], axis=1), log_softmax(found[1], axis=1))


def test_features_find_candidates(species):
    """Values to four landmarks cannot tell 90 classes apart, but n-grams can."""
    X, y, new = species
    X, y, new = [x for x, c in zip(X, y, strict=True) if c < 90], y[y < 90], new[:90]
    clf = KreinClassifier("levenshtein", n_landmarks=4, neighbours=5).fit(X, y)
    plain = KreinClassifier("levenshtein", n_landmarks=4, neighbours=5, features=None).fit(X, y)
    shares = []
    for model in (clf.model_, plain.model_):
        known = model.second_look.known
        landmarks = [X[i] for i in model.landmarks.indices]
        values = get_measure("levenshtein").block(new, landmarks)
        found, _ = known.candidates(values, model.points(new))
        shares.append((known.codes[found] == np.arange(90)[:, None]).any(axis=1).mean())
    assert shares[0] > 0.95
    assert shares[1] < 0.8


@pytest.mark.parametrize("measure", ["smith-waterman", "dtw"])
def test_points_are_principal_components_of_the_features(measure, families):
    """Orthogonal directions with nearly the largest variance, 1 in total."""
    rng = np.random.default_rng(0)
    X, y, _, _ = families
    if measure == "dtw":
        X = [np.cumsum(rng.normal(size=30)) for _ in range(200)]
    zero = KreinClassifier(measure, n_landmarks=10).fit(X, y).model_.look_zero
    F, W = zero.features(X), zero.directions.astype(float)
    F = zero.features.folded(F)
    F = F.toarray() if issparse(F) else F
    np.testing.assert_allclose(zero.look(X)[1].var(axis=0).sum(), 1.0, rtol=1e-3)
    squared = np.square(W).sum(axis=0)
    np.testing.assert_allclose(W.T @ W, squared[0] * np.eye(64), atol=1e-4 * squared[0])
    found = (F @ W).var(axis=0).sum() / squared[0]
    assert 0.95 < found / np.linalg.eigvalsh(np.cov(F.T, ddof=0))[-64:].sum() < 1 + 1e-6


def test_objects_that_the_head_did_not_learn_from_have_the_same_points(species, monkeypatch):
    X, y, _ = species
    whole = KreinClassifier("levenshtein", n_landmarks=20).fit(X, y % 4).model_.second_look.known
    monkeypatch.setattr("krein.estimators.lookzero.FEATURE_OBJECTS", 300)
    monkeypatch.setattr("krein.estimators.lookzero.AT_ONCE", 7)
    monkeypatch.setattr("krein.estimators.heldout.HELD_OUT_OBJECTS", 100)
    clf = KreinClassifier("levenshtein", n_landmarks=20).fit(X, y % 4)
    known = clf.model_.second_look.known
    assert len(known.points) == len(whole.points)
    own = known.points[:, -clf.model_.look_zero.directions.shape[1] :]
    np.testing.assert_array_equal(own, clf.model_.points([X[i] for i in known.indices]))


def test_the_only_object_of_a_class_is_learned_although_it_is_held_out(families):
    """The mean of the models without each fold would not know its class."""
    X, y = list(families[0]), np.unique(families[1], return_inverse=True)[1]
    X, y = [*X, "MWWCHWMCWHCWMWCHWC"], np.append(y, y.max() + 1)
    N, C = len(y), int(y.max()) + 1
    measure = get_measure("smith-waterman")
    objects = measure.check(X)
    labelled = lookzero.LabelsInFolds(y, np.ones(N), C, np.arange(N), np.array([N - 1]))
    found = lookzero._learned(measure, objects, labelled, "auto")
    assert found is not None
    scores, _ = found[0].look(measure.contents(objects))
    assert scores[-1].argmax() == C - 1
