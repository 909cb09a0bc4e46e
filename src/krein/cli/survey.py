"""Describe data before anything is fitted, with one sentence of advice."""

from __future__ import annotations

import json
from array import array
from typing import Any, Literal

import click
import numpy as np

from ..compare import Pairs, open_pairs
from ..compare.cache import object_digests
from ..core.checks import Array
from ..core.space import double_centre, estimate_spectrum
from ..io import Chunk, DataError
from ..landmarks.base import given_pairs
from ..measures.base import looks_like, mistaken_for, sample_square
from ..measures.precomputed import as_matrix, check_square

REMEDIES = ("use --distance", "leave --distance out")
"""Advice for distances read as similarities, and for similarities read as distances."""

NEGATIVE = 0.01
"""Up to this share of the spectrum, the negative part may be noise."""

LARGE = 20_000
"""Above this number of objects, a model that needs a single pass is recommended."""


class Overview:
    """Counts over chunks of objects, and a random sample of them (a reservoir)."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.n = size, 0
        self.labels: list[str] = []
        self.objects: list[Any] = []
        self._names: list[str] = []
        self._places: list[int | None] = []
        self._rng = np.random.default_rng(seed)
        self._lengths = array("q")
        self._seen: dict[bytes, str | None] = {}
        self._called: set[str] = set()
        self._repeated = self._conflicting = self._renamed = 0
        self._last: Chunk | None = None

    def add(self, chunk: Chunk) -> None:
        """Count the objects of a chunk."""
        self._last = chunk
        self.labels += chunk.labels or []
        if chunk.kind in ("sequences", "strings", "series"):
            self._lengths.extend(len(item) for item in chunk.objects)
        for i, digest in enumerate(object_digests(chunk.objects)):
            label = chunk.labels[i] if chunk.labels else None
            key = bytes(digest)
            if key in self._seen:
                self._repeated += 1
                self._conflicting += self._seen[key] != label
            else:
                self._seen[key] = label
            self._renamed += chunk.names[i] in self._called
            self._called.add(chunk.names[i])
            if chunk.kind != "matrix":
                self._draw(chunk, i)
            self.n += 1

    def _draw(self, chunk: Chunk, i: int) -> None:
        at = self.n if self.n < self.size else int(self._rng.integers(self.n + 1))
        if at >= self.size:
            return
        line = None if chunk.lines is None else chunk.lines[i]
        if at == len(self.objects):
            self.objects.append(chunk.objects[i])
            self._names.append(chunk.names[i])
            self._places.append(line)
        else:
            self.objects[at], self._names[at] = chunk.objects[i], chunk.names[i]
            self._places[at] = line

    def sampled(self) -> Chunk:
        """Return the sample as a chunk that keeps the positions of its objects in the file."""
        assert self._last is not None
        lines = [line for line in self._places if line is not None]
        numbers = self._last.kind == "vectors"
        return Chunk(
            names=self._names,
            objects=np.stack(self.objects) if numbers else self.objects,
            labels=None,
            first=0,
            path=self._last.path,
            kind=self._last.kind,
            lines=lines if len(lines) == len(self._names) else None,
        )

    def lengths(self) -> tuple[int, int, int] | None:
        """Return the shortest, median and longest length, if objects have a length."""
        if not self._lengths:
            return None
        lengths = np.frombuffer(self._lengths, dtype=np.int64)
        return int(lengths.min()), int(np.median(lengths)), int(lengths.max())

    def duplicates(self) -> dict[str, int]:
        """Return the numbers of repeated objects, of those with different labels, and of repeated
        names."""
        return {
            "objects": self._repeated,
            "conflicting": self._conflicting,
            "names": self._renamed,
        }


def look_at_values(
    chunk: Chunk, measure: str, params: dict[str, Any], symmetrize: bool
) -> dict[str, Any]:
    """Describe the values of a measure among some objects. O(len(chunk)²) pairs."""
    try:
        pairs = open_pairs(
            measure, chunk.objects, measure_params=params, symmetrize=symmetrize, verbose=1
        )
        everyone = np.arange(len(pairs))
        values = pairs.block(everyone, everyone)
    except (ValueError, TypeError) as error:
        raise chunk.located(error) from error
    known = given_pairs(values, pairs.kind)
    return {"asymmetry": None, "looks_like": None, **_spectrum(known, len(chunk), 0), **_degenerate(
        values, chunk.names
    )}  # fmt: skip


def look_at_matrix(chunk: Chunk, distance: bool, size: int, seed: int) -> dict[str, Any]:
    """Describe a matrix of values; a large one is sampled. O(size³) beyond reading it."""
    matrix = as_matrix(chunk.objects)
    kind: Literal["similarity", "dissimilarity"] = "dissimilarity" if distance else "similarity"
    if matrix.shape[0] != matrix.shape[1]:
        raise DataError(
            f"{chunk.path}: the matrix must be square, with a row and a column per object; got "
            f"{matrix.shape[0]} × {matrix.shape[1]}"
        )
    asymmetry = None
    try:
        check_square(matrix, kind, symmetrize=True)
        check_square(matrix, kind)
    except ValueError as error:
        if "not symmetric" not in str(error):
            raise DataError(f"{chunk.path}: {error}") from error
        asymmetry = str(error).split(";")[0].removeprefix("the matrix is ")
    name = "precomputed-distance" if distance else "precomputed"
    pairs = open_pairs(name, matrix, symmetrize=True)
    rng = np.random.default_rng(seed)
    n = len(pairs)
    some = np.sort(rng.choice(n, min(n, 2 * size), replace=False))
    values = pairs.block(some, some)
    return {
        "asymmetry": asymmetry,
        "looks_like": looks_like(values),
        **_spectrum(pairs, size if n > 2 * size else n, seed),
        **_degenerate(values, [chunk.names[i] for i in some]),
    }


def _spectrum(pairs: Pairs, size: int, seed: int) -> dict[str, Any]:
    def block(rows: Any, cols: Any) -> Array:
        values = pairs.block(rows, cols)
        return values if pairs.kind == "similarity" else double_centre(values**2)

    found = estimate_spectrum(block, len(pairs), size=size, rng=np.random.default_rng(seed))
    return {
        "signature": tuple(found.signature),
        "negative_mass": abs(found.negative_mass),  # not −0
        "sampled": found.n_sampled,
    }


def _degenerate(values: Array, names: list[str]) -> dict[str, list[str]]:
    """Return the objects that have the same value to all others, and so carry no information."""
    off = ~np.eye(len(values), dtype=bool)
    lowest = np.where(off, values, np.inf).min(axis=1)
    highest = np.where(off, values, -np.inf).max(axis=1)
    flat = (lowest == highest) if len(values) > 2 else np.zeros(len(values), dtype=bool)
    zero = flat & (lowest == 0)
    return {
        "constant": [names[i] for i in np.flatnonzero(flat & ~zero)],
        "zero": [names[i] for i in np.flatnonzero(zero)],
    }


def warn_of_matrix(chunk: Chunk, distance: bool) -> None:
    """Print a warning if a matrix, judging by a sample, looks like the other kind."""
    matrix = chunk.objects
    if chunk.kind != "matrix" or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        return
    found = looks_like(sample_square(matrix))
    if mistaken := mistaken_for(found, distance, remedies=REMEDIES):
        click.echo(f"krein: warning: {chunk.path}: {mistaken}", err=True)


def measure_options(about: dict[str, Any]) -> str:
    """Return the options of `krein fit` for the comparison used here.

    >>> measure_options({"measure": "smith-waterman", "measure_params": {"matrix": "NUC.4.4"}})
    '--measure smith-waterman --measure-param matrix=NUC.4.4'
    """
    params = [
        f"--measure-param {name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in about["measure_params"].items()
    ]
    return " ".join([f"--measure {about['measure']}", *params])


def advise(kind: str, about: dict[str, Any], distance: bool, symmetrize: bool) -> str:
    """Return one sentence: what to do with the data."""
    if mistaken := mistaken_for(about["looks_like"], distance, remedies=REMEDIES):
        return mistaken
    if about["asymmetry"] and not symmetrize:
        return "The two directions differ: use --symmetrize to average them."
    if about["duplicates"]["names"]:
        return "Some names occur more than once: rename them, because results are listed by name."
    if not about["classes"]:
        return "There are no labels: to fit a model, use --labels or --label-pattern."
    counts = about["classes"]
    if len(counts) < 2:
        return "All objects have the same label: there is nothing to classify."
    rarest = min(counts, key=lambda name: counts[name])
    if counts[rarest] < 2:
        return (
            f"The class {rarest!r} has only one object, from which little can be learned: merge "
            f"the class with another, or leave it out."
        )
    model = " --model ikfd (one pass)" if about["objects"] > LARGE else " the default model"
    name = "" if kind == "matrix" else f" {measure_options(about)} and"
    remedy = f"use{name}{model}"
    share = about["negative_mass"]
    if share > NEGATIVE:
        return (
            f"{100 * share:.0f} % of the spectrum is negative: keep it, because krein uses it "
            f"and clipping would lose it; {remedy}."
        )
    if kind == "vectors":
        return (
            f"The measure is (nearly) a kernel and the objects are vectors: gradient boosting or "
            f"an SVM may work as well; with krein, {remedy}."
        )
    return (
        f"Hardly any of the spectrum is negative ({100 * share:.2g} %), so a kernel method works "
        f"too, but it compares all pairs; to compare fewer, {remedy}."
    )
