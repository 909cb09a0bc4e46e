"""Measures in `krein.compare` against the bare library, on the same pairs, with one worker."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from krein.compare import open_pairs
from krein.compare.workers import limit_blas_threads

from .timing import row


def best_of(rounds: int, **runs: Callable[[], Any]) -> dict[str, float]:
    """Return the shortest time of each, run in turns so that noise affects all of them equally."""
    times = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, call in runs.items():
            start = time.perf_counter()
            call()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def columns(pairs: Any, cols: np.ndarray) -> None:
    """Compare all objects with the columns, and discard each block."""
    for _ in pairs.map_columns(lambda rows, values: None, cols):
        pass


def rate(pairs: int, seconds: float) -> str:
    return f"{pairs / seconds:,.0f} pairs/s"


def smith_waterman() -> list[dict[str, Any]]:
    import pyopal
    from scoring_matrices import ScoringMatrix

    rng = np.random.default_rng(0)
    letters = list("ARNDCQEGHILKMFPSTWYV")
    proteins = ["".join(rng.choice(letters, rng.integers(200, 400))) for _ in range(1500)]
    cols = np.arange(0, 1500, 25)
    pairs = len(proteins) * len(cols)

    def bare() -> None:
        aligner = pyopal.Aligner(ScoringMatrix.from_name("BLOSUM62"), 11, 1)
        database = pyopal.Database(proteins, alphabet=aligner.alphabet)
        for j in cols:
            aligner.align(proteins[j], database, mode="score", algorithm="sw")

    folders = count()
    with tempfile.TemporaryDirectory() as root:
        times = best_of(
            3,
            bare=bare,
            ours=lambda: columns(open_pairs("smith-waterman", proteins, n_jobs=1), cols),
            kept=lambda: columns(
                open_pairs("smith-waterman", proteins, n_jobs=1, cache=f"{root}/{next(folders)}"),
                cols,
            ),
            shared=lambda: columns(open_pairs("smith-waterman", proteins), cols),
        )
    bare_rate = rate(pairs, times["bare"])
    return [
        row(
            "smith-waterman",
            times["bare"] / times["ours"],
            unit="× speed of pyopal",
            target="≥ 0.85",
            detail=f"{rate(pairs, times['ours'])}, pyopal {bare_rate}, "
            f"all threads {rate(pairs, times['shared'])}; ours normalised",
        ),
        row(
            "smith-waterman, blocks kept",
            times["kept"] / times["ours"],
            unit="× time without a cache",
            target="≤ 1.10",
            detail=f"{times['kept']:.2f} s against {times['ours']:.2f} s",
        ),
    ]


def levenshtein() -> list[dict[str, Any]]:
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    rng = np.random.default_rng(0)
    words = ["".join(w) for w in rng.choice(list("abcdefghij"), (20_000, 40))]
    cols = np.arange(0, 20_000, 50)
    chosen = [words[j] for j in cols]
    pairs = len(words) * len(cols)
    times = best_of(
        3,
        bare=lambda: process.cdist(words, chosen, scorer=Levenshtein.distance),
        ours=lambda: columns(open_pairs("levenshtein", words, n_jobs=1), cols),
    )
    return [
        row(
            "levenshtein",
            times["bare"] / times["ours"],
            unit="× speed of rapidfuzz",
            target="≥ 0.85",
            detail=f"{rate(pairs, times['ours'])}, rapidfuzz {rate(pairs, times['bare'])}, "
            "length 40",
        )
    ]


def dtw() -> list[dict[str, Any]]:
    from dtaidistance import dtw as reference

    rng = np.random.default_rng(0)
    series = rng.normal(size=(1200, 150)).cumsum(axis=1)
    cols = np.arange(100)
    few = [*series[:100], *series[:20]]
    open_pairs("dtw", series[:3]).block(np.arange(3), np.arange(3))  # compile before timing
    times = best_of(
        3,
        bare=lambda: reference.distance_matrix_fast(
            few, block=((0, 100), (100, 120)), compact=True, parallel=False
        ),
        ours=lambda: columns(open_pairs("dtw", series, n_jobs=1), cols),
    )
    ours, bare = 120_000 / times["ours"], 2_000 / times["bare"]
    return [
        row(
            "dtw",
            ours / bare,
            unit="× speed of dtaidistance",
            target="≥ 8",
            detail=f"{ours:,.0f} pairs/s, dtaidistance {bare:,.0f} pairs/s, length 150",
        )
    ]


def tangent() -> list[dict[str, Any]]:
    from krein.measures.images import Tangent

    rng = np.random.default_rng(0)
    images = rng.uniform(size=(1300, 28, 28))
    flat = images.reshape(len(images), -1)
    cols = np.arange(100)
    T = Tangent()._tangents(images[:40]).transpose(0, 2, 1)  # (images, pixels, deformations)
    # BLAS in one thread, as in krein: more threads only slow down small problems

    @limit_blas_threads()
    def one_side() -> None:
        for i in range(0, 40, 2):
            for j in range(1, 40, 2):
                u = flat[i] - flat[j]
                np.linalg.lstsq(T[i], u, rcond=None)
                np.linalg.lstsq(T[j], u, rcond=None)

    @limit_blas_threads()
    def two_sides() -> None:
        for i in range(0, 40, 2):
            for j in range(1, 40, 2):
                np.linalg.lstsq(np.hstack([T[i], T[j]]), flat[i] - flat[j], rcond=None)

    results = []
    for sides, bare_run in ((1, one_side), (2, two_sides)):
        params = {"sides": sides}
        times = best_of(
            3,
            bare=bare_run,
            ours=lambda params=params: columns(
                open_pairs("tangent", images, measure_params=params, n_jobs=1), cols
            ),
        )
        ours, bare = 130_000 / times["ours"], 400 / times["bare"]
        each = "a least-squares call for each direction" if sides == 1 else "one call"
        results.append(
            row(
                f"tangent, {sides}-sided",
                ours / bare,
                unit="× speed of least squares",
                target="≥ 50",
                detail=f"{ours:,.0f} pairs/s, {each} {bare:,.0f} pairs/s, 28 × 28 pixels",
            )
        )
    return results


def elm() -> list[dict[str, Any]]:
    X = np.random.default_rng(0).normal(size=(1_000_000, 10))
    cols = np.arange(100)
    L, c = X[:100], 1 / 200 + 1

    def bare() -> None:
        l = c + (L**2).sum(axis=1)
        for start in range(0, len(X), 10_000):
            A = X[start : start + 10_000]
            a = c + (A**2).sum(axis=1)
            2 / np.pi * np.arcsin((1 + A @ L.T) / np.sqrt(np.outer(a, l)))

    times = best_of(
        3,
        bare=bare,
        ours=lambda: columns(open_pairs("elm", X, n_jobs=1), cols),
        shared=lambda: columns(open_pairs("elm", X), cols),
    )
    return [
        row(
            "elm, N = 10⁶, m = 100",
            times["bare"] / times["ours"],
            unit="× speed of NumPy's expression",
            target="≥ 0.8",
            detail=f"{times['ours']:.2f} s, NumPy {times['bare']:.2f} s, "
            f"all threads {times['shared']:.2f} s",
        )
    ]


def run() -> list[dict[str, Any]]:
    """Return one row per figure: name, value, unit, target, detail."""
    return [*smith_waterman(), *levenshtein(), *dtw(), *tangent(), *elm()]
