"""Precomputed values as a measure: an object is a row of them.

To be compared with others, an object must correspond to a column. In an N×N matrix, object i is row
i and column i. In N×m values, the columns are the landmarks, which the user names. A fitted model
keeps only the columns of its landmarks.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .base import Array, Kind, Measure, Objects
from .errors import PairError
from .kinds import KindWarning, looks_like, mistaken_for, sample_square
from .square import TILE, as_matrix, check_square, find_wrong

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class GivenColumns:
    """Landmarks among precomputed values: their columns, in rows of `width` values."""

    columns: Indices  # (m,)
    width: int

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
