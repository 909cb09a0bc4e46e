"""The number of landmarks, if the rule needs one and none is given."""

from __future__ import annotations

import numpy as np

from ..compare import Pairs
from .base import Codes
from .meb import MEB


def number_of_landmarks(
    asked: int | None, pairs: Pairs, codes: Codes | None, rng: np.random.Generator
) -> int:
    """Return `asked` after checking it, or the number that MEB would choose (as in the paper)."""
    if asked is None:
        return len(MEB().select(pairs, codes, rng).indices)
    if asked != int(asked) or asked < 1:
        raise ValueError(f"n_landmarks must be a whole number, at least 1; got {asked}")
    if asked > len(pairs):
        raise ValueError(
            f"n_landmarks={asked} landmarks cannot be chosen among {len(pairs)} objects"
        )
    return int(asked)
