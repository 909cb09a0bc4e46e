"""Who compares which pairs: blocks of rows, shared out among workers, counted, kept."""

from .opening import open_new_pairs, open_pairs
from .pairs import Pairs

__all__ = ["Pairs", "open_new_pairs", "open_pairs"]
