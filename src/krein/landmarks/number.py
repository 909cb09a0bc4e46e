"""How many landmarks, where the rule needs a number and nobody gave one."""

from __future__ import annotations

import numpy as np

from ..compare import Pairs
from .base import Codes
from .meb import MEB


def number_of_landmarks(
    asked: int | None, pairs: Pairs, codes: Codes | None, rng: np.random.Generator
) -> int:
    """Return `asked`, checked, or the number that MEB would choose (the paper's comparison)."""
    if asked is None:
        return len(MEB().select(pairs, codes, rng).indices)
    if asked != int(asked) or asked < 1:
        raise ValueError(f"n_landmarks must be a whole number, at least 1; got {asked}")
    if asked > len(pairs):
        raise ValueError(f"n_landmarks={asked} landmarks were asked for among {len(pairs)} objects")
    return int(asked)
