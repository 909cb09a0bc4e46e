"""Fit and predict from files: the same results as in memory, with little memory."""

import os
import pickle
import subprocess
import sys
import tracemalloc
import warnings
from contextlib import closing

import numpy as np
import pytest
from sklearn.base import clone

import krein
import krein.core.pcvm.rows
import krein.data.dataset
from krein import IKFD, IKQD, PCVM
from krein.core.pcvm.rows import Rows
from krein.data import ObjectError
from krein.data.dataset import SAMPLED_PER_CLASS, FeatureBlock, uniform_keys
from krein.data.local import MappedFile, SourceFile
from krein.data.storedrows import FileRows
from krein.datasets import make_protein_families
from krein.io import DataError, open_source
from krein.landmarks import Random
from krein.measures import get_measure
from krein.measures.sequences import LettersWarning

from .conftest import equal_models, make_points, make_words

N = 900
CLASSIFIERS = [
    IKFD,
    IKQD,
    PCVM,
    lambda *a, **k: IKFD(*a, multiclass="ovr", class_weight="balanced", **k),
    lambda *a, **k: PCVM(*a, multiclass="ovr", class_weight="balanced", **k),
]
NAMES = ["IKFD", "IKQD", "PCVM", "IKFD ovr", "PCVM ovr"]


@pytest.fixture
def table(tmp_path):
    words, labels = make_words(N)
    lines = [f"{word},{label}" for word, label in zip(words, labels, strict=True)]
    path = tmp_path / "words.csv"
    path.write_text("\n".join(["word,label", *lines]) + "\n", encoding="utf-8")
    return path, words, labels


@pytest.mark.parametrize("make", CLASSIFIERS, ids=NAMES)
def test_a_file_gives_the_same_model_as_memory_with_the_same_landmarks(make, table, small_sample):
    path, words, labels = table
    chosen = np.arange(3, N, 37)
    in_memory = make("levenshtein", landmarks=chosen).fit(words, labels)
    from_file = make("levenshtein", landmarks=chosen).fit(path)
    equal_models(in_memory, from_file, words)
    assert from_file.comparisons_to_fit_ == in_memory.comparisons_to_fit_
    assert from_file.n_samples_seen_ == N


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
def test_passes_over_many_blocks_of_a_file(multiclass, n_jobs, table, small_sample, monkeypatch):
    """Blocks of 256 rows, the last one shorter, read in parallel into reused memory."""
    monkeypatch.setattr(krein.core.pcvm.rows, "BLOCK_BYTES", 1)
    path, words, labels = table
    options = {"landmarks": np.arange(3, N, 37), "multiclass": multiclass}
    in_memory = PCVM("levenshtein", **options).fit(words, labels)
    from_file = PCVM("levenshtein", n_jobs=n_jobs, **options).fit(path)
    equal_models(in_memory, from_file, words)
    np.testing.assert_array_equal(in_memory.eigenvalues_, from_file.eigenvalues_)
    assert in_memory.basis_function_ == from_file.basis_function_ != "-d²/2"


@pytest.mark.parametrize("function", ["similarity", "-d", "-√d"])
def test_features_replace_the_values(function, tmp_path):
    values = np.random.default_rng(0).uniform(1, 2, size=(1000, 7))
    codes = np.arange(1000) % 3
    with closing(FileRows(values.shape, 3, 2, tmp_path)) as file:
        file.append(FeatureBlock(values, codes, None, None))
        file.finish()
        everyone, recode = np.arange(1000), np.array([2, 0, 1])
        raw = file.recoded(recode, 3)
        kept = file.under(function).recoded(recode, 3).features(everyone)
        features = file.under(function, keep=False)
        in_memory = Rows(values, codes).under(function)
        np.testing.assert_array_equal(features.recoded(recode, 3).features(everyone), in_memory.F)
        np.testing.assert_array_equal(features.mean, in_memory.mean)
        np.testing.assert_array_equal(kept, in_memory.F)
        np.testing.assert_array_equal(file.y, codes)
        np.testing.assert_array_equal(raw.y, recode[codes])
        np.testing.assert_array_equal(raw.y, in_memory.recoded(recode, 3).y)
        with pytest.raises(RuntimeError, match="replaced by their features"):
            raw.features(everyone)


@pytest.mark.parametrize("make", [IKFD, PCVM])
def test_a_small_file_gives_the_same_model_as_memory(make, table):
    path, words, labels = table
    in_memory = make("levenshtein", random_state=3).fit(words, labels)
    equal_models(in_memory, make("levenshtein", random_state=3).fit(open_source(path)), words)


def test_every_format_gives_the_same_model(tmp_path, small_sample):
    for name in ("pyopal", "dnaio"):
        pytest.importorskip(name)
    parquet = pytest.importorskip("pyarrow.parquet")
    from pyarrow import table as columns

    rng = np.random.default_rng(0)
    sequences = ["".join(rng.choice(list("ACDEFGHIKL"), 30)) for _ in range(700)]
    labels = np.array(["x" if s.count("A") > 2 else "y" for s in sequences])
    fasta = tmp_path / "s.fasta"
    fasta.write_text("".join(f">s{i}|{labels[i]}\n{s}\n" for i, s in enumerate(sequences)))
    written = columns({"sequence": sequences, "label": labels.tolist()})
    parquet.write_table(written, tmp_path / "s.parquet")
    chosen = np.arange(0, 700, 20)
    in_memory = IKFD("smith-waterman", landmarks=chosen).fit(sequences, labels)
    for source in (
        open_source(fasta, label_pattern=r"\|(\w)"),
        open_source(tmp_path / "s.parquet"),
    ):
        found = IKFD("smith-waterman", landmarks=chosen).fit(source)
        equal_models(in_memory, found, sequences[:100])


@pytest.mark.parametrize("make", CLASSIFIERS[:3], ids=NAMES[:3])
def test_a_memory_map_gives_the_same_model_as_an_array(make, tmp_path, small_sample):
    X, y = make_points(4000)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    chosen = np.arange(0, 4000, 100)
    in_memory, from_file = (make("elm", landmarks=chosen).fit(Z, y) for Z in (X, mapped))
    equal_models(in_memory, from_file, X)
    np.testing.assert_array_equal(in_memory.predict(X), from_file.predict(mapped))


WEIGHTED = [
    IKFD("elm", landmarks=np.arange(1, 700, 20), calibrate=True),
    IKQD("elm", landmarks=np.arange(1, 700, 20), class_weight="balanced"),
    PCVM("elm", landmarks=np.arange(1, 700, 20), calibrate=True, class_weight={0: 2.0}),
]


@pytest.mark.parametrize("model", WEIGHTED, ids=lambda model: type(model).__name__)
def test_weights_go_with_objects_in_a_file(model, tmp_path, small_sample):
    X, y = make_points(700)
    np.save(tmp_path / "x.npy", X)
    mapped, source = np.load(tmp_path / "x.npy", mmap_mode="r"), open_source(tmp_path / "x.npy")
    weights = np.linspace(0.5, 1.5, 700)
    weights[::7] = 0
    in_memory = clone(model).fit(X, y, weights)
    for data in (mapped, source):
        found = clone(model).fit(data, y, weights)
        equal_models(in_memory, found, X)
        assert found.temperature_ == in_memory.temperature_
    unweighted = clone(model).fit(X, y).predict_proba(X)
    assert abs(unweighted - in_memory.predict_proba(X)).max() > 1e-4


@pytest.mark.filterwarnings("ignore:the published PCVM did not converge")
def test_basis_objects_beyond_the_landmarks_may_be_in_a_file(tmp_path, small_sample):
    X, y = make_points(700)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for options in ({"n_basis": 50}, {"solver": "paper"}):
        landmarks = np.arange(0, 700, 30)
        a, b = (
            PCVM("elm", landmarks=landmarks, random_state=0, **options).fit(Z, y)
            for Z in (X, mapped)
        )
        equal_models(a, b, X)


@pytest.mark.parametrize("make", [IKFD, IKQD, PCVM])
def test_values_to_landmarks_give_the_same_model_from_a_file(make, tmp_path, small_sample):
    X, y = make_points(700)
    landmarks = np.array([400, 5, 17, 600, 33])
    C = np.linalg.norm(X[:, None] - X[landmarks], axis=2)
    np.save(tmp_path / "C.npy", C)
    options = {"landmarks": landmarks, "calibrate": True}
    in_memory = make("precomputed-distance", **options).fit(C, y)
    from_file = make("precomputed-distance", **options).fit(open_source(tmp_path / "C.npy"), y)
    equal_models(in_memory, from_file, C)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    square = make("precomputed-distance", **options).fit(D, y)
    np.testing.assert_array_equal(in_memory.predict_proba(C), square.predict_proba(D))
    with pytest.raises(ValueError, match=r"N × m with landmarks= set to the m rows"):
        make("precomputed-distance", landmarks=[1, 2]).fit(C, y)
    with pytest.raises(ValueError, match=r"to the landmarks alone; got 700 × 3"):
        in_memory.predict(C[:, :3])


def test_a_square_matrix_may_be_in_a_file(tmp_path, small_sample):
    X, y = make_points(600)
    K = np.tanh(X @ X.T)
    np.save(tmp_path / "K.npy", K)
    source = open_source(tmp_path / "K.npy", format="matrix")
    landmarks = np.arange(5, 600, 30)
    in_memory = IKFD("precomputed", landmarks=landmarks).fit(K, y)
    equal_models(in_memory, IKFD("precomputed", landmarks=landmarks).fit(source, y), K)
    chosen = IKFD("precomputed", random_state=0).fit(source, y)
    assert set(y[chosen.landmarks_]) == set(y)
    equal_models(IKFD("precomputed", random_state=0).fit(K, y), chosen, K)


def test_labels_may_be_given_beside_a_source(tmp_path, small_sample):
    X, y = make_points(1200)
    np.save(tmp_path / "x.npy", X)
    source = open_source(tmp_path / "x.npy")
    chosen = np.arange(0, 1200, 50)
    equal_models(
        IKFD("elm", landmarks=chosen).fit(X, y), IKFD("elm", landmarks=chosen).fit(source, y), X
    )
    with pytest.raises(ValueError, match=r"x\.npy, row 1100: there are no more labels"):
        IKFD("elm", landmarks=chosen).fit(source, y[:1100])
    with pytest.raises(ValueError, match="1200 objects but 1300 labels"):
        IKFD("elm", landmarks=chosen).fit(source, np.resize(y, 1300))


def test_landmarks_are_chosen_from_a_sample_of_every_class(table, small_sample):
    path, words, labels = table
    clf = IKFD("levenshtein", random_state=0).fit(path)
    assert set(labels[clf.landmarks_]) == set(labels)
    assert [words[i] for i in clf.landmarks_] == list(clf.landmark_objects_)
    again = IKFD("levenshtein", random_state=0).fit(path)
    equal_models(clf, again, words[:50])
    assert clf.score(words, labels) > 0.7


def test_the_sample_does_not_depend_on_the_chunks(table, monkeypatch):
    monkeypatch.setattr(krein.data.dataset, "IN_MEMORY_OBJECTS", 300)
    path, _, labels = table
    found = []
    for size in (1, 97, 4096):
        measure = get_measure("levenshtein")
        data = SourceFile(open_source(path), measure=measure)
        data.chunks = lambda _, objects=True, own=data.chunks, size=size: own(size, objects=objects)
        rows = data.sample(seed=5)
        found.append((rows, data.take(rows, measure)[0]))
    rows, objects = found[0]
    for others, same in found[1:]:
        np.testing.assert_array_equal(rows, others)
        assert objects == same
    rare = labels == "rare"
    assert np.isin(np.flatnonzero(rare), rows).all()  # all of a small class
    assert rare.sum() < SAMPLED_PER_CLASS
    assert 300 < len(rows) < 300 + 4 * SAMPLED_PER_CLASS


def test_keys_are_uniform_and_depend_only_on_the_index():
    everyone = np.arange(100_000)
    keys = uniform_keys(7, everyone)
    np.testing.assert_array_equal(uniform_keys(7, everyone[1234:1284]), keys[1234:1284])
    assert abs(np.histogram(keys, 50, (0, 1))[0] - 2000).max() < 5 * np.sqrt(2000)
    assert abs(np.corrcoef(keys[:-1], keys[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(keys, uniform_keys(8, everyone))[0, 1]) < 0.02


def test_memory_does_not_grow_with_the_number_of_objects(tmp_path):
    def peak(n):
        path = tmp_path / f"{n}.npy"
        X, y = make_points(n)
        np.save(path, np.tile(X, 10))
        del X
        mapped = np.load(path, mmap_mode="r")
        rule = Random(50)
        tracemalloc.start()
        # one worker: with several, the peak depends on how many blocks happen to wait at once
        IKFD("elm", landmarks=rule, random_state=0, n_jobs=1).fit(mapped, y)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    small, large = peak(50_000), peak(400_000)
    assert large < 1.1 * small + 2**20  # only the codes of the labels may grow


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc here")


@needs_proc
def test_pages_that_were_read_do_not_stay_in_memory(tmp_path):
    X, y = make_points(30_000)
    np.save(tmp_path / "x.npy", np.tile(X, 20))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")

    def resident():
        """Return the bytes of files that are resident in the memory of this process."""
        with open("/proc/self/statm") as file:
            return int(file.read().split()[2]) * os.sysconf("SC_PAGE_SIZE")

    chunks = MappedFile(mapped, labels=y, measure=get_measure("elm")).chunks(1000)
    next(chunks)
    before = resident()
    for _ in chunks:
        pass
    assert resident() - before < mapped.nbytes / 2


LOOK_UP = """
import sys
import numpy as np
from krein.data.local import MappedFile
from krein.measures import get_measure

def peak():
    with open("/proc/self/status") as file:
        return 1024 * int(next(line for line in file if line.startswith("VmHWM")).split()[1])

mapped = np.load(sys.argv[1], mmap_mode="r")
before = peak()
elm = get_measure("elm")
data = MappedFile(mapped, labels=np.zeros(len(mapped)), measure=elm)
data.take(np.arange(0, len(mapped), 200), elm)
print((peak() - before) / mapped.nbytes)
"""


@needs_proc
def test_scattered_rows_do_not_load_the_whole_file(tmp_path):
    path = tmp_path / "x.npy"
    np.lib.format.open_memmap(path, "w+", np.float64, (1_500_000, 10))[:] = 1.0
    found = subprocess.run(
        [sys.executable, "-c", LOOK_UP, path], capture_output=True, text=True, check=True
    )
    assert float(found.stdout) < 0.5


def test_changes_in_a_private_map_are_read(tmp_path):
    X, y = make_points(100)
    np.save(tmp_path / "x.npy", X)
    private = np.load(tmp_path / "x.npy", mmap_mode="c")
    private[50] = 7.0
    for _ in range(2):
        data = MappedFile(private, labels=y, measure=get_measure("elm"))
        found = [chunk.objects for chunk in data.chunks(30)]
        np.testing.assert_array_equal(np.concatenate(found), private)
        assert (found[1][20] == 7.0).all()


def test_predictions_are_yielded_by_chunk(table, small_sample):
    path, words, labels = table
    clf = IKFD("levenshtein", landmarks=np.arange(40)).fit(words, labels)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        parts = getattr(clf, method)(path)
        assert not isinstance(parts, np.ndarray)
        np.testing.assert_array_equal(np.concatenate(list(parts)), getattr(clf, method)(words))
    with pytest.raises(ValueError, match="there is no such file"):
        clf.predict("nowhere.csv")


STATE = {"calls": 0, "poison": ""}  # global: what a function closes over is part of its identity


def compare(a, b):
    STATE["calls"] += 1
    if a == STATE["poison"]:
        raise RuntimeError("stop here")
    return float(len(set(a) & set(b)))


@pytest.mark.parametrize("make", [IKFD, PCVM])
def test_a_stopped_fit_resumes_where_it_stopped(make, table, tmp_path, small_sample):
    path, words, labels = table
    STATE.update(calls=0, poison=words[N - 1])
    chosen = np.arange(0, 400, 10)
    options = {"measure": compare, "landmarks": chosen, "cache": tmp_path / "kept"}
    with pytest.raises(ValueError, match=rf"words\.csv, line {N + 1}, .*stop here"):
        make(**options).fit(path)
    STATE.update(calls=0, poison="")
    clf = make(**options).fit(path)
    assert STATE["calls"] <= 2**12  # one block
    STATE.update(calls=0)
    plain = make(compare, landmarks=chosen).fit(words, labels)
    assert STATE["calls"] > 40 * N - 40**2
    equal_models(plain, clf, words[:30])


def test_an_invalid_object_is_named(small_sample):
    class Broken:
        path = "broken"

        def chunks(self, size):
            words, labels = make_words(2000)
            words[1700] = 5
            for i in range(0, 2000, size):
                part = words[i : i + size]
                yield krein.io.NamedObjects(
                    [f"n{j}" for j in range(i, i + len(part))],
                    part, labels[i : i + size].tolist(), i, "broken.csv", "strings",
                )  # fmt: skip

    named = r"broken\.csv, string 1700 \('n1700'\): this string is an integer \(5\)"
    for landmarks in (np.arange(30), [0, 1700]):  # refused in a block, and as a landmark
        with pytest.raises(ObjectError, match=named) as caught:
            IKFD("levenshtein", landmarks=landmarks).fit(Broken())
        error = pickle.loads(pickle.dumps(caught.value))  # as if a worker had raised it
        assert (error.row, error.kind) == (1700, "string")
        assert error.where == "broken.csv, string 1700 ('n1700')"
        assert str(error) == str(caught.value) == f"{error.where}: {error.reason}"


def test_an_invalid_row_of_a_memory_map_is_named(tmp_path, small_sample):
    X, y = make_points(700)
    clf = IKFD("elm", landmarks=np.arange(20)).fit(X, y)
    X[600, 1] = np.nan
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for call in (lambda: clf.predict(mapped), lambda: clone(clf).fit(mapped, y)):
        with pytest.raises(ObjectError, match=r"x\.npy, row 600: this vector") as caught:
            call()
        assert caught.value.row == 600


def test_impossible_fits_from_a_file_are_refused(table, small_sample):
    path, words, _ = table
    for clf, message in (
        (IKFD("levenshtein", landmarks="all"), "landmarks='all' compares all pairs of 900"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.fit(path)
    with pytest.raises(ValueError, match=r"line 901, .*: there are no more weights"):
        IKFD("levenshtein").fit(path, sample_weight=np.ones(N - 1))
    with pytest.raises(ValueError, match="no labels to learn from"):
        IKFD("levenshtein").fit(_unlabelled(path, words))


def _unlabelled(path, words):
    lines = path.with_name("lines.txt")
    lines.write_text("\n".join(words) + "\n", encoding="utf-8")
    return lines


def test_a_failed_fit_leaves_the_model_as_it_was(table, small_sample):
    path, words, labels = table
    clf = IKFD("levenshtein", landmarks=np.arange(40)).fit(words, labels)
    before = clf.predict_proba(words[:20])
    with pytest.raises(ValueError, match="no labels"):
        clf.fit(_unlabelled(path, words))
    np.testing.assert_array_equal(clf.predict_proba(words[:20]), before)


def test_chunks_can_be_files(table, small_sample):
    path, words, labels = table
    classes = np.unique(labels)
    chosen = np.arange(0, N, 40)
    one = IKFD("levenshtein", landmarks=chosen)
    one.partial_fit(path, classes=classes).partial_fit(path).partial_fit(words, labels)
    other = IKFD("levenshtein", landmarks=chosen)
    for _ in range(3):
        other.partial_fit(words, labels, classes=classes)
    np.testing.assert_allclose(one.predict_proba(words), other.predict_proba(words), atol=1e-10)
    assert one.n_samples_seen_ == other.n_samples_seen_ == 3 * N


def test_too_little_disk_space_is_reported_in_advance(monkeypatch, tmp_path, small_sample):
    X, y = make_points(1000)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("krein.data.storedrows.shutil.disk_usage", lambda place: usage)
    with pytest.raises(OSError, match="1,000 × 20 features need"):
        PCVM("elm", landmarks=np.arange(20)).fit(mapped, y)


def test_a_model_from_a_file_is_saved_and_read(table, tmp_path, small_sample):
    path, words, _ = table
    clf = IKFD("levenshtein", random_state=0).fit(path)
    clf.save(tmp_path / "m.krein")
    equal_models(clf, krein.load(tmp_path / "m.krein"), words[:50])


def test_unscored_letters_are_reported_once_for_all_chunks(tmp_path, monkeypatch):
    X, y = make_protein_families(40, n_families=2, random_state=0)
    sequences = [x[:9] + "U" + x[9:] + "-" * (i % 3) for i, x in enumerate(X)]
    path = tmp_path / "new.fasta"
    path.write_text(
        "".join(f">s{i} c={c}\n{s}\n" for i, (s, c) in enumerate(zip(sequences, y, strict=True)))
    )
    clf = IKFD("smith-waterman", random_state=0).fit(X, y)

    def told(function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            found = function()
        assert [warned.category for warned in caught] == [LettersWarning]
        return found, str(caught[0].message)

    monkeypatch.setattr("krein.data.opening.CHUNK", 7)
    found, message = told(lambda: list(clf.predict_proba(path)))
    assert len(found) == 6
    assert "some letters of these sequences are not scored" in message
    in_memory, message = told(lambda: clf.predict_proba(sequences))
    # BLAS may round blocks of seven rows differently
    np.testing.assert_allclose(np.concatenate(found), in_memory, rtol=1e-12)
    assert "in 40 of 40 sequences" in message
    monkeypatch.setattr("krein.data.opening.IN_MEMORY_OBJECTS", 20)  # read by chunk, several times
    source = open_source(path, label_pattern=r"c=(\d)")
    _, message = told(lambda: IKFD("smith-waterman", random_state=0).fit(source))
    assert "some letters" in message


def changes(path):
    """Yield ways to change a file: in place, and replaced by another of the same size."""
    content = path.read_bytes()

    def appended():
        path.write_bytes(content + content.splitlines(True)[-1])

    def replaced():
        other = path.with_name("other")
        other.write_bytes(content[::-1])
        os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
        os.replace(other, path)

    def overwritten():
        with open(path, "r+b") as file:
            file.write(b"W")
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))

    return [appended, replaced, overwritten]


@pytest.mark.parametrize("how", range(3), ids=["appended", "replaced", "overwritten"])
@pytest.mark.parametrize("suffix", [".csv", ".npy"])
def test_a_file_that_changes_between_two_passes_is_refused(how, suffix, table, tmp_path):
    path = table[0]
    if suffix == ".npy":
        path = tmp_path / "X.npy"
        np.save(path, np.random.default_rng(0).normal(size=(50, 3)))
    source = open_source(path)
    assert sum(len(chunk) for chunk in source.chunks(10)) == sum(
        len(chunk) for chunk in source.chunks(1000)
    )  # unchanged: any number of passes
    changes(path)[how]()
    with pytest.raises(DataError, match=f"{path.name}: has changed since it was opened"):
        list(source.chunks(10))


def test_a_file_that_changes_during_a_later_pass_is_refused(table):
    path = table[0]
    source = open_source(path)
    list(source.chunks(100))
    again = source.chunks(100)
    next(again)
    changes(path)[0]()
    with pytest.raises(DataError, match="has changed since it was opened"):
        list(again)


def test_a_fit_does_not_mix_two_versions_of_a_file(table, small_sample, monkeypatch):
    """The file is replaced after the landmarks have been chosen, by one with as many objects."""
    path, plain = table[0], SourceFile.take

    def take(self, *args):
        found = plain(self, *args)
        changes(path)[1]()
        return found

    monkeypatch.setattr(SourceFile, "take", take)
    with pytest.raises(DataError, match=r"words\.csv: has changed since it was opened"):
        IKFD("levenshtein").fit(path)
