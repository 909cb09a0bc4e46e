"""The protocol of a measure, and what all measures share: how objects are read and identified,
which errors are raised about objects that cannot be compared, and how a measure is found by name.

Objects may come in data frames, columns and tables, which are recognised by duck typing: neither
pandas, Polars nor Arrow is imported.
"""

from __future__ import annotations

import copyreg
import hashlib
import json
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import cache, lru_cache
from importlib import import_module
from inspect import signature
from numbers import Integral, Real
from operator import itemgetter
from os import PathLike
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodType,
    ModuleType,
    UnionType,
)
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import Array, Indices, Kind
from ..wording import parameter
from .alignments import SideBySide, as_words
from .features import FeatureMap, NGrams

Objects = Any  # an array, a list, or a type of the measure's own with len() and [indices]


NUCLEOTIDES = frozenset("ACGTUN")
NUCLEOTIDE_SHARE = 0.95
"""At least this share of the letters of DNA are nucleotides; codes such as R or Y stand for several
of them. For proteins, the share is about a quarter."""


class PairError(ValueError):
    """A pair that could not be compared: `row` and `col` say which, `reason` says why.

    A measure raises it with positions inside its block; the caller that took the block from a
    larger collection raises it again with the positions there.

    Examples
    --------
    >>> from krein.measures import PairError, get_measure
    >>> ratio = get_measure(lambda a, b: a / b)
    >>> try:
    ...     ratio.block([1.0], [2.0, 0.0])
    ... except PairError as error:
    ...     print(error.row, error.col)
    ...
    0 1
    """

    def __init__(self, row: int, col: int, reason: str) -> None:
        super().__init__(row, col, reason)
        self.row, self.col, self.reason = row, col, reason

    def __str__(self) -> str:
        return f"row object {self.row} and column object {self.col}: {self.reason}"


class RefusedObject(ValueError):
    """An object that a measure cannot compare, with its `kind`, its `row` and the `reason`.

    `excerpt` is its beginning, for messages that do not name it in another way.

    `Measure.check` raises it with the position among the objects that it received. Code that reads
    from a file or a partition replaces the position by the origin of the object.

    Examples
    --------
    >>> from krein.measures import RefusedObject, get_measure
    >>> try:
    ...     get_measure("compression").check(["abc", ""])
    ... except RefusedObject as error:
    ...     print(error, error.row, error.reason, sep=" | ")
    ...
    text 1 is empty | 1 | is empty
    """

    def __init__(self, kind: str, row: int, reason: str, excerpt: str = "") -> None:
        super().__init__(kind, row, reason, excerpt)
        self.kind, self.row, self.reason, self.excerpt = kind, int(row), reason, excerpt

    def __str__(self) -> str:
        return self._said(f"{self.kind} {self.row}")

    @property
    def without_row(self) -> str:
        """The message without the position."""
        return self._said(self.kind)

    def _said(self, what: str) -> str:
        return f"{what} ({self.excerpt}) {self.reason}" if self.excerpt else f"{what} {self.reason}"


class RefusedType(RefusedObject, TypeError):
    """An object of a type that the measure cannot compare."""


class Readable(NamedTuple):
    """Which objects a measure can read, and the reasons for the others, by position.

    Examples
    --------
    >>> from krein.measures import get_measure
    >>> mask, reasons = get_measure("levenshtein").readable(["house", None])
    >>> mask.tolist(), reasons
    ([True, False], {1: 'string is None, a NoneType, not a str'})
    """

    mask: NDArray[np.bool_]
    reasons: dict[int, str]


def excerpt(text: str, length: int = 12) -> str:
    """Return the beginning of `text`, in quotes, for an error message."""
    return repr(text if len(text) <= length else text[:length] + "…")


class TimesFirst(np.ndarray):
    """A series whose first axis is known to be time, because its channels came separately.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.base import TimesFirst
    >>> np.zeros((5, 4)).view(TimesFirst).shape
    (5, 4)
    """


def unframed(objects: Any) -> Any:
    """Return the contents of a data frame, a column or a table; anything else unchanged.

    An array with masked entries is refused. A cell of a frame may itself be a series: a single
    column of such cells contains the objects; with several columns, each is a channel.

    Examples
    --------
    >>> import pandas as pd
    >>> from krein.measures.base import unframed
    >>> unframed(pd.DataFrame({"x": [1, 2], "y": [3, 4]}))
    array([[1, 3],
           [2, 4]])
    """
    if isinstance(objects, np.ma.MaskedArray):
        refuse_masked(objects)
        return np.asarray(objects)
    if isinstance(objects, np.ndarray | list | tuple | str | bytes):
        return objects
    columns = _columns(objects)
    if columns is None:
        return _cells(objects) if hasattr(objects, "to_numpy") else objects
    cells = [_cells(column) for column in columns]
    nested = [is_nested(column) for column in cells]
    if any(nested):
        return cells[0] if len(cells) == 1 else channels(cells, nested)
    if hasattr(objects, "to_numpy"):
        return objects.to_numpy()
    return np.column_stack(cells) if cells else np.empty((len(objects), 0))


def as_numbers(item: Any, what: str, row: int, part: str = "") -> NDArray[np.float64]:
    """Return an object as an array of numbers, or raise an error that names it and the `part`."""
    if isinstance(item, np.ma.MaskedArray) and np.ma.is_masked(item):
        reason = f"{part}is partly masked: fill in missing values, or leave it out"
        raise RefusedObject(what, row, reason)
    try:
        given = np.asarray(item)
        if _missing_times(given).any():
            raise RefusedObject(what, row, part + MISSING_TIME)
        return np.ascontiguousarray(given, dtype=np.float64)
    except OverflowError:
        raise RefusedObject(what, row, part + TOO_LARGE) from None
    except RefusedObject:
        raise
    except (TypeError, ValueError) as error:
        raise RefusedType(what, row, f"{part}does not consist of numbers: {error}") from None


def as_stack(objects: Any, what: str) -> NDArray[np.float64]:
    """Return objects of the same shape as one array of numbers, along its first axis.

    Raises a `RefusedObject` about the first one with a missing time (NaT), which would be read as a
    number, or with an integer that is too large.
    """
    given = np.asarray(objects)
    if (missing := _missing_times(given)).any():
        raise RefusedObject(what, np.argwhere(missing)[0][0], MISSING_TIME)
    if given.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what}s are real numbers")
    try:
        return np.asarray(given, dtype=np.float64)
    except OverflowError:
        for row, item in enumerate(given):
            as_numbers(item, what, row)
        raise


LARGEST = 1e150
"""Numbers beyond ±LARGEST are refused like infinities, because their squares overflow."""


def unusable(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which numbers cannot be computed with: NaN, infinite, or beyond `LARGEST`."""
    return ~(np.abs(numbers) <= LARGEST)


def contains(number: float, where: str) -> str:
    """Return what is wrong with an object that contains an unusable number."""
    large = ", too large to compute with: rescale the data" if np.isfinite(number) else ""
    return f"contains {number} {where}{large}"


MISSING_TIME = "contains NaT, a missing time: fill it in, or leave it out"
TOO_LARGE = "contains an integer beyond 10^308, too large to compute with: rescale the data"


def _missing_times(given: NDArray[Any]) -> NDArray[np.bool_]:
    if given.dtype.kind in "mM":
        return np.isnat(given)
    if given.dtype != object:
        return np.zeros(0, dtype=bool)
    times = (np.datetime64, np.timedelta64)
    found = [isinstance(v, times) and bool(np.isnat(v)) for v in given.flat]
    return np.array(found, dtype=bool).reshape(given.shape)


def _columns(objects: Any) -> list[Any] | None:
    """Return the columns of a frame or a table; None if it is neither."""
    if hasattr(objects, "get_columns"):  # Polars
        return list(objects.get_columns())
    if hasattr(objects, "column_names") and hasattr(objects, "columns"):  # Arrow
        return list(objects.columns)
    if hasattr(objects, "iloc") and hasattr(objects, "columns"):  # pandas
        return [objects.iloc[:, j] for j in range(objects.shape[1])]
    return None


def columns_of(objects: Any) -> dict[str, NDArray[Any]] | None:
    """Return the cells of each column of a frame, a table or a structured array, by name.

    None if it is none of these.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.base import columns_of
    >>> columns_of(np.array([("Anna", 31)], dtype=[("name", "U9"), ("age", int)]))
    {'name': array(['Anna'], dtype='<U9'), 'age': array([31])}
    """
    if isinstance(objects, np.ndarray) and objects.dtype.names:
        return {name: objects[name] for name in objects.dtype.names}
    columns = _columns(objects)
    if columns is None:
        return None
    names = [str(name) for name in getattr(objects, "column_names", None) or objects.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two columns are called {twice!r}; rename one of them")
    return {name: _cells(column) for name, column in zip(names, columns, strict=True)}


def _cells(column: Any) -> NDArray[Any]:
    """Return the cells of a column as an array, of dtype object if they are not numbers."""
    options = {"zero_copy_only": False} if hasattr(column, "to_pylist") else {}  # Arrow
    return np.asarray(column.to_numpy(**options))


def is_nested(cells: NDArray[Any]) -> bool:
    """Whether the cells are series, not single values."""
    if cells.dtype != object or cells.ndim > 1:
        return cells.ndim > 1
    known: Any = next((cell for cell in cells if cell is not None), None)
    return not isinstance(known, str | bytes) and np.ndim(known) > 0


def channels(cells: list[NDArray[Any]], nested: list[bool]) -> list[TimesFirst]:
    """Return each row's series, (times, columns)."""
    if not all(nested):
        raise ValueError(
            f"column {nested.index(False)} contains single values, but column {nested.index(True)} "
            "contains series; leave one kind out"
        )
    rows = []
    for row, parts in enumerate(zip(*cells, strict=True)):
        named = [as_numbers(part, "series", row, f"(channel {c}) ") for c, part in enumerate(parts)]
        lengths = sorted(part.size for part in named)
        if lengths[0] != lengths[-1]:
            reason = f"has channels of {lengths[0]} and of {lengths[-1]} values; all channels of "
            raise RefusedObject("series", row, reason + "a series must have the same length")
        rows.append(np.stack([part.ravel() for part in named], axis=1).view(TimesFirst))
    return rows


def take(objects: Objects, indices: Indices | slice) -> Objects:
    """Return the objects at `indices`: rows of an array, or items of a list.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures import take
    >>> take(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if isinstance(objects, list | tuple) and not isinstance(indices, slice):
        return [objects[i] for i in indices]
    return objects[indices]


def refuse_masked(objects: Any, what: str = "object") -> None:
    """Raise a `RefusedObject` if anything is masked: masked entries have no value."""
    if isinstance(objects, np.ma.MaskedArray) and np.ma.is_masked(objects):
        first = np.argwhere(np.ma.getmaskarray(objects))[0]
        reason = "is partly masked: fill in missing values (X.filled(value)), or leave it out"
        raise RefusedObject(what, first[0], reason)


def refuse_unordered(X: Any) -> None:
    """Raise an error if X has no order to match labels and results by, or can be read only once.

    Examples
    --------
    >>> from krein.measures.base import refuse_unordered
    >>> try:
    ...     refuse_unordered({"house", "mouse"})
    ... except TypeError as error:
    ...     print(error)
    ...
    X is a set, and its objects have no order: pass a list, such as sorted(X)
    """
    kind = type(X).__name__
    if hasattr(X, "shape"):  # a sparse matrix of SciPy may be a dict
        return
    if isinstance(X, Mapping):
        raise TypeError(f"X is a {kind}: pass a list of the objects, such as list(X.values())")
    if isinstance(X, Set):
        raise TypeError(f"X is a {kind}, and its objects have no order: pass a list, such as "
                        "sorted(X)")  # fmt: skip
    if isinstance(X, Iterator):
        raise TypeError(f"X is a {kind}, which can be read only once: pass a list, list(X)")


def as_list(objects: Any, what: str) -> list[str]:
    """Return `objects` as a list of strings, or raise an error that names the first that is not
    one.

    Accepts lists, arrays (a single column is flattened) and pandas columns.
    """
    if isinstance(objects, str | bytes):
        raise TypeError(f"got a single {what}; pass a list of {what}s")
    objects = unframed(objects)
    if isinstance(objects, np.ndarray):
        if objects.ndim != 1 and objects.shape[1:] != (1,):
            raise ValueError(f"{what}s must be a list; got an array of shape {objects.shape}")
        objects = objects.ravel().tolist()
    strings = list(objects)
    for row, string in enumerate(strings):
        if not isinstance(string, str):
            raise RefusedType(what, row, f"is {string!r}, a {type(string).__name__}, not a str")
    return strings


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
    >>> from krein.measures.base import measure_class, read_parameters
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
    most_sampled: ClassVar[int | None] = None
    """Maximum size of the sample for landmarks, if not all objects are in memory."""
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

    def landmarks_for(self, objects: Objects, landmarks: Objects) -> Objects:
        """Return the landmarks in a form that these objects can be compared with, or raise an
        error."""
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
        """Return the objects themselves, whose features tell more than their values.

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


def is_missing(value: Any) -> bool:
    """Whether a label or a cell is None, NaN or NA.

    Examples
    --------
    >>> from krein.measures.base import is_missing
    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if value is None:
        return True
    if isinstance(value, str | bytes | np.ndarray | list | tuple):
        return False
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # another collection
        return False


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


# Whether values look like distances or like similarities

LOOKED_AT = 200
"""Number of objects of a matrix that are sampled to see whether its values are distances."""

REMEDIES = ("set measure='precomputed-distance'", "set measure='precomputed'")


class KindWarning(UserWarning):
    """Values declared as similarities look like distances, or the other way round.

    Examples
    --------
    >>> import warnings
    >>> from krein.compare import open_pairs
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = open_pairs("precomputed", [[0, 1, 2], [1, 0, 2], [2, 2, 0]])
    >>> print(caught[0].message)
    This looks like a matrix of distances (its diagonal is 0 and nothing is negative): set \
measure='precomputed-distance'.
    """


def looks_like(values: Array) -> str | None:
    """Return what a square matrix looks like: "distance", "similarity" or None.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.base import looks_like
    >>> looks_like(1 - np.eye(3)), looks_like(np.eye(3)), looks_like(-np.eye(3))
    ('distance', 'similarity', None)
    """
    if len(values) < 3:
        return None
    diagonal = np.diag(values)
    others = values[~np.eye(len(values), dtype=bool)]
    scale = np.abs(values).max()
    if scale > 0 and np.abs(diagonal).max() <= 1e-9 * scale and others.min() >= 0:
        return "distance"
    if (diagonal >= values.max(axis=1)).mean() > 0.9 and diagonal.min() > 0:
        return "similarity"
    return None


def mistaken_for(
    found: str | None, distance: bool, remedies: tuple[str, str] = REMEDIES
) -> str | None:
    """Return a warning if a matrix looks like the other kind.

    `found` is what the values look like; `remedies` are the advice for distances and similarities.
    """
    if found == "distance" and not distance:
        return (
            "This looks like a matrix of distances (its diagonal is 0 and nothing is negative): "
            f"{remedies[0]}."
        )
    if found == "similarity" and distance:
        return (
            "This looks like a matrix of similarities (every object is most similar to itself): "
            f"{remedies[1]}."
        )
    return None


def sample_square(matrix: NDArray[Any]) -> Array:
    """Return the values between up to `LOOKED_AT` objects of a square matrix."""
    n = len(matrix)
    some = np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(int))
    return np.asarray(matrix[np.ix_(some, some)], dtype=np.float64)


# -------------------------------------------------------------------------------------------------
# Measures by name
# -------------------------------------------------------------------------------------------------

_REGISTRY = {
    "balls": "vectors:Balls",
    "combined": "combined:Combined",
    "compression": "compression:Compression",
    "damerau": "strings:Damerau",
    "dtw": "series:DTW",
    "elm": "vectors:ELM",
    "erp": "series:ERP",
    "euclidean": "vectors:Euclidean",
    "hausdorff": "sets:Hausdorff",
    "jaro-winkler": "strings:JaroWinkler",
    "jensen-shannon": "vectors:JensenShannon",
    "lcs": "strings:LCS",
    "levenshtein": "strings:Levenshtein",
    "linear": "vectors:Linear",
    "manhattan": "vectors:Manhattan",
    "modified-hausdorff": "sets:ModifiedHausdorff",
    "msm": "series:MSM",
    "needleman-wunsch": "sequences:NeedlemanWunsch",
    "numeric-edit": "series:NumericEdit",
    "rbf": "vectors:RBF",
    "sigmoid": "vectors:Sigmoid",
    "smith-waterman": "sequences:SmithWaterman",
    "symmetric-kl": "vectors:SymmetricKL",
    "tangent": "images:Tangent",
    "tcrdist": "tcr:TCRdist",
    "tl1": "vectors:TL1",
}

_PRECOMPUTED: dict[str, Kind] = {
    "precomputed": "similarity",
    "precomputed-distance": "dissimilarity",
}
"""Names for precomputed values, and their kinds."""

_EXTRAS = {"sequences": "bio", "strings": "text", "series": "series", "tcr": "series"}
"""The extra of krein that installs the optional dependencies of each module."""


def available() -> list[str]:
    """Return the names of the measures, sorted.

    >>> "elm" in available()
    True
    """
    return sorted(_REGISTRY)


def get_measure(measure: Any, params: dict[str, Any] | None = None) -> Measure:
    """Return the measure for a name, a `Measure` or a function.

    `measure` is a name from `available()`, a `Measure`, which is returned unchanged, or a plain
    function of two objects; `params` are the parameters of a named measure, or describe the
    function (`kind`, `psd`, see `krein.measures.function.FunctionMeasure`).

    Examples
    --------
    >>> from krein.measures import get_measure
    >>> get_measure("smith-waterman", {"gap_open": 5})
    SmithWaterman(matrix='auto', gap_open=5, gap_extend=1, normalize=True, unknown_letters='map', \
both_strands=False)
    """
    if isinstance(measure, Measure):
        if params:
            raise ValueError(
                "measure_params need a measure given by name; this one has its own parameters"
            )
        return measure
    if callable(measure) and not isinstance(measure, type):
        from .function import FunctionMeasure

        return _build(FunctionMeasure, {"function": measure, **(params or {})}, "a function")
    if isinstance(measure, str) and measure in _PRECOMPUTED:
        from .precomputed import Precomputed

        if params:
            named = parameter("measure", repr(measure))
            raise ValueError(f"measure_params cannot be used with {named}: {params}")
        return Precomputed(_PRECOMPUTED[measure])
    if not isinstance(measure, str) or measure not in _REGISTRY:
        raise ValueError(
            f"unknown measure {measure!r}; choose one of {', '.join(available())}, "
            "a function of two objects, or 'precomputed' or 'precomputed-distance' "
            "for a matrix of values"
        )
    return _build(measure_class(measure), params or {}, f"the measure {measure!r}")


def measure_class(name: str) -> type[Measure]:
    """Return the class of a measure, given a name from `available()`."""
    module, _, attribute = _REGISTRY[name].partition(":")
    try:
        found: type[Measure] = getattr(import_module(f".{module}", __package__), attribute)
    except ModuleNotFoundError as missing:
        if module not in _EXTRAS or (missing.name or "").startswith("krein"):
            raise
        raise ImportError(
            f"the measure {name!r} needs the package {missing.name!r}, which is not installed: "
            f'pip install "krein[{_EXTRAS[module]}]"'
        ) from missing
    return found


def _build(cls: type[Measure], params: dict[str, Any], called: str) -> Measure:
    """Return `cls(**params)`, or raise an error that names the unknown or missing parameter."""
    known = signature(cls).parameters  # including alternative names
    for name in params:
        if name not in known:
            allowed = ", ".join(field for field in known if field != "function") or "none"
            elsewhere = " (symmetrize belongs to the estimator)" if name == "symmetrize" else ""
            raise ValueError(
                f"{called} has no parameter {name!r}{elsewhere}; its parameters: {allowed}"
            )
    for name, about in known.items():
        if about.default is about.empty and name not in params:
            raise ValueError(f"{called} needs the parameter {name!r}")
    return cls(**params)


# -------------------------------------------------------------------------------------------------
# Fingerprints: objects with equal contents have equal fingerprints, in any process.
#
# A fingerprint is a hash of type and contents; that of a container is a hash of the fingerprints
# of its parts. The parts of sets and mappings are ordered by their fingerprints, because their
# own order changes from one process to the next. Other objects are described by what they can be
# rebuilt from, `__reduce_ex__`: for a plain class, its name and the attributes; for a class
# written in C, whatever it provides. Objects that provide nothing (a lock, an open file, a
# generator) are refused.
#
# Neither `joblib.hash` nor a hash of `pickle` or `marshal` output would do: these depend on whether
# equal parts are shared, on file names and line numbers of code, and on the order of its constant
# sets, which changes from one process to the next.
# -------------------------------------------------------------------------------------------------

SIZE = 16
"""Bytes of a fingerprint."""


def fingerprint(item: Any) -> bytes:
    """Return `SIZE` bytes for the contents of `item`. O(size of the item).

    Raises a `TypeError` if the item cannot be identified by its contents.
    """
    try:
        return _plain(item) or _Walk().part(item)
    except Exception as error:
        raise TypeError(
            f"a cache identifies objects by their contents, but those of a "
            f"{type(item).__name__} cannot be read: {error}"
        ) from error


def _hash(tag: str, *parts: bytes) -> bytes:
    """Return the hash of the parts, with boundaries between them, and of the tag."""
    digest = hashlib.blake2b(tag.encode(), digest_size=SIZE)
    for part in parts:
        digest.update(b"|" + len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def _plain(item: Any) -> bytes | None:
    """Return the fingerprint of an item without parts, or None."""
    kind = type(item)
    if kind is str or kind is np.str_:
        return _hash("text", item.encode("utf-8", "surrogatepass"))
    if kind in (bytes, bytearray, memoryview, np.bytes_):
        return _hash("bytes", bytes(item))
    if item is None or kind in (bool, int, float, complex):
        return _hash(kind.__name__, repr(item).encode())
    scalar = isinstance(item, np.generic)
    # other subclasses of arrays contain more than numbers, e.g. a mask or a unit
    if (scalar or kind in (np.ndarray, np.memmap)) and not item.dtype.hasobject:
        about = str(item.dtype.descr) if item.dtype.names else item.dtype.str
        contents = item.tobytes() if scalar or not item.dtype.itemsize else _buffer(item)
        return _hash(f"{'scalar' if scalar else 'array'} {about} {item.shape}", contents)
    return None


def _buffer(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b""


def _name(thing: Any) -> bytes:
    where = getattr(thing, "__module__", None)
    return f"{where}.{getattr(thing, '__qualname__', thing.__name__)}".encode()


class _Walk:
    """One traversal of an object and everything that it contains.

    Every container is visited once. A container without a reference back to one of its own
    containers is identified by its contents, wherever and however often it occurs. A member of a
    reference cycle is identified by the number of its visit.
    """

    def __init__(self) -> None:
        self.visits: dict[int, tuple[int, Any]] = {}  # keeps items alive, so ids stay unique
        self.finished: dict[int, bytes] = {}
        self.furthest = 0  # earliest visit referred to since the current container began

    def part(self, item: Any) -> bytes:
        """Return the fingerprint of `item`."""
        plain = _plain(item)
        if plain is not None:
            return plain
        if id(item) in self.finished:
            return self.finished[id(item)]
        if id(item) in self.visits:
            number = self.visits[id(item)][0]
            self.furthest = min(self.furthest, number)
            return _hash("again", str(number).encode())
        number = len(self.visits)
        self.visits[id(item)] = (number, item)
        before, self.furthest = self.furthest, number
        digest = self._whole(item)
        if self.furthest >= number:
            self.finished[id(item)] = digest
        self.furthest = min(before, self.furthest)
        return digest

    def parts(self, items: Iterable[Any]) -> list[bytes]:
        """Return the fingerprints of the items, in their order."""
        return [self.part(item) for item in items]

    def _whole(self, item: Any) -> bytes:
        kind: Any = type(item)
        if kind in (list, tuple):
            return _hash(kind.__name__, *self.parts(item))
        if kind is dict:
            return _hash("dict", *self._pairs(item.items()))
        if isinstance(item, set | frozenset):
            state = self.part(item.__reduce__()[2])
            return _hash("set", _name(kind), state, *sorted(self.parts(item)))
        if kind is np.ndarray:  # of objects
            return _hash(f"objects {item.dtype}{item.shape}", *self.parts(item.ravel().tolist()))
        if isinstance(item, type | ModuleType):
            return _hash("name", item.__name__.encode() if kind is ModuleType else _name(item))
        if isinstance(item, CodeType):
            return self._code(item)
        if isinstance(item, FunctionType):
            return self._function(item)
        if isinstance(item, MethodType):
            return _hash("method", *self.parts([item.__func__, item.__self__]))
        if isinstance(item, BuiltinFunctionType):
            owner = item.__self__
            return _hash("builtin", _name(item), self.part(owner) if owner is not None else b"")
        written = callable(item) and isinstance(kind.__call__, FunctionType)
        if callable(item) and not written and hasattr(item, "__wrapped__"):
            # wrappers of numba or functools.cache: their contents change with every process or call
            return _hash("wrapper", _name(kind), self.part(item.__wrapped__))
        return self._object(item, _behaviour(kind) if written else b"")

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> list[bytes]:
        """Return the fingerprints of a mapping's items, ordered by the fingerprints of the keys."""
        pairs = sorted(((self.part(key), value) for key, value in items), key=itemgetter(0))
        return [digest for key, value in pairs for digest in (key, self.part(value))]

    def _code(self, code: CodeType) -> bytes:
        # its file name and line numbers do not affect what it computes
        about = (
            (code.co_code, code.co_consts, code.co_names, code.co_freevars, code.co_cellvars),
            (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
            # the names of arguments are part of how it is called
            code.co_varnames[: code.co_argcount + code.co_kwonlyargcount],
            getattr(code, "co_exceptiontable", b""),
        )
        return _hash("code", self.part(about))

    def _function(self, function: FunctionType) -> bytes:
        """Return the fingerprint of code, defaults and everything that the function closes over."""
        cells = [self._cell(cell) for cell in function.__closure__ or ()]
        about = (function.__code__, function.__defaults__, function.__kwdefaults__)
        return _hash("function", _name(function), *self.parts(about), *cells)

    def _cell(self, cell: Any) -> bytes:
        try:
            contents = cell.cell_contents
        except ValueError:  # not filled yet
            return b""
        return self.part(contents)

    def _object(self, item: Any, behaviour: bytes) -> bytes:
        kind = type(item)
        own = copyreg.dispatch_table.get(kind)
        reduced: Any = item.__reduce_ex__(4) if own is None else own(item)
        if isinstance(reduced, str):
            return _hash("global", _name(kind), reduced.encode(), behaviour)
        padded: list[Any] = [*reduced, None, None, None]
        maker, arguments, state, listed, mapped = padded[:5]
        named = isinstance(maker, type | FunctionType | BuiltinFunctionType)
        made = _name(maker) if named else self.part(maker)
        digests = [_name(kind), made, behaviour, self.part(arguments), self.part(state)]
        for items, pairs in ((listed, False), (mapped, not isinstance(item, OrderedDict))):
            found = list(items) if items is not None else []
            digests.append(_hash("items", *(self._pairs(found) if pairs else self.parts(found))))
        return _hash("object", *digests)


@lru_cache(maxsize=256)
def _behaviour(kind: type) -> bytes:
    """Return the fingerprint of the functions of a class of callable objects, and of the plain
    values that the class contains.
    """
    walk, digests = _Walk(), []
    for base in kind.__mro__[:-1]:
        for name, member in sorted(vars(base).items()):
            for part in ("__func__", "fget"):
                member = getattr(member, part, member)
            plain = None if name.startswith("__") else _plain(member)
            if isinstance(member, FunctionType):
                digests += [name.encode(), walk.part(member.__code__)]
            elif plain is not None:
                digests += [name.encode(), plain]
    return _hash("class", *digests)
