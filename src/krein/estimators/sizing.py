"""The number of landmarks: as many as are worth their comparisons.

All objects are compared once with a sequence of landmarks. For prefixes of several lengths, both
looks are learned from the same values. The chosen length minimises

    held-out log-loss + price × comparisons per prediction.

The landmarks are in random order, so every prefix is a random sample, and no length has an
advantage apart from its size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..compare.pairs import Pairs
from ..core.checks import Array, Indices
from ..core.family import Priors
from ..core.gaussian import QuadraticFamily
from ..core.looks import learn_first_look, learn_second_look, looked_at
from ..core.pcvm.rows import FeaturesInMemory
from .heads import HeldOut, draw_held_out, fit_heads
from .secondlook import look_at_held_out, remember
from .selection import LandmarkChoice

SHARES = (0.5, 0.7, 1.0)
"""Fractions of the sequence to try."""

SIZING_OBJECTS = 500
"""Held-out objects that get a second look at each length: more would cost more than they save."""


SIZING_ROWS = 2_500
"""Objects that PCVM is fitted to at each length; the Gaussian heads use all."""


@dataclass(frozen=True)
class SizeCurve:
    """The loss and the cost of each number of landmarks."""

    n_landmarks: Indices
    loss: Array  # held-out log-loss
    comparisons: Array  # per prediction

    def best(self, price: float) -> int:
        """Return the number of landmarks with the least loss plus price; the smallest of ties."""
        total = self.loss + price * self.comparisons
        return int(self.n_landmarks[int(np.argmin(total))])


def size_curve(
    choice: LandmarkChoice,
    order: Indices,
    kept: FeaturesInMemory,
    object_weights: Array | None,
    n_classes: int,
    priors: Priors,
    pairs: Pairs,
    neighbours: int,
) -> SizeCurve:
    """Return the curve for prefixes of the landmarks in this `order`.

    `object_weights` are the weights of `kept` without class weights. `pairs` contains all objects
    and counts the comparisons of the second look.
    """
    M = len(order)
    sizes = sorted({max(2, round(share * M)) for share in SHARES})
    losses, comparisons = [], []
    all_landmarks = choice.landmarks.indices
    some = _some(draw_held_out(all_landmarks, kept, n_classes), SIZING_OBJECTS)
    rows = _thinned(kept, np.union1d(some.indices, all_landmarks))
    for n in sizes:
        used = np.sort(order[:n])
        part = choice.restricted(used)
        values = FeaturesInMemory(kept.F[:, used], kept.codes, kept.weight)
        space = part.landmarks.space
        family = QuadraticFamily(n_classes, shrinkage="oas", priors=priors)
        moments = family.moments(space, space.origin(), values.F, values.codes, object_weights)
        held = replace(some, values=some.values[:, used])
        fitted = fit_heads(
            part.at(np.searchsorted(rows, part.landmarks.indices)),
            FeaturesInMemory(
                values.F[rows],
                values.codes[rows],
                None if values.weight is None else values.weight[rows],
            ),
            moments,
            replace(held, indices=np.searchsorted(rows, held.indices)),
            priors,
        )
        looks = learn_first_look(fitted.heads, fitted.held_out, held.codes, held.weights)
        known = remember(
            values,
            n_classes,
            part.landmarks.indices,
            part.landmark_classes,
            space.kind,
            neighbours,
            len(kept.codes),
            looks,
        )
        near, _ = look_at_held_out(known, held, pairs, held.indices, known.indices)
        looks = learn_second_look(looks, fitted.held_out, held.codes, held.weights, near)
        first = looks.first_look(fitted.held_out)
        again = looked_at(np.exp(first.max(axis=1)), looks.threshold)
        found = np.where(again[:, None], looks.second_look(fitted.held_out, near), first)
        w = np.ones(len(held.codes)) if held.weights is None else held.weights
        losses.append(-(w @ found[np.arange(len(w)), held.codes]) / w.sum())
        comparisons.append(n + known.n_candidates * (w @ again) / w.sum())
    return SizeCurve(np.array(sizes), np.array(losses), np.array(comparisons))


def _thinned(kept: FeaturesInMemory, wanted: Indices) -> Indices:
    """Return `wanted` rows and others up to `SIZING_ROWS`, evenly spaced by their values."""
    others = np.setdiff1d(np.arange(len(kept.codes)), wanted)
    room = max(0, SIZING_ROWS - len(wanted))
    if len(others) > room:
        ordered = others[np.argsort(kept.F[others].sum(axis=1), kind="stable")]
        others = ordered[np.unique(np.linspace(0, len(ordered) - 1, room).astype(np.intp))]
    return np.union1d(wanted, others)


def _some(sample: HeldOut, n: int) -> HeldOut:
    """Return about `n` of the held-out objects, evenly spaced in the order of their values.

    The result does not depend on the order of the rows.
    """
    if len(sample.indices) <= n:
        return sample
    order = np.argsort(sample.values.sum(axis=1), kind="stable")
    take = np.sort(order[np.unique(np.linspace(0, len(order) - 1, n).astype(np.intp))])
    return HeldOut(
        sample.indices[take],
        sample.values[take],
        sample.codes[take],
        None if sample.weights is None else sample.weights[take],
        sample.own_place[take],
    )
