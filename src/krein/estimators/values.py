"""One pass that keeps the values of all objects to the landmarks, for the passes to come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ..core.checks import Array
from ..core.moments import ClassMoments
from ..core.space import LandmarkSpace
from ..data.chunk import Chunk, Counted, LandmarkColumns
from ..data.dataset import FeatureBlock
from .classifier import codes_of


@dataclass(frozen=True)
class FeatureTerm:
    """Values of a chunk, which basis functions are made of, and the moments of its coordinates."""

    columns: LandmarkColumns
    space: LandmarkSpace
    origin: Array
    classes: NDArray[Any]
    class_weights: Array | None
    by_class: bool = False  # moments class by class, of objects with their weights

    def __call__(self, chunk: Chunk) -> Counted[FeatureBlock]:
        """Compare the chunk with the landmarks."""
        found = self.columns.values(chunk)
        codes = codes_of(chunk.labels, self.classes)
        weights = chunk.weights
        if self.class_weights is not None:
            each = self.class_weights[codes]
            weights = each if weights is None else weights * each
        B = self.space.coordinates(found.value)
        moments = ClassMoments.of(
            B,
            codes,
            len(self.classes),
            origin=self.origin,
            sample_weight=chunk.weights if self.by_class else None,
            by_class=self.by_class,
        )
        return found.holding(FeatureBlock(found.value, codes, weights, moments))
