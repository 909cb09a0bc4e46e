"""Which axis of a series is time: (times, channels) or (channels, times)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.checks import ROW, Within
from .base import (
    Array,
    Kind,
    KindWarning,
    Measure,
    Objects,
    PairError,
    RefusedObject,
    TimesFirst,
    as_numbers,
    looks_like,
    mistaken_for,
    sample_square,
    unframed,
)

TIMES_FIRST, CHANNELS_FIRST = "times-channels", "channels-times"
LAYOUTS = ("auto", TIMES_FIRST, CHANNELS_FIRST)

FEW_CHANNELS = 16
"""Maximum number of channels for a guess: with hundreds of sensors there are often fewer times than
channels."""


def guess_layout(objects: Any) -> str:
    """Return the layout of series from `unframed`, if their shapes are unambiguous.

    Time is the axis whose length differs between series. If neither differs, it is the one next to
    an axis of length 1, or the one at least twice as long as the other, provided that the other has
    at most `FEW_CHANNELS` entries. Anything else is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.precomputed import guess_layout
    >>> guess_layout(np.zeros((20, 3, 315)))
    'channels-times'
    >>> guess_layout([np.zeros((40, 24)), np.zeros((51, 24))])
    'times-channels'
    """
    if isinstance(objects, np.ndarray) and objects.dtype != object:
        shapes = {objects.shape[1:]} if len(objects) else set()
    else:
        if len(objects) and all(isinstance(item, TimesFirst) for item in objects):
            return TIMES_FIRST
        shapes = {_shape(item) for item in objects}
    shapes = {shape for shape in shapes if len(shape) == 2}
    if not shapes:
        return TIMES_FIRST
    first, second = ({shape[axis] for shape in shapes} for axis in (0, 1))
    if len(first) > 1:  # if both differ, the channels do not agree, which is reported elsewhere
        return TIMES_FIRST
    if len(second) > 1:
        return CHANNELS_FIRST
    a, b = first.pop(), second.pop()
    shorter, longer = min(a, b), max(a, b)
    if shorter <= 1 or (shorter <= FEW_CHANNELS and longer >= 2 * shorter):
        return TIMES_FIRST if a >= b else CHANNELS_FIRST
    raise ValueError(
        f"series of shape ({a}, {b}) may be {a} times of {b} channels or {b} times of {a} "
        "channels; set measure_params={'layout': 'times-channels'} or "
        "{'layout': 'channels-times'}"
    )


def _shape(item: Any) -> tuple[int, ...]:
    try:
        return np.shape(item)
    except ValueError:  # a list of lists of different lengths, which is refused later
        return ()


def read_series(objects: Any, layout: str) -> Array | list[Array]:
    """Return series from `unframed` as (N, times, channels), or as a list if lengths differ.

    `layout` describes the input. NaN at the end of a series is padding and is stripped; NaN or
    infinity elsewhere is refused.
    """
    if layout == "auto":
        layout = guess_layout(objects)
    if isinstance(objects, np.ndarray) and objects.dtype != object:
        stack = _stacked(objects, layout)
        if np.isfinite(stack).all():
            return stack
        objects, layout = list(stack), TIMES_FIRST
    series: list[Array] = []
    for row, item in enumerate(objects):
        one = _one(item, row, layout)
        if series and one.shape[1] != series[0].shape[1]:
            raise ValueError(
                f"series {row} has {one.shape[1]} channels, but series 0 has {series[0].shape[1]}"
            )
        series.append(one)
    if series and len({len(one) for one in series}) == 1:
        return np.stack(series)
    return series


def _stacked(objects: Any, layout: str) -> Array:
    if objects.ndim not in (2, 3):
        raise ValueError(
            f"series must be an array (N, times), (N, times, channels) or (N, channels, times), "
            f"or a list; got an array of shape {objects.shape}"
        )
    try:
        stack = np.asarray(objects, dtype=np.float64)
    except ValueError as error:
        raise TypeError(f"the series do not consist of numbers: {error}") from None
    if stack.ndim == 2:
        stack = stack[:, :, None]
    elif layout == CHANNELS_FIRST:
        stack = stack.swapaxes(1, 2)
    if stack.shape[1] == 0 or stack.shape[2] == 0:
        raise ValueError(f"the series are empty: an array of shape {objects.shape}")
    return np.ascontiguousarray(stack)


def _one(item: Any, row: int, layout: str) -> Array:
    """Return one series (times, channels) without its padding."""
    if np.ndim(item) == 0 and not isinstance(item, str):
        raise RefusedObject("series", row, f"is a single value, {item!r}; pass a list of series")
    one = as_numbers(item, "series", row)
    if one.ndim == 1:
        one = one[:, None]
    elif one.ndim == 2 and layout == CHANNELS_FIRST and not isinstance(item, TimesFirst):
        one = np.ascontiguousarray(one.T)
    if one.ndim != 2:
        raise RefusedObject(
            "series", row, f"has {one.ndim} axes; a series has at most two, times and channels"
        )
    if one.size == 0:
        raise RefusedObject("series", row, "is empty")
    if np.isfinite(one).all():
        return one
    known = np.flatnonzero(~np.isnan(one).all(axis=1))
    if len(known) == 0:
        raise RefusedObject("series", row, "is empty: it contains only NaN")
    one = one[: known[-1] + 1]
    if not np.isfinite(one).all():
        time = int(np.argwhere(~np.isfinite(one))[0, 0])
        channel = int(np.argmin(np.isfinite(one[time])))
        where = f"time {time}" + (f", channel {channel}" if one.shape[1] > 1 else "")
        raise RefusedObject(
            "series",
            row,
            f"contains {one[time, channel]} at {where}; NaN counts as padding only at the end of a "
            f"series, so fill the gap or leave the series out",
        )
    return one


# -------------------------------------------------------------------------------------------------
# A precomputed matrix: read, and checked tile by tile.
# -------------------------------------------------------------------------------------------------

TILE = 1024
HUGE = 1e150
"""Larger values, and values below the inverse, cannot be squared in double precision."""

SAMPLED_TILES = 64
"""Number of pairs of tiles checked in a memory map, which may take hours to read completely."""

SYMMETRY_TOLERANCE = 1e-8
"""Largest |K − Kᵀ| relative to the largest |K| that counts as rounding."""


def as_matrix(given: Any) -> NDArray[Any]:
    """Return the matrix: arrays and memory maps unchanged, `.npy` files memory-mapped."""
    if isinstance(given, str | PathLike):
        path = Path(given)
        if path.suffix != ".npy":
            raise ValueError(f"{path}: a matrix file must be an .npy file")
        given = np.load(path, mmap_mode="r", allow_pickle=False)
    given = unframed(given)
    if not isinstance(given, np.ndarray):
        if hasattr(given, "toarray"):
            raise TypeError(
                "the missing entries of a sparse matrix have no defined value; convert "
                "it to a dense one"
            )
        given = np.asarray(given)
    if given.dtype == object:
        given = np.asarray(given, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"a matrix of values must have two axes; got an array of {given.ndim}")
    if not (np.issubdtype(given.dtype, np.number) or given.dtype == bool):
        raise TypeError(f"a matrix of values must consist of numbers; got {given.dtype}")
    if np.issubdtype(given.dtype, np.complexfloating):
        raise ValueError("Complex data not supported: values of a measure are real")
    return given


def check_square(
    matrix: NDArray[Any], kind: Kind, *, symmetrize: bool = False, sample: bool = False
) -> None:
    """Raise an error if the matrix is not square, not finite, not symmetric, or has negative
    distances.

    Rounding errors of the matrix's own type do not count as asymmetry: eight units in the last
    place of its largest entry. O(N²) time, two tiles of memory. With `sample`, only some tiles are
    checked; the rest is checked as it is read.
    """
    n, columns = matrix.shape
    if n != columns:
        raise ValueError(
            f"for fit, a precomputed matrix must be square, with a row and a column per object; "
            f"got {n} × {columns}"
        )
    largest, worst, where = 0.0, 0.0, (0, 0)
    for i, j in _tiles(n, sample):
        upper = np.asarray(matrix[i : i + TILE, j : j + TILE], dtype=np.float64)
        lower = np.asarray(matrix[j : j + TILE, i : i + TILE], dtype=np.float64)
        for tile, (top, left) in ((upper, (i, j)), (lower, (j, i))):
            wrong = find_wrong(tile, kind)
            if wrong is not None:
                _refuse_entry(tile[wrong], (top + wrong[0], left + wrong[1]))
        largest = max(largest, abs(upper).max(), abs(lower).max())
        if largest > HUGE:
            raise _off_scale(largest)
        if symmetrize:
            continue
        difference = abs(upper - lower.T)
        if difference.max() > worst:
            worst = difference.max()
            row, column = np.unravel_index(int(difference.argmax()), difference.shape)
            where = (i + int(row), j + int(column))
    if 0 < largest < 1 / HUGE:
        raise _off_scale(largest)
    rounding = 8 * np.finfo(matrix.dtype).eps if matrix.dtype.kind == "f" else 0.0
    if worst > max(SYMMETRY_TOLERANCE, rounding) * largest:
        a, b = where
        # with all digits of the type, so that two different numbers look different
        raise ValueError(
            f"the matrix is not symmetric: entry ({a}, {b}) is {matrix[a, b]!s} but entry "
            f"({b}, {a}) is {matrix[b, a]!s}, {worst / largest:.1e} of the largest entry apart; "
            "symmetrize=True uses the average of both"
        )


def _off_scale(largest: float) -> ValueError:
    return ValueError(
        f"the largest value of the matrix is {largest:.3g}: products of such values overflow or "
        f"underflow (the limits are near 1e±308); multiply the matrix by "
        f"{1 / max(largest, 1e-300):.0e} first"
    )


def find_wrong(values: Array, kind: Kind) -> tuple[int, int] | None:
    """Return the position of an entry that is not finite, or of a negative distance."""
    # one pass and no temporary array in the normal case: a sum is finite unless a term is not
    finite = bool(np.isfinite(values.sum())) or bool(np.isfinite(values).all())
    if finite and not (kind == "dissimilarity" and values.size and values.min() < 0):
        return None
    i, j = np.argwhere(~np.isfinite(values) if not finite else values < 0)[0]
    return int(i), int(j)


def _refuse_entry(value: float, place: tuple[int, int]) -> None:
    if np.isfinite(value):
        raise ValueError(f"entry {place} of the distance matrix is negative: {value:g}")
    raise ValueError(f"entry {place} of the matrix is {value} (NaN or infinity)")


def _tiles(n: int, sample: bool) -> Iterator[tuple[int, int]]:
    """Yield the corners of the tiles on and above the diagonal, or of a sample of them."""
    starts = range(0, n, TILE)
    count = len(starts) * (len(starts) + 1) // 2
    if not sample or count <= SAMPLED_TILES:
        for i in starts:
            for j in range(i, n, TILE):
                yield i, j
        return
    random = np.random.default_rng(0)
    for _ in range(SAMPLED_TILES):
        i, j = sorted(int(k) for k in random.choice(len(starts), 2))
        yield starts[i], starts[j]


# -------------------------------------------------------------------------------------------------
# Precomputed values as a measure: an object is a row of them.
#
# To be compared with others, an object must correspond to a column. In an N×N matrix, object i is
# row i and column i. In N×m values, the columns are the landmarks, which the user names. A fitted
# model keeps only the columns of its landmarks.
# -------------------------------------------------------------------------------------------------

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class GivenColumns:
    """Landmarks among precomputed values: their columns, in rows of `width` values."""

    columns: Annotated[Indices, "columns", ROW]
    width: Annotated[int, Within(1)]

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, indices: Any) -> GivenColumns:
        return GivenColumns(np.atleast_1d(self.columns[indices]), self.width)


@dataclass(frozen=True)
class GivenRows:
    """Objects given by their values: rows of a matrix, which is never copied as a whole."""

    matrix: NDArray[Any]
    width: int  # of the original rows; `matrix` may contain only some of their columns
    rows: Indices | None = None  # of the matrix; None for all
    columns: Indices | None = None  # the columns of the matrix for the objects; None if unknown
    average: bool = False  # both directions of a square matrix

    def __len__(self) -> int:
        return len(self.matrix) if self.rows is None else len(self.rows)

    def __getitem__(self, indices: Any) -> GivenRows:
        if self.rows is not None:
            rows = np.atleast_1d(self.rows[indices])
        elif isinstance(indices, slice):
            rows = np.arange(*indices.indices(len(self.matrix)))
        else:
            rows = np.atleast_1d(np.asarray(indices, dtype=np.intp))
        columns = None if self.columns is None else np.atleast_1d(self.columns[indices])
        return replace(self, rows=rows, columns=columns)

    def __add__(self, other: GivenRows) -> GivenRows:
        """Return the rows of both, which have the same columns."""
        both = np.concatenate([self.matrix[self.own_rows], other.matrix[other.own_rows]])
        columns = None
        if self.columns is not None and other.columns is not None:
            columns = np.concatenate([self.columns, other.columns])
        return GivenRows(both, self.width, columns=columns)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self.matrix[i] for i in self.own_rows.tolist())

    @property
    def own_rows(self) -> Indices:
        """Rows of the matrix (n,)."""
        return np.arange(len(self.matrix)) if self.rows is None else self.rows

    @property
    def mapped(self) -> bool:
        """Whether the values are in a file."""
        base: Any = self.matrix
        while base is not None:
            if isinstance(base, np.memmap):
                return True
            base = getattr(base, "base", None)
        return False

    def read(self, columns: Indices) -> Array:
        """Return the values (n, m) at these columns as float64."""
        rows = slice(None) if self.rows is None else self.rows[:, None]
        values = np.asarray(self.matrix[rows, columns], dtype=np.float64)
        if self.average:
            values = (values + self.matrix[columns[:, None], self.own_rows].T) / 2
        return np.ascontiguousarray(values)

    def read_each(self, columns: Indices) -> Array:
        """Return the values (n, k) of row i at `columns[i]` as float64."""
        rows = self.own_rows[:, None]
        values = np.asarray(self.matrix[rows, columns], dtype=np.float64)
        if self.average:
            values = (values + self.matrix[columns, rows]) / 2
        return values


@dataclass(frozen=True)
class GivenValues(Measure):
    """Precomputed values: similarities or, according to `kind`, dissimilarities.

    Estimators create it for `measure="precomputed"` and `measure="precomputed-distance"`. Reading a
    value counts as comparing a pair.

    Parameters
    ----------
    kind : {"similarity", "dissimilarity"}, default="similarity"
        Whether a larger value means more alike or less alike.

    See Also
    --------
    krein.measures.function.FunctionMeasure : Computes values with a function instead.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.compare import open_pairs
    >>> open_pairs("precomputed", np.eye(3)).block(np.array([0, 1]), np.array([1]))
    array([[0.],
           [1.]])
    """

    kind: Kind = field(default="similarity")  # type: ignore[misc]

    releases_gil: ClassVar[bool] = True
    expensive: ClassVar[bool] = False
    accepts: ClassVar[str] = "values"
    cacheable: ClassVar[bool] = False
    mirrored: ClassVar[bool] = False  # that would silently symmetrise the user's data
    reads_files: ClassVar[bool] = True
    most_sampled: ClassVar[int | None] = 2_000  # the values of all pairs are in memory at once

    @property
    def name(self) -> str:  # type: ignore[override]
        """Its name for users."""
        return "precomputed" if self.kind == "similarity" else "precomputed-distance"

    def check(self, objects: Any) -> GivenRows:
        """Return rows of numbers: an array, a memory map or the path of an `.npy` file."""
        if isinstance(objects, GivenRows):
            return objects
        matrix = as_matrix(objects)
        return GivenRows(matrix, matrix.shape[1])

    def among(self, objects: Any, indices: Indices, others: Indices, n_objects: int) -> GivenRows:
        """Assign columns to objects if there is one column per object."""
        if objects.width != n_objects:
            return objects
        if len(others) == n_objects:
            return replace(objects, columns=np.asarray(indices))
        some = objects.matrix[objects.own_rows[:, None], others]
        return GivenRows(some, objects.width, columns=np.searchsorted(others, indices))

    def check_symmetry(self, objects: Any, symmetrize: bool) -> tuple[GivenRows, int]:
        """Refuse a square matrix that is not symmetric, not finite, or has negative distances."""
        if objects.columns is None:
            return objects, 0
        square = objects.rows is None and len(objects.matrix) == objects.matrix.shape[1]
        if square:
            check_square(objects.matrix, self.kind, symmetrize=symmetrize, sample=objects.mapped)
            found = looks_like(sample_square(objects.matrix))
            if mistaken := mistaken_for(found, self.kind == "dissimilarity"):
                warnings.warn(mistaken, KindWarning, stacklevel=2)
        return replace(objects, average=symmetrize and square), 0

    def keep(self, objects: Any, indices: Indices, n_objects: int) -> GivenColumns:
        """Return the columns of the objects: their own, or one each in their order."""
        if objects.width == n_objects:
            return GivenColumns(np.asarray(indices), n_objects)
        if objects.width != len(indices):
            raise self._no_columns(objects.width)
        return GivenColumns(np.arange(len(indices)), objects.width)

    def with_each_other(self, objects: Any, kept: Any) -> Any:
        """Return the objects if they correspond to columns, otherwise the kept columns."""
        return kept if objects.columns is None else objects

    def landmarks_for(self, objects: Any, landmarks: Any) -> GivenColumns:
        """Return the landmarks' columns in these rows, which contain all values or only those."""
        m = len(landmarks)
        if objects.width == landmarks.width:
            return landmarks
        if objects.width == m:
            return GivenColumns(np.arange(m), m)
        full = f"n × {landmarks.width}, to all training objects, or " * (landmarks.width != m)
        raise ValueError(
            f"the values of new objects must be {full}n × {m}, to the landmarks alone; "
            f"got {len(objects)} × {objects.width}"
        )

    def at_hand(self, objects: Any) -> bool:
        """Whether the values are in memory."""
        return not objects.mapped

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the values of rows A at the columns of B. Invalid values are refused."""
        columns = B.columns
        if columns is None:
            raise self._no_columns(A.width)
        return self._checked(A.read(columns))

    def _checked(self, values: Array) -> Array:
        """Return the values; invalid ones are refused."""
        wrong = find_wrong(values, self.kind)
        if wrong is not None:
            raise PairError(*wrong, f"the value is {values[wrong]:g}")
        return values

    def diagonal(self, A: Objects) -> Array:
        """Return the value of each object with itself."""
        values: Array = np.asarray(A.matrix[A.own_rows, A.columns], dtype=np.float64)
        wrong = find_wrong(values[:, None], self.kind)
        if wrong is not None:
            raise PairError(wrong[0], wrong[0], f"the value is {values[wrong[0]]:g}")
        return values

    def comparable(self, objects: Any) -> bool:
        """Whether there is a column for each object, and not only for landmarks."""
        return objects.columns is not None

    def each(self, A: Objects, B: Objects, columns: Indices) -> Array:
        """Return the values of row i of A with the objects `columns[i]` of B."""
        if B.columns is None:
            raise self._no_columns(A.width)
        return self._checked(A.read_each(B.columns[columns]))

    def content_keys(self, objects: Objects) -> NDArray[np.uint64]:
        """Return the rank of each object by its row sum.

        It does not depend on the order of rows and columns or on the unit of the values.
        """
        sums = np.empty(len(objects))
        for start in range(0, len(objects), TILE):
            part = objects.matrix[objects.own_rows[start : start + TILE]]
            sums[start : start + TILE] = part.sum(axis=1, dtype=np.longdouble)
        return np.unique(sums, return_inverse=True)[1].astype(np.uint64)

    def _no_columns(self, width: int) -> ValueError:
        return ValueError(
            f"precomputed values must be N × N, or N × m with landmarks= set to the m rows that "
            f"the columns stand for; got rows of {width} values"
        )
