"""Names of temporary files. They contain the process id, so leftovers of dead processes can be
removed."""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path

_serial = itertools.count()


def temporary_path(folder: Path, prefix: str, suffix: str = "") -> Path:
    """Return a path in `folder` that contains the process id and that no other process uses."""
    unique = f"{socket.gethostname()}-{os.getpid()}-{next(_serial)}"
    return folder / f"{prefix}{unique}{suffix}"


def remove_stale(folder: Path, prefix: str, suffix: str = "") -> None:
    """Remove files from `temporary_path` whose process on this machine no longer exists.

    Files from other machines are kept, because their processes cannot be checked.
    """
    here = f"{prefix}{socket.gethostname()}-"
    try:
        found = [path for path in folder.iterdir() if path.name.startswith(here)]
    except OSError:
        return  # a folder that cannot be listed may still be writable
    for path in found:
        owner, _, number = path.name.removeprefix(here).removesuffix(suffix).partition("-")
        ours = path.name.endswith(suffix) and owner.isdecimal() and number.isdecimal()
        if ours and not _alive(int(owner)):
            try:
                path.unlink(missing_ok=True)
            except OSError:
                continue  # owned by another user


def _alive(process: int) -> bool:
    if os.name != "posix":
        return True  # on Windows, os.kill would end the process
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
