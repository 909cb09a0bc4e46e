"""Measures that compare two objects, one family per file, behind one small protocol."""

from .base import Measure, PairError, Readable, RefusedObject, take
from .registry import available, get_measure

__all__ = [
    "Measure",
    "PairError",
    "Readable",
    "RefusedObject",
    "available",
    "get_measure",
    "take",
]
