"""The file of rows that `krein predict --resume` continues, after the last complete ones."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from hashlib import file_digest
from typing import IO, Any

from ..io import DataError, Source
from ..io.streams import is_stream
from ..io.writing import keep_mode, named_writer
from .predictor import Predictor
from .terminal import warn


def resumable(
    predictor: Predictor, source: Source, output: str | None, row_format: str, resume: bool
) -> Resumable | None:
    """Return the file of rows that is kept if the command is stopped; None if it cannot be."""
    if output is None or is_stream(output) or output.endswith((".gz", ".xz")):
        return None
    if not source.rereadable:
        return None
    details = {name: value for name, value in asdict(predictor.details).items() if value}
    asked = {
        "model": file_hash(predictor.options.model),
        "input": file_hash(source.path) if os.path.isfile(source.path) else source.path,
        "options": json.dumps(
            [predictor.columns, details, row_format, predictor.options.unknown_letters]
        ),
    }
    return Resumable(output, asked, resume)


class Resumable:
    """A file of rows that is kept under a temporary name if the command or the disk stops it.

    Next to `FILE.part`, `FILE.part.json` records what was asked for, and how many rows and bytes
    are complete. The next run with `resume` and the same `asked` continues there.
    """

    def __init__(self, path: str, asked: dict[str, Any], resume: bool) -> None:
        self.path, self.asked = path, asked
        self.part, self.note = f"{path}.part", f"{path}.part.json"
        self.rows = self.size = 0
        if resume:
            self._continue()

    def _continue(self) -> None:
        try:
            with open(self.note, encoding="utf-8") as file:
                noted = json.load(file)
            rows, size, asked = int(noted["rows"]), int(noted["bytes"]), dict(noted["asked"])
            there = os.path.getsize(self.part) >= size
        except (OSError, ValueError, KeyError, TypeError):
            there = False
        if not there:
            raise DataError(f"{self.path}: there is no interrupted run to resume")
        for name, value in self.asked.items():
            if asked.get(name) != value:
                raise DataError(
                    f"{self.part}: was written with another {name}; run the command without "
                    "--resume to start again"
                )
        self.rows, self.size = rows, size

    @contextmanager
    def writing(self) -> Iterator[IO[str]]:
        """Open the file for text, at the end of its complete rows."""
        with named_writer(self.part, self.path, "r+b" if self.rows else "wb") as raw:
            keep_mode(raw, self.path)
            raw.truncate(self.size)
            raw.seek(self.size)
            text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
            try:
                yield text
                text.flush()
                os.fsync(raw.fileno())
            except (KeyboardInterrupt, SystemExit, OSError, MemoryError):  # e.g. a full disk
                if self.rows:
                    warn(f"{self.rows:,} rows are kept in {self.part}; --resume continues there")
                else:
                    self._remove()
                raise
            except BaseException:
                self._remove()
                raise
            finally:
                with suppress(OSError, ValueError):
                    text.detach()
        os.replace(self.part, os.path.realpath(self.path))
        os.unlink(self.note)

    def _remove(self) -> None:
        for path in (self.part, self.note):
            with suppress(OSError):
                os.unlink(path)

    def complete(self, file: IO[str], n: int) -> None:
        """Note that n more rows are complete."""
        file.flush()
        rows, size = self.rows + n, os.fstat(file.fileno()).st_size
        noted = json.dumps({"rows": rows, "bytes": size, "asked": self.asked})
        try:
            with named_writer(f"{self.note}.new", self.note, "wb") as new:
                new.write(noted.encode("utf-8"))
            os.replace(f"{self.note}.new", self.note)
        except BaseException:
            with suppress(OSError):
                os.unlink(f"{self.note}.new")
            raise
        self.rows, self.size = rows, size

    def earlier(self, row_format: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of the interrupted run, as they were written."""
        if not self.rows:
            return
        with open(self.part, "rb") as raw:
            text = io.StringIO(raw.read(self.size).decode("utf-8"), newline="")
        if row_format == "jsonl":
            yield from map(json.loads, text)
            return
        rows = csv.DictReader(text, delimiter="\t" if row_format == "tsv" else ",")
        for row in rows:
            yield {name: cell or None for name, cell in row.items()}


def file_hash(path: str) -> str:
    """Return a hash of the contents of a file."""
    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()
