"""One suite for all selection rules, and tests specific to each."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from krein import IKFD, NystromMap
from krein.compare import Pairs
from krein.core.space import double_centre
from krein.datasets import make_three_gaussians
from krein.landmarks import (
    MEB,
    All,
    Entropy,
    KMeans,
    Leverage,
    Random,
    get_rule,
)
from krein.landmarks.base import given_pairs
from krein.landmarks.leverage import ridge_leverage
from krein.measures.function import FunctionMeasure
from krein.measures.vectors import ELM

from ..market import with_eigenvalues

RULES = [
    All(),
    MEB(),
    MEB(psd=False),
    MEB(psd=True),
    MEB(core_set=True, start="random"),
    KMeans(n_landmarks=6),
    Entropy(n_landmarks=6),
    Random(n_landmarks=6),
    Random(n_landmarks=6, stratified=True),
    Leverage(n_landmarks=6),
]
rules = pytest.mark.parametrize("rule", RULES, ids=repr)


def rng():
    return np.random.default_rng(0)


def points(n=90, seed=0):
    random = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    return random.normal(size=(n, 3)) + 3 * np.eye(3)[codes], codes


def lazy(X, kind="similarity", psd=None):
    """Pairs that are compared on demand, by an indefinite similarity or a dissimilarity."""
    if kind == "similarity":
        return Pairs(FunctionMeasure(lambda a, b: float(np.tanh(a @ b - 3)), psd=psd), X)
    return Pairs(FunctionMeasure(lambda a, b: float(np.abs(a - b).sum()), kind=kind, psd=psd), X)


def check(selection, n):
    assert (np.diff(selection.indices) > 0).all(), "ascending, without duplicates"
    assert selection.indices.min() >= 0
    assert selection.indices.max() < n


@rules
@pytest.mark.parametrize("kind", ["similarity", "dissimilarity"])
def test_from_a_lazy_measure_and_from_a_matrix(rule, kind):
    X, codes = points()
    pairs = lazy(X, kind)
    selection = rule.select(pairs, codes, rng())
    check(selection, 90)
    assert pairs.evaluations <= 90 * 100 + 90 * (len(selection.indices) + 2) + 500 * 7
    all_rows = np.arange(90)
    matrix = given_pairs(lazy(X, kind).block(all_rows, all_rows), kind)
    check(rule.select(matrix, codes, rng()), 90)


@rules
def test_the_same_seed_gives_the_same_landmarks_whatever_the_blocks(rule, monkeypatch):
    X, codes = points(300)
    first = rule.select(Pairs(ELM(), X, n_jobs=1), codes, rng()).indices
    again = rule.select(Pairs(ELM(), X, n_jobs=3), codes, rng()).indices
    assert_array_equal(first, again)
    monkeypatch.setattr("krein.compare.pairs.VALUES_BYTES", 5000)
    small = rule.select(Pairs(ELM(), X, n_jobs=2), codes, rng()).indices
    assert_array_equal(first, small)


@rules
def test_the_unit_does_not_matter(rule):
    X, codes = points()
    K = np.tanh(X @ X.T - 3)
    a = rule.select(given_pairs(K), codes, rng()).indices
    b = rule.select(given_pairs(1e6 * K), codes, rng()).indices
    assert_array_equal(a, b)


@rules
@pytest.mark.parametrize("K", [np.ones((12, 12)), np.zeros((12, 12))], ids=["identical", "zero"])
def test_identical_objects_and_a_zero_block(rule, K):
    selection = rule.select(given_pairs(K), np.arange(12) % 2, rng())
    check(selection, 12)


@rules
def test_without_labels(rule):
    X, _ = points()
    if getattr(rule, "stratified", False):
        with pytest.raises(ValueError, match="needs labels"):
            rule.select(Pairs(ELM(), X), None, rng())
    else:
        check(rule.select(Pairs(ELM(), X), None, rng()), 90)


@pytest.mark.parametrize("name", ["kmeans", "entropy", "random", "leverage"])
def test_the_default_number_is_that_of_meb(name):
    X, codes = points()
    number = len(MEB().select(Pairs(ELM(), X), codes, rng()).indices)
    assert len(get_rule(name).select(Pairs(ELM(), X), codes, rng()).indices) == number
    with pytest.raises(ValueError, match="at least 1; got 0"):
        get_rule(name, 0).select(Pairs(ELM(), X), codes, rng())
    with pytest.raises(ValueError, match="n_landmarks=91 landmarks cannot be chosen among 90"):
        get_rule(name, 91).select(Pairs(ELM(), X), codes, rng())
    assert len(get_rule(name, 90).select(Pairs(ELM(), X), codes, rng()).indices) == 90


class TestMEB:
    def test_at_least_two_of_every_class(self):
        X, codes = points()
        X[codes == 1] = 1.0  # a class of identical objects
        chosen = MEB(psd=False).select(Pairs(ELM(), X), codes, rng()).indices
        assert (np.bincount(codes[chosen]) >= 2).all()

    def test_copies_of_one_object_give_one_landmark(self):
        X, codes = points()
        X[codes == 1] = 1.0
        chosen = MEB().select(Pairs(ELM(), X), codes, rng()).indices
        assert np.bincount(codes[chosen])[1] == 1  # so that weights have the same effect as repeats

    def test_a_class_of_one(self):
        X, codes = points()
        codes[5] = 3
        with pytest.warns(UserWarning, match=r"one object \(row 5\)"):
            chosen = MEB().select(Pairs(ELM(), X), codes, rng()).indices
        assert 5 in chosen

    def test_every_object_lies_in_its_ball(self):
        X, codes = points()
        for kernel, psd in ((ELM().block(X, X), True), (np.tanh(X @ X.T - 3), False)):
            selection = MEB(psd=psd).select(given_pairs(kernel), codes, rng())
            assert selection.details["psd"] is psd
            for c, ball in enumerate(selection.details["balls"]):
                K = kernel[np.ix_(codes == c, codes == c)]
                K = K if psd else K @ K.T
                centre = K[:, ball.support] @ ball.alpha
                length = ball.alpha @ K[np.ix_(ball.support, ball.support)] @ ball.alpha
                distances = np.sqrt(np.maximum(np.diag(K) - 2 * centre + length, 0))
                assert distances.max() <= ball.radius * 1.01 * (1 + 1e-6)

    def test_definiteness_is_detected_and_reported(self):
        X, codes = points()
        assert MEB().select(given_pairs(X @ X.T), codes, rng()).details["psd"] is True
        K = with_eigenvalues([5, -4, 3], 90)
        assert MEB().select(given_pairs(K), codes, rng()).details["psd"] is False
        D = np.linalg.norm(X[:, None] - X[None], axis=2)
        euclidean = given_pairs(D, "dissimilarity")
        assert MEB().select(euclidean, codes, rng()).details["psd"] is True
        assert MEB(psd=False).select(euclidean, codes, rng()).details["psd"] is False

    def test_euclidean_distances_give_the_balls_of_their_inner_products(self):
        X, codes = points()
        D = np.linalg.norm(X[:, None] - X[None], axis=2)
        measure = FunctionMeasure(
            lambda a, b: float(np.linalg.norm(a - b)), kind="dissimilarity", psd=True
        )
        lazily = MEB().select(Pairs(measure, X), codes, rng()).details["balls"]
        dense = MEB().select(given_pairs(double_centre(D**2)), codes, rng()).details["balls"]
        assert_allclose([b.radius for b in lazily], [b.radius for b in dense], rtol=0.01)

    def test_a_sketch_costs_at_most_its_columns(self):
        X, codes = points(900)
        pairs = lazy(X)
        MEB(sketch=20).select(pairs, codes, rng())
        assert pairs.evaluations <= 900 * 20

    def test_the_psd_route_costs_a_column_for_each_core_point(self):
        X, codes = points(900)
        pairs = Pairs(ELM(), X)
        selection = MEB().select(pairs, codes, rng())
        columns = sum(ball.columns_used * 300 for ball in selection.details["balls"])
        assert pairs.evaluations == 900 + columns

    def test_smaller_epsilon_gives_more_landmarks(self):
        X, codes = points(300)
        sizes = [
            len(MEB(epsilon=e).select(Pairs(ELM(), X), codes, rng()).indices)
            for e in (0.3, 0.01, 0.0001)
        ]
        assert sizes[0] < sizes[1] <= sizes[2]

    def test_the_core_set_holds_the_surface_and_every_point_that_was_added(self):
        X, codes = points(300)
        for psd in (True, False):
            options = {"psd": psd, "start": "random"}
            surface = MEB(**options).select(Pairs(ELM(), X), codes, rng())
            core = MEB(**options, core_set=True).select(Pairs(ELM(), X), codes, rng())
            assert set(surface.indices) < set(core.indices)
            for ball in core.details["balls"]:
                assert set(ball.support) <= set(ball.core)
                assert len(ball.core) == ball.iterations + 2
            assert sum(len(ball.core) for ball in core.details["balls"]) == len(core.indices)

    def test_a_random_start_is_part_of_the_core_set(self):
        X, codes = points(300)
        rule, pairs = MEB(core_set=True, start="random"), given_pairs(ELM().block(X, X))
        found = {
            seed: rule.select(pairs, codes, np.random.default_rng(seed)).indices
            for seed in range(4)
        }
        assert len({tuple(indices) for indices in found.values()}) > 1
        for seed, indices in found.items():
            random = np.random.default_rng(seed)
            for c in range(3):
                assert np.flatnonzero(codes == c)[random.integers(100)] in indices
        with pytest.raises(ValueError, match="start must be 'farthest' or 'random'; got 'first'"):
            MEB(start="first").select(Pairs(ELM(), X), codes, rng())

    @pytest.mark.parametrize("epsilon", [0, -1])
    def test_epsilon(self, epsilon):
        X, codes = points()
        with pytest.raises(ValueError, match="epsilon must be positive"):
            MEB(epsilon=epsilon).select(Pairs(ELM(), X), codes, rng())


class TestEntropy:
    @pytest.mark.parametrize("given", [True, False])
    def test_entropy_rises_and_matches_the_subset(self, given):
        X, _ = points(200)
        K = ELM().block(X, X)
        pairs = given_pairs(K) if given else Pairs(ELM(), X)
        selection = Entropy(n_landmarks=8).select(pairs, None, rng())
        path = selection.details["entropy"]
        assert (np.diff(path) > 0).all()
        L = selection.indices
        assert_allclose(path[-1], -np.log(K[np.ix_(L, L)].sum() / 64), rtol=1e-9)

    def test_the_sum_of_an_indefinite_kernel_falls_below_zero(self):
        K = with_eigenvalues([5, -6, 3, -2], 60)
        selection = Entropy(n_landmarks=5).select(given_pairs(K), None, rng())
        path, L = selection.details["sums"], selection.indices
        assert (np.diff(path) < 0).all()
        assert_allclose(path[-1], K[np.ix_(L, L)].sum(), rtol=1e-9)
        assert path[-1] < 0
        assert "entropy" not in selection.details

    @pytest.mark.parametrize("given", [True, False])
    def test_distances_are_used_as_centred_similarities(self, given):
        X, _ = points()
        D = np.abs(X[:, None] - X[None]).sum(axis=2)
        pairs = given_pairs(D, "dissimilarity") if given else lazy(X, "dissimilarity")
        selection = Entropy(n_landmarks=7).select(pairs, None, rng())
        K, L = double_centre(D**2), selection.indices  # a sample of 100 objects is all of them
        assert_allclose(selection.details["sums"][-1], K[np.ix_(L, L)].sum(), rtol=1e-9)


def test_kmeans_puts_a_landmark_into_every_cluster():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(50, 2)) * 0.1 + c for c in ([0, 0], [9, 0], [0, 9])])
    chosen = KMeans(n_landmarks=3).select(given_pairs(X @ X.T), None, rng()).indices
    assert_array_equal(np.sort(chosen // 50), [0, 1, 2])


def test_stratified_draws_hit_every_class():
    codes = np.r_[np.zeros(97, int), 1, 2, 2]
    for seed in range(10):
        random = np.random.default_rng(seed)
        pairs = given_pairs(np.eye(100))
        chosen = Random(n_landmarks=5, stratified=True).select(pairs, codes, random).indices
        assert set(codes[chosen]) == {0, 1, 2}


def test_ridge_leverage_matches_its_definition_and_sums_to_the_number():
    B = np.random.default_rng(0).normal(size=(80, 10)) * np.linspace(5, 0.1, 10)
    scores = ridge_leverage(B, 4)
    assert_allclose(scores.sum(), 4, rtol=1e-6)
    assert (scores > 0).all()
    assert (scores < 1).all()
    K = B @ B.T
    lam = np.linalg.eigvalsh(K)[::-1][:10]
    from scipy.optimize import brentq

    gamma = brentq(lambda g: (lam / (lam + g)).sum() - 4, 1e-9, 1e9)
    assert_allclose(scores, np.diag(K @ np.linalg.inv(K + gamma * np.eye(80))), rtol=1e-4)


def test_leverage_prefers_an_outlier():
    X = np.concatenate(
        [np.ones((99, 3)) + 0.01 * np.random.default_rng(0).normal(size=(99, 3)), [[-9, 9, 0]]]
    )
    hits = [
        99
        in Leverage(n_landmarks=4, sketch=100)
        .select(given_pairs(X @ X.T), None, np.random.default_rng(s))
        .indices
        for s in range(20)
    ]
    assert np.mean(hits) > 0.5


def test_three_gaussians_of_the_paper():
    """MEB finds the small class with about ten landmarks; random ones need not (section 4.3)."""
    X, labels = make_three_gaussians(random_state=0)
    clf = IKFD("elm", landmarks="meb", random_state=0).fit(X[::2], labels[::2])
    assert clf.score(X[1::2], labels[1::2]) == 1.0
    assert 4 <= len(clf.landmarks_) <= 20
    blind = IKFD("elm", landmarks="random", n_landmarks=len(clf.landmarks_), random_state=0)
    assert blind.fit(X[::2], labels[::2]).score(X[1::2], labels[1::2]) < 0.97


@pytest.mark.filterwarnings("ignore:the approximation is unstable")
@pytest.mark.parametrize("measure", ["precomputed", "precomputed-distance", "elm"])
def test_nystrom_map_gives_the_approximation(measure):
    X, codes = points()
    K = {"elm": X, "precomputed": np.tanh(X @ X.T - 3)}.get(
        measure, np.abs(X[:, None] - X[None]).sum(axis=2)
    )
    full = NystromMap(measure, landmarks="all").fit(K)
    B = full.transform(K)
    truth = {
        "elm": lambda: ELM().block(X, X),
        "precomputed": lambda: K,
        "precomputed-distance": lambda: double_centre(K**2),
    }[measure]()
    assert_allclose((B * full.signs_) @ B.T, truth, atol=1e-8 * np.abs(truth).max())
    lam = np.linalg.eigvalsh(truth)
    lam = lam[np.abs(lam) > 1e-10 * np.abs(lam).max()]
    assert_allclose(np.sort(full.eigenvalues_), lam, atol=1e-8 * np.abs(lam).max())
    assert full.signature_ == ((lam > 0).sum(), (lam < 0).sum(), 90 - len(lam))
    low = NystromMap(measure, random_state=0).fit(K, codes)
    assert low.transform(K).shape == (90, len(low.signs_))
    assert len(low.landmarks_) < 90
    cut = NystromMap(measure, landmarks="all", rank=4).fit(K)
    assert cut.transform(K).shape == (90, 4)


def test_unknown_rules_and_numbers_are_named():
    with pytest.raises(ValueError, match="unknown landmark rule 'x'; choose one of all, meb"):
        get_rule("x")
    with pytest.raises(ValueError, match="MEB finds its own number"):
        get_rule("meb", 5)
