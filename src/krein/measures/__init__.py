"""How two objects are compared: one family of measures a file behind one small protocol."""

from .base import Measure, take
from .errors import PairError, Readable, RefusedObject
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
