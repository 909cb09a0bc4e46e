"""PCVM as users see it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import krein
import krein.core.pcvm.rows
import krein.data.local
from krein import PCVM
from krein.core.pcvm.published import fit_published, fit_published_nystrom

from ..market import with_eigenvalues

X, y = load_iris(return_X_y=True)


def checkerboard(n, seed=0):
    Z = np.random.default_rng(seed).uniform(0, 3, size=(n, 2))
    return Z, Z.astype(int).sum(axis=1) % 2


@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
@pytest.mark.parametrize("landmarks", ["meb", "random", "all"])
def test_probabilities(landmarks, multiclass):
    objects, labels = X[::2], y[::2]
    clf = PCVM("elm", landmarks=landmarks, multiclass=multiclass, random_state=0).fit(
        objects, labels
    )
    P = clf.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1)
    assert_array_equal(clf.predict(X), clf.classes_[P.argmax(axis=1)])
    assert clf.score(X[1::2], y[1::2]) > 0.9
    assert set(clf.relevance_) <= set(range(75))
    assert clf.converged_
    assert (np.diff(clf.objective_path_) >= -1e-9 * np.abs(clf.objective_path_[0])).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_low_rank_equals_dense_on_a_low_rank_kernel(classes):
    K = with_eigenvalues([9, -7, 5, -3, 2], 60)
    V = np.linalg.eigh(K)[1][:, -classes:]
    labels = np.argmax(V + 0.05 * np.random.default_rng(0).normal(size=V.shape), axis=1)
    options = {"sparse": False, "n_basis": "all"}
    dense = PCVM("precomputed", landmarks="all", **options).fit(K, labels)
    low = PCVM("precomputed", landmarks=np.arange(0, 60, 6), **options).fit(K, labels)
    a, b = dense.decision_function(K), low.decision_function(K)
    assert_allclose(a, b, atol=1e-6 * np.abs(a).max())


@pytest.mark.parametrize("landmarks", ["all", np.arange(0, 150, 5)], ids=["all", "some"])
@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
def test_units_far_from_one(multiclass, landmarks):
    K = X @ X.T - 0.3 * np.abs(X[:, None] - X[None]).sum(axis=2)
    options = {"landmarks": landmarks, "multiclass": multiclass, "calibrate": True}
    a = PCVM("precomputed", **options).fit(K, y)
    assert a.score(K, y) > 0.9
    for unit in (1e-60, 1e60):
        b = PCVM("precomputed", **options).fit(unit * K, y)
        assert_array_equal(b.predict(unit * K), a.predict(K))
        assert_allclose(b.predict_proba(unit * K), a.predict_proba(K), atol=1e-4)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize("kind", ["precomputed", "precomputed-distance"])
def test_the_unit_does_not_matter(unit, kind):
    Z, labels = checkerboard(200)
    D = np.abs(Z[:, None] - Z[None]).sum(axis=2)
    K = np.exp(-D) - 0.1 * D if kind == "precomputed" else D
    a = PCVM(kind, random_state=0).fit(K, labels)
    b = PCVM(kind, random_state=0).fit(unit * K, labels)
    assert_array_equal(a.landmarks_, b.landmarks_)
    assert_allclose(a.predict_proba(K), b.predict_proba(unit * K), atol=1e-5)


def test_signs_follow_the_labels():
    Z, labels = checkerboard(300)
    clf = PCVM("elm", landmarks="random", n_landmarks=40, random_state=0).fit(Z, labels)
    weights = clf.dual_coef_[:, 0]
    assert (weights[labels[clf.landmarks_] == 1] >= 0).all()
    assert (weights[labels[clf.landmarks_] == 0] <= 0).all()
    assert_array_equal(clf.relevance_, clf.landmarks_)


def test_a_checkerboard_is_learned_with_few_landmarks():
    Z, labels = checkerboard(3000)
    Z_new, labels_new = checkerboard(2000, seed=1)
    clf = PCVM("elm", landmarks="random", n_landmarks=100, random_state=0).fit(Z, labels)
    assert clf.score(Z_new, labels_new) > 0.95
    assert len(clf.landmarks_) <= 60
    assert 3000 * 90 < clf.comparisons_to_fit_ <= 3000 * 100, "N·m, minus symmetric pairs"


def test_more_basis_objects_than_landmarks():
    Z, labels = checkerboard(400)
    given = np.arange(0, 400, 10)
    clf = PCVM("elm", landmarks=given, n_basis=120, random_state=0).fit(Z, labels)
    assert len(clf.landmarks_) <= 40, "whichever is less: basis objects or landmarks"
    assert clf.score(Z, labels) > 0.9
    assert_array_equal(
        PCVM("elm", landmarks=given, n_basis=120, random_state=0).fit(Z, labels).relevance_,
        clf.relevance_,
    )


def test_every_value_is_either_compared_or_reused(tmp_path):
    Z, labels = checkerboard(400)
    options = {"landmarks": np.arange(0, 400, 4), "n_basis": 120, "random_state": 0}
    first = PCVM("elm", cache=tmp_path, **options).fit(Z, labels)
    assert not set(first.landmarks_) <= set(options["landmarks"]), "refitted to basis objects"
    again = PCVM("elm", cache=tmp_path, **options).fit(Z, labels)
    assert again.comparisons_to_fit_ == 0
    assert again.comparisons_reused_ == first.comparisons_to_fit_ + first.comparisons_reused_


@pytest.mark.parametrize("landmarks", ["all", np.arange(0, 150, 5)])
@pytest.mark.filterwarnings("ignore:the published PCVM did not converge")
def test_the_published_algorithm(landmarks):
    labels = np.array(["a", "b", "b"])[y]
    clf = PCVM("linear", landmarks=landmarks, solver="paper", random_state=0).fit(X, labels)
    assert clf.n_iter_ <= 500
    assert clf.stop_reason_
    P = clf.predict_proba(X)
    assert np.isfinite(P).all()
    assert_allclose(P.sum(axis=1), 1)
    again = PCVM("linear", landmarks=landmarks, solver="paper", random_state=0).fit(X, labels)
    assert_array_equal(again.dual_coef_, clf.dual_coef_)
    assert PCVM("linear", landmarks=landmarks, solver="paper", random_state=0).fit(X, y).predict(
        X
    ).shape == (150,)


def test_class_weights_move_the_boundary():
    Z, labels = checkerboard(300)
    base = PCVM("elm", random_state=0).fit(Z, labels).predict_proba(Z)[:, 1].mean()
    more = (
        PCVM("elm", class_weight={1: 20.0}, random_state=0)
        .fit(Z, labels)
        .predict_proba(Z)[:, 1]
        .mean()
    )
    assert more > base + 0.05


def test_basis_objects_are_dropped_where_objects_are_many():
    """On by default for two classes with enough objects per landmark; `sparse` overrides it."""
    Z, labels = checkerboard(400)
    for m, few in ((20, True), (100, False)):
        options = {"landmarks": np.arange(m), "n_jobs": 1}
        kept = {
            sparse: PCVM("elm", sparse=sparse, **options).fit(Z, labels).relevance_.tolist()
            for sparse in (True, False, None)
        }
        assert set(kept[True]) < set(kept[False])
        assert kept[None] == kept[few]


@pytest.mark.parametrize("calibrate", [False, True])
def test_class_weights_are_relative(calibrate):
    """Doubling the weight of every class adds no evidence: the number of objects stays the same."""
    Z, labels = checkerboard(300)
    options = {"landmarks": np.arange(0, 300, 10), "calibrate": calibrate}
    few, many = (
        PCVM("elm", class_weight={0: unit, 1: 3 * unit}, **options).fit(Z, labels)
        for unit in (1.0, 100.0)
    )
    assert_allclose(few.predict_proba(Z), many.predict_proba(Z), rtol=1e-6)
    same = PCVM("elm", class_weight={0: 7.0, 1: 7.0}, **options).fit(Z, labels)
    none = PCVM("elm", **options).fit(Z, labels)
    assert_allclose(same.predict_proba(Z), none.predict_proba(Z), rtol=1e-6)


def test_strings_and_calibration_and_files(tmp_path):
    words = ["house", "mouse", "louse", "horse", "morse", "nurse"] * 2
    woerter = ["haus", "maus", "laus", "ross", "torf", "wurst"] * 2
    labels = ["en"] * 12 + ["de"] * 12
    clf = PCVM("levenshtein", landmarks="all", calibrate=True).fit(words + woerter, labels)
    assert_array_equal(clf.predict(["house", "haus"]), ["en", "de"])
    clf.save(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein")
    assert_array_equal(again.predict_proba(words), clf.predict_proba(words))
    assert_array_equal(again.relevance_, clf.relevance_)


def test_grown_landmarks():
    Z, labels = checkerboard(500)
    clf = PCVM("elm", landmarks="auto", random_state=0).fit(Z, labels)
    assert clf.score(*checkerboard(1000, seed=2)) > 0.9
    assert len(clf.selection_.details["curve"]["landmarks"]) > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "sgd"}, "solver must be 'em', 'paper' or 'paper-exact'"),
        ({"n_basis": 151}, "n_basis=151 is out of range for 150 objects"),
        ({"n_basis": "some"}, "n_basis must be a number"),
        ({"multiclass": "x"}, "'joint' or 'ovr'"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        PCVM("elm", **options).fit(X, y)


@pytest.mark.filterwarnings("ignore:the published PCVM did not converge")
def test_the_basis_function_is_chosen_and_saved(tmp_path):
    """The power of d is chosen from the data, reported, saved, and reproduced after loading."""
    X, y = checkerboard(600)
    D = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    options = {"landmarks": np.arange(30), "random_state": 0}
    clf = PCVM("precomputed-distance", **options).fit(D, y)
    assert clf.basis_function_ == "-d"
    clf.save(tmp_path / "model.krein")
    assert_array_equal(krein.load(tmp_path / "model.krein").predict_proba(D), clf.predict_proba(D))
    by_hand = D[:, clf.landmarks_] @ -clf.dual_coef_[:, 0] + clf.intercept_
    assert_array_equal(clf.predict(D) == clf.classes_[1], by_hand > 0)
    few = np.arange(100)
    assert clf.fit(D[np.ix_(few, few)], y[few]).basis_function_ == "-d²/2"
    assert clf.fit(D, y).basis_function_ == "-d"
    assert PCVM("precomputed", **options).fit(np.exp(-D), y).basis_function_ == "similarity"
    for more in ({"n_basis": 60}, {"solver": "paper"}):
        centred = PCVM("precomputed-distance", **options, **more).fit(D, y)
        assert centred.basis_function_ == "similarity"


def test_calibration_uses_the_chosen_basis_function():
    X, y = checkerboard(600)
    D = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    new, truth = checkerboard(600, seed=1)
    away = np.sqrt(np.square(new[:, None] - X).sum(axis=2))
    clf = PCVM("precomputed-distance", landmarks=np.arange(60), calibrate=True).fit(D, y)
    own = clf.predict_proba(away)[np.arange(600), np.searchsorted(clf.classes_, truth)]
    assert clf.basis_function_ in ("-d", "-√d")
    # with −½d², a quadratic, scores would be uninformative and the temperature far from 1
    assert 0.5 < clf.temperature_ < 2
    assert -np.log(own).mean() < 0.3


def test_landmarks_grow_with_the_basis_functions_that_need_them():
    X, y = checkerboard(600)
    D = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    new, truth = checkerboard(600, seed=1)
    away = np.sqrt(np.square(new[:, None] - X).sum(axis=2))
    clf = PCVM("precomputed-distance", landmarks="auto", random_state=0)
    assert clf.fit(D, y).score(away, truth) > 0.9  # −½d² would reach 62 %
    few = np.arange(60)
    once = clf.fit(D[np.ix_(few, few)], y[few])
    anew = PCVM("precomputed-distance", landmarks="auto", random_state=0)
    anew.fit(D[np.ix_(few, few)], y[few])
    assert once.basis_function_ == anew.basis_function_
    assert_array_equal(once.predict_proba(D[:, few]), anew.predict_proba(D[:, few]))


def test_only_the_landmarks_have_weight():
    X, y = checkerboard(300)
    D = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    weights = np.zeros(300)
    weights[:20] = 1.0
    clf = PCVM("precomputed-distance", landmarks=np.arange(20)).fit(D, y, weights)
    assert clf.basis_function_ == "-d²/2"


@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
def test_threads_that_share_a_pass_do_not_change_results(multiclass, monkeypatch):
    monkeypatch.setattr(krein.core.pcvm.rows, "BLOCK_BYTES", 1)  # 256 rows per block
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(1500, 3))
    labels = np.digitize(np.hypot(Z[:, 0], Z[:, 1]) + 0.2 * rng.normal(size=1500), [1.0, 1.6])
    found = []
    for shared, n_jobs in ((2**60, 1), (0, 1), (0, 3)):
        monkeypatch.setattr(krein.data.local, "SHARED_BYTES", shared)
        clf = PCVM("elm", landmarks=np.arange(0, 1500, 40), multiclass=multiclass, n_jobs=n_jobs)
        found.append(clf.fit(Z, labels).predict_proba(Z))
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


@pytest.mark.parametrize(
    ("landmarks", "solver"),
    [("all", "paper"), (np.arange(0, 160, 4), "paper"), (np.arange(0, 160, 4), "paper-exact")],
)
@pytest.mark.filterwarnings("ignore:the published PCVM did not converge")
def test_one_against_rest_as_published_fits_a_model_for_each_class(landmarks, solver):
    """Each column of weights is the published PCVM of one class against the rest, in turn."""
    labels = np.arange(160) % 4
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(160, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[labels]
    K = np.exp(-0.1 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    options = {"landmarks": landmarks, "solver": solver, "random_state": 0}
    clf = PCVM("precomputed", multiclass="ovr", **options).fit(K, labels)
    assert clf.dual_coef_.shape[1] == 4
    start = np.random.default_rng(0)  # one stream of random numbers for all classes
    L = np.arange(160) if isinstance(landmarks, str) else landmarks
    expected, kept = np.empty((160, 4)), set()
    for c in range(4):
        t = np.where(labels == c, 1.0, -1.0)
        if len(L) == 160:
            fit = fit_published(K, t, start)
            approximation = K
        else:
            exact = solver == "paper-exact"
            fit = fit_published_nystrom(K[:, L], K[np.ix_(L, L)], t, start, exact=exact)
            approximation = K[:, L] @ np.linalg.pinv(K[np.ix_(L, L)], rcond=1e-10) @ K[L]
        expected[:, c] = approximation @ fit.weights + fit.bias
        kept |= set(fit.kept.tolist())
    assert_allclose(K[:, L] @ clf.dual_coef_ + clf.intercept_, expected, atol=1e-5)
    assert set(clf.relevance_) == kept
    shares = norm.cdf(expected)
    assert_allclose(clf.predict_proba(K), shares / shares.sum(axis=1, keepdims=True), atol=1e-5)
    pairs = PCVM("precomputed", **options).fit(K, labels)
    assert pairs.dual_coef_.shape[1] == 6


def test_the_published_solver_says_when_it_fails():
    labels = np.arange(120) % 3
    Z = np.random.default_rng(0).normal(size=(120, 2)) + 4 * np.eye(3)[labels][:, :2]
    K = np.exp(-0.1 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    clf = PCVM("precomputed", solver="paper", multiclass="ovr", landmarks="all", random_state=0)
    with (
        pytest.warns(UserWarning, match=r"common level of .* use solver='em'"),
        pytest.warns(ConvergenceWarning, match="did not converge"),
    ):
        clf.fit(K + 1e6, labels)
    noise = np.random.default_rng(0).normal(size=(120, 120))
    with pytest.warns(ConvergenceWarning, match=r"every weight was pruned \(3 of 3 models\)"):
        PCVM("precomputed", solver="paper", multiclass="ovr", landmarks="all", random_state=0).fit(
            -np.eye(120) - 1e-3 * (noise + noise.T), labels
        )


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("landmarks", ["all", np.arange(0, 150, 5)])
@pytest.mark.filterwarnings("ignore:the published PCVM did not converge")
def test_the_published_solver_handles_two_classes_and_more(n_classes, landmarks):
    rng = np.random.default_rng(0)
    labels = np.arange(150) % n_classes
    Z = rng.normal(size=(150, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[labels]
    clf = PCVM("rbf", landmarks=landmarks, solver="paper", random_state=0).fit(Z, labels)
    P = clf.predict_proba(Z)
    assert P.shape == (150, n_classes)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert clf.score(Z, labels) > 0.9
