"""KreinClassifier on hits: graphs of neighbours instead of objects to compare."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer
from sklearn.pipeline import make_pipeline

import krein
from krein import IKFD, PCVM, KreinClassifier
from krein.core.evidence import class_evidence
from krein.neighbours import graph

X, y = make_blobs(240, centers=6, cluster_std=2.0, random_state=3)
y = np.array(list("abcdef"))[y]
NEW = make_blobs(60, centers=6, cluster_std=2.0, random_state=3)[0]


def lists(k=20, objects=X, known=X):
    D = np.sqrt(((objects[:, None] - known) ** 2).sum(axis=2))
    order = np.argsort(D, axis=1)[:, :k]
    return np.take_along_axis(D, order, axis=1), order


def fitted(measure="precomputed-distance", k=20, **options):
    return KreinClassifier(measure).fit(graph(*lists(k), len(X)), y, **options)


def new(k=20):
    return graph(*lists(k, NEW), len(X))


CLF = fitted()


def test_every_answer():
    P = CLF.predict_proba(new())
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (CLF.predict(new()) == CLF.classes_[P.argmax(axis=1)]).all()
    assert CLF.predict_set(new()).any(axis=1).all()
    assert ((CLF.novelty(new()) > 0) & (CLF.novelty(new()) <= 1)).all()
    assert CLF.select(new(), 0.2).any()
    assessed = CLF.assess(new(), coverage=0.9, evidence=2)
    assert set(assessed["status"]) <= {"known", "ambiguous", "novel"}
    assert CLF.comparisons_ == CLF.comparisons_to_fit_ == CLF.last_comparisons_ == 0
    assert len(CLF.landmarks_) == 0
    assert CLF.worth_.looks[1].log_loss < CLF.worth_.looks[0].log_loss


def test_held_out_objects_are_those_of_the_reference():
    """Predictions of training objects without themselves are what the fit was calibrated on."""
    own = graph(*lists(20), len(X))
    own = (own - sparse.diags(own.diagonal())).tocsr()
    own.eliminate_zeros()  # only the diagonal has zeros
    held = CLF.model_.reference
    # apart from the sizes of the classes, in which an object does not count itself
    agree = CLF.predict(own) == CLF.classes_[held.predicted]
    assert agree.mean() > 0.98
    np.testing.assert_allclose(np.sort(CLF.novelty(own)), np.arange(2, 242) / 241, atol=0.03)


def test_neighbours_are_those_of_scikit_learn():
    model = KNeighborsClassifier(5, metric="precomputed").fit(graph(*lists(), len(X)), y)
    _, expected = model.kneighbors(new())
    for why, row in zip(CLF.explain(new(), 5), expected, strict=True):
        assert [near.index for near in why.nearest] == row.tolist()


def test_an_explanation_adds_up():
    for why in CLF.explain(new()):
        assert why.score == pytest.approx(why.baseline + why.evidence)


def test_evidence_is_that_of_the_dense_matrix():
    k, D = 10, lists(len(X), NEW)[0]
    order = lists(len(X), NEW)[1]
    second = KreinClassifier("precomputed-distance", neighbours=k).fit(
        graph(*lists(len(X)), len(X)), y
    )
    evidence = second.model_.second_look.evidence
    codes = np.searchsorted(second.classes_, y)[order[:, :k]]
    expected = class_evidence(D[:, :k] ** 2, codes, 6, evidence.bandwidth)
    plain, *close = evidence.terms(second.model_.hits.neighbours(*_lists_of(new(len(X))))[0], 6)
    np.testing.assert_allclose(plain, expected)
    trust = np.array([term[:, 0] / plain[:, 0] for term in close])
    assert (trust >= 0).all()
    nearest = np.argsort(D[:, 0])
    assert (np.diff(trust.sum(axis=0)[nearest]) <= 1e-12).all()  # it falls with the distance
    dense = np.sqrt(((NEW[:, None] - X) ** 2).sum(axis=2))
    np.testing.assert_allclose(second.predict_proba(dense), second.predict_proba(new(len(X))))


def _lists_of(found):
    return found.indptr, found.indices, found.data**2


def test_any_order_of_objects():
    order = np.random.default_rng(0).permutation(len(X))
    D, neighbours = lists()
    place = np.argsort(order)
    shuffled = graph(D[order], place[neighbours[order]], len(X))
    other = KreinClassifier("precomputed-distance").fit(shuffled, y[order])
    D, neighbours = lists(20, NEW)
    found = other.predict_proba(graph(D, place[neighbours], len(X)))
    np.testing.assert_allclose(found, CLF.predict_proba(new()), atol=1e-10)


def test_any_unit():
    other = KreinClassifier("precomputed-distance").fit(1000 * graph(*lists(), len(X)), y)
    np.testing.assert_allclose(other.predict_proba(1000 * new()), CLF.predict_proba(new()))


def test_similarities():
    """For similarities, the squared dissimilarity is −2s up to a constant."""

    def similar(found):
        found.data = -0.5 * found.data**2
        return found

    other = KreinClassifier("precomputed").fit(similar(graph(*lists(), len(X))), y)
    np.testing.assert_allclose(other.predict_proba(similar(new())), CLF.predict_proba(new()))


def test_in_a_pipeline():
    model = make_pipeline(
        KNeighborsTransformer(mode="distance", n_neighbors=20),
        KreinClassifier("precomputed-distance"),
    )
    expected = fitted(k=21).predict_proba(new(21))  # the transformer adds one for the object itself
    np.testing.assert_allclose(model.fit(X, y).predict_proba(NEW), expected, atol=1e-10)


def test_cross_validation_cuts_rows_and_columns():
    found = cross_val_score(
        KreinClassifier("precomputed-distance"), graph(*lists(40), len(X)), y, cv=3
    )
    assert found.min() > 0.5


class TestObjectsWithoutHits:
    NOTHING = sparse.csr_matrix((2, len(X)))

    def test_class_sizes_answer(self):
        found = CLF.predict_proba(self.NOTHING)
        weight = CLF.model_.cascade.looks[1].weights[0]
        sizes = np.unique(y, return_counts=True)[1] ** weight
        np.testing.assert_allclose(found[0], sizes / sizes.sum(), atol=0.02)

    def test_they_are_novel(self):
        assert (CLF.novelty(self.NOTHING) == CLF.model_.reference.smallest).all()
        assert (CLF.assess(self.NOTHING)["status"] == "novel").all()
        assert CLF.explain(self.NOTHING)[0].nearest == ()

    def test_they_are_novel_even_if_training_objects_have_no_hits_either(self):
        D, neighbours = lists()
        neighbours = neighbours.copy()
        neighbours[::5] = -1
        clf = KreinClassifier("precomputed-distance").fit(graph(D, neighbours, len(X)), y)
        assert clf.novelty(self.NOTHING)[0] > 0.1  # as the training objects show
        assert (clf.assess(self.NOTHING)["status"] == "novel").all()

    def test_their_labels_are_never_selected(self):
        """If few labels are wrong, even the most doubtful one would be on the list."""
        rows = sparse.vstack([new()[:40], self.NOTHING]).tocsr()
        selected = CLF.select(rows, fdr=0.5)
        assert selected[:40].all()
        assert not selected[40:].any()
        assert (CLF.assess(rows)["doubt"][40:] == 1.0).all()

    def test_no_new_objects(self):
        assert CLF.predict_proba(self.NOTHING[:0]).shape == (0, 6)


def test_groups_hold_out_near_copies():
    """Every object twice: a fit that sees the copy is too certain, one with groups is not."""
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=100)
    points = np.repeat(rng.normal(size=(100, 2)), 2, axis=0) + 1e-3 * rng.normal(size=(200, 2))
    groups = np.repeat(np.arange(100), 2)
    found = graph(*lists(20, points, points), 200)
    fresh = graph(*lists(20, rng.normal(size=(100, 2)), points), 200)

    def certainty(**options):
        clf = KreinClassifier("precomputed-distance").fit(found, np.repeat(labels, 2), **options)
        return clf.predict_proba(fresh).max(axis=1).mean()

    assert certainty() > 0.6  # the labels are noise: 0.25 is right
    assert certainty(groups=groups) < 0.45


def test_hits_within_a_group_do_not_matter():
    groups = np.arange(len(X)) // 2
    whole = graph(*lists(), len(X))
    rows = np.repeat(np.arange(len(X)), np.diff(whole.indptr))
    other = groups[rows] != groups[whole.indices]
    starts = np.append(0, np.cumsum(np.bincount(rows[other], minlength=len(X))))
    cut = sparse.csr_matrix((whole.data[other], whole.indices[other], starts), shape=whole.shape)
    one, two = (
        KreinClassifier("precomputed-distance").fit(some, y, groups=groups) for some in (whole, cut)
    )
    np.testing.assert_array_equal(one.predict_proba(new()), two.predict_proba(new()))


def test_objects_of_weight_0_are_ignored():
    weights = np.ones(len(X))
    weights[::3] = 0
    kept = np.flatnonzero(weights)
    D, neighbours = lists(len(X))
    whole = KreinClassifier("precomputed-distance").fit(
        graph(D, neighbours, len(X)), y, sample_weight=weights
    )
    part = KreinClassifier("precomputed-distance").fit(
        graph(*lists(len(kept), X[kept], X[kept]), len(kept)), y[kept]
    )
    found = part.predict_proba(graph(*lists(len(kept), NEW, X[kept]), len(kept)))
    np.testing.assert_allclose(whole.predict_proba(new(len(X))), found, rtol=1e-6)


def test_labelled_queries_of_other_objects():
    known, rest = np.arange(0, len(X), 2), np.arange(1, len(X), 2)
    found = graph(*lists(20, X[rest], X[known]), len(known))
    clf = KreinClassifier("precomputed-distance").fit_hits(found, y[rest], y[known])
    assert len(clf.model_.reference.scores) == len(rest)
    P = clf.predict_proba(graph(*lists(20, NEW, X[known]), len(known)))
    assert P.max(axis=1).mean() > 0.5


def test_objects_that_are_also_the_known_ones():
    clf, everyone = KreinClassifier("precomputed-distance"), np.arange(len(X))
    clf.fit_hits(graph(*lists(), len(X)), y, y, groups=everyone, known_groups=everyone)
    np.testing.assert_array_equal(clf.predict_proba(new()), CLF.predict_proba(new()))


def test_saved_and_loaded(tmp_path):
    path = tmp_path / "hits.krein"
    fitted().name_objects([f"object {i}" for i in range(len(X))]).save(path)
    for clf in (krein.load(path), krein.load(path, only_model=True)):
        np.testing.assert_array_equal(clf.predict_proba(new()), CLF.predict_proba(new()))
        assert clf.explain(new())[0].nearest[0].name.startswith("object ")


def forged(change):
    """Return a fitted classifier with another part in its second look."""
    clf = fitted()
    second = clf.model_.second_look
    clf.model_ = replace(clf.model_, second_look=change(second))
    return clf


@pytest.mark.parametrize(
    "change",
    [
        lambda second: replace(second, known=replace(second.known, codes=second.known.codes + 6)),
        lambda second: replace(second, known=replace(second.known, codes=second.known.codes[1:])),
        lambda second: replace(second, known=replace(second.known, k=10**6)),
        lambda second: replace(second, known=replace(second.known, farthest=np.nan)),
        lambda second: replace(second, evidence=replace(second.evidence, bandwidth=0.0)),
        lambda second: replace(second, names=np.array(["a"])),
    ],
)
def test_a_forged_file_is_refused(change, tmp_path):
    with pytest.raises(ValueError, match="not written, because it could not be loaded"):
        forged(change).save(tmp_path / "forged.krein")


def test_hits_among_other_objects_are_refused():
    with pytest.raises(ValueError, match="not among the objects"):
        replace(CLF.model_, landmarks=replace(CLF.model_.landmarks, objects=[])).check()


class TestRefused:
    def test_a_graph_that_is_not_square(self):
        with pytest.raises(ValueError, match=r"square.*60 × 240"):
            KreinClassifier("precomputed-distance").fit(new(), y[:60])

    def test_new_objects_with_other_columns(self):
        with pytest.raises(ValueError, match="n × 240"):
            CLF.predict(new()[:, :100])

    def test_models_with_landmarks(self):
        for model in (IKFD("precomputed-distance"), PCVM("precomputed-distance")):
            with pytest.raises(TypeError, match=r"sparse matrix have no value.*KreinClassifier"):
                model.fit(graph(*lists(), len(X)), y)

    def test_a_graph_for_a_model_of_a_dense_matrix(self):
        D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
        clf = KreinClassifier("precomputed-distance").fit(D, y)
        with pytest.raises(TypeError, match="lacks the values"):
            clf.predict(new())

    def test_one_object_per_class(self):
        with pytest.raises(ValueError, match="one reference per class"):
            KreinClassifier("precomputed-distance").fit(graph(*lists(), len(X)), np.arange(len(X)))

    def test_no_neighbours(self):
        with pytest.raises(ValueError, match="neighbours=0"):
            KreinClassifier("precomputed-distance", neighbours=0).fit(graph(*lists(), len(X)), y)

    def test_nan(self):
        found = new()
        found.data[3] = np.nan
        with pytest.raises(ValueError, match="row 0, column"):
            CLF.predict(found)


def test_most_classes_of_one_object_are_announced():
    labels = np.arange(len(X))
    labels[:40] = 0
    labels[40:80] = 1
    with pytest.warns(UserWarning, match="160 of 162 classes have a single object"):
        clf = KreinClassifier("precomputed-distance").fit(graph(*lists(), len(X)), labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clf.predict_proba(new()).shape == (60, 162)
