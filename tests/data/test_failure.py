"""What happens when a worker, the scheduler, the network or an object fails."""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

import krein.core.pcvm.rows
from krein import IKFD, PCVM
from krein.data import ObjectError

from .conftest import equal_models, make_words

pytest.importorskip("distributed")
import dask
import dask.bag as db
from distributed import Client, LocalCluster

from krein.data.collection import DaskCollection
from krein.data.dask import connect, connected
from krein.data.storedrows import EngineRows
from krein.measures import get_measure

pytestmark = pytest.mark.slow

N = 1200
WORDS, LABELS = make_words(N)
CHOSEN = np.arange(3, N, 12)
FATAL = WORDS[N // 2]


class Alike:
    """The number of letters that two words share; the first process to meet the fatal word dies.

    Records in `folder` how many pairs were compared.
    """

    def __init__(self, folder, fatal=None, poison=None):
        self.folder, self.fatal, self.poison = str(folder), fatal, poison

    def __call__(self, a, b):
        marker = os.path.join(self.folder, "killed")
        if a == self.fatal and not os.path.exists(marker):
            with open(marker, "x"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        if a == self.poison:
            raise RuntimeError("no such word")
        os.write(_counter(self.folder, os.getpid()), b"x")
        return float(len(set(a) & set(b)))


@lru_cache
def _counter(folder, process):
    path = os.path.join(folder, f"pairs-{process}")
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def compared(folder):
    return sum(file.stat().st_size for file in folder.glob("pairs-*"))


@pytest.fixture(scope="module")
def client():
    with cluster() as local, Client(local) as client:
        yield client


def cluster(n_workers=2):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


def bags(n=8):
    return db.from_sequence(WORDS, npartitions=n), db.from_sequence(LABELS.tolist(), npartitions=n)


@pytest.mark.parametrize("make", [IKFD, PCVM])
def test_a_killed_worker_changes_no_digit(make, client, tmp_path):
    there = make(Alike(tmp_path, fatal=FATAL), landmarks=CHOSEN).fit(*bags())
    assert (tmp_path / "killed").exists()
    here = make(Alike(tmp_path), landmarks=CHOSEN).fit(WORDS, LABELS)
    equal_models(here, there, WORDS[:40])


def test_a_worker_killed_between_passes_changes_no_digit(client, monkeypatch):
    """The values that it kept are computed again."""
    monkeypatch.setattr(krein.core.pcvm.rows, "BLOCK_BYTES", 1)  # 256 rows per block
    passes, victims = [], []

    def counted(self, term, own=EngineRows.sum):
        passes.append(term)
        if len(passes) == 20:
            block = self.blocks[0]
            (worker, *_) = client.who_has(block)[block.key]
            victims.append(client.run(os.getpid)[worker])
            os.kill(victims[0], signal.SIGKILL)
        return own(self, term)

    monkeypatch.setattr(EngineRows, "sum", counted)
    there = PCVM("levenshtein", landmarks=CHOSEN).fit(*bags())
    assert len(passes) > 30
    assert victims[0] not in client.run(os.getpid).values()
    equal_models(PCVM("levenshtein", landmarks=CHOSEN).fit(WORDS, LABELS), there, WORDS[:40])


def test_a_poisoned_object_is_named_and_stops_the_run(client, tmp_path):
    X, y = bags()
    clf = IKFD(Alike(tmp_path, poison=FATAL), landmarks=CHOSEN)
    place = r"partition 4, object 0, with landmark \d+ \(object \d+\)"
    with pytest.raises(
        ObjectError, match=rf"{place}: Alike raised RuntimeError: no such word"
    ) as caught:
        clf.fit(X, y)
    assert caught.value.row == N // 2
    assert caught.value.reason == "Alike raised RuntimeError: no such word"
    assert not hasattr(clf, "classes_")
    clf = IKFD(Alike(tmp_path), landmarks=CHOSEN).fit(X, y)  # the cluster still works
    lazy = IKFD(Alike(tmp_path, poison=FATAL), landmarks=CHOSEN)
    own = {*lazy.get_params(), "model_"}
    vars(lazy).update({k: v for k, v in vars(clf).items() if k not in own})
    measure = get_measure(lazy.measure, lazy.measure_params)
    lazy.model_ = replace(clf.model_, measure=measure)
    with pytest.raises(ObjectError, match=r"4, object 0, with landmark 0 \(object 3\): Alike"):
        lazy.predict(X).compute()
    assert not client.processing() or not any(client.processing().values())


def test_a_new_cluster_resumes_where_the_old_one_stopped(client, tmp_path):
    calls, kept = tmp_path / "calls", tmp_path / "kept"
    calls.mkdir()
    options = {"landmarks": CHOSEN, "cache": kept}
    with pytest.raises(ObjectError):
        IKFD(_Stopping(calls), **options).fit(*bags())
    before = compared(calls)
    assert before > 2 * 2**12
    (calls / "go on").touch()
    with cluster(1) as local, Client(local):
        there = IKFD(_Stopping(calls), **options).fit(*bags(3))
    total = N * len(CHOSEN)
    # plus what was under way when the first one stopped, and the core and the pilot of both
    assert compared(calls) < total + 4 * 2**12 + 2 * len(CHOSEN) ** 2 + 64 * len(CHOSEN)
    here = IKFD(_Stopping(calls), landmarks=CHOSEN).fit(WORDS, LABELS)
    equal_models(here, there, WORDS[:40])


def test_a_second_fit_on_a_cluster_compares_nothing(client, tmp_path):
    for kind in (IKFD, PCVM):
        kept = tmp_path / kind.__name__
        first = kind("levenshtein", landmarks=CHOSEN, cache=kept).fit(*bags())
        again = kind("levenshtein", landmarks=CHOSEN, cache=kept).fit(*bags())
        assert again.comparisons_to_fit_ == 0
        assert again.comparisons_reused_ == first.comparisons_to_fit_ + first.comparisons_reused_


class _Stopping(Alike):
    """Refuse the last word until a file says to go on; the function itself does not change."""

    def __call__(self, a, b):
        if a == WORDS[-1] and not os.path.exists(os.path.join(self.folder, "go on")):
            raise RuntimeError("not yet")
        return super().__call__(a, b)


def test_an_address_without_a_scheduler_is_reported_within_seconds():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    start = time.monotonic()
    with pytest.raises(ConnectionError, match=rf"no Dask scheduler answers at {address}"):
        connect(address, timeout=2)
    assert time.monotonic() - start < 10
    with pytest.raises(ValueError, match="such as tcp://host:8786; got 'nonsense'"):
        connect("nonsense")


SCHEDULER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp",
                           dashboard_address="127.0.0.1:0")
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


def test_a_lost_scheduler_is_reported_within_seconds(tmp_path, monkeypatch):
    script = tmp_path / "scheduler.py"
    script.write_text(SCHEDULER)
    elsewhere = subprocess.Popen(
        [sys.executable, str(script)], stdin=-1, stdout=-1, stderr=-3, text=True
    )
    try:
        address = elsewhere.stdout.readline().strip()
        other = connect(address, timeout=10)
        with other.as_current():
            clf = IKFD("levenshtein", landmarks=CHOSEN).fit(*bags(2))
            killed = []

            def die(*args, real=DaskCollection._pilot, **kwargs):
                elsewhere.kill()
                elsewhere.wait()
                killed.append(time.monotonic())
                return real(*args, **kwargs)

            monkeypatch.setattr(DaskCollection, "_pilot", die)
            for _ in range(2):  # as the scheduler is lost, and some time later
                with pytest.raises(ConnectionError, match=r"scheduler at .* is lost\. With cache="):
                    clf.fit(*bags(2))
        assert time.monotonic() - killed[0] < 15
        assert clf.predict(WORDS[:1])[0] in LABELS
        other.close(timeout=1)
    finally:
        elsewhere.kill()
        elsewhere.wait()
        elsewhere.stdin.close()
        elsewhere.stdout.close()


def test_a_cluster_without_workers_is_reported():
    with cluster(0) as local, Client(local), pytest.raises(ConnectionError, match="has no workers"):
        IKFD("levenshtein").fit(*bags())


class Fatal(Alike):
    """Kills every process that compares the fatal word, not only the first."""

    def __call__(self, a, b):
        if self.fatal in (a, b):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(a, b)


def test_an_object_that_crashes_its_worker_is_named(tmp_path):
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        cluster(1) as local,
        Client(local),
        pytest.raises(ObjectError, match="partition 4, object 0: crashes the process") as caught,
    ):
        PCVM(Fatal(tmp_path, fatal=FATAL), landmarks=CHOSEN).fit(*bags())
    assert caught.value.row == N // 2


class Slow(Alike):
    def __call__(self, a, b):
        time.sleep(0.001)
        return super().__call__(a, b)


def test_losing_the_last_worker_is_reported_and_ends_the_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("krein.data.dask.ALONE_SECONDS", 1.0)
    with cluster(1) as local, Client(local), dask.config.set({"krein.wait": 4}):
        leaving = threading.Timer(4, local.scale, (0,))
        leaving.start()
        with (
            pytest.warns(RuntimeWarning, match="no worker is left on the Dask cluster at tcp"),
            pytest.raises(ConnectionError, match=r"has had no worker for \d+ s; start some"),
        ):
            IKFD(Slow(tmp_path), landmarks=CHOSEN).fit(*bags())
        leaving.join()


def test_another_version_on_a_worker_is_reported_before_the_work_begins(client, monkeypatch):
    monkeypatch.setattr("krein.__version__", "9.9")
    with pytest.raises(
        RuntimeError, match=r"worker at tcp.* has krein .*, but this machine has 9\.9: inst"
    ):
        IKFD("levenshtein", landmarks=CHOSEN).fit(*bags())


def test_a_worker_without_krein_is_reported():
    with cluster(1) as local, Client(local) as own:
        own.run(lambda: sys.modules.update(krein=None))
        with pytest.raises(RuntimeError, match=r"worker at tcp.* has krein none \(ModuleNotFound"):
            IKFD("levenshtein", landmarks=CHOSEN).fit(*bags())


def test_a_connection_that_is_lost_while_tasks_are_sent_is_reported():
    """Dask then raises an error of its own, whose class has changed between versions."""
    client = SimpleNamespace(status="running", scheduler=SimpleNamespace(address="tcp://here:1"))
    with pytest.raises(KeyError), connected(client):
        raise KeyError("an error of the task itself")

    def close():
        client.status = "closed"
        raise RuntimeError("Client is closed")

    with pytest.raises(ConnectionError, match="tcp://here:1 is lost"), connected(client):
        close()
