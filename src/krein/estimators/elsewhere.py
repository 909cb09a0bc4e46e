"""Fit and predict where the objects are not in memory: the terms that run beside the data.

A term takes a piece of objects and gives what the fit needs of it. It is sent once to wherever the
pieces lie, and carries the landmarks with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..compare import MatrixPairs, ObjectPairs, is_precomputed
from ..compare.opening import PRECOMPUTED
from ..compare.workers import count_workers, in_order
from ..core.checks import Array, check_landmarks
from ..core.moments import ClassMoments
from ..core.space import LandmarkSpace
from ..data import (
    CANDIDATES,
    Candidates,
    Collection,
    Columns,
    Counted,
    FeatureBlock,
    GivenColumns,
    LandmarkColumns,
    Origin,
    Piece,
    Survey,
    Work,
    as_source,
    draw,
    is_dask,
    is_elsewhere,
)
from ..data.streamed import CHUNK, forget_pages
from ..landmarks import Given, Selection, get_rule
from ..landmarks.all import All
from .base import Codes, LandmarkSet
from .labels import coded
from .witnesses import Call, Summed

if TYPE_CHECKING:
    from .classifier import LandmarkClassifier

Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])

MATRIX_CANDIDATES = 2_000
"""The same for a matrix of values: all pairs of candidates are held at one place."""

_PILOT = 32  # objects that are compared to learn how long one takes


@dataclass(frozen=True)
class MomentTerm:
    """Class moments of a piece, and its witnesses."""

    columns: Columns
    space: LandmarkSpace
    origin: Array
    classes: NDArray[Any]
    by_class: bool
    call: Call

    def __call__(self, piece: Piece) -> Counted[Summed]:
        """Compare the piece with the landmarks."""
        found = self.columns.values(piece)
        codes = coded(np.asarray(piece.labels), self.classes)
        moments = ClassMoments.of(
            self.space.coordinates(found.value),
            codes,
            len(self.classes),
            origin=self.origin,
            by_class=self.by_class,
        )
        indices = piece.start + np.arange(len(codes))
        return found.holding(Summed.of(moments, indices, found.value, codes, self.call))


@dataclass(frozen=True)
class FeatureTerm:
    """Values of a piece, which basis functions are made of, and the moments of its coordinates."""

    columns: Columns
    space: LandmarkSpace
    origin: Array
    classes: NDArray[Any]

    def __call__(self, piece: Piece) -> Counted[FeatureBlock]:
        """Compare the piece with the landmarks."""
        found = self.columns.values(piece)
        codes = coded(np.asarray(piece.labels), self.classes)
        B = self.space.coordinates(found.value)
        moments = ClassMoments.of(B, codes, len(self.classes), origin=self.origin)
        return found.holding(FeatureBlock(found.value, codes, moments))


@dataclass(frozen=True)
class Chosen:
    """Landmarks of a collection, and the candidates they were chosen from."""

    landmarks: LandmarkSet  # indices among all objects
    selection: Selection  # the same
    columns: Columns
    grid: int
    own: Codes  # classes of the landmarks
    candidates: Candidates
    pairs: Any  # of the candidates

    def plan(
        self, data: Collection, term: Callable[[Piece], Counted[Any]], n_objects: int
    ) -> tuple[Work, int]:
        """Return what a pass of `term` takes, and the pairs it took to find out."""
        work = Work(n_objects, len(self.columns))
        if not data.plans:
            return work, 0
        n = min(_PILOT, len(self.candidates.indices))
        objects, labels = self.candidates.objects[:n], self.candidates.labels[:n]
        # beyond all numbers, so that none is taken for a landmark, and not kept
        piece = Piece(n_objects, objects, labels, (Origin(_Pilot(), 0, n),))
        if isinstance(self.columns, LandmarkColumns):
            term = replace(term, columns=replace(self.columns, cache=None))  # type: ignore[type-var]
        start = time.perf_counter()
        spent = term(piece)
        return replace(work, seconds=(time.perf_counter() - start) / n), spent.evaluated


class _Pilot:
    def where(self, i: int) -> str:
        return f"candidate {i}"


def choose(estimator: LandmarkClassifier, data: Collection, known: Survey) -> Chosen:
    """Choose landmarks among the candidates of a collection."""
    N = known.n_objects
    rule = get_rule(estimator.landmarks, estimator.n_landmarks)
    given = check_landmarks(rule.indices, N) if isinstance(rule, Given) else None
    precomputed = is_precomputed(estimator.measure)
    most = MATRIX_CANDIDATES if precomputed else CANDIDATES
    if isinstance(rule, All) and most < N:
        raise ValueError(
            f"landmarks='all' compares all pairs of {N:,} objects; name a rule, e.g. 'meb', or "
            f"take at most {most:,} objects"
        )
    if given is not None:
        order = np.argsort(given)
        found = data.rows(given[order])
        back = np.argsort(order)
        objects = (
            found.objects[back]
            if isinstance(found.objects, np.ndarray)
            else [found.objects[i] for i in back]
        )
        candidates = Candidates(given, objects, found.labels[back])
    else:
        seed = int(estimator._rng().integers(2**62)) if most < N else 0
        candidates = draw(data, known, seed, most)
    codes = coded(candidates.labels, known.classes)
    pairs = _open(estimator, data, candidates, given is not None, N)
    if given is not None:
        selection = Selection(np.arange(len(given)))
    else:
        selection = estimator._choose(pairs, codes)
    local = estimator._span(pairs, selection)
    indices = candidates.indices[local.indices]
    landmarks = replace(local, indices=indices, values=None)
    m = len(indices)
    columns: Columns
    if isinstance(pairs, ObjectPairs):
        columns = LandmarkColumns(
            pairs.measure,
            local.objects,
            indices,
            local.space.core,
            pairs.symmetrize,
            estimator.cache,
            data.n_jobs,
        )
    else:
        square = data.width == N  # type: ignore[attr-defined]
        columns = GivenColumns(m, pairs.kind, indices if square else None)
    return Chosen(
        landmarks,
        replace(selection, indices=indices, values=None),
        columns,
        pairs.block_rows(m),
        codes[local.indices],
        candidates,
        pairs,
    )


def again(
    estimator: LandmarkClassifier, data: Collection, landmarks: LandmarkSet, known: Survey
) -> Chosen:
    """Return landmarks that were chosen before, for a further collection."""
    m = len(landmarks.indices)
    nowhere = np.full(m, -1)  # none of the further objects is a landmark
    columns: Columns
    if is_precomputed(estimator.measure):
        kind, width = PRECOMPUTED[estimator.measure], data.width  # type: ignore[attr-defined]
        if width not in (m, estimator.n_objects_):
            raise ValueError(
                f"further values are n × {estimator.n_objects_}, to the objects of the first call, "
                f"or n × {m}, to the landmarks; got {known.n_objects} × {width}"
            )
        columns = GivenColumns(m, kind, None if width == m else landmarks.indices)
        pairs: Any = MatrixPairs(landmarks.space.core, kind)
    else:
        pairs = estimator._open_new(landmarks.objects, landmarks)
        columns = LandmarkColumns(
            pairs.measure,
            landmarks.objects,
            nowhere,
            landmarks.space.core,
            pairs.symmetrize,
            estimator.cache,
            data.n_jobs,
        )
    labels = known.classes[np.zeros(m, dtype=int)]
    objects = landmarks.space.core if landmarks.objects is None else landmarks.objects
    return Chosen(
        landmarks,
        estimator.selection_,
        columns,
        pairs.block_rows(m),
        np.zeros(m, dtype=int),
        Candidates(nowhere, objects, labels),
        pairs,
    )


def _open(
    estimator: LandmarkClassifier, data: Collection, candidates: Candidates, given: bool, N: int
) -> Any:
    """Return the pairs of the candidates."""
    if not is_precomputed(estimator.measure):
        return data.open_pairs(estimator._open(estimator._checked(candidates.objects, reset=True)))
    kind, width = PRECOMPUTED[estimator.measure], data.width  # type: ignore[attr-defined]
    if width == N:
        return MatrixPairs(data.matrix(candidates.indices, candidates.indices), kind, watch=True)
    if not given or width != len(candidates.indices):
        raise ValueError(
            f"precomputed values are {N} × {N}, or {N} × m with landmarks= the m rows that the "
            f"columns stand for; got {N} × {width}"
        )
    values = np.asarray(candidates.objects, dtype=np.float64)
    return MatrixPairs(values, kind, watch=True)


def wherever(method: Method) -> Method:
    """Have a method of new objects also take those that are not in memory.

    What comes by chunk, a source or a path, is answered by chunk: an iterator of arrays. A Dask
    collection is answered by a `dask.array` that is computed when it is asked for.
    """

    @wraps(method)
    def run(self: Any, X: Any) -> Any:
        precomputed = is_precomputed(self.measure)
        if not is_elsewhere(X, precomputed=precomputed):
            if isinstance(X, np.memmap) and len(X) > CANDIDATES and not precomputed:
                return _by_rows(lambda rows: method(self, rows), X)
            return method(self, X)
        check_is_fitted(self)
        if is_dask(X):
            from ..data.clustered import predict_lazily

            return predict_lazily(self, method.__name__, X)
        return _by_chunk(self, lambda objects: method(self, objects), as_source(X))

    return run  # type: ignore[return-value]


def _by_rows(method: Callable[[Any], Array], X: Any) -> Array:
    """Return what `method` says of the rows of a memory map, whose pages are not kept."""
    parts = []
    for start in range(0, len(X), CANDIDATES):
        parts.append(method(np.array(X[start : start + CANDIDATES])))
        forget_pages(X)
    return np.concatenate(parts)


def _by_chunk(estimator: Any, method: Callable[[Any], Array], source: Any) -> Iterator[Array]:
    def one(chunk: Any) -> Array:
        try:
            return method(chunk.objects)
        except ValueError as error:
            raise chunk.located(error) from error

    workers = count_workers(estimator.n_jobs, default_all=True)
    yield from in_order(one, source.chunks(CHUNK), workers)
