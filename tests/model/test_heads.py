"""Heads: how scores become probabilities, and what each landmark contributes to a label."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from krein import IKFD, IKQD, PCVM, KreinClassifier
from krein.core.calibration import pair_log_shares
from krein.model.heads import LinearHead, QuadraticHead

pytestmark = pytest.mark.filterwarnings("ignore:the published PCVM did not converge")

M = 30


def distances(X, Z):
    return np.linalg.norm(X[:, None] - Z[None], axis=2)


def similarities(X, Z):
    return np.tanh(0.3 * X @ Z.T + 0.1)


def problem(C, measure):
    """Values of training objects to each other and of new objects to the landmarks, and labels."""
    rng = np.random.default_rng(C)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.7) * 1 + (0 if C == 2 else 2 * (X[:, 2] > 0))
    named = "precomputed-distance" if measure is distances else "precomputed"
    return named, measure(X, X), y, measure(rng.normal(size=(10, 4)), X)[:, :M]


KINDS = {
    "softmax": (4, lambda *a, **k: IKFD(*a, **k)),
    "sigmoid": (4, lambda *a, **k: IKFD(*a, multiclass="ovr", **k)),
    "probit": (2, lambda *a, **k: PCVM(*a, sparse=False, **k)),
    "softmax of PCVM": (4, lambda *a, **k: PCVM(*a, sparse=False, **k)),
    "probits": (4, lambda *a, **k: PCVM(*a, multiclass="ovr", sparse=False, **k)),
    "pairs": (4, lambda *a, **k: PCVM(*a, solver="paper", random_state=0, **k)),
    "quadratic": (4, lambda *a, **k: IKQD(*a, **k)),
}


@pytest.fixture(
    scope="module",
    params=[(kind, measure) for kind in KINDS for measure in (distances, similarities)],
    ids=lambda param: f"{param[0]} {param[1].__name__}",
)
def fitted(request):
    kind, measure = request.param
    C, make = KINDS[kind]
    named, V, y, new = problem(C, measure)
    clf = make(named, landmarks=np.arange(M)).fit(V, y)
    used = clf.landmarks_
    (head,) = clf.model_.heads
    assert isinstance(head, QuadraticHead) or head.link == kind.split()[0]
    return clf.model_, replace(head, temperature=0.7), new[:, used]


def log_odds(head, V, c, r):
    P = head.to_log_proba(head.scores(V))
    return P[:, c] - P[:, r]


def pairs_of(head, V):
    C = head.scores(V).shape[1]
    return [(0, 1), (1, 0), (C - 1, 0), (0, C - 1)]


def test_probabilities_sum_to_one(fitted):
    _, head, V = fitted
    np.testing.assert_allclose(np.exp(head.to_log_proba(head.scores(V))).sum(axis=1), 1)


def test_contributions_sum_to_the_score(fitted):
    model, head, V = fitted
    for c, r in pairs_of(head, V):
        start = log_odds(head, model.baseline[None], c, r)[0]
        for v, score in zip(V, log_odds(head, V, c, r), strict=True):
            found = head.contributions(v, model.baseline, c, r)
            assert start + found.sum() == pytest.approx(score, rel=1e-9, abs=1e-9)


def to_line(head, values):
    """Return the coordinates in which the line from the baseline is straight."""
    if isinstance(head.features, str):
        power = {"similarity": 1.0, "-d": 1.0, "-√d": 0.5, "-d²/2": 2.0}[head.features]
    else:
        power = 1.0 if head.features.kind == "similarity" else 2 * head.features.power
    return values**power, power


def test_contributions_are_integrals_of_the_gradient_along_the_line(fitted):
    """Integrate central differences at 400 points of the line."""
    model, head, V = fitted
    u, power = to_line(head, V[0])
    u0, _ = to_line(head, model.baseline)
    t = (np.arange(400) + 0.5) / 400
    line = u0 + t[:, None] * (u - u0)
    for c, r in pairs_of(head, V):
        found = head.contributions(V[0], model.baseline, c, r)
        for landmark in (0, 7, len(u) - 1):
            h = 1e-5 * np.abs(u).max()
            ends = []
            for step in (-h, h):
                moved = line.copy()
                moved[:, landmark] += step
                ends.append(log_odds(head, moved ** (1 / power), c, r))
            integral = ((ends[1] - ends[0]) / (2 * h)).mean() * (u - u0)[landmark]
            largest = np.abs(found).max()
            assert found[landmark] == pytest.approx(integral, rel=1e-3, abs=1e-5 * largest)


def test_an_object_at_the_baseline_has_no_contributions(fitted):
    model, head, _ = fitted
    parts = head.contributions(model.baseline.copy(), model.baseline, 1, 0)
    np.testing.assert_array_equal(parts, 0)


@pytest.mark.parametrize("size", [1e-5, 1e-9, 1e-12, 1e-15])
def test_contributions_sum_to_the_score_near_the_baseline(fitted, size):
    model, head, V = fitted
    v = model.baseline * (1 + size * np.sign(V[0]))
    start, score = log_odds(head, np.stack([model.baseline, v]), 1, 0)
    found = head.contributions(v, model.baseline, 1, 0)
    assert start + found.sum() == pytest.approx(score, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("C", [2, 4])
@pytest.mark.parametrize("measure", [distances, similarities])
def test_heads_are_pooled_with_their_weights(C, measure):
    named, V, y, new = problem(C, measure)
    model = KreinClassifier(named, landmarks=np.arange(M)).fit(V, y).model_
    pool = model.cascade.looks[0].weights
    for v in new:
        for c, r in ((0, 1), (1, 0)):
            start, parts = model.contributions(pool, v, c, r)
            score = sum(
                a * log_odds(head, v[None], c, r)[0]
                for head, a in zip(model.heads, pool, strict=True)
            )
            assert start + parts.sum() == pytest.approx(score, rel=1e-9, abs=1e-9)
    start, parts = model.contributions(pool, model.baseline.copy(), 1, 0)
    np.testing.assert_array_equal(parts, 0)
    assert np.isfinite(start)


def one_landmark(link, weights, bias=0.0):
    W = np.atleast_2d(weights).astype(float)
    return LinearHead("similarity", np.array([0]), W, np.full(W.shape[1], bias), link)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("softmax", lambda z: np.exp(z) / np.exp(z).sum()),
        ("sigmoid", lambda z: (1 / (1 + np.exp(-z))) / (1 / (1 + np.exp(-z))).sum()),
        ("probits", lambda z: norm.cdf(z) / norm.cdf(z).sum()),
    ],
)
def test_links_match_their_definitions(link, expected):
    head = replace(one_landmark(link, [[0.5, -1.0, 2.0]]), temperature=0.8)
    scores = head.scores(np.array([[1.5]]))
    np.testing.assert_allclose(scores, [[0.75, -1.5, 3.0]])
    np.testing.assert_allclose(np.exp(head.to_log_proba(scores))[0], expected(0.8 * scores[0]))


def test_a_probit_has_one_score_for_two_classes():
    head = one_landmark("probit", [[2.0]], bias=-1.0)
    scores = head.scores(np.array([[1.5], [-3.0]]))
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], [2.0, -7.0])
    np.testing.assert_allclose(np.exp(head.to_log_proba(scores))[:, 1], norm.cdf([2.0, -7.0]))


def test_pairs_vote_with_the_mean_of_their_logarithms():
    Z = np.array([[0.3, -1.0, 2.0]])  # pairs 01, 02 and 12; positive for the second class
    log = norm.logcdf
    means = [
        (log(-0.3) + log(1.0)) / 3,
        (log(0.3) + log(-2.0)) / 3,
        (log(-1.0) + log(2.0)) / 3,
    ]
    np.testing.assert_allclose(pair_log_shares(Z), [2 * np.array(means)])
    head = LinearHead("similarity", np.array([0]), Z, np.zeros(3), "pairs")
    P = np.exp(head.to_log_proba(head.scores(np.ones((1, 1)))))
    share = np.exp(2 * np.array(means))
    np.testing.assert_allclose(P[0], share / share.sum())
