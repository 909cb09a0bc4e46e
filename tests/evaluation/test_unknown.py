"""Classes treated as unknown, labels that may be wrong, and the benefit of a second look."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from krein import KreinClassifier
from krein.evaluation import evaluate
from krein.evaluation.heldout import (
    FEWEST_UNKNOWN,
    MOST_UNKNOWN,
    UNKNOWN,
    log_losses,
    sample_for_unknown,
)

pytestmark = pytest.mark.filterwarnings("ignore:.* have a near-duplicate")


def blobs(n=160, n_classes=4, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    centres = 4.0 * rng.normal(size=(n_classes, 3))
    return centres[codes] + spread * rng.normal(size=(n, 3)), codes


def distances(X):
    return np.abs(X[:, None] - X[None]).sum(axis=2)


def test_scores_match_the_definition():
    X, codes = blobs(spread=1.6)
    model = KreinClassifier("elm", neighbours=10_000, n_landmarks=12)  # every object is a candidate
    D = distances(X)
    evaluation = evaluate(D, codes, {"krein": model}, measure="precomputed-distance", folds=4)
    folds = evaluation.folds
    unknown = evaluation.models["krein"].unknown
    assert unknown.n == len(codes)
    for k, c in enumerate(unknown.codes):
        scores = np.empty(len(codes))
        for i in range(len(codes)):
            known = (folds != folds[i]) & (codes != c)
            scores[i] = np.sort(D[i, known])[:3].mean()
        area = roc_auc_score(codes == c, scores)
        assert unknown.auroc[k] == pytest.approx(area, abs=1e-12)
        limit = np.quantile(scores[codes != c], 0.95)
        assert unknown.found[k] == pytest.approx((scores[codes == c] > limit).mean())
        assert unknown.nearest[k] != c


def test_the_last_point_of_the_curve_is_the_model():
    X, codes = blobs(n=240, n_classes=3, spread=3.0)
    model = KreinClassifier("manhattan", n_landmarks=10)
    found = evaluate(X, codes, {"krein": model}, measure="manhattan", folds=4).models["krein"]
    curve = found.looks
    assert curve.n == 240
    assert curve.accuracy[-1] == pytest.approx(found.right.mean())
    assert curve.log_loss[-1] == pytest.approx(log_losses(found.probabilities, found.codes).mean())
    np.testing.assert_array_equal(curve.looked[:-1], np.sort(curve.looked[:-1]))
    assert curve.comparisons[0] == 10
    assert curve.comparisons[-2] == curve.comparisons.max()
    assert curve.looked[-2] == 1.0


def test_the_curve_starts_at_a_model_without_a_second_look():
    X, codes = blobs(n=240, n_classes=3, spread=3.0)
    first = KreinClassifier("manhattan", n_landmarks=10, neighbours=0)
    both = KreinClassifier("manhattan", n_landmarks=10)
    found = evaluate(X, codes, {"first": first, "both": both}, measure="manhattan", folds=4)
    one = found.models["first"]
    assert one.looks is None
    curve = found.models["both"].looks
    assert curve.accuracy[0] == pytest.approx(one.right.mean())
    assert curve.log_loss[0] == pytest.approx(log_losses(one.probabilities, one.codes).mean())


def test_planted_mistakes_are_found_and_nothing_else():
    X, codes = blobs(n=120, spread=0.4)
    D = distances(X)
    clean = evaluate(D, codes, ["krein"], measure="precomputed-distance", folds=4)
    assert clean.models["krein"].suspect_labels == []
    planted = codes.copy()
    wrong = [17, 60, 101]
    planted[wrong] = (codes[wrong] + 1) % 4
    found = evaluate(D, planted, ["krein"], measure="precomputed-distance", folds=4)
    suspect = found.models["krein"].suspect_labels
    assert sorted(one.index for one in suspect) == wrong
    for one in suspect:
        assert one.other == codes[one.index]
        assert one.probability <= 0.05
        assert one.other_probability >= 0.9
        assert len(one.nearest) == 3
        for other in one.nearest:
            assert planted[other] != planted[one.index]
            assert found.folds[other] != found.folds[one.index]
    assert [one.probability for one in suspect] == sorted(one.probability for one in suspect)


def test_nothing_is_compared_again_if_all_pairs_are_stored():
    X, codes = blobs(n=120)
    alone, beside = (
        evaluate(X, codes, models, measure="manhattan", folds=3).pairs.compared
        for models in (["knn"], ["knn", "krein"])
    )
    assert beside == alone


def test_models_without_a_second_look_report_none_of_these():
    X, codes = blobs(n=80)
    found = evaluate(X, codes, ["ikfd"], measure="manhattan", folds=3).models["ikfd"]
    assert (found.looks, found.unknown, found.suspect_labels) == (None, None, [])
    assert found.summary()["unknown"] is None


def test_the_sample_is_balanced():
    codes = np.repeat([0, 1, 2], [1000, 300, 3])
    chosen = sample_for_unknown(codes, 0)
    counts = np.bincount(codes[chosen])
    assert counts.tolist() == [UNKNOWN // 3, UNKNOWN // 3]
    many = np.arange(3000) % 300
    counts = np.bincount(many[sample_for_unknown(many, 0)], minlength=300)
    assert (counts > 0).sum() == MOST_UNKNOWN
    assert counts.max() == FEWEST_UNKNOWN
    assert len(sample_for_unknown(np.arange(4), 0)) == 0
