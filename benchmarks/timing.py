"""Measure time and memory: alternating runs, best of several."""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np


def best_times(*functions: Callable[[], object], repeats: int = 3) -> list[float]:
    """Return the best wall time of each function; runs alternate, so noise affects all equally."""
    times = np.full((repeats, len(functions)), np.inf)
    for round_ in times:
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            round_[i] = time.perf_counter() - start
    return times.min(axis=0).tolist()


def peak_memory(function: Callable[[], object]) -> float:
    """Return the peak memory that `function` allocates, in bytes.

    It counts allocations: resident memory would miss allocations that reuse memory freed earlier.
    """
    tracemalloc.start()
    try:
        function()
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@dataclass(frozen=True)
class Alone:
    """The result of a function in a separate process, its run time and peak resident bytes."""

    result: Any
    seconds: float
    resident: float


def alone(function: Callable[..., Any], *arguments: Any) -> Alone:
    """Run a module-level function in a new process, and measure its resident memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_watched, function, arguments).result()


def _watched(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Alone:
    start = time.perf_counter()
    result = function(*arguments)
    seconds = time.perf_counter() - start
    return Alone(result, seconds, _peak_resident())


def _peak_resident() -> float:
    """Return the peak resident memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would include the memory of the parent process
        (line,) = (one for one in status.read_text().splitlines() if one.startswith("VmHWM"))
        return 1024.0 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def exponent(sizes: list[int], times: list[float]) -> float:
    """Return e of time ∝ size^e, by least squares on the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def row(name: str, value: float, target: str, detail: str = "", unit: str = "×") -> dict:
    """Return one line of the table: `value` in `unit`, and its target."""
    return {"name": name, "value": value, "unit": unit, "target": target, "detail": detail}
