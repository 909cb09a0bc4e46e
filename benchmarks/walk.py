"""Count the modules, classes and functions that a reader meets when following a call through krein.

A profiler hook counts them on all threads of this process. `core` contains the mathematics, one
algorithm per file; the path to it through the other folders should be short.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import krein
from krein import PCVM
from krein.data import opening
from krein.io import open_source

from .timing import row

ROOT = str(Path(krein.__file__).parent) + os.sep


@dataclass(frozen=True)
class Walk:
    """The functions that ran during a call, as (module, qualified name)."""

    passed: frozenset[tuple[str, str]]

    @property
    def modules(self) -> set[str]:
        """Modules, as paths below `krein`."""
        return {module.replace(os.sep, "/") for module, _ in self.passed}

    @property
    def road(self) -> set[str]:
        """Modules outside `core`."""
        return {module for module in self.modules if not module.startswith("core/")}

    @property
    def classes(self) -> set[tuple[str, str]]:
        """Classes whose methods were called."""
        named = ((module, name.split(".")) for module, name in self.passed)
        return {(module, parts[0]) for module, parts in named if parts[1:] and "<" not in parts[1]}


def follow(call: Callable[[], Any]) -> Walk:
    """Return the functions that run during `call`."""
    passed: set[tuple[str, str]] = set()

    def hook(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # a reader does not count module bodies and comprehensions as functions
        function = event == "call" and not code.co_name.startswith("<")
        if function and code.co_filename.startswith(ROOT):
            passed.add((code.co_filename.removeprefix(ROOT), code.co_qualname))

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return Walk(frozenset(passed))


def sequences(n: int) -> tuple[list[str], np.ndarray]:
    """Return random sequences of two classes with different letters."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    alphabet = np.array(
        [list("ACDEFGHIKLMNPQRSTVWY" + half) for half in ("ACDEFGHIKL", "MNPQRSTVWY")]
    )
    letters = rng.integers(0, alphabet.shape[1], (n, 20))
    return ["".join(alphabet[c, part]) for c, part in zip(y, letters, strict=True)], y


def walks() -> dict[str, Walk]:
    """Return the walks of `fit` in memory, from a file and on Dask, and of `predict_proba`."""
    import dask.bag as db

    seqs, y = sequences(150)

    def fit(X: Any, labels: Any = None) -> PCVM:
        return PCVM("smith-waterman", random_state=0).fit(X, labels)

    model = fit(seqs, y)  # imports and compilation are not part of the walk
    found = {"fit in memory": follow(lambda: fit(seqs, y))}
    most = opening.IN_MEMORY_OBJECTS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sequences.csv")
        lines = [f"{s},{c}" for s, c in zip(seqs, y, strict=True)]
        path.write_text("\n".join(["sequence,label", *lines]) + "\n")
        source = open_source(path, objects="sequence", labels="label")
        opening.IN_MEMORY_OBJECTS = 100  # forces reading in chunks
        try:
            found["fit from a file"] = follow(lambda: fit(source))
        finally:
            opening.IN_MEMORY_OBJECTS = most
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found["fit on Dask"] = follow(lambda: fit(db.from_sequence(seqs, npartitions=3), y))
    found["predict_proba"] = follow(lambda: model.predict_proba(seqs[:20]))
    return found


GOALS = {"fit in memory": 18, "fit from a file": 24, "fit on Dask": 24, "predict_proba": 9}
"""Target number of modules outside `core`."""


def run() -> list[dict]:
    return [
        row(
            name,
            len(walk.road),
            f"at most {GOALS[name]}",
            f"modules beside core; {len(walk.modules)} in all, {len(walk.classes)} classes, "
            f"{len(walk.passed)} functions",
            unit="",
        )
        for name, walk in walks().items()
    ]
