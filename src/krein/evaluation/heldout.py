"""What held-out objects show about a model.

For any model: the quality of its probabilities, as log-loss and calibration. For a model with two
looks also the benefit of the second look, how well objects of an unknown class can be recognised,
and which labels may be wrong. `TwoLookResults` collects these fold by fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.cascade import Worth
from ..core.conformal import NEAREST, novelty_scores
from ..core.evidence import Neighbours, squared
from ..core.hits import KnownHits
from ..core.shapes import Array, Indices, Kind
from ..model.model import Model
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
    return calibration_bins(P.max(axis=1), P.argmax(axis=1) == codes)


def calibration_bins(sure: Array, right: NDArray[np.bool_]) -> Reliability:
    """Compare the confidences (n,) of predictions with their accuracy."""
    place = np.minimum((sure * BINS).astype(np.intp), BINS - 1)
    count = np.bincount(place, minlength=BINS).astype(float)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(place, weights=sure, minlength=BINS) / count
        accuracy = np.bincount(place, weights=right, minlength=BINS) / count
    return Reliability(np.linspace(0, 1, BINS + 1), count, confidence, accuracy)


def log_losses(P: Array, codes: Indices) -> Array:
    """Return −log of the probability of each object's own class."""
    return minus_log(P[np.arange(len(codes)), codes])


def minus_log(p: Array) -> Array:
    """Return −log p, from 0 (not −0) to 745, that of the smallest float."""
    found: Array = np.abs(np.log(np.clip(p, np.finfo(float).smallest_subnormal, 1.0)))
    return found


# Both looks at held-out objects
#
# Values are read from the store. If one of the models compares all pairs, the store contains all of
# them; otherwise, a sample of objects is compared with the candidates of the second look. Only
# `compare_held_out` and `BothLooks.of` know what a fitted model consists of.

LOOKED_AT = 2_000
"""Size of the sample of held-out objects for which both looks are recorded."""

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
"""Shares of objects, the least certain first, that get a second look along the curve."""


@dataclass(frozen=True)
class HeldOutComparisons:
    """What held-out objects were compared with: the landmarks, then the candidates of each.

    Missing candidates have an infinite dissimilarity.
    """

    kind: Kind  # of the measure
    values: Array  # (n, m): with the landmarks
    apart: Array  # (n, m + k): squared dissimilarities, or −2s for similarities
    codes: Indices  # (n, m + k)
    numbers: Array  # (n, m + k): how many objects each one stands for
    objects: Indices  # (n, m + k): their rows among all objects

    def nearest(self, k: int) -> Neighbours:
        """Return the k nearest of each object."""
        return Neighbours.nearest([(self.apart, self.codes, self.numbers)], k)

    def without(self, c: int | Indices) -> Array:
        """Return `apart`, infinite for objects of class c: one for all rows, or one per row."""
        return np.where(self.codes == np.reshape(c, (-1, 1)), np.inf, self.apart)


def compare_held_out(
    model: Model, train: Indices, store: PairStore, rows: Indices, unknown: Indices | None = None
) -> HeldOutComparisons:
    """Compare held-out objects with the landmarks and candidates of a model fitted to `train`.

    `unknown` (n,) gives a class for each object whose members are excluded from its candidates, as
    if the model did not know the class; −1 for none. Landmarks of that class stay in the result and
    can be recognised by their codes.
    """
    landmarks, kind = train[model.landmarks.indices], model.measure.kind
    known = None if model.second_look is None else model.second_look.known
    assert not isinstance(known, KnownHits)  # hits are not compared
    values = store.read(rows, landmarks)
    m, k = len(landmarks), 0 if known is None else known.n_candidates
    apart = np.full((len(rows), m + k), np.inf)
    codes, objects = np.zeros((2, len(rows), m + k), dtype=np.intp)
    numbers = np.ones(apart.shape)
    apart[:, :m] = squared(values, kind)
    codes[:, :m], objects[:, :m] = model.landmarks.codes, landmarks
    if known is not None:
        numbers[:, :m] = known.landmark_numbers
    if known is not None and k:
        missing = np.full(len(rows), -1) if unknown is None else unknown
        points = model.points(rows)
        for c in np.unique(missing).tolist():
            here, others = np.flatnonzero(missing == c), known.without_class(c)
            found, _ = others.candidates(values[here], points[here])
            for i, candidates in zip(here.tolist(), found, strict=True):
                some, objs = slice(m, m + len(candidates)), train[others.indices[candidates]]
                apart[i, some] = squared(store.read_row(int(rows[i]), objs), kind)
                codes[i, some], objects[i, some] = others.codes[candidates], objs
                numbers[i, some] = others.numbers[candidates]
    return HeldOutComparisons(kind, values, apart, codes, numbers, objects)


@dataclass(frozen=True)
class BothLooks:
    """The results of both looks at held-out objects."""

    certainty: Array  # (n,): the largest probability after the first look
    right: NDArray[np.bool_]  # (n, 2): after the first look, and after a second one at all objects
    losses: Array  # (n, 2): log-losses, likewise
    looked: NDArray[np.bool_]  # (n,): objects to which the model itself gives a second look
    costs: Array  # (n, 2): comparisons of the first look, and of the second beyond it

    @classmethod
    def of(
        cls, model: Model, compared: HeldOutComparisons, rows: Indices, codes: Indices
    ) -> BothLooks | None:
        """Return both looks at some rows; None if the model has only the first.

        `codes` are their classes, as places among those of the model.

        Objects that the features alone decide are not compared: both looks are the same.
        """
        if model.second_look is None:
            return None
        cascade, V = model.cascade, compared.values
        terms = model.terms(V, rows, compared.nearest(model.second_look.known.k))
        *_, first, second = cascade.after_each(terms)
        own, depth = cascade.run(
            len(V), second.shape[1], lambda k, some: [term[some] for term in terms[k]]
        )
        n, m = V.shape
        costs = np.tile([float(m), float(compared.apart.shape[1] - m)], (n, 1))
        sure, looked = depth < len(terms) - 2, depth == len(terms) - 1
        first[sure], second[sure], costs[sure] = own[sure], own[sure], 0.0
        both = np.exp(cascade.bounded(first)), np.exp(cascade.bounded(second))
        right = np.stack([P.argmax(axis=1) == codes for P in both], axis=1)
        losses = np.stack([log_losses(P, codes) for P in both], axis=1)
        return cls(both[0].max(axis=1), right, losses, looked, costs)


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
        if not any(fold.costs[:, 1].any() for fold in folds):
            return None
        certainty, right, losses, looked, costs = _joined(folds)
        n = len(certainty)
        order = np.argsort(np.argsort(certainty, kind="stable"))  # as ranks
        masks = [order < round(share * n) for share in SHARES]
        points = []
        for mask in [*masks, looked]:
            look = mask.astype(np.intp)
            spent = costs[:, 0] + mask * costs[:, 1]
            chosen = right[np.arange(n), look], losses[np.arange(n), look]
            points.append([values.mean() for values in (spent, *chosen, mask)])
        comparisons, accuracy, log_loss, share = np.array(points).T
        return cls(comparisons, accuracy, log_loss, share, n)

    def summary(self) -> dict[str, list[float]]:
        """Return the curve as JSON-compatible values."""
        return {one.name: getattr(self, one.name).tolist() for one in fields(self)[:-1]}


def _joined(folds: Sequence[Any]) -> list[NDArray[Any]]:
    """Return each field of the folds' dataclasses as one array over all folds."""
    return [np.concatenate([getattr(fold, one.name) for fold in folds]) for one in fields(folds[0])]


# Unknown classes
#
# Each class in turn is treated as unknown. Its held-out objects are compared with the other
# classes only, and scored by their three nearest objects as in `core.conformal`. Held-out objects
# of the other classes are scored in the same way. The AUROC of a class is the probability that an
# object of the unknown class is farther from everything known than an object of a known class.
#
# This is an approximation, because the landmarks and the space in which candidates are searched
# were chosen with the class included. The candidates are chosen anew, since an object's usual
# candidates mostly belong to its own class.

UNKNOWN, FEWEST_UNKNOWN, MOST_UNKNOWN = 500, 5, 100
"""Number of held-out objects, minimum number per class, and maximum number of unknown classes."""

ALARMS = 0.05
"""Share of known objects that may be called unknown by mistake."""


def sample_for_unknown(codes: Indices, seed: int) -> Indices:
    """Return up to 500 objects to treat as unknown and known, the same number from each class."""
    rng = np.random.default_rng(seed)
    sizes = np.bincount(codes[codes >= 0])
    largest = np.argsort(-sizes, kind="stable")[:MOST_UNKNOWN]
    each = max(FEWEST_UNKNOWN, UNKNOWN // len(largest))
    chosen = []
    for c in np.sort(largest[sizes[largest] >= FEWEST_UNKNOWN]):
        own = np.flatnonzero(codes == c)
        chosen.append(rng.permutation(own)[:each])
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class UnknownClassScores:
    """Novelty scores of some held-out objects, with classes treated as unknown."""

    codes: Indices  # (n,)
    known: Array  # (n, k): if one of k classes is unknown, for objects of the others
    unknown: Array  # (n,): if the object's own class is unknown
    nearest: Indices  # (n,): the class of the nearest object then

    @classmethod
    def of(
        cls, usual: HeldOutComparisons, alone: HeldOutComparisons, codes: Indices, classes: Indices
    ) -> UnknownClassScores:
        """Return the scores, from usual comparisons and from those without the own class.

        `classes` are those that are treated as unknown.
        """
        known = [_mean_of_nearest(usual.without(c), usual.kind) for c in classes.tolist()]
        apart = alone.without(codes)
        nearest = np.take_along_axis(alone.codes, apart.argmin(axis=1)[:, None], axis=1)[:, 0]
        return cls(codes, np.stack(known, axis=1), _mean_of_nearest(apart, alone.kind), nearest)


def _mean_of_nearest(apart: Array, kind: Kind) -> Array:
    """Return the novelty scores (n,); NaN if fewer than three objects are left to compare with."""
    near = np.sort(apart, axis=1)[:, :NEAREST]
    few = ~np.isfinite(near).all(axis=1) | (near.shape[1] < NEAREST)
    return np.where(few, np.nan, novelty_scores(np.where(few[:, None], 0.0, near), kind))


@dataclass(frozen=True)
class UnknownClasses:
    """How well each class is recognised when it is unknown; one entry per class."""

    codes: Indices  # (k,): the classes
    auroc: Array  # (k,)
    found: Array  # (k,): share that is farther away than 95 % of the known objects
    nearest: Indices  # (k,): the class that most of its objects are nearest to
    n: int  # number of objects examined

    @classmethod
    def of(cls, folds: list[UnknownClassScores], classes: Indices) -> UnknownClasses | None:
        """Return the results of these classes over all folds; None if none has enough objects."""
        from scipy.stats import rankdata

        if not folds:
            return None
        codes, known, unknown, nearest = _joined(folds)
        rows = []
        for column, c in enumerate(classes.tolist()):
            here = (codes == c) & np.isfinite(unknown)
            u, k = unknown[here], known[codes != c, column]
            k = k[np.isfinite(k)]
            if len(u) < FEWEST_UNKNOWN or len(k) < FEWEST_UNKNOWN:
                continue
            ranks = rankdata(np.concatenate([u, k]))[: len(u)]
            auroc = (ranks.sum() - len(u) * (len(u) + 1) / 2) / (len(u) * len(k))
            found = float((u > np.quantile(k, 1 - ALARMS)).mean())
            most = int(np.bincount(nearest[here]).argmax())
            rows.append((c, auroc, found, most))
        if not rows:
            return None
        which, area, beyond, like = (np.array(part) for part in zip(*rows, strict=True))
        return cls(which, area, beyond, like, len(codes))


# Labels that may be wrong

UNLIKELY, CERTAIN, MOST_SUSPECT = 0.05, 0.9, 10
"""A label is suspect if its probability is at most the first number, that of another label at least
the second, and the nearest objects have other labels. The third is the maximum number reported."""


@dataclass(frozen=True)
class SuspectLabel:
    """An object whose label may be wrong."""

    index: int
    probability: float  # of its own label
    other: int  # code of the label that the model is sure of
    other_probability: float
    nearest: tuple[int, ...]  # rows of the nearest objects, whose labels differ from its own


def suspect_labels(
    compare: Callable[[Indices], HeldOutComparisons],
    rows: Indices,
    codes: Indices,
    P: Array,
    learned: Indices,
) -> list[SuspectLabel]:
    """Return the suspect labels among the held-out objects of a fold, the least probable first.

    `compare` compares some of them with others, and `P` (n, C) are their probabilities of the
    classes `learned`. Only objects with a low probability of their own label are compared.
    """
    own, other = P[np.arange(len(codes)), codes], P.argmax(axis=1)
    doubted = np.flatnonzero((own <= UNLIKELY) & (P.max(axis=1) >= CERTAIN))
    doubted = doubted[np.argsort(own[doubted], kind="stable")][:MOST_SUSPECT]
    if not len(doubted):
        return []
    compared = compare(rows[doubted])
    near = compared.nearest(NEAREST)
    assert near.columns is not None
    objects = np.take_along_axis(compared.objects, near.columns, axis=1)
    return [
        SuspectLabel(
            int(rows[i]), float(own[i]), int(learned[other[i]]), float(P[i, other[i]]), tuple(them)
        )
        for i, them, labels in zip(doubted.tolist(), objects.tolist(), near.codes, strict=True)
        if not (labels == codes[i]).any()
    ]


# What each head and each look is worth


def mean_worth(folds: Sequence[Worth]) -> Worth | None:
    """Return the means over the folds; of a head that some folds leave out, over the others."""
    if not folds:
        return None
    heads, looks = (_means([getattr(fold, part) for fold in folds]) for part in ("heads", "looks"))
    return Worth(heads, looks)


def _means(folds: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """Return the means of rows with the same name."""
    longest = max(folds, key=len)
    found = []
    for row in longest:
        same = [one for fold in folds for one in fold if one.name == row.name]
        numbers = [one.name for one in fields(row) if one.name != "name"]
        found.append(
            replace(row, **{k: float(np.mean([getattr(s, k) for s in same])) for k in numbers})
        )
    return tuple(found)


class TwoLookResults:
    """The results of a model with a second look, besides its probabilities, fold by fold."""

    def __init__(self, store: PairStore, codes: Indices, seed: int) -> None:
        self.store, self.codes = store, codes
        self.looked_at = np.random.default_rng(seed).permutation(len(codes))[:LOOKED_AT]
        self.sample = sample_for_unknown(codes, seed)
        self.unknown = np.unique(codes[self.sample])
        self.looks: list[BothLooks] = []
        self.scores: list[UnknownClassScores] = []
        self.suspect: list[SuspectLabel] = []

    def add(self, model: Any, train: Indices, test: Indices, P: Array) -> None:
        """Add the results of a model fitted to `train`; `P` are the probabilities of `test`."""
        # the model numbers the classes of its training objects, which may lack some
        learned = np.unique(self.codes[train])
        codes = np.searchsorted(learned, self.codes)
        compare = partial(compare_held_out, model, train, self.store)
        rows = np.intersect1d(test, self.looked_at)
        if len(rows):
            both = BothLooks.of(model, compare(rows), rows, codes[rows])
            self.looks += [] if both is None else [both]
        rows = np.intersect1d(test, self.sample)
        if len(rows):
            usual, alone = compare(rows), compare(rows, unknown=codes[rows])
            unknown = np.searchsorted(learned, self.unknown)
            scores = UnknownClassScores.of(usual, alone, codes[rows], unknown)
            nearest = learned[scores.nearest]
            self.scores.append(replace(scores, codes=self.codes[rows], nearest=nearest))
        self.suspect += suspect_labels(compare, test, codes[test], P[:, learned], learned)

    def found(self) -> dict[str, Any]:
        """Return the results over all folds."""
        listed = sorted(self.suspect, key=lambda one: (one.probability, one.index))
        return {
            "looks": LookCurve.of(self.looks),
            "unknown": UnknownClasses.of(self.scores, self.unknown),
            "suspect_labels": listed[:MOST_SUSPECT],
        }
