"""Labelled objects that lie somewhere else, and what can be asked of them there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..compare import Pairs
from ..compare.pairs import Indices
from ..core.moments import ClassMoments
from ..core.pcvm.rows import Array
from ..measures.base import Objects, take
from .columns import Counted
from .piece import Piece, joined
from .storedrows import StoredFeatures

Result = TypeVar("Result")

CANDIDATES = 20_000
"""Landmarks are chosen among about so many objects; among all where there are no more. That is
what has to be in memory at one place, and what the quadratic parts of the rules see."""

OF_EACH_CLASS = 200
"""So many objects of each class are among the candidates at least, all where it has fewer."""


@dataclass(frozen=True)
class Survey:
    """What one look at the labels tells: number of objects, classes, objects of each class."""

    n_objects: int
    classes: NDArray[Any]  # sorted
    counts: NDArray[np.int64]  # objects of each class


@dataclass(frozen=True)
class Candidates:
    """Some of the objects, in memory: their numbers among all, ascending, and their labels."""

    indices: Indices
    objects: Any
    labels: NDArray[Any]


@dataclass(frozen=True)
class FeatureBlock:
    """Features of a piece, its class codes, and the moments of its coordinates."""

    F: Array
    codes: NDArray[Any]
    moments: ClassMoments


@dataclass(frozen=True)
class Work:
    """What one pass takes: how many objects, for each so many pairs and seconds, 0 if unknown."""

    n_objects: int
    pairs: int
    seconds: float = 0.0


class Collection(ABC):
    """Objects 0, 1, … N − 1 with labels, in files or on a cluster.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from krein.io import open_source
    >>> from krein.data import open_collection, survey
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.csv")
    ...     _ = path.write_text("word,language\\nhouse,en\\nhaus,de\\nmaus,de\\n")
    ...     source = open_source(path, objects="word", labels="language")
    ...     with open_collection(source) as words:
    ...         found = survey(words)
    >>> found.n_objects, found.classes.tolist(), found.counts.tolist()
    (3, ['de', 'en'], [2, 1])
    """

    reads_rows: bool = False
    """Whether some rows can be read without reading all."""
    n_jobs: int | None = None
    """How many workers share out the pairs of one piece: not ours to choose on a cluster."""
    plans: bool = False
    """Whether it has to know how long an object takes."""

    @abstractmethod
    def parts(self, term: Callable[[Piece], Result], *, objects: bool = True) -> Iterator[Result]:
        """Yield `term(piece)` over all objects in order, in pieces as they come.

        With `objects=False` only labels are asked for, and the objects may be None.
        """

    def rows(self, indices: Indices) -> Candidates:
        """Return the objects at these places, which ascend, in memory. One pass."""
        return _together(list(self.parts(_At(indices))))

    @abstractmethod
    def total(
        self,
        term: Callable[[Piece], Counted[Result]],
        grid: int,
        add: Callable[[Result, Result], Result],
        work: Work,
    ) -> Counted[Result]:
        """Return Σ term(piece) over all blocks of `grid` objects, in the fixed order."""

    @abstractmethod
    def features(
        self,
        term: Callable[[Piece], Counted[FeatureBlock]],
        width: int,
        grid: int,
        work: Work,
        class_weights: Array | None,
    ) -> tuple[StoredFeatures, Counted[ClassMoments]]:
        """Keep the features (N, `width`) that `term` gives, where passes over them are short."""

    def open_pairs(self, pairs: Pairs) -> Pairs:
        """Return the pairs of the candidates, compared where there are processors for it."""
        return pairs

    def matrix(self, rows: Indices, cols: Indices) -> Array:
        """Return a part of the matrix of values whose rows the objects are."""
        raise TypeError("values to all objects are taken from a dask.array or an array")

    def in_memory(self, most: int) -> tuple[Objects, Any] | None:
        """Return all objects and labels where they are at most `most` and here anyway."""
        return None

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Let go of what was opened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class _Look:
    """What a survey asks of a piece."""

    def __call__(self, piece: Piece) -> tuple[int, NDArray[Any], NDArray[np.int64]]:
        if piece.labels is None:
            raise ValueError(f"{piece.where(0)}: there are no labels to learn from")
        labels = np.asarray(piece.labels)
        if labels.ndim != 1:
            raise ValueError(f"labels are one an object; got an array of shape {labels.shape}")
        known, counts = np.unique(labels, return_counts=True)
        return len(labels), known, counts


def survey(data: Collection) -> Survey:
    """Return number, classes and class counts. One pass over the labels.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from krein.io import open_source
    >>> from krein.data import open_collection, survey
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.csv")
    ...     _ = path.write_text("word,language\\nhouse,en\\nhaus,de\\n")
    ...     source = open_source(path, objects="word", labels="language")
    ...     survey(open_collection(source)).n_objects
    2
    """
    counts: dict[Any, int] = {}
    n = 0
    for length, known, numbers in data.parts(_Look(), objects=False):
        n += length
        for label, number in zip(known.tolist(), numbers.tolist(), strict=True):
            counts[label] = counts.get(label, 0) + number
    classes = np.unique(list(counts)) if counts else np.empty(0)
    return Survey(n, classes, np.array([counts[label] for label in classes.tolist()], dtype=int))


@dataclass(frozen=True)
class _Draw:
    """Objects whose key lies below the threshold of their class."""

    seed: int
    classes: NDArray[Any]
    thresholds: Array

    def __call__(self, piece: Piece) -> Candidates:
        labels = np.asarray(piece.labels)
        keys = uniform_keys(self.seed, piece.start + np.arange(len(labels)))
        limits = self.thresholds[np.searchsorted(self.classes, labels)]
        return _chosen(piece, np.flatnonzero(keys < limits))


@dataclass(frozen=True)
class _At:
    """Objects at given places, which ascend."""

    indices: Indices

    def __call__(self, piece: Piece) -> Candidates:
        first, last = np.searchsorted(self.indices, [piece.start, piece.start + len(piece)])
        return _chosen(piece, self.indices[first:last] - piece.start)


def _chosen(piece: Piece, places: Indices) -> Candidates:
    objects: Any = None
    if piece.objects is not None:
        objects = take(piece.objects, places)
    return Candidates(piece.start + places, objects, np.asarray(piece.labels)[places])


def _together(parts: list[Candidates]) -> Candidates:
    return Candidates(
        np.concatenate([part.indices for part in parts]),
        joined([part.objects for part in parts if len(part.indices)]),
        np.concatenate([part.labels for part in parts]),
    )


def draw(data: Collection, known: Survey, seed: int, most: int = CANDIDATES) -> Candidates:
    """Draw about `most` objects, all where there are no more, and some of every class.

    Every object has a random key that depends on the seed and its number alone, and is drawn
    where the key lies below `most`/N, or below `OF_EACH_CLASS` over the size of its class: so the
    same objects are drawn however they are cut into chunks or spread over machines.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from krein.io import open_source
    >>> from krein.data import draw, open_collection, survey
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.csv")
    ...     _ = path.write_text("word,language\\nhouse,en\\nhaus,de\\n")
    ...     words = open_collection(open_source(path, objects="word", labels="language"))
    ...     draw(words, survey(words), seed=0).indices
    array([0, 1])
    """
    share = np.maximum(most / known.n_objects, OF_EACH_CLASS / known.counts)
    found = list(data.parts(_Draw(seed, known.classes, share), objects=not data.reads_rows))
    if data.reads_rows:
        return data.rows(np.concatenate([part.indices for part in found]))
    return _together(found)


def uniform_keys(seed: int, indices: Indices) -> Array:
    """Return a number in [0, 1) for each of the objects: SplitMix64 of its number."""
    mask = 2**64 - 1
    x = indices.astype(np.uint64) + np.uint64(1)
    with np.errstate(over="ignore"):
        x = x * np.uint64(0x9E3779B97F4A7C15) + np.uint64((seed * 0xD1342543DE82EF95 + 1) & mask)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2**53
