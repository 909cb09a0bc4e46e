"""Objects from data frames, columns and tables, recognised by duck typing.

Neither pandas, Polars nor Arrow is imported. A frame has columns, and a column can be converted to
an array of its cells. A cell may itself be a series ("nested" frames): a single column of such
cells contains the objects; with several columns, each is a channel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import RefusedObject, RefusedType


class TimesFirst(np.ndarray):
    """A series whose first axis is known to be time, because its channels came separately.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.measures.frames import TimesFirst
    >>> np.zeros((5, 4)).view(TimesFirst).shape
    (5, 4)
    """


def frame_contents(objects: Any) -> Any:
    """Return the contents of a data frame, a column or a table; anything else unchanged.

    Examples
    --------
    >>> import pandas as pd
    >>> from krein.measures.frames import frame_contents
    >>> frame_contents(pd.DataFrame({"x": [1, 2], "y": [3, 4]}))
    array([[1, 3],
           [2, 4]])
    """
    columns = _columns(objects)
    if columns is None:
        return _cells(objects) if _is_column(objects) else objects
    cells = [_cells(column) for column in columns]
    nested = [_is_nested(column) for column in cells]
    if any(nested):
        return cells[0] if len(cells) == 1 else _channels(cells, nested)
    if hasattr(objects, "to_numpy"):
        return objects.to_numpy()
    return np.column_stack(cells) if cells else np.empty((len(objects), 0))


def as_numbers(item: Any, what: str, row: int, part: str = "") -> NDArray[np.float64]:
    """Return an object as an array of numbers, or raise an error that names it and the `part`."""
    if isinstance(item, np.ma.MaskedArray) and np.ma.is_masked(item):
        reason = f"{part}is partly masked: fill in missing values, or leave it out"
        raise RefusedObject(what, row, reason)
    try:
        return np.ascontiguousarray(item, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RefusedType(what, row, f"{part}does not consist of numbers: {error}") from None


def _columns(objects: Any) -> list[Any] | None:
    """Return the columns of a frame or a table; None if it is neither."""
    if hasattr(objects, "get_columns"):  # Polars
        return list(objects.get_columns())
    if hasattr(objects, "column_names") and hasattr(objects, "columns"):  # Arrow
        return list(objects.columns)
    if hasattr(objects, "iloc") and hasattr(objects, "columns"):  # pandas
        return [objects.iloc[:, j] for j in range(objects.shape[1])]
    return None


def _is_column(objects: Any) -> bool:
    return hasattr(objects, "to_numpy")


def _cells(column: Any) -> NDArray[Any]:
    """Return the cells of a column as an array, of dtype object if they are not numbers."""
    if hasattr(column, "to_pylist"):  # Arrow, which would rather fail than copy
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.asarray(column.to_numpy())


def _is_nested(cells: NDArray[Any]) -> bool:
    """Whether the cells are series, not single values."""
    if cells.dtype != object or cells.ndim > 1:
        return cells.ndim > 1
    known: Any = next((cell for cell in cells if cell is not None), None)
    return not isinstance(known, str | bytes) and np.ndim(known) > 0


def _channels(cells: list[NDArray[Any]], nested: list[bool]) -> list[NDArray[Any]]:
    """Return each row's series, (times, columns)."""
    if not all(nested):
        raise ValueError(
            f"column {nested.index(False)} contains single values, but column {nested.index(True)} "
            "contains series; leave one kind out"
        )
    rows: list[NDArray[Any]] = []
    for row, parts in enumerate(zip(*cells, strict=True)):
        named = [as_numbers(part, "series", row, f"(channel {c}) ") for c, part in enumerate(parts)]
        lengths = [part.size for part in named]
        if len(set(lengths)) > 1:
            raise RefusedObject(
                "series",
                row,
                f"has channels of {min(lengths)} and of {max(lengths)} values; all channels of a "
                f"series must have the same length",
            )
        rows.append(np.stack([part.ravel() for part in named], axis=1).view(TimesFirst))
    return rows
