"""How times and memory are taken: alternating, the best of several."""

from __future__ import annotations

import time
import tracemalloc
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
    """Return the peak of what `function` allocates, in bytes.

    Of what is allocated, not of what is resident: memory freed before would hide it otherwise.
    """
    tracemalloc.start()
    try:
        function()
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def exponent(sizes: list[int], times: list[float]) -> float:
    """Return e of time ∝ size^e, by least squares on the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def row(name: str, value: float, target: str, detail: str = "", unit: str = "×") -> dict:
    """Return one line of the table: `value` in `unit`, and what it is to be."""
    return {"name": name, "value": value, "unit": unit, "target": target, "detail": detail}
