"""How objects are compared: by the measure that the user asks for, or one that suits them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from ..io import NamedObjects
from ..measures import Combined, Measure
from .messages import message_of
from .options import DataOptions
from .terminal import warn

_NUCLEOTIDES = frozenset("ACGTUN")
_PROTEIN_ALPHABET = frozenset("ACDEFGHIKLMNPQRSTVWYBZXUOJ*")

LONG_TEXT = 1000
"""From this length on, strings are treated as texts, for which edit distances are slow and say
little."""

MATRIX_REMEDIES = ("use --distance", "leave --distance out")
"""Advice for distances read as similarities, and for similarities read as distances."""


@dataclass(frozen=True)
class ChosenMeasure:
    """The measure that compares the objects, and why it was chosen."""

    measure: str
    params: dict[str, Any]
    reason: str = ""
    own: Any = None  # the user's own function or measure

    @property
    def given(self) -> Any:
        """The measure as estimators take it: a name, or the user's own."""
        return self.measure if self.own is None else self.own

    def __str__(self) -> str:
        params = ", ".join(f"{key}={value}" for key, value in self.params.items())
        return self.measure + (f" ({params})" if params else "") + self.reason


def choose_measure(kind: str, sample: Sequence[Any], options: DataOptions) -> ChosenMeasure:
    """Return the requested measure, or one that suits the objects."""
    from ..measures import available, get_measure
    from ..measures.base import read_parameters
    from ..measures.function import FunctionMeasure
    from ..measures.registry import measure_class

    params = options.params()
    if kind == "matrix":
        if params:
            raise click.UsageError("--measure-param needs a measure; a matrix has none")
        if options.distance:
            return ChosenMeasure("precomputed-distance", {}, " (a matrix of distances)")
        return ChosenMeasure("precomputed", {}, " (a matrix of similarities)")
    combined = combined_measure(options)
    if combined is not None:
        told = ", ".join(f"{name}={value}" for name, value in params.items())
        return ChosenMeasure(options.measure or "", {}, f" ({told})" if told else "", combined)
    if options.measure:
        found = ChosenMeasure(options.measure, params, own=own_measure_of(options.measure))
    else:
        found = suggest_measure(kind, sample, params)
    try:
        cls = measure_class(found.measure) if found.measure in available() else FunctionMeasure
        found = replace(found, params=read_parameters(cls, found.params))
        get_measure(found.given, found.params)
    except (ValueError, TypeError) as error:  # an error in the command, not in the data
        message = message_of(error)
        if found.params and found.measure in available():
            given = ", ".join(f"{name}={value}" for name, value in found.params.items())
            message = f"--measure-param {given}: {message}"
        raise click.UsageError(message) from error
    return found


def check_name(measure: str | None) -> None:
    """Refuse a measure of an unknown name; a function of the user's own is not run yet."""
    from ..measures import available, get_measure

    if measure is None or measure.rpartition(":")[0].endswith(".py") or measure in available():
        return
    try:
        get_measure(measure)
    except ValueError as error:
        raise click.UsageError(message_of(error)) from error


def combined_measure(options: DataOptions) -> Combined | None:
    """Return the measure of records that COLUMN=MEASURE,… describes; None for any other text."""
    text = options.measure or ""
    if text.rpartition(":")[0].endswith(".py") or ("=" not in text and text != Combined.name):
        return None
    from ..measures.combined import parse_parts

    try:
        return parse_parts(text, options.params())
    except (ValueError, TypeError) as error:
        raise click.UsageError(f"--measure {text}: {message_of(error)}") from error


def own_measure_of(named: str | None) -> Any:
    """Return the function or measure of `FILE.py:NAME`; None for any other text.

    The file is executed: it is always named by the user, never by data or a model.
    """
    path, _, name = (named or "").rpartition(":")
    if not path.endswith(".py"):
        return None
    from importlib.util import module_from_spec, spec_from_file_location

    if not os.path.isfile(path):
        raise click.UsageError(f"--measure {named}: there is no file {path}")
    spec = spec_from_file_location(os.path.basename(path)[:-3], path)
    assert spec is not None
    assert spec.loader is not None
    # not listed among the modules, so its functions are sent to worker processes by value
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise click.UsageError(f"--measure {named}: {path} cannot be run: {reason}") from error
    found = getattr(module, name, None)
    if found is None or not (callable(found) or isinstance(found, Measure)):
        names = [key for key, value in vars(module).items() if _is_own(value, module)]
        listed = f"; it has {', '.join(names)}" if names else ""
        raise click.UsageError(f"--measure {named}: {path} has no function {name!r}{listed}")
    return found() if isinstance(found, type) and issubclass(found, Measure) else found


def _is_own(value: Any, module: Any) -> bool:
    here = getattr(value, "__module__", None) == module.__name__
    return (callable(value) and here) or isinstance(value, Measure)


def suggest_measure(kind: str, sample: Sequence[Any], params: dict[str, Any]) -> ChosenMeasure:
    """Return the measure that seems to suit the objects best."""
    if kind == "vectors":
        return ChosenMeasure("elm", params, ", because the objects are vectors")
    if kind == "series":
        return ChosenMeasure("dtw", params, ", because the objects are series")
    if kind == "receptors":
        return ChosenMeasure("tcrdist", params, ", because the objects are T-cell receptors")
    letters = Counter(letter for text in sample[:500] for letter in text.upper())
    total = sum(letters.values())
    nucleotides = sum(letters[letter] for letter in _NUCLEOTIDES)
    if kind == "sequences" and nucleotides > 0.95 * total:
        params = {"matrix": "NUC.4.4", **params}
        return ChosenMeasure("smith-waterman", params, ", because the sequences are nucleotides")
    mean = total / min(len(sample), 500)
    upper = all(text.isupper() or kind == "sequences" for text in sample[:500])
    if kind == "sequences" or (mean > 20 and upper and set(letters) <= _PROTEIN_ALPHABET):
        reason = ", because the objects look like protein sequences"
        return ChosenMeasure("smith-waterman", params, reason)
    if mean > LONG_TEXT:
        return ChosenMeasure("compression", params, ", because the objects are long texts")
    return ChosenMeasure("levenshtein", params, ", because the objects are strings")


def check_rule(landmarks: str | None, n_landmarks: int | None) -> None:
    """Refuse a number of landmarks for a rule that determines the number itself."""
    from ..landmarks import get_rule

    if landmarks is None:
        return
    try:
        get_rule(landmarks, n_landmarks)
    except ValueError as error:
        raise click.UsageError(message_of(error)) from error


def warn_of_matrix(chunk: NamedObjects, distance: bool) -> None:
    """Print a warning if a matrix, judging by a sample, looks like the other kind."""
    from ..measures.precomputed import looks_like, mistaken_for, sample_square

    matrix = chunk.objects
    if chunk.kind != "matrix" or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        return
    found = looks_like(sample_square(matrix))
    if mistaken := mistaken_for(found, distance, remedies=MATRIX_REMEDIES):
        warn(f"{chunk.path}: {mistaken}")
