"""Precomputed values as a measure: an object is a row of them.

To be compared with others, an object must correspond to a column. In an N×N matrix, object i is row
i and column i. In N×m values, the columns are the landmarks, which the user names. A fitted model
keeps only the columns of its landmarks. A matrix is checked tile by tile, and never copied.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..core.shapes import ROW, Array, Indices, Kind, Within
from ..wording import parameter
from .base import Measure
from .objects import Objects, PairError, as_stack, unframed

TILE = 1024
HUGE = 1e150
"""Larger values, and values below the inverse, cannot be squared in double precision."""

SAMPLED_TILES = 64
"""Number of pairs of tiles checked in a memory map, which may take hours to read completely."""

SYMMETRY_TOLERANCE = 1e-8
"""Largest |K − Kᵀ| relative to the largest |K| that counts as rounding."""


def open_matrix(given: Any) -> NDArray[Any]:
    """Return the matrix: arrays and memory maps unchanged, `.npy` files memory-mapped."""
    if isinstance(given, str | PathLike):
        path = Path(given)
        if path.suffix != ".npy":
            raise ValueError(f"{path}: a matrix file must be an .npy file")
        if path.exists() and not path.is_file():  # opening a pipe would wait
            raise ValueError(f"{path}: a matrix is read from a file on disk, not from a pipe")
        given = np.load(path, mmap_mode="r", allow_pickle=False)
    given = unframed(given)
    if not isinstance(given, np.ndarray):
        if hasattr(given, "toarray"):
            raise TypeError("the missing entries of a sparse matrix have no value; make it dense")
        given = np.asarray(given)
    if given.dtype == object:
        given = as_stack(given, "row")
    if given.ndim != 2:
        raise ValueError(f"a matrix of values must have two axes; got an array of {given.ndim}")
    if not (np.issubdtype(given.dtype, np.number) or given.dtype == bool):
        raise TypeError(f"a matrix of values must consist of numbers; got {given.dtype}")
    if np.issubdtype(given.dtype, np.complexfloating):
        raise ValueError("Complex data not supported: values of a measure are real")
    return given


class AsymmetryError(ValueError):
    """A matrix of values that differ between the two directions: `reason` says where."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        remedy = f"{parameter('symmetrize', True)} uses the average of both"
        return f"the matrix is {self.reason}; {remedy}"


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
                raise _wrong_entry((top + wrong[0], left + wrong[1]), float(tile[wrong]))
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
        raise AsymmetryError(
            f"not symmetric: entry ({a}, {b}) is {matrix[a, b]!s} but entry ({b}, {a}) is "
            f"{matrix[b, a]!s}, {worst / largest:.1e} of the largest entry apart"
        )


def refuse_wrong(given: Any, kind: Kind) -> None:
    """Raise an error that names the entry if values are not finite, or are negative distances."""
    values = open_matrix(given)
    wrong = find_wrong(values, kind)
    if wrong is not None:
        raise _wrong_entry(wrong, float(values[wrong]))


def _wrong_entry(place: tuple[int, int], value: float) -> ValueError:
    if np.isfinite(value):
        return ValueError(f"entry {place} of the distance matrix is negative: {value:g}")
    return ValueError(f"entry {place} of the matrix is {value} (NaN or infinity)")


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


def _tiles(n: int, sample: bool) -> Iterator[tuple[int, int]]:
    """Yield the corners of the tiles on and above the diagonal, or of a sample of them."""
    starts = range(0, n, TILE)
    if not sample or len(starts) * (len(starts) + 1) // 2 <= SAMPLED_TILES:
        yield from combinations_with_replacement(starts, 2)
        return
    random = np.random.default_rng(0)
    for _ in range(SAMPLED_TILES):
        i, j = sorted(int(k) for k in random.choice(len(starts), 2))
        yield starts[i], starts[j]


@dataclass(frozen=True)
class PrecomputedColumns:
    """Landmarks among precomputed values: their columns, in rows of `width` values."""

    columns: Annotated[Indices, "columns", ROW]
    width: Annotated[int, Within(1, 2**53)]

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, indices: Any) -> PrecomputedColumns:
        return PrecomputedColumns(np.atleast_1d(self.columns[indices]), self.width)


@dataclass(frozen=True)
class PrecomputedRows:
    """Objects given by their values: rows of a matrix, which is never copied as a whole."""

    matrix: NDArray[Any]
    width: int  # of the original rows; `matrix` may contain only some of their columns
    rows: Indices | None = None  # of the matrix; None for all
    columns: Indices | None = None  # the columns of the matrix for the objects; None if unknown
    average: bool = False  # both directions of a square matrix

    def __len__(self) -> int:
        return len(self.matrix) if self.rows is None else len(self.rows)

    def __getitem__(self, indices: Any) -> PrecomputedRows:
        if self.rows is not None:
            rows = np.atleast_1d(self.rows[indices])
        elif isinstance(indices, slice):
            rows = np.arange(*indices.indices(len(self.matrix)))
        else:
            rows = np.atleast_1d(np.asarray(indices, dtype=np.intp))
        columns = None if self.columns is None else np.atleast_1d(self.columns[indices])
        return replace(self, rows=rows, columns=columns)

    def __add__(self, other: PrecomputedRows) -> PrecomputedRows:
        """Return the rows of both, which have the same columns."""
        both = np.concatenate([self.matrix[self.own_rows], other.matrix[other.own_rows]])
        columns = None
        if self.columns is not None and other.columns is not None:
            columns = np.concatenate([self.columns, other.columns])
        return PrecomputedRows(both, self.width, columns=columns)

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
        """Return the values (n, m) at the columns (m,), or those of row i at `columns[i]`, as
        float64."""
        whole = self.rows is None and columns.ndim == 1
        rows = slice(None) if whole else self.own_rows[:, None]
        values = np.asarray(self.matrix[rows, columns], dtype=np.float64)
        if self.average:
            values = (values + self.matrix[columns, self.own_rows[:, None]]) / 2
        return np.ascontiguousarray(values)


@dataclass(frozen=True)
class GraphRows:
    """Objects given by the values of some pairs: rows of a graph of neighbours."""

    graph: Any  # a CSR matrix (n, N)

    columns = None
    mapped = False

    @classmethod
    def of(cls, objects: PrecomputedRows | GraphRows) -> GraphRows:
        """Return rows as those of a graph; in rows of a matrix, all pairs have a value."""
        if isinstance(objects, GraphRows):
            return objects
        from scipy import sparse

        values = np.asarray(objects.matrix[objects.own_rows], dtype=np.float64)
        n, N = values.shape
        lists = values.ravel(), np.tile(np.arange(N), n), np.arange(0, n * N + 1, N)
        return cls(sparse.csr_matrix(lists, shape=(n, N)))

    @property
    def width(self) -> int:
        """Number of known objects."""
        return int(self.graph.shape[1])

    @property
    def lists(self) -> tuple[Indices, Indices, Array]:
        """Where the list of each object starts, the columns of all lists, and their values."""
        return self.graph.indptr, self.graph.indices, self.graph.data

    def __len__(self) -> int:
        return int(self.graph.shape[0])

    def __getitem__(self, indices: Any) -> GraphRows:
        return GraphRows(self.graph[indices])

    def read(self, columns: Indices) -> Array:
        """Return the values (n, 0) at no columns: those of other pairs may be unknown."""
        if columns.size:
            raise TypeError(
                "a sparse matrix lacks the values of most pairs, which this model needs: make it "
                "dense, or fit KreinClassifier to a graph of neighbours"
            )
        return np.empty((len(self), *columns.shape[1:], 0))


@dataclass(frozen=True)
class Precomputed(Measure):
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

    releases_gil = True
    expensive = False
    accepts = "values"
    cacheable = False
    mirrored = False  # that would silently symmetrise the user's data
    reads_files = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """Its name for users."""
        return "precomputed" if self.kind == "similarity" else "precomputed-distance"

    def check(self, objects: Any) -> PrecomputedRows | GraphRows:
        """Return rows of numbers: an array, a memory map, the path of an `.npy` file, or the sparse
        matrix of a graph of neighbours."""
        if isinstance(objects, PrecomputedRows | GraphRows):
            return objects
        if hasattr(objects, "tocsr"):
            from ..neighbours import check_graph  # only here, because scipy.sparse is slow to load

            return GraphRows(check_graph(objects, self.kind))
        matrix = open_matrix(objects)
        return PrecomputedRows(matrix, matrix.shape[1])

    def among(
        self, objects: Any, indices: Indices, others: Indices, n_objects: int
    ) -> PrecomputedRows | GraphRows:
        """Assign columns to objects if there is one column per object."""
        if objects.width != n_objects or isinstance(objects, GraphRows):
            return objects
        if len(others) == n_objects:
            return replace(objects, columns=np.asarray(indices))
        some = objects.matrix[objects.own_rows[:, None], others]
        return PrecomputedRows(some, objects.width, columns=np.searchsorted(others, indices))

    def check_symmetry(self, objects: Any, symmetrize: bool) -> tuple[Any, int]:
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

    def keep(self, objects: Any, indices: Indices, n_objects: int) -> PrecomputedColumns:
        """Return the columns of the objects: their own, or one each in their order."""
        if objects.width == n_objects:
            return PrecomputedColumns(np.asarray(indices), n_objects)
        if objects.width != len(indices):
            raise self._no_columns(objects.width)
        return PrecomputedColumns(np.arange(len(indices)), objects.width)

    def with_each_other(self, objects: Any, kept: Any) -> Any:
        """Return the objects if they correspond to columns, otherwise the kept columns."""
        return kept if objects.columns is None else objects

    def landmarks_for(
        self, objects: Any, landmarks: Any, *, known: bool = False
    ) -> PrecomputedColumns:
        """Return the landmarks' columns in these rows, which contain all values or only those."""
        m = len(landmarks)
        if objects.width == landmarks.width:
            return landmarks
        if known:  # even if there are as many as landmarks
            raise ValueError(
                f"a second look needs the values to all training objects, n × {landmarks.width}; "
                f"got {len(objects)} × {objects.width}, which is enough only for a model fitted "
                f"with {parameter('neighbours', 0)}"
            )
        if objects.width == m:
            return PrecomputedColumns(np.arange(m), m)
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
        return self.each(A, B, slice(None))

    def each(self, A: Objects, B: Objects, columns: Indices | slice) -> Array:
        """Return the values of row i of A with the objects `columns[i]` of B."""
        if B.columns is None:
            raise self._no_columns(A.width)
        values: Array = A.read(B.columns[columns])
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

    def content_keys(self, objects: Objects, first: int = 0) -> NDArray[np.uint64]:
        """Return the rank of each object by the sum of its values with the others, from `first`
        on.

        It does not depend on the order of rows and columns or on the unit of the values. No two
        objects have the same rank: whether they are copies cannot be told from their values.
        """
        sums = np.empty(len(objects))
        for start in range(0, len(objects), TILE):
            part = objects.matrix[objects.own_rows[start : start + TILE]]
            if objects.columns is not None and len(objects.columns) < part.shape[1]:
                part = np.ascontiguousarray(part[:, objects.columns])  # of a sample
            sums[start : start + TILE] = part.sum(axis=1, dtype=np.longdouble)
        ranks = np.empty(len(sums), dtype=np.uint64)
        ranks[np.argsort(sums, kind="stable")] = first + np.arange(len(sums), dtype=np.uint64)
        return ranks

    def _no_columns(self, width: int) -> ValueError:
        return ValueError(
            f"precomputed values must be N × N, or N × m with landmarks= set to the m rows that "
            f"the columns stand for; got rows of {width} values"
        )


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
    >>> from krein.measures.precomputed import looks_like
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
