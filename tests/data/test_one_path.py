"""Memory, files and clusters: every method of a model works in each, with identical results."""

import mmap
import os
import warnings
from dataclasses import fields, replace
from functools import cache
from operator import add

import numpy as np
import pytest
from sklearn.base import clone

import krein.data.storedrows
from krein import IKFD, IKQD, PCVM, KreinClassifier
from krein.compare.pairs import Counter
from krein.compare.workers import processors
from krein.core.moments import ClassMoments
from krein.data import open_data
from krein.data.engine import aligned
from krein.data.partitioned import PILOT
from krein.io import open_source
from krein.landmarks import Auto
from krein.measures import get_measure

from .conftest import equal_models, make_points, make_words

pytest.importorskip("distributed")
with warnings.catch_warnings():
    # pandas warns about a default that Dask has set already
    warnings.simplefilter("ignore", DeprecationWarning)
    import dask.array as da
    import dask.bag as db

from distributed import Client

N = 800
WORDS, LABELS = make_words(N)
GIVEN = np.arange(3, N, 37)
WEIGHTS = np.random.default_rng(0).integers(0, 4, N).astype(float)
WEIGHTS[GIVEN] += 1

# every second word again, every tenth of them with another label
MORE = np.concatenate([np.arange(N), np.arange(0, N, 2)])
COPIES = [WORDS[i] for i in MORE], LABELS[MORE]
COPIES[1][N::10] = "de"


@pytest.fixture(scope="module")
def client():
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as client:
        yield client


def in_memory(folder, words, labels, weights):
    return words, labels, weights


def in_a_file(folder, words, labels, weights):
    path = folder / f"words-{len(words)}-{words[0]}.csv"
    lines = [f"{word},{label}" for word, label in zip(words, labels, strict=True)]
    path.write_text("\n".join(["word,label", *lines]) + "\n", encoding="utf-8")
    return path, None, weights


def on_dask(folder, words, labels, weights):
    size = 90
    X = db.from_sequence(words, partition_size=size)
    held = None if weights is None else da.from_array(weights, chunks=(size,))
    return X, da.from_array(labels, chunks=(size,)), held


CASES = {
    "weights": lambda make: make("levenshtein", landmarks=GIVEN),
    "class weights": lambda make: make("levenshtein", landmarks=GIVEN, class_weight="balanced"),
    "calibration": lambda make: make("levenshtein", landmarks=GIVEN, calibrate=True),
    "sparsity": lambda make: make("levenshtein", landmarks=GIVEN, sparse=True),
}


@cache
def fit_here(make, what, copies=False):
    """Return a model fitted in memory, for all places that it is compared with."""
    words, labels = COPIES if copies else (WORDS, LABELS)
    weights = WEIGHTS if what == "weights" else None
    return CASES[what](make).fit(words, labels, sample_weight=weights)


@cache
def looks_here(features, copies):
    clf = KreinClassifier("levenshtein", landmarks=GIVEN, features=features)
    return clf.fit(*(COPIES if copies else (WORDS, LABELS)))


@pytest.mark.parametrize("place", [in_a_file, on_dask])
@pytest.mark.parametrize("features", ["auto", None])
@pytest.mark.parametrize("copies", [False, True])
def test_all_looks_match_memory(copies, features, place, client, tmp_path, small_sample):
    words, labels = COPIES if copies else (WORDS, LABELS)
    here = looks_here(features, copies)
    X, y, _ = place(tmp_path, words, labels, None)
    there = clone(here).fit(X, y)
    equal_models(here, there, WORDS[:200])
    np.testing.assert_array_equal(here.novelty(WORDS[:200]), there.novelty(WORDS[:200]))
    assert here.n_copies_ == there.n_copies_ >= (N // 2 - N // 20 if copies else 0)
    assert here.worth_ == there.worth_


CHOOSING = {
    "meb": IKFD("levenshtein", random_state=0),
    "kmeans": IKQD("levenshtein", landmarks="kmeans", n_landmarks=15, random_state=0),
    # the price ends the search at 20 landmarks; the default would at 292
    "auto": PCVM("levenshtein", landmarks=Auto(price=2e-2), random_state=0),
    "stratified": KreinClassifier("levenshtein", features=None),
}


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("clf", CHOOSING.values(), ids=CHOOSING)
def test_landmarks_are_chosen_from_one_sample_everywhere(
    clf, copies, client, tmp_path, small_sample
):
    words, labels = COPIES if copies else (WORDS, LABELS)
    here, file, cluster = (
        clone(clf).fit(*place(tmp_path, words, labels, None)[:2])
        for place in (in_memory, in_a_file, on_dask)
    )
    assert open_data(words, labels, measure=here.measure_).n_sampled == 500 < len(words)
    assert here.comparisons_to_fit_ == file.comparisons_to_fit_
    for there in (file, cluster):
        equal_models(here, there, WORDS[:200])


@pytest.mark.parametrize("rule", ["meb", "stratified"])
def test_a_memory_map_has_the_same_sample(rule, tmp_path, small_sample):
    X, y = make_points(900)
    np.save(tmp_path / "x.npy", X)
    clf = IKFD("elm", landmarks=rule, random_state=0)
    there = clone(clf).fit(np.load(tmp_path / "x.npy", mmap_mode="r"), y)
    equal_models(clf.fit(X, y), there, X)


def test_all_objects_may_be_landmarks_up_to_the_size_of_the_sample(small_sample):
    clf = IKFD("levenshtein", landmarks="all")
    assert len(clf.fit(WORDS[:500], LABELS[:500]).landmarks_) == 500
    with pytest.raises(ValueError, match=r"all pairs of 800 objects; .* or use at most 500"):
        clf.fit(WORDS, LABELS)


@pytest.mark.parametrize("place", [in_a_file, on_dask])
@pytest.mark.parametrize("make", [IKFD, IKQD, PCVM])
def test_copies_are_a_group_everywhere(make, place, client, tmp_path, small_sample):
    here = fit_here(make, "calibration", copies=True)
    X, y, _ = place(tmp_path, *COPIES, None)
    there = CASES["calibration"](make).fit(X, y)
    equal_models(here, there, WORDS[:200])
    assert here.temperature_ == there.temperature_


@pytest.mark.parametrize("place", [in_a_file, on_dask])
@pytest.mark.parametrize("what", CASES)
@pytest.mark.parametrize("make", [IKFD, IKQD, PCVM])
def test_results_match_memory(make, what, place, client, tmp_path, small_sample):
    if what == "sparsity" and make is not PCVM:
        pytest.skip("only PCVM drops basis objects")
    weights = WEIGHTS if what == "weights" else None
    here = fit_here(make, what)
    X, y, held = place(tmp_path, WORDS, LABELS, weights)
    there = CASES[what](make).fit(X, y, sample_weight=held)
    equal_models(here, there, WORDS[:200])
    assert here.temperature_ == there.temperature_
    assert (here.temperature_ != 1) == (what == "calibration")


@pytest.mark.parametrize("place", [in_a_file, on_dask])
@pytest.mark.parametrize("make", [IKFD, IKQD])
def test_a_stream_may_come_from_anywhere(make, place, client, tmp_path, small_sample):
    classes = np.unique(LABELS)
    here, there = (make("levenshtein", landmarks=GIVEN[:10]) for _ in range(2))
    for part in (slice(0, 600), slice(600, None)):
        chunk = WORDS[part], LABELS[part], WEIGHTS[part]
        here.partial_fit(chunk[0], chunk[1], classes=classes, sample_weight=chunk[2])
        X, y, held = place(tmp_path, *chunk)
        there.partial_fit(X, y, classes=classes, sample_weight=held)
    equal_models(here, there, WORDS[:200])
    assert here.n_samples_seen_ == there.n_samples_seen_ == N


@pytest.mark.parametrize("make", [IKFD, IKQD, PCVM])
def test_values_to_named_landmarks_are_enough(make, client, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_001, 3))  # more than are read into memory
    y = (X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0).astype(int)
    C = X @ X[:5].T
    path = tmp_path / "C.npy"
    np.save(path, C)

    def fit(values):
        return make("precomputed", landmarks=range(5)).fit(values, y)

    here = fit(C)
    assert here.score(C[:2000], y[:2000]) > 0.8
    for values in (
        open_source(path),
        path,
        np.load(path, mmap_mode="r"),
        da.from_array(C, chunks=(7000, 5)),
    ):
        equal_models(here, fit(values), C[:100])


def cost_of(chunk):
    return len(chunk), Counter(2 * len(chunk), len(chunk))


def test_a_pass_adds_its_cost_to_the_counter(client, tmp_path, small_sample):
    path, *_ = in_a_file(tmp_path, WORDS, LABELS, None)
    X, y, _ = on_dask(tmp_path, WORDS, LABELS, None)
    for args, extra in (((WORDS, LABELS), 0), ((path,), 0), ((X, y), PILOT)):
        counter = Counter(5)
        with open_data(*args, measure=get_measure("levenshtein")) as data:
            assert data.reduce(cost_of, add, 100, 2, counter) == N
        assert counter.compared == 5 + 2 * (N + extra)  # on a cluster, the pace is measured first
        assert counter.reused == N + extra


def test_systems_without_posix_calls_give_the_same_results(monkeypatch, tmp_path, small_sample):
    path, *_ = in_a_file(tmp_path, WORDS, LABELS, None)
    model = PCVM("levenshtein", landmarks=GIVEN, n_jobs=2).fit(path)
    for name in ("preadv", "pwritev", "pread", "pwrite", "sched_getaffinity"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.delattr(mmap, "MADV_DONTNEED", raising=False)
    reads = []
    read = krein.data.storedrows.FileRows.read

    def counted(self, *args):
        reads.append(args[:2])
        return read(self, *args)

    monkeypatch.setattr(krein.data.storedrows.FileRows, "read", counted)
    equal_models(model, PCVM("levenshtein", landmarks=GIVEN, n_jobs=2).fit(path), WORDS[:200])
    assert reads
    assert processors() >= 1
    points = np.random.default_rng(0).normal(size=(700, 2))
    np.save(tmp_path / "points.npy", points)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    labels = (points[:, 0] > 0).astype(int)
    a, b = (IKFD("elm", landmarks=range(8)).fit(X, labels) for X in (points, mapped))
    equal_models(a, b, points[:50])


def test_arrays_from_messages_are_aligned():
    def unaligned(values):
        room = np.zeros(values.nbytes + 1, dtype=np.uint8)
        found = room[1:].view(values.dtype).reshape(values.shape)
        found[...] = values
        assert not found.flags.aligned
        return found

    B = np.random.default_rng(0).normal(size=(50, 3))
    moments = ClassMoments.of(B, np.arange(50) % 2, 2, origin=np.zeros(3))
    sent = replace(
        moments, **{f.name: unaligned(getattr(moments, f.name)) for f in fields(moments)}
    )
    for item in (sent, [unaligned(B), unaligned(B)], unaligned(B), (sent, Counter(150))):
        found = aligned(item)
        value = found[0] if isinstance(found, tuple) else found
        parts = value if isinstance(value, list) else [value]
        if isinstance(value, ClassMoments):
            parts = [getattr(value, f.name) for f in fields(value)]
            np.testing.assert_array_equal(value.gram(), moments.gram())
        assert all(part.flags.aligned and part.flags.c_contiguous for part in parts)
    assert aligned(moments) is moments  # nothing is copied without need
    assert aligned(["a", "b"]) == ["a", "b"]
