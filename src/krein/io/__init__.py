"""Files: readers of objects and labels, and the model file."""

from .formats import open_source
from .source import NamedObjects, Source
from .streams import DataError

__all__ = ["DataError", "NamedObjects", "Source", "open_source"]
