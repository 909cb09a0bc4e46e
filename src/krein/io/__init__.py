"""Files: readers of objects and labels, and the model file."""

from .errors import DataError
from .source import Chunk, Source, open_source

__all__ = ["Chunk", "DataError", "Source", "open_source"]
