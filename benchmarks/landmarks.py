"""The cost of MEB landmarks, relative to evaluating the similarities."""

from __future__ import annotations

import numpy as np

from krein.compare import Pairs
from krein.landmarks import MEB
from krein.measures.vectors import ELM

from .timing import best_times, exponent, row


def problem(N: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, size=(N, 2))
    return X, (X.astype(int).sum(axis=1) % 2).astype(np.intp)


def run() -> list[dict]:
    N, s = 100_000, 100
    X, codes = problem(N)

    def select() -> Pairs:
        pairs = Pairs(ELM(), X)
        select.found = MEB().select(pairs, codes, np.random.default_rng(0))
        return pairs

    pairs = select()
    m = len(select.found.indices)

    def evaluate() -> None:
        bare = Pairs(ELM(), X)
        for _ in bare.map_columns(lambda rows, C: None, np.arange(s + m)):
            pass

    time, reference = best_times(select, evaluate)
    sizes = [10_000, 40_000, 100_000, 400_000]
    times = []
    for size in sizes:
        Z, labels = problem(size)
        times += best_times(
            lambda Z=Z, labels=labels: MEB().select(
                Pairs(ELM(), Z), labels, np.random.default_rng(0)
            )
        )
    return [
        row(
            "MEB / evaluating N×(s+m) similarities",
            time / reference,
            "at most 1",
            f"N = {N:,}, s = {s}, m = {m}: {time:.3f} s against {reference:.3f} s",
        ),
        row(
            "evaluations of MEB / N·s",
            pairs.evaluations / (N * s),
            "at most 1",
            f"{pairs.evaluations:,} pairs",
        ),
        row("exponent in N", exponent(sizes, times), "at most 1.1", f"N = {sizes}", unit=""),
    ]
