"""The cost of deployment: start-up time of `krein predict`, and latency of `krein serve`."""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from krein import IKFD, KreinClassifier
from krein.cli.commands import predict, serve  # noqa: F401 - they run in other processes
from krein.datasets import make_protein_families

from .timing import row

REQUESTS = 200


def run() -> list[dict[str, Any]]:
    X, y = make_protein_families(600, random_state=0)
    sequences, labels = [str(sequence) for sequence in X], list(y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.krein"
        clf = IKFD("smith-waterman", calibrate=True, random_state=0)
        clf.fit(sequences[:500], labels[:500]).save(path)
        new = sequences[500:]
        about = f"IKFD of 500 sequences, {len(clf.landmarks_)} landmarks"
        rows = [*start_up(path, new[0], about)]
        looks = KreinClassifier("smith-waterman").fit(sequences[:500], labels[:500])
        looks.save(Path(folder) / "looks.krein")
        told = f"KreinClassifier of 500 sequences, {len(looks.landmarks_)} landmarks"
        rows += start_up(Path(folder) / "looks.krein", new[0], told)
        rows += latency(path, new, clf, about)
    return rows


def start_up(path: Path, sequence: str, about: str) -> list[dict[str, Any]]:
    """CPU time of the command for one sequence, and of importing scikit-learn."""
    command = [sys.executable, "-m", "krein", "predict", str(path)]
    imports = [sys.executable, "-c", "import sklearn.base"]
    fasta = f">a\n{sequence}\n".encode()
    seconds = min(_processor_time(command, fasta) for _ in range(5))
    reference = min(_processor_time(imports, b"") for _ in range(5))
    detail = f"processor time, best of 5; importing scikit-learn takes {reference:.2f} s; {about}"
    family = about.partition(" ")[0]
    return [row(f"krein predict, one sequence, {family}", seconds, "≤ 1", detail, "s")]


def _processor_time(command: list[str], given: bytes) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=given, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def latency(path: Path, new: list[str], clf: Any, about: str) -> list[dict[str, Any]]:
    """Time from request to response on this machine, one request at a time, against bare calls."""
    process = subprocess.Popen(
        [sys.executable, "-m", "krein", "serve", str(path), "--port", "0"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.search(r":(\d+)\n", process.stdout.readline())
        assert found is not None
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]))

        def ask(asked: dict[str, Any]) -> None:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/predict", json.dumps(asked), headers)
            response = connection.getresponse()
            response.read()
            assert response.status == 200

        clf.n_jobs = 1
        one = _times(lambda i: ask({"object": new[i % len(new)]}), REQUESTS)
        bare = _times(lambda i: clf.predict_proba([new[i % len(new)]]), REQUESTS)
        many = _times(lambda i: ask({"objects": new}), 10)
        connection.close()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    each = f"{REQUESTS} requests of one sequence, one after the other; {about}"
    ratio = float(np.median(one) / np.median(bare))
    together = 1e3 * float(np.median(many)) / len(new)
    ten = f"median of 10 requests; {about}"
    return [
        row("krein serve, one object: median", 1e3 * float(np.median(one)), "", each, "ms"),
        row("krein serve, one object: 99 %", 1e3 * float(np.quantile(one, 0.99)), "", each, "ms"),
        row("krein serve, one object, beside predict_proba", ratio, "", each),
        row(f"krein serve, {len(new)} objects: for each of them", together, "", ten, "ms"),
    ]


def _times(call: Callable[[int], object], n: int) -> np.ndarray:
    call(0)
    found = np.empty(n)
    for i in range(n):
        start = time.perf_counter()
        call(i)
        found[i] = time.perf_counter() - start
    return found
