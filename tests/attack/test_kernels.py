"""Compiled code stays within its buffers, whatever the lengths of the series."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from krein.measures import get_measure

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_kernels_stay_within_their_buffers(tmp_path):
    # a separate cache, because code with and without the checks would be cached under one name
    environment = {
        **os.environ,
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "NUMBA_OPT": "0",  # compiles in half the time, with the same checks
    }
    found = subprocess.run(
        [sys.executable, "-m", "tests.attack.kernels"],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.count("stays within bounds") == 6
    assert "convolutions stay within bounds" in found.stdout


@pytest.mark.parametrize("name", ["dtw", "erp", "msm", "numeric-edit"])
def test_empty_series_are_refused_before_any_kernel(name):
    measure = get_measure(name)
    with pytest.raises(ValueError, match="series 1 is empty"):
        measure.check([[1.0, 2.0], []])
    with pytest.raises(ValueError, match="empty"):
        measure.check(np.empty((3, 0)))
