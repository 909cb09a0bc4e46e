"""From options to objects: open the data, find their labels, and leave out what is not used."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from ..core.shapes import Indices
from ..io import DataError, NamedObjects, Source, open_source
from ..io.labels import PatternLabels
from ..io.layout import Layout, LayoutSource
from ..io.source import RecordSource
from ..io.streams import UnreadableObjectError, read_once
from ..measures.objects import take
from .classes import describe_small, small_classes, warn_of_single
from .measure import ChosenMeasure, check_name, choose_measure, combined_measure, warn_of_matrix
from .messages import message_of, printable
from .options import DataOptions
from .terminal import say


def open_input(options: DataOptions) -> Source:
    """Open the data; the options for the measure determine how a table of numbers is read."""
    columns = _check_reading(options)
    wanted = options.input_format
    if options.distance and wanted is None:
        wanted = "matrix"
    how: dict[str, Any] = {
        "objects": columns or options.objects,
        "names": options.names,
        "labels": options.labels,
        "label_pattern": options.label_pattern,
        "header": False if options.no_header else None,
        "max_size": options.max_size,
        "skip_unlabelled": options.skip_unlabelled,
    }
    try:
        source = open_source(options.data, format=wanted, **how)
    except ValueError as error:
        if not options.distance or isinstance(error, DataError):
            raise
        raise click.UsageError(f"--distance is for a matrix; {message_of(error)}") from error
    if options.distance and source.kind != "matrix":
        raise DataError(
            f"{source.shown}: --distance is for a matrix, but the file contains {source.kind}"
        )
    if options.measure is not None and source.kind == "matrix" and wanted is None:
        # a measure needs objects; a matrix already contains values
        if not source.rereadable:
            raise click.UsageError("state the format of standard input with --input-format")
        source = open_source(options.data, format="vectors", **how)
    if source.kind == "matrix":
        from ..measures.precomputed import KindWarning

        # the commands say it in terms of their options; filters last until the command ends
        warnings.simplefilter("ignore", KindWarning)
    return _skipping_unreadable(source) if options.skip_unreadable else source


def _check_reading(options: DataOptions) -> list[str] | None:
    """Refuse options that cannot be used together, before anything is read.

    Returns the columns of records, if the measure names them.
    """
    if options.distance and options.measure is not None:
        raise click.UsageError("--distance is for a matrix, which cannot be used with --measure")
    if options.label_pattern is not None:
        try:
            PatternLabels(options.label_pattern)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    combined = combined_measure(options)
    if combined is None:
        check_name(options.measure)
        return None
    if options.objects is not None:
        raise click.UsageError(
            "--objects cannot be used with --measure COLUMN=MEASURE, which names the columns"
        )
    return list(combined.columns)


@dataclass(frozen=True)
class LabelledObjects:
    """The objects of DATA that models learn from, with their labels, and how they are compared."""

    chunk: NamedObjects
    whole: bool
    """Whether the chunk contains all objects; otherwise, only the first ones, of which there are
    too many for memory."""
    source: Source  # which yields these objects, without those that were left out
    measure: ChosenMeasure
    labels: list[str]


def read_labelled(data: DataOptions, *, in_chunks: bool = False) -> LabelledObjects:
    """Read the objects of DATA, choose a measure for them, and say which are left out.

    `in_chunks`, only the first objects of a large file are read.
    """
    source = open_input(data)
    chunk, whole = _first_objects(source) if in_chunks else (source.read(), True)
    require_labels(chunk, source, whole=False)
    chosen = choose_measure(source.kind, chunk.objects, data)
    chunk, source = leave_out_unreadable(chunk, source, chosen, whole=whole)
    chunk, source = leave_out_small_classes(chunk, source, data.min_class_size, whole=whole)
    labels = require_labels(chunk, source, whole=whole)
    warn_of_matrix(chunk, data.distance)
    return LabelledObjects(chunk, whole, source, chosen, labels)


def _first_objects(source: Source) -> tuple[NamedObjects, bool]:
    """Return the objects and True, or the first ones and False if there are too many for memory."""
    from ..data.dataset import IN_MEMORY_OBJECTS

    if source.kind == "matrix" or not source.rereadable:
        return source.read(), True
    first = next(iter(source.chunks(IN_MEMORY_OBJECTS + 1)))
    return (first, False) if len(first) > IN_MEMORY_OBJECTS else (source.read(), True)


# Objects that cannot be compared


def _skipping_unreadable(source: Source) -> Source:
    """Return a source that leaves out the records that cannot be read."""
    if source.kind == "matrix" or not isinstance(source, RecordSource):
        raise click.UsageError(
            f"--skip-unreadable is for objects in text and tables, not for {source.shown}"
        )
    return source.changed(leave_out=_unreadable_records)


def _unreadable_records(chunk: NamedObjects) -> Iterable[int]:
    return chunk.unreadable


def leave_out_unreadable(
    chunk: NamedObjects,
    source: Source,
    chosen: ChosenMeasure,
    *,
    like: NamedObjects | None = None,
    whole: bool = True,
) -> tuple[NamedObjects, Source]:
    """Leave out the objects that cannot be compared, here and in later passes; name the first.

    Returns the other objects, and the source that yields only them.

    Records that cannot be read have been left out of the chunk already. The chunk `like` decides
    what the measure compares, if it is not this one.
    """
    from ..measures import get_measure

    if source.leave_out is None:
        return chunk, source
    n = source.n_dropped
    decisive = (like or chunk).objects
    measure = get_measure(chosen.given, chosen.params).decide(decisive)

    def unusable(part: NamedObjects) -> set[int]:
        return {*part.unreadable, *measure.readable(part.objects).reasons}

    source = source.changed(leave_out=unusable)
    unused = unusable(chunk)
    if not unused and not n:
        return chunk, source
    if len(unused) == len(chunk):
        raise DataError(f"{source.shown}: none of its {len(chunk) + n:,} objects can be compared")
    first = ""
    if unused:
        try:
            measure.check(take(chunk.objects, np.array([min(unused)])))
        except (ValueError, TypeError) as error:
            first = f", such as {chunk.located(error, min(unused))}"
    said = unreadable(n + len(unused) if whole else None) + first
    say("left out", printable(said, 280), err=True)
    return chunk.keeping([i for i in range(len(chunk)) if i not in unused]), source


def unreadable(n: int | None) -> str:
    """Return a description of n objects that are left out; None if their number is not known."""
    number = "" if n is None else f"{n:,} "
    return f"{number}{'object' if n == 1 else 'objects'} that cannot be read or compared"


@contextmanager
def naming_skip_unreadable() -> Iterator[None]:
    """Add the option that leaves out an object that cannot be read to the error about it."""
    try:
        yield
    except UnreadableObjectError as error:
        raise DataError(f"{error}; --skip-unreadable leaves such objects out") from error


@contextmanager
def locating(chunk: NamedObjects) -> Iterator[None]:
    """Turn an error about the i-th object of a chunk into one that names its place in the file."""
    try:
        yield
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        raise chunk.located(error) from error


# Columns of vectors


def column_names(source: Source) -> list[str] | None:
    """Return the names of the columns of vectors, if a table names them all."""
    layout: Layout | None = getattr(source, "layout", None)
    if source.kind != "vectors" or layout is None or not layout.heading:
        return None
    if layout.content != "vectors":
        return None
    names = [layout.columns[i] for i in layout.objects]
    return names if all(names) and len(set(names)) == len(names) else None


def match_columns(source: Source, wanted: Sequence[str], chosen: bool) -> Source:
    """Return a source of vectors with the columns that a model was fitted to, or refuse.

    Columns that the user has chosen are left as they are.
    """
    found = column_names(source)
    if found is None or found == list(wanted):
        return source
    layout: Layout = source.layout  # type: ignore[attr-defined]
    missing = [name for name in wanted if layout.columns.count(name) != 1]
    if missing or (chosen and set(found) != set(wanted)):
        expected, got = (
            ", ".join(printable(name, 30) for name in names[:20]) + (" …" if names[20:] else "")
            for names in (wanted, found)
        )
        raise DataError(
            f"{source.shown}: the model was fitted to the columns {expected}; this file has {got}"
        )
    objects = [layout.columns.index(name) for name in wanted]
    return source.changed(layout=replace(layout, objects=objects))


# Labels


def how_to_label(source: Source) -> str:
    """Return the options that say where the labels are, with the columns of a table."""
    if source.kind == "sequences":
        return "--labels FILE or --label-pattern REGEX"
    listed = ""
    if isinstance(source, LayoutSource) and source.layout.heading:
        layout = source.layout
        others = [name for i, name in enumerate(layout.columns) if i not in layout.objects]
        more = ", …" if len(others) > LISTED_COLUMNS else ""
        listed = ", ".join(map(repr, others[:LISTED_COLUMNS])) + more
    column = f"COLUMN ({listed}; or a file)" if listed else "COLUMN (or a file)"
    return f"--labels {column}, or --label-pattern REGEX"


LISTED_COLUMNS = 12
"""Number of columns that a message lists."""


def require_labels(chunk: NamedObjects, source: Source, *, whole: bool = True) -> list[str]:
    """Return the labels; refuse objects without labels, and a single class."""
    if chunk.labels is None:
        raise DataError(f"{source.shown}: there are no labels; use {how_to_label(source)}")
    if whole and len(set(chunk.labels)) < 2:
        raise DataError(f"{source.shown}: all objects have the label {chunk.labels[0]!r}")
    return chunk.labels


def leave_out_small_classes(
    chunk: NamedObjects, source: Source, least: int | None, *, whole: bool = True
) -> tuple[NamedObjects, Source]:
    """Leave out the classes with fewer objects than `least`, and say what was left out.

    Returns the other objects, and the source that yields only them. Of a file that does not fit in
    memory (not `whole`), the labels are counted in one more pass.
    """
    counts = Counter(chunk.labels)
    if not whole and (least or source.labels.skip):
        counts = Counter(label for part in source.chunks(4096) for label in part.labels or ())
    parts, unlabelled = [], source.n_unlabelled
    if unlabelled:
        objects = "object" if unlabelled == 1 else "objects"
        parts.append(f"{unlabelled:,} {objects} without a label")
    small = small_classes(counts, least)
    if small and chunk.labels is not None:
        source = source.changed(labels=source.labels.without(small))
        chunk = chunk.keeping([i for i, label in enumerate(chunk.labels) if label not in small])
        if not len(chunk):
            raise DataError(f"{source.shown}: all classes have fewer than {least} objects")
        parts.append(describe_small(small, least))
    if parts:
        say("left out", "; ".join(parts), err=True)
    warn_of_single([label for label, n in counts.items() if n == 1 and label not in small], counts)
    return chunk, source


# Groups

COMPUTED_GROUPS = ("identity:", "cdr3:")
"""Beginnings of groups that are computed, not read."""


def check_group_option(data: DataOptions) -> None:
    """Refuse groups that cannot be read, before the work starts."""
    if data.groups is None:
        return
    if data.groups.startswith(COMPUTED_GROUPS):
        from ..evaluation.groups import parse_identity

        try:
            parse_identity(data.groups)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    elif read_once(data.data):
        raise click.UsageError(
            "--groups needs to read the data twice, which standard input and pipes do not allow: "
            "save the data to a file"
        )


def read_groups(data: DataOptions, found: LabelledObjects) -> str | list[str] | None:
    """Return the groups of the objects that were not left out, by their lines or names.

    Groups that are computed stay as they were given.
    """
    groups = data.groups
    if groups is None or groups.startswith(COMPUTED_GROUPS):
        return groups
    source, chunk = found.source, found.chunk
    how = replace(data, labels=groups, label_pattern=None, skip_unlabelled=False)
    everything = open_input(how).read()
    source.refuse_changes()
    if everything.labels is None or len(everything) == len(chunk):
        return everything.labels
    named = dict(zip(everything.lines or everything.names, everything.labels, strict=True))
    return [named[key] for key in chunk.lines or chunk.names]


def say_groups(codes: Indices, spent: str = "") -> None:
    """Print the number of groups, given that of each object, and the size of the largest."""
    sizes = np.bincount(codes)
    largest = f"the largest of {sizes.max():,} objects"
    say("groups", f"{len(sizes):,} groups, {largest}, held out together{spent}")
