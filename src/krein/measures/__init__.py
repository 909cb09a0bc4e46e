"""How two objects are compared: one measure a file behind one small protocol."""

from .base import Measure, take
from .registry import available, get_measure

__all__ = ["Measure", "available", "get_measure", "take"]
