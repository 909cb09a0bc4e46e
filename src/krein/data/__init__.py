"""Objects that do not fit into memory, or lie on other machines.

A `Collection` is where they lie: `Streamed` reads files by chunks, `Clustered` runs on Dask. Both
run the same terms over the same grid of blocks, numbered from the first object on, and sum in the
same order as a fit in memory: the numbers agree to the last bit.
"""

from .collection import (
    CANDIDATES,
    Candidates,
    Collection,
    FeatureBlock,
    Survey,
    Work,
    draw,
    survey,
)
from .columns import Columns, Counted, GivenColumns, LandmarkColumns
from .opening import as_source, is_dask, is_elsewhere, open_collection
from .piece import ObjectError, Origin, Piece

__all__ = [
    "CANDIDATES",
    "Candidates",
    "Collection",
    "Columns",
    "Counted",
    "FeatureBlock",
    "GivenColumns",
    "LandmarkColumns",
    "ObjectError",
    "Origin",
    "Piece",
    "Survey",
    "Work",
    "as_source",
    "draw",
    "is_dask",
    "is_elsewhere",
    "open_collection",
    "survey",
]
