"""Files: readers of objects and labels, and the model file."""

from .opening import open_source
from .source import Chunk, Source
from .streams import DataError

__all__ = ["Chunk", "DataError", "Source", "open_source"]
