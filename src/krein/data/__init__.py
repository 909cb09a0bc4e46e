"""Data sets in memory, in files, or on a cluster, behind one protocol."""

from .chunk import ObjectError
from .daskengine import connect
from .dataset import Dataset, Survey
from .engines import Engine, Threads
from .opening import in_memory, open_data

__all__ = [
    "Dataset",
    "Engine",
    "ObjectError",
    "Survey",
    "Threads",
    "connect",
    "in_memory",
    "open_data",
]
