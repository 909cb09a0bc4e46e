"""A process that fills a cache folder; the tests of the cache kill it.

    python worker.py FOLDER OUT [DEATH]

Compares 60 words with 12 of them in blocks of 5 rows and writes values and counts to OUT. With
DEATH = k the process kills itself with SIGKILL right before its k-th disk operation.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time

import numpy as np

from krein.compare import Pairs, open_pairs

WORDS = ["".join(w) for w in np.random.default_rng(0).choice(list("abcdef"), (60, 6))]
COLS = np.arange(0, 60, 5)
PAUSE = float(os.environ.get("PAUSE", "0"))


def compare(a: str, b: str) -> float:
    time.sleep(PAUSE)
    return float(sum(x == y for x, y in zip(a, b, strict=True))) / 7


def die_at(step: int) -> None:
    """Kill the process before its `step`-th call of a function that accesses the disk."""
    steps = itertools.count(1)
    for name in ("fsync", "replace", "link"):
        real = getattr(os, name)

        def deadly(*args, real=real, **kwargs):
            if next(steps) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        setattr(os, name, deadly)


def run(folder: str | None) -> tuple[np.ndarray, Pairs]:
    pairs = open_pairs(compare, WORDS, cache=folder)
    pairs.counter.compared = 0  # leave out the pairs tested for symmetry
    pairs.block_rows = lambda n_cols: 5
    values = np.vstack(list(pairs.map_columns(lambda rows, values: values, COLS)))
    return values, pairs


if __name__ == "__main__":
    if len(sys.argv) > 3:
        die_at(int(sys.argv[3]))
    values, pairs = run(sys.argv[1])
    np.savez(sys.argv[2], values=values, counts=[pairs.evaluations, pairs.counter.reused])
