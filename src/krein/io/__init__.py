"""Files: readers of objects and labels, and the model file."""

from .errors import DataError
from .opening import open_source
from .source import Chunk, Source

__all__ = ["Chunk", "DataError", "Source", "open_source"]
