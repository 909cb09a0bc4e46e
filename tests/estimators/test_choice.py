"""Settings that IKFD and IKQD choose themselves: shrinkage, power of a dissimilarity, scale."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

import krein.estimators.discriminants
from krein import IKFD, IKQD, PCVM, KreinClassifier, NystromMap
from krein.datasets import make_balls, make_two_gaussians
from krein.estimators.folds import dealt_folds

from .test_ikfd_ikqd import manhattan_problem

BOTH = pytest.mark.parametrize("cls", [IKFD, IKQD])


@BOTH
@pytest.mark.parametrize("landmarks", ["all", "meb"])
@pytest.mark.parametrize("seed", range(3))
def test_the_choice_is_no_worse_than_its_candidates(cls, landmarks, seed):
    if cls is IKQD and landmarks == "all":
        pytest.skip("would need a covariance per class in every dimension")
    X, y = make_two_gaussians(300, random_state=seed)
    new, truth = make_two_gaussians(2000, random_state=100 + seed)
    losses = {
        shrinkage: log_loss(
            truth,
            cls("elm", landmarks=landmarks, shrinkage=shrinkage, random_state=0)
            .fit(X, y)
            .predict_proba(new),
        )
        for shrinkage in ("auto", "oas", 0.0)
    }
    assert losses["auto"] < min(losses["oas"], losses[0.0]) + 0.01
    if landmarks == "all":
        assert losses["auto"] < 0.5 * losses["oas"]


@BOTH
def test_target_and_power_are_reported(cls):
    K, y = manhattan_problem()
    clf = cls("precomputed", landmarks=np.arange(0, 120, 6)).fit(K, y)
    assert clf.target_ in ("similarities", "identity", "landmarks", "diagonal")
    assert clf.power_ is None
    assert cls("precomputed-distance", random_state=0).fit(-K - np.diag(np.diag(-K)), y).power_ in (
        1.0,
        0.5,
        0.25,
    )


def squared_board(seed=0, n=240):
    """Squared distances on a 3×3 board, whose fields are separated by their square roots."""
    Z = np.random.default_rng(seed).uniform(0, 3, size=(n, 2))
    return np.linalg.norm(Z[:, None] - Z[None], axis=2) ** 2, Z.astype(int).sum(axis=1) % 2


@pytest.mark.parametrize("cls", [IKFD, IKQD])
@pytest.mark.parametrize("landmarks", ["all", np.arange(0, 160, 5)])
def test_the_power_of_a_dissimilarity_is_chosen_without_more_comparisons(cls, landmarks):
    D, y = squared_board()
    train, test = slice(0, 160), slice(160, None)
    a = cls("precomputed-distance", landmarks=landmarks).fit(D[train, train], y[train])
    b = cls("precomputed-distance", landmarks=landmarks, shrinkage="oas").fit(
        D[train, train], y[train]
    )
    assert a.power_ < 1
    assert b.power_ == 1
    assert a.comparisons_to_fit_ == b.comparisons_to_fit_
    losses = [log_loss(y[test], clf.predict_proba(D[test, train])) for clf in (a, b)]
    assert losses[0] < 0.5 * losses[1]


def test_pcvm_with_all_landmarks_chooses_a_power():
    D, y = squared_board()
    clf = PCVM("precomputed-distance", landmarks="all").fit(D[:160, :160], y[:160])
    assert clf.basis_function_ != "-d²/2"
    balls, radius = make_balls(120, random_state=0)
    assert PCVM("balls", landmarks="all").fit(balls, radius).basis_function_ == "-d²/2"


def test_balls_keep_their_squares():
    balls, radius = make_balls(200, random_state=0)
    assert IKFD("balls", landmarks="all").fit(balls, radius).power_ == 1


@pytest.mark.parametrize("measure", ["precomputed", "precomputed-distance"])
def test_dense_needs_at_most_two_large_decompositions(measure, monkeypatch):
    K, y = manhattan_problem(n=300)
    V = K if measure == "precomputed" else np.abs(K - np.diag(np.diag(K)))
    for module in (krein.core.gaussian, krein.estimators.discriminants):
        monkeypatch.setattr(module, "CHOICE_LANDMARKS", 50)
    sizes = []
    real = np.linalg.eigh

    def counted(A, *args, **kwargs):
        sizes.append(len(A))
        return real(A, *args, **kwargs)

    monkeypatch.setattr(np.linalg, "eigh", counted)
    IKFD(measure, landmarks="all", calibrate=True).fit(V, y)
    assert sum(size > 150 for size in sizes) <= (1 if measure == "precomputed" else 2)


@pytest.mark.parametrize("measure", ["precomputed", "precomputed-distance"])
def test_calibrated_probabilities_do_not_depend_on_the_order_of_rows(measure):
    K, y = manhattan_problem()
    V = K if measure == "precomputed" else np.abs(K - np.diag(np.diag(K)))
    y = np.where(np.arange(120) % 11 == 0, (y + 1) % 3, y)  # some labels are wrong
    order = np.random.default_rng(1).permutation(120)
    a = IKFD(measure, landmarks="all", calibrate=True).fit(V, y)
    b = IKFD(measure, landmarks="all", calibrate=True)
    b.fit(V[np.ix_(order, order)], y[order])
    assert a.temperature_ != 1
    assert_allclose(b.predict_proba(V[:, order]), a.predict_proba(V), atol=1e-8)


def test_folds_are_assigned_by_content():
    K, y = manhattan_problem()
    folds = dealt_folds(K, y, None)
    order = np.random.default_rng(0).permutation(120)
    assert np.array_equal(dealt_folds(K[np.ix_(order, order)], y[order], None), folds[order])
    assert np.ptp(np.bincount(folds)) <= 1


@pytest.mark.parametrize(("n_classes", "size"), [(40, 5), (11, 13)])
def test_classes_of_equal_size_are_dealt_evenly(n_classes, size):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(n_classes), size))
    folds = dealt_folds(rng.normal(size=(len(y), 7)), y, None)
    table = np.zeros((n_classes, folds.max() + 1), dtype=int)
    np.add.at(table, (y, folds), 1)
    assert (np.ptp(table, axis=0) <= 1).all()


def test_one_class_of_landmarks_does_not_decide_the_number_of_folds():
    y = np.append(np.repeat(np.arange(1, 40), 5), 0)  # the other four of class 0 are landmarks
    sizes = np.full(40, 5)
    values = np.random.default_rng(0).normal(size=(len(y), 7))
    folds = dealt_folds(values, y, None, sizes.astype(float), collected=sizes)
    assert folds.max() + 1 == 4


def test_a_fold_holds_at_most_one_object_of_a_small_class():
    """Otherwise, some of them would be held out together, although new objects find all of them."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(30), rng.integers(2, 11, 30))
    y = np.append(y, np.full(60, 30))
    folds = dealt_folds(rng.normal(size=(len(y), 3)), y, None)
    assert (folds >= 0).all()
    for c in range(30):
        assert np.bincount(folds[y == c]).max() == 1


@BOTH
@pytest.mark.parametrize("unit", [1e-140, 1e-78, 1e100])
def test_units_far_from_one(cls, unit):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 1.5])
    y = np.repeat([0, 1], 40)
    for landmarks in ("all", np.arange(0, 80, 8)):
        options = {"landmarks": landmarks, "calibrate": True}
        a = cls("linear", **options).fit(X, y).predict_proba(X)
        b = cls("linear", **options).fit(X * unit, y).predict_proba(X * unit)
        assert_allclose(b, a, atol=1e-8)


@pytest.mark.parametrize("rule", ["meb", "kmeans", "entropy", "leverage", "random", "stratified"])
@BOTH
def test_landmarks_do_not_depend_on_the_unit(cls, rule):
    """The fourth powers of these values are outside the range of floating-point numbers."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    D, y = np.abs(X[:, None] - X).sum(axis=2), (X[:, 0] > 0).astype(int)
    options = {} if rule == "meb" else {"n_landmarks": 8}
    options |= {"landmarks": rule, "random_state": 0}
    a = cls("precomputed-distance", **options).fit(D, y)
    for unit in (2.0**330, 2.0**-330):
        b = cls("precomputed-distance", **options).fit(D * unit, y)
        assert_array_equal(b.landmarks_, a.landmarks_)
        assert_allclose(b.predict_proba(D * unit), a.predict_proba(D), atol=1e-8)


@BOTH
def test_values_without_enough_precision_are_refused(cls):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    for offset in (1e6, 1e11):
        with pytest.raises(ValueError, match="subtract the column means"):
            cls("linear", landmarks="all").fit(X + offset, y)
    with pytest.raises(ValueError, match="multiply the objects or the values"):
        cls("linear", landmarks="all").fit(X * 1e-155, y)
    with pytest.raises(ValueError, match="weights count objects"):
        cls("linear", landmarks="all").fit(X, y, sample_weight=np.full(60, 1e300))


@pytest.mark.parametrize("cls", [IKFD, IKQD, PCVM, KreinClassifier, NystromMap])
def test_values_that_underflow_are_refused(cls):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    for kept in ({}, {"landmarks": "all"}, {"landmarks": np.arange(0, 60, 5)}):
        with pytest.raises(ValueError, match="Multiply the objects by a constant"):
            cls("linear", **kept).fit(X * 1e-170, y)
