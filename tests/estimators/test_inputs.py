"""Inputs that users pass to an estimator: frames, grids, nothing, one string, missing labels."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import krein
from krein import IKFD, IKQD, PCVM, KreinClassifier, NystromMap, PseudoEuclideanEmbedding
from krein.compare import open_pairs
from krein.evaluation import evaluate
from krein.measures import RefusedObject, get_measure
from krein.measures.base import checked_objects
from krein.measures.function import FunctionMeasure
from krein.measures.precomputed import KindWarning
from krein.measures.sequences import LettersWarning
from krein.measures.strings import Levenshtein

WORDS = ["house", "mouse", "louse", "horse", "haus", "maus", "laus", "ross"] * 3
LANGUAGES = (["en"] * 4 + ["de"] * 4) * 3
NUMBERS = np.random.default_rng(0).normal(size=(24, 3))


def series(n=24, channels=2, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rng.integers(5, 20), channels)).cumsum(axis=0) for _ in range(n)]


# -- parameters of the measure in grids ---------------------------------------------------------


@pytest.mark.parametrize(
    "wrap", [lambda clf: (clf, ""), lambda clf: (make_pipeline(clf), "ikfd__")]
)
def test_a_grid_over_parameters_of_the_measure(wrap):
    clf, prefix = wrap(IKFD("levenshtein", landmarks="random", n_landmarks=4, random_state=0))
    grid = GridSearchCV(clf, {f"{prefix}measure_params__normalize": [False, True]}, cv=3)
    grid.fit(WORDS, LANGUAGES)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    best = grid.best_estimator_.get_params()
    assert best[f"{prefix}measure_params"] == {
        "normalize": grid.best_params_[f"{prefix}measure_params__normalize"]
    }
    assert best[f"{prefix}measure_params__normalize"] in (False, True)


@pytest.mark.parametrize("make", [IKFD, KreinClassifier])
def test_parameters_of_the_measure_are_set_one_by_one(make):
    given = {"gap_open": 5}
    clf = make("smith-waterman", measure_params=given)
    copy = clone(clf).set_params(measure_params__normalize=False, n_landmarks=3)
    assert copy.measure_params == {"gap_open": 5, "normalize": False}
    assert copy.n_landmarks == 3
    assert given == {"gap_open": 5}
    assert clf.measure_params == given
    both = clone(clf).set_params(measure="levenshtein", measure_params=None)
    assert both.set_params(measure_params__normalize=True).measure_params == {"normalize": True}
    own = make(Levenshtein()).set_params(measure__normalize=True)
    assert own.measure == Levenshtein(normalize=True)
    assert own.get_params()["measure__normalize"] is True
    with pytest.raises(ValueError, match="no parameter 'nonsense'"):
        clf.set_params(measure_params__nonsense=1).fit(WORDS, LANGUAGES)
    with pytest.raises(ValueError, match="Invalid parameter 'measure_para'"):
        clf.set_params(measure_para__normalize=1)
    with pytest.raises(ValueError, match="Invalid parameter"):  # not a parameter of a measure
        make(Levenshtein()).set_params(measure_para__normalize=True)


# -- frames, columns and tables ------------------------------------------------------------------


class PolarsSeries:
    """The interface of a Polars column."""

    def __init__(self, values):
        self.values = np.empty(len(values), dtype=object)
        self.values[:] = values

    def __len__(self):
        return len(self.values)

    def to_numpy(self):
        return self.values


class PolarsFrame:
    """The interface of a Polars frame: columns through `get_columns`, and no `iloc`."""

    def __init__(self, columns):
        self.parts = {name: PolarsSeries(column) for name, column in columns.items()}
        self.columns = list(self.parts)
        self.shape = (len(next(iter(self.parts.values()))), len(self.parts))

    def __len__(self):
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        return self.to_numpy().astype(dtype)

    def get_columns(self):
        return list(self.parts.values())

    def to_numpy(self):
        return np.column_stack([part.to_numpy() for part in self.parts.values()])


def frames(columns):
    """Yield the same columns as a frame of each library that is installed."""
    yield pd.DataFrame({name: pd.Series(column) for name, column in columns.items()})
    yield PolarsFrame(columns)
    pa = pytest.importorskip("pyarrow")
    yield pa.table({name: pa.array(list(column)) for name, column in columns.items()})
    yield pa.RecordBatch.from_pydict({name: list(column) for name, column in columns.items()})
    try:
        import polars as pl
    except ImportError:
        return
    yield pl.DataFrame({name: list(column) for name, column in columns.items()})


def test_words_in_frames_and_columns():
    clf = IKFD("levenshtein", landmarks=[0, 3, 5, 7]).fit(WORDS, LANGUAGES)
    expected = clf.predict_proba(WORDS)
    for frame in frames({"word": WORDS}):
        fitted = IKFD("levenshtein", landmarks=[0, 3, 5, 7]).fit(frame, LANGUAGES)
        assert_array_equal(fitted.predict_proba(frame), expected)
    pa = pytest.importorskip("pyarrow")
    for column in (
        pd.Series(WORDS),
        PolarsSeries(WORDS),
        pa.array(WORDS),
        pa.chunked_array([WORDS]),
    ):
        fitted = IKFD("levenshtein", landmarks=[0, 3, 5, 7]).fit(column, pa.array(LANGUAGES))
        assert_array_equal(fitted.predict_proba(column), expected)


@pytest.mark.parametrize("turned", [False, True])
def test_columns_of_nested_frames_are_channels(turned):
    X = series(channels=3)
    y = np.arange(24) % 2
    layout = {"layout": "channels-times" if turned else "times-channels"}
    given = [x.T for x in X] if turned else X
    expected = IKFD("dtw", measure_params=layout, landmarks=[0, 5, 9]).fit(given, y)
    probabilities = expected.predict_proba(given)
    for frame in frames({f"c{c}": [x[:, c].tolist() for x in X] for c in range(3)}):
        # the columns are channels, whatever the layout of arrays
        clf = IKFD("dtw", measure_params=layout, landmarks=[0, 5, 9]).fit(frame, y)
        assert_array_equal(clf.predict_proba(frame), probabilities)
        assert IKFD("dtw", landmarks=[0, 5]).fit(frame, y).measure_.layout == "times-channels"
    nested = pd.DataFrame({f"c{c}": [pd.Series(x[:, c]) for x in X] for c in range(3)})
    clf = IKFD("dtw", measure_params=layout, landmarks=[0, 5, 9]).fit(nested, y)
    assert_array_equal(clf.predict_proba(nested), probabilities)


def test_one_nested_column_is_series_of_one_channel():
    X = [x[:, 0] for x in series()]
    y = np.arange(24) % 2
    expected = IKFD("msm", landmarks=[0, 5, 9]).fit(X, y).predict_proba(X)
    for frame in frames({"series": [x.tolist() for x in X]}):
        clf = IKFD("msm", landmarks=[0, 5, 9]).fit(frame, y)
        assert_array_equal(clf.predict_proba(frame), expected)
    column = pd.Series([pd.Series(x) for x in X])
    assert_array_equal(IKFD("msm", landmarks=[0, 5, 9]).fit(column, y).predict_proba(X), expected)


def test_inconsistent_nested_frames_are_refused():
    two = [[1.0, 2.0], [1.0, 2.0]]
    with pytest.raises(ValueError, match="series 1 has channels of 2 and of 3 values"):
        open_pairs("dtw", pd.DataFrame({"a": two, "b": [[1.0, 2.0], [1.0, 2.0, 3.0]]}))
    with pytest.raises(
        ValueError, match="column 1 contains single values, but column 0 contains series"
    ):
        open_pairs("dtw", pd.DataFrame({"a": two, "b": [1.0, 2.0]}))


def test_vectors_in_frames():
    columns = {f"x{c}": NUMBERS[:, c] for c in range(3)}
    y = np.arange(24) % 2
    expected = IKFD("elm", landmarks=[0, 1, 2]).fit(NUMBERS, y).predict_proba(NUMBERS)
    for frame in frames({name: column.tolist() for name, column in columns.items()}):
        clf = IKFD("elm", landmarks=[0, 1, 2]).fit(frame, y)
        assert_array_equal(clf.predict_proba(frame), expected)


def test_cross_validation_over_arrow_and_pandas():
    pa = pytest.importorskip("pyarrow")
    clf = IKFD("levenshtein", landmarks="random", n_landmarks=4, random_state=0)
    expected = cross_val_score(clf, WORDS, LANGUAGES, cv=3)
    for column in (pd.Series(WORDS), pd.DataFrame({"w": WORDS}), pa.table({"w": WORDS})):
        assert_array_equal(cross_val_score(clf, column, LANGUAGES, cv=3), expected)


# -- nothing, and one string ----------------------------------------------------------------------


@pytest.mark.parametrize("make", [IKFD, IKQD, PCVM, KreinClassifier])
def test_predictions_of_no_objects_are_empty(make):
    clf = make("levenshtein", landmarks=[0, 1, 4, 5]).fit(WORDS, LANGUAGES)
    for nothing in ([], (), np.array([], dtype=object), pd.Series([], dtype=object)):
        found = clf.predict(nothing)
        assert found.shape == (0,)
        assert found.dtype == clf.predict(WORDS[:1]).dtype
        assert clf.predict_proba(nothing).shape == (0, 2)
        assert clf.decision_function(nothing).shape == (0,)
        assert clf.rank_labels(nothing).shape == (0, 2)
    vectors = make("elm", landmarks=[0, 1, 4, 5]).fit(NUMBERS, LANGUAGES)
    assert vectors.predict_proba([]).shape == (0, 2)
    assert vectors.predict(np.empty((0, 3))).shape == (0,)


def test_a_transform_of_no_objects_is_empty():
    assert NystromMap("levenshtein", landmarks=[0, 4]).fit(WORDS).transform([]).shape[0] == 0
    embedding = PseudoEuclideanEmbedding("levenshtein", n_components=1, landmarks=[0, 4]).fit(WORDS)
    assert embedding.transform([]).shape == (0, 1)


def test_one_string_is_not_a_list_of_objects(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clf = IKFD("levenshtein", landmarks=[0, 4]).fit(WORDS, LANGUAGES)
    for call in (clf.predict, clf.predict_proba, lambda X: clf.fit(X, LANGUAGES)):
        with pytest.raises(
            ValueError, match=r"expected a list of objects.*'house' is a single string"
        ):
            call("house")
    (tmp_path / "house").write_text("louse\nlaus\n")
    assert np.concatenate(list(clf.predict("house"))).tolist() == ["en", "de"]


# -- distances that pass for similarities ---------------------------------------------------------


def test_distances_given_as_similarities_raise_a_warning():
    D = open_pairs("levenshtein", WORDS).block(np.arange(24), np.arange(24))
    S = np.exp(-D)
    with pytest.warns(
        KindWarning,
        match=r"This looks like a matrix of distances \(its diagonal is 0 and nothing is "
        r"negative\): set measure='precomputed-distance'\.",
    ):
        IKFD("precomputed").fit(D, LANGUAGES)
    with pytest.warns(KindWarning, match="a matrix of similarities .*: set measure='precomputed'"):
        PCVM("precomputed-distance").fit(S, LANGUAGES)
    with pytest.warns(KindWarning, match="matrix of distances"):
        evaluate(D, LANGUAGES, ["ikfd"], measure="precomputed", folds=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        IKFD("precomputed").fit(S, LANGUAGES).predict(S)
        IKFD("precomputed-distance").fit(D, LANGUAGES).predict(D)


def test_a_distance_function_without_a_kind_raises_a_warning():
    def edits(a, b):
        return float(sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b)))

    with pytest.warns(
        KindWarning, match=r"The function .*edits looks like a distance .*'kind': 'dissimil"
    ):
        IKFD(edits, landmarks=[0, 4]).fit(WORDS, LANGUAGES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("similarity", "dissimilarity"):
            IKFD(edits, measure_params={"kind": kind}, landmarks=[0, 4]).fit(WORDS, LANGUAGES)
        shared = IKFD(lambda a, b: len(set(a) & set(b)), landmarks=[0, 4]).fit(WORDS, LANGUAGES)
    assert FunctionMeasure(edits).kind == "similarity"
    assert shared.comparisons_to_fit_ == 10 + 1 + 24 * 2  # 5 pairs in both directions, a self-pair


def test_a_distance_function_that_is_averaged_raises_a_warning():
    def ahead(a, b):
        return max(float(len(a) - len(b)), 0.0) + float(a != b)

    with pytest.warns(KindWarning, match=r"The function .*ahead looks like a distance"):
        clf = IKFD(ahead, symmetrize=True, landmarks=[0, 4]).fit(WORDS, LANGUAGES)
    assert clf.comparisons_to_fit_ == 3 + 2 * 3 + 2 * 24 * 2  # 3 self-pairs and 3 pairs, averaged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = {"measure_params": {"kind": "dissimilarity"}, "symmetrize": True}
        IKFD(ahead, landmarks=[0, 4], **given).fit(WORDS, LANGUAGES)
        clf = IKFD(lambda a, b: len(set(a) & set(b)) + len(a), symmetrize=True, landmarks=[0, 4])
        clf.fit(WORDS, LANGUAGES)
    assert clf.comparisons_to_fit_ == 1 + 2 * 24 * 2


def test_a_pair_that_fails_when_the_kind_is_checked_is_named():
    def broken(a, b):
        return 0.0 if a is b else float("nan")

    with pytest.raises(ValueError, match=r"row object 0 and column object 12: .*broken returned"):
        IKFD(broken, symmetrize=True).fit(WORDS, LANGUAGES)


# -- labels with holes, classes by name -----------------------------------------------------------


@pytest.mark.parametrize("hole", [None, pd.NA, "", "  ", float("nan"), np.nan, pd.NaT])
@pytest.mark.parametrize("make", [list, pd.Series, lambda y: np.array(y, dtype=object)])
def test_a_missing_label_is_named(hole, make):
    labels = list(LANGUAGES)
    labels[5] = labels[9] = hole
    for clf in (IKFD("levenshtein"), PCVM("levenshtein")):
        with pytest.raises(ValueError, match=r"y has no label for object 5: found .* drop objects"):
            clf.fit(WORDS, make(labels))
    with pytest.raises(ValueError, match="no label for object 5"):
        IKFD("levenshtein").partial_fit(WORDS, make(labels), classes=["de", "en"])


def test_other_labels_with_holes():
    numbers = np.arange(24) % 2.0
    numbers[3] = np.nan
    for labels in (numbers, numbers.tolist(), pd.array([0, 1, 0, None] * 6, dtype="Int64")):
        with pytest.raises(ValueError, match="y has no label for object 3"):
            IKFD("levenshtein").fit(WORDS, labels)
    mixed = np.array([1, "a"] * 12, dtype=object)
    with pytest.raises(
        ValueError, match=r"labels must all be of one kind; y contains 1 \(int\) and 'a'"
    ):
        IKFD("levenshtein").fit(WORDS, mixed)
    masked = np.ma.masked_equal(np.arange(24) % 3, 2)
    with pytest.raises(ValueError, match="label 2 is partly masked"):
        IKFD("levenshtein").fit(WORDS, masked)


def test_a_file_with_a_missing_label_names_the_line(tmp_path):
    rows = [f"{word},{label}" for word, label in zip(WORDS, LANGUAGES, strict=True)]
    rows[4] = "haus,"
    (tmp_path / "w.csv").write_text("word,language\n" + "\n".join(rows) + "\n")
    source = krein.io.open_source(tmp_path / "w.csv", objects="word", labels="language")
    with pytest.raises(ValueError, match=r"w\.csv, line 6"):
        IKFD("levenshtein").fit(source)


def test_a_class_without_weight_is_named_by_its_label():
    y = np.array(["ant", "bee", "cat"] * 8)
    with pytest.raises(ValueError, match="no object of class 'bee' has a sample_weight above 0"):
        PCVM("levenshtein").fit(WORDS, y, sample_weight=(y != "bee").astype(float))


# -- incomplete objects ---------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["elm", "dtw", "tangent", "jensen-shannon", "precomputed"])
def test_masked_arrays_are_refused(measure):
    X = np.abs(np.random.default_rng(0).normal(size=(24, 24))) + 0.1
    X += X.T
    whole, masked = np.ma.masked_array(X), np.ma.masked_array(X, mask=X.max() == X)
    row = int(np.argwhere(masked.mask)[0, 0])
    clf = IKFD(measure, landmarks=[0, 1, 2])
    params = {"shape": (4, 6)} if measure == "tangent" else None
    clf.set_params(measure_params=params).fit(whole, LANGUAGES)
    for call in (
        lambda: clf.fit(masked, LANGUAGES),
        lambda: clf.predict(masked),
        lambda: open_pairs(measure, masked, measure_params=params),
    ):
        with pytest.raises(
            ValueError, match=f"object {row} is partly masked: fill in missing values"
        ):
            call()


def test_a_masked_series_in_a_list_is_named():
    X = np.random.default_rng(0).normal(size=(24, 4))
    with pytest.raises(ValueError, match="series 1 is partly masked"):
        IKFD("dtw").fit([X[0], np.ma.masked_less(X[1], X[1].max()), *X[2:]], LANGUAGES)


def test_a_lone_surrogate_names_its_text():
    clf = IKFD("compression", landmarks=[0, 4]).fit(WORDS, LANGUAGES)
    with pytest.raises(
        ValueError, match=r"text 1 contains '\\ud800' at position 3, a lone surrogate"
    ):
        clf.predict(["house", "ha\ud800s"])


# -- sequences ---------------------------------------------------


@pytest.mark.parametrize("make", [IKFD, PCVM, KreinClassifier])
def test_the_chosen_matrix_is_saved_with_the_model(make, tmp_path):
    rng = np.random.default_rng(0)
    parts = {"a": "GATTACAGAT", "b": "CCGGTTCCGA"}
    y = np.array(["a", "b"] * 12)
    dna = [parts[c] + "".join(rng.choice(list("ACGT"), 8)) for c in y]
    clf = make("smith-waterman", landmarks=[0, 1, 2, 3]).fit(dna, y)
    assert clf.measure_.matrix == "NUC.4.4"
    clf.save(tmp_path / "m.krein")
    loaded = krein.load(tmp_path / "m.krein")
    assert loaded.measure_params == {"matrix": "NUC.4.4"}
    rna = [s.replace("T", "u") for s in dna]
    assert_array_equal(loaded.predict_proba(rna), clf.predict_proba(dna))
    # letters that would pass for a protein on their own
    with pytest.warns(LettersWarning, match="L as N"):
        assert loaded.predict(["GATTACAGATLLLL"]).tolist() == ["a"]
    (tmp_path / "s.fasta").write_text(
        "".join(f">{i} {c}\n{s}\n" for i, (c, s) in enumerate(zip(y, dna, strict=True)))
    )
    source = krein.io.open_source(tmp_path / "s.fasta", label_pattern=r" (\w)")
    again = make("smith-waterman", landmarks=[0, 1, 2, 3]).fit(source)
    assert again.measure_ == clf.measure_
    assert_array_equal(again.predict_proba(dna), clf.predict_proba(dna))


# -- refused objects -------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "objects", "row"),
    [
        ("dtw", [[0.0, 1.0], [0.0, np.nan, 1.0]], 1),
        ("dtw", [[0.0, 1.0], [0.0], ["a"]], 2),
        ("smith-waterman", ["MKV", "M1V"], 1),
        ("hausdorff", [[[0.0]], [["a"]]], 1),
        ("compression", ["abc", "\ud800"], 1),
        ("manhattan", np.ma.masked_equal([[1.0], [2.0]], 2.0), 1),
    ],
)
def test_a_refused_object_is_reported_with_kind_row_and_reason(measure, objects, row):
    with pytest.raises(RefusedObject) as caught:
        checked_objects(get_measure(measure), objects)
    error = caught.value
    assert error.row == row
    shown = f" ({error.excerpt})" if error.excerpt else ""
    assert str(error) == f"{error.kind} {row}{shown} {error.reason}"


# -- objects without an order, missing times, and integers that are too large ---------------------


def times(missing=True):
    found = np.datetime64("2020-01-01") + np.arange(48).reshape(24, 2).astype("timedelta64[D]")
    if missing:
        found[3, 1] = "NaT"
    return found


@pytest.mark.parametrize(
    ("measure", "make"),
    [
        ("elm", lambda t: t),
        ("elm", lambda t: t - t[0, 0]),
        ("elm", pd.DataFrame),
        ("elm", lambda t: [list(row) for row in t]),
        ("elm", lambda t: t.astype(object) if not np.isnat(t).any() else [list(r) for r in t]),
        ("dtw", lambda t: t),
        ("dtw", list),
        ("msm", lambda t: [list(row) for row in t]),
        ("hausdorff", list),
        ("tangent", lambda t: np.repeat(t, 2, axis=1).reshape(24, 2, 2)),
        ("tangent", lambda t: list(np.repeat(t, 2, axis=1).reshape(24, 2, 2))),
    ],
)
def test_a_missing_time_is_not_a_number(measure, make):
    clf = IKFD(measure, landmarks="all")
    for call in (clf.fit, get_measure(measure).check):
        with pytest.raises(RefusedObject, match="contains NaT, a missing time") as refused:
            call(make(times()), LANGUAGES) if call == clf.fit else call(make(times()))
        assert refused.value.row == 3


def test_times_are_numbers_of_days():
    days = times(missing=False)
    found = IKFD("manhattan", landmarks="all").fit(days, LANGUAGES)
    numbers = IKFD("manhattan", landmarks="all").fit(days.astype(float), LANGUAGES)
    assert_array_equal(found.predict_proba(days), numbers.predict_proba(days.astype(float)))


@pytest.mark.parametrize(
    ("X", "reason"),
    [
        ({f"w{i}" for i in range(24)}, r"X is a set, .* no order: pass a list"),
        (frozenset(f"w{i}" for i in range(24)), "X is a frozenset"),
        (dict.fromkeys(f"w{i}" for i in range(24)), r"X is a dict: .* list\(X.values\(\)\)"),
        (dict.fromkeys(f"w{i}" for i in range(24)).keys(), "X is a dict_keys"),
        ((f"w{i}" for i in range(24)), r"X is a generator, .* read only once: pass a list"),
        (map(str, range(24)), "X is a map"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("measure", ["levenshtein", "elm", lambda a, b: float(a == b)])
def test_objects_without_an_order_are_refused(X, reason, measure):
    with pytest.raises(TypeError, match=reason):
        IKFD(measure).fit(X, LANGUAGES)
    with pytest.raises(TypeError, match=reason):
        open_pairs(measure, X)
    for clf in (IKFD("elm", landmarks="all").fit(NUMBERS, LANGUAGES),
                KreinClassifier("levenshtein").fit(WORDS, LANGUAGES)):  # fmt: skip
        with pytest.raises(TypeError, match=reason):
            clf.predict(X)
        with pytest.raises(TypeError, match=reason):
            clf.model_.predict(X)


@pytest.mark.parametrize(
    ("measure", "one"),
    [
        ("elm", [1, 2]),
        ("dtw", [1, 2, 3]),
        ("hausdorff", [[1, 2]]),
        ("tangent", [[1, 2], [3, 4]]),
        ("precomputed", list(range(24))),
    ],
)
@pytest.mark.parametrize("where", [0, 5])
def test_integers_that_are_too_large_are_named(measure, one, where):
    X = [one] * 24
    X[where] = (np.array(one, dtype=object) + 10**400).tolist()
    with pytest.raises(RefusedObject, match="contains an integer beyond") as refused:
        IKFD(measure, landmarks="all").fit(X, LANGUAGES)
    assert refused.value.row == where


@pytest.mark.parametrize("make", [IKFD, KreinClassifier])
def test_columns_of_precomputed_frames_must_be_those_of_fit(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    names = [f"object {i}" for i in range(60)]
    D = pd.DataFrame(np.linalg.norm(X[:, None] - X, axis=2), columns=names)
    clf = make("precomputed-distance", landmarks=np.arange(0, 60, 4)).fit(D, X[:, 0] > 0)
    expected = clf.predict_proba(D.to_numpy())
    np.testing.assert_array_equal(clf.predict_proba(D), expected)
    with pytest.raises(ValueError, match=r"column 0 of X is 'object 59', but 'object 0' in fit"):
        clf.predict(D[names[::-1]])
    if make is IKFD:  # values to the landmarks alone
        some = [names[i] for i in clf.landmarks_]
        np.testing.assert_allclose(clf.predict_proba(D[some]), expected)
        with pytest.raises(ValueError, match=r"in the order of the training objects"):
            clf.predict(D[some[::-1]])


def test_a_file_is_scored(tmp_path):
    clf = KreinClassifier("levenshtein").fit(WORDS, [len(word) % 2 for word in WORDS])
    path = tmp_path / "words.txt"
    path.write_text("\n".join(WORDS) + "\n")
    truth = [len(word) % 2 for word in WORDS]
    assert clf.score(path, truth) == clf.score(WORDS, truth)


def test_tags_say_what_the_measure_compares():
    words = KreinClassifier("levenshtein").__sklearn_tags__().input_tags
    assert (words.one_d_array, words.two_d_array, words.string) == (True, False, True)
    vectors = KreinClassifier("euclidean").__sklearn_tags__().input_tags
    assert (vectors.two_d_array, vectors.pairwise) == (True, False)
    assert KreinClassifier("precomputed").__sklearn_tags__().input_tags.pairwise


def test_an_option_of_the_estimator_is_not_one_of_the_measure():
    clf = KreinClassifier("levenshtein", measure_params={"symmetrize": True})
    with pytest.raises(ValueError, match="symmetrize belongs to the estimator"):
        clf.fit(WORDS, [len(word) % 2 for word in WORDS])


@pytest.fixture(scope="module")
def distances():
    """Distances among 150 objects with labels, and of 20 new ones."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 2)) + np.repeat([[0], [3]], 75, axis=0), np.repeat(["a", "b"], 75)
    new = rng.normal(1.5, 2, size=(20, 2))
    D, D_new = (np.linalg.norm(one[:, None] - X, axis=2) for one in (X, new))
    return KreinClassifier("precomputed-distance", n_landmarks=20).fit(D, y), D, y, D_new


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"entry \(3, 4\) of the matrix is nan"),
        (np.inf, r"entry \(3, 4\) of the matrix is inf"),
        (-1.0, r"entry \(3, 4\) of the distance matrix is negative: -1"),
    ],
)
def test_a_wrong_value_of_a_new_object_is_named_as_in_fit(distances, value, message, frame):
    clf, D, y, D_new = distances
    D, D_new = D.copy(), D_new.copy()
    D[3, 4] = D[4, 3] = D_new[3, 4] = value
    with pytest.raises(ValueError, match=message):
        clone(clf).fit(frame(D), y)
    with pytest.raises(ValueError, match=message):
        clf.predict(frame(D_new))


def test_a_second_look_needs_the_values_to_all_training_objects(distances):
    clf, D, y, D_new = distances
    match = r"needs the values to all training objects, n × 150; got 20 × 20, .* neighbours=0"
    as_many = clone(clf).set_params(max_kept=20).fit(D, y)  # as many known objects as landmarks
    for model in (clf, as_many):
        with pytest.raises(ValueError, match=match):
            model.novelty(D_new[:, model.landmarks_])
    single = clone(clf).set_params(neighbours=0).fit(D, y)
    expected = single.predict_proba(D_new)
    assert_array_equal(single.predict_proba(D_new[:, single.landmarks_]), expected)


@pytest.mark.parametrize("words", [WORDS, np.array(WORDS)])
def test_strings_are_not_precomputed_values(distances, words):
    with pytest.raises(TypeError, match=r"not strings such as 'house'.*levenshtein"):
        IKFD("precomputed").fit(words, LANGUAGES)
    with pytest.raises(TypeError, match="not strings such as 'house'"):
        distances[0].predict(words)


# -- labels in the file -------------------------------------------------------------------------


@pytest.fixture
def words_csv(tmp_path):
    path = tmp_path / "words.csv"
    pd.DataFrame({"word": WORDS, "tongue": LANGUAGES}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("make", [KreinClassifier, IKFD, IKQD, PCVM])
@pytest.mark.filterwarnings("ignore:.*objects could be held out")
def test_y_may_name_the_column_of_labels_in_a_file(make, words_csv):
    named = make("levenshtein").fit(words_csv, "tongue")
    given = make("levenshtein").fit(WORDS, LANGUAGES)
    assert_array_equal(named.predict_proba(WORDS), given.predict_proba(WORDS))


def test_y_may_be_a_file_of_names_and_labels(tmp_path):
    fasta, labels = tmp_path / "words.fasta", tmp_path / "labels.tsv"
    fasta.write_text("".join(f">w{i}\n{word}\n" for i, word in enumerate(WORDS)))
    labels.write_text("".join(f"w{i}\t{label}\n" for i, label in enumerate(LANGUAGES)))
    clf = IKFD("levenshtein").fit(fasta, str(labels))
    assert clf.classes_.tolist() == ["de", "en"]


def test_a_wrong_column_of_labels_lists_the_columns(words_csv):
    with pytest.raises(ValueError, match=r"'language'.*word.*tongue"):
        IKFD("levenshtein").fit(words_csv, "language")


def test_a_name_of_labels_needs_a_path(words_csv):
    source = krein.io.open_source(words_csv)
    with pytest.raises(ValueError, match="X must be its path"):
        IKFD("levenshtein").fit(source, "tongue")
