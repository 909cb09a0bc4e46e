"""The protocol of data sets: passes over labelled objects, wherever they live.

A `Dataset` makes passes over all objects in chunks. It is `Local`, in memory or in files that this
process reads, or `Partitioned`, on a cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Counter, Pairs
from ..core.moments import ClassMoments
from ..core.pcvm.rows import Rows
from ..core.shapes import Array, Indices, Mask
from ..measures import Measure
from .chunks import Add, Chunk, Term, Value, joined
from .labelling import LABELS_AT_ONCE, codes_of, first_missing

IN_MEMORY_OBJECTS = 20_000
"""Landmarks are chosen from all objects if there are at most this many, and otherwise from a sample
of about this size, wherever the objects are: the quadratic parts of the rules run on it. A file
with at most this many objects is read into memory."""

SAMPLED_PER_CLASS = 200
"""Minimum number of sampled objects per class, or all objects of a smaller class."""


@dataclass(frozen=True)
class Survey:
    """Summary of the labels: number of objects, classes, and objects per class."""

    n_objects: int
    classes: NDArray[Any]  # sorted
    counts: NDArray[np.int64]  # objects of each class
    weights: Array  # Σ sample_weight of each class; the counts if there are no weights
    weighted: int  # number of objects with a weight above 0

    def among(self, classes: NDArray[Any]) -> Survey:
        """Return the summary for these classes, some of which may have no objects."""
        place = codes_of(self.classes, classes)
        counts, weights = np.zeros(len(classes), dtype=int), np.zeros(len(classes))
        counts[place], weights[place] = self.counts, self.weights
        return Survey(self.n_objects, classes, counts, weights, self.weighted)


Labelled = tuple[Any, NDArray[Any]]
"""Some of the objects, in the measure's form, and their labels."""


@dataclass(frozen=True)
class FeatureBlock:
    """Values of a chunk, its class codes and weights, and the moments of its coordinates."""

    F: Array
    codes: NDArray[Any]
    weights: Array | None
    moments: ClassMoments

    @property
    def labels(self) -> RowLabels:
        """The codes and weights, without the values."""
        return RowLabels(self.codes, self.weights)


@dataclass(frozen=True)
class RowLabels:
    """Class codes of some rows, and their weights if there are any."""

    codes: NDArray[Any]
    weights: Array | None

    @classmethod
    def joined(cls, parts: Sequence[RowLabels]) -> RowLabels:
        """Return those of consecutive blocks, all of which have weights, or none."""
        weights = [part.weights for part in parts if part.weights is not None]
        codes = np.concatenate([part.codes for part in parts])
        return cls(codes, np.concatenate(weights) if weights else None)


class Dataset(ABC):
    """Objects 0, 1, … N − 1 with labels, in memory, in files or on a cluster.

    A pass runs a function over chunks of objects. Sums are taken over blocks of a fixed number of
    objects, counted from the first, in a fixed order. Results therefore do not depend on threads,
    machines, or how a file is divided.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from krein.data import open_data
    >>> from krein.io import open_source
    >>> from krein.measures import get_measure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.csv")
    ...     _ = path.write_text("word,language\\nhouse,en\\nhaus,de\\nmaus,de\\n")
    ...     source = open_source(path, objects="word", labels="language")
    ...     with open_data(source, measure=get_measure("levenshtein")) as words:
    ...         found = words.survey()
    >>> found.n_objects, found.classes.tolist(), found.counts.tolist()
    (3, ['de', 'en'], [2, 1])
    """

    measure: Measure
    """How the objects are compared, with all parameters decided."""
    check_comparisons: int | None = None
    """Pairs compared to check the measure on all objects; None if it is to be checked on a
    sample."""
    n_jobs: int | None = None
    """Number of workers for the pairs of one block; a cluster decides this itself."""
    _survey: Survey | None = None

    @abstractmethod
    def map(self, function: Callable[[Chunk], Value], *, objects: bool = True) -> Iterator[Value]:
        """Yield `function(chunk)` over all objects in order, in chunks of any size.

        With `objects=False`, only labels and weights are needed, and the objects may be None.
        """

    @abstractmethod
    def reduce(
        self, term: Term[Value], add: Add[Value], block_rows: int, n_pairs: int, counter: Counter
    ) -> Value:
        """Return Σ term(block) over all blocks of `block_rows` objects, in the fixed order.

        An object is compared `n_pairs` times; comparisons are added to the counter.
        """

    @abstractmethod
    def keep(
        self, term: Term[FeatureBlock], width: int, block_rows: int, counter: Counter
    ) -> tuple[Rows, ClassMoments]:
        """Keep the values (N, `width`) of all blocks where later passes are fast.

        Also returns the sum of the moments. Comparisons are added to the counter.
        """

    def take(self, indices: Indices, measure: Measure) -> Labelled:
        """Return the objects at these ascending positions, in memory, and their labels. One
        pass."""
        n = self.survey().n_objects
        parts = list(self.map(partial(_objects_at, indices, measure, n)))
        objects = joined([objects for objects, labels in parts if len(labels)])
        return objects, np.concatenate([labels for _, labels in parts])

    def run_pairs(self, pairs: Pairs) -> Pairs:
        """Return the pairs of a sample, compared where processors are available."""
        return pairs

    def survey(self) -> Survey:
        """Return the number of objects, classes and class counts.

        Makes one pass over the labels in the first call.
        """
        if self._survey is None:
            self._survey = _merged(list(self.map(survey_labels, objects=False)))
        return self._survey

    def contents(self) -> tuple[Indices, Indices]:
        """Return a number (N,) per object that depends on its contents, and its class code (N,).

        Copies have the same number, 64 bits of a hash. One pass.
        """
        classes = self.survey().classes
        parts = list(self.map(partial(_contents, self.measure, classes)))
        keys, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
        return keys, codes

    @property
    def n_sampled(self) -> int:
        """Approximate size of the sample that landmarks are chosen from."""
        return min(self.survey().n_objects, IN_MEMORY_OBJECTS)

    def sample(self, seed: int, among: Mask | None = None) -> Indices:
        """Draw the sample that landmarks are chosen from, with objects of every class.

        Returns the ascending positions of its objects. Only objects of positive weight are drawn,
        and only those `among` (N,) all. Every object has a random key that depends only on the seed
        and its number. It is drawn if the key is below n/N, or below `SAMPLED_PER_CLASS` over the
        size of its class. The draw does not depend on how the objects are divided into chunks or
        distributed over machines.
        """
        known = self.survey()
        share = np.maximum(
            self.n_sampled / known.n_objects,
            SAMPLED_PER_CLASS / np.maximum(known.counts, 1),
        )
        draw = partial(_draw, seed, known.classes, share)
        drawn = np.concatenate(list(self.map(draw, objects=False)))
        return drawn if among is None else drawn[among[drawn]]

    def decide_measure(self, measure: Measure) -> Self:
        """Compare by this measure from now on, with parameters that depend on the first objects.

        Closes the data set if these cannot be compared.
        """
        if measure.undecided():
            try:
                measure = measure.decide(next(iter(self.map(attrgetter("objects")))))
            except BaseException:
                self.close()
                raise
        self.measure = measure
        return self

    def close(self) -> None:  # noqa: B027 - most have nothing to release
        """Release open files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def survey_labels(chunk: Chunk) -> Survey:
    """Return a summary of the labels of a chunk."""
    if chunk.labels is None:
        raise ValueError(f"{chunk.where(0)}: there are no labels to learn from")
    labels = np.asarray(chunk.labels)
    if labels.ndim != 1:
        raise ValueError(
            f"y must contain one label per object; got an array of shape {labels.shape}"
        )
    missing = first_missing(labels)
    if missing is not None:
        raise ValueError(f"{chunk.where(missing)}: there is no label ({labels[missing]!r})")
    try:
        parts = [
            np.unique(labels[i : i + LABELS_AT_ONCE]) for i in range(0, len(labels), LABELS_AT_ONCE)
        ]
        classes = np.unique(np.concatenate([labels[:0], *parts]))
    except TypeError:  # labels that cannot be ordered
        kinds = {type(label).__name__: label for label in labels.tolist()}
        two = " and ".join(f"{label!r} ({kind})" for kind, label in list(kinds.items())[:2])
        raise ValueError(f"labels must all be of one kind; y contains {two}") from None
    codes = codes_of(labels, classes)
    counts = np.bincount(codes, minlength=len(classes))
    weights, weighted = counts.astype(float), len(labels)
    if chunk.weights is not None:
        weights = np.bincount(codes, weights=chunk.weights, minlength=len(classes))
        weighted = int(np.count_nonzero(chunk.weights > 0))
    return Survey(len(labels), classes, counts, weights, weighted)


def _merged(parts: list[Survey]) -> Survey:
    """Return the summary of all chunks from theirs."""
    found = [part for part in parts if part.n_objects]
    if not found:
        return Survey(0, np.empty(0), np.empty(0, dtype=int), np.empty(0), 0)
    classes = np.unique(np.concatenate([part.classes for part in found]))
    same = [part.among(classes) for part in found]
    return Survey(
        sum(part.n_objects for part in same),
        classes,
        np.sum([part.counts for part in same], axis=0),
        np.sum([part.weights for part in same], axis=0),
        sum(part.weighted for part in same),
    )


def _draw(seed: int, classes: NDArray[Any], share: Array, chunk: Chunk) -> Indices:
    """Return the numbers of the objects whose key is below the share of their class."""
    indices = chunk.start + np.arange(len(chunk))
    drawn = uniform_keys(seed, indices) < share[codes_of(np.asarray(chunk.labels), classes)]
    return indices[drawn if chunk.weights is None else drawn & (chunk.weights > 0)]


def _contents(measure: Measure, classes: NDArray[Any], chunk: Chunk) -> tuple[Indices, Indices]:
    """Return a number per object that depends on its contents, and its class code."""
    keys = measure.content_keys(chunk.in_form(measure), chunk.start)
    return keys.view(np.int64), codes_of(np.asarray(chunk.labels), classes).astype(np.intp)


def _objects_at(indices: Indices, measure: Measure, n_objects: int, chunk: Chunk) -> Labelled:
    """Return the objects of a chunk that are among `indices`, to be compared with each other."""
    first, last = np.searchsorted(indices, [chunk.start, chunk.start + len(chunk)])
    found = indices[first:last]
    places = found - chunk.start
    objects: Any = None
    if len(places):
        objects = measure.among(chunk.in_form(measure, places), found, indices, n_objects)
    return objects, np.asarray(chunk.labels)[places]


def uniform_keys(seed: int, indices: Indices) -> Array:
    """Return a number in [0, 1) for each of the objects: SplitMix64 of its number."""
    mask = 2**64 - 1
    x = indices.astype(np.uint64) + np.uint64(1)
    with np.errstate(over="ignore"):
        x = x * np.uint64(0x9E3779B97F4A7C15) + np.uint64((seed * 0xD1342543DE82EF95 + 1) & mask)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2**53
