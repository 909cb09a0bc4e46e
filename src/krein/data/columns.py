"""The values of a piece to the landmarks, wherever the piece lies."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ..compare import ObjectPairs
from ..compare.cache import BlockCache
from ..compare.matrix import find_wrong
from ..compare.pairs import Indices, with_known
from ..measures import Measure, PairError
from ..measures.base import Array, Kind, Objects
from .piece import ObjectError, Piece, checked

Value = TypeVar("Value")
Other = TypeVar("Other")


@dataclass(frozen=True)
class Counted(Generic[Value]):
    """A value, and what it took: objects seen, pairs compared, pairs found in a cache."""

    value: Value
    objects: int
    evaluated: int
    reused: int = 0

    def holding(self, value: Other) -> Counted[Other]:
        """Return another value that took the same."""
        return Counted(value, self.objects, self.evaluated, self.reused)


@dataclass(frozen=True)
class CountedSum(Generic[Value]):
    """The sum of counted values, given that of the values; it can be sent to other processes."""

    add: Callable[[Value, Value], Value]

    def __call__(self, a: Counted[Value], b: Counted[Value]) -> Counted[Value]:
        """Return a + b."""
        return Counted(
            self.add(a.value, b.value),
            a.objects + b.objects,
            a.evaluated + b.evaluated,
            a.reused + b.reused,
        )


class Columns(Protocol):
    """The landmarks as columns: a piece in, its values out.

    `LandmarkColumns` compares, `GivenColumns` reads what somebody has computed.

    Examples
    --------
    >>> from krein.data import Columns, GivenColumns
    >>> columns: Columns = GivenColumns(3, "similarity")
    >>> len(columns)
    3
    """

    def values(self, piece: Piece) -> Counted[Array]:
        """Return the values (n, m) of the objects of the piece to the landmarks."""

    def __len__(self) -> int: ...


@dataclass
class LandmarkColumns:
    """Landmarks that objects are compared with.

    `indices` are their rows among all objects and `core` (m, m) their values to each other, which
    are not compared again. It travels to other processes as it is; a cache is opened where it is
    used, once a process.
    """

    measure: Measure
    landmarks: Objects
    indices: Indices
    core: Array
    symmetrize: bool = False
    cache: str | os.PathLike[str] | None = None
    n_jobs: int | None = 1
    _opened: BlockCache | None = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_opened": None}

    def __len__(self) -> int:
        return len(self.indices)

    def values(self, piece: Piece) -> Counted[Array]:
        """Return the values of the piece to the landmarks; an error names the object."""
        objects = checked(self.measure, piece)
        try:
            self.measure.check_alike(objects, self.landmarks)
        except ValueError as error:
            raise ObjectError(f"{piece.where(0)}: {error}") from error
        pairs = ObjectPairs(
            self.measure,
            objects,
            self.landmarks,
            n_jobs=self.n_jobs,
            cache=self._cache(),
            symmetrize=self.symmetrize,
        )
        rows, cols = piece.start + np.arange(len(objects)), np.arange(len(self))
        try:
            values = with_known(
                rows, self.indices, self.core, lambda places: pairs._values(places, cols)
            )
        except PairError as error:
            landmark = f"landmark {error.col} (object {self.indices[error.col]})"
            raise ObjectError(f"{piece.where(error.row)}, with {landmark}: {error.reason}") from (
                error
            )
        return Counted(values, len(objects), pairs.evaluations, pairs.reused)

    def _cache(self) -> BlockCache | None:
        if self.cache is not None and self._opened is None:
            self._opened = BlockCache(self.cache, self.measure, self.symmetrize)
        return self._opened


@dataclass(frozen=True)
class GivenColumns:
    """Columns of values that somebody has computed: all of a row's, or those at `columns`."""

    size: int
    kind: Kind
    columns: Indices | None = None

    def __len__(self) -> int:
        return self.size

    def values(self, piece: Piece) -> Counted[Array]:
        """Return the values of the piece; NaN, infinity and negative distances are refused."""
        given = np.asarray(piece.objects)
        # row by row in memory, as computed values are: BLAS rounds by the layout
        values = np.ascontiguousarray(
            given if self.columns is None else given[:, self.columns], dtype=np.float64
        )
        wrong = find_wrong(values, self.kind)
        if wrong is not None:
            raise ObjectError(
                f"{piece.where(wrong[0])}: the value to landmark {wrong[1]} is {values[wrong]}"
            )
        return Counted(values, len(values), values.size)
