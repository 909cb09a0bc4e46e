"""The second look: comparisons of new objects with known ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Counter, Pairs, compare_each
from ..compare.workers import limit_blas_threads
from ..core.checks import Array, Indices
from ..core.family import Codes
from ..core.looks import (
    CandidateSpace,
    Neighbours,
    TwoLooks,
    looked_at,
    nearest_points,
    squared,
    squared_norms,
)
from ..core.pcvm.rows import Features
from ..data.dataset import Chunk, LandmarkColumns, uniform_keys
from ..measures.foreign import ObjectProfile
from .heads import HeldOut

FAR_SHARE = 0.1
"""This share of held-out objects, the farthest from all known ones, always gets a second look."""

FEWEST, MOST = 30, 100
"""Minimum and maximum default number of candidates; in between, a third of the landmarks."""

VOTERS = 30
"""Number of nearest objects that provide evidence, among all that an object was compared with."""

_SEED = 1


@dataclass(frozen=True)
class KnownObjects:
    """Training objects that may be candidates: all of them, or as many as are kept.

    They do not include landmarks, which every object is compared with anyway.
    """

    kind: Literal["similarity", "dissimilarity"]
    indices: Indices  # (n,) among all training objects, ascending
    codes: Codes  # (n,)
    space: CandidateSpace
    points: NDArray[np.float32]  # (n, r)
    landmark_classes: Codes  # (m,)
    n_candidates: int  # compared in a second look
    k: int  # neighbours that provide evidence, including landmarks
    far: float = np.inf  # objects farther than this from all points get a second look

    def candidates(self, values: Array, without: Indices | None = None) -> tuple[Indices, Array]:
        """Return the candidates (n, k) of objects with these values, and their distances."""
        points = self.space.points(values)
        return nearest_points(
            self.points, points, self.n_candidates, without=without, norms=self._norms
        )

    @cached_property
    def _norms(self) -> NDArray[np.float32]:
        """Squared norms of the points, for every search."""
        return squared_norms(self.points)

    def neighbours(
        self, values: Array, found: Array, candidates: Indices, own_place: Indices | None = None
    ) -> Neighbours:
        """Return the nearest objects among landmarks and candidates.

        `found` (n, k) are the values of the measure with the candidates. `own_place` (n,) is the
        object's own position among the landmarks, −1 if it is not one.
        """
        apart = squared(values, self.kind)
        if own_place is not None and (own_place >= 0).any():
            apart[np.flatnonzero(own_place >= 0), own_place[own_place >= 0]] = np.inf
        codes = np.broadcast_to(self.landmark_classes, apart.shape)
        return Neighbours.nearest(
            [(apart, codes), (squared(found, self.kind), self.codes[candidates])], self.k
        )


def default_neighbours(n_landmarks: int) -> int:
    """Return the default number of candidates for this many landmarks."""
    return min(max(n_landmarks // 3, FEWEST), MOST)


def remember(
    kept: Features,
    n_classes: int,
    landmarks: Indices,
    landmark_classes: Codes,
    kind: Literal["similarity", "dissimilarity"],
    neighbours: int,
    max_kept: int,
    looks: TwoLooks,
) -> KnownObjects:
    """Return the known objects: all except the landmarks, or the most useful `max_kept` of them.

    In the latter case, up to half are objects that the first look gets wrong, and every class is
    represented.
    """
    raw = kept.rows(np.arange(n_classes), n_classes)
    codes = raw.y
    free = np.ones(len(codes), dtype=bool) if raw.weight is None else raw.weight > 0
    free[landmarks] = False
    indices = np.flatnonzero(free)
    values: Array | None = None
    if len(indices) > max_kept:
        keys = uniform_keys(_SEED, indices)
        drawn = np.sort(indices[np.argsort(keys, kind="stable")[: 2 * max_kept]])
        values = raw.features(drawn)
        right = looks.first_look(looks.opinions(values)).argmax(axis=1) == codes[drawn]
        picked = np.sort(_preferred(codes[drawn], right, max_kept))
        indices, values = drawn[picked], values[picked]
    else:
        values = raw.features(indices)
    space = CandidateSpace.of(values if len(values) else np.zeros((1, raw.shape[1])))
    n_candidates = min(neighbours, len(indices))
    k = min(neighbours, VOTERS, len(landmarks) + n_candidates - 1)
    return KnownObjects(
        kind,
        indices,
        np.asarray(codes[indices], dtype=np.intp),
        space,
        space.points(values),
        np.asarray(landmark_classes, dtype=np.intp),
        n_candidates,
        max(k, 1),
    )


def _preferred(codes: Codes, right: NDArray[np.bool_], n: int) -> Indices:
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
    known: KnownObjects, sample: HeldOut, pairs: Pairs, places: Indices, own: Indices
) -> tuple[Neighbours, Array]:
    """Return the neighbours of held-out objects, excluding themselves, and the nearest distances.

    Among the objects of `pairs`, `places` (n,) are the held-out ones and `own` (N_known,) the known
    ones.
    """
    itself = np.full(len(sample.indices), -1, dtype=np.intp)
    where = np.searchsorted(known.indices, sample.indices).clip(max=max(len(known.indices) - 1, 0))
    if len(known.indices):
        same = known.indices[where] == sample.indices
        itself[same] = where[same]
    candidates, apart = known.candidates(sample.values, without=itself)
    found = (
        compare_each(pairs, places, own[candidates])
        if candidates.size
        else np.empty(candidates.shape)
    )
    near = known.neighbours(sample.values, found, candidates, sample.own_place)
    return near, apart[:, 0] if apart.shape[1] else np.zeros(len(apart))


def nearest_landmarks(
    values: Array,
    kind: Literal["similarity", "dissimilarity"],
    landmark_classes: Codes,
    own_place: Indices | None = None,
) -> Neighbours:
    """Return the landmarks nearest to objects with these values; none is the object itself."""
    apart = squared(values, kind)
    if own_place is not None and (own_place >= 0).any():
        rows = np.flatnonzero(own_place >= 0)
        apart[rows, own_place[rows]] = np.inf
    k = max(1, min(apart.shape[1] - 1, VOTERS))
    return Neighbours.nearest([(apart, np.broadcast_to(landmark_classes, apart.shape))], k)


@dataclass(frozen=True)
class Answer:
    """The results of both looks at some objects."""

    values: Array  # (n, m): with the landmarks
    opinions: list[Array]  # (n, C) each: log-probabilities of the heads
    log_proba: Array  # (n, C)
    unbounded: Array  # (n, C): same order, and distinct even if probabilities round to 1
    looked: NDArray[np.bool_]  # (n,): whether the second look decides
    near: Neighbours | None  # of all objects, if requested
    candidates: Indices  # (n, k), among the known objects
    foreign: Indices  # positions of objects unlike the training objects


@dataclass(frozen=True)
class LookTwice:
    """Both looks at a chunk of objects, and a function of the answer.

    With `everyone`, all objects are compared with candidates; their probabilities stay the same.
    """

    landmarks: LandmarkColumns
    known_objects: LandmarkColumns
    known: KnownObjects | None  # None for the first look only
    looks: TwoLooks
    function: Callable[[Answer], NDArray[Any]]
    counter: Counter
    everyone: bool
    likeness: ObjectProfile | None

    def __call__(self, chunk: Chunk) -> NDArray[Any]:
        """Compare the chunk with the landmarks, and some of it with candidates."""
        with limit_blas_threads():
            return self.function(self.answer(chunk))

    def answer(self, chunk: Chunk) -> Answer:
        """Return the results for the objects of the chunk."""
        first = self.landmarks.values(chunk)
        self.counter.add(first.compared, first.reused)
        values = first.value
        opinions = self.looks.opinions(values)
        looked = np.zeros(len(values), dtype=bool)
        found = self.looks.unbounded(opinions, None, looked)
        near: Neighbours | None = None
        candidates = np.empty((len(values), 0), dtype=np.intp)
        if self.known is not None:
            candidates, apart = self.known.candidates(values)
            confidence = np.exp(self.looks.bounded(found).max(axis=1))
            looked = looked_at(confidence, self.looks.threshold)
            if apart.shape[1]:
                looked |= apart[:, 0] > self.known.far
            places = np.arange(len(values)) if self.everyone else np.flatnonzero(looked)
            if len(places):
                near = self._near(self.known, chunk, values, places, candidates)
                again, some = looked[places], [opinion[looked] for opinion in opinions]
                found[looked] = self.looks.unbounded(some, near.at(again), again[again])
        whole = near if self.everyone else None
        bounded = self.looks.bounded(found)
        return Answer(
            values, opinions, bounded, found, looked, whole, candidates, self._foreign(chunk)
        )

    def _foreign(self, chunk: Chunk) -> Indices:
        """Return the positions of objects of another kind."""
        others = {} if self.likeness is None else self.likeness.foreign(chunk.objects)
        return np.array(sorted(i for places in others.values() for i in places), dtype=np.intp)

    def _near(
        self,
        known: KnownObjects,
        chunk: Chunk,
        values: Array,
        places: Indices,
        candidates: Indices,
    ) -> Neighbours:
        """Compare the objects at `places` with their candidates; return their neighbours."""
        found = np.empty((len(places), 0))
        if candidates.shape[1]:
            second = self.known_objects.each(chunk, places, candidates[places])
            self.counter.add(second.compared, second.reused)
            found = second.value
        return known.neighbours(values[places], found, candidates[places])
