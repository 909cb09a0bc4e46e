"""Packages that only some of the data need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, extra: str, wanted: str) -> Any:
    """Return the module, or say which extra of krein brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # the package is there, and something that it needs itself is not
        raise ImportError(
            f"{wanted} needs the package {missing.name!r}, which is not installed: "
            f'pip install "krein[{extra}]"'
        ) from missing
