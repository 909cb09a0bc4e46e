"""Two single-threaded Dask workers against two threads; needs `KREIN_DATA`.

The fits are Swiss-Prot, which consists mostly of comparisons, and PCVM on 30,000 words, which
consists mostly of a hundred passes over the compared values.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from krein import IKFD, PCVM

from .accuracy import folder, no_data
from .swissprot import sample
from .timing import best_times, row
from .words import NORMALISED, landmarks, read, split

WORDS = 30_000


def run() -> list[dict]:
    data = folder()
    if data is None:
        return no_data()
    from distributed import Client, LocalCluster

    sequences, families = sample()
    with tempfile.TemporaryDirectory() as name:
        split(data, Path(name))
        words, languages = (column[:WORDS] for column in read(Path(name) / "train.csv"))
    columns = landmarks(len(words))

    def words_model() -> PCVM:
        return PCVM("levenshtein", measure_params=NORMALISED, landmarks=columns, n_jobs=2)

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "krein.estimators")  # do not measure imports
        return [
            *compared(
                "Swiss-Prot fit",
                lambda: IKFD("smith-waterman", n_jobs=2, random_state=0),
                sequences,
                families,
                "alignments",
            ),
            *compared("words, PCVM", words_model, words, languages, "edit distances"),
        ]


def compared(
    what: str, model: Callable[[], Any], objects: Any, labels: Any, pairs: str
) -> list[dict]:
    """Fit in this process and on the cluster, twice each."""
    import dask.bag

    bag = dask.bag.from_sequence(objects, npartitions=8)
    done: dict[str, Any] = {}

    def threads() -> None:
        done["threads"] = model().fit(objects, labels)

    def workers() -> None:
        done["workers"] = model().fit(bag, labels)

    one, two = best_times(threads, workers, repeats=2)
    a, b = done["threads"], done["workers"]
    some = objects[::40]
    apart = float(np.abs(a.predict_proba(some) - b.predict_proba(some)).max())
    return [
        row(
            f"{what}: two Dask workers / two threads",
            two / one,
            "at most 1.3",
            f"{two:.1f} s / {one:.1f} s, {len(a.landmarks_)} landmarks, "
            f"{b.comparisons_to_fit_:,} {pairs}",
        ),
        row(
            f"{what}: largest difference of a probability",
            apart,
            "at most 1e-10",
            f"same landmarks: {np.array_equal(a.landmarks_, b.landmarks_)}",
            unit="",
        ),
    ]
