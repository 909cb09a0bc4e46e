"""Results of a two-look model in every fold, in addition to its probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.checks import Array, Indices
from .looking import LOOKED_AT, BothLooks, LookCurve, look_around
from .store import PairStore
from .unknown import (
    MOST_STRANGE,
    LeftOutScores,
    Strange,
    left_out_scores,
    sample_for_unknown,
    strange_objects,
    summarise,
)


class HeldOutLooks:
    """Both looks at held-out objects, collected fold by fold."""

    def __init__(self, store: PairStore, codes: Indices, n_classes: int, seed: int) -> None:
        self.store, self.codes, self.n_classes = store, codes, n_classes
        drawn = np.random.default_rng(seed).permutation(len(codes))[:LOOKED_AT]
        self.looked_at = np.sort(drawn)
        self.sample = sample_for_unknown(codes, seed)
        self.looks: list[BothLooks] = []
        self.scores: list[LeftOutScores] = []
        self.strange: list[Strange] = []

    def add(self, model: Any, train: Indices, test: Indices, P: Array) -> None:
        """Add the results of a model fitted to `train`; `P` are the probabilities of `test`."""
        rows = np.intersect1d(test, self.looked_at)
        if model.known_ is not None and len(rows):
            around = look_around(model, train, self.store, rows)
            self.looks.append(BothLooks.of(model, around, self.codes[rows]))
        rows = np.intersect1d(test, self.sample)
        if len(rows):
            self.scores.append(
                left_out_scores(model, train, self.store, rows, self.codes[rows], self.n_classes)
            )
        self.strange += strange_objects(model, train, self.store, test, self.codes[test], P)

    def found(self) -> dict[str, Any]:
        """Return the results over all folds."""
        listed = sorted(self.strange, key=lambda one: (one.probability, one.index))
        return {
            "looks": LookCurve.of(self.looks),
            "unknown": summarise(self.scores, self.n_classes),
            "strange": listed[:MOST_STRANGE],
        }
