"""The second look: which known objects are compared, and the neighbours of held-out objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
from ..model.model import Comparisons, Model, SecondLook
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


def take_second_look(
    known: TrainingSet,
    sample: HeldOut,
    alone: HeldOut,
    looks: Sequence[TakenLook],
    features: FeatureFit | None,
    neighbours: int | None,
    max_kept: int,
) -> tuple[SecondLook | None, TakenLook | None, Neighbours, Array | None]:
    """Compare held-out objects with their candidates, and learn the evidence of their labels.

    Before come the `looks` so far, the first look last. Also returns the neighbours of the
    `sample` and of the objects that are `alone`, and the logarithms of the sizes of the sample. If
    there are no candidates, the neighbours are landmarks.
    """
    n, everyone = len(sample.codes), sample.joined(alone)
    measure, landmarks, k = known.run.measure, known.landmarks, neighbours
    if k is None:
        k = min(max(len(landmarks.indices) // 2, VOTERS), MOST)
    apart = apart_from(everyone.values, measure.kind, everyone.own)
    nearest = nearest_landmarks(apart, landmarks.codes)
    if not k and measure.accepts != "objects":
        return None, None, nearest, None
    candidates, wanted = None, np.union1d(everyone.indices, landmarks.indices)
    if k:
        heads = list(looks[-1].heads.values())
        candidates = choose_known_objects(known, k, max_kept, heads, features)
        wanted = np.union1d(candidates.indices, wanted)
    objects, _ = known.data.take(wanted, measure)
    rows = np.searchsorted(wanted, everyone.indices)
    sizes = log_sizes(measure, take(objects, rows[:n])) if n else None
    if candidates is None or not measure.comparable(objects):
        return None, None, nearest, sizes
    own = np.searchsorted(wanted, candidates.indices)
    points, pairs = no_points(len(rows)), known.run.pairs(objects)
    if features is not None:
        points = features.held_out_points(everyone.indices)
    near = look_at_held_out(known, candidates, everyone, points, pairs, rows, own)
    opinions = [term for look in looks for term in look.terms]
    evidence = Evidence.learn(
        opinions, sample.codes, near.at(np.arange(n)), sample.score_weights, sample.number
    )
    objects = measure.keep(take(objects, own), candidates.indices, known.data.survey().n_objects)
    terms = evidence.terms(near, known.n_classes)
    look = TakenLook(
        "second look",
        {},
        [term[:n] for term in terms],
        [term[n:] for term in terms],
        float(candidates.n_candidates),
    )
    return SecondLook(candidates, evidence, None, objects), look, near, sizes


def choose_known_objects(
    known: TrainingSet,
    neighbours: int,
    max_kept: int,
    heads: Sequence[Head],
    features: FeatureFit | None,
) -> KnownObjects:
    """Return the known objects: all except the landmarks, or the most useful `max_kept` of them.

    Copies with the same label are one object of their number. If there are too many objects, up to
    half of those kept are objects that the first look gets wrong, and every class is represented.
    """
    raw, C, landmarks = known.rows, known.n_classes, known.landmarks.indices
    pairs = known.copies * C + raw.y
    _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    numbers = np.bincount(place, known.numbers)
    numbers = (numbers / numbers[numbers > 0].mean())[place]  # whatever the unit of the weights
    free = np.zeros(len(pairs), dtype=bool)
    free[first] = numbers[first] > 0
    free &= ~np.isin(pairs, pairs[landmarks])
    # in the order of contents, which decides between equally similar objects
    indices = np.flatnonzero(free)
    indices = indices[np.argsort(known.keys[indices], kind="stable")]
    if len(indices) > max_kept:
        some = np.unique(raw.y[indices], return_index=True)[1]  # one of each class, and others
        drawn = np.union1d(indices[some], indices[: 2 * max_kept])
        values = raw.features(drawn)
        pooled = sum(head.to_log_proba(head.scores(values)) for head in heads)
        right = np.asarray(pooled).argmax(axis=1) == raw.y[drawn]
        indices = drawn[preferred(raw.y[drawn], right, max_kept)]
        indices = indices[np.argsort(known.keys[indices], kind="stable")]
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
        np.argsort(known.keys[landmarks], kind="stable"),
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
    known: TrainingSet,
    candidates: KnownObjects,
    sample: HeldOut,
    points: Points,
    pairs: Pairs,
    rows: Indices,
    own: Indices,
) -> Neighbours:
    """Return the nearest landmarks and candidates of held-out objects, by exact comparisons.

    No object is a neighbour of its own group. Among the objects of `pairs`, `rows` (n,) are the
    held-out ones and `own` (N_known,) the `candidates`; the features of the held-out ones have
    these `points` (n, r).
    """
    without = known.groups[sample.indices], known.groups[candidates.indices]
    nearest, _ = candidates.candidates(sample.values, points, without)
    found = np.empty(nearest.shape)
    if nearest.size:
        found = compare_each(pairs, rows, own[nearest])
    apart = apart_from(sample.values, pairs.kind, sample.own)
    codes = known.landmarks.codes
    return candidates.neighbours(apart, codes, squared(found, pairs.kind), nearest)


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
