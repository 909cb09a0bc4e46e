"""Fit and predict on a Dask cluster: the same numbers as on one machine."""

import logging
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from krein import IKFD, IKQD, PCVM
from krein.compare.pairs import Counter
from krein.core.moments import FAN
from krein.core.pcvm.rows import rows_per_block
from krein.core.space import LandmarkSpace
from krein.estimators.fitting import values_of

from .conftest import equal_models, make_points, make_words

pytest.importorskip("distributed")
with warnings.catch_warnings():
    # pandas warns about the change of a default that Dask already sets
    warnings.simplefilter("ignore", DeprecationWarning)
    import dask
    import dask.array as da
    import dask.bag as db
    import dask.dataframe as dd
    import pandas as pd

from distributed import Client, LocalCluster

from krein.data.chunks import Chunk, LandmarkColumns, where_in_runs, where_numbered
from krein.data.collection import DaskCollection, spread
from krein.data.partitioned import (
    FEATURE_BYTES,
    LONGEST_SECONDS,
    SCHEDULING_SECONDS,
    count_tasks,
    rows_per_task,
    rows_to_keep,
)
from krein.io import open_source
from krein.measures import get_measure
from krein.measures.precomputed import PrecomputedColumns

N = 900
WORDS, LABELS = make_words(N)
CHOSEN = np.arange(3, N, 37)


def weighed(*args, **kwargs):
    return PCVM(*args, class_weight="balanced", **kwargs)


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def bag(items, n):
    return db.from_sequence(list(items), npartitions=n)


@pytest.mark.parametrize("make", [IKFD, IKQD, weighed])
def test_a_bag_gives_the_same_model_as_memory(make, client):
    in_memory = make("levenshtein", landmarks=CHOSEN).fit(WORDS, LABELS)
    there = make("levenshtein", landmarks=CHOSEN).fit(bag(WORDS, 7), bag(LABELS.tolist(), 7))
    equal_models(in_memory, there, WORDS)


@pytest.mark.parametrize("make", [IKFD, PCVM])
def test_a_series_gives_the_same_landmarks_and_model_as_memory(make, client):
    in_memory = make("levenshtein", random_state=0).fit(WORDS, LABELS)
    X, y = (dd.from_pandas(pd.Series(part), npartitions=4) for part in (WORDS, LABELS))
    equal_models(in_memory, make("levenshtein", random_state=0).fit(X, y), WORDS)


def test_labels_are_matched_by_their_index(client):
    """In pandas and Dask, the order of rows says nothing if there is an index."""
    rng = np.random.default_rng(0)
    index = rng.permutation(10 * len(WORDS))[: len(WORDS)]
    parts = np.array_split(np.arange(len(WORDS)), 4)
    orders = [rng.permutation(part) for part in parts]
    words, labels = pd.Series(WORDS, index=index), pd.Series(LABELS, index=index)
    weights = pd.Series(rng.uniform(0.5, 1.5, len(WORDS)), index=index)

    def lazy(series, orders):
        pieces = [dask.delayed(series.iloc[order]) for order in orders]
        return dd.from_delayed(pieces, meta=series.iloc[:0])

    X = lazy(words, parts)
    in_memory = IKFD("levenshtein", landmarks=CHOSEN).fit(WORDS, LABELS, weights.to_numpy())
    shuffled = labels.iloc[np.concatenate(orders)]
    for y in (lazy(labels, orders), shuffled):
        there = IKFD("levenshtein", landmarks=CHOSEN)
        there.fit(X, y, sample_weight=lazy(weights, orders))
        equal_models(in_memory, there, WORDS)
    by_position = IKFD("levenshtein", landmarks=CHOSEN)
    by_position.fit(X, labels.to_numpy(), sample_weight=lazy(weights, orders))
    equal_models(in_memory, by_position, WORDS)
    other = labels.set_axis(np.arange(len(WORDS)) + 10**6)
    for y in (other, lazy(other, parts), lazy(labels, parts[::-1])):
        with pytest.raises(ValueError, match="X and y have different indices"):
            IKFD("levenshtein", landmarks=CHOSEN).fit(X, y)


@pytest.mark.parametrize("make", [IKFD, PCVM])
def test_an_array_of_vectors_gives_the_same_model_as_memory(make, client):
    X, y = make_points(5000)
    in_memory = make("elm", random_state=0).fit(X, y)
    there = make("elm", random_state=0).fit(da.from_array(X, chunks=(1234, 1)), y)
    equal_models(in_memory, there, X)


def test_the_same_basis_functions_are_chosen(client):
    there = PCVM("levenshtein", landmarks=CHOSEN).fit(bag(WORDS, 7), LABELS)
    in_memory = PCVM("levenshtein", landmarks=CHOSEN).fit(WORDS, LABELS)
    assert in_memory.basis_function_ == there.basis_function_ != "-d²/2"
    equal_models(in_memory, there, WORDS)


@pytest.mark.parametrize("make", [IKFD, IKQD, weighed])
@pytest.mark.parametrize("many", [True, False])
def test_a_bag_gives_the_same_temperature_as_memory(make, many, client, request):
    if many:
        request.getfixturevalue("small_sample")
    options = {"landmarks": CHOSEN, "calibrate": True}
    there = make("levenshtein", **options).fit(bag(WORDS, 7), LABELS)
    in_memory = make("levenshtein", **options).fit(WORDS, LABELS)
    assert there.temperature_ == in_memory.temperature_ != 1
    equal_models(in_memory, there, WORDS)


def test_kept_blocks_are_released(client):
    X, y = make_points(900)
    D = np.linalg.norm(X[:, None] - X[None, ::30], axis=2)
    space = LandmarkSpace.of(D[::30], "dissimilarity")
    given, none = get_measure("precomputed-distance"), np.empty(0, dtype=np.intp)
    columns = LandmarkColumns(
        given, PrecomputedColumns(np.arange(30), 30), np.arange(0, 900, 30), none, D[:0]
    )
    term = partial(values_of, columns, space, space.origin(), np.array([0, 1]), None)
    with DaskCollection(da.from_array(D, chunks=(300, 30)), y) as data:
        kept, _ = data.keep(term, 30, 300, Counter())
        other = kept.under("-d")
        np.testing.assert_allclose(other.mean, -D.mean(axis=0))
        kept.close()
        assert other.blocks == []


def test_more_objects_than_the_sample(client, small_sample, tmp_path):
    path = tmp_path / "words.csv"
    lines = map(",".join, [("word", "label"), *zip(WORDS, LABELS, strict=True)])
    path.write_text("\n".join(lines), encoding="utf-8")
    from_file = IKFD("levenshtein", random_state=0).fit(path)
    there = IKFD("levenshtein", random_state=0).fit(bag(WORDS, 5), LABELS)
    equal_models(from_file, there, WORDS)


@pytest.mark.parametrize("rule", ["meb", "stratified"])
def test_a_sample_of_a_matrix(rule, client, small_sample):
    X, y = make_points(700)
    K = np.tanh(X @ X.T)
    there = IKFD("precomputed", landmarks=rule, random_state=0)
    here = clone(there).fit(K, y)
    equal_models(here, there.fit(da.from_array(K, chunks=(250, 100)), y), K)


def test_precomputed_values(client):
    X, y = make_points(600)
    K = np.tanh(X @ X.T)
    lazy = da.from_array(K, chunks=(250, 100))
    landmarks = np.arange(5, 600, 30)
    in_memory = IKFD("precomputed", landmarks=landmarks).fit(K, y)
    equal_models(in_memory, IKFD("precomputed", landmarks=landmarks).fit(lazy, y), K)
    columns = da.from_array(K[:, landmarks], chunks=(250, 5))
    found = IKFD("precomputed", landmarks=landmarks).fit(columns, y)
    equal_models(in_memory, found, K[:, landmarks])
    np.testing.assert_array_equal(found.predict(columns).compute(), in_memory.predict(K))
    sure = IKFD("precomputed", landmarks=landmarks, calibrate=True)
    assert sure.fit(columns, y).temperature_ == sure.fit(K, y).temperature_ != 1
    rule = IKFD("precomputed", random_state=0).fit(lazy, y)
    equal_models(IKFD("precomputed", random_state=0).fit(K, y), rule, K)
    with pytest.raises(ValueError, match="N × m with landmarks= set to the m rows"):
        IKFD("precomputed").fit(columns, y)
    K[7, landmarks[2]] = np.nan
    named = r"partition 0, object 7, with landmark 2 \(object 65\): the value is nan"
    with pytest.raises(ValueError, match=named):
        IKFD("precomputed", landmarks=landmarks).fit(
            da.from_array(K[:, landmarks], chunks=(250, 5)), y
        )


def test_a_file_is_spread_over_all_workers(client, tmp_path):
    path = tmp_path / "words.csv"
    lines = map(",".join, [("word", "label"), *zip(WORDS, LABELS, strict=True)])
    path.write_text("\n".join(lines), encoding="utf-8")
    X, y = spread(open_source(path), client, size=100)
    assert X.npartitions == y.npartitions == 9
    assert X.compute() == WORDS
    held = client.has_what()
    shares = [sum("hand_out" in str(key) for key in keys) for keys in held.values()]
    assert len(shares) == 2
    assert min(shares) >= 7  # of 18


def test_predictions_are_lazy_and_the_same(client):
    X, y = make_points(1000)
    clf = IKFD("elm", random_state=0).fit(X, y)
    lazy = da.from_array(X, chunks=(300, 2))
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        found, expected = getattr(clf, method)(lazy), getattr(clf, method)(X)
        assert isinstance(found, da.Array)
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.compute(), expected)
    words = IKFD("levenshtein", random_state=0).fit(WORDS, LABELS)
    some = bag(WORDS[:100], 3).filter(lambda word: word.startswith("a"))  # partitions may be empty
    expected = words.rank_labels([word for word in WORDS[:100] if word.startswith("a")])
    np.testing.assert_array_equal(words.rank_labels(some).compute(), expected)


def test_chunks_of_a_stream_may_be_on_the_cluster(client):
    classes = np.unique(LABELS)
    here, there = (IKFD("levenshtein", landmarks=np.arange(0, 500, 9)) for _ in range(2))
    for i in range(0, N, 500):
        words, labels = WORDS[i : i + 500], LABELS[i : i + 500]
        here.partial_fit(words, labels, classes=classes)
        there.partial_fit(bag(words, 3), bag(labels.tolist(), 3), classes=classes)
    equal_models(here, there, WORDS)


def test_partitions_of_any_size_give_the_same_digits(client):
    fits = [
        IKFD("levenshtein", landmarks=CHOSEN).fit(
            bag(WORDS, n).filter(bool), bag(LABELS.tolist(), n)
        )
        for n in (1, 60)
    ]
    np.testing.assert_array_equal(fits[0].dual_coef_, fits[1].dual_coef_)


def test_landmarks_are_sent_to_a_worker_once(client, tmp_path):
    class Told(str):
        """A string that records in which process it was unpickled."""

        __slots__ = ()

        def __reduce__(self):
            return _unpacked, (str(self), str(tmp_path))

    words = [Told(word) for word in WORDS]
    data = bag(WORDS, 12)
    clf = IKFD(_common, landmarks=CHOSEN).fit(words, LABELS)
    for file in tmp_path.iterdir():
        file.unlink()
    # the landmarks from the fit in memory are sent to the workers with the second chunk
    clf.partial_fit(data, LABELS, classes=clf.classes_)
    counts = [len(file.read_text()) for file in tmp_path.iterdir()]
    assert 1 <= len(counts) <= 3  # the workers, and the client when it measures the pace
    # each process unpickles the term once, not once for each of some 16 tasks
    assert max(counts) <= 3 * len(CHOSEN)


def _unpacked(word, folder):
    import os

    with open(f"{folder}/{os.getpid()}", "a") as file:
        file.write("x")
    return word


def _common(a, b):
    return float(len(set(a) & set(b)))


def test_tasks_take_seconds(client):
    data = DaskCollection(da.zeros((10_000_000, 2), chunks=(100_000, 2)), np.zeros(10_000_000))
    grid = 2621
    for pace in (1e-6, 1e-5, 1e-4, 1e-3):
        step = rows_per_task(10_000_000, pace, grid, 100, data.engine.threads)
        assert step % grid == 0
        assert step * pace < 8
        assert step * pace > 0.5 or 100_000 / 3 < step < 3 * 100_000  # as long as a partition
        cuts = data.cuts(step)
        covered = [(p * 100_000 + a, p * 100_000 + b) for cut in cuts for p, a, b in cut]
        assert covered[0][0] == 0
        assert covered[-1][1] == 10_000_000
        assert all(a[1] == b[0] for a, b in pairwise(covered))
    assert rows_per_task(10_000_000, 1.0, grid, 100, 2) == grid
    assert rows_per_task(30_000, 1e-3, grid, 3, 2) == grid  # every worker has something to do
    # unless scheduling would take longer than the work
    assert rows_per_task(30_000, 1e-6, grid, 3, 2) >= 8 * grid


@pytest.mark.parametrize("work", [0.01, 1.0, 100.0, 1e5])
@pytest.mark.parametrize("threads", [1, 2, 16, 128, 1024, 10_000])
def test_the_number_of_tasks_is_nearly_optimal(work, threads):
    def wall(tasks):
        return work / min(tasks, threads) + SCHEDULING_SECONDS * tasks

    tasks = count_tasks(work, threads)
    best = min(wall(n) for n in np.geomspace(1, 1e6, 500))
    # short tasks, several per thread, balance the load, which `wall` does not model
    assert wall(tasks) <= 2.2 * best
    assert tasks <= max(8 * threads, work / 2)
    assert tasks >= min(threads, np.sqrt(work / SCHEDULING_SECONDS) / 1.01)
    assert count_tasks(0.0, threads) == 8 * threads  # of unknown duration


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 10**8), st.integers(1, 5000), st.floats(0, 10), st.integers(1, 2000))
def test_kept_blocks_are_whole_branches_and_not_too_large(N, m, seconds, threads):
    rows, least = rows_to_keep(N, seconds, m, threads), rows_per_block(m)
    assert rows // least in [FAN**k for k in range(9)]
    assert rows % least == 0
    if rows > least:
        assert 8 * m * rows <= FEATURE_BYTES
        assert seconds * rows <= LONGEST_SECONDS
        assert rows < FAN * N


def test_blocks_of_a_chunk_know_where_their_objects_come_from():
    runs = [(partial(where_numbered, "x", 5), 3), (partial(where_numbered, "y", 0), 5)]
    chunk = Chunk(40, list("abcdefgh"), provenance=partial(where_in_runs, runs))
    blocks = list(chunk.blocks(3))
    assert [block.start for block in blocks] == [40, 43, 46]
    found = [block.where(i) for block in blocks for i in range(len(block))]
    assert found == ["x 5", "x 6", "x 7", "y 0", "y 1", "y 2", "y 3", "y 4"]


def test_labels_that_do_not_fit_are_refused(client):
    X = bag(WORDS, 3)
    with pytest.raises(ValueError, match="a Dask collection X needs labels y"):
        IKFD("levenshtein").fit(X)
    with pytest.raises(ValueError, match="900 objects but 899 labels"):
        IKFD("levenshtein").fit(X, LABELS[:-1])
    with pytest.raises(ValueError, match="X has 3 partitions and labels have 4"):
        IKFD("levenshtein").fit(X, bag(LABELS.tolist(), 4))
    with pytest.raises(ValueError, match=r"partition \d: \d+ objects .*, but 300 were found"):
        IKFD("levenshtein").fit(X, db.concat([bag(LABELS[:600].tolist(), 1), bag(LABELS[600:], 2)]))


def test_without_a_cluster_dask_uses_threads():
    X, y = make_points(900)
    lazy = da.from_array(X, chunks=(300, 2))
    with warnings.catch_warnings():
        # the loop of a cluster that is closing may still hold a socket
        warnings.simplefilter("ignore", ResourceWarning)
        there = IKFD("elm", random_state=0).fit(lazy, y)
    equal_models(IKFD("elm", random_state=0).fit(X, y), there, X)
