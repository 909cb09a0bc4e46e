"""Names of files that are being written: they say by whom, so what a dead process left can go."""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path

_serial = itertools.count()


def temporary_path(folder: Path, prefix: str, suffix: str = "") -> Path:
    """Return a path in `folder` that no other process uses, and that names this one."""
    unique = f"{socket.gethostname()}-{os.getpid()}-{next(_serial)}"
    return folder / f"{prefix}{unique}{suffix}"


def remove_stale(folder: Path, prefix: str, suffix: str = "") -> None:
    """Remove files of `temporary_path` whose process on this machine is no more.

    Those of other machines stay, for nobody here knows about them.
    """
    here = f"{prefix}{socket.gethostname()}-"
    try:
        found = [path for path in folder.iterdir() if path.name.startswith(here)]
    except OSError:
        return  # a folder that cannot be listed can be written to all the same
    for path in found:
        owner, _, number = path.name.removeprefix(here).removesuffix(suffix).partition("-")
        ours = path.name.endswith(suffix) and owner.isdecimal() and number.isdecimal()
        if ours and not _alive(int(owner)):
            try:
                path.unlink(missing_ok=True)
            except OSError:
                continue  # somebody else's


def _alive(process: int) -> bool:
    if os.name != "posix":
        return True  # there, asking a process for a sign of life would end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
