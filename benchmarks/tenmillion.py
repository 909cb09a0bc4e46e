"""Ten million vectors from a memory map: one pass of IKFD, in constant memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from krein import IKFD

from .timing import alone, exponent, row

D, M = 10, 100
SIZES = [1_000_000, 10_000_000]
STEP = 500_000


def write(place: Path, n: int) -> None:
    """Write n points of three Gaussians in ten dimensions, and their classes, in chunks."""
    X = np.lib.format.open_memmap(place / f"{n}.npy", "w+", np.float64, (n, D))
    y = np.lib.format.open_memmap(place / f"{n}-y.npy", "w+", np.int8, (n,))
    for start in range(0, n, STEP):
        rng = np.random.default_rng([start, 0])
        codes = rng.integers(0, 3, min(STEP, n - start))
        y[start : start + STEP] = codes
        X[start : start + STEP] = rng.normal(size=(len(codes), D)) + np.eye(3, D)[codes] * 2


def fit(place: Path, n: int) -> int:
    X, y = (np.load(place / f"{n}{part}.npy", mmap_mode="r") for part in ("", "-y"))
    # in a child process, n_jobs=None would mean one thread
    model = IKFD("elm", landmarks="random", n_landmarks=M, n_jobs=-1, random_state=0).fit(X, y)
    return int(model.comparisons_to_fit_)


def run() -> list[dict]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        place = Path(name)
        found = []
        for n in SIZES:
            alone(write, place, n)
            found.append(alone(fit, place, n))
        empty = alone(_nothing)
    times = [one.seconds for one in found]
    return [
        row(
            "10⁷ vectors from a memory map, m = 100: peak resident memory",
            found[1].resident / 2**30,
            "under 1",
            f"{times[1]:.1f} s, {found[1].result:,} pairs; the file has "
            f"{8e-9 * SIZES[1] * D:.1f} GB; at 10⁶ {found[0].resident / 2**30:.2f} GB; "
            f"a process that has imported krein {empty.resident / 2**30:.2f} GB",
            unit="GB",
        ),
        row(
            "exponent in N from 10⁶ to 10⁷",
            exponent(SIZES, times),
            "about 1",
            f"{times[0]:.2f} s and {times[1]:.2f} s",
            unit="",
        ),
    ]


def _nothing() -> None:
    IKFD("elm")
