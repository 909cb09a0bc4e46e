"""Find the object that crashes the process that compares it, by trying them one by one.

After several workers have died with the same task, the cluster abandons the task and reports only
its name. Its objects are compared again in a separate process, which announces each one first; the
last one announced before the process died is the culprit.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from .chunk import Chunk

SECONDS = 60.0
"""Maximum number of seconds for the search."""
MEMORY = 4 * 2**30
"""Memory limit of the process in bytes: an object may be fatal because of its size."""

_PROGRAM = "from krein.data.suspects import announce; announce()"


def find_fatal(function: Callable[[Chunk], Any], chunk: Chunk) -> int | None:
    """Return the object of a chunk that crashes `function`; None if no crash can be reproduced."""
    import cloudpickle

    try:
        child = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            input=cloudpickle.dumps((function, chunk)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    announced = child.stdout.split()
    if child.returncode == 0 or not announced or not announced[-1].isdigit():
        return None
    return int(announced[-1])


def announce() -> None:
    """Compare the objects of a chunk read from standard input, announcing each one first."""
    import pickle

    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    except (ImportError, ValueError, OSError):
        pass  # a system without such limits
    # trusted: the parent process has just written it
    function, chunk = pickle.loads(sys.stdin.buffer.read())
    for i in range(len(chunk)):
        print(i, flush=True)
        function(chunk.cut(i, i + 1))
