"""Measures that compare two objects, one family per file, behind one small protocol.

A measure is found by its name; its module is imported when the measure is first used.
"""

from .base import Measure, PairError, Readable, RefusedObject, available, get_measure, take
from .combined import Combined

__all__ = [
    "Combined",
    "Measure",
    "PairError",
    "Readable",
    "RefusedObject",
    "available",
    "get_measure",
    "take",
]
