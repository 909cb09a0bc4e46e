"""Look zero: what the objects themselves say, before any comparison.

The features of strings, sequences and series (`krein.measures.features`) feed a logistic
regression, which becomes one more head of the pool. Its scores of held-out objects come from
cross-fitting.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ..core.checks import Array, Codes, Indices
from ..core.looks import BANDWIDTHS
from ..core.moments import weights_of
from ..data.dataset import Dataset, uniform_keys
from ..measures import Measure
from ..measures.features import FeatureMap, NGrams, feature_map
from ..model.heads import FeatureHead, NeighbourHead
from .fitting import dealt_in_turn

FEATURE_OBJECTS = 100_000
"""The head learns from at most about this many objects."""

MOST_CLASSES = 100
"""With more classes, one weight per n-gram and class would teach nothing: the labels of the objects
with the most similar n-grams are used instead."""

MOST_ENTRIES = 20_000_000
"""The neighbours of look zero take 8 bytes per n-gram of each known object; beyond this many, there
are none."""

STRENGTHS = (1.0, 10.0, 100.0)
"""Candidate values of C, the inverse strength of the penalty."""

N_FOLDS = 3
_SEED = 2


@dataclass(frozen=True)
class FeatureFit:
    """The head of the features, and its held-out scores of some objects."""

    head: FeatureHead | NeighbourHead
    rows: Indices  # (n,): the objects that were held out, ascending
    scores: Array  # (n, C)

    def scores_of(self, indices: Indices) -> Array:
        """Return the held-out scores of some of these objects."""
        return self.scores[np.searchsorted(self.rows, indices)]


def fit_features(
    data: Dataset,
    measure: Measure,
    codes: Codes,
    weights: Array | None,
    n_classes: int,
    held_out: Indices,
    groups: Indices,
    seed: int,
) -> FeatureFit | None:
    """Fit the head of the features to the objects of a data set; None if they have no features.

    `codes`, `weights` and `groups` are those of all objects, and `held_out` the rows that need
    held-out scores. Objects of one group are held out together. No pair is compared.
    """
    if measure.accepts == "values":
        return None
    w = weights_of(weights, len(codes))
    rows = np.flatnonzero(w > 0)
    if len(rows) > FEATURE_OBJECTS:
        drawn = uniform_keys(_SEED, rows) < FEATURE_OBJECTS / len(rows)
        rows = np.union1d(rows[drawn], held_out)
    objects = measure.contents(data.take(rows, measure).objects)
    if objects is None:
        return None
    features = feature_map(measure, objects, np.random.default_rng(seed))
    if features is None:
        return None
    F, y, w, groups = features(objects), codes[rows], w[rows], groups[rows]
    place = np.searchsorted(rows, held_out)
    if n_classes > MOST_CLASSES:
        return _neighbours(features, F, y, w, n_classes, held_out, place, groups)
    folds = _folds(y, place, groups)
    scores = np.zeros((len(held_out), n_classes))
    strength, best = STRENGTHS[1], None
    for fold in range(int(folds.max(initial=-1)) + 1):
        held = place[folds == fold]
        rest = ~np.isin(groups, groups[held])
        tried = STRENGTHS if best is None else (strength,)
        for C in tried:
            W, b = _logistic(F[rest], y[rest], w[rest], n_classes, C, features)
            found = np.asarray(F[held] @ W + b)
            loss = float(np.average(_losses(found, y[held]), weights=w[held]))
            if best is None or loss < best or len(tried) == 1:
                best, strength = loss, C
                scores[folds == fold] = found
    W, b = _logistic(F, y, w, n_classes, strength, features)
    head = FeatureHead(features, W.astype(np.float32), b)
    return FeatureFit(head, held_out, scores)


def _neighbours(
    features: Any,
    F: Any,
    codes: Codes,
    weights: Array,
    n_classes: int,
    held_out: Indices,
    place: Indices,
    groups: Indices,
) -> FeatureFit | None:
    """Return the head for many classes, with the bandwidth that has the least held-out loss."""
    if not isinstance(features, NGrams) or F.nnz > MOST_ENTRIES:
        return None
    best: tuple[float, FeatureFit] | None = None
    for bandwidth in BANDWIDTHS:
        head = NeighbourHead.of(features, F, codes.astype(np.intp), n_classes, bandwidth)
        scores = head.evidence(F[place], without=(groups[place], groups))
        loss = float(np.average(_losses(scores, codes[place]), weights=weights[place]))
        if best is None or loss < best[0]:
            best = loss, FeatureFit(head, held_out, scores)
    return None if best is None else best[1]


def _folds(codes: Codes, place: Indices, groups: Indices) -> NDArray[np.intp]:
    """Return the fold of each held-out object: the groups of each class in turn."""
    order = np.lexsort([place, codes[place]])
    folds = np.empty(len(place), dtype=np.intp)
    folds[order] = dealt_in_turn(groups[place[order]], N_FOLDS)
    return folds


def _logistic(
    F: Any, y: Codes, w: Array, n_classes: int, C: float, features: FeatureMap
) -> tuple[Array, Array]:
    """Return weights (D, C) and intercepts of a multinomial logistic regression."""
    if not isinstance(features, NGrams):
        C = C / F.shape[1]  # standardised columns, instead of rows of length 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # more steps would change nothing
        model = LogisticRegression(C=C, max_iter=200, tol=1e-3).fit(F, y, sample_weight=w)
    W, b = np.zeros((F.shape[1], n_classes)), np.full(n_classes, -np.inf)
    if len(model.classes_) == 2:
        first, second = model.classes_
        W[:, first], W[:, second] = -model.coef_[0] / 2, model.coef_[0] / 2
        b[first], b[second] = -model.intercept_[0] / 2, model.intercept_[0] / 2
    else:
        W[:, model.classes_], b[model.classes_] = model.coef_.T, model.intercept_
    b[~np.isfinite(b)] = min(0.0, float(b[np.isfinite(b)].min())) - 30.0  # a class never seen
    return W, b


def _losses(scores: Array, codes: Codes) -> Array:
    top = scores.max(axis=1, keepdims=True)
    total = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
    return total - scores[np.arange(len(codes)), codes]
