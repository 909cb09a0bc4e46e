"""The paper's quantities from whole matrices, written down again from its text."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from krein.core.space import correct
from paper import baselines
from paper.folds import evaluate, splits
from paper.methods import TRUNCATED, Fold, choose, score
from paper.sets import SOURCES, prepare

SETS = ["ball", "checker", "proteom"]  # distances, points, similarities


@pytest.fixture(params=SETS)
def fold(request, tmp_path):
    data = prepare(request.param, tmp_path, 60)
    return Fold(data, *splits(data.y, 3)[0])


def whole_kernel(data):
    """S = −½ J D² J of the training objects (section 2.2), or the similarities themselves."""

    def of(train, rows):
        if data.measure != "precomputed-distance":
            return data.similarities(rows, train)
        D2 = np.asarray(data.values) ** 2
        J = np.eye(len(train)) - 1 / len(train)
        if rows is train:
            return -0.5 * J @ D2[np.ix_(train, train)] @ J
        # a new object relative to the mean of the training objects
        within = D2[np.ix_(train, train)]
        new = D2[np.ix_(rows, train)] - within.mean(axis=0)
        return -0.5 * new @ J

    return of


def nystrom(K, k, L, tolerance=1e-10):
    """Return K̃ = K_NL K_LL⁺ K_LN and the same rows of new objects."""
    inverse = np.linalg.pinv(K[np.ix_(L, L)], rcond=tolerance, hermitian=True)
    return K[:, L] @ inverse @ K[L], k[:, L] @ inverse @ K[L]


def f(S, y):
    """The margin of definition 2, by loops over classes and means over pairs."""
    total = 0.0
    for c in np.unique(y):
        own, others = np.flatnonzero(y == c), np.flatnonzero(y != c)
        total += abs(S[np.ix_(own, own)].mean() - S[np.ix_(own, others)].mean())
    return total


@pytest.mark.parametrize("rule", ["meb", "kmeans", "entropy"])
def test_smss(fold, rule):
    K = whole_kernel(fold.data)(fold.train, fold.train)
    L = choose(f"ikfd:{rule}:paper", fold, 0)
    y = fold.y
    for found, tolerance in zip(score(fold, L), (1e-10, TRUNCATED), strict=True):
        approximation, _ = nystrom(K, K, L, tolerance)
        assert found == pytest.approx(f(approximation, y) / f(K, y), rel=1e-6)


def fisher(K, k, y, ridge):
    """Scores of new objects by α = N⁺(μ₊ − μ₋) or (N + ρI)⁻¹(μ₊ − μ₋), each class alone."""
    scores = []
    for c in np.unique(y):
        plus, minus = K[:, y == c], K[:, y != c]
        means = [side.mean(axis=1) for side in (plus, minus)]
        N = sum(
            np.outer(column - mean, column - mean)
            for side, mean in zip((plus, minus), means, strict=True)
            for column in side.T
        )
        inverse = (
            np.linalg.pinv(N, rcond=1e-10, hermitian=True)
            if ridge is None
            else np.linalg.inv(N + ridge * np.eye(len(N)))
        )
        alpha = inverse @ (means[0] - means[1])
        scores.append(k @ alpha - alpha @ (means[0] + means[1]) / 2)
    return np.column_stack(scores)


def loss(P, truth):
    return -np.log(np.maximum(P[np.arange(len(truth)), truth], 1e-15)).mean()


@pytest.mark.parametrize("solver", ["paper", "variant"])
@pytest.mark.parametrize("rule", ["all", "meb"])
def test_both_forms_of_ikfd(fold, rule, solver):
    of = whole_kernel(fold.data)
    K, k = of(fold.train, fold.train), of(fold.train, fold.test)
    unit = np.abs(np.diag(K)).mean()
    if rule == "meb":
        L = choose("ikfd:meb:paper", fold, 0)
        unit = np.abs(np.diag(K)[L]).mean()
        K, k = nystrom(K, k, L)
    Z = fisher(K, k, fold.y, None if solver == "paper" else unit**2)
    P = expit(Z)
    P /= P.sum(axis=1, keepdims=True)
    (row,) = evaluate(fold.data, [f"ikfd:{rule}:{solver}"], 0, 3)
    truth = fold.data.y[fold.test]
    assert row["accuracy"] == pytest.approx(100 * np.mean(P.argmax(axis=1) == truth))
    assert row["log_loss"] == pytest.approx(loss(P, truth), rel=1e-4)


def pcvm(K, t, rng):
    """The EM cycles of section 2.4 with explicit inverses; returns signed weights and bias."""
    N = len(K)
    w, b = rng.random(N) + 0.2, float(rng.standard_normal())
    H = 10 * rng.random(N) * t + rng.random(N)
    kept = np.arange(N)
    for cycle in range(500):
        Phi, M = K[:, kept] * t[kept], np.diag(np.sqrt(2) * w)
        new = M @ np.linalg.inv(M @ Phi.T @ Phi @ M + np.eye(len(kept))) @ M @ (Phi.T @ (H - b))
        root = np.sqrt(2) * abs(b)
        b = root / (1 + root * N * root) * root * (H - Phi @ new).sum()
        change, stay = np.abs(new - w).max(), new > 1e-3
        kept, w = kept[stay], new[stay]
        if len(kept) == 0 or (cycle > 0 and change < 1e-3):
            break
        z = K[:, kept] * t[kept] @ w + b
        H = z + t * norm.pdf(z) / norm.cdf(t * z)
    signed = np.zeros(N)
    signed[kept] = t[kept] * w
    return signed, b


@pytest.mark.parametrize("objects", [60, 80])
def test_pcvm_one_against_rest(objects, tmp_path):
    """Dense PCVM of each class in turn; predictions and complexity are those of the table."""
    data = prepare("proteom", tmp_path, objects)
    fold = Fold(data, *splits(data.y, 3)[0])
    K, y = fold.kernel / np.abs(np.diag(fold.kernel)).mean(), fold.y
    rng = np.random.default_rng(0)
    W, b = zip(*(pcvm(K, np.where(y == c, 1.0, -1.0), rng) for c in np.unique(y)), strict=True)
    W = np.column_stack(W)
    Z = fold.new / np.abs(np.diag(fold.kernel)).mean() @ W + np.array(b)
    P = norm.cdf(Z)
    P /= P.sum(axis=1, keepdims=True)
    (row,) = evaluate(data, ["pcvm:all:paper"], 0, 3)
    truth = data.y[fold.test]
    assert len(np.unique(y)) > 2
    assert row["accuracy"] == pytest.approx(100 * np.mean(P.argmax(axis=1) == truth))
    assert row["weights"] == pytest.approx(100 * np.mean((W != 0).any(axis=1)))
    assert row["log_loss"] == pytest.approx(loss(P, truth), rel=1e-2)


def test_ny_pcvm_with_the_exact_inverse_is_pcvm_on_the_approximated_matrix(tmp_path):
    """Dense cycles on K̃ = K_NL K_LL⁺ K_LN of each class in turn, with more than 100 weights."""
    data = prepare("proteom", tmp_path, 160)
    fold = Fold(data, *splits(data.y, 4)[0])
    L = choose("pcvm:meb:exact", fold, 0)
    unit = np.abs(np.diag(fold.kernel)[L]).mean()
    K, k = (M / unit for M in nystrom(fold.kernel, fold.new, L))
    y, rng = fold.y, np.random.default_rng(0)
    assert len(y) > 100 > len(L)
    W, b = zip(*(pcvm(K, np.where(y == c, 1.0, -1.0), rng) for c in np.unique(y)), strict=True)
    W = np.column_stack(W)
    P = norm.cdf(k @ W + np.array(b))
    (row,) = evaluate(data, ["pcvm:meb:exact"], 0, 4)
    truth = data.y[fold.test]
    assert row["accuracy"] == pytest.approx(100 * np.mean(P.argmax(axis=1) == truth))
    assert row["weights"] == pytest.approx(100 * np.mean((W != 0).any(axis=1)))


@pytest.mark.parametrize("how", ["clip", "flip", "shift"])
def test_a_low_rank_correction_with_all_landmarks_is_the_dense_one(how, monkeypatch):
    """Products of corrected coordinates equal the corrected matrix, and k P for new objects."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    V = rng.normal(size=(90, 60)) + 2 * np.eye(60)[np.arange(90) % 3]
    S = (V * np.where(np.arange(60) % 3, 1.0, -1.0)) @ V.T
    K, k = S[:60, :60], S[60:, :60]
    monkeypatch.setattr(baselines, "_meb", lambda K, y: np.arange(len(K)))
    clf = baselines.LowRankSVC(how).fit(K, y)
    dense = correct(K, how)
    Z, z = K @ clf.map_, k @ clf.map_
    unit = np.trace(Z @ Z.T) / np.trace(dense.matrix)
    assert np.allclose(Z @ Z.T, unit * dense.matrix, atol=1e-8)
    assert np.allclose(z @ Z.T, unit * dense.map_new(k), atol=1e-6)
    assert clf.comparisons_ == 60


def test_krein_ridge_solves_its_normal_equations():
    """min ‖y − Kα‖² + λ αᵀ|K|α for each class, and errors of refits without one object."""
    rng = np.random.default_rng(0)
    V = rng.normal(size=(50, 30))
    S = (V * np.where(np.arange(30) % 3, 1.0, -0.5)) @ V.T
    K, k, y = S[:40, :40] + np.eye(40), S[40:, :40], np.arange(40) % 3
    clf = baselines.KreinRidge().fit(K, y)
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    Y = Y - Y.mean(axis=0)

    def solved(K, Y, ridge):
        flipped = correct(K, "flip").matrix
        return np.linalg.lstsq(K @ K + ridge * flipped, K @ Y, rcond=None)[0]

    assert np.allclose(clf.dual_coef_, solved(K, Y, clf.ridge_), atol=1e-8)
    assert (clf.predict(k) == (k @ clf.dual_coef_ + clf.offset_).argmax(axis=1)).all()

    def left_out(ridge):  # the fitted value at i of a fit to y with yᵢ replaced by its prediction
        smoother = K @ solved(K, np.eye(40), ridge)
        own = np.diag(smoother)[:, None]
        return np.square(Y - (smoother @ Y - own * Y) / (1 - own)).sum()

    tried = np.abs(np.linalg.eigvalsh(K)).mean() * np.logspace(-3, 3, 13)
    assert clf.ridge_ == pytest.approx(min(tried, key=left_out))


def test_low_rank_krein_ridge_solves_the_normal_equations_of_its_matrix(monkeypatch):
    """min ‖y − K̃α‖² + λ αᵀ|K̃|α with the dense K̃ = C W⁺ Cᵀ; new objects by k̃(x) = k(x, L) W⁺ Cᵀ."""
    rng = np.random.default_rng(0)
    V = rng.normal(size=(50, 30))
    S = (V * np.where(np.arange(30) % 3, 1.0, -0.5)) @ V.T
    K, k, y, L = S[:40, :40], S[40:, :40], np.arange(40) % 3, np.arange(12)
    monkeypatch.setattr(baselines, "_meb", lambda K, y: L)
    clf = baselines.LowRankKreinRidge().fit(K, y)
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    low, new = nystrom(K, k, L)
    flipped = correct(low, "flip").matrix
    Y = Y - Y.mean(axis=0)
    alpha = np.linalg.lstsq(low @ low + clf.ridge_ * flipped, low @ Y, rcond=1e-10)[0]
    assert np.allclose(k[:, L] @ clf.dual_coef_, new @ alpha, atol=1e-7)
    assert clf.comparisons_ == 12


def test_the_balls_of_distools(tmp_path):
    """Radii 1 and 2 in a cube of side 100, apart; other seeds give other balls."""
    X, y = SOURCES["ball"].make(3)
    assert np.allclose(100 * X[:, -1], y + 1)
    D = 100 * np.linalg.norm(X[:, None, :-1] - X[:, :-1], axis=2) - (y[:, None] + y + 2)
    assert D[np.triu_indices(200, 1)].min() >= 0
    assert (D[np.triu_indices(200, 1)] < 100 * np.sqrt(3)).all()
    again = [prepare("ball", tmp_path, 60, seed) for seed in (0, 1)]
    assert again[0].folder != again[1].folder
    assert not np.allclose(again[0].values, again[1].values)
