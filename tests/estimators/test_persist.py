"""Model files: loading restores the same model, and never runs code from the file."""

import os
import pickle
import stat

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import krein
from krein import IKFD, IKQD, IndefiniteKernelPCA, NystromMap, PseudoEuclideanEmbedding
from krein.io.modelfile import ModelFileError, read_model, write_model
from krein.landmarks import MEB, Random
from krein.measures import Combined
from krein.measures.vectors import ELM

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[y]
WORDS = ["house", "mouse", "horse", "haus", "maus", "ross"]
LANGUAGES = ["en", "en", "en", "de", "de", "de"]


def overlap(a, b):
    return len(set(a) & set(b)) - 0.1 * abs(len(a) - len(b))


@pytest.mark.parametrize(
    ("estimator", "objects", "labels"),
    [
        (IKFD("elm", random_state=0), X, NAMES),
        (IKFD("elm", random_state=0, calibrate=True), X, NAMES),
        (IKFD(ELM(sigma=3.0), landmarks=MEB(epsilon=0.1), priors={0: 1, 1: 2, 2: 3}), X, y),
        (IKFD("elm", landmarks=Random(n_landmarks=9), multiclass="ovr", random_state=1), X, y == 1),
        (IKFD("levenshtein", landmarks="all"), WORDS, LANGUAGES),
        (
            IKFD("levenshtein", landmarks="all"),
            np.array(WORDS, dtype=object),
            np.array(LANGUAGES, dtype=object),
        ),
        (IKFD("precomputed", landmarks=[0, 70, 120]), X @ X.T, y),
        (IKFD("precomputed-distance"), np.linalg.norm(X[:, None] - X[None], axis=2), y),
        (IKQD("elm", random_state=np.random.RandomState(0)), X, y),
        (NystromMap("elm", random_state=0), X, y),
        (PseudoEuclideanEmbedding("elm", n_components=3, random_state=0), X, None),
        (IndefiniteKernelPCA("levenshtein", n_components=2, landmarks="all"), WORDS, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_same_model_comes_back(tmp_path, estimator, objects, labels):
    estimator.fit(objects, labels)
    estimator.save(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein")
    assert type(again) is type(estimator)
    method = "predict_proba" if hasattr(estimator, "predict_proba") else "transform"
    assert_array_equal(getattr(again, method)(objects), getattr(estimator, method)(objects))
    assert_array_equal(again.landmarks_, estimator.landmarks_)
    if hasattr(estimator, "classes_"):
        assert_array_equal(again.predict(objects), estimator.predict(objects))
        assert again.classes_.dtype == estimator.classes_.dtype
    assert again.comparisons_to_fit_ == estimator.comparisons_to_fit_
    assert again.signature_ == estimator.signature_


def test_a_loaded_model_can_continue_learning(tmp_path):
    clf = IKFD("elm", landmarks=[0, 20, 60]).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    clf.save(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein").partial_fit(X[100:], y[100:])
    clf.partial_fit(X[100:], y[100:])
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_loading_asks_for_the_users_function_by_name(tmp_path):
    clf = IKFD(overlap, landmarks="all").fit(WORDS, LANGUAGES)
    clf.save(tmp_path / "m.krein")
    with pytest.raises(ValueError, match=r"'overlap'.*: pass it with krein\.load\(path, measure="):
        krein.load(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein", measure=overlap)
    assert_array_equal(again.predict_proba(WORDS), clf.predict_proba(WORDS))


def test_a_record_compared_by_the_users_function_is_saved(tmp_path):
    records = [{"word": word} for word in WORDS]
    parts = {"word": lambda a, b: overlap(a, b)}  # no name by which a file could import it
    clf = IKFD("combined", landmarks="all", measure_params={"parts": parts})
    clf.fit(records, LANGUAGES).save(tmp_path / "m.krein")
    with pytest.raises(ValueError, match=r"pass it with krein\.load\(path, measure="):
        krein.load(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein", measure=Combined(parts))
    assert_array_equal(again.predict_proba(records), clf.predict_proba(records))


def test_an_unneeded_measure_is_refused(tmp_path):
    IKFD("elm", random_state=0).fit(X, y).save(tmp_path / "m.krein")
    with pytest.raises(ValueError, match="omit measure="):
        krein.load(tmp_path / "m.krein", measure=overlap)


def test_unfitted_models_are_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        IKFD("elm").save(tmp_path / "m.krein")
    assert not list(tmp_path.iterdir())


def test_the_file_contains_no_local_paths(tmp_path):
    clf = IKFD("elm", random_state=0, cache=str(tmp_path / "cache"), n_jobs=1).fit(X, y)
    clf.save(tmp_path / "m.krein")
    header = np.load(tmp_path / "m.krein")["header"].tobytes().decode()
    assert str(tmp_path) not in header
    assert krein.load(tmp_path / "m.krein").cache is None


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.krein"
    IKFD("elm", random_state=0).fit(X, y).save(path)
    return path


def test_every_damaged_byte_is_noticed_or_harmless(model):
    good = model.read_bytes()
    truth = krein.load(model).predict_proba(X)
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.choice(len(good), size=150, replace=False):
        bad = bytearray(good)
        bad[place] ^= 0xFF
        model.write_bytes(bytes(bad))
        try:
            again = krein.load(model)
        except ModelFileError:
            refused += 1
        else:  # a byte of the archive that carries no data, such as a date
            assert_array_equal(again.predict_proba(X), truth)
    assert refused > 100


@pytest.mark.parametrize("length", [0, 1, 100, -1, -100])
def test_truncated(model, length):
    model.write_bytes(model.read_bytes()[:length])
    with pytest.raises(ModelFileError, match=r"m\.krein"):
        krein.load(model)


class Trap:
    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


def test_foreign_files_are_refused_and_run_nothing(tmp_path):
    path = tmp_path / "m.krein"
    trap = np.array([Trap()])
    contents = {
        "text": lambda f: f.write(b"hello"),
        "pickle": lambda f: pickle.dump(Trap(), f),
        "npz": lambda f: np.savez(f, a=np.ones(3)),
        "npy": lambda f: np.save(f, np.ones(3)),
        "npy of objects": lambda f: np.save(f, trap, allow_pickle=True),
        "npz of objects": lambda f: np.savez(f, header=trap, seal=trap),
    }
    for name, write in contents.items():
        with path.open("wb") as file:
            write(file)
        with pytest.raises(ModelFileError):
            krein.load(path)
        assert not Trap.sprung, name


def test_missing_file():
    with pytest.raises(FileNotFoundError):
        krein.load("no such file.krein")


def test_other_formats(model, monkeypatch):
    tree = read_model(model)
    monkeypatch.setattr("krein.io.modelfile.FORMAT", 7)
    write_model(model, tree, "9.9")
    monkeypatch.undo()
    found = r"written by krein 9\.9 in format 7; this version reads format 1: upgrade krein"
    with pytest.raises(ModelFileError, match=found):
        krein.load(model)


def test_unknown_estimators_and_parts(model):
    tree = read_model(model)
    write_model(model, {**tree, "estimator": "os.system"}, "1")
    with pytest.raises(ModelFileError, match=r"os\.system"):
        krein.load(model)
    for attribute, wanted in (("space_", "LandmarkSpace"), ("model_", "Model")):
        fitted = {**tree["fitted"], attribute: {"class": "Popen", "fields": {}}}
        write_model(model, {**tree, "fitted": fitted}, "1")
        with pytest.raises(ModelFileError, match=f"{attribute} is not a {wanted}"):
            krein.load(model)


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "m.krein"
    clf = IKFD("elm", random_state=0).fit(X, y)
    clf.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space"):
        clf.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.krein"]


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "none" / "m.krein"
    with pytest.raises(FileNotFoundError, match=r"m\.krein: there is no folder .*none$"):
        IKFD("elm", random_state=0).fit(X, y).save(path)


def test_file_permissions_follow_the_umask(model):
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(model.stat().st_mode) == 0o666 & ~umask


def test_values_survive_a_round_trip(tmp_path):
    tree = {
        "none": None,
        "numbers": [1, 2.5, True, float("inf")],
        "text": "ä <b>",
        "bytes": b"\x00\xff",
        "array": np.arange(6).reshape(2, 3),
        "strings": np.array(["a", "bc"]),
        "objects": np.array(["a", 1, None], dtype=object),
        "tuple": (1, (2, np.zeros(2))),
        "keys": {0: "a", (1, 2): "b"},
        "sets": [{1, 2}, frozenset("a")],
        "deep": {"a": {"b": [np.float64(0.5), np.int64(3)]}},
    }
    write_model(tmp_path / "t", tree, "0")
    again = read_model(tmp_path / "t")
    assert again["tuple"][1][1].tolist() == [0.0, 0.0]
    assert again["deep"] == {"a": {"b": [0.5, 3]}}
    for name in ("none", "numbers", "text", "bytes", "keys", "sets"):
        assert again[name] == tree[name]
    for name in ("array", "strings", "objects"):
        assert_array_equal(again[name], tree[name])
        assert again[name].dtype == tree[name].dtype
    with pytest.raises(TypeError, match="complex cannot be saved"):
        write_model(tmp_path / "t", {"a": 1j}, "0")


def test_a_model_of_one_dimension_can_be_loaded(tmp_path):
    X, y = load_iris(return_X_y=True)
    clf = IKFD("elm", landmarks=np.arange(0, 150, 10), rank=1).fit(X, y)
    clf.save(tmp_path / "m.krein")
    assert_array_equal(krein.load(tmp_path / "m.krein").predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"estimator": ["IKFD"], "params": {}, "fitted": {}},
        {"estimator": "IKFD"},
        {"estimator": "IKFD", "params": [], "fitted": {}},
        {"estimator": "IKFD", "params": {}, "fitted": {}},
        {"estimator": "IKFD", "params": {"measure": "elm"}, "fitted": {}},
        {"estimator": "IKFD", "params": {"measure": "elm", "odd": 1}, "fitted": {}},
        {"estimator": "IKFD", "params": {"measure": "elm"}, "fitted": {"fit": 1}},
        {"estimator": "IKFD", "params": {"measure": {"rule": "os"}}, "fitted": {}},
        {"estimator": "IKFD", "params": {"measure": "elm"}, "fitted": {"space_": {"class": "x"}}},
    ],
)
def test_a_sealed_file_with_wrong_content_is_refused(tmp_path, tree):
    from krein.io.modelfile import write_model

    write_model(tmp_path / "odd.krein", tree, "0")
    with pytest.raises(ModelFileError, match=r"odd\.krein is not a krein model"):
        krein.load(tmp_path / "odd.krein")


@pytest.mark.parametrize("tree", [{}, [], {"estimator": ["IKFD"]}])
def test_a_sealed_file_without_an_estimator_is_refused(tmp_path, tree):
    write_model(tmp_path / "odd.krein", tree, "0")
    told = r"odd\.krein is not a krein model: it does not name an estimator$"
    with pytest.raises(ModelFileError, match=told):
        krein.load(tmp_path / "odd.krein")


@pytest.mark.parametrize(
    "estimator", [IKFD("elm"), IKQD("elm"), IKFD("elm", calibrate=True)], ids=str
)
def test_a_file_stores_each_array_once(tmp_path, estimator):
    estimator.set_params(random_state=0).fit(X, y).save(tmp_path / "m.krein")
    with np.load(tmp_path / "m.krein") as file:
        members = [(file[name].shape, file[name].tobytes()) for name in file.files]
    assert len(set(members)) == len(members)
    again = krein.load(tmp_path / "m.krein")
    assert_array_equal(again.space_.landmark_values, estimator.space_.landmark_values)


def test_a_calibrated_model_keeps_no_values_of_training_objects(tmp_path):
    clf = IKFD("elm", calibrate=True, random_state=0).fit(X, y)
    clf.save(tmp_path / "m.krein")
    again = krein.load(tmp_path / "m.krein")
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.power_ == clf.power_
    assert again.stream_ is None
    with pytest.raises(ValueError, match="calibrated and then loaded"):
        again.set_params(calibrate=False).partial_fit(X, y)
    assert clf.set_params(calibrate=False).partial_fit(X, y).n_samples_seen_ == 300
