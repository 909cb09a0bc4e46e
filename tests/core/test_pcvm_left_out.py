"""Left-out scores of PCVM against refits and the dense formula, with weights and thinned rows."""

import numpy as np
import pytest

from krein.core.pcvm import left_out
from krein.core.pcvm import left_out as coupled
from krein.core.pcvm.left_out import (
    LeaveOneOut,
    choose_scale,
    compare,
    coupled_left_out,
    leave_one_out,
    left_out_scores,
    scores_without,
    without_row,
)
from krein.core.pcvm.mode import GammaPrior, fit_pcvm, softmax, softmax_root
from krein.core.pcvm.rows import Block, Rows


def rings(seed, n_classes, N=200, m=12):
    """Negative distances to the first m of N points in the plane; classes are rings around 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    edges = {2: [1.1], 3: [0.8, 1.5], 5: [0.6, 1.0, 1.4, 1.9]}[n_classes]
    y = np.digitize(np.hypot(*X.T) + 0.2 * rng.normal(size=N), edges)
    return -np.linalg.norm(X[:, None] - X[None, :m], axis=2), y


def clouds(seed, n_classes, N=200, m=12, spread=1.0):
    """Negative distances to the first m of N points of overlapping Gaussians."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(N) % n_classes)
    X = spread * rng.normal(size=(n_classes, 5))[y] + rng.normal(size=(N, 5))
    return -np.linalg.norm(X[:, None] - X[None, :m], axis=2), y


def fitted(K, y, weight=None):
    """Return the rows, the prior and the model as `PCVM` fits it."""
    C, m = int(y.max()) + 1, K.shape[1]
    rows = Rows(K, y, weight, n_classes=C)
    prior = choose_scale(rows, y[:m])[0] if C == 2 else GammaPrior()
    return rows, prior, fit_pcvm(rows, y[:m], prior=prior)


def asked(K, y, fit, some=None, weight=None):
    C = int(y.max()) + 1
    some = np.arange(len(y)) if some is None else some
    features = Rows(K, y, weight)
    return left_out_scores(features, [(np.arange(C), y[: K.shape[1]], C)], [fit], some)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_optimism_matches_refits(n_classes):
    ratios = []
    for make in (rings, clouds):
        for seed in range(2):
            K, y = make(seed, n_classes)
            _, prior, fit = fitted(K, y)
            some = np.arange(0, len(y), 3)
            exact = []
            for i in some:
                rest = np.delete(np.arange(len(y)), i)
                rows = Rows(K[rest], y[rest], n_classes=n_classes)
                without = fit_pcvm(
                    rows, y[:12], prior=prior, start=(fit.weights, fit.bias), tol=1e-7
                )
                exact.append(fit.link.losses(without.scores(K[i : i + 1]), y[i : i + 1])[0])
            seen = fit.link.losses(fit.scores(K), y)[some]
            quick = fit.link.losses(asked(K, y, fit), y)[some]
            ratios.append((quick - seen).sum() / (np.array(exact) - seen).sum())
    assert 0.9 < np.mean(ratios) < 1.1
    assert min(ratios) > 0.8
    assert max(ratios) < 1.2


def dense_left_out(K, y, s, fit, secant=False, coupled=None):
    """z + (I − V D)⁻¹ V g with the whole Hessian, in the unit of the features.

    A row acts only on its coupled classes (n, C). The others add only p(1 − p) to the Hessian.
    """
    N, C = len(y), fit.weights.shape[1]
    mean = s @ K / s.sum()
    F1 = np.column_stack([K - mean, np.ones(N)])  # the first class has no bias
    P = softmax(fit.scores(K))
    on = np.ones_like(P, dtype=bool) if coupled is None else coupled
    p = np.where(on, P, 0.0)
    D = s[:, None, None] * (p[:, :, None] * np.eye(C) - p[:, :, None] * p[:, None, :])
    G = s[:, None] * (p - np.eye(C)[y])
    alone = s[:, None, None] * np.where(on, 0.0, P * (1 - P))[:, :, None] * np.eye(C)
    H = np.einsum("ni,ncd,nj->cidj", F1, D + alone, F1, optimize=True)
    prior = fit.precision if secant else fit.curvature
    for c in range(C):
        deviation = np.sqrt(s @ (K - mean) ** 2 / s.sum())
        H[c, range(K.shape[1]), c, range(K.shape[1])] += prior[:, c] * deviation**2
    width = F1.shape[1]
    free = np.concatenate([np.append(fit.scaled[:, c] != 0, c > 0) for c in range(C)])
    inverse = np.zeros((C * width, C * width))
    inverse[np.ix_(free, free)] = np.linalg.inv(H.reshape(C * width, -1)[np.ix_(free, free)])
    B = inverse.reshape(C, width, C, width)
    V = np.einsum("ni,cidj,nj->ncd", F1, B, F1, optimize=True)
    step = np.linalg.solve(np.eye(C) - V @ D, V @ G[:, :, None])[:, :, 0]
    return fit.scores(K) + step


@pytest.mark.parametrize("n_classes", [3, 5])
def test_all_classes_together_match_the_dense_formula(n_classes, monkeypatch):
    K, y = rings(7, n_classes, N=150, m=8)
    s = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    rows, _, fit = fitted(K, y, s)
    expected = softmax(dense_left_out(K, y, s, fit))
    near = LeaveOneOut.of(rows, fit).exact
    joint = scores_without(near, fit.scores(K), Block(K, y, s), fit.link)[0]
    np.testing.assert_allclose(softmax(joint), expected, atol=1e-5)
    monkeypatch.setattr(coupled, "HIGH_LEVERAGE", 1.0)
    monkeypatch.setattr(coupled, "THRESHOLDS", (0.0,))
    for threshold in (0.03, 0.1):
        monkeypatch.setattr(coupled, "THRESHOLDS", (threshold,))
        on = coupled.coupled_classes(softmax(fit.scores(K)), y)
        assert 0.1 < on.mean() < 0.95
        some = dense_left_out(K, y, s, fit, coupled=on)
        np.testing.assert_allclose(coupled_left_out(K, y, s, s, fit), some, atol=1e-5)
    monkeypatch.setattr(coupled, "THRESHOLDS", (0.0,))
    for part in (2**27, 8 * 150 * 20):  # all rows at once, a few at a time
        monkeypatch.setattr(coupled, "PART_BYTES", part)
        by_row = softmax(coupled_left_out(K, y, s, s, fit))
        np.testing.assert_allclose(by_row, expected, atol=1e-5)
    monkeypatch.setattr(coupled, "HIGH_LEVERAGE", -1.0)  # every row has more
    firm = softmax(coupled_left_out(K, y, s, s, fit))
    np.testing.assert_allclose(firm, softmax(dense_left_out(K, y, s, fit, secant=True)), atol=1e-6)


def test_at_most_eight_classes_are_coupled_per_row():
    """The limit is on the mean number besides the true class; it drops unlikely classes first."""
    rng = np.random.default_rng(0)
    for n_classes in (5, 9, 12, 40):
        P = rng.dirichlet(np.ones(n_classes), size=200)
        y = rng.integers(n_classes, size=200)
        on = coupled.coupled_classes(P, y)
        assert on[np.arange(200), y].all()
        on[np.arange(200), y] = False
        assert on.sum() <= 8 * 200
        unlikely = np.where(on, 0.0, P)
        unlikely[np.arange(200), y] = 0.0
        assert unlikely.max() <= P[on].min(initial=1.0)
    some = coupled.coupled_classes(np.array([[0.998, 0.0012, 0.0008]]), np.zeros(1, dtype=int))
    assert some.tolist() == [[True, True, False]]  # the threshold is one in a thousand
    level = np.full((10, 12), 1 / 12)  # all equally likely: all or none
    assert coupled.coupled_classes(level, np.zeros(10, dtype=int)).sum() == 10
    assert coupled.coupled_classes(level[:, :8], np.zeros(10, dtype=int)).all()


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_unlikely_classes_need_not_be_coupled(spread, monkeypatch):
    K, y = clouds(1, 12, N=300, m=20, spread=spread)
    _, _, fit = fitted(K, y)
    one = np.ones(len(y))
    quick = coupled_left_out(K, y, one, one, fit)
    monkeypatch.setattr(coupled, "THRESHOLDS", (0.0,))
    whole = coupled_left_out(K, y, one, one, fit)
    losses = [fit.link.losses(Z, y) for Z in (fit.scores(K), quick, whole)]
    seen, few, many = (float(loss.mean()) for loss in losses)
    assert abs(few - many) < 0.05 * (many - seen)


@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_more_weights_than_rows_give_no_wild_scores(spread):
    """With 600 weights for 200 rows, many modes are nearly flat; new objects are the reference."""
    K, y = clouds(3, 12, N=1200, m=50, spread=spread)
    part, new = slice(0, 200), slice(200, None)
    _, _, fit = fitted(K[part], y[part])
    left = asked(K[part], y[part], fit)
    seen, quick, found = (
        float(fit.link.losses(Z, labels).mean())
        for Z, labels in (
            (fit.scores(K[part]), y[part]),
            (left, y[part]),
            (fit.scores(K[new]), y[new]),
        )
    )
    assert 0.5 < (quick - seen) / (found - seen) < 1.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_weight_zero_do_not_count(n_classes):
    K, y = rings(3, n_classes)
    weight = np.ones(len(y))
    weight[60:] = 0.0
    _, _, fit = fitted(K[:60], y[:60])
    alone = asked(K[:60], y[:60], fit)
    among = asked(K, y, fit, some=np.arange(60), weight=weight)
    np.testing.assert_allclose(softmax(among), softmax(alone), atol=1e-9)
    everybody = asked(K, y, fit, weight=weight)
    np.testing.assert_allclose(softmax(everybody[:60]), softmax(alone), atol=1e-9)
    np.testing.assert_array_equal(everybody[60:], fit.scores(K[60:]))


def test_beyond_the_memory_limit_scores_are_treated_separately(monkeypatch):
    K, y = clouds(2, 5, N=100, m=40)
    _, _, fit = fitted(K, y)
    together = asked(K, y, fit)
    monkeypatch.setattr(left_out, "COUPLED_BYTES", 1)
    alone = asked(K, y, fit)
    assert np.isfinite(alone).all()
    seen = fit.link.losses(fit.scores(K), y).mean()
    assert seen < fit.link.losses(together, y).mean() < fit.link.losses(alone, y).mean()


def test_a_few_rows_stand_for_all_of_them():
    K, y = rings(4, 3, N=3000)
    _, _, fit = fitted(K, y)
    some = np.arange(0, 3000, 5)
    whole = fit.link.losses(asked(K, y, fit), y)[some].mean()
    part = fit.link.losses(asked(K, y, fit, some=some), y[some]).mean()
    seen = fit.link.losses(fit.scores(K), y)[some].mean()
    assert 0.8 < (part - seen) / (whole - seen) < 1.25


def test_thinned_rows_leave_out_one_object_and_estimate_their_error():
    K, y = rings(5, 2, N=4000)
    rows = Rows(K, y)
    one = LeaveOneOut.of(rows, fit_pcvm(rows, y[:12]))
    other = LeaveOneOut.of(rows, fit_pcvm(rows, y[:12], prior=GammaPrior(0.5, 0.005)))
    expected, _ = compare(rows, one, other)
    found, errors, losses = [], [], []
    for seed in range(40):
        order = np.random.default_rng(seed).permutation(len(y))
        thinned = Rows(K[order], y[order]).thinned(200)
        more, error = compare(thinned, one, other)
        found.append(more)
        errors.append(error)
        losses.append(leave_one_out(thinned, one))
    # 40 draws determine the standard deviation to about a ninth
    assert 0.7 < np.mean(errors) / np.std(np.array(found) - expected) < 1.4
    seen = -one.fit.log_likelihood / len(y)
    whole = leave_one_out(rows, one)
    assert abs(np.mean(losses) - whole) < 3 * np.std(losses) / np.sqrt(40) + (whole - seen)


@pytest.mark.parametrize(("n_classes", "limit"), [(2, 1200), (3, 1200), (3, 0)])
def test_a_row_that_stands_for_four_is_left_out_as_one(n_classes, limit):
    """Four copies of each row give the same model as single rows that each stand for four."""
    K, y = rings(6, n_classes, N=80, m=8)
    four, whole = np.full(len(y), 4.0), np.repeat(np.arange(len(y)), 4)
    thinned, copies = Rows(K, y, four, drawn=four), Rows(K[whole], y[whole])
    fit = fit_pcvm(copies, y[:8])
    found = []
    for rows in (thinned, copies):
        (block,) = rows
        found.append(LeaveOneOut.of(rows, fit, limit=limit).left_out(block))
    moved = np.abs(found[0] - fit.scores(K)).max()
    np.testing.assert_allclose(found[0], found[1][::4], atol=1e-6 * moved)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leaving_out_the_only_support_of_a_weight_removes_it(n_classes):
    """An object far from all others is the only support of its weight; refits are the reference."""
    shares = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        y = np.arange(90) % n_classes
        angle = 2 * np.pi * y / n_classes
        X = rng.normal(size=(90, 2)) + 3 * np.column_stack([np.cos(angle), np.sin(angle)])
        X[0] = 12.0
        K = np.exp(-np.square(X[:, None] - X[None, :12]).sum(axis=2) / 4)
        rows = Rows(K, y)
        fit = fit_pcvm(rows, y[:12])
        rest = Rows(K[1:], y[1:], n_classes=n_classes)
        refit = fit_pcvm(rest, y[:12], start=(fit.weights, fit.bias), tol=1e-7)
        left = LeaveOneOut.of(rows, fit).losses(Block(K, y, np.ones(90)))[0]
        seen, without = (fit.link.losses(one.scores(K[:1]), y[:1])[0] for one in (fit, refit))
        assert without > 10 * seen
        shares.append((left - seen) / (without - seen))
    assert 0.95 < np.median(shares) < 1.05


@pytest.mark.parametrize("total", [0.0, 0.4, 1.0])
def test_root_of_the_softmax_curvature(total):
    rng = np.random.default_rng(0)
    P = total * rng.dirichlet(np.ones(4), size=6)
    s = rng.random(6)
    R = softmax_root(P, s)
    expected = s[:, None, None] * (P[:, :, None] * np.eye(4) - P[:, :, None] * P[:, None, :])
    np.testing.assert_allclose(R @ R.transpose(0, 2, 1), expected, atol=1e-12)


def test_without_row_is_a_newton_step():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(5, 3, 3))
    V = A @ A.transpose(0, 2, 1) / 20
    R, G, Z = rng.normal(size=(5, 3, 3)) / 2, rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    left, q, leverage = without_row(Z, V, G, R)
    assert leverage.max() < 1
    D = R @ R.transpose(0, 2, 1)
    expected = np.linalg.solve(np.eye(3) - V @ D, V @ G[:, :, None])[:, :, 0]
    np.testing.assert_allclose(left - Z, expected, rtol=1e-9)
    np.testing.assert_allclose(q, G + np.einsum("ncd,nd->nc", D, expected), rtol=1e-9)
