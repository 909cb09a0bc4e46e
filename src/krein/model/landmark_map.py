"""What a transformer has: a map from objects to vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from ..compare.pairs import block_rows
from ..compare.workers import limit_blas_threads
from ..core.shapes import COUNT, Array, Within
from ..core.space import Embedding, LandmarkSpace
from ..data.chunks import Chunk, LandmarkColumns
from ..data.opening import is_empty, map_objects
from ..measures import Measure
from .parts import Comparisons, Landmarks


@dataclass(frozen=True)
class LandmarkMap:
    """What a transformer has: the map from objects to vectors, by their values to the landmarks."""

    measure: Measure
    symmetrize: bool
    space: LandmarkSpace
    embedding: Embedding | None  # None for the coordinates of the landmark space
    landmarks: Landmarks
    n_classes: Annotated[int, "C", COUNT] = 1  # of the objects that landmarks were chosen from
    n_objects: Annotated[int, "n_objects", Within(1, 2**53)] = 1

    @property
    def signs(self) -> Array:
        """+1 or −1 for each coordinate."""
        return self.space.signs if self.embedding is None else self.embedding.signs

    def transform(self, X: Any, run: Comparisons | None = None) -> Any:
        """Return the vectors (n, r) of objects: m comparisons each."""
        shape = (len(self.signs),)
        if is_empty(X):
            return np.empty((0, *shape))
        run = run or Comparisons(self.measure, self.symmetrize)
        columns = run.columns(self.landmarks.objects, self.landmarks.indices)
        return map_objects(
            X,
            partial(_vectors, self, columns),
            measure=self.measure,
            block_rows=block_rows(self.measure, len(columns)),
            shape=shape,
            dtype=np.float64,
            n_jobs=run.n_jobs,
        )

    def vectors(self, values: Array) -> Array:
        """Return the vectors (n, r) of objects with these values (n, m) to the landmarks."""
        B = self.space.coordinates(values)
        return B if self.embedding is None else self.embedding.coordinates(B)

    def check(self) -> None:
        """Raise an error if the parts do not fit together, e.g. in a forged file."""
        with np.errstate(all="ignore"):
            found = self.vectors(self.space.landmark_values)
        if not np.isfinite(found).all():
            raise ValueError("it returns vectors that are not finite")


def _vectors(model: LandmarkMap, columns: LandmarkColumns, chunk: Chunk) -> Array:
    with limit_blas_threads():
        return model.vectors(columns.values(chunk)[0])
