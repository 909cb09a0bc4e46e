"""Optional packages that some data sets need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, extra: str, wanted: str) -> Any:
    """Return the module, or raise an error that names the extra of krein to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # the package is installed, but one of its own dependencies is missing
        raise ImportError(
            f"{wanted} needs the package {missing.name!r}, which is not installed: "
            f'pip install "krein[{extra}]"'
        ) from missing
