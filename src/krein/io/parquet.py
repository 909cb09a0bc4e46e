"""Parquet files: columns of strings, of numbers, or of lists of numbers.

A cell that repeats a value takes almost no space in a file, whatever its length. So the metadata
determine how many rows are decoded at a time, and the sizes of the cells are checked before they
become objects.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .airr import open_receptors, used_columns
from .layout import LayoutSource, decide_layout
from .source import ContentKind, Options, Record
from .streams import (
    TEXT_RATIO,
    DataError,
    array_limit,
    has_packed_suffix,
    record_limit,
    too_large,
)

BATCH = 4096
"""Maximum number of rows decoded at a time."""

NUMBER = 8
"""Bytes of a number in memory."""

_COUNT_VALUES = """
import sys
from pyarrow.parquet import read_metadata
about = read_metadata(sys.argv[1])
for g in range(about.num_row_groups):
    group = about.row_group(g)
    print(sum(group.column(c).num_values for c in range(group.num_columns)))
"""


class ParquetFile(LayoutSource):
    """Objects from the rows of a Parquet file, with one batch in memory at a time.

    A batch is part of a row group.
    """

    @property
    def understood(self) -> str:
        """How the file was interpreted."""
        if self.kind == "series":
            return f"series in the column {self.layout.columns[self.layout.objects[0]]!r}"
        return super().understood

    def records(self) -> Iterator[Record]:
        """Yield the rows as objects."""
        layout, number = self.layout, 0
        objects, labels, names = layout.objects, layout.labels, layout.names
        wanted = [layout.columns[i] for i in (*objects, labels, names) if i is not None]
        with _open(self.path, wanted) as file:
            for batch in self._batches(file, wanted):
                column = {
                    i: self._plain(batch.column(layout.columns[i]))
                    for i in (*objects, labels, names)
                    if i is not None
                }
                items: Any
                if self.record_columns:
                    cells = (column[i].to_pylist() for i in objects)
                    rows = zip(*cells, strict=True)
                    items = [dict(zip(self.record_columns, row, strict=True)) for row in rows]
                elif layout.content == "strings":
                    items = column[objects[0]].to_pylist()
                else:
                    numbers = [column[i].to_numpy(zero_copy_only=False) for i in objects]
                    items = np.stack(numbers, axis=1)
                texts = {i: column[i].to_pylist() for i in (labels, names) if i is not None}
                for i, item in enumerate(items):
                    name = str(number if names is None else texts[names][i])
                    label = None if labels is None else texts[labels][i]
                    if labels is not None:
                        label = "" if label is None else str(label)
                    yield Record(name, self._checked(item, number, name), label)
                    number += 1

    def rows(self) -> Iterator[tuple[None, list[str]]]:
        """Yield the cells of each row as text; those of columns that are not used are empty."""
        used, width = used_columns(self.layout), len(self.layout.columns)
        wanted = [self.layout.columns[i] for i in used]
        with _open(self.path, wanted) as file:
            for batch in self._batches(file, wanted):
                columns = [self._plain(batch.column(name)).to_pylist() for name in wanted]
                for cells in zip(*columns, strict=True):
                    row = [""] * width
                    for i, cell in zip(used, cells, strict=True):
                        row[i] = "" if cell is None else str(cell)
                    yield None, row

    def _batches(self, file: Any, columns: list[str]) -> Iterator[Any]:
        """Yield the rows in batches, after their sizes have been checked."""
        limit, first = record_limit(self.max_size), 0
        with _arrow_errors(f"{self.shown}: is damaged"):
            size = self._rows_per_batch(file)
            for batch in file.iter_batches(size, columns=columns, use_threads=False):
                for column in batch.columns:
                    sizes = _sizes(column)
                    if len(sizes) and sizes.max() > limit:
                        row = int(np.argmax(sizes > limit))
                        raise too_large(f"{self.shown}, row {first + row}", int(sizes[row]), limit)
                first += len(batch)
                yield batch

    def _rows_per_batch(self, file: Any) -> int:
        """Return how many rows can be decoded at a time, by the metadata of the file.

        A row group is refused if it claims more than the size of the file can justify, or if its
        mean row is larger than a cell may be. Only lists can have more values than rows. Arrow ends
        the process if the metadata of a column is damaged, so a separate process reads the metadata
        of lists.
        """
        from pyarrow import types

        limit = array_limit(self.path, self.max_size)
        text_limit = array_limit(self.path, self.max_size, TEXT_RATIO)
        about = file.metadata
        nested = any(types.is_nested(field.type) for field in file.schema_arrow)
        listed = None
        if nested:
            asked = subprocess.run(
                [sys.executable, "-P", "-c", _COUNT_VALUES, self.path],  # -P: no code from here
                capture_output=True,
                check=False,
            )
            if asked.returncode:
                raise DataError(f"{self.shown}: is damaged (Arrow cannot read its column metadata)")
            listed = [int(number) for number in asked.stdout.split()]
        most = record_limit(self.max_size)
        rows = BATCH
        for g in range(about.num_row_groups):
            group = about.row_group(g)
            values = group.num_rows * group.num_columns if listed is None else listed[g]
            for size, allowed in ((NUMBER * values, limit), (group.total_byte_size, text_limit)):
                if size > allowed:
                    raise too_large(f"{self.shown}, row group {g}", size, allowed)
            row = max(NUMBER * values, group.total_byte_size) // max(group.num_rows, 1)
            if row > most * group.num_columns:
                where = f"{self.shown}, the mean row of row group {g}"
                raise too_large(where, row, most * group.num_columns)
            rows = min(rows, max(1, most // max(row, 1)))
        return rows

    def _plain(self, column: Any) -> Any:
        """Return a column with dictionary codes replaced by their values."""
        from pyarrow import compute, types

        if not types.is_dictionary(column.type):
            return column
        with _arrow_errors(f"{self.shown}: is damaged"):
            column.validate(full=True)
            if _is_text(column.type):
                lengths = compute.binary_length(column.dictionary).take(column.indices)
                total, limit = compute.sum(lengths).as_py(), array_limit(self.path, self.max_size)
                if total is not None and total > limit:
                    raise too_large(f"{self.shown}, {len(column):,} rows", total, limit)
            return column.dictionary_decode()

    def _checked(self, item: Any, number: int, name: str) -> Any:
        where = f"{self.shown}, row {number} ({name!r})"
        if self.record_columns:
            for field, cell in item.items():
                if cell is None or (isinstance(cell, str) and not cell.strip()):
                    raise DataError(f"{where}: the column {field!r} is empty")
            return item
        if item is None or (isinstance(item, str) and not item.strip()):
            raise DataError(f"{where}: contains no object")
        if isinstance(item, str):
            return item
        try:
            array = np.array(item, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"{where}: does not consist of numbers only") from None
        if array.size == 0 or not np.isfinite(array).all():
            raise DataError(f"{where}: a value is missing or infinite")
        return array[:, None] if self.kind == "series" and array.ndim == 1 else array


def _sizes(column: Any) -> NDArray[np.int64]:
    """Return the bytes that each cell of a column takes in memory."""
    from pyarrow import compute, types

    of = column.type
    if types.is_dictionary(of):
        each = _sizes(column.dictionary)
        codes = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return each[codes] if len(each) else np.zeros(len(column), dtype=np.int64)
    if types.is_list(of) or types.is_large_list(of):
        ends = column.offsets.to_numpy().astype(np.int64)
        if types.is_nested(of.value_type) or _is_text(of.value_type):
            total = np.concatenate([[0], np.cumsum(_sizes(column.values))])
            return np.diff(total[ends])
        return NUMBER * np.diff(ends)
    if types.is_fixed_size_list(of):
        return np.full(len(column), NUMBER * of.list_size)
    if _is_text(of):
        known = column.cast("large_string") if str(of) == "string_view" else column
        lengths = compute.binary_length(known).fill_null(0)
        return lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    return np.full(len(column), NUMBER)


def _is_text(of: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(of):
        return _is_text(of.value_type)
    # string_view came with pyarrow 16
    return types.is_string(of) or types.is_large_string(of) or str(of) == "string_view"


@contextmanager
def _arrow_errors(what: str) -> Iterator[None]:
    """Turn errors of Arrow, which have many types, into one short line."""
    from pyarrow import ArrowException

    try:
        yield
    except DataError:
        raise
    except (ArrowException, OSError, RuntimeError, ValueError, KeyError, IndexError) as error:
        raise DataError(f"{what} ({' '.join(str(error).split())[:120]})") from error


def _open(path: str, columns: list[str] | None = None) -> Any:
    """Open a file; text in these columns stays dictionary-encoded, since words may be repeated."""
    if has_packed_suffix(path):
        raise DataError(
            f"{path}: Parquet files must not be compressed again; decompress the file first "
            f"(gunzip, unxz)"
        )
    try:
        from pyarrow.parquet import ParquetFile as Reader
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"{path}: reading Parquet needs the package {missing.name!r}, which is not installed: "
            'pip install "krein[parquet]"'
        ) from missing
    with _arrow_errors(f"{path}: cannot be read as Parquet"):
        found = Reader(path)
        if columns is not None:
            texts = [f.name for f in found.schema_arrow if f.name in columns and _is_text(f.type)]
            found.close()
            found = Reader(path, read_dictionary=texts)
        return found


def open_parquet(path: str, options: Options) -> LayoutSource:
    """Open a Parquet file; `decide_layout` assigns its columns."""
    from pyarrow import types

    with _open(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    if rows == 0:
        raise DataError(f"{path}: contains no objects")
    columns = list(schema.names)
    numeric = [types.is_integer(f.type) or types.is_floating(f.type) for f in schema]
    layout, labels = decide_layout(path, [columns, columns], options, lambda _: rows + 1, numeric)
    kind: ContentKind = layout.content
    if layout.content == "strings":
        of = schema.field(layout.objects[0]).type
        if types.is_list(of) or types.is_large_list(of) or types.is_fixed_size_list(of):
            fixed = types.is_fixed_size_list(of) and options.content != "series"
            kind = "vectors" if fixed else "series"
        elif not _is_text(of):
            raise DataError(
                f"{path}: the column {columns[layout.objects[0]]!r} contains {of}, not strings"
            )
    found = ParquetFile(
        path,
        labels,
        options.max_size,
        layout=layout,
        kind=kind,
        record_columns=options.record_columns,
    )
    if kind == "receptors":
        return open_receptors(path, labels, options.max_size, layout, found.rows)
    return found
