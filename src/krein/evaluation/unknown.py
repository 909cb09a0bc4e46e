"""Detection of unknown classes and of wrong labels, estimated from held-out objects.

Each class in turn is treated as unknown. Its held-out objects are compared with the other classes
only, and scored by their three nearest objects as in `core.novelty`. Held-out objects of the other
classes are scored in the same way. The AUROC of a class is the probability that an object of the
unknown class is farther from everything known than an object of a known class.

This is an approximation, because the landmarks and the space in which candidates are searched were
chosen with the class included. The candidates are chosen anew, since an object's usual candidates
mostly belong to its own class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..core.checks import Array, Indices
from ..core.novelty import NEAREST, novelty_scores
from .looking import Around, look_around
from .store import PairStore

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
