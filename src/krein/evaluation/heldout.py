"""The quality of probabilities: log-loss and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..core.checks import Array, Indices
from ..core.conformal import NEAREST, novelty_scores
from ..core.looks import Neighbours, looked_at, nearest_points, squared
from .store import PairStore

BINS = 10
"""Number of confidence bins of equal width, from 0 to 1."""


@dataclass(frozen=True)
class Reliability:
    """For each bin of confidence: number of objects, mean confidence, accuracy."""

    edges: Array  # (BINS + 1,)
    count: Array
    confidence: Array  # NaN if a bin is empty
    accuracy: Array

    @property
    def error(self) -> float:
        """Expected calibration error: the mean |accuracy − confidence|, weighted by the counts."""
        filled = self.count > 0
        gap = np.abs(self.accuracy[filled] - self.confidence[filled])
        return float(self.count[filled] @ gap / self.count.sum())


def reliability(P: Array, codes: Indices) -> Reliability:
    """Compare the probability (n, C) of the predicted class with its accuracy.

    >>> reliability(np.array([[0.8, 0.2]] * 5), np.array([0, 0, 0, 0, 1])).error
    0.0
    """
    sure, right = P.max(axis=1), P.argmax(axis=1) == codes
    place = np.minimum((sure * BINS).astype(np.intp), BINS - 1)
    count = np.bincount(place, minlength=BINS).astype(float)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(place, weights=sure, minlength=BINS) / count
        accuracy = np.bincount(place, weights=right, minlength=BINS) / count
    return Reliability(np.linspace(0, 1, BINS + 1), count, confidence, accuracy)


def log_losses(P: Array, codes: Indices) -> Array:
    """Return −log of the probability of each object's own class, at most 745 (the smallest
    float)."""
    return -np.log(np.maximum(P[np.arange(len(codes)), codes], np.finfo(float).smallest_subnormal))


# -------------------------------------------------------------------------------------------------
# Both looks of a fitted model at held-out objects: what they were compared with, and the benefit
# of the second look.
#
# Values are read from the store. If one of the models compares all pairs, the store contains all of
# them; otherwise, a sample of objects is compared with the candidates of the second look.
# -------------------------------------------------------------------------------------------------

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


# -------------------------------------------------------------------------------------------------
# Detection of unknown classes and of wrong labels, estimated from held-out objects.
#
# Each class in turn is treated as unknown. Its held-out objects are compared with the other
# classes only, and scored by their three nearest objects as in `core.novelty`. Held-out objects
# of the other classes are scored in the same way. The AUROC of a class is the probability that an
# object of the unknown class is farther from everything known than an object of a known class.
#
# This is an approximation, because the landmarks and the space in which candidates are searched
# were chosen with the class included. The candidates are chosen anew, since an object's usual
# candidates mostly belong to its own class.
# -------------------------------------------------------------------------------------------------

SAMPLED, FEWEST, MOST_CLASSES = 500, 5, 100
"""Number of held-out objects, minimum number per class, and maximum number of unknown classes."""

ALARMS = 0.05
"""Share of known objects that may be called unknown by mistake."""

UNLIKELY, CERTAIN, MOST_STRANGE = 0.05, 0.9, 10
"""A label is suspect if its probability is at most the first number, that of another label at least
the second, and the nearest objects have other labels. The third is the maximum number reported."""


@dataclass(frozen=True)
class Unknown:
    """How well each class is recognised when it is unknown; one entry per class left out."""

    codes: Indices  # (k,): the classes
    auroc: Array  # (k,)
    found: Array  # (k,): share that is farther away than 95 % of the known objects
    nearest: Indices  # (k,): the class that most of its objects are nearest to
    counts: Indices  # (k,): objects that were treated as unknown
    n: int  # number of objects examined


@dataclass(frozen=True)
class Strange:
    """An object whose label may be wrong."""

    index: int
    probability: float  # of its own label
    other: int  # code of the label that the model is sure of
    other_probability: float
    nearest: tuple[int, ...]  # rows of the nearest objects, whose labels differ from its own


def sample_for_unknown(codes: Indices, seed: int) -> Indices:
    """Return up to 500 objects to treat as unknown and known, the same number from each class."""
    rng = np.random.default_rng(seed)
    sizes = np.bincount(codes)
    largest = np.argsort(-sizes, kind="stable")[:MOST_CLASSES]
    each = max(FEWEST, SAMPLED // len(largest))
    chosen = []
    for c in np.sort(largest[sizes[largest] >= FEWEST]):
        own = np.flatnonzero(codes == c)
        chosen.append(rng.permutation(own)[:each])
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class LeftOutScores:
    """Novelty scores of some held-out objects."""

    codes: Indices  # (n,)
    known: Array  # (n, C): if class c is left out, for objects of other classes
    unknown: Array  # (n,): if the object's own class is left out
    nearest: Indices  # (n,): the class of the nearest object then


def left_out_scores(
    model: Any, train: Indices, store: PairStore, rows: Indices, codes: Indices, n_classes: int
) -> LeftOutScores:
    """Return the scores of held-out objects by a model fitted to `train`, class by class."""
    kind = model.space_.kind
    usual = look_around(model, train, store, rows)
    known = np.stack([_scores(usual, c, kind) for c in range(n_classes)], axis=1)
    alone = look_around(model, train, store, rows, unknown=codes)
    own = np.where(alone.codes == codes[:, None], np.inf, alone.apart)
    nearest = np.take_along_axis(alone.codes, own.argmin(axis=1)[:, None], axis=1)[:, 0]
    return LeftOutScores(codes, known, _mean_of_nearest(own, kind), nearest)


def _scores(around: Around, c: int, kind: Literal["similarity", "dissimilarity"]) -> Array:
    return _mean_of_nearest(np.where(around.codes == c, np.inf, around.apart), kind)


def _mean_of_nearest(apart: Array, kind: Literal["similarity", "dissimilarity"]) -> Array:
    """Return the novelty scores (n,); NaN if fewer than three objects are left to compare with."""
    near = np.sort(apart, axis=1)[:, :NEAREST]
    few = ~np.isfinite(near).all(axis=1) | (near.shape[1] < NEAREST)
    return np.where(few, np.nan, novelty_scores(np.where(few[:, None], 0.0, near), kind))


def summarise(folds: list[LeftOutScores], n_classes: int) -> Unknown | None:
    """Return how well each class is separated from the known ones, over all folds."""
    from scipy.stats import rankdata

    if not folds or not sum(len(fold.codes) for fold in folds):
        return None
    codes = np.concatenate([fold.codes for fold in folds])
    known = np.concatenate([fold.known for fold in folds])
    unknown = np.concatenate([fold.unknown for fold in folds])
    nearest = np.concatenate([fold.nearest for fold in folds])
    rows = []
    for c in np.unique(codes).tolist():
        here = (codes == c) & np.isfinite(unknown)
        u, k = unknown[here], known[codes != c, c]
        k = k[np.isfinite(k)]
        if len(u) < FEWEST or len(k) < FEWEST:
            continue
        ranks = rankdata(np.concatenate([u, k]))[: len(u)]
        auroc = (ranks.sum() - len(u) * (len(u) + 1) / 2) / (len(u) * len(k))
        found = float((u > np.quantile(k, 1 - ALARMS)).mean())
        like = int(np.bincount(nearest[here], minlength=n_classes).argmax())
        rows.append((c, auroc, found, like, len(u)))
    if not rows:
        return None
    which, area, beyond, beside, counts = (np.array(part) for part in zip(*rows, strict=True))
    return Unknown(which, area, beyond, beside, counts, len(codes))


def strange_objects(
    model: Any, train: Indices, store: PairStore, rows: Indices, codes: Indices, P: Array
) -> list[Strange]:
    """Return held-out objects of a fold with suspect labels, the least probable label first.

    `P` (n, C) are their held-out probabilities. Only objects with a low probability of their own
    label are compared with others.
    """
    own, other = P[np.arange(len(codes)), codes], P.argmax(axis=1)
    doubted = np.flatnonzero((own <= UNLIKELY) & (P.max(axis=1) >= CERTAIN))
    doubted = doubted[np.argsort(own[doubted], kind="stable")][:MOST_STRANGE]
    if not len(doubted):
        return []
    around = look_around(model, train, store, rows[doubted])
    near = around.nearest(NEAREST)
    assert near.columns is not None
    objects = np.take_along_axis(around.objects, near.columns, axis=1)
    return [
        Strange(int(rows[i]), float(own[i]), int(other[i]), float(P[i, other[i]]), tuple(beside))
        for i, beside, labels in zip(doubted.tolist(), objects.tolist(), near.codes, strict=True)
        if not (labels == codes[i]).any()
    ]


# -------------------------------------------------------------------------------------------------
# Results of a two-look model in every fold, in addition to its probabilities.
# -------------------------------------------------------------------------------------------------


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
