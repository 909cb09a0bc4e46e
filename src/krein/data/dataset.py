"""Labelled objects, wherever they live: chunks, landmark columns, and the protocol of data sets.

A `Chunk` is a run of consecutive objects that knows where each of them came from, for `ObjectError`
and `ForeignObjectWarning`. `LandmarkColumns` compares chunks with the landmarks. A `Dataset` makes
passes over all objects in chunks. It is `Local`, in memory or in files that this process reads, or
`Partitioned`, on a cluster.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial, reduce
from operator import add, attrgetter
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Counter, Pairs, averages, compare_each, open_cache, with_known
from ..core.moments import ClassMoments
from ..core.pcvm.rows import Rows
from ..core.shapes import Array, Indices, Mask
from ..measures import Measure, PairError, RefusedObject
from ..measures.objects import Objects, take
from .foreign import ObjectProfile
from .labelling import LABELS_AT_ONCE, codes_of, first_missing

NAMED = 5
"""Number of objects that are named in a warning."""

LISTED = 10_000
"""Maximum number of rows listed per reason: a file may contain more objects than fit in memory."""

Value = TypeVar("Value")


def where_picked(chunk: Chunk, places: Indices, i: int) -> str:
    """Return where the i-th of some objects of a chunk comes from."""
    return chunk.where(int(places[i]))


class ObjectError(ValueError):
    """An object that cannot be compared; the message says where it comes from and why.

    Attributes
    ----------
    where : str
        Description of the object, or of the pair: "words.csv, line 3, string 'haus'".
    reason : str
        Why it cannot be compared.
    row : int or None
        Number of the object among all objects, or in its partition if predictions are lazy. None
        if the object is not known.
    kind : str or None
        What the measure calls such an object ("sequence"), if it refused this one by itself.

    Examples
    --------
    >>> from krein import IKFD
    >>> from krein.data import ObjectError
    >>> def closeness(a, b):
    ...     return 1 / abs(a + b)
    >>> try:
    ...     IKFD(closeness, landmarks=[0, 2]).fit([1.0, -3.0, 3.0, 4.0] + 20 * [5.0], 12 * [0, 1])
    ... except ObjectError as error:
    ...     print(error)
    ...     print(error.row)
    object 1, with landmark 1 (object 2): closeness raised ZeroDivisionError: float division by zero
    1
    """

    def __init__(
        self, where: str, reason: str, row: int | None = None, kind: str | None = None
    ) -> None:
        super().__init__(where, reason, row, kind)  # so that it can be sent to other processes
        self.where, self.reason, self.row, self.kind = where, reason, row, kind

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


Provenance = Callable[[int], str]
"""Describes where the i-th of some objects comes from. It can be pickled: a bound method, or a
partial of one of the following functions."""


def where_numbered(what: str, first: int, i: int) -> str:
    """Describe the i-th object by its number: "partition 4, object 17"."""
    return f"{what} {first + i}"


def where_shifted(provenance: Provenance, first: int, i: int) -> str:
    """Describe the i-th object after this many."""
    return provenance(first + i)


def where_in_runs(runs: Sequence[tuple[Provenance, int]], i: int) -> str:
    """Describe the i-th object of several runs, given with their lengths."""
    for provenance, n in runs:
        if i < n:
            return provenance(i)
        i -= n
    raise IndexError("there are fewer objects")


@dataclass(frozen=True)
class Chunk:
    """Objects `start`, `start` + 1, …, with labels and weights if there are any."""

    start: int
    objects: Any  # None if only labels were requested
    labels: Any = None
    weights: Array | None = None
    provenance: Provenance | None = None  # None for objects in memory
    checked: bool = False  # whether the objects are in the measure's form

    def __len__(self) -> int:
        return len(self.labels if self.objects is None else self.objects)

    def where(self, i: int) -> str:
        """Return a description of where the i-th object comes from."""
        return f"object {self.start + i}" if self.provenance is None else self.provenance(i)

    def cut(self, a: int, b: int) -> Chunk:
        """Return the objects from the a-th up to the b-th of the chunk."""
        return replace(
            self,
            start=self.start + a,
            objects=None if self.objects is None else self.objects[a:b],
            labels=None if self.labels is None else self.labels[a:b],
            weights=None if self.weights is None else self.weights[a:b],
            provenance=self.provenance and partial(where_shifted, self.provenance, a),
        )

    def picked(self, places: Indices) -> Chunk:
        """Return some of the objects, without labels."""
        where = partial(where_picked, self, places)
        return Chunk(self.start, take(self.objects, places), provenance=where, checked=self.checked)

    def blocks(self, block_rows: int) -> Iterator[Chunk]:
        """Yield the objects in order, `block_rows` at a time."""
        for a in range(0, len(self), block_rows):
            yield self.cut(a, min(a + block_rows, len(self)))

    @classmethod
    def joined(cls, chunks: Sequence[Chunk]) -> Chunk:
        """Return consecutive labelled chunks as one, without weights."""
        return cls(
            chunks[0].start,
            joined([chunk.objects for chunk in chunks]),
            np.concatenate([chunk.labels for chunk in chunks]),
            provenance=partial(where_in_runs, [(chunk.where, len(chunk)) for chunk in chunks]),
        )

    def in_form(
        self, measure: Measure, places: Indices | None = None, *, part: bool = True
    ) -> Objects:
        """Return the objects (at `places`) in the measure's form; an error names the refused one.

        With `part=False`, these are all objects, and a warning of the measure may count them.
        """
        objects = self.objects if places is None else take(self.objects, places)
        if self.checked:
            return objects
        try:
            return measure.check_part(objects) if part else measure.check(objects)
        except (TypeError, ValueError) as error:
            i, refusal = _refused(measure, objects, error)
            if i is None:
                raise ObjectError(f"from {self.where(0)} on", str(error)) from error
            i = i if places is None else int(places[i])
            if not isinstance(refusal, RefusedObject):
                raise ObjectError(self.where(i), str(refusal), self.start + i) from error
            reason = f"this {refusal.kind} {refusal.reason}"
            raise ObjectError(self.where(i), reason, self.start + i, refusal.kind) from error


def _refused(measure: Measure, objects: Any, error: Exception) -> tuple[int | None, Exception]:
    """Return the position of the object that a measure refused, and the error about it alone."""
    if isinstance(error, RefusedObject):
        return error.row, error
    # the measure did not name the object: find the first one that it refuses on its own
    for i in range(len(objects)):
        try:
            measure.check(objects[i : i + 1])
        except (TypeError, ValueError) as alone:
            return i, alone
    return None, error


class ForeignObjectWarning(UserWarning):
    """New objects look unlike those that the model was fitted to, and were not compared with them.

    Their novelty is 0, and all classes have the same probability.
    `rows` contains their rows in X, by reason. For a file, rows are counted from its first object,
    up to 10,000 are listed per reason, and the warning comes after the last chunk. For a Dask
    collection, there is one warning per partition, and rows are counted within it.

    Examples
    --------
    >>> import warnings
    >>> from krein import KreinClassifier
    >>> from krein.datasets import make_protein_families
    >>> from krein.data.dataset import ForeignObjectWarning
    >>> X, y = make_protein_families(40, random_state=0)
    >>> clf = KreinClassifier("smith-waterman").fit(X, y)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = clf.predict([X[0], "ACGTTGCAACGTTGCAACGTTGCA"])
    >>> isinstance(caught[0].message, ForeignObjectWarning), caught[0].message.rows
    (True, {'letters of DNA or RNA': [1]})
    """

    def __init__(self, rows: dict[str, list[int]], named: dict[str, tuple[list[str], int]]) -> None:
        self.rows, self.named = rows, named
        super().__init__(rows, named)  # so that it can be sent to other processes

    def __str__(self) -> str:
        return describe_foreign(self.named)


Foreign = tuple[dict[str, list[int]], dict[str, tuple[list[str], int]]]
"""Rows of foreign objects by reason, and some names with the number of all."""


def add_foreign(found: Foreign, chunk: Chunk, profile: ObjectProfile | None) -> None:
    """Add the objects of one more chunk that are unlike the training objects."""
    foreign = {} if profile is None else profile.foreign(chunk.objects)
    for reason, places in foreign.items():
        rows = found[0].setdefault(reason, [])
        rows += [chunk.start + i for i in places[: LISTED - len(rows)]]
        names, n = found[1].get(reason, ([], 0))
        more = [chunk.where(i) for i in places[: NAMED - len(names)]]
        found[1][reason] = names + more, n + len(places)


def describe_foreign(named: dict[str, tuple[list[str], int]]) -> str:
    """Return a message about objects of another kind: some names and the number, by reason.

    >>> print(describe_foreign({"letters of DNA or RNA": (["a", "b"], 7)}))
    not compared, because they are of another kind: a, b and 5 more (letters of DNA or RNA)
    """
    parts = []
    for why, (names, n) in named.items():
        more = f" and {n - len(names):,} more" if n > len(names) else ""
        parts.append(f"{', '.join(names)}{more} ({why})")
    return f"not compared, because they are of another kind: {'; '.join(parts)}"


Costed = tuple[Value, Counter]
"""A value, and the comparisons that it has cost. Tasks return this."""

Term = Callable[[Chunk], Costed[Value]]
"""Computes the term of one block in a pass over all objects."""

Add = Callable[[Value, Value], Value]

Predict = Callable[[Chunk], NDArray[Any]]
"""Computes one result, or a row of results, for each object of a chunk."""


def add_costed(add: Add[Value], a: Costed[Value], b: Costed[Value]) -> Costed[Value]:
    """Return a + b, using `add` for the values."""
    (one, cost), (other, more) = a, b
    return add(one, other), Counter(cost.compared + more.compared, cost.reused + more.reused)


@dataclass
class LandmarkColumns:
    """The landmarks that objects are compared with: takes a chunk, returns its values (n, m).

    `indices` are the landmarks' rows among all objects; the values of the objects at `known_rows`
    are already known. It can be sent to other processes; a cache is opened where it is used, once
    per process.
    """

    measure: Measure
    landmarks: Objects  # in the model's form
    indices: Indices  # (m,)
    known_rows: Indices  # (k,)
    known: Array  # (k, m)
    symmetrize: bool = False
    cache: str | os.PathLike[str] | None = None
    n_jobs: int | None = 1
    until: float | None = None  # when to stop, on the monotonic clock
    _opened: Any = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_opened": None}

    def __len__(self) -> int:
        return len(self.indices)

    def values(self, chunk: Chunk, places: Indices | None = None) -> Costed[Array]:
        """Return the values of the chunk to the landmarks; an error names the object.

        With `places`, return only those of the objects at these positions.
        """
        cols = np.arange(len(self))
        places = np.arange(len(chunk)) if places is None else places

        def compare(pairs: Pairs) -> Array:
            if len(self.known_rows) == 0:
                return pairs.values(places, cols)
            return with_known(
                chunk.start + places,
                self.known_rows,
                self.known,
                lambda new: pairs.values(places[new], cols),
            )

        return self._counted(chunk, compare)

    def each(self, chunk: Chunk, places: Indices, columns: Indices) -> Costed[Array]:
        """Return the values (n, k) of the objects at `places` of the chunk, each with its own k."""
        return self._counted(chunk, lambda pairs: compare_each(pairs, places, columns), known=True)

    def _counted(
        self, chunk: Chunk, compare: Callable[[Pairs], Array], *, known: bool = False
    ) -> Costed[Array]:
        """Return the values that `compare` takes from the pairs of a chunk with the landmarks.

        An error for a pair that cannot be compared names both objects.
        """
        objects = chunk.in_form(self.measure)
        try:
            landmarks = self.measure.landmarks_for(objects, self.landmarks, known=known)
        except ValueError as error:
            if chunk.provenance is None:
                raise
            raise ObjectError(chunk.where(0), str(error)) from error
        if self.cache is not None and self._opened is None:
            self._opened = open_cache(self.cache, self.measure, self.symmetrize)
        pairs = Pairs(
            self.measure,
            objects,
            landmarks,
            n_jobs=self.n_jobs,
            cache=self._opened,
            symmetrize=averages(self.measure, self.symmetrize),
            until=self.until,
        )
        try:
            values = compare(pairs)
        except PairError as error:
            i, j, column = error.row, error.col, "known object" if known else "landmark"
            where = f"{chunk.where(i)}, with {column} {j} (object {self.indices[j]})"
            raise ObjectError(where, error.reason, chunk.start + i) from error
        return values, pairs.counter


def joined(parts: Sequence[Any]) -> Any:
    """Return several sequences of objects as one: arrays and lists are concatenated, others added.

    Examples
    --------
    >>> from krein.data.dataset import joined
    >>> joined([["a"], ["b", "c"]])
    ['a', 'b', 'c']
    """
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    if isinstance(parts[0], list | tuple | np.ndarray):
        return [item for part in parts for item in part]
    return reduce(add, parts)


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask is not imported to find out.

    Examples
    --------
    >>> from krein.data.dataset import is_dask
    >>> is_dask(["house", "mouse"])
    False
    """
    return any(
        base.__module__.partition(".")[0] in ("dask", "dask_expr") for base in type(X).__mro__
    )


def aligned(item: Any) -> Any:
    """Return contiguous, aligned arrays; anything else unchanged.

    An array from a message may start at any byte, and BLAS then rounds differently. Also handles
    dataclasses, tuples and lists of arrays, such as the sums of a pass.
    """
    if isinstance(item, np.ndarray):
        return item if item.dtype == object else np.require(item, requirements=["C", "A"])
    if type(item) is tuple or (type(item) is list and isinstance(next(iter(item), 0), np.ndarray)):
        return type(item)(aligned(part) for part in item)
    if is_dataclass(item) and not isinstance(item, type):
        old = {part.name: getattr(item, part.name) for part in fields(item) if part.init}
        new = {name: aligned(part) for name, part in old.items()}
        moved = {name: part for name, part in new.items() if part is not old[name]}
        return replace(item, **moved) if moved else item
    return item


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


RowLabels = tuple[NDArray[Any], Array | None]
"""Class codes of some rows, and their weights if there are any."""


def join_labels(parts: list[RowLabels]) -> RowLabels:
    """Return the class codes and weights of consecutive blocks as one."""
    weights = [weights for _, weights in parts if weights is not None]
    return np.concatenate([codes for codes, _ in parts]), np.concatenate(
        weights
    ) if weights else None


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

    def decided(self, measure: Measure) -> Self:
        """Compare by this measure, with parameters that depend on the first objects."""
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
