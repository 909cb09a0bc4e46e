"""The progress bar, on a real terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import time
import numpy as np
from krein.blocks import open_pairs

pairs = open_pairs(lambda a, b: float(a * b), np.arange(60.0), verbose={verbose})
pairs.block_rows = lambda n_cols: 5
for _ in pairs.map_columns(lambda rows, values: time.sleep(0.05), np.arange(4)):
    pass
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("verbose", [0, 1])
def test_a_bar_on_a_terminal_where_asked(verbose):
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", CODE.format(verbose=verbose)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, stderr=theirs, stdout=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass  # the terminal is gone with the process
    os.close(ours)
    assert process.wait() == 0
    assert (b"comparing" in shown and b"pairs/s" in shown) == bool(verbose)
    if not verbose:
        assert shown == b""
