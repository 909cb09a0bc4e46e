"""Some consecutive objects, and where each of them came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..measures import Measure
from ..measures.base import Objects


class ObjectError(ValueError):
    """An object that cannot be compared; the message says where it lies and why.

    Examples
    --------
    >>> from krein.data import GivenColumns, ObjectError, Origin, Piece
    >>> class Words:
    ...     def where(self, i):
    ...         return f"words.csv, line {i + 2}"
    >>> piece = Piece(0, [[1.0, float("nan")]], None, (Origin(Words(), 0, 1),))
    >>> try:
    ...     GivenColumns(2, "similarity").values(piece)
    ... except ObjectError as error:
    ...     print(error)
    words.csv, line 2: the value to landmark 1 is nan
    """


class Teller(Protocol):
    """Whoever knows where objects came from: a chunk of a file, a partition."""

    def where(self, i: int) -> str:
        """Return in words where the i-th of its objects lies."""


@dataclass(frozen=True)
class Origin:
    """`count` objects of a piece that are those of `teller` from `first` on."""

    teller: Teller
    first: int
    count: int


@dataclass(frozen=True)
class Piece:
    """Objects `start`, `start` + 1, … of all, their labels where they are known."""

    start: int
    objects: Any
    labels: Any  # sequence or array; None without labels
    origins: tuple[Origin, ...]

    def __len__(self) -> int:
        return sum(origin.count for origin in self.origins)

    def where(self, i: int) -> str:
        """Return in words where the i-th object of the piece lies."""
        for origin in self.origins:
            if i < origin.count:
                return origin.teller.where(origin.first + i)
            i -= origin.count
        raise IndexError(i)


def checked(measure: Measure, piece: Piece) -> Objects:
    """Return the objects of the piece in the measure's form, or name the one at fault."""
    try:
        return measure.check(piece.objects)
    except (TypeError, ValueError) as error:
        for i in range(len(piece)):
            try:
                measure.check(piece.objects[i : i + 1])
            except (TypeError, ValueError) as alone:
                # measures count the objects they are given: here there is one
                told = re.sub(r"^(\w+) 0\b", r"this \1", str(alone))
                raise ObjectError(f"{piece.where(i)}: {told}") from error
        raise ObjectError(f"from {piece.where(0)} on: {error}") from error


def joined(parts: Sequence[Any]) -> Any:
    """Return one sequence out of several: arrays stacked, anything else as one list."""
    import numpy as np

    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [item for part in parts for item in part]
