"""Forged model files: sealed as krein seals them, but with wrong contents."""

import io
import os
import warnings
import zipfile

import numpy as np
import pytest
from krein.estimators.compound import IfThere
from krein.estimators.registry import ESTIMATORS, find_class
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
from krein.io.modelfile import ModelFileError, read_model, write_model
from tests.measures.market import MARKET

X, y = load_iris(return_X_y=True)
SERIES = [np.cumsum(np.sin(np.arange(5 + k % 7) * (1 + k % 3))) for k in range(40)]

MODELS = {
    "IKFD": lambda: IKFD(random_state=0, prune=True, calibrate=True).fit(X, y),
    "IKFD of distances": lambda: IKFD("manhattan", random_state=0, multiclass="ovr").fit(X, y),
    "IKFD of series": lambda: IKFD("msm", random_state=0).fit(SERIES, np.arange(40) % 3),
    "IKFD of a matrix": lambda: IKFD("precomputed", landmarks=[0, 70, 120]).fit(X @ X.T, y),
    "IKQD": lambda: IKQD(random_state=0).fit(X, y),
    "PCVM": lambda: PCVM(random_state=0).fit(X, y),
    "PCVM of two": lambda: PCVM(random_state=0).fit(X, y == 1),
    "KreinClassifier": lambda: KreinClassifier(n_landmarks=12).fit(X, y),
    "NystromMap": lambda: NystromMap(random_state=0).fit(X, y),
    "embedding": lambda: PseudoEuclideanEmbedding(2, random_state=0).fit(X),
    "PCA": lambda: IndefiniteKernelPCA(2, random_state=0).fit(X),
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
            yield "huge", 10**30


def loads(path):
    try:
        krein.load(path)
    except ModelFileError:
        return False
    return True


# parts that are only shown to people, or labels and numbers for which any value is valid
FREE = ("details", "selection_", "classes_", "eigenvalues_", "objective_path_", "relevance_",
        "rank", "n_objects_", "n_samples_seen_", "comparisons_to_fit_", "comparisons_reused_",
        "prior_scale_", "n_iter_", "converged_", "signature", "shrinkage_", "width")  # fmt: skip


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
            write_model(tmp_path / "m.krein", replaced(tree, ("fitted", *path), wrong), "0")
            place = ".".join(map(str, path))
            assert not loads(tmp_path / "m.krein"), f"{place} was accepted but wrong: {how}"
            tried += 1
    assert tried > 40


@pytest.mark.parametrize("name", MODELS)
def test_wrong_values_elsewhere_raise_no_other_error(name, trees, tmp_path):
    tree = trees[name]
    for part in ("fitted", "params"):
        for path, value in places(tree[part]):
            if part == "fitted" and not any(step in FREE for step in path):
                continue
            for _, wrong in twisted(value):
                write_model(tmp_path / "m.krein", replaced(tree, (part, *path), wrong), "0")
                try:
                    krein.load(tmp_path / "m.krein")
                except ModelFileError as error:
                    assert len(str(error).replace(str(tmp_path), "")) < 300  # noqa: PT017


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
    objects = list(tree["fitted"]["landmark_objects_"])
    objects[0] = np.zeros((length, 1))
    fitted = {**tree["fitted"], "landmark_objects_": objects}
    write_model(tmp_path / "m.krein", {**tree, "fitted": fitted}, "0")
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
    fitted = {**trees["IKFD"]["fitted"], "intercept_": np.zeros(2**20)}  # 8 MiB, packed 8 kB
    write_model(tmp_path / "m.krein", {**trees["IKFD"], "fitted": fitted}, "0")
    with pytest.raises(ModelFileError, match=r"would take 8 MiB, more than .* max_size"):
        krein.load(tmp_path / "m.krein", max_size=2**22)
    with pytest.raises(ModelFileError, match="intercept_ has the shape"):
        krein.load(tmp_path / "m.krein")


def test_every_class_that_can_be_saved_declares_what_is_fitted(trees):
    assert {tree["estimator"] for tree in trees.values()} == set(ESTIMATORS)
    for tree in trees.values():
        schema = find_class(ESTIMATORS[tree["estimator"]])._fitted
        always = {name for name, kind in schema.items() if not isinstance(kind, IfThere)}
        assert always <= set(tree["fitted"]) <= set(schema)


def test_undeclared_attributes_fail_on_save(tmp_path):
    clf = IKFD(random_state=0).fit(X, y)
    clf.newer_ = 1.0
    with pytest.raises(TypeError, match=r"IKFD has 'newer_', which IKFD\._fitted does not declare"):
        clf.save(tmp_path / "m.krein")
    del clf.newer_, clf.dual_coef_
    with pytest.raises(TypeError, match="declares 'dual_coef_', which IKFD does not have"):
        clf.save(tmp_path / "m.krein")


def test_known_objects_and_codes_are_checked_against_each_other(trees, tmp_path):
    tree = trees["KreinClassifier"]
    known = ("fitted", "known_", "fields")
    codes = tree["fitted"]["known_"]["fields"]["codes"]
    heads = ("fitted", "looks_", "fields", "heads")
    wrong = {
        "contains 3, not below 3": ((*known, "codes"), np.full_like(codes, 3)),
        "known_objects_ has": (("fitted", "known_objects_"), X[:5]),
        r"looks_.first has the shape \(3,\)": (heads, []),
    }
    for message, (path, value) in wrong.items():
        write_model(tmp_path / "m.krein", replaced(tree, path, value), "0")
        with pytest.raises(ModelFileError, match=message):
            krein.load(tmp_path / "m.krein")
    alone = replaced(tree, ("fitted", "known_objects_"), None)
    write_model(tmp_path / "m.krein", alone, "0")
    with pytest.raises(ModelFileError, match="must both be present"):
        krein.load(tmp_path / "m.krein")


def test_an_archive_that_points_before_its_beginning_is_refused(trees, tmp_path):
    write_model(tmp_path / "m.krein", trees["IKFD"], "0")
    content = bytearray((tmp_path / "m.krein").read_bytes())
    end = content.rindex(b"PK\x05\x06")
    content[end + 16 : end + 20] = (int.from_bytes(content[end + 16 : end + 20], "little") + 9**6
                                    ).to_bytes(4, "little")  # fmt: skip
    (tmp_path / "m.krein").write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a krein model, or is damaged"):
        krein.load(tmp_path / "m.krein")
