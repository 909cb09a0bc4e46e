"""How times and memory are taken: alternating, the best of several."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np


def best_times(*functions: Callable[[], object], repeats: int = 3) -> list[float]:
    """Return the best wall time of each function, taking turns so that noise hits all alike."""
    times = np.full((repeats, len(functions)), np.inf)
    for round_ in times:
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            round_[i] = time.perf_counter() - start
    return times.min(axis=0).tolist()


def peak_memory(function: Callable[[], object]) -> float:
    """Return by how many bytes the resident memory rises at most while `function` runs."""
    page = 4096

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * page

    before, peak, done = resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            peak[0] = max(peak[0], resident() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        function()
    finally:
        peak[0] = max(peak[0], resident() - before)
        done.set()
        watcher.join()
    return float(peak[0])


def exponent(sizes: list[int], times: list[float]) -> float:
    """Return e of time ∝ size^e, by least squares on the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def row(name: str, value: float, target: str, detail: str = "", unit: str = "×") -> dict:
    """Return one line of the table: `value` in `unit`, and what it is to be."""
    return {"name": name, "value": value, "unit": unit, "target": target, "detail": detail}
