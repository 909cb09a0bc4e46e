"""IKFD and IKQD as users see them."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.datasets import load_iris, make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from threadpoolctl import threadpool_limits

import krein
from krein import IKFD, IKQD
from krein.compare import open_new_pairs
from krein.core.space import Conversion
from krein.landmarks import Random

from ..market import with_eigenvalues

X, y = load_iris(return_X_y=True)
BOTH = pytest.mark.parametrize("cls", [IKFD, IKQD])


def manhattan_problem(seed=0, n=120):
    rng = np.random.default_rng(seed)
    Z, labels = make_blobs(n, centers=3, n_features=4, random_state=seed)
    K = -np.abs(Z[:, None] - Z[None]).sum(axis=2)
    return K + 0.01 * with_eigenvalues(rng.normal(size=n), n), labels


def test_dense_equals_low_rank_when_the_landmarks_span():
    K = with_eigenvalues([5, -4, 3, -2, 1], 100)
    labels = (K[:, 0] > 0).astype(int)
    dense = IKFD("precomputed", landmarks="all", shrinkage=0.0).fit(K, labels)
    low = IKFD("precomputed", landmarks=np.arange(20, 30), shrinkage=0.0).fit(K, labels)
    d = dense.decision_function(K)
    assert_allclose(low.decision_function(K), d, atol=1e-8 * np.abs(d).max())
    assert dense.signature_ == low.signature_ == (3, 2, 95)


@BOTH
@pytest.mark.parametrize("landmarks", ["all", "meb", "kmeans", "entropy", "random", "leverage"])
def test_every_rule_fits_an_indefinite_matrix(cls, landmarks):
    K, labels = manhattan_problem()
    clf = cls("precomputed", landmarks=landmarks, random_state=0).fit(K, labels)
    assert clf.score(K, labels) > 0.8
    assert clf.signature_.negative > 0 or landmarks != "all"
    P = clf.predict_proba(K)
    assert_allclose(P.sum(axis=1), 1)
    assert_array_equal(clf.predict(K), clf.classes_[P.argmax(axis=1)])
    assert_array_equal(clf.rank_labels(K)[:, 0], clf.predict(K))


@BOTH
@pytest.mark.parametrize("unit", [1e-6, 1000.0])
@pytest.mark.parametrize("landmarks", ["all", "meb"])
def test_the_unit_of_the_similarity_does_not_matter(cls, unit, landmarks):
    K, labels = manhattan_problem()
    a = cls("precomputed", landmarks=landmarks, random_state=0).fit(K, labels)
    b = cls("precomputed", landmarks=landmarks, random_state=0).fit(unit * K, labels)
    assert_array_equal(a.landmarks_, b.landmarks_)
    assert_allclose(a.predict_proba(K), b.predict_proba(unit * K), atol=1e-6)


@BOTH
@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"priors": "uniform"}])
def test_partial_fit_matches_fit(cls, options):
    landmarks = [0, 10, 20, 60, 70, 80]
    order = np.r_[0:30, 50:90, 30:50, 90:150]  # the third class comes late
    given = [int(np.flatnonzero(order == i)[0]) for i in landmarks]
    whole = cls("elm", landmarks=given, **options).fit(X[order], y[order])
    parts = cls("elm", landmarks=given, **options)
    for chunk in np.split(order, [70, 90, 110]):
        parts.partial_fit(X[chunk], y[chunk], classes=[0, 1, 2])
    assert_allclose(parts.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-7)
    assert parts.comparisons_to_fit_ == whole.comparisons_to_fit_ == 150 * 6
    if cls is IKFD:
        other = cls("elm", landmarks=given, multiclass="ovr", **options).fit(X[order], y[order])
        again = cls("elm", landmarks=given, multiclass="ovr", **options)
        for chunk in np.split(order, [70, 90]):
            again.partial_fit(X[chunk], y[chunk], classes=[0, 1, 2])
        assert_allclose(again.predict_proba(X), other.predict_proba(X), atol=1e-9)


def test_chunks_of_a_matrix_may_be_wide_or_narrow():
    K, labels = manhattan_problem()
    landmarks = np.array([3, 10, 30, 50])
    whole = IKFD("precomputed", landmarks=landmarks).fit(K, labels)
    parts = IKFD("precomputed", landmarks=landmarks)
    parts.partial_fit(K[:60, :60], labels[:60], classes=[0, 1, 2])
    parts.partial_fit(K[60:80, :60], labels[60:80])
    parts.partial_fit(K[80:][:, landmarks], labels[80:])
    assert_allclose(parts.predict_proba(K[:, landmarks]), whole.predict_proba(K), atol=1e-9)


def test_every_pair_is_compared_once():
    calls = []

    def similarity(a, b):
        calls.append((a, b))
        return float(np.tanh(a * b)) - abs(a - b)

    objects = list(np.random.default_rng(0).normal(size=40))
    labels = np.array(objects) > 0
    clf = IKFD(similarity, landmarks=[1, 5, 9]).fit(objects, labels)
    spent = clf.comparisons_to_fit_
    assert spent == len(calls)
    assert spent <= 40 * 3 + 16, "N·m, and a few to test the symmetry of the function"
    calls.clear()
    clf.predict(objects[:7])
    assert len(calls) == 7 * 3


@BOTH
@pytest.mark.parametrize("landmarks", ["all", "meb"])
def test_calibration_improves_probabilities_and_compares_no_pair_again(cls, landmarks):
    K, labels = manhattan_problem(n=150)
    flipped = labels.copy()
    flipped[::7] = (flipped[::7] + 1) % 3  # noise, which an overconfident model pays for
    overconfident = {"landmarks": landmarks, "shrinkage": 0.01, "random_state": 0}
    raw = cls("precomputed", **overconfident)
    calibrated = cls("precomputed", calibrate=True, **overconfident)
    losses = [
        log_loss(flipped, cross_val_predict(clf, K, flipped, method="predict_proba", cv=5))
        for clf in (raw, calibrated)
    ]
    assert losses[1] < losses[0] - 0.2
    a, b = raw.fit(K, flipped), calibrated.fit(K, flipped)
    assert a.comparisons_to_fit_ == b.comparisons_to_fit_ > 0
    assert_array_equal(a.predict(K), b.predict(K))
    assert b.temperature_ < 1.0


def test_objects_far_away_have_probabilities_too():
    clf = IKFD("linear", landmarks="all").fit(X, y)
    P = clf.predict_proba(1e12 * X[:5])
    assert np.isfinite(P).all()
    assert_allclose(P.sum(axis=1), 1)
    assert not np.isnan(clf.predict_log_proba(1e12 * X[:5])).any()


def test_priors_and_class_weights_move_the_boundary():
    base = IKFD("elm", random_state=0).fit(X, y).predict_proba(X)
    for option in ({"priors": [0.01, 0.98, 0.01]}, {"class_weight": {1: 98.0}}):
        moved = IKFD("elm", random_state=0, **option).fit(X, y).predict_proba(X)
        assert moved[:, 1].sum() > base[:, 1].sum() + 1
    named = IKFD("elm", priors={0: 0.98, 1: 0.01, 2: 0.01}, random_state=0).fit(X, y)
    assert_allclose(
        named.predict_proba(X),
        IKFD("elm", priors=[98, 1, 1], random_state=0).fit(X, y).predict_proba(X),
    )
    unbalanced = np.r_[0:50, 50:60]
    a = IKFD("elm", class_weight="balanced", random_state=0).fit(X[unbalanced], y[unbalanced])
    b = IKFD("elm", priors="uniform", random_state=0).fit(X[unbalanced], y[unbalanced])
    assert_allclose(a.predict_proba(X), b.predict_proba(X))


def test_whole_sample_weights_count_like_repeats():
    weights = np.random.default_rng(0).integers(1, 4, 150)
    again = np.repeat(np.arange(150), weights)
    landmarks = np.arange(0, 150, 15)
    a = IKFD("elm", landmarks=landmarks).fit(X, y, sample_weight=weights)
    first = np.searchsorted(again, landmarks)
    b = IKFD("elm", landmarks=first).fit(X[again], y[again])
    assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-8)


def test_the_model_does_not_depend_on_the_number_of_workers():
    Z = np.random.default_rng(0).normal(size=(5000, 3))
    labels = (Z[:, 0] ** 2 > Z[:, 1]).astype(int)
    models = [IKFD("elm", n_jobs=jobs, random_state=3).fit(Z, labels) for jobs in (1, 2, 3)]
    for other in models[1:]:
        assert_array_equal(models[0].landmarks_, other.landmarks_)
        assert_array_equal(models[0].dual_coef_, other.dual_coef_)


@pytest.mark.parametrize("landmarks", ["random", "auto"])
@BOTH
def test_blas_threads_do_not_change_results(cls, landmarks):
    """Also for a single block, and for values left over from growing the landmarks."""
    for seed in range(3 if landmarks == "auto" and cls is IKFD else 2):
        Z = np.random.default_rng(seed).normal(size=(1000 if landmarks == "random" else 300, 8))
        labels = (Z[:, 0] * Z[:, 1] > 0).astype(int)
        found = []
        for threads in (1, 2):
            with threadpool_limits(threads, user_api="blas"):
                clf = cls("elm", landmarks=landmarks, random_state=seed, calibrate=seed == 0)
                found.append(clf.fit(Z, labels).predict_proba(Z))
        assert_array_equal(*found)


def test_dual_coefficients_define_the_model():
    clf = IKFD("elm", random_state=0).fit(X, y)
    C = clf.space_.similarities(
        open_new_pairs("elm", X, clf.landmark_objects_).block(
            np.arange(150), np.arange(len(clf.landmarks_))
        )
    )
    scores = C @ clf.dual_coef_ + clf.intercept_
    assert_allclose(softmax(scores, axis=1), clf.predict_proba(X), atol=1e-10)


class TestBadInput:
    def test_one_class(self):
        with pytest.raises(
            ValueError, match="needs at least two classes; y contains one class: 'a'"
        ):
            IKFD("elm").fit(X, np.full(150, "a"))

    def test_lengths(self):
        with pytest.raises(ValueError, match="149 labels for 150 objects"):
            IKFD("elm").fit(X, y[:149])

    def test_shape_at_predict_names_both_shapes(self):
        K = X @ X.T
        clf = IKFD("precomputed", landmarks=[0, 60, 110]).fit(K, y)
        with pytest.raises(
            ValueError, match=r"n × 150, to all.*n × 3, to the landmarks.*got 2 × 7"
        ):
            clf.predict(np.zeros((2, 7)))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"landmarks": "best"}, "unknown landmark rule 'best'; choose one of"),
            ({"measure": "smith"}, "unknown measure 'smith'"),
            ({"landmarks": [0, 0]}, "landmark 0 is given more than once"),
            ({"landmarks": [151]}, "out of range"),
            (
                {"landmarks": "random", "n_landmarks": 151},
                "151 landmarks cannot be chosen among 150",
            ),
            ({"landmarks": "meb", "n_landmarks": 5}, "finds its own number"),
            ({"shrinkage": 2}, "number from 0 to 1"),
            ({"multiclass": "one"}, "'joint' or 'ovr'"),
            ({"priors": "equal"}, "priors must be"),
            ({"priors": [1, 2]}, "3 positive numbers"),
            ({"priors": {0: 1.0}}, "no probability for class 1"),
            ({"class_weight": {7: 1.0}}, "names 7"),
            ({"class_weight": "even"}, "'balanced' or a dict"),
        ],
    )
    def test_parameters(self, options, message):
        with pytest.raises(ValueError, match=message):
            IKFD(**{"measure": "elm", **options}).fit(X, y)

    def test_matrix(self):
        K = X @ X.T
        K[3, 5] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            IKFD("precomputed").fit(K, y)
        K = X @ X.T
        K[3, 5] += 1000
        with pytest.raises(ValueError, match="not symmetric"):
            IKFD("precomputed").fit(K, y)
        assert IKFD("precomputed", symmetrize=True).fit(K, y).score(X @ X.T, y) > 0.5
        with pytest.raises(ValueError, match=r"N × N, or N × m with landmarks="):
            IKFD("precomputed").fit(X, y)

    def test_wrong_objects_for_the_measure(self):
        with pytest.raises((TypeError, ValueError), match=r"object|string|sequence"):
            IKFD("levenshtein").fit([1, 2, 3, 4], [0, 0, 1, 1])

    def test_partial_fit(self):
        with pytest.raises(ValueError, match="needs classes="):
            IKFD("elm").partial_fit(X, y)
        with pytest.raises(AttributeError, match="no attribute 'partial_fit'"):
            IKFD("elm", calibrate=True).partial_fit(X, y, classes=[0, 1, 2])
        clf = IKFD("elm", landmarks=[0, 60, 110]).partial_fit(X, y, classes=[0, 1, 2])
        with pytest.raises(ValueError, match="differ from those of the first call"):
            clf.partial_fit(X, y, classes=[0, 1])

    def test_a_failed_chunk_leaves_the_model_as_it_was(self):
        clf = IKFD("elm", landmarks=[0, 10, 20, 60, 70, 110])
        clf.partial_fit(X, y, classes=[0, 1, 2, 3])
        before = clf.predict_proba(X)
        for bad_X, bad_y in (
            (X, np.full(150, 9)),
            (X[:, :2], y),
            (np.full((2, 4), np.nan), [0, 1]),
            (X[:3], y[:2]),
        ):
            with pytest.raises(ValueError):
                clf.partial_fit(bad_X, bad_y)
            assert_array_equal(clf.predict_proba(X), before)
        assert (before[:, 3] == 0).all(), "a class that never occurred"


def test_a_class_of_one_object_is_its_own_landmark_with_a_warning():
    labels = np.append(y[:100], 2)
    with pytest.warns(UserWarning, match="has one object"):
        clf = IKFD("elm", random_state=0).fit(X[:101], labels)
    assert 100 in clf.landmarks_


@pytest.mark.parametrize("objects", [np.ones((20, 3)), np.zeros((20, 3))])
def test_identical_objects_are_a_coin_toss(objects):
    labels = np.arange(20) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        P = IKFD("linear").fit(objects, labels).predict_proba(objects)
    assert_allclose(P, 0.5, atol=1e-6)


def test_an_all_zero_matrix_predicts_the_frequencies():
    labels = np.array([0, 0, 0, 1])
    P = (
        IKFD("precomputed", landmarks="all")
        .fit(np.zeros((4, 4)), labels)
        .predict_proba(np.zeros((2, 4)))
    )
    assert_allclose(P, [[0.75, 0.25]] * 2)


def test_random_rule_is_exported():
    assert Random(n_landmarks=3).get_params() == {"n_landmarks": 3, "stratified": False}


def published_scores(K, W, C, codes, n_classes, ridge, T):
    """αᵀk(x) + b of the paper from whole columns of K̃ = C W⁺ Cᵀ; T are similarities of new ones."""
    P = np.linalg.pinv(W, rcond=1e-10, hermitian=True)
    columns, new = (K, T) if K is not None else (C @ P @ C.T, T @ P @ C.T)
    unit = np.abs(np.diag(W)).mean()
    scores = []
    for c in range(n_classes):
        plus, minus = columns[codes == c], columns[codes != c]
        N = sum((part - part.mean(0)).T @ (part - part.mean(0)) for part in (plus, minus))
        inverse = (
            np.linalg.inv(N + unit**2 * np.eye(len(N)))
            if ridge
            else np.linalg.pinv(N, rcond=1e-10, hermitian=True)
        )
        alpha = inverse @ (plus.mean(0) - minus.mean(0))
        scores.append(new @ alpha - alpha @ (plus.mean(0) + minus.mean(0)) / 2)
    return np.column_stack(scores)


@pytest.mark.parametrize("solver", ["paper", "paper-ridge"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("landmarks", ["all", np.arange(0, 80, 8)])
@pytest.mark.parametrize("measure", ["precomputed", "precomputed-distance"])
def test_the_published_form_matches_whole_columns(solver, n_classes, landmarks, measure):
    rng = np.random.default_rng(1)
    codes = np.arange(120) % n_classes
    V = rng.normal(size=(120, 6)) + 1.5 * np.eye(6)[codes]
    signs = np.array([1, -1, 1, -1, 1, 1.0])
    train, test = np.arange(80), np.arange(80, 120)
    given = (V * signs) @ V.T
    if measure == "precomputed-distance":
        given = np.sqrt(np.abs(V[:, None] - V[None]).sum(axis=2) ** 3)
    L = train if isinstance(landmarks, str) else landmarks
    S = given
    if measure == "precomputed-distance":
        S = np.empty_like(given)
        conversion = Conversion.of(given[np.ix_(L, L)], "dissimilarity")
        S[:, L] = conversion.similarities(given[:, L])
    clf = IKFD(measure, landmarks=landmarks, solver=solver)
    clf.fit(given[np.ix_(train, train)], codes[train])
    W, C = S[np.ix_(L, L)], S[np.ix_(train, L)]
    dense = C if len(L) == 80 else None
    expected = published_scores(
        dense, W, C, codes[train], n_classes, solver == "paper-ridge", S[np.ix_(test, L)]
    )
    found = clf.decision_function(given[np.ix_(test, train)])
    scale = np.abs(expected).max()
    if n_classes == 2:
        assert_allclose(found, expected[:, 1], atol=1e-6 * scale)
    else:
        assert_allclose(found, expected, atol=1e-6 * scale)
        shares = expit(found)  # whose rounding errors a sigmoid of large scores would amplify
        P = clf.predict_proba(given[np.ix_(test, train)])
        assert_allclose(P, shares / shares.sum(axis=1, keepdims=True), atol=1e-12)


def test_the_published_form_takes_a_stream_and_a_file(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    Z = rng.normal(size=(90, 3)) + 3 * np.eye(3)[labels]
    options = {"landmarks": np.arange(0, 45, 3), "solver": "paper"}
    whole = IKFD("elm", **options).fit(Z, labels)
    stream = IKFD("elm", **options).partial_fit(Z[:45], labels[:45], classes=[0, 1, 2])
    stream.partial_fit(Z[45:], labels[45:])
    assert_allclose(stream.predict_proba(Z), whole.predict_proba(Z), atol=1e-8)
    whole.save(tmp_path / "m.krein")
    loaded = krein.load(tmp_path / "m.krein")
    assert_allclose(loaded.predict_proba(Z), whole.predict_proba(Z))


@pytest.mark.parametrize(
    "more",
    [
        {"calibrate": True},
        {"centre": "training"},
        {"priors": "uniform"},
        {"class_weight": "balanced"},
    ],
)
def test_the_published_form_refuses_what_it_does_not_have(more):
    (name,) = more
    with pytest.raises(ValueError, match=f"solver='paper' does not support {name}"):
        IKFD("elm", solver="paper", **more).fit(np.eye(6), [0, 1] * 3)
    with pytest.raises(ValueError, match="solver must be 'gaussian', 'paper' or 'paper-ridge'"):
        IKFD("elm", solver="published").fit(np.eye(6), [0, 1] * 3)


def _objects_of_two_sizes(seed, n=90):
    """Gaps between balls at random places: only the size tells the classes apart."""
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(n, 3)), np.arange(n) % 2
    D = np.linalg.norm(X[:, None] - X, axis=2) - 0.04 * (y[:, None] + y) + 0.1
    return D * (1 - np.eye(n)), y


@pytest.mark.parametrize("seed", range(3))
def test_centred_on_the_training_objects_is_lda_on_the_columns(seed):
    """Without shrinkage, a discriminant does not depend on the coordinates of the columns −½d²."""
    D, y = _objects_of_two_sizes(seed)
    L = np.arange(12)
    clf = IKFD("precomputed-distance", landmarks=L, centre="training", shrinkage=0.0).fit(D, y)
    E = D[:, L] ** 2
    plain = LinearDiscriminantAnalysis(solver="lsqr").fit(E, y)
    odds = (len(y) - 2) / len(y) * plain.decision_function(E)  # its covariance is divided by n
    assert_allclose(clf.predict_proba(D)[:, 1], expit(odds), atol=1e-6)
    same = IKFD("precomputed-distance", landmarks=L, shrinkage=0.0).fit(D, y)
    assert np.abs(same.predict_proba(D) - clf.predict_proba(D)).max() > 0.1


def test_with_all_objects_as_landmarks_the_centre_does_not_matter():
    D, y = _objects_of_two_sizes(0, 40)
    found = [
        IKFD("precomputed-distance", landmarks="all", centre=centre).fit(D, y).predict_proba(D)
        for centre in ("landmarks", "training")
    ]
    assert_array_equal(*found)


@pytest.mark.parametrize("model", [IKFD, IKQD])
def test_contributions_of_training_centred_distances_add_up(model):
    D, y = _objects_of_two_sizes(1)
    clf = model("precomputed-distance", landmarks=np.arange(12), centre="training").fit(D, y)
    (head,) = clf.model_.heads
    values, baseline = D[:2, :12]
    P = clf.predict_proba(D[:2])
    odds = np.log(P[:, 1]) - np.log(P[:, 0])
    found = head.contributions(values, baseline, 1, 0).sum()
    assert found == pytest.approx(odds[0] - odds[1], rel=1e-6)


def test_an_unknown_centre_is_refused():
    D, y = _objects_of_two_sizes(0, 20)
    with pytest.raises(ValueError, match="centre must be 'landmarks' or 'training'"):
        IKFD("precomputed-distance", centre="mean").fit(D, y)


@BOTH
def test_a_training_centred_model_survives_its_file(cls, tmp_path):
    D, y = _objects_of_two_sizes(2)
    clf = cls("precomputed-distance", landmarks=np.arange(12), centre="training").fit(D, y)
    clf.save(tmp_path / "m.krein")
    assert_allclose(krein.load(tmp_path / "m.krein").predict_proba(D), clf.predict_proba(D))
