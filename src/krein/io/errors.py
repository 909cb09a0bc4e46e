"""What is wrong with a file, in one line."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be used: the message names the file, the line and the object."""
