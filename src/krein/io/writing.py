"""Writing files: atomically, and with errors that name the file that the user asked for."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..compare.cache import remove_stale, temporary_path
from .streams import is_stream

PREFIX, SUFFIX = ".krein-", ".part"
"""Prefix and suffix of the temporary name of a file while it is written."""


class _NamedFile(io.FileIO):
    """A file whose errors while writing name the file that the user asked for."""

    target: str | os.PathLike[str] = ""

    def write(self, content: Any) -> int | None:  # type: ignore[override]
        try:
            return super().write(content)
        except OSError as error:  # a full disk, or a limit on the size of files
            if error.filename is None and not isinstance(error, BlockingIOError | BrokenPipeError):
                error.filename = os.fspath(self.target)
            raise


def named_writer(path: str, target: str | os.PathLike[str], mode: str) -> BinaryIO:
    """Open a file for writing; errors name the file `target`."""
    raw = _NamedFile(path, mode)
    raw.target = target
    return io.BufferedWriter(raw)


def keep_mode(file: BinaryIO, target: str | os.PathLike[str]) -> None:
    """Give a file that will replace another one its permissions, before anything is in it.

    On file systems and systems without permissions, they stay as they are.
    """
    with suppress(OSError, AttributeError):
        os.fchmod(file.fileno(), stat.S_IMODE(os.stat(target).st_mode))


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file under a temporary name next to `path`, which is synced and renamed at the end.

    If the body fails or the process is killed, an existing file is unchanged. Leftovers of an
    earlier, killed process are removed first. For a link, its target is written. Pipes and devices
    cannot be replaced, and are written to directly. An existing file keeps its permissions.
    """
    if is_stream(path):
        with named_writer(os.fspath(path), path, "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():  # the error of the system would name the temporary file
        raise FileNotFoundError(f"{path}: there is no folder {target.parent}")
    remove_stale(target.parent, PREFIX, SUFFIX)
    # do not include the name itself, which may have the maximum length already
    temporary = temporary_path(target.parent, PREFIX, SUFFIX)
    try:
        with named_writer(os.fspath(temporary), path, "xb") as file:
            keep_mode(file, target)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
