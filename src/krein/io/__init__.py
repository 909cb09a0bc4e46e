"""Files: readers of objects and labels, and the model file."""

from .source import NamedObjects, Source, open_source
from .streams import DataError

__all__ = ["DataError", "NamedObjects", "Source", "open_source"]
