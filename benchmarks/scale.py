"""The cost of a fit on Dask for N = 10⁴ … 10⁶ with one and two workers; see docs/scale.md.

Points are generated on the workers, so only the fit is measured. The model

    wall time = start + (N / w) · (row + m · pair) + tasks · task

has two fitted constants, start and row. They minimise the squared relative error of the runs below
a million objects, and are checked against the runs with a million. `task` is measured separately,
on empty tasks. `pair` is measured on blocks of several measures with one thread, so that the model
applies to those measures as well. Results go to docs/scale.json; docs/draw_scale.py draws them.
"""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from krein import IKFD
from krein.measures import get_measure

from .timing import best_times, row

M, D = 100, 10
SIZES = [10_000, 30_000, 100_000, 300_000, 1_000_000]
PARTITION = 10_000
HELD_OUT = 1_000_000
TASKS_A_PARTITION = 5
"""Tasks per partition: count it, survey its labels, draw candidates, generate objects, compare."""
KEPT = Path(__file__).parents[1] / "docs" / "scale.json"


def points(k: int) -> np.ndarray:
    return np.random.default_rng(k).normal(size=(PARTITION, D))


def labels(k: int) -> np.ndarray:
    return (points(k)[:, :2].prod(axis=1) > 0).astype(np.int8)


def collection(n: int) -> tuple[object, object]:
    import dask
    import dask.array as da

    def joined(function: object, shape: tuple[int, ...], dtype: type) -> object:
        parts = [dask.delayed(function, pure=True)(k) for k in range(n // PARTITION)]
        return da.concatenate([da.from_delayed(part, shape, dtype) for part in parts])

    return (
        joined(points, (PARTITION, D), np.float64),
        joined(labels, (PARTITION,), np.int8),
    )


def pair_costs() -> dict[str, float]:
    """Return the seconds per pair for several measures, in one thread."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(2600, D))
    words = ["".join(rng.choice(list("abcdefghij"), 10)) for _ in range(2600)]
    proteins = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 300)) for _ in range(300)]
    found = {}
    for name, objects in (
        ("elm", vectors),
        ("levenshtein", words),
        ("smith-waterman", proteins),
    ):
        measure = get_measure(name)
        A, B = measure.check(objects), measure.check(objects[:M])
        (seconds,) = best_times(lambda measure=measure, A=A, B=B: measure.block(A, B), repeats=5)
        found[name] = seconds / (len(A) * len(B))
    return found


def task_cost(client: object) -> float:
    """Return the seconds per empty task."""
    n = 500

    def empty() -> None:
        client.gather(client.map(_nothing, range(n), pure=False))  # type: ignore[attr-defined]

    return best_times(empty, repeats=3)[0] / n


def _nothing(k: int) -> int:
    return k


def fit(n: int) -> float:
    X, y = collection(n)
    start = time.perf_counter()
    IKFD("elm", landmarks=np.arange(M)).fit(X, y)
    return time.perf_counter() - start


def run() -> list[dict]:
    from distributed import Client, LocalCluster

    runs = []
    for w in (1, 2):
        with (
            LocalCluster(
                n_workers=w,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster) as client,
        ):
            fit(SIZES[0])  # imports
            task = task_cost(client)
            for n in SIZES:
                seconds = min(fit(n) for _ in range(1 if n == HELD_OUT else 2))
                tasks = TASKS_A_PARTITION * n // PARTITION
                runs.append({"objects": n, "workers": w, "tasks": tasks, "seconds": seconds})
                print(runs[-1], flush=True)
    found = concluded(runs, pair_costs(), task)
    errors = [predicted(found, r) / r["seconds"] for r in runs]
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
    rows = [
        row(
            f"N = {r['objects']:,}, workers: {r['workers']}; model / measured",
            error,
            "0.7 to 1.4" if r["objects"] == HELD_OUT else "",
            f"{r['seconds']:.2f} s measured" + (", not fitted" * (r["objects"] == HELD_OUT)),
        )
        for r, error in zip(runs, errors, strict=True)
    ]
    return [*rows, row("a task that does nothing", 1e3 * task, "3 to 4", unit="ms")]


def concluded(runs: list[dict], pairs: dict[str, float], task: float) -> dict:
    """Return the measurements and the fitted constants."""
    below = [r for r in runs if r["objects"] < HELD_OUT]
    share = np.array([r["objects"] / r["workers"] for r in below])
    seconds = np.array([r["seconds"] for r in below])
    rest = seconds - share * M * pairs["elm"] - task * np.array([r["tasks"] for r in below])
    A = np.column_stack([np.ones(len(below)), share / share.max()]) / seconds[:, None]
    start, whole = nnls(A, rest / seconds)[0]
    return {
        "landmarks": M,
        "runs": runs,
        "pairs": pairs,
        "task": task,
        "tasks_a_partition": TASKS_A_PARTITION,
        "start": float(start),
        "row": float(whole / share.max()),
        "processors": os.cpu_count(),
        "held_out": HELD_OUT,
    }


def predicted(found: dict, r: dict) -> float:
    one = found["row"] + M * found["pairs"]["elm"]
    return found["start"] + r["objects"] / r["workers"] * one + found["task"] * r["tasks"]
