"""Data sets in memory, in files, or on a cluster, behind one protocol."""

from .dask import connect
from .dataset import Dataset, ObjectError, Survey
from .opening import in_memory, open_data
from .partitioned import Engine, Threads

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
