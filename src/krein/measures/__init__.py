"""How two objects are compared: one family of measures a file behind one small protocol."""

from .base import Measure, PairError, RefusedObject, take
from .registry import available, get_measure

__all__ = ["Measure", "PairError", "RefusedObject", "available", "get_measure", "take"]
