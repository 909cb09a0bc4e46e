"""Atomic writing of files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..compare.temporary import remove_stale, temporary_path

PREFIX, SUFFIX = ".krein-", ".part"
"""Prefix and suffix of the temporary name of a file while it is written."""


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file under a temporary name next to `path`, which is synced and renamed at the end.

    If the body fails or the process is killed, an existing file is unchanged. Leftovers of an
    earlier, killed process are removed first. For a link, its target is written. Pipes and devices
    cannot be replaced, and are written to directly.
    """
    if is_stream(path):
        with open(path, "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    remove_stale(target.parent, PREFIX, SUFFIX)
    # do not include the name itself, which may have the maximum length already
    temporary = temporary_path(target.parent, PREFIX, SUFFIX)
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether the path is a pipe, a device or an open descriptor, not a file on disk."""
    if os.fspath(path).startswith(("/dev/", "/proc/")):
        return os.path.exists(path)
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
