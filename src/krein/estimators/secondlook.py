"""The second look: which known objects are compared, and the neighbours of held-out objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Pairs, block_rows, compare_each
from ..core.candidates import KnownObjects, Points, no_points
from ..core.chance import Chance
from ..core.conformal import FOUND_BY_CHANCE
from ..core.evidence import VOTERS, Evidence, Neighbours, apart_from, nearest_landmarks, squared
from ..core.shapes import Array, Codes, Indices
from ..data.chunks import Chunk
from ..data.foreign import TIMES, log_sizes
from ..measures import take
from ..model.heads import Head
from ..model.model import Model
from ..model.parts import SECOND_LOOK, Comparisons, SecondLook
from .heldout import HeldOut, TakenLook, TrainingSet
from .lookzero import FeatureFit

MOST = 150
"""Maximum default number of candidates. It is half the number of landmarks, at least `VOTERS`."""

N_RANDOM = 200
"""Number of random objects that are compared with the known ones. With fewer than 99 held-out
objects there are none, because nothing can be called novel at 1 % either."""

LONGER = 2.0
"""Random objects are longer than 98 % of the held-out ones by up to this factor, and shorter by up
to `TIMES`, beyond which objects are foreign."""

_RANDOM_SEED = 3


@dataclass(frozen=True)
class Nearest:
    """What the held-out objects are nearest to, and the part of the model that finds such objects.

    The objects that are alone in their class follow the others.
    """

    near: Neighbours
    log_sizes: Array | None  # (n,), of the others; None if sizes do not matter
    second_look: SecondLook | None


def take_second_look(
    training: TrainingSet,
    held_out: HeldOut,
    alone: HeldOut,
    looks: Sequence[TakenLook],
    features: FeatureFit | None,
    neighbours: int | None,
    max_kept: int,
) -> tuple[TakenLook | None, Nearest]:
    """Compare held-out objects with their candidates, and learn the evidence of their labels.

    Before come the `looks` so far, the first look last. There is no second look if there are no
    candidates, or if they cannot be compared any more; the nearest objects are then landmarks.
    """
    n, everyone = len(held_out.codes), held_out.joined(alone)
    measure, landmarks, k = training.run.measure, training.landmarks, neighbours
    if k is None:
        k = min(max(len(landmarks.indices) // 2, VOTERS), MOST)
    apart = apart_from(everyone.values, measure.kind, everyone.own)
    nearest = nearest_landmarks(apart, landmarks.codes)
    if not k and measure.accepts != "objects":
        return None, Nearest(nearest, None, None)
    known, wanted = None, np.union1d(everyone.indices, landmarks.indices)
    if k:
        heads = list(looks[-1].heads.values())
        known = choose_known_objects(training, k, max_kept, heads, features)
        wanted = np.union1d(known.indices, wanted)
    objects, _ = training.data.take(wanted, measure)
    held_out_rows = np.searchsorted(wanted, everyone.indices)
    sizes = log_sizes(measure, take(objects, held_out_rows[:n])) if n else None
    if known is None or not measure.comparable(objects):
        return None, Nearest(nearest, sizes, None)
    known_rows = np.searchsorted(wanted, known.indices)
    points, pairs = no_points(len(held_out_rows)), training.run.pairs(objects)
    if features is not None:
        points = features.held_out_points(everyone.indices)
    near = look_at_held_out(training, known, everyone, points, pairs, held_out_rows, known_rows)
    opinions = [term for look in looks for term in look.terms]
    evidence = Evidence.learn(
        opinions, held_out.codes, near.at(np.arange(n)), held_out.score_weights, held_out.n_groups
    )
    objects = measure.keep(
        take(objects, known_rows), known.indices, training.data.survey().n_objects
    )
    terms = evidence.terms(near, training.n_classes)
    look = TakenLook(
        SECOND_LOOK,
        {},
        [term[:n] for term in terms],
        [term[n:] for term in terms],
        float(known.n_candidates),
    )
    return look, Nearest(near, sizes, SecondLook(known, evidence, None, objects))


def choose_known_objects(
    training: TrainingSet,
    neighbours: int,
    max_kept: int,
    heads: Sequence[Head],
    features: FeatureFit | None,
) -> KnownObjects:
    """Return the known objects: all except the landmarks, or the most useful `max_kept` of them.

    Copies with the same label are one object of their number. If there are too many objects, up to
    half of those kept are objects that the first look gets wrong, and every class is represented.
    """
    raw, C, landmarks = training.rows, training.n_classes, training.landmarks.indices
    pairs = training.copies * C + raw.y
    _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    numbers = np.bincount(place, training.numbers)
    numbers = (numbers / numbers[numbers > 0].mean())[place]  # whatever the unit of the weights
    free = np.zeros(len(pairs), dtype=bool)
    free[first] = numbers[first] > 0
    free &= ~np.isin(pairs, pairs[landmarks])
    # in the order of contents, which decides between equally similar objects
    indices = np.flatnonzero(free)
    indices = indices[np.argsort(training.keys[indices], kind="stable")]
    if len(indices) > max_kept:
        some = np.unique(raw.y[indices], return_index=True)[1]  # one of each class, and others
        drawn = np.union1d(indices[some], indices[: 2 * max_kept])
        values = raw.features(drawn)
        pooled = sum(head.to_log_proba(head.scores(values)) for head in heads)
        right = np.asarray(pooled).argmax(axis=1) == raw.y[drawn]
        indices = drawn[preferred(raw.y[drawn], right, max_kept)]
        indices = indices[np.argsort(training.keys[indices], kind="stable")]
    order = np.argsort(indices)
    values, ascending = np.empty((len(indices), raw.shape[1])), indices[order]
    values[order] = raw.features(ascending)
    found = no_points(len(indices)) if features is None else features.points_of(ascending)
    points = np.empty_like(found)
    points[order] = found
    n_candidates = min(neighbours, len(indices))
    k = min(neighbours, VOTERS, len(landmarks) + n_candidates - 1)
    return KnownObjects.of(
        indices,
        np.asarray(raw.y[indices], dtype=np.intp),
        numbers[indices],
        numbers[landmarks],
        np.argsort(training.keys[landmarks], kind="stable"),
        values,
        points,
        n_candidates,
        max(k, 1),
    )


def preferred(codes: Codes, right: NDArray[np.bool_], n: int) -> Indices:
    """Return `n` positions: one object per class, errors up to half, then other objects.

    With more than `n` classes, there is still one object per class.
    """
    first = np.unique(codes, return_index=True)[1]
    free = max(0, n - len(first))
    wrong = np.setdiff1d(np.flatnonzero(~right), first)[: min(n // 2, free)]
    chosen = np.union1d(first, wrong)
    others = np.setdiff1d(np.arange(len(codes)), chosen)[: free - len(wrong)]
    return np.union1d(chosen, others)


def look_at_held_out(
    training: TrainingSet,
    known: KnownObjects,
    held_out: HeldOut,
    points: Points,
    pairs: Pairs,
    held_out_rows: Indices,
    known_rows: Indices,
) -> Neighbours:
    """Return the nearest landmarks and candidates of held-out objects, by exact comparisons.

    No object is a neighbour of its own group. `held_out_rows` (n,) and `known_rows` (N_known,) are
    their places among the objects of `pairs`; `points` (n, r) are the features of held-out ones.
    """
    without = training.groups[held_out.indices], training.groups[known.indices]
    nearest, _ = known.candidates(held_out.values, points, without)
    found = np.empty(nearest.shape)
    if nearest.size:
        found = compare_each(pairs, held_out_rows, known_rows[nearest])
    apart = apart_from(held_out.values, pairs.kind, held_out.own)
    codes = training.landmarks.codes
    return known.neighbours(apart, codes, squared(found, pairs.kind), nearest)


def compared_with_random(model: Model, run: Comparisons) -> Model:
    """Return the model with the scores of random objects, if objects differ in size.

    Their parts are drawn from the landmarks, and their sizes are evenly spaced on a logarithmic
    scale. Costs m + n_candidates comparisons for each of 200 objects.
    """
    reference = model.reference
    if reference is None or reference.log_sizes is None or reference.smallest > FOUND_BY_CHANCE:
        return model
    low, high = np.quantile(reference.log_sizes, [0.01, 0.99])
    ends = max(low - np.log(TIMES), 0.0), high + np.log(LONGER)
    sizes = np.exp(np.linspace(*ends, N_RANDOM))
    rng = np.random.default_rng(_RANDOM_SEED)
    objects = model.measure.random_objects(model.landmarks.objects, sizes, rng)
    if objects is None:
        return model
    second = model.second_look
    known = None if second is None else run.columns(second.objects, second.known.indices)
    columns = run.columns(model.landmarks.objects, model.landmarks.indices)
    found, depths = [], []
    for chunk in Chunk(0, objects, checked=True).blocks(block_rows(run.measure, len(columns))):
        answer = model.look(chunk, columns, known, run.counter, compare_all=True)
        scores = model.novelty_scores(answer)
        scores[answer.foreign] = np.nan
        found.append(scores)
        depths.append(answer.depth)
    scores, x = np.concatenate(found), log_sizes(model.measure, objects)
    assert x is not None
    fair = np.isfinite(scores)
    if 1 / (1 + fair.sum()) > FOUND_BY_CHANCE:
        return model
    early = np.concatenate(depths)[fair] < len(model.look_names) - 1
    chance = Chance.of(x[fair], scores[fair], float(early.mean()))
    return replace(model, reference=replace(reference, chance=chance))
