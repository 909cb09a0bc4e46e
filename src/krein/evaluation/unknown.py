"""Classes that a model does not know, and labels that may be wrong: what held-out objects tell.

Each class in turn plays the unknown. Its held-out objects are compared with the others alone, and
scored as `core.novelty` does, by their three nearest; so are objects of the classes that stay
known, without that class. The AUROC of a class is the probability that an unknown object is farther
from everything known than a known one.

It is an approximation: landmarks were chosen and candidates are searched in a space that still knew
the class. Candidates themselves are chosen anew, since those of the class would leave none.
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
"""Held-out objects in all, and of a class at least; classes that play the unknown at most."""

ALARMS = 0.05
"""Share of known objects that may be called unknown."""

UNLIKELY, CERTAIN, MOST_STRANGE = 0.05, 0.9, 10
"""A label is doubted where it has at most the first probability, another at least the second, and
the nearest objects bear other labels; so many are told."""


@dataclass(frozen=True)
class Unknown:
    """How far classes lie apart from everything else, one entry for each that was left out."""

    codes: Indices  # (k,): the classes
    auroc: Array  # (k,)
    found: Array  # (k,): share beyond all but 5 % of the known objects
    nearest: Indices  # (k,): the class that most of its objects are nearest to
    counts: Indices  # (k,): objects that played the unknown
    n: int  # objects that were looked at in all


@dataclass(frozen=True)
class Strange:
    """An object whose label may be wrong."""

    index: int
    probability: float  # of its own label
    other: int  # code of the label that the model is sure of
    other_probability: float
    nearest: tuple[int, ...]  # rows of the nearest objects, whose labels differ from its own


def sample_for_unknown(codes: Indices, seed: int) -> Indices:
    """Return objects to play the unknown and the known: as many of each class, up to 500."""
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
    known: Array  # (n, C): where class c is left out, for objects of other classes
    unknown: Array  # (n,): where the object's own class is left out
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
    """Return the novelty scores (n,); NaN where fewer than three objects are left to compare."""
    near = np.sort(apart, axis=1)[:, :NEAREST]
    few = ~np.isfinite(near).all(axis=1) | (near.shape[1] < NEAREST)
    return np.where(few, np.nan, novelty_scores(np.where(few[:, None], 0.0, near), kind))


def summarise(folds: list[LeftOutScores], n_classes: int) -> Unknown | None:
    """Return how well each class is told from the known ones, over all folds."""
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
    """Return held-out objects of a fold whose labels are doubted, the least probable first.

    `P` (n, C) are their held-out probabilities. Only those that the model doubts are compared.
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
