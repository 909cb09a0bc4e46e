"""Compare pairs in blocks of rows, distributed among workers, counted and cached."""

from .opening import open_new_pairs, open_pairs
from .pairs import Pairs

__all__ = ["Pairs", "open_new_pairs", "open_pairs"]
