"""Look zero: the features of the objects, pooled with the measure, and predictions without it."""

from functools import partial

import numpy as np
import pytest
from sklearn.metrics import log_loss

import krein
from krein import KreinClassifier
from krein.core.looks import choose_certainty
from krein.datasets import make_protein_families
from krein.model.heads import FeatureHead, NeighbourHead


@pytest.fixture(scope="module")
def families():
    X, y = make_protein_families(260, divergence=0.8, random_state=0)
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def fitted(families):
    X, y, _, _ = families
    return KreinClassifier("smith-waterman", n_landmarks=30).fit(X, y)


def test_features_are_a_head_of_the_pool(fitted, families):
    X, y, new, true = families
    assert isinstance(fitted.model_.look_zero, FeatureHead)
    plain = KreinClassifier("smith-waterman", n_landmarks=30, features=None).fit(X, y)
    assert plain.model_.look_zero is None
    assert len(plain.model_.heads) == len(fitted.model_.heads) - 1
    assert plain.model_.certain == np.inf
    losses = [log_loss(true, clf.predict_proba(new)) for clf in (fitted, plain)]
    assert losses[0] < losses[1] + 0.05


def test_certain_objects_are_not_compared(families):
    X, y, new, _ = families
    dear = KreinClassifier("smith-waterman", n_landmarks=30, price=3e-3).fit(X, y)
    P = dear.predict_proba(new)
    zero, pool = dear.model_.look_zero, dear.model_.pool
    alone = pool.bounded(zero.to_log_proba(zero.scores(None, new)))
    sure = np.exp(alone.max(axis=1)) >= dear.model_.certain
    assert 0 < sure.sum() < len(new)
    np.testing.assert_array_equal(P[sure], np.exp(alone[sure]))
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


def test_the_worth_of_heads_and_looks_is_that_of_the_model(families, tmp_path):
    X, y, _, _ = families
    dear = KreinClassifier("smith-waterman", n_landmarks=30, price=3e-3).fit(X, y)
    worth, model = dear.worth_, dear.model_
    assert [head.name for head in worth.heads] == ["features", "ikfd", "ikqd", "pcvm"]
    np.testing.assert_array_equal([head.weight for head in worth.heads], model.pool.weights)
    first, second, zero = worth.looks
    assert [look.name for look in worth.looks] == ["first look", "second look", "look zero"]
    assert (first.share, first.comparisons) == (1.0, 30.0)
    k = model.second_look.known.n_candidates
    assert second.comparisons == pytest.approx(30 + k * second.share)
    assert zero.comparisons == dear.comparisons_ < second.comparisons
    assert 0 < zero.share < 1
    # without features, the other heads have the same scores, and there is no look zero
    plain = KreinClassifier("smith-waterman", n_landmarks=30, features=None).fit(X, y).worth_
    for with_features, alone in zip(worth.heads[1:], plain.heads, strict=True):
        assert with_features.alone == alone.alone
    assert plain.looks[0].log_loss == worth.heads[0].without
    assert len(plain.looks) == 2
    dear.save(tmp_path / "m.krein")
    assert krein.load(tmp_path / "m.krein").worth_ == worth


def test_a_useless_head_is_worth_nothing(families):
    X, y, _, _ = families
    shuffled = np.random.default_rng(0).permutation(y)
    worth = KreinClassifier("smith-waterman", n_landmarks=30).fit(X, shuffled).worth_
    for head in worth.heads:
        assert head.without < worth.looks[0].log_loss + 0.02
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


def test_more_price_means_fewer_comparisons():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 2000)
    gain = rng.exponential(1 - confidence)
    found = [choose_certainty(confidence, gain, np.full(2000, 50.0), p) for p in (0, 1e-4, 1e-3, 1)]
    assert found == sorted(found, reverse=True)
    assert found[0] == np.inf or (gain[confidence >= found[0]] <= 0).all()
    assert found[-1] == confidence.min()


def test_a_wrong_choice_of_features_is_refused(families):
    X, y, _, _ = families
    with pytest.raises(ValueError, match="features must be 'auto' or None"):
        KreinClassifier("smith-waterman", features="n-grams").fit(X, y)


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


def test_many_classes_are_judged_by_the_most_similar_objects(species, tmp_path):
    X, y, new = species
    clf = KreinClassifier("levenshtein", n_landmarks=20).fit(X, y)
    zero = clf.model_.look_zero
    assert isinstance(zero, NeighbourHead)
    scores = zero.scores(None, new)
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


def test_a_held_out_object_is_not_its_own_neighbour(species):
    """Leaving an object out gives the same evidence as a head that never knew it."""
    X, y, _ = species
    zero = KreinClassifier("levenshtein", n_landmarks=20).fit(X, y).model_.look_zero
    F, y = zero.known.T.tocsr(), zero.codes
    for i in (0, 7, len(y) - 1):
        others = np.flatnonzero(np.arange(len(y)) != i)
        part = NeighbourHead.of(zero.features, F[others], y[others], 150, zero.bandwidth)
        found = zero.evidence(F[[i]], without=(np.array([i]), np.arange(len(y))))
        np.testing.assert_allclose(found, part.evidence(F[[i]]), atol=1e-4)
