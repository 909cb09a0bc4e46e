"""From options to objects: the source, its labels, and a suitable measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from ..io import Chunk, DataError, Source, open_source
from ..io.labels import PatternLabels
from ..io.tables import Layout
from .options import parse_params, told
from .output import printable

_NUCLEOTIDES = frozenset("ACGTUN")
_AMINO_ACIDS = frozenset("ACDEFGHIKLMNPQRSTVWYBZXUOJ*")


LONG = 1000
"""From this length on, strings are treated as texts, for which edit distances are slow and say
little."""


@dataclass(frozen=True)
class Comparison:
    """How objects are compared, and why."""

    measure: str
    params: dict[str, Any]
    reason: str

    def __str__(self) -> str:
        params = ", ".join(f"{key}={value}" for key, value in self.params.items())
        return self.measure + (f" ({params})" if params else "") + self.reason


def open_data(
    path: str,
    *,
    objects: str | None,
    names: str | None,
    input_format: str | None,
    no_header: bool,
    max_size: int | None = None,
    labels: str | None = None,
    label_pattern: str | None = None,
    measure: str | None = None,
    distance: bool = False,
) -> Source:
    """Open the data; the options for the measure determine how a table of numbers is read."""
    if distance and measure is not None:
        raise click.UsageError("--distance is for a matrix, which cannot be used with --measure")
    options: dict[str, Any] = {
        "objects": objects,
        "names": names,
        "labels": labels,
        "label_pattern": label_pattern,
        "header": False if no_header else None,
        "max_size": max_size,
    }
    asked = "matrix" if distance and input_format is None else input_format
    if label_pattern is not None:
        try:
            PatternLabels(label_pattern)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    try:
        source = open_source(path, format=asked, **options)
    except ValueError as error:
        if not distance or isinstance(error, DataError):
            raise
        raise click.UsageError(f"--distance is for a matrix; {told(error)}") from error
    if distance and source.kind != "matrix":
        raise DataError(
            f"{source.shown}: --distance is for a matrix, but the file contains {source.kind}"
        )
    if measure is not None and source.kind == "matrix" and asked is None:
        # a measure needs objects; a matrix already contains values
        if not source.rereadable:
            raise click.UsageError("state the format of standard input with --input-format")
        source = open_source(path, format="vectors", **options)
    return source


def column_names(source: Source) -> list[str] | None:
    """Return the names of the columns of vectors, if a table names them all."""
    layout: Layout | None = getattr(source, "layout", None)
    if source.kind != "vectors" or layout is None or not layout.heading:
        return None
    if layout.content != "vectors":
        return None
    names = [layout.columns[i] for i in layout.objects]
    return names if all(names) and len(set(names)) == len(names) else None


def match_columns(source: Source, wanted: Sequence[str], chosen: bool) -> None:
    """Read the columns of vectors in the order in which a model was fitted to them, or refuse.

    Columns that the user has chosen are left as they are.
    """
    found = column_names(source)
    if found is None or found == list(wanted):
        return
    layout: Layout = source.layout  # type: ignore[attr-defined]
    missing = [name for name in wanted if layout.columns.count(name) != 1]
    if missing or (chosen and set(found) != set(wanted)):
        raise DataError(
            f"{source.shown}: the model was fitted to the columns {_listed(wanted)}; this file "
            f"has {_listed(found)}"
        )
    objects = [layout.columns.index(name) for name in wanted]
    source.layout = replace(layout, objects=objects)  # type: ignore[attr-defined]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(printable(name, 30) for name in names[:20]) + (" …" if names[20:] else "")


def labelled(chunk: Chunk, source: Source, *, whole: bool = True) -> list[str]:
    """Return the labels, or raise an error that says how to give them; a single class is
    refused."""
    if chunk.labels is None:
        how = "--labels FILE or --label-pattern REGEX"
        if chunk.kind not in ("sequences",):
            how = "--labels COLUMN (or a file), or --label-pattern REGEX"
        raise DataError(f"{source.shown}: there are no labels; use {how}")
    if whole and len(set(chunk.labels)) < 2:
        raise DataError(f"{source.shown}: all objects have the label {chunk.labels[0]!r}")
    return chunk.labels


def choose_measure(
    kind: str, sample: Sequence[Any], measure: str | None, given: tuple[str, ...], distance: bool
) -> Comparison:
    """Return the requested measure, or one that suits the objects."""
    params = parse_params(given)
    if kind == "matrix":
        if params:
            raise click.UsageError("--measure-param needs a measure; a matrix has none")
        if distance:
            return Comparison("precomputed-distance", {}, " (a matrix of distances)")
        return Comparison("precomputed", {}, " (a matrix of similarities)")
    found = Comparison(measure, params, "") if measure else suggest_measure(kind, sample, params)
    check_measure(found)
    return found


def suggest_measure(kind: str, sample: Sequence[Any], params: dict[str, Any]) -> Comparison:
    """Return the measure that seems to suit the objects best."""
    if kind == "vectors":
        return Comparison("elm", params, ", because the objects are vectors")
    if kind == "series":
        return Comparison("dtw", params, ", because the objects are series")
    letters = Counter(letter for text in sample[:500] for letter in text.upper())
    total = sum(letters.values())
    nucleotides = sum(letters[letter] for letter in _NUCLEOTIDES)
    if kind == "sequences" and nucleotides > 0.95 * total:
        params = {"matrix": "NUC.4.4", **params}
        return Comparison("smith-waterman", params, ", because the sequences are nucleotides")
    mean = total / min(len(sample), 500)
    upper = all(text.isupper() or kind == "sequences" for text in sample[:500])
    if kind == "sequences" or (mean > 20 and upper and set(letters) <= _AMINO_ACIDS):
        return Comparison(
            "smith-waterman", params, ", because the objects look like protein sequences"
        )
    if mean > LONG:
        return Comparison("compression", params, ", because the objects are long texts")
    return Comparison("levenshtein", params, ", because the objects are strings")


def check_measure(comparison: Comparison) -> None:
    """Refuse an unknown measure or parameter: an error in the command, not in the data."""
    from ..measures import get_measure

    try:
        get_measure(comparison.measure, comparison.params)
    except (ValueError, TypeError) as error:
        message, params = told(error), comparison.params
        if params and not any(name in message for name in params):
            given = ", ".join(f"{name}={value}" for name, value in params.items())
            message = f"--measure-param {given}: {message}"
        raise click.UsageError(message) from error


def check_rule(landmarks: str | None, n_landmarks: int | None) -> None:
    """Refuse a number of landmarks for a rule that determines the number itself."""
    from ..landmarks import get_rule

    if landmarks is None:
        return
    try:
        get_rule(landmarks, n_landmarks)
    except ValueError as error:
        raise click.UsageError(told(error)) from error


def describe_classes(labels: Sequence[str]) -> str:
    """Return the number of classes, and the largest and smallest of them with their counts.

    >>> describe_classes(["a", "a"]), describe_classes(["a", "b", "a"])
    ('1 class: a (2)', '2 classes: a (2), b (1)')
    """
    counts = Counter(labels).most_common()
    shown = [f"{printable(name, 30)} ({count:,})" for name, count in counts]
    if len(shown) > 6:
        shown = [*shown[:3], "…", *shown[-2:]]
    return f"{len(counts)} {'class' if len(counts) == 1 else 'classes'}: {', '.join(shown)}"


# -------------------------------------------------------------------------------------------------
# Handle and count letters of new sequences that the scoring matrix of a model does not contain.
# -------------------------------------------------------------------------------------------------

POLICIES = ("X", "skip", "fail")
"""Replace each letter by X, skip the whole sequence, or end the run.

In a measure, `unknown_letters="skip"` leaves out the letters only (`krein.measures.sequences`).
"""


class LetterPolicy:
    """Reads letters that are not scored, and counts the sequences that contain some.

    `policy` is one of `POLICIES`, or None for the default (`krein.measures.sequences`).
    """

    def __init__(self, matrix: str, policy: str | None) -> None:
        from ..measures.sequences import get_scoring

        self.alphabet = get_scoring(matrix).alphabet
        self.policy = {None: "map", "X": "X"}.get(policy, "fail")
        self.done: Counter[str] = Counter()
        self.n_mapped = 0

    def read(self, chunk: Chunk) -> tuple[list[Any], dict[int, str]]:
        """Return the sequences in the letters that are scored, and why some are skipped."""
        from ..measures.sequences import UnreadableSequence

        objects, reasons = list(chunk.objects), dict[int, str]()
        for i, given in enumerate(objects):
            done: Counter[str] = Counter()
            if isinstance(given, str):
                try:
                    objects[i] = self.alphabet.read(given, self.policy, done)
                except UnreadableSequence as error:
                    reasons[i] = f"{chunk.where(i)}: {error.reason}"
            if done:
                self.n_mapped += 1
                self.done += done
        return objects, reasons

    def told(self) -> str:
        """Return a message about the letters that were replaced."""
        how = ", ".join(f"{what} ({n:,})" for what, n in self.done.most_common())
        sequences = "1 sequence" if self.n_mapped == 1 else f"{self.n_mapped:,} sequences"
        return printable(
            f"{sequences} contained letters that {self.alphabet.name} does not score: {how} "
            "(--unknown-letters)",
            300,
        )


def letters_of(measure: Any, policy: str | None) -> LetterPolicy | None:
    """Return the letter policy for a measure that aligns sequences; None for any other measure.

    A model fitted with its own rule for unknown letters keeps it unless `policy` is given.
    """
    rule = getattr(measure, "unknown_letters", None)
    if rule is None or (policy is None and rule != "map"):
        return None
    return LetterPolicy(measure.matrix, policy)
