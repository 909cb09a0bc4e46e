"""KreinClassifier on objects of unknown classes: novelty, status, label sets, explanations."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from krein import IKFD, KreinClassifier, load
from krein.core.cascade import pooled
from krein.data.foreign import ForeignObjectWarning
from krein.estimators.secondlook import N_RANDOM


def blobs(n, seed, places=4, spread=0.6):
    """Objects of four classes around four centres; a fifth centre is unknown."""
    rng = np.random.default_rng(seed)
    y = rng.integers(places, size=n)
    angle = 2 * np.pi * y / 5
    return 3 * np.c_[np.cos(angle), np.sin(angle)] + spread * rng.normal(size=(n, 2)), y


def elsewhere(n, seed):
    X, _ = blobs(n, seed, places=1)
    turn = 2 * np.pi * 4 / 5
    return X @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])


def distances(X, Z):
    return np.linalg.norm(X[:, None] - Z[None], axis=2)


@pytest.fixture(scope="module")
def fitted():
    X, y = blobs(700, seed=0)
    return KreinClassifier("precomputed-distance").fit(distances(X, X), y), X, y


def test_objects_of_another_class_are_novel(fitted):
    clf, X, _ = fitted
    own, other = distances(blobs(300, 1)[0], X), distances(elsewhere(300, 2), X)
    p_own, p_other = clf.novelty(own), clf.novelty(other)
    assert roc_auc_score(np.r_[np.zeros(300), np.ones(300)], -np.r_[p_own, p_other]) > 0.97
    sure = clf.predict_proba(other).max(axis=1)
    assert sure.mean() > 0.85  # the probabilities do not show it
    status = clf.assess(other)["status"]
    assert (status == "novel").mean() > 0.5


def test_objects_of_another_kind_belong_to_no_class():
    words = ["house", "mouse", "haus", "maus"] * 10
    clf = KreinClassifier("levenshtein").fit(words, ["en", "en", "de", "de"] * 10)
    with pytest.warns(ForeignObjectWarning):
        p = clf.novelty(["m" * 60, "laus"])
    assert p[0] == 0
    assert p[1] > 0


def test_false_alarms_are_as_frequent_as_stated():
    rates = []
    for seed in range(8):
        X, y = blobs(500, seed)
        clf = KreinClassifier("precomputed-distance").fit(distances(X, X), y)
        p = clf.novelty(distances(blobs(2000, 1000 + seed)[0], X))
        rates.append([(p <= 0.05).mean(), (p <= 0.2).mean()])
    five, twenty = np.mean(rates, axis=0)
    assert five == pytest.approx(0.05, abs=0.015)
    assert twenty == pytest.approx(0.2, abs=0.03)


def test_the_false_alarm_rate_holds_for_few_objects():
    """Every object is a landmark, and held-out objects leave out their own columns."""
    rates = []
    for seed in range(20):
        X, y = blobs(60, seed)
        clf = KreinClassifier("precomputed-distance").fit(distances(X, X), y)
        assert len(clf.landmarks_) == 60
        p = clf.novelty(distances(blobs(400, 1000 + seed)[0], X))
        rates.append((p <= 0.05).mean())
    assert np.mean(rates) == pytest.approx(0.05, abs=0.015)


def test_sets_cover_overall_and_in_each_class():
    overall, each = [], []
    for seed in range(8):
        X, y = blobs(600, seed, spread=1.2)
        clf = KreinClassifier("precomputed-distance").fit(distances(X, X), y)
        X_new, y_new = blobs(1500, 1000 + seed, spread=1.2)
        D = distances(X_new, X)
        rows = np.arange(1500)
        overall.append(clf.predict_set(D, by_class=False)[rows, y_new].mean())
        covered = clf.predict_set(D)[rows, y_new]
        each.append([covered[y_new == c].mean() for c in range(4)])
    assert np.mean(overall) == pytest.approx(0.9, abs=0.015)
    np.testing.assert_allclose(np.mean(each, axis=0), 0.9, atol=0.03)


def test_sets_grow_with_the_coverage(fitted):
    clf, X, _ = fitted
    D = distances(blobs(200, 3, spread=1.5)[0], X)
    small, large = clf.predict_set(D, 0.8), clf.predict_set(D, 0.99)
    several = small.sum(axis=1) > 1  # a set that would be empty contains the most probable label
    assert (small[several] <= large[several]).all()
    assert large.sum() > small.sum()
    best = clf.predict_proba(D).argmax(axis=1)
    some = clf.predict_set(D, 0.99, by_class=False)
    assert some[some.any(axis=1)][np.arange(some.any(axis=1).sum()), best[some.any(axis=1)]].all()
    with pytest.raises(ValueError, match="coverage must be"):
        clf.predict_set(D, 1.0)


def test_assess_gives_everything_at_the_cost_of_a_second_look(fitted):
    clf, X, _ = fitted
    D = distances(np.r_[blobs(100, 4)[0], elsewhere(20, 5)], X)
    P, labels = clf.predict_proba(D), clf.predict(D)
    found = clf.assess(D)
    assert clf.model_.second_look.known.n_candidates == 30
    assert clf.last_comparisons_ == len(D) * (len(clf.landmarks_) + 30)
    np.testing.assert_array_equal(found["probabilities"], P)
    np.testing.assert_array_equal(found["label"], labels)
    np.testing.assert_array_equal(found["novelty"], clf.novelty(D))
    np.testing.assert_array_equal(found["status"] == "novel", found["novelty"] <= clf.novel_below)
    known = found["status"] == "known"
    assert (P.max(axis=1)[known] >= clf.ambiguous_below).all()


def test_novelty_without_a_second_look_uses_the_landmarks(fitted):
    _, X, y = fitted
    clf = KreinClassifier("precomputed-distance", neighbours=0).fit(distances(X, X), y)
    own, other = distances(blobs(300, 1)[0], X), distances(elsewhere(100, 2), X)
    assert (clf.novelty(own) <= 0.05).mean() < 0.1
    assert np.median(clf.novelty(other)) < 0.05
    assert clf.last_comparisons_ == 100 * len(clf.landmarks_)
    assert len(clf.explain(own[:1])[0].nearest) == 3


@pytest.mark.parametrize("weighted", [False, True])
def test_neither_copies_nor_class_weights_count_among_held_out_objects(weighted):
    """A weight of 3 stands for three copies, which are one group; one of ½ for half an object."""
    X, y = blobs(60, seed=0)  # all are landmarks, and each is held out once
    counts = np.random.default_rng(0).choice([0.5, 1, 2, 3], size=60) if weighted else np.ones(60)
    clf = KreinClassifier("precomputed-distance", class_weight={0: 5.0, 1: 0.3})
    clf.fit(distances(X, X), y, sample_weight=counts if weighted else None)
    found = clf.model_.reference.weights
    np.testing.assert_allclose(np.ones(60) if found is None else found, np.minimum(counts, 1))


def test_a_unit_does_not_change_p_values(fitted):
    clf, X, y = fitted
    D = distances(np.r_[blobs(50, 6)[0], elsewhere(20, 7)], X)
    other = KreinClassifier("precomputed-distance").fit(1e4 * distances(X, X), y)
    np.testing.assert_allclose(other.novelty(1e4 * D), clf.novelty(D), atol=0.01)


# -- explanations ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [150, 500])
def test_the_explanation_sums_to_the_score(n):
    X, y = blobs(n, 0)
    clf = KreinClassifier("precomputed-distance").fit(distances(X, X), y)
    D = distances(np.r_[blobs(60, 1, spread=1.2)[0], elsewhere(10, 2)], X)
    labels, log_proba = clf.predict(D), clf.predict_log_proba(D)
    reasons = clf.explain(D, n=4)
    assert any(why.evidence == 0 for why in reasons) or n == 150
    assert any(why.evidence != 0 for why in reasons)
    for why, label, row in zip(reasons, labels, log_proba, strict=True):
        total = why.baseline + why.contributions.sum() + why.evidence
        assert total == pytest.approx(why.score, rel=1e-9, abs=1e-9)
        assert why.label == label
        assert why.score >= 0
        # as probabilities are bounded below, several classes may share the smallest one
        assert row[np.searchsorted(clf.classes_, why.runner_up)] == np.sort(row)[-2]
        assert len(why.contributions) == len(clf.landmarks_)


def test_the_nearest_are_known_objects_with_their_exact_values(fitted):
    clf, X, y = fitted
    D = distances(blobs(80, 8)[0], X)
    found = 0
    for d, why in zip(D, clf.explain(D, n=5), strict=True):
        values = [near.value for near in why.nearest]
        assert values == sorted(values)
        for near in why.nearest:
            assert near.value == pytest.approx(d[near.index])
            assert near.label == y[near.index]
            assert near.name is None
        found += why.nearest[0].index == d.argmin()
    assert found > 70


def test_landmarks_with_the_largest_contributions_matter_most():
    """Deletion: the values to a tenth of the landmarks are replaced by the baseline."""
    X, y = blobs(500, 0)
    clf = KreinClassifier("precomputed-distance", neighbours=0).fit(distances(X, X), y)
    m, rng = len(clf.landmarks_), np.random.default_rng(0)
    D = distances(blobs(60, 1)[0], X[clf.landmarks_])
    k = max(1, m // 10)

    def scores(which):
        V = D.copy()
        np.put_along_axis(V, which, clf.model_.baseline[which], axis=1)
        terms = [head.to_log_proba(head.scores(V)) for head in clf.model_.heads]
        P = pooled(clf.model_.cascade.looks[0].weights, terms)
        rows = np.arange(len(V))
        return (P[rows, label] - P[rows, other]).mean()

    reasons = clf.explain(D)
    label = np.searchsorted(clf.classes_, [why.label for why in reasons])
    other = np.searchsorted(clf.classes_, [why.runner_up for why in reasons])
    first = np.array([np.argsort(-why.contributions)[:k] for why in reasons])
    random = np.array([rng.permutation(m)[:k] for _ in reasons])
    before = scores(np.empty((len(D), 0), dtype=int))
    assert before - scores(first) > 2 * (before - scores(random))


def test_names_are_saved_in_the_file(tmp_path):
    words = [a + b for a in ("house", "mouse", "table", "chair") for b in ("", "s", "y", "ing")]
    clf = KreinClassifier("levenshtein").fit(words, [0] * 8 + [1] * 8)
    clf.name_objects([f"word {word}" for word in words])
    clf.save(tmp_path / "m.krein")
    again = load(tmp_path / "m.krein")
    (why,) = again.explain(["hous"], n=1)
    assert (why.nearest[0].name, why.nearest[0].value) == ("word house", 1.0)
    assert again.novelty(["xyz"]) == clf.novelty(["xyz"])
    np.testing.assert_array_equal(again.predict_set(["xyz"]), clf.predict_set(["xyz"]))
    with pytest.raises(ValueError, match="one name for each of 16 objects"):
        clf.name_objects(["a"])


def test_a_file_of_objects_is_assessed_in_chunks(tmp_path):
    X, y = blobs(300, 0)
    clf = KreinClassifier("manhattan").fit(X, y)
    np.save(tmp_path / "new.npy", X[:40])
    parts = list(clf.assess(str(tmp_path / "new.npy")))
    np.testing.assert_array_equal(np.concatenate(parts), clf.assess(X[:40]))


@pytest.mark.parametrize("params", [{"novel_below": -1}, {"ambiguous_below": 2}])
def test_shares_are_checked(params):
    X, y = blobs(40, 0)
    with pytest.raises(ValueError, match="must be a share from 0 to 1"):
        KreinClassifier("manhattan", **params).fit(X, y)


@pytest.mark.parametrize("method", ["novelty", "predict_set", "assess"])
def test_a_model_without_held_out_scores_has_no_novelty(method):
    X, y = blobs(60, 0)
    with pytest.raises(ValueError, match="calibrate=True"):
        getattr(IKFD("manhattan").fit(X, y), method)(X[:3])


@pytest.mark.parametrize("landmarks", ["all", np.arange(0, 150, 10)], ids=["all", "some"])
@pytest.mark.parametrize("kind", ["similarity", "dissimilarity"])
def test_explanations_start_from_the_mean_of_held_out_objects(kind, landmarks):
    """For a dissimilarity, the mean of the squares, in which the models are linear."""
    X, y = blobs(150, seed=3)
    D = distances(X, X)
    values = D if kind == "dissimilarity" else 20 - D
    measure = "precomputed-distance" if kind == "dissimilarity" else "precomputed"
    clf = KreinClassifier(measure, landmarks=landmarks).fit(values, y)
    # landmarks are held out only if there are few other objects
    chosen = clf.landmarks_
    held_out = values if len(chosen) == len(X) else np.delete(values, chosen, axis=0)
    power = 2 if kind == "dissimilarity" else 1
    weights = clf.model_.reference.weights  # that give them the class shares of all objects
    mean = np.average(held_out[:, chosen] ** power, axis=0, weights=weights) ** (1 / power)
    np.testing.assert_allclose(clf.model_.baseline, mean, rtol=1e-12)


# -- objects of different sizes --------------------------------------------------------------------


def lengths(n, median, rng):
    return np.exp(rng.normal(np.log(median), 0.4, n)).astype(int) + 2


def fragments(n, seed):
    """Fragments of the ancestors of six families, each with its own share of changed letters."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    ancestors, y, found = rng.choice(letters, (6, 400)), rng.integers(6, size=n), []
    for c, length in zip(y, lengths(n, 60, rng), strict=True):
        one = ancestors[c, (start := rng.integers(30)) : start + length].copy()
        changed = rng.random(len(one)) < rng.uniform(0.2, 0.65)
        one[changed] = rng.choice(letters, changed.sum())
        found.append("".join(one))
    return found, y


def waves(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    times = [np.linspace(0, 1, length) for length in lengths(n, 30, rng)]
    return [
        np.sin(2 * np.pi * (c + 1) * t) + 0.3 * rng.normal(size=len(t))
        for c, t in zip(y, times, strict=True)
    ], y


def clouds(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    turn = np.pi / 2 * y
    return [
        1.5 * np.array([np.cos(a), np.sin(a)]) + rng.normal(size=(length, 2))
        for a, length in zip(turn, lengths(n, 20, rng), strict=True)
    ], y


def made_up(objects, length, rng):
    """Return an object of this length, with letters or points drawn from all training objects."""
    if isinstance(objects[0], str):
        return "".join(rng.choice(list("".join(objects)), max(1, round(length))))
    parts = np.concatenate(objects)
    return parts[rng.integers(len(parts), size=max(2, round(length)))]


def without_sizes(clf):
    """Return the model as if objects had no sizes."""
    plain = replace(clf.model_.reference, log_sizes=None, chance=None)
    return replace(clf.model_, reference=plain)


@pytest.mark.parametrize(
    ("measure", "make", "n"),
    [
        ("levenshtein", fragments, 800),
        ("smith-waterman", fragments, 500),
        ("dtw", waves, 500),
        ("modified-hausdorff", clouds, 500),
    ],
)
def test_random_objects_of_any_length_are_not_called_known(measure, make, n):
    X, y = make(n + 400, 0)
    clf = KreinClassifier(measure).fit(X[:n], y[:n])
    rng, usual = np.random.default_rng(1), np.median([len(one) for one in X[:n]])
    times = [0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 5.0]
    random = [made_up(X[:n], t * usual, rng) for t in times for _ in range(50)]
    called_known = clf.assess(random)["status"] == "known"
    assert called_known.mean() <= 0.02
    assert (without_sizes(clf).assess(random)["status"] == "known").mean() > 0.02
    new = clf.assess(X[n:])
    assert (new["status"] == "known").mean() > 0.75
    assert (new["novelty"] <= 0.05).mean() < 0.1


def test_false_alarms_are_equally_frequent_in_each_fifth_of_the_lengths():
    rates, plain = [], []
    for seed in range(5):
        X, y = fragments(3000, seed)
        clf = KreinClassifier("levenshtein", n_landmarks=40, features=None).fit(X[:1200], y[:1200])
        sizes = np.array([len(one) for one in X[1200:]])
        fifth = np.searchsorted(np.quantile(sizes, [0.2, 0.4, 0.6, 0.8]), sizes)
        both = (clf, rates), (without_sizes(clf), plain)
        for model, found in both if seed < 2 else both[:1]:
            p = model.novelty(X[1200:])
            found.append([(p[fifth == k] <= 0.05).mean() for k in range(5)])
    assert np.mean(rates, axis=0).min() > 0.03
    assert np.mean(rates, axis=0).max() < 0.07
    assert np.mean(plain, axis=0).max() > 0.1


def test_a_model_with_random_objects_is_saved_and_does_not_depend_on_the_order(tmp_path):
    X, y = fragments(300, 0)
    clf = KreinClassifier("levenshtein").fit(X[:250], y[:250])
    assert clf.model_.reference.chance is not None
    clf.save(tmp_path / "m.krein")
    new = [*X[250:], X[0][:6], "ACDEFGHIKLMNPQRSTVWY" * 9]
    np.testing.assert_array_equal(load(tmp_path / "m.krein").assess(new), clf.assess(new))
    order = np.random.default_rng(0).permutation(250)
    other = KreinClassifier("levenshtein").fit([X[i] for i in order], y[:250][order])
    np.testing.assert_allclose(
        clf.model_.reference.chance.scores, other.model_.reference.chance.scores, rtol=1e-9
    )


def test_random_objects_cost_their_comparisons(monkeypatch):
    X, y = fragments(250, 0)
    clf = KreinClassifier("levenshtein").fit(X, y)
    m, k = len(clf.landmarks_), clf.model_.second_look.known.n_candidates
    few = KreinClassifier("levenshtein").fit(X[:60], y[:60])
    assert few.model_.reference.chance is None  # nothing can be called novel anyway
    monkeypatch.setattr(type(clf.measure_), "random_objects", lambda *_: None)
    without = KreinClassifier("levenshtein").fit(X, y)
    assert clf.comparisons_to_fit_ - without.comparisons_to_fit_ == N_RANDOM * (m + k)
    np.testing.assert_array_equal(clf.predict_proba(X), without.predict_proba(X))
    np.testing.assert_array_equal(clf.predict_set(X), without.predict_set(X))


def test_a_measure_of_ones_own_gets_no_random_objects():
    """They might be no valid objects. Sizes still count: outside their range, nothing is known."""
    X, y = fragments(150, 0)
    seen = set(X)

    def common(a, b):
        assert {a, b} <= seen
        return abs(len(a) - len(b)) + len(set(a) ^ set(b))

    clf = KreinClassifier(common, measure_params={"kind": "dissimilarity"}).fit(X, y)
    assert clf.model_.reference.log_sizes is not None
    assert clf.model_.reference.chance is None
    short = "".join(X[0][:5])
    seen.add(short)
    assert clf.assess([short])["status"] != "known"
