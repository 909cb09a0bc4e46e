"""Who compares which pairs when: blocks of rows, counted."""

from .pairs import MatrixPairs, ObjectPairs, Pairs

__all__ = ["MatrixPairs", "ObjectPairs", "Pairs"]
