"""Choose the covariance: the target and amount of shrinkage with the least left-out loss.

The left-out scores of every candidate have a closed form (`left_out`). A fitted scale and fitted
class offsets turn them into probabilities (`calibration`), whose log-loss is compared. Scale and
offsets are fitted for each candidate: in many dimensions the best direction comes with distances
that are too large, and small classes look farther away than they are.

Hoffbeck & Landgrebe 1996, *Covariance matrix estimation and classification with limited training
data*, choose by the left-out likelihood of the objects; here it is the likelihood of their labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .calibration import ScaleAndOffsets, fit_scale_and_offsets
from .checks import Array
from .covariance import oas
from .left_out import LeftOutObjects, left_out_linear, left_out_quadratic
from .moments import ClassMoments
from .spectrum import RANK_TOLERANCE
from .within import TARGETS, ChosenCovariance, Target, WithinPath, target_metric

FEWEST = 4
"""With fewer objects that can be left out, nothing is chosen."""

ODDS = 10.0 ** np.arange(-6, 3)
"""Amounts to try, as ρ/(1 − ρ), besides ρ = 1; the midpoints on either side of the best follow."""

PSEUDO_OBJECTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Weights of the shared covariance in each class, in objects per dimension; ∞ is tried as well."""


@dataclass(frozen=True)
class Choice:
    """The covariance with the least left-out loss."""

    covariance: ChosenCovariance
    loss: float  # mean, including the penalty on scale and offsets


def choose_linear(
    moments: ClassMoments, lam: Array, objects: LeftOutObjects, *, exact: bool = False
) -> Choice | None:
    """Return the shared covariance of the best linear discriminant; None if there are too few data.

    If most objects are landmarks, only the target "similarities" has exact left-out scores. The
    identity is then tried with the amount given by OAS alone, because among approximate scores, the
    worst approximation would have the least loss. With `exact`, it is not tried at all.
    O(n·r² + r³) per target, O(n·r·C) per amount.

    Examples
    --------
    >>> import numpy as np
    >>> from krein.core.choice import choose_linear
    >>> from krein.core.left_out import LeftOutObjects
    >>> from krein.core.moments import ClassMoments
    >>> y = np.arange(60) % 2
    >>> B = np.random.default_rng(0).normal(size=(60, 50))  # nearly as many dimensions as objects
    >>> B[:, 0] += 2 * y
    >>> moments = ClassMoments.of(B, y, 2)
    >>> objects = LeftOutObjects.of(moments, B, y)
    >>> choose_linear(moments, np.ones(50), objects).covariance.amount > 0.1
    True
    """
    if len(objects) < FEWEST or len(np.unique(objects.codes)) < 2:
        return None
    if not _has_scatter(moments):
        return None
    dense = objects.mostly_landmarks
    best: Choice | None = None
    tried = TARGETS[: 1 if exact else 2] if dense else TARGETS
    for target in tried:
        amounts = [oas_amount(moments)] if dense and target == "identity" else None
        metric = target_metric(target, lam, moments)
        found = _along_path(target, metric, moments, objects, amounts)
        if best is None or found.loss < best.loss:
            best = found
    return best


def _along_path(
    target: Target,
    metric: Array,
    moments: ClassMoments,
    objects: LeftOutObjects,
    given: list[float] | None,
) -> Choice:
    """Return the best amount of shrinkage towards one target, among those given or among all."""
    path = WithinPath.of(moments, metric)
    log_prior = objects.log_priors()
    tried: dict[float, ScaleAndOffsets] = {}

    def amounts(wanted: list[float]) -> None:
        scored = left_out_linear(objects, moments, path, iter(wanted))
        start = None
        for amount, scores in zip(wanted, scored, strict=True):
            start = fit_scale_and_offsets(scores, log_prior, objects.codes, objects.weights, start)
            tried[amount] = start

    amounts(given or [1.0, *(odds / (1 + odds) for odds in ODDS[::-1].tolist())])
    best = min(tried, key=lambda amount: tried[amount].loss)
    if best < 1 and given is None:
        odds, half = best / (1 - best), np.sqrt(10)
        amounts([float(o / (1 + o)) for o in (odds * half, odds / half)])
        best = min(tried, key=lambda amount: tried[amount].loss)
    found = tried[best]
    chosen = ChosenCovariance(target, metric, best, found.scale, found.offsets)
    return Choice(chosen, found.loss)


def choose_quadratic(
    moments: ClassMoments, shared: ChosenCovariance, objects: LeftOutObjects
) -> Choice:
    """Return the best weight of the shared covariance in each class. O(n·C·r² + C·r³)."""
    path = WithinPath.of(moments, shared.metric)
    amount = shared.amount
    A, share = path.root(amount), path.at(amount).share
    pseudo = [np.inf, *(k * A.shape[1] for k in PSEUDO_OBJECTS[::-1])]
    log_prior = objects.log_priors()
    best: Choice | None = None
    start: ScaleAndOffsets | None = None
    for kappa, scores in zip(
        pseudo, left_out_quadratic(objects, moments, A, share, pseudo), strict=True
    ):
        start = fit_scale_and_offsets(scores, log_prior, objects.codes, objects.weights, start)
        if best is None or start.loss < best.loss:
            covariance = replace(
                shared, scale=start.scale, offsets=start.offsets, pseudo_objects=kappa
            )
            best = Choice(covariance, start.loss)
    assert best is not None
    return best


def _has_scatter(moments: ClassMoments) -> bool:
    """Whether any class has within-class scatter."""
    mean = moments.sums.sum(axis=0) / moments.total
    total = float(np.trace(moments.pooled)) / moments.total - float(mean @ mean)
    return float(np.trace(moments.within())) > RANK_TOLERANCE * moments.total * max(total, 0.0)


def oas_amount(moments: ClassMoments) -> float:
    """Return how far OAS shrinks the shared covariance towards the identity. O(r²)."""
    n = max(moments.total - float((moments.weights > 0).sum()), 1.0)
    within = moments.within()
    return oas(within / n, n) if len(within) else 1.0  # a zero matrix leaves no dimensions
