"""The scores of held-out objects after both looks, as a reference for new objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..core.checks import Array
from ..core.conformal import LabelReference, NoveltyReference, log_odds, novelty_scores
from ..core.family import Codes
from ..core.looks import Neighbours, TwoLooks
from .heads import HeldOut


@dataclass(frozen=True)
class Reference:
    """The held-out scores among which new objects are ranked, and the baseline of explanations."""

    novelty: NoveltyReference
    labels: LabelReference
    baseline: Array  # (m,): mean values to the landmarks; for d, root mean squares
    landmark_codes: Codes  # (m,)


@dataclass(frozen=True)
class Refer:
    """Held-out objects and the predictions of each head, from which to build a reference."""

    sample: HeldOut
    held_out: list[Array]  # (n, C) each
    kind: Literal["similarity", "dissimilarity"]
    landmark_codes: Codes
    class_weights: Array | None  # (C,): costs of errors, not numbers of objects

    def to(self, looks: TwoLooks, near: Neighbours, again: NDArray[np.bool_]) -> Reference:
        """Return the reference for these neighbours; `again` marks objects with a second look."""
        codes, weights = self.sample.codes.astype(np.intp), self.sample.weights
        if weights is not None and self.class_weights is not None:
            weights = weights / self.class_weights[codes]
        log_proba = looks.unbounded(self.held_out, near, again)
        C, rows = log_proba.shape[1], np.arange(len(codes))
        scores = novelty_scores(near.apart, self.kind)
        power = 2 if self.kind == "dissimilarity" else 1
        mean = np.average(self.sample.values**power, axis=0, weights=weights)
        return Reference(
            NoveltyReference(scores, log_proba.argmax(axis=1), weights, C),
            LabelReference(log_odds(log_proba)[rows, codes], codes, weights, C),
            mean ** (1 / power),
            self.landmark_codes.astype(np.intp),
        )
