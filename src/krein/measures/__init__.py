"""How two objects are compared: one family of measures a file behind one small protocol."""

from .base import Measure, PairError, Readable, take
from .registry import available, get_measure

__all__ = ["Measure", "PairError", "Readable", "available", "get_measure", "take"]
