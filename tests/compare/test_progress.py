"""The progress bar, on a real terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

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
from krein import PCVM
from krein.io import open_source

clf = PCVM("levenshtein", landmarks=np.arange(9), verbose={verbose})
clf.fit(open_source({path!r}, objects="word", labels="kind"))
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
    wait = f"import krein.compare.pairs as w; w.PATIENCE = {patience}"
    shown = on_a_terminal(wait + CODE.format(verbose=None))
    assert (b"comparing" in shown) == shows


@needs_terminal
@pytest.mark.parametrize("verbose", [0, 1])
def test_passes_over_a_file_are_counted(verbose, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "words.csv"
    letters = {"a": "abc", "b": "abd", "c": "abe"}
    with path.open("w") as file:
        file.write("word,kind\n")
        for k in range(21_000):  # more than are read into memory
            kind = "abc"[k % 3]
            file.write(f"{''.join(rng.choice(list(letters[kind]), 5))},{kind}\n")
    shown = on_a_terminal(FILE.format(verbose=verbose, path=str(path)))
    assert (b"searching" in shown and b" passes" in shown) == bool(verbose)
    if not verbose:
        assert shown == b""
