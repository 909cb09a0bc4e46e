"""What `krein predict` reports beyond labels: novelty, status, sets of labels, and evidence."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, Protocol

import click
import numpy as np
from numpy.typing import NDArray

from ..io import Chunk, DataError, Source
from ..io.streams import STDIN, read_lines
from .options import Share
from .output import writing

NOVEL = "novel"
UNREADABLE = "unreadable"


def novelty_options(function: Any) -> Any:
    """The options for output beyond labels."""
    made = (
        click.option(
            "--novel-below",
            type=Share(0, 1),
            metavar="P",
            help="Call objects novel (like none of the classes) if their p-value is at most "
            "this. Default: 0.01.",
        ),
        click.option(
            "--sets",
            type=Share(0, 1, min_open=True, max_open=True),
            metavar="SHARE",
            help="Add the labels that cannot be ruled out: the set contains the true label for "
            "this share of the objects.",
        ),
        click.option(
            "--evidence",
            type=click.IntRange(1),
            metavar="N",
            help="Add the N nearest known objects, with their labels and values of the measure.",
        ),
        click.option(
            "--classified-out",
            type=click.Path(),
            metavar="FILE",
            help="Also write the objects that got a label, in the format of NEW: sequences as "
            "FASTA with their labels, lines of other text files as they are.",
        ),
        click.option(
            "--unclassified-out",
            type=click.Path(),
            metavar="FILE",
            help="Also write the objects that are novel, rejected or unreadable, in the format of "
            "NEW.",
        ),
    )
    for option in reversed(made):
        function = option(function)
    return function


@dataclass(frozen=True)
class Asked:
    """The requested output beyond labels."""

    novel_below: float | None = None
    ambiguous_below: float | None = None
    sets: float | None = None
    evidence: int | None = None

    def check(self, model: Any) -> None:
        """Refuse options that the model does not support; set the thresholds."""
        if not hasattr(model, "assess"):
            for option in ("novel_below", "sets", "evidence"):
                if getattr(self, option) is not None:
                    asked = "evidence" if option == "evidence" else f"--{option.replace('_', '-')}"
                    raise DataError(
                        f"{asked} needs a model from krein fit --model auto; "
                        f"this one is {type(model).__name__.removeprefix('Fitted')}"
                    )
            return
        for name in ("novel_below", "ambiguous_below"):
            if getattr(self, name) is not None:
                setattr(model, name, getattr(self, name))

    def of(self, model: Any, objects: Any) -> NDArray[Any]:
        """Return a structured array with `probabilities` and further predictions.

        Each pair is compared only once.
        """
        if hasattr(model, "assess"):
            found: NDArray[Any] = model.assess(objects, coverage=self.sets, evidence=self.evidence)
            return found
        P = model.predict_proba(objects)
        dtype = np.dtype([("probabilities", np.float64, (P.shape[1],))])
        plain = np.empty(len(P), dtype=dtype)
        plain["probabilities"] = P
        return plain


def too_few(model: Any) -> str | None:
    """Return a warning if no object can be called novel because there are too few held-out
    objects."""
    reference = getattr(model, "reference_", None)
    if reference is None or reference.novelty.smallest <= model.novel_below:
        return None
    n, needed = len(reference.novelty.scores), int(np.ceil(1 / max(model.novel_below, 1e-9))) - 1
    return (
        f"too few training objects to call new objects novel at {model.novel_below:g}: it takes "
        f"{needed} held-out objects, and there are {n}; fit to more objects, or use krein "
        f"predict --novel-below {np.ceil(1000 * reference.novelty.smallest) / 1000:g}"
    )


def set_cells(assessed: NDArray[Any], names: Sequence[str]) -> list[list[Any]]:
    """Return the labels of each set, joined by |."""
    return [
        ["|".join(name for name, inside in zip(names, row, strict=True) if inside)]
        for row in assessed["set"]
    ]


def evidence_names(n: int) -> tuple[str, ...]:
    """Return the names of the columns for the n nearest known objects."""
    parts = ("nearest", "nearest_label", "nearest_value")
    return tuple(f"{part}_{k}" for k in range(1, n + 1) for part in parts)


def evidence_cells(assessed: NDArray[Any], n: int) -> list[list[Any]]:
    """Return the name (or row), label and value of the n nearest known objects."""
    rows = []
    for why in assessed["why"]:
        row: list[Any] = []
        for near in why.nearest:
            row += [near.name or str(near.index), str(near.label), near.value]
        rows.append(row + [None] * (3 * n - len(row)))
    return rows


def is_classified(row: Sequence[Any], at: Mapping[str, int]) -> bool:
    """Whether the object of a row got a label, that is, is not novel, rejected or unreadable."""
    return row[at["status"]] not in (UNREADABLE, NOVEL) and not row[at["rejected"]]


# -------------------------------------------------------------------------------------------------
# The columns of `krein predict`, in groups, with one function per group.
#
# To add a group, write a function that returns a `Columns`, or None if the model cannot fill it,
# and add a line to `columns_of`.
# -------------------------------------------------------------------------------------------------

OK = "ok"


@dataclass(frozen=True)
class Batch:
    """Objects that were compared, and their predictions."""

    model: Any
    objects: Any
    probabilities: NDArray[np.float64]  # (n, C)
    order: NDArray[np.intp]  # (n, C): classes, the most probable first
    assessed: NDArray[Any]  # (n,): structured, with further predictions of the model

    @classmethod
    def of(cls, model: Any, objects: Any, assessed: NDArray[Any]) -> Batch:
        """Return the batch with its classes sorted by probability."""
        P = assessed["probabilities"]
        return cls(model, objects, P, np.argsort(-P, axis=1, kind="stable"), assessed)

    def place(self, k: int) -> tuple[list[int], list[float]]:
        """Return the k-th most probable class of each object and its probability; k from 0."""
        classes = self.order[:, k]
        rows = np.arange(len(classes))
        return classes.tolist(), self.probabilities[rows, classes].tolist()


class Columns(NamedTuple):
    """Names of columns, and their cells for each object."""

    names: tuple[str, ...]
    cells: Callable[[Batch], Sequence[Sequence[Any]]]


def columns_of(
    model: Any,
    *,
    top: int = 0,
    threshold: float | None = None,
    ranks: tuple[str, float] | None = None,
    every: bool = False,
    asked: Asked | None = None,
) -> list[Columns]:
    """Return the columns that a model can fill.

    With `every`, one of them contains the probabilities of all classes, and one the nearest known
    objects.
    """
    found = [
        label_columns(model),
        rejection_column(threshold),
        *(place_columns(model, k) for k in range(2, top + 1)),
        rank_columns(model, ranks),
        probabilities_column(model) if every else None,
        status_column(),
        novelty_column(model),
        set_column(model, asked),
        neighbours_column(asked) if every else evidence_columns(asked),
    ]
    return [columns for columns in found if columns is not None]


def _names(model: Any) -> list[str]:
    return [str(label) for label in model.classes_.tolist()]


def label_columns(model: Any) -> Columns | None:
    """The best label and the runner-up, each with its probability."""
    names = _names(model)

    def cells(batch: Batch) -> list[list[Any]]:
        (best, p), (second, q) = batch.place(0), batch.place(1)
        return [[names[a], x, names[b], y] for a, x, b, y in zip(best, p, second, q, strict=True)]

    return Columns(("label", "probability", "runner_up", "runner_up_probability"), cells)


def rejection_column(threshold: float | None) -> Columns | None:
    """Whether the best label is less probable than the threshold."""

    def cells(batch: Batch) -> list[list[Any]]:
        return [[threshold is not None and p < threshold] for p in batch.place(0)[1]]

    return Columns(("rejected",), cells)


def place_columns(model: Any, k: int) -> Columns | None:
    """The k-th most probable label; k counts from 1."""
    names = _names(model)
    if k > len(names):
        return None

    def cells(batch: Batch) -> list[list[Any]]:
        return [[names[c], p] for c, p in zip(*batch.place(k - 1), strict=True)]

    return Columns((f"label_{k}", f"probability_{k}"), cells)


def rank_columns(model: Any, ranks: tuple[str, float] | None) -> Columns | None:
    """The deepest rank of a hierarchical label that is probable enough."""
    if ranks is None:
        return None
    from ..core.ranks import Ranks

    separator, above = ranks
    try:
        tree = Ranks.of(_names(model), separator)
    except ValueError as error:
        raise DataError(f"--label-ranks: {error}") from error

    def cells(batch: Batch) -> list[list[Any]]:
        found = zip(*tree.deepest(batch.probabilities, above), strict=True)
        return [[node, float(p), int(rank)] for node, p, rank in found]

    return Columns(("rank_label", "rank_probability", "rank"), cells)


def probabilities_column(model: Any) -> Columns | None:
    """The probability of each class, by its label."""
    names = _names(model)

    def cells(batch: Batch) -> list[list[Any]]:
        return [[dict(zip(names, p, strict=True))] for p in batch.probabilities.tolist()]

    return Columns(("probabilities",), cells)


def status_column() -> Columns | None:
    """The status of a compared object: known, ambiguous or novel if the model can tell."""

    def cells(batch: Batch) -> list[list[Any]]:
        if "status" not in (batch.assessed.dtype.names or ()):
            return [[OK]] * len(batch.probabilities)
        return [[status] for status in batch.assessed["status"].tolist()]

    return Columns(("status",), cells)


def novelty_column(model: Any) -> Columns | None:
    """The p-value for "none of the classes"."""
    if not hasattr(model, "assess"):
        return None
    return Columns(("novelty",), lambda batch: [[p] for p in batch.assessed["novelty"].tolist()])


def set_column(model: Any, asked: Asked | None) -> Columns | None:
    """The labels that cannot be ruled out."""
    if asked is None or asked.sets is None:
        return None
    names = _names(model)
    return Columns(("set",), lambda batch: set_cells(batch.assessed, names))


def evidence_columns(asked: Asked | None) -> Columns | None:
    """The nearest known objects."""
    if asked is None or asked.evidence is None:
        return None
    n = asked.evidence
    return Columns(evidence_names(n), lambda batch: evidence_cells(batch.assessed, n))


def neighbours_column(asked: Asked | None) -> Columns | None:
    """The nearest known objects as a list: name (or row), label and value of the measure."""
    if asked is None or asked.evidence is None:
        return None

    def cells(batch: Batch) -> list[list[Any]]:
        return [
            [
                [
                    {"name": near.name or str(near.index), "label": str(near.label),
                     "value": near.value}
                    for near in why.nearest
                ]
            ]
            for why in batch.assessed["why"]
        ]  # fmt: skip

    return Columns(("evidence",), cells)


# -------------------------------------------------------------------------------------------------
# `--classified-out` and `--unclassified-out`: sort the objects into two files, as Kraken does.
# -------------------------------------------------------------------------------------------------

Files = dict[bool, IO[str] | None]  # by whether the objects in it are classified


class Sorted(Protocol):
    """Sorts objects into two files."""

    def write(self, chunk: Chunk, rows: Sequence[Sequence[Any]], at: Mapping[str, int]) -> None:
        """Record or write the objects of a chunk, given their rows."""

    def finish(self) -> None:
        """Write what remains after the last chunk."""


class SortedSequences:
    """Writes sequences as FASTA while they are read, each with its label."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def write(self, chunk: Chunk, rows: Sequence[Sequence[Any]], at: Mapping[str, int]) -> None:
        """Write the sequences of a chunk."""
        for name, sequence, row in zip(chunk.names, chunk.objects, rows, strict=True):
            classified = is_classified(row, at)
            file = self.files[classified]
            if file is not None:
                label = f" label={row[at['label']]}" if classified else ""
                file.write(f">{name}{label}\n{sequence}\n")

    def finish(self) -> None:
        """Do nothing: everything has been written."""


class SortedLines:
    """Copies the lines of a text file after all objects have been read.

    The reader records the line on which each object begins; it ends where the next one begins.
    Lines before the first object go to both files.
    """

    def __init__(self, source: Source, files: Files) -> None:
        self.source, self.files = source, files
        self._first, self._classified = array("q"), bytearray()

    def write(self, chunk: Chunk, rows: Sequence[Sequence[Any]], at: Mapping[str, int]) -> None:
        """Record the lines of a chunk."""
        if chunk.lines is None:
            raise DataError(
                f"{chunk.path}: --classified-out and --unclassified-out copy lines, but this is "
                f"not a text file; select the rows by name from the output instead"
            )
        self._first.extend(chunk.lines)
        self._classified.extend(is_classified(row, at) for row in rows)

    def finish(self) -> None:
        """Copy the lines."""
        i, to = -1, [self.files[True], self.files[False]]
        max_size = getattr(self.source, "max_size", None)
        for number, text in enumerate(read_lines(self.source.path, max_size), 1):
            if i + 1 < len(self._first) and number == self._first[i + 1]:
                i += 1
                to = [self.files[bool(self._classified[i])]]
            for file in to:
                if file is not None:
                    file.write(text)


@contextmanager
def sorting(
    source: Source, classified: str | None, unclassified: str | None
) -> Iterator[Sorted | None]:
    """Open the files that objects are sorted into, if any."""
    if classified is None and unclassified is None:
        yield None
        return
    if source.kind != "sequences" and source.path == STDIN:
        raise click.UsageError(
            "--classified-out and --unclassified-out read NEW a second time, unless it is FASTA: "
            "save standard input to a file first"
        )
    with ExitStack() as stack:
        paths = {True: classified, False: unclassified}
        files: Files = {
            which: None if path is None else stack.enter_context(writing(path))
            for which, path in paths.items()
        }
        made = SortedSequences(files) if source.kind == "sequences" else SortedLines(source, files)
        yield made
        made.finish()


# -------------------------------------------------------------------------------------------------
# A report in Kraken's format: the number of objects at each label and below it.
#
# It has six tab-separated columns: share in per cent, objects at or below the label, objects at the
# label, rank, identifier (always 0, since labels have none), and name, indented by depth.
# Hierarchical labels (`Bacteria;Firmicutes`) form a tree. Objects that are rejected or unreadable
# count as unclassified.
# -------------------------------------------------------------------------------------------------

Taxon = tuple[str, ...]
SEPARATOR = ";"


class KrakenReport:
    """Counts of labels.

    Examples
    --------
    >>> import sys
    >>> report = KrakenReport()
    >>> for label in ["a;b", "a;c", "a;c", None]:
    ...     report.add(label)
    >>> report.write(sys.stdout) # doctest: +NORMALIZE_WHITESPACE
     25.00  1  1  U   0  unclassified
     75.00  3  0  R   0  root
     75.00  3  0  R1  0    a
     50.00  2  2  R2  0      c
     25.00  1  1  R2  0      b
    """

    def __init__(self) -> None:
        self._own: Counter[Taxon] = Counter()
        self._unclassified = 0

    def add(self, label: str | None) -> None:
        """Count an object by its label, None if it is unclassified."""
        if label is None:
            self._unclassified += 1
        else:
            self._own[tuple(part.strip() for part in label.split(SEPARATOR))] += 1

    def write(self, file: IO[str]) -> None:
        """Write the lines, the largest clades first."""
        total = self._unclassified + self._own.total()

        def line(below: int, own: int, rank: str, name: str) -> str:
            share = 100 * below / total if total else 0.0
            return f"{share:6.2f}\t{below}\t{own}\t{rank}\t0\t{name}\n"

        file.write(line(self._unclassified, self._unclassified, "U", "unclassified"))
        file.write(line(self._own.total(), 0, "R", "root"))
        below: Counter[Taxon] = Counter()
        for path, count in self._own.items():
            for depth in range(1, len(path) + 1):
                below[path[:depth]] += count
        for path in _in_order(below, ()):
            depth = len(path)
            name = "  " * depth + " ".join(path[-1].split())
            file.write(line(below[path], self._own[path], f"R{depth}", name))


def _in_order(below: Counter[Taxon], parent: Taxon) -> Iterator[Taxon]:
    depth = len(parent) + 1
    children = [path for path in below if len(path) == depth and path[:-1] == parent]
    for path in sorted(children, key=lambda path: (-below[path], path)):
        yield path
        yield from _in_order(below, path)


# -------------------------------------------------------------------------------------------------
# Counts of the objects in a run of `krein predict`, by outcome.
# -------------------------------------------------------------------------------------------------


class Counts:
    """Counts of objects by outcome."""

    def __init__(self, names: Sequence[str]) -> None:
        self.at = {name: i for i, name in enumerate(names)}
        self.total = self.rejected = self.unreadable = 0
        self.first_reason = ""
        self.report = KrakenReport()

    def add(self, rows: list[list[Any]]) -> None:
        """Count some rows."""
        for row in rows:
            self.total += 1
            unreadable, rejected = row[self.at["status"]] == UNREADABLE, row[self.at["rejected"]]
            if unreadable and not self.unreadable:
                self.first_reason = row[self.at["reason"]]
            self.unreadable += unreadable
            self.rejected += bool(rejected)
            self.report.add(row[self.at["label"]] if is_classified(row, self.at) else None)
