"""How objects are read, and the errors about those that cannot be compared.

Data frames, columns and tables are recognised by duck typing: neither pandas, Polars nor Arrow is
imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import Indices
from ..wording import article, kind_of

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
    ([True, False], {1: 'string is None, not a string'})
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
    >>> from krein.measures.objects import TimesFirst
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
    >>> from krein.measures.objects import unframed
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
    >>> from krein.measures.objects import columns_of
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
    >>> from krein.measures.objects import refuse_unordered
    >>> try:
    ...     refuse_unordered({"house", "mouse"})
    ... except TypeError as error:
    ...     print(error)
    ...
    X is a set, and its objects have no order: pass a list, such as sorted(X)
    """
    kind = article(type(X).__name__)
    if hasattr(X, "shape"):  # a sparse matrix of SciPy may be a dict
        return
    if isinstance(X, Mapping):
        raise TypeError(f"X is {kind}: pass a list of the objects, such as list(X.values())")
    if isinstance(X, Set):
        raise TypeError(f"X is {kind}, and its objects have no order: pass a list, such as "
                        "sorted(X)")  # fmt: skip
    if isinstance(X, Iterator):
        raise TypeError(f"X is {kind}, which can be read only once: pass a list, list(X)")


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
            raise RefusedType(what, row, f"is {kind_of(string)}, not a string")
    return strings


def is_missing(value: Any) -> bool:
    """Whether a label or a cell is None, NaN or NA.

    Examples
    --------
    >>> from krein.measures.objects import is_missing
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
