"""Several columns, one object: a weighted sum of measures over the columns of records.

A record is a row of a table: a dict, a row of a data frame or of a structured array, or a tuple.
Every part of a `Combined` measure compares one column, or several, with a measure of its own:

    k(a, b) = Σ wₖ · kₖ(aₖ, bₖ)

A sum of kernels is a kernel; a sum of Euclidean distances need not be Euclidean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import Array, Indices, Kind
from ..wording import kind_of
from .alignments import ComparedPart, Parts, SideBySide
from .base import Measure, read_parameters
from .features import FeatureMap, RecordFeatures
from .objects import (
    Objects,
    PairError,
    Readable,
    RefusedObject,
    RefusedType,
    channels,
    columns_of,
    excerpt,
    is_missing,
    is_nested,
    take,
)
from .registry import available, get_measure, measure_class


class RecordPart(NamedTuple):
    """One part of a record: its measure, and the columns that contain its objects."""

    name: str
    measure: Measure
    columns: tuple[str, ...]

    @property
    def called(self) -> str:
        """The columns, for a message."""
        return ("column " if len(self.columns) == 1 else "columns ") + listed(self.columns)


def listed(names: Sequence[Any], most: int = 12) -> str:
    """Return some names in quotes, for a message."""
    return ", ".join(repr(str(name)) for name in names[:most]) + (" …" if names[most:] else "")


@dataclass(frozen=True)
class Records:
    """Records as `Combined` compares them: the objects of each part, in the form of its measure.

    One of them is a dict with the object of each part.
    """

    names: tuple[str, ...]
    columns: tuple[Objects, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            return dict(zip(self.names, (column[key] for column in self.columns), strict=True))
        return replace(self, columns=tuple(take(column, key) for column in self.columns))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.names, row, strict=True)) for row in zip(*self.columns, strict=True))

    def of(self, name: str) -> Objects:
        """Return the objects of one part."""
        return self.columns[self.names.index(name)]

    def __add__(self, other: Records) -> Records:
        both = zip(self.columns, other.columns, strict=True)
        return replace(self, columns=tuple(_concatenated(a, b) for a, b in both))


def _concatenated(a: Objects, b: Objects) -> Objects:
    arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    if arrays and a.shape[1:] == b.shape[1:]:
        return np.concatenate([a, b])
    return [*a, *b]


@dataclass(frozen=True)
class Combined(Measure):
    """Weighted sum of measures over the columns of records: Σ wₖ · kₖ(aₖ, bₖ).

    A record is a dict, a row of a data frame (pandas, Polars), of an Arrow table or of a structured
    array, or a tuple with the columns in the order in which the parts name them. A record without
    one of the columns, or with an empty cell, is refused. The cost of a pair is that of all parts.

    Parameters
    ----------
    parts : dict
        What is compared, by name: a measure, or a pair of a measure and its columns. The measure is
        a name, a `Measure`, or a function of two cells. Without columns, the part compares the
        column of its own name. Several columns form a vector, a series, or for "tcrdist" a receptor
        (V gene and CDR3 of each chain, in this order). All parts must be similarities, or all
        dissimilarities. In a model file, a part is a dict of `measure`, `params` and `columns`.
    weights : dict, sequence or None, default=None
        The factor wₖ of each part, above 0, by name or in the order of the parts; parts that a dict
        leaves out have the weight 1. None weights all parts by 1. The values of the parts are not
        rescaled, so the weights should reflect their units.

    See Also
    --------
    krein.measures.vectors.Euclidean : A dissimilarity of numbers, to be combined with others.
    krein.measures.function.FunctionMeasure : Any function of two objects.

    Examples
    --------
    >>> from krein.measures import Combined
    >>> people = Combined({"name": "levenshtein", "age": "euclidean"}, weights={"age": 0.1})
    >>> table = people.check([{"name": "Anna", "age": 31}, {"name": "Anne", "age": 51}])
    >>> people.block(table[:1], table)
    array([[0., 3.]])

    Parts with parameters, and with several columns:

    >>> from krein.measures.strings import Levenshtein
    >>> cities = Combined(
    ...     {"name": Levenshtein(normalize=True), "place": ("euclidean", ["lat", "lon"])},
    ...     weights=[1, 0.5],
    ... )
    >>> cities.columns
    ('name', 'lat', 'lon')
    """

    parts: Any
    weights: Any = None

    name = "combined"

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = _parts(self.parts)
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "weights", _weights(self.weights, parts))
        one = parts[0]
        other = next((part for part in parts if part.measure.kind != one.measure.kind), None)
        if other is not None:
            raise ValueError(
                f"{one.name!r} ({one.measure.name}) is a {one.measure.kind} and {other.name!r} "
                f"({other.measure.name}) a {other.measure.kind}, but all parts must be of one kind:"
                " levenshtein, euclidean and dtw are dissimilarities; jaro-winkler, lcs, manhattan "
                "and rbf are similarities"
            )

    # -- what is known about the sum ---------------------------------------------------------------

    @property
    def measures(self) -> list[Measure]:
        """The measures of the parts."""
        return [part.measure for part in self.parts]

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        """The kind of the parts, which is the same for all of them."""
        return self.measures[0].kind

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns of a table that are compared, in the order of the parts."""
        return tuple(dict.fromkeys(column for part in self.parts for column in part.columns))

    @property
    def psd(self) -> bool | None:  # type: ignore[override]
        """For a single part, that of the part; otherwise True if all parts are kernels, or None."""
        if len(self.parts) == 1:
            return self.measures[0].psd
        kernels = self.kind == "similarity" and all(m.psd for m in self.measures)
        return True if kernels else None

    @property
    def self_value(self) -> float | None:  # type: ignore[override]
        """The weighted sum of the parts' self-values, if all have one."""
        found = [m.self_value for m in self.measures]
        if any(value is None for value in found):
            return None
        return float(sum(w * v for w, v in zip(self.weights, found, strict=True)))

    symmetric = property(lambda self: all(m.symmetric for m in self.measures))
    one_direction = property(lambda self: all(m.one_direction for m in self.measures))
    releases_gil = property(lambda self: all(m.releases_gil for m in self.measures))
    expensive = property(lambda self: any(m.expensive for m in self.measures))
    mirrored = property(lambda self: all(m.mirrored for m in self.measures))
    block_pairs = property(lambda self: min(m.block_pairs for m in self.measures))

    @property
    def title(self) -> str:
        """The columns, their measures and their weights: "name=levenshtein, age=euclidean*0.1"."""
        found = []
        for part, w in zip(self.parts, self.weights, strict=True):
            own = [f for f in fields(part.measure) if getattr(part.measure, f.name) != f.default]
            told = ", ".join(f"{f.name}={getattr(part.measure, f.name)}" for f in own)
            factor = "" if w == 1 else f"*{w:g}"
            called = part.measure.title + (f"({told})" if told else "")
            found.append(f"{'+'.join(part.columns)}={called}{factor}")
        return ", ".join(found)

    def params(self) -> dict[str, Any]:
        """Return the parts and weights by name, as plain values."""
        parts = {
            part.name: {
                "measure": part.measure.name,
                "params": part.measure.params(),
                "columns": list(part.columns),
            }
            for part in self.parts
        }
        names = [part.name for part in self.parts]
        return {"parts": parts, "weights": dict(zip(names, self.weights, strict=True))}

    # -- reading records ---------------------------------------------------------------------------

    def undecided(self) -> bool:
        """Whether a parameter of a part is still to be chosen."""
        return any(m.undecided() for m in self.measures)

    def decide(self, objects: Any) -> Self:
        """Return the measure with the parameters of all parts set, for these records."""
        if not self.undecided():
            return self
        try:
            cells = self._cells(objects)
        except RefusedObject:  # others may do; `check` reports this one
            cells = self._cells([item for item in rows_of(objects) if self._complete(item)])
        decided = [
            part._replace(measure=part.measure.decide(own))
            for part, own in zip(self.parts, cells, strict=True)
        ]
        return replace(self, parts=tuple(decided))

    def _complete(self, item: Any) -> bool:
        try:
            self._cells([item])
        except RefusedObject:
            return False
        return True

    def check(self, objects: Any) -> Objects:
        """Return the objects of each part, in the form of its measure."""
        return self._checked(objects, part=False)

    def check_part(self, objects: Any) -> Objects:
        """Return the records of one chunk; warnings have the same text for every chunk."""
        return self._checked(objects, part=True)

    def readable(self, objects: Any, others: Objects | None = None) -> Readable:
        """Return which records can be compared, and why the others cannot."""
        return super().readable(rows_of(objects), others)

    def check_alike(self, A: Objects, B: Objects) -> None:
        """Raise an error if the objects of a part cannot be compared with others."""
        for part, a, b in zip(self.parts, A.columns, B.columns, strict=True):
            try:
                part.measure.check_alike(a, b)
            except ValueError as error:
                raise ValueError(f"{part.called}: {error}") from error

    def _checked(self, objects: Any, part: bool) -> Records:
        found = []
        for column, cells in zip(self.parts, self._cells(objects), strict=True):
            check = column.measure.check_part if part else column.measure.check
            try:
                found.append(check(cells))
            except RefusedObject as error:
                reason = f"cannot be compared in {column.called}: its {error.without_row}"
                raise type(error)("record", error.row, reason) from error
            except (TypeError, ValueError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"{column.called}: {error}") from error
        return Records(tuple(column.name for column in self.parts), tuple(found))

    def _cells(self, objects: Any) -> list[Any]:
        """Return the objects of each part, as its measure can read them."""
        names = tuple(part.name for part in self.parts)
        if isinstance(objects, Records) and objects.names == names:
            return list(objects.columns)
        table = columns_of(objects)
        if table is None:
            return self._cells_of_rows(rows_of(objects))
        for column in self.columns:
            if column not in table:
                raise ValueError(
                    f"there is no column {column!r}; the columns are {listed(list(table))}"
                )
        return [_joined(part, [table[column] for column in part.columns]) for part in self.parts]

    def _cells_of_rows(self, rows: list[Any]) -> list[Any]:
        records = [self._record(item, row) for row, item in enumerate(rows)]
        found: list[Any] = []
        for part in self.parts:
            cells: list[NDArray[Any]] = [np.empty(len(rows), object) for _ in part.columns]
            whole = [_is_whole(part, record) for record in records]
            if all(whole) and whole:
                found.append([record[part.name] for record in records])
                continue
            for row, record in enumerate(records):
                for place, column in enumerate(part.columns):
                    if column not in record or whole[row]:
                        reason = f"has no {column!r}; its columns are {listed(list(record))}"
                        raise RefusedObject("record", row, reason)
                    cells[place][row] = record[column]
            found.append(_joined(part, cells))
        return found

    def _record(self, item: Any, row: int) -> Mapping[str, Any]:
        """Return a record as a mapping."""
        if isinstance(item, Mapping):
            return item
        if isinstance(item, np.void) and item.dtype.names:
            return {name: item[name] for name in item.dtype.names}
        if hasattr(item, "_asdict"):  # a named tuple
            return item._asdict()
        if hasattr(item, "keys"):  # a row of pandas
            return {str(key): item[key] for key in item.keys()}  # noqa: SIM118
        if isinstance(item, tuple | list | np.ndarray):
            if len(item) != len(self.columns):
                reason = f"has {len(item)} values; its columns are {listed(self.columns)}"
                raise RefusedObject("record", row, reason)
            return dict(zip(self.columns, item, strict=True))
        reason = f"is {kind_of(item)}, not a record with the columns {listed(self.columns)}"
        raise RefusedType("record", row, reason)

    # -- comparing ---------------------------------------------------------------------------------

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the weighted sums."""
        values = np.zeros((len(A), len(B)))
        for part, w, a, b in zip(self.parts, self.weights, A.columns, B.columns, strict=True):
            with _naming(part):
                values += w * part.measure.block(a, b)
        return values

    def each(self, A: Objects, B: Objects, columns: Indices) -> Array:
        """Return the values (n, k) of record i of A with the records `columns[i]` of B."""
        values = np.zeros(columns.shape)
        for part, w, a, b in zip(self.parts, self.weights, A.columns, B.columns, strict=True):
            with _naming(part):
                values += w * part.measure.each(a, b, columns)
        return values

    def diagonal(self, A: Objects) -> Array:
        """Return the value of each record with itself."""
        values = np.zeros(len(A))
        for part, w, a in zip(self.parts, self.weights, A.columns, strict=True):
            with _naming(part):
                values += w * part.measure.diagonal(a)
        return values

    def contents(self, objects: Objects) -> Objects:
        """Return the contents of each part."""
        parts = zip(self.measures, objects.columns, strict=True)
        return replace(objects, columns=tuple(one.contents(own) for one, own in parts))

    def as_given(self, contents: Objects) -> Objects:
        """Return the objects of each part as they were given."""
        parts = zip(self.measures, contents.columns, strict=True)
        return replace(contents, columns=tuple(one.as_given(own) for one, own in parts))

    def feature_map(
        self, contents: Objects, rng: np.random.Generator, *, nearest: bool = False
    ) -> tuple[FeatureMap, Any] | None:
        """Return the features of those parts that have any."""
        found = {
            part.name: part.measure.feature_map(own, rng, nearest=nearest)
            for part, own in zip(self.parts, contents.columns, strict=True)
        }
        known = {name: mapped for name, mapped in found.items() if mapped is not None}
        return RecordFeatures.of(known) if known else None

    def check_symmetry(self, objects: Objects, symmetrize: bool) -> tuple[Objects, int]:
        """Check each part, and return the records with the number of pairs compared."""
        spent = 0
        for part, own in zip(self.parts, objects.columns, strict=True):
            with _naming(part):
                spent += part.measure.check_symmetry(own, symmetrize)[1]
        return objects, spent

    def side_by_side(self, a: Any, b: Any) -> SideBySide:
        """Return the parts one below the other, each with its share of the value."""
        pair = self.check([a, b])
        found = []
        for part, w, objects in zip(self.parts, self.weights, pair.columns, strict=True):
            one, other = take(objects, slice(0, 1)), take(objects, slice(1, 2))
            value = float(part.measure.block(one, other)[0, 0])
            beside = part.measure.side_by_side(objects[0], objects[1])
            found.append(ComparedPart(part.name, part.measure.name, part.columns, w, value, beside))
        return Parts(tuple(found))


@contextmanager
def _naming(part: RecordPart) -> Iterator[None]:
    """Name the columns in an error about a pair."""
    try:
        yield
    except PairError as error:
        raise PairError(error.row, error.col, f"{part.called}: {error.reason}") from error


# Parts and weights, as the user or a file gives them


def _parts(given: Any) -> tuple[RecordPart, ...]:
    if isinstance(given, tuple) and given and all(isinstance(part, RecordPart) for part in given):
        return given
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            "parts must be a dict of at least one measure, such as {'name': 'levenshtein', "
            f"'place': ('euclidean', ['lat', 'lon'])}}; got {excerpt(str(given), 60)}"
        )
    return tuple(_part(name, part) for name, part in given.items())


def _part(name: Any, given: Any) -> RecordPart:
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a part must be text; got {name!r}")
    params, columns = None, [name]
    if isinstance(given, Mapping):
        if not set(given) <= {"measure", "params", "columns"} or "measure" not in given:
            raise ValueError(f"the part {name!r} must have a measure, and may have params and "
                             f"columns; got {excerpt(str(given), 60)}")  # fmt: skip
        params, columns = given.get("params"), given.get("columns", columns)
        given = given["measure"]
    elif isinstance(given, tuple | list) and len(given) == 2:
        given, columns = given
    columns = [columns] if isinstance(columns, str) else columns
    texts = isinstance(columns, Sequence) and all(isinstance(c, str) and c for c in columns)
    if not texts or not columns or len(set(columns)) < len(columns):
        raise ValueError(
            f"the columns of the part {name!r} must be different names; got {columns!r}"
        )
    try:
        measure = get_measure(given, params)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the part {name!r}: {error}") from error
    if measure.accepts == "values" or isinstance(measure, Combined):
        raise ValueError(
            f"the part {name!r} cannot be {measure.name!r}: a part compares the cells of a column"
        )
    return RecordPart(name, measure, tuple(columns))


def _weights(given: Any, parts: tuple[RecordPart, ...]) -> tuple[float, ...]:
    names = [part.name for part in parts]
    if given is None:
        given = {}
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(f"there is no part {unknown[0]!r} to weight; the parts are "
                             f"{listed(names)}")  # fmt: skip
        given = [given.get(name, 1.0) for name in names]
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != len(names):
        raise ValueError(f"weights must be a dict, or one number for each of {listed(names)}; "
                         f"got {given!r}")  # fmt: skip
    for name, weight in zip(names, given, strict=True):
        number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if not number or not (weight > 0 and isfinite(weight)):
            raise ValueError(
                f"the weight of the part {name!r} must be a number above 0; got {weight!r}"
            )
    return tuple(float(weight) for weight in given)


def parse_parts(text: str, params: Mapping[str, str]) -> Combined:
    """Return the measure that a text such as "name=levenshtein, age=euclidean*0.1" describes.

    Each part is COLUMN=MEASURE, or COLUMN+COLUMN=MEASURE for several columns, with an optional
    factor. `params` are those of the parts, as text: "name.normalize" is `normalize` of the part
    "name".

    Examples
    --------
    >>> from krein.measures.combined import parse_parts
    >>> parse_parts("name=levenshtein, lat+lon=euclidean*0.5", {"name.normalize": "true"}).weights
    (1.0, 0.5)
    """
    parts: dict[str, dict[str, Any]] = {}
    weights: dict[str, float] = {}
    for item in text.split(","):
        name, equals, how = (piece.strip() for piece in item.rpartition("="))
        named, _, factor = (piece.strip() for piece in how.partition("*"))
        if not equals or not name or not named or name in parts:
            raise ValueError(
                f"{item.strip()!r} is not COLUMN=MEASURE or COLUMN=MEASURE*WEIGHT, of another "
                "column than the others"
            )
        columns = [column.strip() for column in name.split("+")]
        parts[name] = {"measure": named, "params": {}, "columns": columns}
        if factor:
            try:
                weights[name] = float(factor)
            except ValueError:
                raise ValueError(f"the weight {factor!r} of {name!r} is not a number") from None
    for key, value in params.items():
        name, _, parameter = key.rpartition(".")
        if name not in parts:
            raise ValueError(
                f"{key!r} is not a parameter of a part: write "
                f"{next(iter(parts))}.{parameter}, for example; the parts are {listed(list(parts))}"
            )
        parts[name]["params"][parameter] = value
    for part in parts.values():
        if part["measure"] in available():
            part["params"] = read_parameters(measure_class(part["measure"]), part["params"])
    return Combined(parts, weights)


# Cells


def rows_of(objects: Any) -> list[Any]:
    """Return records as a list; the rows of a table become dicts."""
    if isinstance(objects, str | bytes | Mapping):
        raise TypeError("got a single record; pass a list of records")
    table = columns_of(objects)
    if table is None:
        return list(objects)
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _is_whole(part: RecordPart, record: Mapping[str, Any]) -> bool:
    """Whether a record contains the object of a part under the part's name, not in columns."""
    return part.name in record and not any(column in record for column in part.columns)


def _joined(part: RecordPart, cells: list[NDArray[Any]]) -> Any:
    """Return the cells of one column, or of several, as objects that the measure can read."""
    for column, own in zip(part.columns, cells, strict=True):
        _refuse_missing(own, column)
    nested = [is_nested(own) for own in cells]
    if len(cells) == 1 and (nested[0] or part.measure.accepts != "vectors"):
        return list(cells[0]) if cells[0].dtype == object else cells[0]
    if any(nested):
        return channels(cells, nested)
    if part.measure.accepts == "vectors":
        both = zip(part.columns, cells, strict=True)
        cells = [_numbers(own, column) for column, own in both]
    numeric = all(own.dtype.kind in "fiub" for own in cells)
    rows = np.empty((len(cells[0]), len(cells)), dtype=np.float64 if numeric else object)
    for place, own in enumerate(cells):
        rows[:, place] = own
    return rows


def _refuse_missing(cells: NDArray[Any], column: str) -> None:
    """Raise an error about the first cell that is None, NaN, NA or NaT."""
    if cells.dtype.kind == "f" and cells.ndim == 1:
        missing = np.isnan(cells)
    elif cells.dtype.kind in "mM":
        missing = np.isnat(cells)
    elif cells.dtype == object and cells.ndim == 1:
        missing = np.array([is_missing(cell) for cell in cells], dtype=bool)
    else:
        return
    if missing.any():
        reason = f"has no value in the column {column!r}: fill it in, or leave the record out"
        raise RefusedObject("record", int(missing.argmax()), reason)


def _numbers(cells: NDArray[Any], column: str) -> NDArray[Any]:
    """Return cells as numbers; those of a CSV file are text."""
    if cells.dtype.kind in "fiub":
        return cells
    found = np.empty(len(cells))
    for row, cell in enumerate(cells):
        try:
            found[row] = float(cell)  # not a time, whose unit may differ from table to table
        except (TypeError, ValueError):
            reason = f"has {excerpt(str(cell), 30)} in the column {column!r}, not a number"
            raise RefusedObject("record", row, reason) from None
        except OverflowError:
            raise RefusedObject("record", row, f"has a number beyond 10^308 in the column "
                                f"{column!r}") from None  # fmt: skip
    return found
