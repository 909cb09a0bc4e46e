"""Forged model files: sealed as krein seals them, but with wrong contents."""

import io
import json
import os
import tracemalloc
import warnings
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_iris

import krein
from krein import (
    IKFD,
    IKQD,
    PCVM,
    IndefiniteKernelPCA,
    KreinClassifier,
    NystromMap,
    PseudoEuclideanEmbedding,
)
from krein.io.modelfile import FORMAT, ModelFileError, read_model, write_model
from krein.model import ESTIMATORS, find_estimator
from krein.model.file import from_tree
from krein.model.schema import OPTIONAL, hints_of
from tests.measures.market import MARKET

from . import forger

pytestmark = pytest.mark.filterwarnings("ignore:the published PCVM did not converge")

X, y = load_iris(return_X_y=True)
SERIES = [np.cumsum(np.sin(np.arange(5 + k % 7) * (1 + k % 3))) for k in range(40)]

MODELS = {
    "IKFD": lambda: IKFD("elm", random_state=0, calibrate=True).fit(X, y),
    "IKFD of distances": lambda: IKFD("manhattan", random_state=0, multiclass="ovr").fit(X, y),
    "IKFD of series": lambda: IKFD("msm", random_state=0).fit(SERIES, np.arange(40) % 3),
    "IKFD of a matrix": lambda: IKFD("precomputed", landmarks=[0, 70, 120]).fit(X @ X.T, y),
    "IKQD": lambda: IKQD("elm", random_state=0).fit(X, y),
    "PCVM": lambda: PCVM("elm", random_state=0).fit(X, y),
    "PCVM of two": lambda: PCVM("elm", random_state=0, calibrate=True).fit(X, y == 1),
    "PCVM of pairs": lambda: PCVM("elm", solver="paper", random_state=0).fit(X, y),
    "KreinClassifier": lambda: KreinClassifier("elm", n_landmarks=12).fit(X, y),
    "NystromMap": lambda: NystromMap("elm", random_state=0).fit(X, y),
    "embedding": lambda: PseudoEuclideanEmbedding("elm", n_components=2, random_state=0).fit(X),
    "PCA": lambda: IndefiniteKernelPCA("elm", n_components=2, random_state=0).fit(X),
}


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for name, make in MODELS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make().save(folder / "m.krein")
        found[name] = read_model(folder / "m.krein")
    return found


def places(tree, path=()):
    """Yield the path of everything in a tree that is not a container."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))
        else:
            yield (*path, key), value


def replaced(tree, path, value):
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = replaced(tree[path[0]], path[1:], value)
    return copy


def at(tree, path):
    for step in path:
        tree = tree[step]
    return tree


MODEL = ("model_", "fields")


def twisted(value):
    """Yield replacements for a value that are wrong in shape, type or content."""
    if isinstance(value, np.ndarray):
        yield "fewer", value[:-1]
        yield "more", np.concatenate([value, value[-1:]])
        yield "an axis more", value[None]
        yield "bytes", value.astype("S4")
        if value.dtype.kind == "f":
            yield "nan", np.where(np.arange(value.size).reshape(value.shape) == 0, np.nan, value)
            other = np.float64 if value.dtype == np.float32 else np.float32
            yield "another precision", value.astype(other)
        if value.dtype.kind == "i" and value.ndim == 1:
            yield "negative", value - 1 - value.max()
        yield "a string", "x"
    elif isinstance(value, bool | int | float):
        yield "a string", "x"
        yield "none", None
        if not isinstance(value, bool):
            yield "negative", -1 - abs(value)
            yield "huge", 10**30 if isinstance(value, int) else 10**400


def loads(tree, **options):
    """Whether a file with this tree would be loaded; the file itself takes most of the time.

    `load` turns any other error into a `ModelFileError`; `test_wrong_files_are_refused` uses it.
    """
    assert isinstance(tree, dict)
    try:
        from_tree(tree, **options)
    except (ImportError, MemoryError):
        raise
    except Exception:
        return False
    return True


# parts that are only shown to people, or labels and numbers for which any value is valid
FREE = ("details", "selection_", "classes", "eigenvalues_", "objective_path_", "relevance_",
        "rank", "n_objects", "n_samples_seen_", "comparisons_to_fit_", "comparisons_reused_",
        "prior_scale_", "n_iter_", "converged_", "signature_", "shrinkage_", "width",
        "comparisons", "symmetrize", "measure", "dropped_heads_")  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_wrong_arrays_fail_on_load(name, trees, tmp_path):
    tree, tried = trees[name], 0
    write_model(tmp_path / "m.krein", tree, "0")
    krein.load(tmp_path / "m.krein")
    for path, value in places(tree["fitted"]):
        if any(part in FREE for part in path):
            continue
        for how, wrong in twisted(value):
            if how == "negative" and path[-1] in ("radius", "grand_mean", "threshold"):
                continue
            if how in ("fewer", "more", "another precision", "bytes") and type(path[-1]) is int:
                continue  # still a valid series, or the same numbers in another type
            place = ".".join(map(str, path))
            forged = replaced(tree, ("fitted", *path), wrong)
            assert not loads(forged), f"{place} was accepted but wrong: {how}"
            tried += 1
    assert tried > 40


@pytest.mark.parametrize("name", MODELS)
def test_wrong_files_are_refused(name, trees, tmp_path):
    """One forgery per array, so that reading a file changes nothing about what is refused."""
    tree = trees[name]
    for path, value in places(tree["fitted"]):
        if not isinstance(value, np.ndarray) or type(path[-1]) is int:
            continue
        if not any(part in FREE for part in path):
            write_model(tmp_path / "m.krein", replaced(tree, ("fitted", *path), value[None]), "0")
            with pytest.raises(ModelFileError):
                krein.load(tmp_path / "m.krein")


@pytest.mark.parametrize("name", MODELS)
def test_wrong_values_elsewhere_raise_no_other_error(name, trees):
    tree = trees[name]
    for part in ("fitted", "params"):
        for path, value in places(tree[part]):
            if part == "fitted" and not any(step in FREE for step in path):
                continue
            for _, wrong in twisted(value):
                loads(replaced(tree, (part, *path), wrong))


@pytest.mark.parametrize("parameter", ["cache", "n_jobs", "verbose", "__class__", "classes_"])
def test_a_file_sets_only_what_is_saved(parameter, trees, tmp_path):
    target = str(tmp_path / "written")
    params = {**trees["IKFD"]["params"], parameter: target}
    write_model(tmp_path / "m.krein", {**trees["IKFD"], "params": params}, "0")
    with pytest.raises(ModelFileError, match=f"does not set '{parameter}'"):
        krein.load(tmp_path / "m.krein")
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("attribute", ["cache", "predict", "_family", "odd_", "__dict__"])
def test_a_file_sets_no_other_attribute(attribute, trees, tmp_path):
    fitted = {**trees["IKFD"]["fitted"], attribute: 1}
    write_model(tmp_path / "m.krein", {**trees["IKFD"], "fitted": fitted}, "0")
    with pytest.raises(ModelFileError, match="not an attribute"):
        krein.load(tmp_path / "m.krein")


@pytest.mark.parametrize("length", [0, 1])
def test_landmarks_of_a_model_are_checked_by_the_measure(length, trees, tmp_path):
    tree = trees["IKFD of series"]
    place = ("fitted", *MODEL, "landmarks", "fields", "objects")
    objects = list(at(tree, place))
    objects[0] = np.zeros((length, 1))
    write_model(tmp_path / "m.krein", replaced(tree, place, objects), "0")
    if length == 0:
        with pytest.raises(ModelFileError, match="series 0 is empty"):
            krein.load(tmp_path / "m.krein")
    else:
        assert np.isfinite(krein.load(tmp_path / "m.krein").predict_proba(SERIES)).all()


@pytest.mark.parametrize("case", MARKET, ids=str)
def test_every_measure_accepts_its_saved_landmarks(case, tmp_path):
    objects = case.objects(np.random.default_rng(0), 24)
    clf = IKFD(case.name, measure_params=case.params or None, landmarks="all")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(objects, np.arange(24) % 2).save(tmp_path / "m.krein")
        again = krein.load(tmp_path / "m.krein")
        np.testing.assert_array_equal(again.predict_proba(objects), clf.predict_proba(objects))


def with_member(path, name, array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, buffer.getvalue())


def test_members_missing_from_the_header_are_not_unpacked(trees, tmp_path):
    write_model(tmp_path / "m.krein", trees["IKFD"], "0")
    with_member(tmp_path / "m.krein", "more.npy", np.zeros(10**6))
    with pytest.raises(ModelFileError, match="contains 'more', which its header does not list"):
        krein.load(tmp_path / "m.krein")


def test_a_listed_array_is_not_unpacked_beyond_the_limit(trees, tmp_path):
    large = np.zeros(2**20)  # 8 MiB, packed 8 kB
    tree = replaced(trees["IKFD"], ("fitted", *MODEL, "heads", 0, "fields", "bias"), large)
    write_model(tmp_path / "m.krein", tree, "0")
    with pytest.raises(ModelFileError, match=r"would take 8 MiB, more than .* max_size"):
        krein.load(tmp_path / "m.krein", max_size=2**22)
    with pytest.raises(ModelFileError, match=r"heads\[0\].bias has the shape"):
        krein.load(tmp_path / "m.krein")


def test_every_class_that_can_be_saved_declares_what_is_fitted(trees):
    assert {tree["estimator"] for tree in trees.values()} == set(ESTIMATORS)
    for tree in trees.values():
        schema = hints_of(find_estimator(tree["estimator"]))
        always = {k for k, v in schema.items() if OPTIONAL not in getattr(v, "__metadata__", ())}
        assert always <= set(tree["fitted"]) <= set(schema)


def test_attributes_that_no_class_declares_are_not_saved(trees, tmp_path):
    clf = IKFD("elm", random_state=0, calibrate=True).fit(X, y)
    clf.newer_ = 1.0
    clf.predict(X)  # counts its comparisons
    clf.save(tmp_path / "m.krein")
    tree = read_model(tmp_path / "m.krein")
    assert set(tree["fitted"]) == set(trees["IKFD"]["fitted"])


@pytest.mark.parametrize("name", MODELS)
def test_every_attribute_is_needed(name, trees, tmp_path):
    tree = trees[name]
    schema = hints_of(find_estimator(tree["estimator"]))
    for attribute in tree["fitted"]:
        if OPTIONAL in getattr(schema[attribute], "__metadata__", ()):
            continue
        fitted = {k: v for k, v in tree["fitted"].items() if k != attribute}
        write_model(tmp_path / "m.krein", {**tree, "fitted": fitted}, "0")
        with pytest.raises(ModelFileError, match=f"{attribute} is missing"):
            krein.load(tmp_path / "m.krein")


def test_known_objects_and_codes_are_checked_against_each_other(trees, tmp_path):
    tree = trees["KreinClassifier"]
    second = ("fitted", *MODEL, "second_look", "fields")
    known = (*second, "known", "fields")
    heads = ("fitted", *MODEL, "heads")
    wrong = {
        "contains 3, not below 3": ((*known, "codes"), np.full_like(at(tree, known)["codes"], 3)),
        "second_look.objects has": ((*second, "objects"), X[:5]),
        "it has no heads": (heads, []),
        "second_look.objects is not a list": ((*second, "objects"), None),
        "second_look.known is not a Known": ((*second, "known"), None),
    }
    for message, (path, value) in wrong.items():
        write_model(tmp_path / "m.krein", replaced(tree, path, value), "0")
        for load in (krein.load, partial(krein.load, only_model=True)):
            with pytest.raises(ModelFileError, match=message):
                load(tmp_path / "m.krein")


def test_sizes_agree_between_the_model_and_the_estimator(trees, tmp_path):
    """A head, the landmarks, the reference and the stream each have sizes of other parts."""
    tree = trees["IKFD"]
    head = at(tree, ("fitted", *MODEL, "heads", 0, "fields"))
    landmarks = at(tree, ("fitted", *MODEL, "landmarks", "fields"))
    m = len(landmarks["indices"])
    fewer = {
        ("heads", 0, "fields"): {
            **head, "places": head["places"][:-1], "weights": head["weights"][:-1]
        },
        ("heads", 0, "fields", "bias"): head["bias"][:-1],
        ("heads", 0, "fields", "places"): np.arange(1, m + 1),
        ("landmarks", "fields"): {k: v if v is None else v[:-1] for k, v in landmarks.items()},
        ("baseline",): np.zeros(m + 1),
        ("classes",): np.arange(4),
        ("reference", "fields", "codes"): at(
            tree, ("fitted", *MODEL, "reference", "fields", "codes")
        ) + 3,
    }  # fmt: skip
    for path, value in fewer.items():
        write_model(tmp_path / "m.krein", replaced(tree, ("fitted", *MODEL, *path), value), "0")
        for load in (krein.load, partial(krein.load, only_model=True)):
            with pytest.raises(ModelFileError):
                load(tmp_path / "m.krein")
    tree = trees["IKFD of distances"]  # a calibrated model has an empty stream
    moments = ("fitted", "stream_", "fields", "moments", 0, "fields")
    wrong = {name: value[:-1] for name, value in at(tree, moments).items()
             if isinstance(value, np.ndarray)}  # fmt: skip
    assert wrong
    for name, value in wrong.items():
        assert not loads(replaced(tree, (*moments, name), value)), name


@pytest.mark.parametrize("name", MODELS)
def test_the_model_alone_is_checked_as_well(name, trees):
    tree = trees[name]
    for path, value in places(tree["fitted"]["model_"]["fields"]):
        if any(part in FREE for part in path) or not isinstance(value, np.ndarray):
            continue
        if value.dtype.kind == "f":
            forged = replaced(tree, ("fitted", *MODEL, *path), np.full_like(value, np.nan))
            assert not loads(forged, only_model=True), path


def test_an_archive_that_points_before_its_beginning_is_refused(trees, tmp_path):
    write_model(tmp_path / "m.krein", trees["IKFD"], "0")
    content = bytearray((tmp_path / "m.krein").read_bytes())
    end = content.rindex(b"PK\x05\x06")
    content[end + 16 : end + 20] = (int.from_bytes(content[end + 16 : end + 20], "little") + 9**6
                                    ).to_bytes(4, "little")  # fmt: skip
    (tmp_path / "m.krein").write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a krein model, or is damaged"):
        krein.load(tmp_path / "m.krein")


def peak_of(call):
    """Return the memory that a call takes at most, and its error, if it is about the model."""
    tracemalloc.start()
    try:
        call()
        error = None
    except ModelFileError as refused:
        error = refused
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, error


class Trap:
    """An object that leaves a trace when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_no_member_of_a_model_is_unpickled(trees, tmp_path):
    write_model(tmp_path / "m.krein", trees["IKFD"], "0")
    with zipfile.ZipFile(tmp_path / "m.krein") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap(str(tmp_path / "trace"))], dtype=object), allow_pickle=True)
    for name in members:
        with zipfile.ZipFile(tmp_path / "m.krein", "w") as archive:
            for member, content in members.items():
                archive.writestr(member, buffer.getvalue() if member == name else content)
        for load in (krein.load, partial(krein.load, only_model=True)):
            with pytest.raises(ModelFileError, match="pickled objects, which may run code"):
                load(tmp_path / "m.krein")
        assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("kind", ["<U0", "|S0"])
def test_values_without_bytes_do_not_pass_as_small_arrays(kind, trees, tmp_path):
    """They take none in the file, but NumPy allocates some for each."""
    header = io.BytesIO()
    about = {"descr": kind, "fortran_order": False, "shape": (40_000_000,)}
    np.lib.format.write_array_header_1_0(header, about)
    (tmp_path / "y.npy").write_bytes(header.getvalue())
    (tmp_path / "x.txt").write_text("house\nmouse\n")
    with pytest.raises(krein.io.DataError, match="values of 0 bytes"):
        krein.io.open_source(tmp_path / "x.txt", labels=str(tmp_path / "y.npy"))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue())
    with pytest.raises(krein.io.DataError, match="no arrays that can be read"):
        krein.io.open_source(tmp_path / "a.npz")
    write_model(tmp_path / "m.krein", trees["IKFD"], "0")
    with zipfile.ZipFile(tmp_path / "m.krein") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in members if name.endswith("classes.npy"))
    members[name] = header.getvalue()
    with zipfile.ZipFile(tmp_path / "m.krein", "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    peak, error = peak_of(lambda: krein.load(tmp_path / "m.krein"))
    assert "values of 0 bytes" in str(error)
    assert peak < 10 * 2**20
    write_model(tmp_path / "m.krein", {"empty": np.zeros(3, kind)}, "0")  # as krein writes them
    np.testing.assert_array_equal(read_model(tmp_path / "m.krein")["empty"], np.zeros(3, kind))


def test_references_to_one_array_count_as_copies(trees, tmp_path):
    """A measure may copy an object each time it is used."""
    place = ("fitted", *MODEL, "landmarks", "fields", "objects")
    tree = replaced(trees["IKFD of series"], place, [np.zeros((2**17, 1))] * 300)  # 1 MiB each
    write_model(tmp_path / "m.krein", tree, "0")
    assert os.path.getsize(tmp_path / "m.krein") < 2**18
    peak, error = peak_of(lambda: krein.load(tmp_path / "m.krein"))
    assert "m.krein: the array" in str(error)
    assert "referred to so often" in str(error)
    assert peak < 2**24
    with pytest.raises(ModelFileError, match=r"objects has 300 objects, not m="):
        krein.load(tmp_path / "m.krein", max_size=2**30)


def test_no_number_of_a_model_makes_predictions_large(trees, tmp_path):
    """A number in a file is not a size that memory is allocated for."""
    tree, tried = trees["KreinClassifier"], 0
    for path, value in places(tree["fitted"]):
        if type(value) not in (int, float):
            continue
        write_model(tmp_path / "m.krein", replaced(tree, ("fitted", *path), 2**31), "0")

        def answer():
            clf = krein.load(tmp_path / "m.krein")
            clf.assess(X[::10], coverage=0.9, evidence=3)
            clf.predict_set(X[::10])

        peak, _ = peak_of(answer)
        assert peak < 2**25, path
        tried += 1
    assert tried > 10


@pytest.mark.parametrize(("kind", "n"), [("strings", 1_500_000), ("series", 20_000)])
@pytest.mark.parametrize("part", ["landmarks", "second_look"])
def test_long_objects_of_a_model_take_memory_in_proportion(part, kind, n):
    """One long object takes a few kilobytes in a file, if its letters repeat."""
    model = forger.kind_of(kind)
    place = ("fitted", *MODEL, part, "fields", "objects")
    objects = list(at(model.tree, place))
    objects[0] = "ab" * (n // 2) if kind == "strings" else np.tile([[0.0], [1.0]], (n // 2, 1))
    tree = replaced(model.tree, place, objects)

    def answer():
        assert forger.answers(from_tree(tree), model.new) is None

    peak, _ = peak_of(answer)
    assert peak < forger.MEMORY + forger.PER_BYTE * forger.size_of(tree)


@pytest.mark.parametrize("kind", ["set", "frozenset", "dict", "in different sets", "tuples"])
def test_numbers_of_equal_hash_are_refused_before_they_are_slow(kind, tmp_path):
    """Multiples of 2⁶¹ − 1 have the hash 0, so each would be compared with all others."""
    numbers = [k * (2**61 - 1) for k in range(20_000)]
    stored = {
        "set": {"set": numbers},
        "frozenset": {"frozenset": numbers},
        "dict": {"pairs": [[k, 1] for k in numbers]},
        "in different sets": {"list": [{"set": [k]} for k in numbers]},
        "tuples": {"set": [{"tuple": [k]} for k in numbers]},
    }[kind]
    forge(tmp_path / "m.krein", {"dict": {"x": stored}})
    with pytest.raises(ModelFileError, match=r"m\.krein: .* more than 16 items of equal hash"):
        read_model(tmp_path / "m.krein")


def test_sets_and_mappings_are_read_as_they_were_written(tmp_path):
    some = [-1, -2, 0, 2**61 - 1, 2.5, "a", (1, 2), *(1 << k for k in range(200))]
    tree = {"set": set(some), "frozen": frozenset(some), "dict": dict.fromkeys(some, 1)}
    write_model(tmp_path / "m.krein", tree, "0")
    assert read_model(tmp_path / "m.krein") == tree
    with pytest.raises(ValueError, match="more than 16 items of equal hash"):
        write_model(tmp_path / "m.krein", {"x": {k * (2**61 - 1) for k in range(20)}}, "0")


def forge(path, tree):
    """Write a model file with any tree in its header."""
    import hashlib

    header = {"magic": "krein model", "format": FORMAT, "version": "0", "tree": tree, "sha256": {}}
    text = json.dumps(header).encode()
    seal = hashlib.sha256(text).digest()
    arrays = {name: np.frombuffer(b, np.uint8) for name, b in (("header", text), ("seal", seal))}
    np.savez_compressed(path.with_suffix(".npz"), **arrays)
    os.replace(path.with_suffix(".npz"), path)


@pytest.mark.parametrize("item", [[], {"list": []}, 0, ""], ids=str)
def test_a_small_header_does_not_become_millions_of_values(item, tmp_path):
    many = [item] * (2**24 // (len(json.dumps(item)) + 2) - 100)
    forge(tmp_path / "m.krein", {"list": many})
    assert os.path.getsize(tmp_path / "m.krein") < 2**16
    peak, error = peak_of(lambda: read_model(tmp_path / "m.krein"))
    assert "above the limit of 2,097,152; if this is intended" in str(error)
    assert peak < 4 * 2**24


@pytest.mark.parametrize(
    ("name", "path", "wrong"),
    [
        ("KreinClassifier", ("params", "ambiguous_below"), "x"),
        ("KreinClassifier", ("params", "novel_below"), 2.0),
        ("KreinClassifier", ("params", "symmetrize"), "x"),
        ("KreinClassifier", ("params", "measure"), ""),
        ("KreinClassifier", ("fitted", *MODEL, "ambiguous_below"), "x"),
        ("KreinClassifier", ("fitted", *MODEL, "second_look", "fields", "evidence", "fields",
                             "bandwidth"), 0),
        ("IKFD", ("fitted", *MODEL, "heads", 0, "fields", "temperature"), 1e308),
        ("IKFD", ("fitted", *MODEL, "heads", 0, "fields", "bias"), np.full(3, -np.inf)),
        ("IKQD", ("fitted", *MODEL, "heads", 0, "fields", "discriminant", "fields", "intercept"),
         np.full(3, -np.inf)),
        ("IKFD", ("fitted", *MODEL, "reference", "fields", "weights"), np.full(150, -1.0)),
        ("IKFD of series", ("fitted", *MODEL, "measure", "params", "cost"), float("nan")),
        ("IKFD of series", ("fitted", *MODEL, "measure", "params", "cost"), 10**400),
        ("IKFD of series", ("fitted", *MODEL, "measure", "params", "cost"), "x"),
    ],
    ids=lambda value: str(value[-1] if isinstance(value, tuple) else value)[:20],
)  # fmt: skip
def test_values_beyond_their_bounds_fail_on_load(name, path, wrong, trees, tmp_path):
    write_model(tmp_path / "m.krein", replaced(trees[name], path, wrong), "0")
    with pytest.raises(ModelFileError):
        krein.load(tmp_path / "m.krein")


@pytest.mark.parametrize("old", [None, b"as it was"])
def test_a_model_that_does_not_load_is_not_written(old, tmp_path):
    """Whatever the reason: here, a fitted attribute that the schema refuses."""
    clf = IKFD("elm", random_state=0).fit(X, y)
    clf.model_ = replace(clf.model_, baseline=np.full_like(clf.model_.baseline, np.nan))
    if old is not None:
        (tmp_path / "m.krein").write_bytes(old)
    with pytest.raises(ValueError, match=r"m\.krein: the model is not written, .* not finite"):
        clf.save(tmp_path / "m.krein")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([] if old is None else [old])


def test_models_of_own_functions_are_read_back_with_them(tmp_path):
    def near(a, b):
        return 1 / (1 + abs(a - b))

    clf = IKFD(near, landmarks="all").fit([1.0, 2.0, 8.0, 9.0] * 3, [0, 0, 1, 1] * 3)
    clf.save(tmp_path / "m.krein")
    assert krein.load(tmp_path / "m.krein", measure=near).predict([1.5]) == [0]


@pytest.mark.parametrize("name", ["gap_open", "gap_extend"])
@pytest.mark.parametrize("cost", [2**31, 10**18, -1, float("nan"), 1.5])
def test_gap_costs_are_bounded(name, cost):
    message = "gap costs must be whole numbers from 0 to 10,000|gap_.* must be a whole number"
    with pytest.raises(ValueError, match=message):
        krein.measures.get_measure("smith-waterman", {name: cost})


@pytest.mark.parametrize("params", [{"deformations": ["scale"] * 2000}, {"smoothing": 10**18}])
def test_parameters_of_a_measure_do_not_set_the_size_of_arrays(params):
    with pytest.raises(ValueError, match=r"only once|from 0 to 1000"):
        krein.measures.get_measure("tangent", params)
