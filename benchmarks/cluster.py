"""The Swiss-Prot fit on two Dask workers of one thread, and on two threads; `KREIN_DATA`."""

from __future__ import annotations

import logging

import numpy as np

from krein import IKFD
from krein.datasets import load_swissprot

from .accuracy import folder, no_data
from .timing import best_times, row


def run() -> list[dict]:
    if folder() is None:
        return no_data()
    import dask.bag
    from distributed import Client, LocalCluster

    sequences, y = load_swissprot()
    done: dict[str, IKFD] = {}

    def model() -> IKFD:
        return IKFD("smith-waterman", n_jobs=2, random_state=0)

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "krein.estimators")  # importing is not what is measured
        bag = dask.bag.from_sequence(sequences, npartitions=8)

        def threads() -> None:
            done["threads"] = model().fit(sequences, y)

        def workers() -> None:
            done["workers"] = model().fit(bag, y)

        one, two = best_times(threads, workers, repeats=2)
    a, b = done["threads"], done["workers"]
    some = sequences[::40]
    apart = float(np.abs(a.predict_proba(some) - b.predict_proba(some)).max())
    return [
        row(
            "Swiss-Prot fit: two Dask workers / two threads",
            two / one,
            "at most 1.3",
            f"{two:.1f} s / {one:.1f} s, {len(a.landmarks_)} landmarks, "
            f"{b.kernel_evaluations_:,} alignments",
        ),
        row(
            "largest difference of a probability",
            apart,
            "at most 1e-10",
            f"same landmarks: {np.array_equal(a.landmarks_, b.landmarks_)}",
            unit="",
        ),
    ]
