"""Conformal p-values, novelty and label sets, checked against definitions and an oracle."""

import numpy as np
import pytest
from crepes import ConformalClassifier
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from scipy.stats import false_discovery_control

from krein.core.chance import PEERS, Chance
from krein.core.conformal import LABEL_GROUP as GROUP_OBJECTS
from krein.core.conformal import (
    Reference,
    benjamini_hochberg,
    conformal_p,
    groups_of,
    log_odds,
    novelty_scores,
    status_of,
)


def distance_p(reference, scores, predicted, x=None):
    """The p-value of the distance alone."""
    return reference.novelty_parts(scores, np.zeros(len(scores)), predicted, x)[1]


def novelty_reference(scores, predicted):
    return Reference(
        scores, predicted, np.zeros(len(scores)), np.zeros(len(scores)), predicted, None
    )


def label_reference(odds, codes, weights=None):
    return Reference(np.zeros(len(odds)), codes, odds, odds, codes, weights)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 40))
def test_p_values_are_counts(seed, n):
    rng = np.random.default_rng(seed)
    reference, scores = rng.integers(8, size=n).astype(float), rng.integers(-1, 9, 20).astype(float)
    expected = [(1 + np.sum(reference >= a)) / (n + 1) for a in scores]
    np.testing.assert_allclose(conformal_p(reference, scores), expected)


def test_an_object_of_weight_3_counts_three_times():
    reference, weights = np.array([1.0, 4.0, 2.0]), np.array([1, 3, 2])
    scores = np.linspace(0, 5, 11)
    np.testing.assert_allclose(
        conformal_p(reference, scores, weights.astype(float)),
        conformal_p(np.repeat(reference, weights), scores),
    )


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([30, 29, 1, 0], [0, -1, -1, -1]),
        ([30, 10, 40], [0, -1, 2]),  # enough for a group of their own
        ([100, 40, 9, 0], [0, -1, -1, -1]),  # too few: the smallest other class joins them
        ([100, 0], [-1, -1]),
        ([3, 2], [-1, -1]),
        ([30, 40], [0, 1]),
    ],
)
def test_small_classes_share_a_group_that_is_large_enough(sizes, groups):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    np.testing.assert_array_equal(groups_of(codes, len(sizes), 30, 10), groups)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3])
def test_a_rare_class_at_a_distance_raises_no_more_false_alarms(share):
    """If only rare labels were ranked among all objects, all of them would be too many."""
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(60):
        codes, asked = (rng.random((2, 1000)) < share).astype(int)
        reference = novelty_reference(rng.exponential(size=1000) + 3 * codes, codes)
        p = distance_p(reference, rng.exponential(size=1000) + 3 * asked, asked)
        rates.append((p <= 0.05).mean())
    assert np.mean(rates) <= 0.05 + 3 * np.std(rates) / np.sqrt(len(rates))


@pytest.mark.parametrize("rare", [12, 17, 25])
def test_a_rare_class_is_covered(rare):
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [600, rare])
    inside = []
    for _ in range(200):
        odds = rng.normal(size=len(codes)) + np.array([3.0, -1.0])[codes]  # of the true label
        zeros = np.zeros(len(codes))
        reference = Reference(zeros, codes, zeros, odds, codes, None)
        asked = rng.normal(size=50) - 1.0
        sets = reference.sets(np.column_stack([-asked, asked]), coverage=0.9, by_class=True)
        inside.append(sets[:, 1].mean())
    assert np.mean(inside) >= 0.9 - 3 * np.std(inside) / np.sqrt(len(inside))


def test_the_false_alarm_rate_holds_within_each_class():
    """Classes of very different scale: if pooled, the wide class would have all false alarms."""
    rng = np.random.default_rng(0)
    scale = np.array([1.0, 100.0])
    rates = []
    for _ in range(60):
        codes, asked = rng.integers(2, size=1500), rng.integers(2, size=3000)
        reference = novelty_reference(scale[codes] * rng.exponential(size=1500), codes)
        p = distance_p(reference, scale[asked] * rng.exponential(size=3000), asked)
        rates.append([(p[asked == c] <= 0.05).mean() for c in (0, 1)])
    np.testing.assert_allclose(np.mean(rates, axis=0), 0.05, atol=0.005)


def test_the_score_averages_the_three_nearest_in_the_unit_of_the_measure():
    d = np.array([[1.0, 2.0, 6.0, 50.0], [3.0, 3.0, 3.0, 3.0]])
    np.testing.assert_allclose(novelty_scores(d**2, "dissimilarity"), [3.0, 3.0])
    np.testing.assert_allclose(novelty_scores(-2 * -d, "similarity"), [3.0, 3.0])
    np.testing.assert_allclose(novelty_scores(d[:, :2] ** 2, "dissimilarity"), [1.5, 3.0])


def test_status():
    status = status_of(np.array([0.5, 0.5, 0.9]), np.array([0.01, 0.5, 0.011]), 0.8, 0.01)
    assert status.tolist() == ["novel", "ambiguous", "known"]


def test_log_odds_do_not_round():
    log_proba = log_softmax(np.array([[0.0, 1.0, -2.0], [0.0, 50.0, 60.0], [0, 0, 200.0]]), axis=1)
    P = np.exp(log_proba)
    np.testing.assert_allclose(log_odds(log_proba)[0], np.log(P[0] / (1 - P[0])))
    np.testing.assert_allclose(log_odds(log_proba)[:, 2], [-3.313, 10, 200 - np.log(2)], rtol=1e-3)


@pytest.mark.parametrize("by_class", [False, True])
def test_label_p_values_match_crepes(by_class):
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.ones(3), 800)
    codes = np.array([rng.choice(3, p=p) for p in P])
    seen, new = slice(0, 500), slice(500, 800)
    assert np.bincount(codes[seen]).min() >= GROUP_OBJECTS
    odds = log_odds(np.log(P))
    reference = label_reference(odds[seen][np.arange(500), codes[seen]], codes[seen])
    found = reference.label_p_values(odds[new], by_class=by_class)
    hinge = 1 - P[seen][np.arange(500), codes[seen]]
    if by_class:
        oracle = ConformalClassifier().fit(hinge, bins=codes[seen])
        bins = np.tile(np.arange(3), (300, 1))
        expected = np.column_stack(
            [
                oracle.predict_p(1 - P[new][:, [c]], bins=bins[:, c], smoothing=False)
                for c in range(3)
            ]
        )
    else:
        expected = ConformalClassifier().fit(hinge).predict_p(1 - P[new], smoothing=False)
    np.testing.assert_allclose(found, expected)


def test_sets_have_the_stated_coverage():
    rng = np.random.default_rng(2)
    covered, by_class = [], []
    for _ in range(100):
        P = rng.dirichlet([0.3, 0.1, 1.0], 1000)
        codes = np.array([rng.choice(3, p=p) for p in P])
        odds = log_odds(np.log(P + 1e-12))
        a, b = np.arange(500), np.arange(500, 1000)
        reference = label_reference(odds[a, codes[a]], codes[a])
        covered.append(reference.sets(odds[b], coverage=0.9, by_class=False)[a, codes[b]].mean())
        sets = reference.sets(odds[b], coverage=0.9, by_class=True)[a, codes[b]]
        by_class.append([sets[codes[b] == c].mean() for c in (0, 2)])
    assert np.mean(covered) == pytest.approx(0.9, abs=0.005)
    np.testing.assert_allclose(np.mean(by_class, axis=0), 0.9, atol=0.01)


def test_a_reference_of_held_out_objects_has_their_predicted_and_true_labels():
    log_proba = log_softmax(np.random.default_rng(3).normal(size=(50, 3)), axis=1)
    codes = (np.arange(50) % 3).astype(np.int8)
    found = Reference.of(np.arange(50.0), log_proba, codes, None)
    np.testing.assert_array_equal(found.predicted, log_proba.argmax(axis=1))
    np.testing.assert_array_equal(found.codes, codes)
    p = np.exp(log_proba[np.arange(50), codes])
    np.testing.assert_allclose(found.odds, np.log(p / (1 - p)))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_smallest_p_value_is_that_of_the_farthest_object(weighted):
    weights = np.full(20, 3.0) if weighted else None
    codes = np.arange(20) % 2
    reference = Reference(np.arange(20.0), codes, np.zeros(20), np.zeros(20), codes, weights)
    (p,) = distance_p(reference, np.array([1e9]), np.array([0]))
    assert p == reference.smallest == pytest.approx(1 / (61 if weighted else 21))


def test_weighted_references_equal_repeated_ones():
    rng = np.random.default_rng(4)
    codes, weights = rng.integers(3, size=200), rng.integers(1, 4, size=200)
    scores, odds = rng.normal(size=200), rng.normal(size=200)
    a = Reference(scores, codes, odds, odds, codes, weights.astype(float))
    b = Reference(*(np.repeat(each, weights) for each in (scores, codes, odds, odds, codes)), None)
    new, labels = rng.normal(size=(30, 3)), rng.integers(3, size=30)
    np.testing.assert_allclose(distance_p(a, new[:, 0], labels), distance_p(b, new[:, 0], labels))
    for by_class in (False, True):
        np.testing.assert_allclose(
            a.label_p_values(new, by_class=by_class), b.label_p_values(new, by_class=by_class)
        )


def test_an_object_with_a_label_that_was_never_predicted_is_ranked_among_all():
    reference = novelty_reference(np.arange(99.0), np.zeros(99, dtype=int))
    np.testing.assert_allclose(distance_p(reference, np.array([50.0]), np.array([4])), [0.5])


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 30), st.sampled_from([0.05, 0.1, 0.3]))
def test_benjamini_hochberg_agrees_with_scipy(seed, m, fdr):
    p = np.random.default_rng(seed).integers(1, 60, size=m) / 60  # with ties, and equal to limits
    expected = false_discovery_control(p) <= fdr + 1e-12 if m else np.zeros(0, dtype=bool)
    np.testing.assert_array_equal(benjamini_hochberg(p, fdr), expected)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1000), st.booleans())
def test_doubt_counts_certain_errors_among_all_held_out_objects(seed, some):
    rng = np.random.default_rng(seed)
    predicted, codes = rng.integers(3, size=(2, 40))
    certainty, asked = rng.integers(9, size=40).astype(float), rng.integers(-1, 10, size=25) / 1.0
    labels = rng.integers(3, size=25)
    reference = Reference(np.zeros(40), predicted, certainty, np.zeros(40), codes, None)
    wanted = np.array([True, False, True]) if some else np.ones(3, dtype=bool)
    own, wrong = wanted[predicted], predicted != codes

    def mostly_right(t: float) -> bool:
        counted = own & (certainty >= t)
        return 2 * np.sum(counted & wrong) < np.sum(counted)

    expected = [
        (1 + np.sum(wrong & own & (certainty >= s))) / 41
        if wanted[c] and any(mostly_right(t) for t in range(-1, 10) if t <= s)
        else 1.0
        for s, c in zip(asked, labels, strict=True)
    ]
    found = reference.doubt(asked, labels, wanted if some else None)
    np.testing.assert_allclose(found, expected)


def drawn_labels(rng, n, n_classes=4):
    """Return certainties, predicted and true classes: certain labels are wrong less often."""
    certainty = rng.normal(1.0, 2.0, n)
    codes = rng.integers(n_classes, size=n)
    wrong = rng.uniform(size=n) > 1 / (1 + np.exp(-certainty))
    return certainty, (codes + wrong) % n_classes, codes


def test_no_label_is_selected_if_held_out_labels_are_wrong():
    """However certain new labels are: all are about equally certain where nothing is recognised."""
    rng = np.random.default_rng(0)
    certainty, codes = rng.normal(-4.0, 0.01, size=350), rng.integers(300, size=350)
    predicted = np.where(np.argsort(np.argsort(-certainty)) % 100 == 50, codes, codes + 1)
    reference = Reference(certainty, predicted, certainty, certainty, codes, None)
    p = reference.doubt(np.full(300, -3.9), np.zeros(300, dtype=int))
    assert not benjamini_hochberg(p, 0.1).any()


@pytest.mark.parametrize("fdr", [0.05, 0.2])
@pytest.mark.parametrize("one_label", [False, True])
def test_the_share_of_wrong_labels_is_at_most_the_bound_in_expectation(fdr, one_label):
    rng, shares = np.random.default_rng(0), []
    wanted = np.array([True, False, False, False]) if one_label else None
    for _ in range(400):
        certainty, predicted, codes = drawn_labels(rng, 250)
        reference = Reference(certainty, predicted, certainty, certainty, codes, None)
        certainty, predicted, codes = drawn_labels(rng, 200)
        selected = benjamini_hochberg(reference.doubt(certainty, predicted, wanted), fdr)
        shares.append((predicted != codes)[selected].sum() / max(1, selected.sum()))
        assert wanted is None or (predicted[selected] == 0).all()
    error = np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) <= fdr + 3 * error
    assert np.mean(shares) >= fdr / 2  # it is a bound that is used, not an empty list


def test_the_share_of_known_objects_among_the_novel_is_at_most_the_bound_in_expectation():
    rng, shares, found, fdr = np.random.default_rng(1), [], [], 0.1
    for _ in range(400):
        codes = np.zeros(300, dtype=int)
        reference = novelty_reference(rng.normal(size=300), codes)
        novel = rng.uniform(size=200) < 0.3
        scores = rng.normal(size=200) + 4 * novel
        p = distance_p(reference, scores, np.zeros(200, dtype=int))
        selected = benjamini_hochberg(p, fdr)
        shares.append((~novel)[selected].sum() / max(1, selected.sum()))
        found.append((selected & novel).sum() / novel.sum())
    assert np.mean(shares) <= fdr + 3 * np.std(shares) / np.sqrt(len(shares))
    assert np.mean(found) > 0.8


# -- objects of different sizes --------------------------------------------------------------------


def sized(n, rng, kind):
    """Log sizes and scores of known objects; for each kind, the scores depend on the size."""
    x = rng.normal(4.0, 0.5, n)
    size, gap = np.exp(x), rng.exponential(size=n)
    return x, {
        "edits": size * (0.3 + 0.1 * gap),
        "similarity": -0.5 + 0.1 * gap - 3 / np.sqrt(size),
        "two kinds": np.where(x > 4.2, gap, 20 + 5 * gap),
    }[kind]


def sized_reference(x, scores, weights=None, chance=None):
    n, one = len(x), np.zeros(len(x), dtype=int)
    return Reference(scores, one, np.zeros(n), np.zeros(n), one, weights, x, chance)


def alarms_by_size(p, x, level=0.05):
    fifth = np.searchsorted(np.quantile(x, [0.2, 0.4, 0.6, 0.8]), x)
    return np.array([(p[fifth == k] <= level).mean() for k in range(5)])


@pytest.mark.parametrize("kind", ["edits", "similarity", "two kinds"])
def test_the_false_alarm_rate_holds_in_each_fifth_of_the_sizes(kind):
    level, rates, plain = 0.05, [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x, scores = sized(1000, rng, kind)
        new, asked = sized(1000, rng, kind)
        one = np.zeros(1000, dtype=int)
        reference = sized_reference(x, scores)
        rates.append(alarms_by_size(distance_p(reference, asked, one, new), new, level))
        plain.append(alarms_by_size(distance_p(reference, asked, one), new, level))
    assert np.mean(rates) == pytest.approx(level, rel=0.15)
    assert (np.abs(np.mean(rates, axis=0) / level - 1) < 0.4).all()  # 3 to 7 %
    assert (np.abs(np.mean(plain, axis=0) / level - 1) > 0.4).any()


def test_p_values_by_size_match_their_definition():
    """Count objects in both parts around a size, then rank the counts; here without vectors."""
    rng = np.random.default_rng(0)
    x, scores = sized(300, rng, "edits")
    new, asked = sized(50, rng, "edits")
    weights = rng.integers(1, 4, 300).astype(float)
    parts = 300 // PEERS
    middles = np.quantile(x, (np.arange(parts) + 0.5) / parts)

    def belongs(one):
        shares = dict.fromkeys(range(parts), 0.0)
        right = int(np.searchsorted(middles, one))
        if right in (0, parts):
            shares[min(right, parts - 1)] = 1.0
        else:
            share = (one - middles[right - 1]) / (middles[right] - middles[right - 1])
            shares[right - 1], shares[right] = 1 - share, share
        return shares

    member = [belongs(one) for one in x]

    def count(one, score, without=None):
        total = 0.0
        for part, share in belongs(one).items():
            others = [j for j in range(300) if j != without]
            all_of = sum(weights[j] * member[j][part] for j in others)
            far = sum(weights[j] * member[j][part] for j in others if scores[j] >= score)
            total += share * far / all_of
        if total * 300 / parts < 1:
            return (scores >= score).sum() / 301
        return total * 300 / parts

    own = np.array([count(a, b, j) for j, (a, b) in enumerate(zip(x, scores, strict=True))])
    far = [(own <= count(a, b) + 1e-6) @ weights for a, b in zip(new, asked, strict=True)]
    expected = (1 + np.array(far)) / (1 + weights.sum())
    one = np.zeros(50, dtype=int)
    found = distance_p(sized_reference(x, scores, weights), asked, one, new)
    np.testing.assert_allclose(found, expected)


def test_objects_without_peers_are_told_apart_by_all_objects():
    """The p-value of an object that is farther than all others is as small as it can be."""
    rng = np.random.default_rng(0)
    x, scores = sized(1000, rng, "similarity")
    p = distance_p(
        sized_reference(x, scores), np.array([9.0]), np.zeros(1, dtype=int), np.array([4.0])
    )
    assert p == pytest.approx(1 / 1001)


def random_scores(x, rng):
    return np.exp(x) * 0.8 + 0.3 * np.exp(x / 2) * rng.normal(size=len(x))


def test_random_objects_rarely_look_known_at_any_size():
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = np.linspace(0, 6, 300)
        chance = Chance.of(x, random_scores(x, rng))
        new = rng.uniform(0, 6, 5000)
        found = chance.p_values(random_scores(new, rng), new)
        shares.append([(found[new // 1 == k] <= 0.01).mean() for k in range(6)])
        assert (chance.p_values(np.full(2, -1e9), np.array([-1.0, 7.0])) == 1).all()
    assert np.mean(shares) < 0.015
    assert np.mean(shares, axis=0).max() < 0.025


@given(st.integers(0, 1000), st.sampled_from([1e-100, 3.0, 2.0**70]))
@settings(max_examples=20, deadline=None)
def test_what_happens_by_chance_does_not_depend_on_the_unit(seed, unit):
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 6, 200)
    scores, new = random_scores(x, rng), rng.uniform(0, 6, 50)
    asked = random_scores(new, rng)
    np.testing.assert_allclose(
        Chance.of(x, unit * scores).p_values(unit * asked, new),
        Chance.of(x, scores).p_values(asked, new),
        atol=0.011,
    )


def test_outside_the_range_of_sizes_it_takes_evidence_to_be_known():
    rng = np.random.default_rng(0)
    x, scores = sized(1000, rng, "edits")
    at = np.linspace(1, 7, 300)
    reference = sized_reference(x, scores, chance=Chance.of(at, random_scores(at, rng)))
    far = np.array([1.5, 1.5, 6.9, 6.9])
    asked = np.exp(far) * [0.01, 0.8, 0.3, 0.8]  # near to known objects or random, by turns
    p, one = distance_p(reference, asked, np.zeros(4, dtype=int), far), np.ones(4)
    assert (p[[1, 3]] < 0.01).all()
    assert (p[[0, 2]] > 0.05).all()
    status = status_of(one, one, 0.8, 0.01, reference.by_chance(asked, far))
    assert status.tolist() == ["known", "ambiguous"] * 2


def test_objects_of_one_size_are_ranked_as_if_they_had_none():
    rng = np.random.default_rng(0)
    log_proba, codes = log_softmax(rng.normal(size=(200, 2)), axis=1), rng.integers(2, size=200)
    scores = rng.normal(size=200)
    reference = Reference.of(scores, log_proba, codes, None, np.full(200, 3.0))
    assert reference.log_sizes is None
    assert (reference.by_chance(scores, None) == 0).all()


# -- near nothing, or fits nothing -----------------------------------------------------------------


@pytest.mark.parametrize("dependence", [0.0, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_novelty_is_uniform_whatever_its_parts_depend_on(dependence, weighted):
    """Both parts together are ranked among held-out objects, so the result is a valid p-value."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(800):
        far_, fit = rng.normal(size=(2, 230))
        fit = dependence * -far_ + np.sqrt(1 - dependence**2) * fit
        zero = np.zeros(200, dtype=int)
        weights = np.ones(200) if weighted else None
        reference = Reference(far_[:200], zero, fit[:200], fit[:200], zero, weights)
        found.append(reference.novelty(far_[200:], fit[200:], np.zeros(30, dtype=int)))
    for level in (0.05, 0.2, 0.5):
        rate = (np.concatenate(found) <= level).mean()
        assert abs(rate - level) < 0.012


def test_the_smallest_p_value_is_no_more_frequent_than_it_says():
    """An object that is the most unusual in either part is not yet the most unusual in both."""
    rng = np.random.default_rng(0)
    zero, found = np.zeros(99, dtype=int), []
    for _ in range(4000):
        far_, fit = rng.normal(size=(2, 100))
        reference = Reference(far_[:99], zero, fit[:99], fit[:99], zero, None)
        found.append(reference.novelty(far_[99:], fit[99:], zero[:1])[0])
    assert np.mean(np.array(found) <= 0.01) < 0.01 + 3 * np.sqrt(0.01 * 0.99 / 4000)


def test_an_object_that_fits_no_class_is_novel_though_it_is_near():
    rng = np.random.default_rng(1)
    zero = np.zeros(500, dtype=int)
    certainty = rng.normal(5, 1, size=500)
    reference = Reference(rng.exponential(size=500), zero, certainty, certainty, zero, None)
    p, far_, unfit = reference.novelty_parts(np.array([0.7]), np.array([-1.0]), zero[:1])
    assert far_[0] > 0.3
    assert unfit[0] < 0.01
    assert p[0] < 0.03


def test_the_most_unusual_object_has_the_smallest_p_value():
    zero, ranks = np.zeros(99, dtype=int), np.arange(99.0)
    reference = Reference(ranks, zero, -ranks, ranks, zero, None)
    p = reference.novelty(np.array([1e9, 97.5]), np.array([-1e9, -97.5]), zero[:2])
    np.testing.assert_allclose(p, [0.01, 0.02])
    assert reference.smallest == pytest.approx(0.01)
