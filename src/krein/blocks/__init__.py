"""Who compares which pairs when: blocks of rows, shared out, counted, kept."""

from .opening import is_precomputed, open_new_pairs, open_pairs
from .pairs import MatrixPairs, ObjectPairs, Pairs, SubsetPairs

__all__ = [
    "MatrixPairs",
    "ObjectPairs",
    "Pairs",
    "SubsetPairs",
    "is_precomputed",
    "open_new_pairs",
    "open_pairs",
]
