"""The protocol of a measure: what it declares, its parameters, and what it may replace."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import cache
from numbers import Integral, Real
from os import PathLike
from types import UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import Array, Indices, Kind
from ..wording import parameter
from .alignments import SideBySide, as_words
from .features import FeatureMap, NGrams
from .fingerprints import fingerprint
from .objects import (
    Objects,
    PairError,
    Readable,
    RefusedObject,
    refuse_masked,
    refuse_unordered,
    take,
    unframed,
)


def plain(value: Any) -> Any:
    """Convert NumPy numbers to Python numbers, also within lists; return anything else
    unchanged."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if type(value) in (list, tuple):
        return type(value)(plain(part) for part in value)
    return str(value) if isinstance(value, np.str_) else value


# -------------------------------------------------------------------------------------------------
# Parameters of measures, checked against their annotations
# -------------------------------------------------------------------------------------------------

_MOST = 1e300
"""Largest number that a parameter may be."""

_IN_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


@cache
def parameter_types(cls: type[Measure]) -> dict[str, Any]:
    """Return the annotation of each parameter; none if those of a user's class mean nothing."""
    try:
        found = get_type_hints(cls)
    except (NameError, TypeError):
        return {}
    return {field.name: found[field.name] for field in fields(cls)}


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a parameter has a type; only plain types are checked."""
    if hint in (bool, str):
        return type(value) is hint
    if hint in (int, float):
        return isinstance(value, int | float) and type(value) is not bool and abs(value) <= _MOST
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    return value is None if hint is type(None) else True


def _wanted(name: str, hint: Any, value: Any) -> ValueError:
    """Return the error about a parameter of another type."""
    listed: list[str] = []
    for one in _alternatives(hint):
        if get_origin(one) is Literal:
            listed += map(str, get_args(one))
        elif one is not type(None):
            listed.append(_IN_WORDS.get(one, "a list"))
    return ValueError(f"{name} must be {' or '.join(listed)}; got {str(value)[:60]!r}")


def read_parameters(cls: type[Measure], given: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters from text, such as options of the command, by their annotations.

    Examples
    --------
    >>> from krein.measures.base import read_parameters
    >>> from krein.measures.registry import measure_class
    >>> read_parameters(measure_class("levenshtein"), {"normalize": "False"})
    {'normalize': False}
    """
    hints = parameter_types(cls)
    return {name: _read_parameter(name, text, hints.get(name, Any)) for name, text in given.items()}


def _read_parameter(name: str, text: str, hint: Any) -> Any:
    meanings: dict[str, Any] = {"true": True, "false": False, "none": None, "null": None}
    readings: list[Any] = [text]
    if text.lower() in meanings:
        readings.insert(0, meanings[text.lower()])
    else:
        with suppress(ValueError, RecursionError):  # a number, a list, or text in quotes
            readings.insert(0, json.loads(text))
    for reading in readings:
        if any(_fits(reading, one) for one in _alternatives(hint)):
            return reading
    raise _wanted(name, hint, text)


@dataclass(frozen=True)
class Measure(ABC):
    """A function of two objects, evaluated one block of pairs at a time.

    A subclass is a frozen dataclass. Its fields are the parameters of the measure: plain values
    that can be written to JSON. It declares what is known about the measure, so that no method has
    to guess. If it defines `__post_init__`, this must begin with `super().__post_init__()`, which
    converts NumPy parameters to Python numbers, and refuses those of other types than annotated.

    Examples
    --------
    >>> from krein.measures import get_measure
    >>> measure = get_measure("levenshtein", {"normalize": True})
    >>> measure.kind, measure.psd, measure.params()
    ('dissimilarity', False, {'normalize': True})
    """

    name: ClassVar[str]
    """Its name in the registry."""
    kind: ClassVar[Kind]
    """Whether a larger value means more alike or less alike."""
    symmetric: ClassVar[bool] = True
    """Whether `block(A, B)` is the transpose of `block(B, A)`."""
    one_direction: ClassVar[bool] = True
    """Whether the measure is known to be symmetric, so that averaging both directions is
    pointless."""
    psd: ClassVar[bool | None] = None
    """Whether it is known to be positive semi-definite (for a dissimilarity: Euclidean)."""
    releases_gil: ClassVar[bool] = False
    """Whether several threads are faster than one."""
    expensive: ClassVar[bool] = True
    """Whether a pair costs more than the arithmetic on its value."""
    accepts: ClassVar[str] = "objects"
    """The type of X for scikit-learn: "objects" of any kind, "vectors", or precomputed "values"."""
    cacheable: ClassVar[bool] = True
    """Whether finished blocks are worth storing; not if the values are precomputed."""
    self_value: ClassVar[float | None] = None
    """The value of any object with itself, if it is the same for all of them."""
    positive: ClassVar[tuple[str, ...]] = ()
    """Names of parameters that must be above 0, or None."""
    columns: ClassVar[tuple[str, ...] | None] = None
    """Names of the columns of a table that it compares; None if its objects are not records."""
    mirrored: ClassVar[bool] = True
    """Whether half of a symmetric block may be copied from the other half."""
    reads_files: ClassVar[bool] = False
    """Whether `check` accepts the path of a file or a large memory map, and reads it block by
    block."""
    block_pairs: ClassVar[int] = 2**18
    """Number of pairs per block: enough to make the cost of a call negligible, and few enough to
    distribute among threads, to fit in the processor's cache, and to lose little in a crash."""

    def __post_init__(self) -> None:
        types = parameter_types(type(self))
        for field in fields(self):
            value, hint = plain(getattr(self, field.name)), types.get(field.name, Any)
            if value is not field.default and not any(_fits(value, x) for x in _alternatives(hint)):
                raise _wanted(field.name, hint, value)
            object.__setattr__(self, field.name, value)
        for name in self.positive:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0; got {value}")

    @property
    def title(self) -> str:
        """What reports call it."""
        return self.name

    def undecided(self) -> bool:
        """Whether a parameter is still to be chosen from the training objects, by `decide`."""
        return False

    def decide(self, objects: Any) -> Self:
        """Return the measure with all parameters set, choosing those left open for these objects.

        A fitted model keeps it, so that new objects are compared in the same way as the training
        objects.
        """
        return self

    @abstractmethod
    def check(self, objects: Any) -> Objects:
        """Return the objects in the form that `block` expects: an array (objects along the first
        axis) or a list. Raise a `RefusedObject` if one of them is invalid.
        """

    def check_part(self, objects: Any) -> Objects:
        """Like `check`, for one chunk of many: a warning has the same text for every chunk."""
        return self.check(objects)

    def readable(self, objects: Any, others: Objects | None = None) -> Readable:
        """Return which objects can be compared, and why the others cannot.

        Each object is checked separately, so that an invalid one does not affect the others. With
        `others` (returned by `check`, for example landmarks), the objects must also be comparable
        with those; without, with the first valid object.

        Examples
        --------
        >>> from krein.measures import get_measure
        >>> found = get_measure("dtw").readable([[0.0, 1.0], [], [2.0]])
        >>> found.mask
        array([ True, False,  True])
        >>> found.reasons
        {1: 'series is empty'}
        """
        if self.undecided():
            return self.decide(objects).readable(objects, others)
        objects = unframed(objects)
        reasons, first = {}, None  # the first valid object, which the others must match
        try:
            self._check_with(objects, others)
        except (TypeError, ValueError):
            for i in range(len(objects)):
                try:
                    one = self._check_with(objects[i : i + 1], others)
                    if first is not None:
                        self.check_alike(one, first)
                    first = one if first is None else first
                except RefusedObject as error:  # its row refers to this single object
                    reasons[i] = error.without_row
                except (TypeError, ValueError) as error:
                    reasons[i] = str(error)
        return Readable(np.array([i not in reasons for i in range(len(objects))], bool), reasons)

    def _check_with(self, objects: Any, others: Objects | None) -> Objects:
        checked = self.check(objects)
        if others is not None:
            self.landmarks_for(checked, others)
        return checked

    def check_alike(self, A: Objects, B: Objects) -> None:  # noqa: B027 - most have no such rule
        """Raise a `ValueError` if objects returned by `check` cannot be compared with others."""

    @abstractmethod
    def block(self, A: Objects, B: Objects) -> Array:
        """Return the (len(A), len(B)) values of the measure, for objects returned by `check`."""

    def diagonal(self, A: Objects) -> Array:
        """Return the (len(A),) values of each object with itself."""
        if self.self_value is not None:
            return np.full(len(A), self.self_value)
        each = (take(A, np.array([i])) for i in range(len(A)))
        return np.array([self.block(a, a)[0, 0] for a in each], dtype=np.float64)

    def check_symmetry(self, objects: Objects, symmetrize: bool) -> tuple[Objects, int]:
        """Return the training objects, and the number of pairs compared to check the measure on
        them.

        Raises an error if the two directions of a pair differ and `symmetrize` is not set.
        """
        if not self.symmetric and not symmetrize:
            raise ValueError(
                f"the measure {self.name!r} is not symmetric; {parameter('symmetrize', True)} "
                f"uses the average of both directions, at twice the comparisons"
            )
        return objects, 0

    def among(self, objects: Objects, indices: Indices, others: Indices, n_objects: int) -> Objects:
        """Return the objects at `indices` in the form in which they are compared with those at
        `others`."""
        return objects

    def keep(self, objects: Objects, indices: Indices, n_objects: int) -> Objects:
        """Return the landmarks at `indices` in the form that a fitted model stores."""
        return objects

    def with_each_other(self, objects: Objects, kept: Objects) -> Objects:
        """Return what the landmarks are compared with to compute the values between them."""
        return objects

    def landmarks_for(
        self, objects: Objects, landmarks: Objects, *, known: bool = False
    ) -> Objects:
        """Return the landmarks in a form that these objects can be compared with, or raise an
        error. With `known`, they are the known objects of a second look."""
        self.check_alike(objects, landmarks)
        return landmarks

    def at_hand(self, objects: Objects) -> bool:
        """Whether all values are already in memory, so that reading them costs nothing."""
        return False

    def comparable(self, objects: Objects) -> bool:
        """Whether these training objects can be compared with each other."""
        return True

    def corner_block(self, A: Objects, B: Objects) -> tuple[Array, int]:
        """Return the values of A with B, which begins with the objects of A, and how many pairs
        were compared.

        The measure is symmetric, so values below the diagonal can be mirrored. By default, all
        pairs are compared; a measure that compares one pair at a time saves half of the corner.
        """
        values = self.block(A, B)
        return values, values.size

    def each(self, A: Objects, B: Objects, columns: Indices) -> Array:
        """Return the values (n, k) of object i of A with the objects `columns[i]` of B.

        The second look uses this: every object has its own candidates. The default computes one row
        at a time; a measure with expensive calls may override it.
        """
        values = np.empty(columns.shape)
        for i, row in enumerate(columns):
            try:
                values[i] = self.block(take(A, np.array([i])), take(B, row))[0]
            except PairError as error:
                raise PairError(i, error.col, error.reason) from error
        return values

    def side_by_side(self, a: Any, b: Any) -> SideBySide:
        """Return a side-by-side view of two objects returned by `check`, to explain their value.

        Depending on the measure, this is an alignment, two curves with their warping path, or two
        pictures; otherwise numbers or text.
        """
        return as_words(a, b)

    def contents(self, objects: Objects) -> Objects | None:
        """Return the objects themselves, from which features can be computed.

        None if there are only values.
        """
        return None if self.accepts == "values" else objects

    def feature_map(
        self, contents: Objects, rng: np.random.Generator, *, nearest: bool = False
    ) -> tuple[FeatureMap, Any] | None:
        """Return features fitted to the contents of training objects, and those of these objects.

        None if such objects have no features. The default is n-grams of strings. `nearest` is for
        features that find similar objects.
        """
        if len(contents) and all(isinstance(item, str | bytes) for item in contents):
            return NGrams.fit_transform(contents, nearest=nearest)
        return None

    def as_given(self, contents: Objects) -> Objects:
        """Return objects in the form in which they were given, from their contents."""
        return contents

    def random_objects(
        self, objects: Objects, sizes: Array, rng: np.random.Generator
    ) -> Objects | None:
        """Return objects of about these sizes (n,), made of parts drawn from the given objects.

        Parts are letters, or points in time or space. They show how near a new object is to known
        ones by chance alone. The result does not depend on the order of the objects. The default
        is None, for objects that cannot be made up.
        """
        return None

    def _in_order(self, objects: Objects) -> list[Any]:
        """Return the objects in an order that depends on their contents alone."""
        order = np.argsort(self.content_keys(objects), kind="stable")
        return [objects[i] for i in order]

    def content_keys(self, objects: Objects, first: int = 0) -> NDArray[np.uint64]:
        """Return one number (N,) per object that depends on its contents, not its position.

        If the contents cannot be hashed (for example, an open file), the position is used, counted
        from `first`.
        """
        try:
            found = b"".join(fingerprint(item)[:8] for item in objects)
        except TypeError:
            return first + np.arange(len(objects), dtype=np.uint64)
        return np.frombuffer(found, dtype=np.uint64)

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, for a model file or a fingerprint."""
        return {name: plain(value) for name, value in asdict(self).items()}


def random_strings(letters: str, sizes: Array, rng: np.random.Generator) -> list[str] | None:
    """Return strings of these lengths (n,), with letters drawn independently from a string."""
    if not letters:
        return None
    drawn = (rng.integers(len(letters), size=max(1, round(size))) for size in sizes.tolist())
    return ["".join(letters[i] for i in places) for places in drawn]


def random_arrays(points: Array, sizes: Array, rng: np.random.Generator) -> list[Array]:
    """Return arrays of these sizes (n,), with rows drawn independently from `points` (N, d)."""
    N, d = points.shape
    return [points[rng.integers(N, size=max(1, round(size / d)))] for size in sizes.tolist()]


def checked_objects(measure: Measure, X: Any) -> Objects:
    """Return the objects in the measure's form: one per row of X, and at least one."""
    refuse_unordered(X)
    refuse_masked(X)
    given = _count(X)
    objects = measure.check(X) if given != 0 else []  # measures would report that differently
    if given is not None and len(objects) != given:
        raise ValueError(
            f"X has {given} rows, but the measure {measure.name!r} read {len(objects)} objects"
        )
    if len(objects) == 0:
        raise ValueError("there are no objects to compare")
    return objects


def _count(X: Any) -> int | None:
    """Return the number of objects in X; None if it is not known before they are read."""
    if isinstance(X, str | bytes | PathLike):
        return None
    if shape := getattr(X, "shape", None):
        return int(shape[0])
    try:
        return len(X)
    except TypeError:
        return None
