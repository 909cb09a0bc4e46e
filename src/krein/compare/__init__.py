"""Compare pairs in blocks of rows, distributed among workers, counted and cached."""

from .pairs import Pairs, open_new_pairs, open_pairs

__all__ = ["Pairs", "open_new_pairs", "open_pairs"]
