"""Which code a result belongs to: commit, date, and a hash of every module that it measured.

The hash leaves out comments and docstrings, so that a result stays valid if only prose changes.
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def measured() -> dict[str, Any]:
    """Return what identifies the code that this process has imported."""
    loaded = [name for name in sys.modules if name.partition(".")[0] in ("krein", "benchmarks")]
    return {
        "commit": commit(),
        "date": datetime.now(tz=UTC).date().isoformat(),
        "machine": machine(),
        "modules": {name: digest(name) for name in sorted(loaded) if name != __name__},
    }


def changed(modules: dict[str, str]) -> list[str]:
    """Return the modules that differ from what was measured, or no longer exist."""
    return [name for name, known in modules.items() if not path_of(name) or digest(name) != known]


def path_of(name: str) -> Path | None:
    """Return the source of a module in this folder, if it has any."""
    base = ROOT / ("src" if name.startswith("krein") else "") / Path(*name.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()), None)


def digest(name: str) -> str:
    """Return a hash of the code of a module, without comments and docstrings."""
    path = path_of(name)
    assert path is not None
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [one for one in body if not _is_text(one)] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:12]


def _is_text(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def commit() -> str:
    """Return the commit, with a + if the code differs from it."""

    def git(*arguments: str) -> str:
        called = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(called, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=10", "HEAD") + (
            "+" if git("status", "--porcelain", "src", "benchmarks") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> str:
    """Return the processor and the number of cores."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    return f"{model}, {os.cpu_count()} cores"
