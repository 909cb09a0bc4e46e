"""The harness: folds, data sets and rows, which the same seed reproduces."""

from dataclasses import replace

import numpy as np
import pytest

from krein import IKFD
from krein.core.space import double_centre
from paper.folds import TIMES, Plan, Unit, evaluate, measure, read, splits, write
from paper.methods import Fold, choose, solvers
from paper.sets import SOURCES, Data, available, fewer, prepare

PLAN = Plan(objects=60, folds=3, jobs=1, told="test")


@pytest.fixture
def ball(tmp_path):
    return prepare("ball", tmp_path, 60)


def plan(folder):
    return Plan(folder, PLAN.objects, PLAN.folds, 1, "test")


def test_folds_are_stratified_disjoint_and_the_same_every_time():
    y = np.repeat([0, 1, 2], [50, 30, 20])
    first, second = splits(y, 10), splits(y, 10)
    tests = np.sort(np.concatenate([test for _, test in first]))
    assert np.array_equal(tests, np.arange(100))
    for (train, test), (again, other) in zip(first, second, strict=True):
        assert np.array_equal(test, other)
        assert np.array_equal(train, again)
        assert not np.intersect1d(train, test).size
        assert np.bincount(y[test]).tolist() == [5, 3, 2]


def test_fewer_keeps_large_classes_in_equal_parts():
    y = np.repeat(np.arange(6), np.arange(25, 31))
    rows = fewer(y, 60)
    assert len(np.unique(rows)) == len(rows) == 60
    assert set(y[rows]) == {3, 4, 5}
    assert (np.bincount(y[rows])[3:] == 20).all()
    assert np.array_equal(fewer(y, 10_000), np.arange(len(y)))


def test_a_set_is_compared_once_and_identified_by_its_objects(tmp_path, monkeypatch):
    first = prepare("ball", tmp_path, 60)
    written = (first.folder / "values.npy").stat().st_mtime_ns
    assert prepare("ball", tmp_path, 60).folder == first.folder
    assert (first.folder / "values.npy").stat().st_mtime_ns == written
    assert prepare("ball", tmp_path, 40).folder != first.folder


def test_distances_have_median_one(ball):
    D = np.array(ball.values)
    assert np.median(D[np.triu_indices(len(D), 1)]) == pytest.approx(1)
    assert ball.measure == "precomputed-distance"


def test_similarities_of_distances_are_centred_on_the_training_objects(ball):
    train, test = splits(ball.y, 3)[0]
    D = np.array(ball.values)
    K = ball.similarities(train, train)
    assert np.allclose(K, double_centre(D[np.ix_(train, train)] ** 2))
    assert np.allclose(ball.similarities(train, train, train), K)
    # a new object's row does not depend on other new objects
    assert np.allclose(ball.similarities(test[:1], train), ball.similarities(test, train)[:1])


def test_rules_choose_as_many_landmarks_as_meb(tmp_path):
    data = prepare("checker", tmp_path, 200)
    fold = Fold(data, *splits(data.y, 3)[0])
    found = {
        rule: choose(f"ikfd:{rule}:ours", fold, 0)
        for rule in ("meb", "kmeans", "entropy", "random", "kmeans@C", "random@C")
    }
    m = len(found["meb"])
    assert [len(found[r]) for r in ("kmeans", "entropy", "random")] == [m, m, m]
    assert [len(found[r]) for r in ("kmeans@C", "random@C")] == [2, 2]


def test_all_solvers_have_the_same_landmarks_and_test_objects(ball):
    methods = [f"{f}:meb:{s}" for f in ("ikfd", "pcvm") for s in solvers(f, "meb")]
    rows = evaluate(ball, methods, 1, 3)
    assert [row["method"] for row in rows] == methods
    assert len({row["landmarks"] for row in rows}) == 1
    for row in rows:
        assert 0 <= row["accuracy"] <= 100
        assert row["log_loss"] >= 0


def test_evaluate_matches_the_estimator(ball):
    (row,) = evaluate(ball, ["ikfd:all:ours"], 0, 3)
    train, test = splits(ball.y, 3)[0]
    D = np.array(ball.values)
    clf = IKFD("precomputed-distance", landmarks="all").fit(D[np.ix_(train, train)], ball.y[train])
    assert row["accuracy"] == pytest.approx(100 * clf.score(D[np.ix_(test, train)], ball.y[test]))
    assert row["comparisons"] == len(train)


def test_rows_survive_a_round_trip(ball, tmp_path):
    rows = evaluate(ball, ["ikfd:meb:ours", "ikfd:meb:paper"], 0, 3)
    write(tmp_path / "rows.csv", rows)
    for written, row in zip(read(tmp_path / "rows.csv"), rows, strict=True):
        for field, value in row.items():
            assert written[field] == value
        assert set(written) >= set(row)
    assert read(tmp_path / "absent.csv") == []


UNITS = [
    Unit(name, method)
    for name in ("ball", "checker")
    for method in (
        "ikfd:meb:ours",
        "ikfd:kmeans:paper",
        "pcvm:meb:paper",
        "pcvm:entropy:ours",
        "knn",
    )
]


def plain(rows):
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]


def test_the_same_seed_gives_the_same_rows(tmp_path):
    first = measure(UNITS, plan(tmp_path / "one"))
    second = measure(UNITS, plan(tmp_path / "two"))
    write(tmp_path / "one.csv", plain(first))
    write(tmp_path / "two.csv", plain(second))
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert len(first) == len(UNITS) * 3


def test_a_run_resumes_where_it_stopped(tmp_path, monkeypatch):
    done = measure(UNITS[:2], plan(tmp_path))
    called = []
    monkeypatch.setattr(
        "paper.folds.evaluate",
        lambda data, methods, fold, n: (
            called.append((methods, fold)) or evaluate(data, methods, fold, n)
        ),
    )
    rows = measure(UNITS[:3], plan(tmp_path))
    assert called == [(["pcvm:meb:paper"], fold) for fold in range(3)]
    key = ("set", "method", "fold", "accuracy", *TIMES)
    assert [[row[k] for k in key] for row in rows[:6]] == [[row[k] for k in key] for row in done]


def test_kept_folds_are_gathered_and_none_measured(tmp_path):
    done = measure(UNITS[:1], plan(tmp_path))
    kept = replace(plan(tmp_path), kept=True)
    found = measure(UNITS[:3], kept)
    assert [row["accuracy"] for row in found] == [row["accuracy"] for row in done]


def test_fewer_folds_are_the_first_of_all(tmp_path):
    rows = measure([Unit("ball", "ikfd:meb:ours", folds=2)], plan(tmp_path))
    assert [row["fold"] for row in rows] == [0, 1]


def test_missing_sets_are_left_out(tmp_path, monkeypatch):
    monkeypatch.delenv("KREIN_DATA", raising=False)
    assert not available("protein")
    assert measure([Unit("protein", "ikfd:meb:ours")], plan(tmp_path)) == []
    assert all(available(name) for name, source in SOURCES.items() if not source.given)


def test_data_can_be_opened_from_disk(ball):
    again = Data(ball.name, ball.folder, ball.measure)
    assert np.array_equal(again.values, ball.values)
