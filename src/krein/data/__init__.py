"""Data sets in memory, in files, or on a cluster, behind one protocol.

To read in this order: `labelling` checks labels and groups; `chunks` are what passes go over, and
are compared with landmarks; `dataset` is the protocol, and `storedrows` what it keeps for later
passes. `local` reads objects in memory and in files, `partitioned` sends tasks to an `engine`, such
as the one in `dask`, for a `collection`. `opening` decides among them, also for new objects, and
`foreign` names those of another kind.
"""

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
