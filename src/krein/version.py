"""The version, in a file that imports nothing."""

__version__ = "0.2.0.dev0"
