"""Who compares which pairs when: blocks of rows, shared out, counted, kept."""

from .matrixpairs import MatrixPairs
from .opening import is_precomputed, open_new_pairs, open_pairs
from .pairs import ObjectPairs, Pairs, SubsetPairs
from .shared import PairStore, SharedPairs

__all__ = [
    "MatrixPairs",
    "ObjectPairs",
    "PairStore",
    "Pairs",
    "SharedPairs",
    "SubsetPairs",
    "is_precomputed",
    "open_new_pairs",
    "open_pairs",
]
