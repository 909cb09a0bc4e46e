"""Measures that compare two objects, one family per file, behind one small protocol.

A measure is found by its name; its module is imported when the measure is first used.
"""

from .base import Measure
from .combined import Combined
from .objects import PairError, Readable, RefusedObject, take
from .registry import available, get_measure

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
