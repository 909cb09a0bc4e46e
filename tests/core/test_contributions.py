"""Contributions of landmarks: they sum to the score, and are integrals along a line."""

import numpy as np
import pytest

from krein import KreinClassifier
from krein.core.contributions import _parts, head_contributions
from krein.core.heads import log_proba_of


def distances(X, Z):
    return np.linalg.norm(X[:, None] - Z[None], axis=2)


def similarities(X, Z):
    return np.tanh(0.3 * X @ Z.T + 0.1)


@pytest.fixture(
    scope="module", params=[(2, distances), (2, similarities), (4, distances), (4, similarities)]
)
def model(request):
    C, measure = request.param
    rng = np.random.default_rng(C)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.7) * 1 + (0 if C == 2 else 2 * (X[:, 2] > 0))
    named = "precomputed-distance" if measure is distances else "precomputed"
    clf = KreinClassifier(named, landmarks=np.arange(30)).fit(measure(X, X), y)
    return clf, measure(rng.normal(size=(10, 4)), X)[:, :30], measure is distances


def log_odds(head, V, c, r):
    P = log_proba_of(head, head.scores(V))
    return P[:, c] - P[:, r]


def test_they_sum_to_the_score(model):
    clf, V, _ = model
    looks, base = clf.looks_, clf.reference_.baseline
    for v in V:
        for c, r in ((0, 1), (1, 0)):
            start, parts = head_contributions(looks.heads, looks.first, v, base, c, r)
            score = sum(
                a * log_odds(head, v[None], c, r)[0]
                for head, a in zip(looks.heads, looks.first, strict=True)
            )
            assert start + parts.sum() == pytest.approx(score, rel=1e-9, abs=1e-9)


def test_they_are_integrals_of_the_gradient_along_the_line(model):
    """Integrate central differences at 200 points of the line, in the coordinates of each head."""
    clf, V, is_distance = model
    v, base = V[0], clf.reference_.baseline
    t = (np.arange(200) + 0.5) / 200
    for head in clf.looks_.heads[:2]:
        power = 2 if is_distance else 1
        u, u0 = v**power, base**power
        line = u0 + t[:, None] * (u - u0)
        for landmark in (0, 7):
            h = 1e-5 * np.abs(u).max()
            ends = []
            for step in (-h, h):
                moved = line.copy()
                moved[:, landmark] += step
                ends.append(log_odds(head, moved ** (1 / power), 0, 1))
            integral = ((ends[1] - ends[0]) / (2 * h)).mean() * (u - u0)[landmark]
            assert _parts(head, v, base, 0, 1)[landmark] == pytest.approx(integral, rel=1e-4)


def test_an_object_at_the_baseline_has_no_contributions(model):
    clf, _, _ = model
    looks, base = clf.looks_, clf.reference_.baseline
    start, parts = head_contributions(looks.heads, looks.first, base.copy(), base, 1, 0)
    np.testing.assert_array_equal(parts, 0)
    assert np.isfinite(start)


def test_they_sum_to_the_score_near_the_baseline(model):
    clf, V, _ = model
    looks, base = clf.looks_, clf.reference_.baseline
    for size in (1e-5, 1e-9, 1e-12, 1e-15):
        v = base * (1 + size * np.sign(V[0]))
        start, parts = head_contributions(looks.heads, looks.first, v, base, 1, 0)
        score = sum(
            a * log_odds(head, v[None], 1, 0)[0]
            for head, a in zip(looks.heads, looks.first, strict=True)
        )
        assert start + parts.sum() == pytest.approx(score, rel=1e-9, abs=1e-9)
