"""`krein fit` from files that are too large for memory, and on a cluster."""

import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import krein
import krein.data.dataset
from krein.cli import krein as command

from .conftest import equal_models, make_words
from .test_failure import SCHEDULER

WORDS, LABELS = make_words(900)


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.csv"
    lines = map(",".join, [("word", "label"), *zip(WORDS, LABELS, strict=True)])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(*arguments):
    found = CliRunner().invoke(command, [str(part) for part in arguments])
    return found.exit_code, found.output


def test_a_large_file_is_read_in_chunks(words, tmp_path, small_sample, monkeypatch):
    monkeypatch.setattr(krein.data.dataset, "IN_MEMORY_OBJECTS", 500)
    code, out = run("fit", words, "--no-calibrate", "--model", "ikfd", "-o", tmp_path / "m.krein")
    assert code == 0, out
    assert "more than 500 objects" in out
    assert "900 in 4 classes, read in chunks" in out
    there = krein.load(tmp_path / "m.krein")
    equal_models(krein.IKFD("levenshtein", random_state=0).fit(words), there, WORDS[:50])
    code, out = run("predict", tmp_path / "m.krein", words, "-o", tmp_path / "labels.csv")
    assert code == 0, out
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 901


def test_a_local_cluster_gives_the_same_model_as_this_process(words, tmp_path):
    pytest.importorskip("distributed")
    options = ("fit", words, "--no-calibrate", "--model", "ikfd")
    code, out = run(*options, "--cluster", "local", "-o", tmp_path / "there.krein")
    assert code == 0, out
    assert "watch them at http" in out
    code, out = run(*options, "-o", tmp_path / "here.krein")
    assert code == 0, out
    here, there = (krein.load(tmp_path / f"{name}.krein") for name in ("here", "there"))
    equal_models(here, there, WORDS)


def test_a_cluster_that_does_not_answer_is_reported(words, tmp_path, monkeypatch):
    dask = pytest.importorskip("krein.data.dask")
    monkeypatch.setitem(dask.connect.__kwdefaults__, "timeout", 0.5)
    code, out = run("fit", words, "--cluster", "tcp://127.0.0.1:1", "-o", tmp_path / "m.krein")
    assert code != 0
    assert "no Dask scheduler answers at tcp://127.0.0.1:1 within 0.5 s" in out
    np.save(tmp_path / "d.npy", np.zeros((4, 4)))
    (tmp_path / "labels.csv").write_text("a\na\nb\nb\n")
    code, out = run(
        "fit", tmp_path / "d.npy", "--labels", tmp_path / "labels.csv",
        "--cluster", "local", "-o", tmp_path / "m.krein",
    )  # fmt: skip
    assert code != 0
    assert "a matrix already contains the comparisons" in out


@pytest.mark.slow
def test_a_lost_scheduler_is_one_line(tmp_path):
    """Dask's own loggers would print tracebacks before it."""
    pytest.importorskip("distributed")
    rng = np.random.default_rng(0)
    letters = rng.choice(list("abcdefgh"), size=(20_000, 40))
    rows = "".join(f"{''.join(row)},{'xy'[i % 2]}\n" for i, row in enumerate(letters))
    (tmp_path / "words.csv").write_text("word,label\n" + rows)
    (tmp_path / "scheduler.py").write_text(SCHEDULER)
    scheduler = subprocess.Popen(
        [sys.executable, tmp_path / "scheduler.py"], stdin=-1, stdout=-1, stderr=-3, text=True
    )
    address = scheduler.stdout.readline().strip()
    many = ("--landmarks", "random", "--n-landmarks", "2000")
    fit = ("-m", "krein", "fit", "words.csv", "--model", "ikfd", *many, "-o", "m.krein")
    process = subprocess.Popen(
        [sys.executable, *fit, "--cluster", address], stdout=-1, stderr=-1, text=True, cwd=tmp_path
    )
    try:
        while not process.stdout.readline().startswith("cluster"):
            assert process.poll() is None
        time.sleep(3)
        scheduler.kill()
        _, err = process.communicate(timeout=120)
        assert process.returncode == 1
        assert err.startswith(f"krein: error: the connection to the Dask scheduler at {address}")
        assert err.count("\n") == 1
        assert not (tmp_path / "m.krein").exists()
    finally:
        for one in (process, scheduler):
            one.kill()
            one.communicate()
