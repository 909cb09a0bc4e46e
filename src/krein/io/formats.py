"""The format of a file, by its suffix or else by its first bytes, and the reader for it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from ..wording import parameter
from .arrays import open_arrays
from .parquet import open_parquet
from .source import Options, RecordSource, Source
from .streams import (
    STDIN,
    DataError,
    bare_name,
    beginning,
    close_stream,
    file_state,
    refuse_stream,
    shown,
)
from .tables import open_json_lines, open_table
from .textfiles import Fasta, Fastq, LineFile, SeriesFile

_SUFFIXES: dict[str, tuple[str, ...]] = {
    "fasta": (".fasta", ".fa", ".faa", ".fna", ".ffn", ".fas", ".frn", ".mpfa"),
    "fastq": (".fastq", ".fq"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson"),
    "lines": (".txt",),
    "parquet": (".parquet", ".pq"),
    "npy": (".npy",),
    "npz": (".npz",),
    "mat": (".mat",),
    "ts": (".ts",),
}
_NO_DATA: dict[str, tuple[bytes, ...]] = {
    "a web page": (b"<!doctype html", b"<html"),
    "a PDF document": (b"%pdf-",),
    "an image": (b"\x89png", b"\xff\xd8\xff", b"gif87a", b"gif89a"),
}
"""Kinds of files passed by mistake, with their first bytes in lower case."""

FORMATS = (*_SUFFIXES, "vectors", "series", "matrix")
"""Values of `format`: the format of a file, or the meaning of its numbers."""


RECORD_FORMATS = ("csv", "tsv", "jsonl", "parquet")
"""Formats with columns of any kind."""


def open_source(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    objects: str | Sequence[str] | None = None,
    labels: str | None = None,
    names: str | None = None,
    label_pattern: str | None = None,
    header: bool | None = None,
    max_size: int | None = None,
    skip_unlabelled: bool = False,
) -> Source:
    """Open a file of objects, a pipe, or standard input (`"-"`), for reading in chunks.

    Parameters
    ----------
    path : path
        FASTA, FASTQ, CSV, TSV, JSON lines, lines of text, Parquet, `.npy`, `.npz`, `.mat` or
        `.ts`, recognised by its suffix or else by its first bytes; gzip, xz and bzip2 are
        decompressed.
    format : str, optional
        Format of the file, if its name does not show it (one of `FORMATS`); or the meaning of its
        numbers: "matrix" (values between objects), "vectors" or "series".
    objects : str or list of str, optional
        Column (by name or by number from 1), field of JSON lines, or array with the objects.
        Several columns form vectors: separate them by commas, or give a range of numbers, such as
        "3-10", which includes both ends. A list of columns gives records: dicts of their cells.
    labels : str, optional
        Column or array with the labels; or a file: a CSV or TSV table of names and labels (also
        "labels.csv:column"), or lines or an `.npy` array of labels in the order of the objects. The
        names may be full identifiers, accessions with or without version, or entry names.
    names : str, optional
        Column with the names.
    label_pattern : str, optional
        Regular expression with one group that finds the label in a FASTA header or a name.
    header : bool, optional
        Whether the first row of a table names its columns; None decides by its cells.
    max_size : int, optional
        Maximum size in bytes of a line, record or cell (default 32 MiB), and of all arrays of a
        compressed file together (default 256 MiB or 20 times the file). Anything larger is refused
        before memory is allocated for it.
    skip_unlabelled : bool, default=False
        Leave out objects without a label, instead of raising an error.

    Returns
    -------
    Source

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "words.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("word,language\\nhouse,en\\nhaus,de\\n")
    ...     source = open_source(path, objects="word", labels="language")
    ...     [chunk] = source.chunks(100)
    >>> chunk.objects, chunk.labels, chunk.names
    (['house', 'haus'], ['en', 'de'], ['0', '1'])
    """
    path = os.fspath(path)
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")
    if path != STDIN:
        if not os.path.exists(path):
            raise DataError(f"{path}: there is no such file")
        if os.path.isdir(path):
            raise DataError(f"{path}: is a folder, not a file")
    close_stream(path)
    opened = file_state(path)
    content: Any = None if format in _SUFFIXES else format
    column = objects if isinstance(objects, str) else None
    options = Options(
        content=content,
        objects=column,
        labels=labels,
        names=names,
        label_pattern=label_pattern,
        header=header,
        max_size=max_size,
        skip_unlabelled=skip_unlabelled,
        record_columns=() if column is not None else tuple(objects or ()),
    )
    found = _recognised(path) if format is None or content is not None else format
    return _reader(path, found, options).changed(opened=opened)


def _reader(path: str, format: str, options: Options) -> Source:
    """Return the reader of a file of this format."""
    content = options.content
    if options.record_columns and (content is not None or format not in RECORD_FORMATS):
        raise ValueError(
            f"{shown(path)} is to be read as {content or format}, but records with the columns "
            f"{', '.join(options.record_columns)} are read from {', '.join(RECORD_FORMATS)}"
        )
    if format in ("csv", "tsv"):
        return open_table(path, format, options)
    if format == "jsonl":
        return open_json_lines(path, options)
    if format in ("parquet", "npy", "npz", "mat"):
        refuse_stream(path, format)
    if format == "parquet":
        return open_parquet(path, options)
    if format in ("npy", "npz", "mat"):
        return open_arrays(path, format, options)
    for value, option in ((options.objects, "objects"), (options.names, "names")):
        if value is not None:
            raise ValueError(f"{option}={value!r} is for tables, not for {shown(path)}")
    if content is not None and (format, content) != ("ts", "series"):
        raise ValueError(f"{shown(path)} does not contain {content}")
    readers: dict[str, type[RecordSource]] = {
        "fasta": Fasta, "fastq": Fastq, "lines": LineFile, "ts": SeriesFile,
    }  # fmt: skip
    return readers[format](path, options.find_labels(options.labels), options.max_size)


def _recognised(path: str) -> str:
    """Return the format of the file, from its suffix or its first bytes."""
    name = bare_name(path)
    for format, suffixes in _SUFFIXES.items():
        if path != STDIN and name.endswith(suffixes):
            return format
    start = beginning(path)
    for kind, first in _NO_DATA.items():
        if start.lstrip().lower().startswith(first):
            raise DataError(f"{shown(path)}: is {kind}, not data; expected {', '.join(_SUFFIXES)}")
    if start[:6] == b"\x93NUMPY" or start[:4] in (b"PK\x03\x04", b"PAR1") or b"\0" in start:
        raise DataError(
            f"{shown(path)}: its name does not show its format; rename it to .npy, .npz, .mat or "
            f".parquet, or set {parameter('format')}"
        )
    text = start.lstrip()
    if not text:
        raise DataError(f"{shown(path)}: is empty")
    if text[:1] == b">":
        return "fasta"
    if text[:1] == b"{":
        return "jsonl"
    if text[:1] == b"@":
        return "ts" if re.match(rb"@(problemname|timestamps|univariate)", text.lower()) else "fastq"
    line = text.splitlines()[0]
    return "tsv" if b"\t" in line else "csv" if b"," in line or b";" in line else "lines"
