"""Measures by name. A module is imported when its measure is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .base import Measure

_REGISTRY = {
    "elm": "vectors:ELM",
}


def available() -> list[str]:
    """Return the names of the measures, sorted.

    >>> "elm" in available()
    True
    """
    return sorted(_REGISTRY)


def get_measure(measure: Any, params: dict[str, Any] | None = None) -> Measure:
    """Return the measure that a user named: a name, or a `Measure` as it is."""
    if isinstance(measure, Measure):
        if params:
            raise ValueError("measure_params go with a measure given by name; this one has its own")
        return measure
    if measure not in _REGISTRY:
        raise ValueError(f"no measure is called {measure!r}; there are {', '.join(available())}")
    module, _, cls = _REGISTRY[measure].partition(":")
    return getattr(import_module(f".{module}", __package__), cls)(**(params or {}))
