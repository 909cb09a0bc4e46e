"""A weighted sum of measures over the columns of records."""

from __future__ import annotations

import importlib
import pickle
from collections import namedtuple
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from rapidfuzz import distance

import krein
from krein.io.modelfile import read_model, write_model
from krein.measures import Combined, PairError, RefusedObject, get_measure
from krein.measures.alignments import Letters, Numbers, Parts
from krein.measures.combined import parse_parts
from krein.measures.features import NGrams, RecordFeatures
from krein.measures.fingerprints import fingerprint

N = 60


def table(n=N, seed=0):
    """Made-up people of three groups: names, dates and numbers."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    rows = []
    for c in y:
        stem = ("Annabel", "Bernhard", "Clarissa")[c]
        name = "".join(x if rng.random() > 0.3 else rng.choice(list("abcde")) for x in stem)
        born = f"19{60 + 5 * c + rng.integers(20)}-0{rng.integers(1, 9)}-1{rng.integers(9)}"
        lat, lon = rng.normal(size=2) + c
        rows.append({"name": name, "born": born, "age": 30 + 4 * c + rng.normal() * 8,
                     "lat": lat, "lon": lon})  # fmt: skip
    return rows, y


PARTS = {
    "name": "levenshtein",
    "birthday": ({"measure": "levenshtein", "params": {"normalize": True}, "columns": "born"}),
    "age": "euclidean",
    "place": ("euclidean", ["lat", "lon"]),
}
WEIGHTS = {"birthday": 8.0, "age": 0.1, "place": 0.5}


def by_hand(a, b):
    born = distance.Levenshtein.distance(a["born"], b["born"]) / max(len(a["born"]), len(b["born"]))
    place = np.hypot(a["lat"] - b["lat"], a["lon"] - b["lon"])
    name = distance.Levenshtein.distance(a["name"], b["name"])
    return name + 8.0 * born + 0.1 * abs(a["age"] - b["age"]) + 0.5 * place


@pytest.fixture(scope="module")
def people():
    return Combined(PARTS, WEIGHTS)


def test_values_are_the_sums_written_by_hand(people):
    X, _ = table()
    objects = people.check(X)
    D = np.array([[by_hand(a, b) for b in X] for a in X])
    np.testing.assert_allclose(people.block(objects, objects), D, rtol=1e-12)
    np.testing.assert_allclose(people.diagonal(objects), 0)
    columns = np.random.default_rng(0).integers(0, N, (N, 5))
    expected = np.take_along_axis(D, columns, axis=1)
    np.testing.assert_allclose(people.each(objects, objects, columns), expected, rtol=1e-12)


def test_a_classifier_gives_the_same_answers_as_with_a_function(people):
    X, y = table()
    given = krein.IKFD(people, landmarks="all").fit(X[:40], y[:40])
    written = krein.IKFD(by_hand, measure_params={"kind": "dissimilarity"}, landmarks="all")
    written.fit(X[:40], y[:40])
    np.testing.assert_allclose(
        given.predict_proba(X[40:]), written.predict_proba(X[40:]), rtol=1e-6, atol=1e-9
    )


def containers(rows):
    pd, pa = (pytest.importorskip(name) for name in ("pandas", "pyarrow"))
    columns = ["name", "born", "age", "lat", "lon"]
    other = ["lon", "born", "extra", "age", "name", "lat"]
    more = [{**row, "extra": "…"} for row in rows]
    types = [(c, "U12" if c in ("name", "born") else float) for c in columns]
    tuples = [tuple(row[c] for c in columns) for row in rows]
    person = namedtuple("person", other)
    yield rows
    yield more
    yield tuples
    yield [list(row) for row in tuples]
    yield [person(*(row[c] for c in other)) for row in more]
    yield np.array(tuples, dtype=types)
    yield np.array(tuples, dtype=object)
    yield pd.DataFrame(more)[other]
    yield [row for _, row in pd.DataFrame(rows).iterrows()]
    if find_spec("polars") is not None:
        yield importlib.import_module("polars").DataFrame(more)[other]
    yield pa.Table.from_pylist(more)
    yield [{c: str(cell) for c, cell in row.items()} for row in rows]  # as from a CSV file


def test_records_may_come_in_any_container(people):
    X, _ = table(9)
    expected = [fingerprint(one) for one in people.check(X)]
    for given in containers(X):
        assert [fingerprint(one) for one in people.check(given)] == expected
        assert people.readable(given).mask.all()


def test_parts_may_be_receptors_series_and_vectors():
    rng = np.random.default_rng(0)
    genes, walks = ["TRBV9", "TRBV19", "TRBV5-1"], [rng.normal(size=n) for n in (5, 9, 7)]
    rows = [
        {"v": gene, "cdr3": "CASSIRSSYEQYF", "walk": walk, "x": walk, "y": -walk, "t1": i, "t2": 2}
        for i, (gene, walk) in enumerate(zip(genes, walks, strict=True))
    ]
    measure = Combined(
        {
            "receptor": ("tcrdist", ["v", "cdr3"]),
            "walk": "dtw",
            "channels": ("dtw", ["x", "y"]),
            "times": ("dtw", ["t1", "t2"]),
        },
        [2.0, 1.0, 1.0, 0.5],
    )
    assert measure.undecided()
    measure = measure.decide(rows)
    assert measure.params()["parts"]["receptor"]["params"]["chains"] == "beta"
    objects = measure.check(rows)

    def alone(name, objects, params=None):
        one = get_measure(name, params).decide(objects)
        checked = one.check(objects)
        return one.block(checked, checked)

    both = [np.column_stack([w, -w]) for w in walks]
    expected = 2 * alone("tcrdist", [(gene, "CASSIRSSYEQYF") for gene in genes])
    expected += alone("dtw", walks) + alone("dtw", both, {"layout": "times-channels"})
    expected += 0.5 * alone("dtw", [[i, 2.0] for i in range(3)])
    np.testing.assert_allclose(measure.block(objects, objects), expected, rtol=1e-12)


def test_a_record_may_contain_the_object_of_a_part():
    measure = Combined({"place": ("euclidean", ["lat", "lon"])})
    objects = measure.check([{"lat": 3.0, "lon": 4.0}, {"lat": 0.0, "lon": 0.0}])
    assert measure.block(measure.check([{"place": [0, 0]}]), objects).tolist() == [[5.0, 0.0]]
    np.testing.assert_array_equal(
        measure.block(measure.check(list(objects)), objects), measure.block(objects, objects)
    )


def test_what_is_known_follows_from_the_parts():
    def of(*names):
        return Combined({f"c{i}": name for i, name in enumerate(names)}, [2.0] * len(names))

    assert of("rbf", "elm").psd is True
    assert of("rbf", "manhattan").psd is None
    assert of("euclidean", "euclidean").psd is None  # the ℓ₁ distance of the plane is not Euclidean
    assert (of("euclidean").psd, of("levenshtein").psd) == (True, False)
    assert (of("rbf", "jaro-winkler").self_value, of("rbf", "elm").self_value) == (4.0, None)
    assert of("euclidean", "damerau").block_pairs == get_measure("damerau").block_pairs
    assert not of("rbf", lambda a, b: 0.0).releases_gil
    assert of("rbf").kind == "similarity"
    assert of("euclidean").kind == "dissimilarity"


def test_unreadable_records_are_told_apart(people):
    X, _ = table(6)
    X[1] = {**X[1], "age": "unknown"}
    X[3] = {**X[3], "born": None}
    X[4] = {key: cell for key, cell in X[4].items() if key != "lon"}
    found = people.readable(X)
    assert found.mask.tolist() == [True, False, True, False, False, True]
    assert found.reasons == {
        1: "record has 'unknown' in the column 'age', not a number",
        3: "record has no value in the column 'born': fill it in, or leave the record out",
        4: "record has no 'lon'; its columns are 'name', 'born', 'age', 'lat'",
    }


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"age": "31"}, {"age": "x"}], "record 1 has 'x' in the column 'age', not a number"),
        ([{"age": 1}, {"age": 10**400}], "record 1 has a number beyond 10.308 in the column"),
        ([{"age": 1}, {"age": np.inf}], "record 1 cannot be compared in column 'age': its vector"),
        ([{"age": 1}, {"age": float("nan")}], "record 1 has no value in the column 'age'"),
        ([{"age": 1}, {"age": np.datetime64("2001-01-01")}], "record 1 has .* not a number"),
        ([{"age": 1}, {"age": [1, 2]}], "record 1 has .* not a number"),
    ],
)
def test_a_cell_that_is_not_a_number_is_named(rows, message):
    with pytest.raises(ValueError, match=message):
        Combined({"age": "euclidean"}).check(rows)


def test_missing_cells_and_columns_of_a_frame_are_named(people):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table(5)[0])
    with pytest.raises(
        ValueError, match="there is no column 'lon'; the columns are 'name', 'born'"
    ):
        people.check(frame.drop(columns="lon"))
    for column in ("age", "name"):
        holed = frame.astype({"name": "string"})
        holed.loc[2, column] = pd.NA
        with pytest.raises(RefusedObject, match=f"record 2 has no value in the column '{column}'"):
            people.check(holed)
    with pytest.raises(ValueError, match="two columns are called 'age'"):
        people.check(pd.concat([frame, frame[["age"]]], axis=1))


@pytest.mark.parametrize(
    ("parts", "weights", "message"),
    [
        ({}, None, "parts must be a dict of at least one measure"),
        (["levenshtein"], None, "parts must be a dict of at least one measure"),
        ({"a": "levenshtein", "b": "rbf"}, None, r"'a' \(levenshtein\) is a dissimilarity and 'b'"),
        ({"a": "nothing"}, None, "the part 'a': unknown measure 'nothing'"),
        ({"a": "precomputed"}, None, "the part 'a' cannot be 'precomputed'"),
        ({"a": Combined({"b": "elm"})}, None, "the part 'a' cannot be 'combined'"),
        ({"a": ("elm", [])}, None, "the columns of the part 'a' must be different names"),
        ({"a": ("elm", ["x", "x"])}, None, "the columns of the part 'a' must be different names"),
        ({"a": ("elm", [1])}, None, "the columns of the part 'a' must be different names"),
        ({"a": {"params": {}}}, None, "the part 'a' must have a measure"),
        ({"a": {"measure": "elm", "code": ""}}, None, "the part 'a' must have a measure"),
        ({"a": {"measure": "elm", "params": {"x": 1}}}, None, "'a': .* has no parameter 'x'"),
        ({3: "elm"}, None, "the name of a part must be text; got 3"),
        ({"a": "elm"}, {"b": 1}, "there is no part 'b' to weight; the parts are 'a'"),
        ({"a": "elm"}, [1, 2], "one number for each of 'a'"),
        ({"a": "elm"}, 2.0, "one number for each of 'a'"),
        *(
            ({"a": "elm"}, [w], "the weight of the part 'a' must be a number above 0")
            for w in (0, -1.0, np.inf, np.nan, True, "1", None)
        ),
    ],
)
def test_bad_parts_are_refused(parts, weights, message):
    with pytest.raises(ValueError, match=message):
        Combined(parts, weights)


def test_it_needs_parts():
    with pytest.raises(ValueError, match="the measure 'combined' needs the parameter 'parts'"):
        get_measure("combined")


def test_an_error_of_a_function_names_the_column():
    measure = Combined({"x": lambda a, b: 1 / (a + b), "name": "jaro-winkler"})
    objects = measure.check([{"x": 1.0, "name": "a"}, {"x": -1.0, "name": "b"}])
    message = "column 'x': .* raised ZeroDivisionError"
    with pytest.raises(PairError, match=message):
        measure.block(objects, objects)
    with pytest.raises(PairError, match=message):
        measure.each(objects, objects, np.array([[1], [1]]))


def test_an_asymmetric_function_is_noticed():
    X = [{"x": float(i)} for i in range(12)]
    with pytest.raises(ValueError, match="is not symmetric"):
        krein.IKFD(Combined({"x": lambda a, b: a - 2 * b})).fit(X, [0, 1] * 6)


def test_the_parts_are_shown_one_below_the_other(people):
    X, _ = table(4)
    objects = people.check(X)
    found = people.side_by_side(objects[0], objects[3])
    assert isinstance(found, Parts)
    assert [part.name for part in found.parts] == ["name", "birthday", "age", "place"]
    assert [type(part.beside) for part in found.parts] == [Letters, Letters, Numbers, Numbers]
    total = sum(part.weight * part.value for part in found.parts)
    assert total == pytest.approx(by_hand(X[0], X[3]), rel=1e-12)


def test_records_have_the_features_of_their_parts(people):
    X, _ = table(30)
    objects = people.contents(people.check(X))
    features, F = people.feature_map(objects, np.random.default_rng(0))
    assert features.names == ("name", "birthday")  # numbers have none
    expected = [NGrams.fit_transform(objects.of(name)) for name in features.names]
    beside = np.hstack([own.toarray() for _, own in expected]) / np.sqrt(2)
    np.testing.assert_allclose(F.toarray(), beside)
    np.testing.assert_allclose(features(objects).toarray(), beside)
    place, groups = np.array([3, 7]), np.arange(30) // 2
    held = [grams.held_out(own, place, groups).toarray() for grams, own in expected]
    found = features.held_out(F, place, groups).toarray()
    np.testing.assert_allclose(found, np.hstack(held) / np.sqrt(2))
    folded = features.folded(F)
    np.testing.assert_allclose(folded @ folded.T, (F @ F.T).toarray(), atol=0.2)
    slope = np.random.default_rng(1).normal(size=features.n_features)
    told = features.shares(objects[4], slope)
    np.testing.assert_allclose(told.parts.sum(), F[[4]] @ slope)
    names = {told.describe(k)[0].partition(": ")[0] for k in range(len(told.parts))}
    assert names == {"name", "birthday"}


def test_numbers_alone_have_no_features():
    measure = Combined({"age": "euclidean", "place": ("euclidean", ["lat", "lon"])})
    objects = measure.check([{"age": 1, "lat": 2.0, "lon": 3.0}] * 3)
    assert measure.feature_map(measure.contents(objects), np.random.default_rng(0)) is None


def test_features_of_records_are_stored(people, tmp_path):
    X, y = table(60)
    clf = krein.KreinClassifier(people, n_landmarks=6).fit(X, y)
    assert isinstance(clf.model_.look_zero.features, RecordFeatures)
    clf.save(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein", only_model=True)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    why = clf.explain(X[:3])[1]
    total = why.baseline + why.contributions.sum() + why.from_features + why.evidence
    assert abs(total - why.score) < 1e-9 * (1 + np.abs(why.contributions).sum())


def test_a_text_describes_the_parts():
    found = parse_parts("name=levenshtein, lat+lon=euclidean*0.5", {"name.normalize": "true"})
    same = Combined(
        {
            "name": get_measure("levenshtein", {"normalize": True}),
            "lat+lon": ("euclidean", ["lat", "lon"]),
        },
        [1, 0.5],
    )
    assert found == same
    assert found.title == "name=levenshtein(normalize=True), lat+lon=euclidean*0.5"


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        ("name=levenshtein,age", {}, "'age' is not COLUMN=MEASURE"),
        ("=levenshtein", {}, "'=levenshtein' is not COLUMN=MEASURE"),
        ("name=", {}, "'name=' is not COLUMN=MEASURE"),
        ("name=elm,name=rbf", {}, "'name=rbf' is not COLUMN=MEASURE"),
        ("name=elm*x", {}, "the weight 'x' of 'name' is not a number"),
        ("name=elm*-1", {}, "the weight of the part 'name' must be a number above 0"),
        ("name=elm", {"sigma": "1"}, "'sigma' is not a parameter of a part: write name.sigma"),
        ("name=elm", {"name.x": "1"}, "the part 'name': .* has no parameter 'x'"),
    ],
)
def test_a_wrong_text_is_refused(text, params, message):
    with pytest.raises(ValueError, match=message):
        parse_parts(text, params)


# -- models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [krein.KreinClassifier, krein.IKFD, krein.IKQD, krein.PCVM],
    ids=lambda e: e.__name__,
)
def test_models_are_saved_and_loaded(people, estimator, tmp_path):
    X, y = table()
    clf = estimator(people, random_state=0).fit(X[:45], y[:45])
    expected = clf.predict_proba(X)
    assert (clf.predict(X[45:]) == y[45:]).mean() > 0.8
    clf.save(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein")
    assert again.measure == people
    np.testing.assert_array_equal(again.predict_proba(X), expected)
    model = krein.load(tmp_path / "m.krein", only_model=True)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(X), expected)
    again.fit(X[:45], y[:45])
    np.testing.assert_array_equal(again.predict_proba(X), expected)


def test_weights_can_be_searched(people):
    clf = krein.IKFD("combined", measure_params={"parts": PARTS, "weights": WEIGHTS})
    X, y = table()
    clf.set_params(measure_params__weights=[1, 1, 1, 1]).fit(X, y)
    assert clf.measure_ == Combined(PARTS)
    assert krein.IKFD(people).set_params(measure__weights=None).measure == Combined(PARTS)


def test_what_a_part_learned_is_stored(tmp_path):
    rng = np.random.default_rng(0)
    letters = ("ACGT", "ACDEFGHIKL")
    X = [
        {"dna": "".join(rng.choice(list("ACGT"), 30)), "n": float(c),
         "protein": "".join(rng.choice(list(letters[1]), 30))}
        for c in (0, 1) * 15
    ]  # fmt: skip
    parts = {"dna": "smith-waterman", "protein": get_measure("smith-waterman"), "n": "rbf"}
    clf = krein.IKFD("combined", measure_params={"parts": parts}).fit(X, [0, 1] * 15)
    clf.save(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein")
    assert again.measure == clf.measure_
    assert [m.matrix for m in again.measure_.measures[:2]] == ["NUC.4.4", "BLOSUM62"]
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_a_function_as_a_part_is_passed_again(tmp_path):
    X, y = table()
    own = Combined({"age": lambda a, b: -abs(a - b), "name": "jaro-winkler"}, [0.1, 1])
    clf = krein.IKFD(own).fit(X, y)
    clf.save(tmp_path / "m.krein")
    with pytest.raises(ValueError, match=r"fitted with the measure 'Combined'.* pass it"):
        krein.load(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein", measure=own)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def _set(path, value):
    def change(tree):
        for key in path[:-1]:
            tree = tree[key]
        tree[path[-1]] = value

    return change


MODEL = ("fitted", "model_", "fields")
MEASURE = (*MODEL, "measure", "params")
OBJECTS = (*MODEL, "landmarks", "fields", "objects")


@pytest.mark.parametrize(
    "change",
    [
        _set((*MEASURE, "weights", "age"), -1.0),
        _set((*MEASURE, "weights", "age"), float("inf")),
        _set((*MEASURE, "weights", "age"), 1e301),
        _set((*MEASURE, "weights", "age"), "1"),
        _set((*MEASURE, "weights", "other"), 1.0),
        _set((*MEASURE, "parts"), {}),
        _set((*MEASURE, "parts", "age", "measure"), "os:system"),
        _set((*MEASURE, "parts", "age", "measure"), "precomputed-distance"),
        _set((*MEASURE, "parts", "age", "measure"), "combined"),
        _set((*MEASURE, "parts", "age", "measure"), "levenshtein"),
        _set((*MEASURE, "parts", "age", "measure"), "rbf"),
        _set((*MEASURE, "parts", "age", "columns"), [["age"]]),
        _set((*MEASURE, "parts", "name", "params", "normalize"), 3),
        _set((*MEASURE, "parts", "name", "params", "code"), "1"),
        _set(OBJECTS, ["Anna"]),
        _set((*OBJECTS, "class"), "Model"),
        _set((*OBJECTS, "fields", "name"), ["Anna"]),
        _set((*OBJECTS, "fields", "name"), [["Anna"]] * 45),
        _set((*OBJECTS, "fields", "age"), np.zeros((45, 2), dtype=np.float32)),
        _set((*OBJECTS, "fields", "place"), np.full((45, 2), np.nan)),
        _set((*OBJECTS, "fields", "other"), ["Anna"] * 45),
    ],
)
def test_a_forged_model_is_refused(people, change, tmp_path):
    X, y = table()
    krein.IKFD(people, landmarks="all").fit(X[:45], y[:45]).save(tmp_path / "m.krein")
    tree = read_model(tmp_path / "m.krein")
    change(tree)
    write_model(tmp_path / "forged.krein", tree, "0")
    for load in (krein.load, partial(krein.load, only_model=True)):
        with pytest.raises(ValueError, match="is not a krein model"):
            load(tmp_path / "forged.krein")


# -- files and frames ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_files_give_the_same_results_as_memory(people, suffix, tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    X, y = table()
    frame = pd.DataFrame(X)[["lon", "born", "lat", "age", "name"]].assign(label=y.astype(str))
    write = {
        "csv": lambda f, p: f.to_csv(p, index=False),
        "jsonl": lambda f, p: f.to_json(p, orient="records", lines=True, double_precision=15),
        "parquet": lambda f, p: f.to_parquet(p),
    }[suffix]
    path, new = tmp_path / f"all.{suffix}", tmp_path / f"new.{suffix}"
    if suffix == "jsonl":
        frame[["lat", "lon", "age"]] = frame[["lat", "lon", "age"]].round(6)
        X = frame.drop(columns="label").to_dict("records")
    write(frame[:45], path)
    write(frame[45:], new)
    clf = krein.IKFD(people, random_state=0).fit(X[:45], y[:45].astype(str))
    expected = clf.predict_proba(X[45:])
    np.testing.assert_array_equal(np.concatenate(list(clf.predict_proba(str(new)))), expected)
    for most in (20_000, 10):  # read completely, and in chunks
        monkeypatch.setattr("krein.data.opening.IN_MEMORY_OBJECTS", most)
        monkeypatch.setattr("krein.data.local.CHUNK", 7)
        again = krein.IKFD(people, random_state=0).fit(str(path))
        np.testing.assert_array_equal(again.predict_proba(X[45:]), expected)


def test_frames_of_dask_give_the_same_results_as_memory(people):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    X, y = table()
    frame = pd.DataFrame(X)[["lon", "born", "lat", "age", "name"]]
    clf = krein.IKFD(people, random_state=0).fit(X, y)
    lazy = dd.from_pandas(frame, npartitions=3)
    again = krein.IKFD(people, random_state=0).fit(lazy, y)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(clf.predict_proba(lazy).compute(), clf.predict_proba(X))
    with pytest.raises(ValueError, match="there is no column 'lon'"):
        krein.IKFD(people).fit(lazy.drop(columns="lon"), y)
