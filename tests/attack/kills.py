"""Kill cached fits and predictions at random moments, and check the result of the next run.

    python -m tests.attack.kills --kills 100

After every few kills the same command runs to completion. Its model must equal that of an
uninterrupted run, array by array; every cached value must be reused; and no half-written file may
be left in any folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from .fuzz import _child, warm_up

IN_A_ROW = 3
"""Number of attempts to kill a run before one is left to finish."""
COUNTED = {"comparisons_to_fit_", "comparisons_reused_"}
"""Attributes that may differ after a resumed run."""


def run(command: list[str], folder: Path, kill_after: float | None = None) -> bool:
    """Run a command in a child; return whether it was killed before its end."""
    child = os.fork()
    if child == 0:
        _child(command, folder / "said", folder / "printed")
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)  # not waited for yet, so its process id is still its own
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.waitstatus_to_exitcode(status) != 0:
        raise AssertionError((folder / "said").read_text("utf-8", "replace"))
    return False


def kept_values(cache: Path) -> int:
    """Return the number of values in the finished blocks of a cache."""
    total = 0
    for block in cache.glob("blocks/*.npy"):
        with open(block, "rb") as file:
            total += int(np.load(file).size)
    return total


def left_behind(folder: Path) -> list[str]:
    """Return the names of half-written files in the folder and below."""
    return [p.name for p in folder.rglob(".*") if p.name.startswith((".krein-", ".writing-"))]


def same_model(path: Path, truth: Path) -> bool:
    """Whether two model files are equal, apart from the number of pairs compared."""
    from krein.io.modelfile import read_model

    a, b = read_model(path), read_model(truth)
    for tree in (a, b):
        for name in COUNTED:
            tree["fitted"].pop(name)
    return equal(a, b)


def equal(a: Any, b: Any) -> bool:
    """Whether two trees are the same, bit for bit."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return bool(a == b)


def write_texts(path: Path, n: int, seed: int, labels: bool) -> None:
    """Write strings in two made-up languages."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        letters = list("abcdefgh" if i % 2 else "efghijkl")
        text = "".join(rng.choice(letters, int(rng.integers(60, 200))))
        rows.append(f"{text},{'first' if i % 2 else 'second'}" if labels else text)
    path.write_text("text,language\n" * labels + "".join(f"{row}\n" for row in rows))


def kill(kills: int, seed: int = 0, n: int = 240) -> Counter[str]:
    """Kill each command this many times; return the counts, or raise if a check fails."""
    rng, counts = np.random.default_rng(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_texts(folder / "texts.csv", n, 0, labels=True)
        write_texts(folder / "new.txt", n, 1, labels=False)
        warm_up()
        truth, cache, model = folder / "truth.krein", folder / "cache", folder / "model.krein"
        fit = ["fit", str(folder / "texts.csv"), "--objects", "text", "--labels", "language",
               "--measure", "compression", "--measure-param", "compressor=zlib", "--model",
               "ikfd", "--landmarks", "all", "--jobs", "2", "--force", "--cache", str(cache),
               "-o"]  # fmt: skip
        start = time.perf_counter()
        run([*fit, str(truth)], folder)
        seconds = time.perf_counter() - start
        _killed_fits(kills, rng, seconds, [*fit, str(model)], folder, counts)
        predict = ["predict", str(truth), str(folder / "new.txt"), "--jobs", "2", "-o"]
        start = time.perf_counter()
        run([*predict, str(folder / "truth.csv")], folder)
        seconds = time.perf_counter() - start
        _killed_predictions(kills, rng, seconds, predict, folder, counts)
    return counts


def _killed_fits(
    kills: int,
    rng: np.random.Generator,
    seconds: float,
    command: list[str],
    folder: Path,
    counts: Counter[str],
) -> None:
    import krein

    truth, cache, model = folder / "truth.krein", folder / "cache", folder / "model.krein"
    reference = krein.load(truth)
    total = reference.comparisons_to_fit_ + reference.comparisons_reused_
    while counts["fits killed"] < kills:
        shutil.rmtree(cache, ignore_errors=True)
        model.unlink(missing_ok=True)
        for _ in range(IN_A_ROW):
            if run(command, folder, float(rng.uniform(0.05, 1.05)) * seconds):
                counts["fits killed"] += 1
                counts["half-written files after a kill"] += len(left_behind(folder))
                assert not model.exists() or same_model(model, truth), "half a model"
            else:
                counts["fits that ended before their kill"] += 1
        kept = kept_values(cache)
        run(command, folder)
        again = krein.load(model)
        assert same_model(model, truth), "the model differs"
        assert again.comparisons_reused_ >= kept, "a cached value was computed again"
        # the first run with a cache folder compares a few pairs in both directions
        assert again.comparisons_reused_ + again.comparisons_to_fit_ <= total, (
            "compared too many pairs"
        )
        assert not left_behind(folder), f"left behind: {left_behind(folder)}"
        counts["fits resumed to the same arrays"] += 1


def _killed_predictions(
    kills: int,
    rng: np.random.Generator,
    seconds: float,
    command: list[str],
    folder: Path,
    counts: Counter[str],
) -> None:
    truth, out = (folder / "truth.csv").read_bytes(), folder / "out.csv"
    while counts["predictions killed"] < kills:
        out.unlink(missing_ok=True)
        for _ in range(IN_A_ROW):
            if run([*command, str(out)], folder, float(rng.uniform(0.05, 1.05)) * seconds):
                counts["predictions killed"] += 1
                counts["half-written files after a kill"] += len(left_behind(folder))
                assert not out.exists() or out.read_bytes() == truth, "half a table"
            else:
                counts["predictions that ended before their kill"] += 1
        run([*command, str(out)], folder)
        assert out.read_bytes() == truth, "the predictions differ"
        assert not left_behind(folder), f"left behind: {left_behind(folder)}"
        counts["predictions repeated to the same rows"] += 1


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.attack.kills")
    parser.add_argument("--kills", type=int, default=100, help="number of fits, and of predictions")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for what, number in kill(options.kills, options.seed).items():
        print(f"{number:6,} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
