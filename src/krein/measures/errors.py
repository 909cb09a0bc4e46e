"""Errors about objects that a measure cannot compare."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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

    def __init__(self, kind: str, row: int, reason: str) -> None:
        super().__init__(kind, row, reason)
        self.kind, self.row, self.reason = kind, int(row), reason

    def __str__(self) -> str:
        return f"{self.kind} {self.row} {self.reason}"


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
