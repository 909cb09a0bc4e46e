"""Both looks of a fitted model at held-out objects: what they were compared with, and the benefit
of the second look.

Values are read from the store. If one of the models compares all pairs, the store contains all of
them; otherwise, a sample of objects is compared with the candidates of the second look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.candidates import nearest_points
from ..core.checks import Array, Indices
from ..core.evidence import squared
from ..core.gate import looked_at
from ..core.looks import Neighbours
from .scores import log_losses
from .store import PairStore

LOOKED_AT = 2_000
"""Size of the sample of held-out objects for which both looks are recorded."""

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
"""Shares of objects, the least certain first, that get a second look along the curve."""


@dataclass(frozen=True)
class Around:
    """The objects that some objects were compared with: the landmarks, then each one's candidates.

    Missing candidates have an infinite dissimilarity.
    """

    values: Array  # (n, m): with the landmarks
    apart: Array  # (n, m + k): squared dissimilarities, or −2s for similarities
    codes: Indices  # (n, m + k)
    objects: Indices  # (n, m + k): their rows among all objects

    def nearest(self, k: int) -> Neighbours:
        """Return the k nearest of each object."""
        return Neighbours.nearest([(self.apart, self.codes)], k)


def look_around(
    model: Any, train: Indices, store: PairStore, rows: Indices, unknown: Indices | None = None
) -> Around:
    """Compare held-out objects with the landmarks and candidates of a model fitted to `train`.

    `unknown` (n,) gives a class for each object whose members are excluded from its candidates, as
    if the model did not know the class; −1 for none. Landmarks of that class stay in the result and
    can be recognised by their codes.
    """
    values = store.read(rows, train[model.landmarks_])
    kind, known = model.space_.kind, model.known_
    codes = np.broadcast_to(model.reference_.landmark_codes, values.shape)
    objects = np.broadcast_to(train[model.landmarks_], values.shape)
    apart = squared(values, kind)
    k = 0 if known is None else known.n_candidates
    more_apart = np.full((len(rows), k), np.inf)
    more_codes = np.zeros((len(rows), k), dtype=np.intp)
    more_objects = np.zeros((len(rows), k), dtype=np.intp)
    if known is not None and k:
        points = known.space.points(values)
        missing = np.full(len(rows), -1) if unknown is None else unknown
        for c in np.unique(missing):
            here, allowed = np.flatnonzero(missing == c), np.flatnonzero(known.codes != c)
            places = allowed[nearest_points(known.points[allowed], points[here], k)[0]]
            for i, candidates in zip(here.tolist(), places, strict=True):
                n, others = len(candidates), train[known.indices[candidates]]
                more_apart[i, :n] = squared(_values(store, int(rows[i]), others), kind)
                more_codes[i, :n] = known.codes[candidates]
                more_objects[i, :n] = others
    return Around(
        values,
        np.hstack([apart, more_apart]),
        np.hstack([codes, more_codes]),
        np.hstack([objects, more_objects]),
    )


def _values(store: PairStore, row: int, others: Indices) -> Array:
    """Return the values of one object with others.

    A store keeps N values per column, so for a symmetric measure the single object is the column.
    """
    one = np.array([row])
    if store.pairs.symmetric:
        return store.read(others, one)[:, 0]
    return store.read(one, others)[0]


@dataclass(frozen=True)
class BothLooks:
    """The results of both looks at held-out objects."""

    codes: Indices  # (n,): the true classes
    first: Array  # (n, C): probabilities after the first look
    second: Array  # (n, C): after the second, which all objects get here
    looked: NDArray[np.bool_]  # (n,): objects to which the model itself gives a second look
    costs: Array  # (n, 2): comparisons of the first look, and of the second beyond it

    @classmethod
    def of(cls, model: Any, around: Around, codes: Indices) -> BothLooks:
        """Return both looks of a model at objects of these classes."""
        looks, known, V = model.looks_, model.known_, around.values
        opinions = looks.opinions(V)
        first = looks.first_look(opinions)
        second, looked = first, np.zeros(len(V), dtype=bool)
        if known is not None:
            second = looks.second_look(opinions, around.nearest(known.k))
            looked = looked_at(np.exp(first.max(axis=1)), looks.threshold)
            apart = known.candidates(V)[1]
            looked |= apart[:, 0] > known.far if apart.shape[1] else False
        m = V.shape[1]
        costs = np.tile([float(m), float(around.apart.shape[1] - m)], (len(V), 1))
        return cls(codes, np.exp(first), np.exp(second), looked, costs)


@dataclass(frozen=True)
class LookCurve:
    """Accuracy and log-loss against the mean number of comparisons per prediction.

    The last point of each array is the model itself. The others give a second look to increasing
    shares of the objects, the least certain first, from none to all.
    """

    comparisons: Array
    accuracy: Array
    log_loss: Array
    looked: Array  # share of objects
    n: int  # number of objects in the sample

    @classmethod
    def of(cls, folds: list[BothLooks]) -> LookCurve | None:
        """Return the curve over all folds; None if the model has no second look."""
        looks = [fold for fold in folds if len(fold.codes)]
        costs = np.concatenate([fold.costs for fold in looks]) if looks else np.zeros((0, 2))
        if not costs[:, 1].any():
            return None
        codes = np.concatenate([fold.codes for fold in looks])
        first = np.concatenate([fold.first for fold in looks])
        second = np.concatenate([fold.second for fold in looks])
        order = np.argsort(first.max(axis=1), kind="stable")
        masks = []
        for share in SHARES:
            mask = np.zeros(len(codes), dtype=bool)
            mask[order[: round(share * len(codes))]] = True
            masks.append(mask)
        masks.append(np.concatenate([fold.looked for fold in looks]))
        points = []
        for mask in masks:
            P = np.where(mask[:, None], second, first)
            points.append(
                (
                    float((costs[:, 0] + mask * costs[:, 1]).mean()),
                    float((P.argmax(axis=1) == codes).mean()),
                    float(log_losses(P, codes).mean()),
                    float(mask.mean()),
                )
            )
        comparisons, accuracy, log_loss, looked = np.array(points).T
        return cls(comparisons, accuracy, log_loss, looked, len(codes))
