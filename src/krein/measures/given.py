"""Values that somebody has computed already, as a measure: an object is a row of them.

To be compared with others an object has to stand for a column. In an N×N matrix, object i is row i
and column i. Of N×m values the columns are the landmarks, which the user names. A fitted model
keeps of its landmarks the columns alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .base import Array, Kind, Measure, Objects, PairError
from .frames import unframed

Indices = NDArray[np.intp]

TILE = 1024
HUGE = 1e150
"""What is larger, or as small, cannot be squared in double precision."""

SAMPLED_TILES = 64
"""Pairs of tiles looked at in a memory map, which may take hours to read as a whole."""

SYMMETRY_TOLERANCE = 1e-8
"""Largest |K − Kᵀ| relative to the largest |K| that counts as rounding."""


LOOKED_AT = 200
"""Objects of a matrix that are looked at to see what its values are."""

REMEDIES = ("say measure='precomputed-distance'", "say measure='precomputed'")


@dataclass(frozen=True)
class GivenColumns:
    """Landmarks of given values: the columns they stand for, in rows of `width` values."""

    columns: Indices  # (m,)
    width: int

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, indices: Any) -> GivenColumns:
        return GivenColumns(np.atleast_1d(self.columns[indices]), self.width)


@dataclass(frozen=True)
class GivenRows:
    """Objects known by their values: rows of a matrix, which is never copied as a whole."""

    matrix: NDArray[Any]
    width: int  # of the rows as they came, though `matrix` may hold some columns of them alone
    rows: Indices | None = None  # of the matrix; None for all
    columns: Indices | None = None  # of the matrix, that the objects stand for; None: not known
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
        """Whether the values lie in a file."""
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


@dataclass(frozen=True)
class Given(Measure):
    """Values that are given: similarities, or dissimilarities where `kind` says so.

    Reading a value counts as comparing a pair.

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

    @property
    def name(self) -> str:  # type: ignore[override]
        """What users call it."""
        return "precomputed" if self.kind == "similarity" else "precomputed-distance"

    def check(self, objects: Any) -> GivenRows:
        """Return rows of numbers: an array, a memory map or the path of an `.npy` file."""
        if isinstance(objects, GivenRows):
            return objects
        matrix = as_matrix(objects)
        return GivenRows(matrix, matrix.shape[1])

    def among(self, objects: Any, own: Indices, others: Indices, n_objects: int) -> GivenRows:
        """Let objects stand for columns where there is a column for each of all objects."""
        if objects.width != n_objects:
            return objects
        if len(others) == n_objects:
            return replace(objects, columns=np.asarray(own))
        some = objects.matrix[objects.own_rows[:, None], others]
        return GivenRows(some, objects.width, columns=np.searchsorted(others, own))

    def check_symmetry(self, objects: Any, symmetrize: bool) -> tuple[GivenRows, int]:
        """Refuse a square matrix that is not symmetric, not finite, or a negative distance."""
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
        """Return the columns that the objects stand for: theirs, or one each in their order."""
        if objects.width == n_objects:
            return GivenColumns(np.asarray(indices), n_objects)
        if objects.width != len(indices):
            raise self._no_columns(objects.width)
        return GivenColumns(np.arange(len(indices)), objects.width)

    def with_each_other(self, objects: Any, kept: Any) -> Any:
        """Return the objects where they stand for columns, else the columns that are kept."""
        return kept if objects.columns is None else objects

    def landmarks_for(self, objects: Any, landmarks: Any) -> GivenColumns:
        """Return the landmarks' columns in these rows, which hold all values or those alone."""
        m = len(landmarks)
        if objects.width == landmarks.width:
            return landmarks
        if objects.width == m:
            return GivenColumns(np.arange(m), m)
        full = f"n × {landmarks.width}, to all training objects, or " * (landmarks.width != m)
        raise ValueError(
            f"the values of new objects are {full}n × {m}, to the landmarks alone; "
            f"got {len(objects)} × {objects.width}"
        )

    def at_hand(self, objects: Any) -> bool:
        """Whether the values are in memory."""
        return not objects.mapped

    def block(self, A: Objects, B: Objects) -> Array:
        """Return the values of rows A at the columns of B. A value that is none is refused."""
        assert isinstance(A, GivenRows)
        columns = B.columns
        if columns is None:
            raise self._no_columns(A.width)
        values = A.read(columns)
        wrong = find_wrong(values, self.kind)
        if wrong is not None:
            raise PairError(*wrong, f"the value is {values[wrong]:g}")
        return values

    def diagonal(self, A: Objects) -> Array:
        """Return the value of each object with itself."""
        assert isinstance(A, GivenRows)
        values: Array = np.asarray(A.matrix[A.own_rows, A.columns], dtype=np.float64)
        wrong = find_wrong(values[:, None], self.kind)
        if wrong is not None:
            raise PairError(wrong[0], wrong[0], f"the value is {values[wrong[0]]:g}")
        return values

    def _no_columns(self, width: int) -> ValueError:
        return ValueError(
            "precomputed values are N × N, or N × m with landmarks= the m rows that the columns "
            f"stand for; got rows of {width} values"
        )


class KindWarning(UserWarning):
    """Values look like distances where they are said to be similarities, or the other way round.

    Examples
    --------
    >>> import warnings
    >>> from krein.compare import open_pairs
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = open_pairs("precomputed", [[0, 1, 2], [1, 0, 2], [2, 2, 0]])
    >>> print(caught[0].message)
    This looks like a matrix of distances (its diagonal is 0 and nothing is negative): say \
measure='precomputed-distance'.
    """


def looks_like(values: Array) -> str | None:
    """Return what a square matrix looks like: "distance", "similarity" or None.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.given import looks_like
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
    """Return a sentence where a matrix looks like what it is not said to be.

    `found` is what they look like; `remedies` say how to call them distances, and how not to.
    """
    if found == "distance" and not distance:
        return (
            "This looks like a matrix of distances (its diagonal is 0 and nothing is negative): "
            f"{remedies[0]}."
        )
    if found == "similarity" and distance:
        return (
            "This looks like a matrix of similarities (everybody is most like itself): "
            f"{remedies[1]}."
        )
    return None


def sample_square(matrix: NDArray[Any]) -> Array:
    """Return the values of up to `LOOKED_AT` objects of a square matrix among themselves."""
    n = len(matrix)
    some = np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(int))
    return np.asarray(matrix[np.ix_(some, some)], dtype=np.float64)


def as_matrix(given: Any) -> NDArray[Any]:
    """Return the matrix: an array as it is, a memory map as it is, an `.npy` file mapped."""
    if isinstance(given, str | PathLike):
        path = Path(given)
        if path.suffix != ".npy":
            raise ValueError(f"{path}: a matrix file is an .npy file here")
        given = np.load(path, mmap_mode="r", allow_pickle=False)
    given = unframed(given)
    if not isinstance(given, np.ndarray):
        if hasattr(given, "toarray"):
            raise TypeError("a sparse matrix leaves open what its missing entries mean; fill it")
        given = np.asarray(given)
    if given.dtype == object:
        given = np.asarray(given, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"a matrix of values has two axes; got an array of {given.ndim}")
    if not (np.issubdtype(given.dtype, np.number) or given.dtype == bool):
        raise TypeError(f"a matrix of values is made of numbers; got {given.dtype}")
    if np.issubdtype(given.dtype, np.complexfloating):
        raise ValueError("Complex data not supported: values of a measure are real")
    return given


def check_square(
    matrix: NDArray[Any], kind: Kind, *, symmetrize: bool = False, sample: bool = False
) -> None:
    """Raise where the matrix is not square, not finite, not symmetric, or a negative distance.

    Rounding does not count as asymmetry: that of the matrix's own type, eight units in the last
    place of its largest entry. O(N²) time, two tiles of memory. With `sample` some tiles are looked
    at; the rest is checked as it is read.
    """
    n, columns = matrix.shape
    if n != columns:
        raise ValueError(
            f"to fit, a precomputed matrix is square, each object with each; got {n} × {columns}"
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
        # as text, every digit of the type is there: two numbers that differ look different
        raise ValueError(
            f"the matrix is not symmetric: entry ({a}, {b}) is {matrix[a, b]!s} but entry "
            f"({b}, {a}) is {matrix[b, a]!s}, {worst / largest:.1e} of the largest entry apart; "
            "symmetrize=True takes the average of both"
        )


def _off_scale(largest: float) -> ValueError:
    return ValueError(
        f"the largest value of the matrix is {largest:.3g}: products of such values are lost, "
        f"for numbers end near 1e±308; multiply the matrix by {1 / max(largest, 1e-300):.0e} first"
    )


def find_wrong(values: Array, kind: Kind) -> tuple[int, int] | None:
    """Return the place of an entry that is not finite, or negative where it is a distance."""
    # one pass and no temporary array where all is well: a sum is finite unless a term is not
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
