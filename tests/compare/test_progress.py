"""The progress bar, on a real terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from krein.compare import open_pairs, progress

CODE = """
import time
import numpy as np
from krein.compare import open_pairs

pairs = open_pairs(lambda a, b: float(a * b), np.arange(60.0), verbose={verbose})
pairs.block_rows = lambda n_cols: 5
for _ in pairs.map_columns(lambda rows, values: time.sleep(0.05), np.arange(4)):
    pass
"""


FILE = """
import numpy as np
import krein.data.dataset
import krein.data.opening
from krein import PCVM
from krein.io import open_source

krein.data.dataset.IN_MEMORY_OBJECTS = krein.data.opening.IN_MEMORY_OBJECTS = 500
for verbose in {verbose}:
    clf = PCVM("levenshtein", landmarks=np.arange(9), verbose=verbose)
    clf.fit(open_source({path!r}, objects="word", labels="kind"))
    print("fitted", flush=True)
"""


def on_a_terminal(code):
    """Return what a program writes if its standard error is a terminal."""
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=theirs, stdout=theirs, env=environment
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass  # the terminal closes with the process
    os.close(ours)
    assert process.wait() == 0
    return shown


needs_terminal = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")


@needs_terminal
@pytest.mark.parametrize("verbose", [0, 1])
def test_verbose_shows_a_bar_on_a_terminal(verbose):
    shown = on_a_terminal(CODE.format(verbose=verbose))
    assert (b"comparing" in shown and b"pairs/s" in shown) == bool(verbose)
    if not verbose:
        assert shown == b""


@needs_terminal
@pytest.mark.parametrize(("patience", "shows"), [(0.2, True), (600, False)])
def test_a_bar_appears_by_default_if_the_work_takes_long(patience, shows):
    wait = f"import krein.compare.progress as w; w.PATIENCE = {patience}"
    shown = on_a_terminal(wait + CODE.format(verbose=None))
    assert (b"comparing" in shown) == shows


STILL = """
import time
import numpy as np
import krein.compare.progress as progress
from krein.estimators import firstlook, lookzero
from krein import KreinClassifier

progress.PATIENCE = 0.1

def slowly(step):
    def run(*arguments):
        time.sleep(0.3)
        return step(*arguments)
    return run

firstlook.fit_heads = slowly(firstlook.fit_heads)
lookzero.fit_features = slowly(lookzero.fit_features)
X = np.random.default_rng(0).normal(size=(60, 2))
for verbose in (0, None):
    KreinClassifier("manhattan", n_landmarks=9, verbose=verbose).fit(X, X[:, 0] > 0)
    print("fitted", flush=True)
"""


@needs_terminal
def test_a_bar_appears_where_no_pair_is_compared():
    silent, shown, _ = on_a_terminal(STILL).split(b"fitted")
    for what in (b"learning from features", b"fitting models", b"0:00:00"):
        assert what not in silent
        assert what in shown


@pytest.mark.parametrize(("verbose", "long"), [(1, 1.0), (1, 60.0), (None, 1.0), (0, 1.0)])
def test_long_work_is_announced_where_there_is_no_terminal(verbose, long, monkeypatch, capsys):
    """Twelve blocks of 0.4 seconds; the pace is known a second after the first."""
    now = [0.0]

    def work(rows, values):
        now[0] += 0.4

    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(progress, "LONG_SECONDS", long)
    pairs = open_pairs(lambda a, b: float(a * b), np.arange(60.0), verbose=verbose)
    pairs.block_rows = lambda n_cols: 5
    for _ in pairs.map_columns(work, np.arange(4)):
        pass
    announced = verbose == 1 and long == 1.0
    assert capsys.readouterr().err == ("comparing 240 pairs: about 3 s\n" if announced else "")


@needs_terminal
def test_passes_over_a_file_are_counted(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "words.csv"
    kinds = np.arange(1000) % 3  # more than are read into memory
    letters = np.array([list("abc"), list("abd"), list("abe")])
    words = letters[kinds[:, None], rng.integers(3, size=(len(kinds), 5))]
    lines = [f"{''.join(word)},{'abc'[kind]}\n" for word, kind in zip(words, kinds, strict=True)]
    path.write_text("word,kind\n" + "".join(lines))
    silent, shown, _ = on_a_terminal(FILE.format(verbose=[0, 1], path=str(path))).split(b"fitted")
    assert silent == b""
    assert b"searching" in shown
    assert b" passes" in shown
