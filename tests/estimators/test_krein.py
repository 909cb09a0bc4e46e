"""KreinClassifier: what it costs, what it keeps, and where its second look pays."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import log_loss

from krein import IKFD, KreinClassifier, load
from krein.compare import open_pairs
from krein.core.evidence import VOTERS
from krein.core.gaussian import GaussianFamily
from krein.core.moments import weights_of
from krein.core.pcvm.rows import Rows
from krein.core.space import LandmarkSpace
from krein.estimators.firstlook import downdated_scores, with_class_sizes, worthwhile_heads
from krein.estimators.folds import dealt_folds
from krein.estimators.heldout import HeldOut, TrainingSet
from krein.io import open_source
from krein.landmarks import Stratified
from krein.landmarks.random import default_number
from krein.model.heads import LinearHead


def islands(n=600, n_islands=40, seed=0, spread=0.04):
    """Small islands of two classes at random positions: easy by neighbours, hard by landmarks."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(size=(n_islands, 3))
    which = rng.integers(n_islands, size=n)
    X = centres[which] + spread * rng.normal(size=(n, 3))
    return X, (np.arange(n_islands) % 2)[which]


class CountedDistance:
    """Euclidean distance that counts its calls."""

    def __init__(self):
        self.calls = 0
        self.lock = threading.Lock()

    def __call__(self, a, b):
        with self.lock:
            self.calls += 1
        return float(np.linalg.norm(a - b))


DISTANCE = {"kind": "dissimilarity"}


def distances(X, Z):
    return np.linalg.norm(X[:, None] - Z[None], axis=2)


@pytest.fixture(scope="module")
def split():
    X, y = islands()
    return X[:400], y[:400], X[400:], y[400:]


@pytest.fixture(scope="module")
def fitted(split):
    X, y, _, _ = split
    return KreinClassifier("precomputed-distance").fit(distances(X, X), y)


def test_the_second_look_finds_what_landmarks_miss(split, fitted):
    X, y, X_new, y_new = split
    D, D_new = distances(X, X), distances(X_new, X)
    first = KreinClassifier("precomputed-distance", neighbours=0).fit(D, y)
    assert fitted.score(D_new, y_new) > first.score(D_new, y_new) + 0.02
    loss = log_loss(y_new, fitted.predict_proba(D_new))
    assert loss < 0.8 * log_loss(y_new, first.predict_proba(D_new))
    assert fitted.last_comparisons_ < 0.3 * D_new.size


@pytest.mark.parametrize("by_class", [False, True])
def test_held_out_scores_match_a_model_without_the_fold(split, by_class):
    """No head may have seen the objects from which its weight is learned."""
    X, y, _, _ = split
    D = distances(X, X)
    places = np.arange(0, 400, 10)
    space = LandmarkSpace.of(D[np.ix_(places, places)], "dissimilarity")
    rest = np.setdiff1d(np.arange(400), places)
    values = D[:, places]
    whole = GaussianFamily(2, by_class=True).moments(space, space.origin(), values, y)
    model = GaussianFamily(2, shrinkage=0.3, by_class=by_class)
    folds = dealt_folds(values[rest], y[rest], None, whole.weights)
    own = rest[:, None] == places
    numbers = np.ones(len(rest))
    sample = HeldOut(rest, values[rest], y[rest], None, numbers, own, rest, None, folds, False)
    scores = downdated_scores(model, space, whole, sample)
    for fold in np.unique(folds):
        held = rest[folds == fold]
        others = np.setdiff1d(np.arange(400), held)
        moments = model.moments(space, space.origin(), values[others], y[others])
        expected = model.scorer(space, moments)(values[held])
        np.testing.assert_allclose(scores[folds == fold], expected, rtol=1e-6, atol=1e-6)


def test_a_first_look_costs_one_comparison_per_landmark(split):
    X, y, X_new, _ = split
    clf = KreinClassifier("precomputed-distance", neighbours=0).fit(distances(X, X), y)
    clf.predict(distances(X_new, X))
    assert clf.last_comparisons_ == len(X_new) * len(clf.landmarks_)
    assert clf.comparisons_ == len(clf.landmarks_)
    assert clf.model_.second_look is None


@pytest.mark.parametrize("make", [KreinClassifier, IKFD])
def test_few_objects_take_no_more_comparisons_than_all_pairs(split, make):
    X, y, _, _ = split
    measure = CountedDistance()
    clf = make(measure, measure_params=DISTANCE, n_jobs=1).fit(list(X[:100]), y[:100])
    checks = 16  # of symmetry
    assert clf.comparisons_to_fit_ == measure.calls <= 100 * 101 // 2 + checks


def test_every_comparison_is_counted(split):
    X, y, X_new, _ = split
    measure = CountedDistance()
    clf = KreinClassifier(measure, measure_params=DISTANCE, n_jobs=1).fit(list(X[:250]), y[:250])
    assert clf.comparisons_to_fit_ == measure.calls
    measure.calls = 0
    clf.predict(list(X_new))
    assert clf.last_comparisons_ == measure.calls
    m, k = len(clf.landmarks_), clf.model_.second_look.known.n_candidates
    assert (measure.calls - m * len(X_new)) % k == 0
    assert m * len(X_new) < measure.calls < (m + k) * len(X_new)


def test_the_estimated_cost_matches_new_objects(split, fitted):
    X, _, X_new, _ = split
    fitted.predict(distances(X_new, X))
    assert fitted.last_comparisons_ / len(X_new) == pytest.approx(fitted.comparisons_, rel=0.15)


def test_batches_of_any_size_give_the_same_answer(split, fitted):
    X, _, X_new, _ = split
    D = distances(X_new, X)
    whole = fitted.predict_proba(D)
    np.testing.assert_allclose(
        whole,
        np.concatenate([fitted.predict_proba(D[i : i + 1]) for i in range(len(D))]),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        whole,
        np.concatenate([fitted.predict_proba(D[:70]), fitted.predict_proba(D[70:])]),
        atol=1e-12,
    )


def test_the_unit_does_not_matter_to_either_look(split, fitted):
    X, y, X_new, _ = split
    P = fitted.predict_proba(distances(X_new, X))
    for unit in (1e-6, 1e6):
        other = KreinClassifier("precomputed-distance").fit(unit * distances(X, X), y)
        np.testing.assert_array_equal(other.landmarks_, fitted.landmarks_)
        np.testing.assert_allclose(other.predict_proba(unit * distances(X_new, X)), P, atol=1e-5)


def test_objects_and_their_matrix_give_the_same_answer(split):
    X, y, X_new, _ = split
    landmarks = np.arange(0, 400, 10)
    params = {"landmarks": landmarks, "random_state": 0}
    a = KreinClassifier("precomputed-distance", **params).fit(distances(X, X), y)
    b = KreinClassifier(CountedDistance(), measure_params=DISTANCE, **params).fit(list(X), y)
    np.testing.assert_allclose(
        a.predict_proba(distances(X_new, X)), b.predict_proba(list(X_new)), atol=1e-9
    )


def test_landmarks_do_not_depend_on_the_order_of_rows(split, fitted):
    X, y, _, _ = split
    order = np.random.default_rng(0).permutation(len(X))
    other = KreinClassifier("precomputed-distance").fit(distances(X[order], X[order]), y[order])
    np.testing.assert_array_equal(np.sort(order[other.landmarks_]), fitted.landmarks_)
    again = KreinClassifier("precomputed-distance", random_state=1).fit(distances(X, X), y)
    assert not np.array_equal(again.landmarks_, fitted.landmarks_)


def test_an_object_of_weight_0_is_as_good_as_absent(split):
    X, y, X_new, _ = split
    weights = np.ones(300)
    weights[::3] = 0
    landmarks = np.flatnonzero(weights)[::5]
    D = distances(X[:300], X[:300])
    a = KreinClassifier("precomputed-distance", landmarks=landmarks).fit(D, y[:300], weights)
    kept = np.flatnonzero(weights)
    b = KreinClassifier("precomputed-distance", landmarks=np.searchsorted(kept, landmarks)).fit(
        D[np.ix_(kept, kept)], y[kept]
    )
    assert not np.isin(np.flatnonzero(weights == 0), a.model_.second_look.known.indices).any()
    D_new = distances(X_new, X[:300])
    np.testing.assert_allclose(a.predict_proba(D_new), b.predict_proba(D_new[:, kept]), atol=0.05)


@pytest.mark.parametrize("budget", [25, 35, 50])
def test_a_budget_is_respected(split, budget):
    X, y, X_new, _ = split
    clf = KreinClassifier("precomputed-distance", max_comparisons=budget).fit(distances(X, X), y)
    assert clf.comparisons_ <= budget + 1e-9
    clf.predict(distances(X_new, X))
    assert clf.last_comparisons_ / len(X_new) <= 1.1 * budget


def test_kept_objects_are_bounded_and_every_class_is_among_them(split):
    X, y, X_new, y_new = split
    y = y.copy()
    y[5] = 7  # the only one of its class
    clf = KreinClassifier("precomputed-distance", landmarks=np.arange(100, 140), max_kept=50).fit(
        distances(X, X), y
    )
    assert len(clf.model_.second_look.known.indices) == 50
    assert set(clf.model_.second_look.known.codes) == {0, 1, 2}
    assert clf.predict(distances(X_new, X)).shape == y_new.shape


def test_values_to_the_landmarks_alone_allow_a_first_look(split):
    X, y, X_new, y_new = split
    landmarks = np.arange(0, 400, 8)
    clf = KreinClassifier("precomputed-distance", landmarks=landmarks)
    clf.fit(distances(X, X[landmarks]), y)
    assert clf.model_.second_look is None
    assert clf.score(distances(X_new, X[landmarks]), y_new) > 0.8


def test_a_model_file_contains_all_it_needs(tmp_path, split):
    X, y, X_new, _ = split
    clf = KreinClassifier("manhattan").fit(X, y)
    clf.save(tmp_path / "m.krein")
    again = load(tmp_path / "m.krein")
    np.testing.assert_array_equal(again.predict_proba(X_new), clf.predict_proba(X_new))
    assert again.last_comparisons_ == clf.last_comparisons_


def test_the_number_of_landmarks_grows_with_the_square_root():
    assert default_number(200, 2) == 200
    assert default_number(900, 2) == 60
    assert default_number(10_000, 2) == 250
    assert default_number(10**7, 2) == 500
    assert default_number(300, 60) == 120


def test_only_one_of_identical_objects_is_a_landmark():
    X = np.repeat(np.arange(150.0), 2)[:, None]
    clf = KreinClassifier("manhattan", n_landmarks=150).fit(X, np.arange(300) // 2 % 2)
    assert len(np.unique(X[clf.landmarks_])) == 150


def test_each_class_has_a_landmark():
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(290, dtype=int), np.ones(7, dtype=int), [2, 2, 2]]
    clf = KreinClassifier("manhattan", landmarks=Stratified(12)).fit(rng.normal(size=(300, 2)), y)
    assert set(y[clf.landmarks_]) == {0, 1, 2}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"neighbours": -1}, "neighbours must be a whole number"),
        ({"max_kept": 0}, "max_kept must be a whole number"),
        ({"max_comparisons": 0}, "max_comparisons must be a number"),
        ({"price": -1}, "price must be a number"),
        ({"n_landmarks": 1000}, "1000 landmarks cannot be chosen among 40"),
    ],
)
def test_invalid_parameters_are_refused(params, message):
    X, y = islands(40)
    with pytest.raises(ValueError, match=message):
        KreinClassifier("manhattan", **params).fit(X, y)


def test_a_file_and_a_cluster_give_the_same_model_as_memory(split, tmp_path):
    X, y, X_new, _ = split
    here = KreinClassifier("manhattan").fit(X, y)
    rows = [
        ",".join([*(repr(float(v)) for v in x), f"c{label}"]) for x, label in zip(X, y, strict=True)
    ]
    (tmp_path / "x.csv").write_text("\n".join(["a,b,c,label", *rows]) + "\n")
    file = KreinClassifier("manhattan").fit(open_source(tmp_path / "x.csv", labels="label"))
    np.testing.assert_array_equal(file.predict_proba(X_new), here.predict_proba(X_new))
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    with distributed.Client(n_workers=1, processes=False, dashboard_address="127.0.0.1:0"):
        there = KreinClassifier("manhattan").fit(da.from_array(X, chunks=(90, 3)), y)
    np.testing.assert_array_equal(there.predict_proba(X_new), here.predict_proba(X_new))


def test_a_class_of_one_object_among_few():
    """It is a landmark, and in every model that scores other objects."""
    X, y = islands(60, 10)
    y = np.where(np.arange(60) == 7, 5, y)
    clf = KreinClassifier("manhattan").fit(X, y)
    assert clf.classes_.tolist() == [0, 1, 5]
    assert 2 not in clf.model_.reference.codes


def training_set(rows, landmarks, groups, copies=None):
    """Compared objects with these groups."""
    everyone = np.arange(len(groups))
    return TrainingSet(
        data=None,
        run=None,
        choice=SimpleNamespace(landmarks=SimpleNamespace(indices=landmarks)),
        priors=None,
        rows=rows,
        moments=SimpleNamespace(weights=np.ones(rows.y.max() + 1)),
        numbers=weights_of(rows.weight, len(groups)),
        groups=groups,
        copies=everyone if copies is None else copies,
        keys=everyone,
    )


@pytest.mark.parametrize("seed", range(3))
def test_landmarks_do_not_make_classes_look_equal(seed):
    """What is left of classes beside their landmarks is more equal than the classes themselves.

    Taken for classes collected in equal numbers, they would be held out in two halves. Of 150
    classes of about four objects, a model without the other half of an object's class and its
    rivals recognised held-out objects much better than new ones: the loss of IKFD was 2.2 and 2.6.
    """
    rng = np.random.default_rng(seed)
    codes = np.unique(rng.integers(150, size=600), return_inverse=True)[1]
    X = rng.normal(size=(600, 5))
    landmarks = Stratified(200).select(open_pairs("euclidean", X), codes, rng).indices
    rows = Rows(X, codes, None)
    sample, _ = HeldOut.drawn(training_set(rows, landmarks, np.arange(600)))
    assert sample.folds.max() + 1 == 7  # a tenth of all objects each


def test_which_objects_are_held_out(monkeypatch):
    """All objects except landmarks and those of weight 0; a sample if there are many."""
    values, codes = np.random.default_rng(0).normal(size=(2000, 20)), np.arange(2000) % 3
    weights = (np.arange(2000) % 10 > 0).astype(float)
    landmarks = np.arange(1, 2000, 100)
    features = Rows(values, codes, weights)
    few, _ = HeldOut.drawn(training_set(features, landmarks, np.arange(2000)))
    expected = np.setdiff1d(np.flatnonzero(weights), landmarks)
    np.testing.assert_array_equal(few.indices, expected)
    np.testing.assert_array_equal(few.values, values[expected])
    np.testing.assert_array_equal(few.codes, codes[expected])
    assert not few.refits
    monkeypatch.setattr("krein.estimators.heldout.HELD_OUT_OBJECTS", 400)
    many, _ = HeldOut.drawn(training_set(features, landmarks, np.arange(2000)))
    assert abs(len(many.indices) - 400) < 5 * np.sqrt(400)
    assert set(many.indices) < set(expected)
    most, _ = HeldOut.drawn(training_set(features, np.arange(1200), np.arange(2000)))
    np.testing.assert_array_equal(most.indices, np.flatnonzero(weights))
    assert most.refits
    np.testing.assert_array_equal(most.own, most.indices[:, None] == np.arange(1200))


def test_with_groups_all_objects_are_held_out_or_a_sample_of_every_class(monkeypatch):
    values, codes = np.random.default_rng(0).normal(size=(2000, 20)), np.arange(2000) % 2
    codes[1990:] = 2
    weights, groups = (np.arange(2000) % 10 > 0).astype(float), np.arange(2000) // 4 * 4
    known = training_set(Rows(values, codes, weights), np.arange(1, 2000, 100), groups)
    everyone, _ = HeldOut.drawn(known)
    np.testing.assert_array_equal(everyone.indices, np.flatnonzero(weights))
    assert everyone.refits
    per_group = np.bincount(groups[everyone.indices], weights=everyone.score_weights)
    np.testing.assert_allclose(per_group[per_group > 0], 1.0)
    monkeypatch.setattr("krein.estimators.heldout.SAMPLE_SIZE", 400)
    some, _ = HeldOut.drawn(known)
    assert abs(len(some.indices) - 400) < 5 * np.sqrt(400)
    assert (some.codes == 2).sum() == 9  # all that count


@pytest.mark.parametrize("grouped", [False, True])
def test_held_out_objects_have_the_class_shares_of_all_objects(grouped, monkeypatch):
    """Half of the small classes are landmarks, and a sample contains all of a small class."""
    monkeypatch.setattr("krein.estimators.heldout.SAMPLE_SIZE", 300)
    sizes = np.array([900, 60, 20, 4, 1])
    codes = np.repeat(np.arange(5), sizes)
    values = np.random.default_rng(0).normal(size=(len(codes), 20))
    landmarks = np.flatnonzero((codes > 1) & (np.arange(len(codes)) % 2 == 0))
    landmarks = np.union1d(landmarks, [0, 100, 200, 900, 984])
    rows = np.arange(len(codes))
    groups = rows // 2 * 2 if grouped else rows
    sample, _ = HeldOut.drawn(training_set(Rows(values, codes), landmarks, groups))
    assert sample.refits == grouped
    scored = sample.at(sample.scored)
    held_out = np.bincount(scored.codes, scored.score_weights, 5)
    n_groups = np.array([len(np.unique(groups[codes == c])) for c in range(5)])
    wanted = np.where(held_out > 0, n_groups, 0)
    np.testing.assert_allclose(held_out / held_out.sum(), wanted / wanted.sum())
    assert held_out[4] == 0


def test_heads_that_cannot_pay_are_left_out():
    rng = np.random.default_rng(0)
    means = 3 * rng.normal(size=(40, 8))
    y = np.repeat(np.arange(40), 3)
    X = means[y] + rng.normal(size=(120, 8))
    clf = KreinClassifier("manhattan").fit(X, y)
    assert [reason.partition(":")[0] for reason in clf.dropped_heads_] == ["ikqd"]
    assert len(clf.model_.heads) == 2
    P = clf.predict_proba(means + rng.normal(size=(40, 8)))
    assert (P.argmax(axis=1) == np.arange(40)).mean() > 0.85
    np.testing.assert_allclose(P.sum(axis=1), 1)


def test_class_sizes_count_although_the_temperature_is_low():
    """Scores that say nothing get a low temperature; what is left are the class frequencies."""
    rng = np.random.default_rng(0)
    sizes = np.array([400.0, 80.0, 20.0])
    codes = np.repeat(np.arange(3), sizes.astype(int))
    head = LinearHead("similarity", np.array([0]), np.zeros((1, 3)), np.zeros(3), temperature=0.01)
    everyone, no = np.arange(500), np.zeros((500, 1))
    sample = HeldOut(everyone, no, codes, None, np.ones(500), no > 0, everyone, None, codes, False)
    scores = rng.normal(size=(500, 3))
    found, left_out = with_class_sizes(head, scores, sample, sizes)
    P = np.exp(found.to_log_proba(found.scores(np.zeros((1, 1)))))
    np.testing.assert_allclose(P, [sizes / 500], atol=0.03)
    # a held-out object does not count for its own class
    added = found.temperature * (left_out - scores)
    strength = found.temperature * (found.bias[0] - found.bias[1]) / np.log(400 / 80)
    np.testing.assert_allclose(added[-1, 0] - added[-1, 2], strength * np.log(400 / 19))
    np.testing.assert_allclose(added[0, 0] - added[0, 2], strength * np.log(399 / 20))


@pytest.mark.parametrize("size", [1, 2])
def test_tiny_classes_keep_their_place(size):
    """A class of one object cannot be held out, and still has honest probabilities."""
    rng = np.random.default_rng(0)
    means = 4 * rng.normal(size=(30, 6))
    y = np.concatenate([np.repeat(np.arange(20), 12), np.repeat(np.arange(20, 30), size)])
    X = means[y] + rng.normal(size=(len(y), 6))
    clf = KreinClassifier("manhattan", n_landmarks=40).fit(X, y)
    assert len(clf.classes_) == 30
    new = means + rng.normal(size=(30, 6))
    P = clf.predict_proba(new)
    assert (P.argmax(axis=1)[20:] == np.arange(20, 30)).mean() > 0.5
    assert np.isfinite(np.log(P)).all()
    assert np.isfinite(clf.novelty(new)).all()
    assert clf.predict_set(new).shape == (30, 30)


def test_as_many_neighbours_vote_as_were_compared():
    X, y = islands(300)
    D = distances(X, X)
    votes = {
        neighbours: KreinClassifier(
            "precomputed-distance", n_landmarks=40, neighbours=neighbours
        ).fit(D, y).model_.second_look.known.k
        for neighbours in (5, 60)
    }  # fmt: skip
    assert votes == {5: 5, 60: VOTERS}


def test_names_of_objects_without_a_second_look():
    words, labels = ["house", "mouse", "haus", "maus"] * 3, ["en", "en", "de", "de"] * 3
    clf = KreinClassifier("levenshtein", neighbours=0).fit(words, labels).name_objects(words)
    assert clf.model_.second_look is None
    assert clf.explain(["louse"], n=1)[0].nearest[0].name in words


def test_a_second_look_at_landmarks_alone_costs_nothing():
    words = [stem + str(i) for i in range(10) for stem in ("house", "mouse", "haus", "maus")]
    labels = ["en", "en", "de", "de"] * 10
    clf = KreinClassifier("levenshtein", features=None).fit(words, labels)
    assert len(clf.landmarks_) == 40
    assert clf.model_.second_look.known.n_candidates == 0
    assert clf.comparisons_ == 40
    clf.predict(["louse", "laus"])
    assert clf.last_comparisons_ == 2 * 40


def overlapping(rng, n):
    y = rng.integers(0, 3, n)
    return np.array([[0.0, 1.5], [1.5, -1.0], [-1.5, -1.0]])[y] + rng.normal(size=(n, 2)), y


def test_copies_of_objects_do_not_make_it_overconfident():
    """Three copies of each object: none is held out while its copies are not."""
    rng = np.random.default_rng(0)
    (X, y), (new, true) = overlapping(rng, 120), overlapping(rng, 2000)
    clf = KreinClassifier("manhattan").fit(np.repeat(X, 3, axis=0), np.repeat(y, 3))
    assert clf.n_copies_ == 240
    P = clf.predict_proba(new)
    assert abs(P.max(axis=1).mean() - (P.argmax(axis=1) == true).mean()) < 0.08
    assert (clf.novelty(new) <= 0.05).mean() < 0.1
    covered = clf.predict_set(new, 0.9)[np.arange(2000), true].mean()
    assert covered > 0.84
    assert KreinClassifier("manhattan").fit(X, y).n_copies_ == 0


@pytest.mark.parametrize("k", [1, 3])
def test_copies_with_labels_without_a_pattern_are_not_believed(k):
    """Each word several times, all with the same random label."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        words = ["".join(rng.choice(list("abcdefgh"), rng.integers(5, 10))) for _ in range(360)]
        X, y, new = words[:60], rng.integers(0, 2, 60), words[60:]
        clf = KreinClassifier("levenshtein").fit(X * k, np.tile(y, k))
        assert clf.n_copies_ == 60 * (k - 1)
        assert clf.model_.cascade.n_seen == 60
        found.append(clf.predict_proba(new).max(axis=1).mean())
    assert np.mean(found) < 0.65
    assert max(found) < 0.8


def test_a_copy_counts_as_much_as_a_weight():
    X, y = overlapping(np.random.default_rng(1), 300)
    counts = np.random.default_rng(2).integers(1, 4, size=300)
    rows = np.repeat(np.arange(300), counts)
    new = overlapping(np.random.default_rng(3), 100)[0]
    weighted = KreinClassifier("manhattan", landmarks=np.arange(40)).fit(X, y, counts)
    first = np.searchsorted(rows, np.arange(40))
    copied = KreinClassifier("manhattan", landmarks=first).fit(X[rows], y[rows])
    np.testing.assert_allclose(copied.predict_proba(new), weighted.predict_proba(new), atol=2e-3)
    np.testing.assert_allclose(copied.novelty(new), weighted.novelty(new), atol=1e-9)


def test_held_out_objects_are_no_copies_of_training_objects():
    """Copies are one group, also if their labels differ."""
    rng = np.random.default_rng(0)
    copies = np.repeat(np.arange(0, 900, 3), 3)
    codes = np.where(rng.random(900) < 0.1, rng.integers(3, size=900), copies % 7 % 3)
    values = rng.normal(size=(900, 5))[copies]
    landmarks = np.arange(0, 300, 30)
    sample, _ = HeldOut.drawn(training_set(Rows(values, codes), landmarks, copies, copies))
    assert not sample.refits
    assert not np.isin(copies[sample.indices], copies[landmarks]).any()
    for fold in np.unique(sample.folds):
        held = sample.indices[sample.folds == fold]
        assert np.isin(copies[held], copies[sample.indices[sample.folds != fold]]).sum() == 0
    np.testing.assert_allclose(sample.score_weights.sum(), sample.n_groups)
    assert sample.n_groups == len(np.unique(copies[sample.indices]))


def test_ties_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    X = rng.permutation(np.array(np.meshgrid(*[range(6)] * 4)).reshape(4, -1).T)[:420].astype(float)
    y = (X.sum(axis=1) + rng.normal(0, 2, 420) > 10).astype(int)
    new = rng.integers(0, 6, size=(150, 4)).astype(float)
    order = rng.permutation(420)
    one, other = (
        KreinClassifier("manhattan").fit(X[rows], y[rows]) for rows in (np.arange(420), order)
    )
    np.testing.assert_array_equal(np.sort(order[other.landmarks_]), np.sort(one.landmarks_))
    np.testing.assert_allclose(other.predict_proba(new), one.predict_proba(new), atol=1e-6)


def test_labels_without_a_pattern_give_no_confident_answers():
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        clf = KreinClassifier("manhattan").fit(rng.normal(size=(40, 3)), rng.integers(0, 2, 40))
        found.append(clf.predict_proba(rng.normal(size=(200, 3))).max(axis=1).mean())
    assert np.mean(found) < 0.58


def test_no_label_set_is_empty():
    rng = np.random.default_rng(0)
    X, y = overlapping(rng, 150)
    X[y == 2] += 30
    y[:2] = 3  # a class of two
    clf = KreinClassifier("manhattan").fit(X, y)
    new = np.vstack([X, 100 + rng.normal(size=(5, 2))])
    assert clf.predict_set(new, 0.5).any(axis=1).all()


def test_held_out_losses_of_pcvm_are_those_of_new_objects():
    """With ten weights per object, approximate leave-one-out scores have too small a loss."""
    rng = np.random.default_rng(0)
    means = 2 * rng.normal(size=(40, 8))
    y, true = np.repeat(np.arange(40), 8), rng.integers(0, 40, 1000)
    X, new = (means[codes] + rng.normal(size=(len(codes), 8)) for codes in (y, true))
    clf = KreinClassifier("manhattan", price=0).fit(X, y)
    model = clf.model_
    values = model.measure.block(new, X[model.landmarks.indices])
    lost = -model.terms(values, new, None)[0][-1][np.arange(1000), true]
    head = clf.worth_.heads[-1]
    assert head.name == "pcvm"
    assert 0.7 < head.alone / lost.mean() < 1.6


def test_labels_at_random_of_many_classes_are_not_recognised():
    """PCVM has 35 weights per object: approximate leave-one-out scores would be too good."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(350, 5))
    y = rng.integers(0, 100, len(X))
    # with more landmarks than half of the objects, every head would be refitted
    clf = KreinClassifier("euclidean", n_landmarks=70).fit(X[:150], y[:150])
    assert "pcvm" in [head.name for head in clf.worth_.heads]
    assert all(head.alone > 4.1 for head in clf.worth_.heads)  # log(100) is 4.6
    assert clf.predict_proba(X[150:]).max(axis=1).mean() < 0.1


def test_pcvm_is_left_out_if_it_is_crowded_and_too_large_to_be_refitted():
    few, many = np.full(300, 1.5), np.full(300, 200.0)
    assert "pcvm" not in worthwhile_heads(few, 200)
    assert "pcvm" in worthwhile_heads(3 * few, 300)
    assert "pcvm" not in worthwhile_heads(many / 10, 80)
    assert "pcvm" not in worthwhile_heads(np.full(150, 16.0), 200)  # twelve weights per object
