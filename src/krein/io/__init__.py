"""Files: readers of objects and labels, and the model file.

To read in this order: `streams` has bytes, lines, rows, and limits; `npy` NumPy's format; `labels`
come from records, patterns or files; `source` is what all readers have in common. The readers are
`textfiles`, `tables`, `parquet` (both with `layout`, and `airr` for receptors) and `arrays`, and
`formats` chooses one. `hittable` reads tables of hits, of which `hits` keeps the best. `writing`
and `modelfile` write files.
"""

from .formats import open_source
from .source import NamedObjects, Source
from .streams import DataError

__all__ = ["DataError", "NamedObjects", "Source", "open_source"]
