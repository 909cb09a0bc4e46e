"""Files: readers of objects and labels, and the model file."""

from .source import Chunk, Source, open_source
from .streams import DataError

__all__ = ["Chunk", "DataError", "Source", "open_source"]
