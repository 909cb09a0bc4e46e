"""Data sets in memory, in files, or on a cluster, behind one protocol."""

from .chunks import ObjectError
from .dask import connect
from .dataset import Dataset, Survey
from .engine import Engine, Threads
from .foreign import ForeignObjectWarning
from .opening import in_memory, open_data

__all__ = [
    "Dataset",
    "Engine",
    "ForeignObjectWarning",
    "ObjectError",
    "Survey",
    "Threads",
    "connect",
    "in_memory",
    "open_data",
]
