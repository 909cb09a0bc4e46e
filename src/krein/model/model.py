"""The model: what predicts, explains, and is what a model file contains.

    values ▶ heads ▶ pool ▶ second look ▶ answer

An object is compared with the landmarks. Every head turns the values into probabilities, and the
pool combines them: the first look. If the result is not certain enough, the object is compared with
training objects that have similar values, and their labels enter the pool as evidence: the second
look. Every answer (labels, probabilities, novelty, label sets, explanations) is a function of the
result.

A model needs numpy, scipy and its measure. Estimators fit models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Counter, Pairs, averages, block_rows, limit_blas_threads, open_cache
from ..core.calibration import Reference, benjamini_hochberg, log_odds, novelty_scores, status_of
from ..core.looks import (
    FAR,
    EvidencePool,
    KnownObjects,
    Neighbours,
    Points,
    Pool,
    nearest_landmarks,
    no_points,
    squared,
)
from ..core.shapes import CODE, ROW, SHARE, Array, Codes, Indices, Within
from ..core.space import Embedding, LandmarkSpace
from ..data.dataset import Chunk, LandmarkColumns, ObjectProfile, log_sizes
from ..data.opening import is_empty, map_objects
from ..measures import Measure
from .heads import (
    FeatureExplanation,
    FeatureHead,
    FeatureShare,
    LinearHead,
    NeighbourHead,
    QuadraticHead,
)
from .schema import LABELS, OBJECTS

NO_ROWS: Indices = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Comparisons:
    """How objects are compared, and one counter for all comparisons of a fit or a prediction."""

    measure: Measure
    symmetrize: bool = False
    n_jobs: int | None = None
    cache: str | os.PathLike[str] | None = None
    verbose: int | None = None
    counter: Counter = field(default_factory=Counter)
    until: float | None = None
    """When to stop, on the monotonic clock: past it, comparisons raise `OutOfTime`."""

    def pairs(self, objects: Any, others: Any = None) -> Pairs:
        """Return the pairs of some objects in memory."""
        return Pairs(
            self.measure,
            objects,
            others,
            n_jobs=self.n_jobs,
            cache=open_cache(self.cache, self.measure, self.symmetrize),
            verbose=self.verbose,
            symmetrize=averages(self.measure, self.symmetrize),
            counter=self.counter,
        )

    def columns(
        self, objects: Any, indices: Indices, known_rows: Indices = NO_ROWS, known: Any = None
    ) -> LandmarkColumns:
        """Return objects as columns: other objects are compared with them, chunk by chunk.

        The values (k, m) of the objects at `known_rows` are `known` already.
        """
        known = np.empty((0, len(indices))) if known is None else known
        return LandmarkColumns(
            self.measure,
            objects,
            indices,
            known_rows,
            known,
            self.symmetrize,
            self.cache,
            self.n_jobs,
            self.until,
        )


@dataclass(frozen=True)
class Landmarks:
    """The objects that every object is compared with."""

    indices: Annotated[Indices, "m", ROW]  # rows of the training objects
    codes: Annotated[Codes, "m", CODE]
    names: Annotated[NDArray[np.str_], "m"] | None
    objects: Annotated[Any, OBJECTS, "m"]  # as the measure keeps them


@dataclass(frozen=True)
class SecondLook:
    """Exact comparisons with the most similar known objects, and when they are worthwhile."""

    known: KnownObjects
    pool: EvidencePool
    threshold: Annotated[float, Within(infinite=(np.inf, -np.inf))]
    """Objects whose largest first-look probability is below this are looked at again."""
    far: Annotated[float, Within(0.0, infinite=(np.inf,))]
    """So are objects farther than this from all known ones, as far as values can tell."""
    names: Annotated[NDArray[np.str_], "n_known"] | None
    objects: Annotated[Any, OBJECTS, "n_known"]

    def looks_again(self, confidence: Array, apart: Array) -> NDArray[np.bool_]:
        """Return which objects to look at again.

        `confidence` is their largest first-look probability, and `apart` (n, k) are the distances
        of their candidates in the space of values.
        """
        again: NDArray[np.bool_] = confidence < self.threshold
        return again | (apart[:, 0] > self.far) if apart.shape[1] else again


@dataclass(frozen=True)
class Answer:
    """The results of both looks at some objects."""

    objects: Any  # in the measure's form
    values: Array  # (n, m): with the landmarks; NaN for an object that was not compared
    log_proba: Array  # (n, C)
    unbounded: Array  # (n, C): same order, and distinct even if probabilities round to 1
    sure: NDArray[np.bool_]  # (n,): whether the features alone decide
    looked: NDArray[np.bool_]  # (n,): whether the second look decides
    near: Neighbours | None  # the nearest known objects, if all were compared with candidates
    candidates: Indices  # (n, k), among the known objects
    foreign: Indices  # positions of objects of another kind; their values are the baseline


@dataclass(frozen=True)
class KnownNeighbour:
    """A known object that a new one was compared with."""

    index: int  # among the training objects
    name: str | None
    label: Any
    value: float  # of the measure


@dataclass(frozen=True)
class Explanation:
    """Why an object got its label.

    `score` is the log-odds of the label against the runner-up, before probabilities are bounded. It
    is the sum of `baseline` (the score of an object with average values to the landmarks), the
    `contributions` of the landmarks, the contribution `from_features` of the object's own features,
    and the `evidence` of the nearest known objects.
    """

    label: Any
    runner_up: Any
    score: float
    baseline: float
    contributions: Array  # (m,): in the order of the landmarks
    evidence: float  # 0 if the first look was certain enough
    nearest: tuple[KnownNeighbour, ...]
    from_features: float = 0.0
    features: tuple[FeatureShare, ...] = ()  # the ten that counted most
    along: Array | None = None
    """`from_features` by the letters of a string (length,), or by the values of a series (length,
    channels): their sum is the same. None if the features have no place in the object."""
    sure: bool = False  # whether the features alone decided: comparisons contribute nothing


@dataclass(frozen=True)
class Model:
    """A fitted classifier.

    All methods take new objects in memory, the path of a file, a source from `krein.io`, or a Dask
    collection. They return one array for objects in memory, an iterator of arrays for a path or a
    source, and a `dask.array` for a Dask collection. `run` says how to compare them; by default as
    the measure prefers, without a cache.
    """

    measure: Measure
    symmetrize: bool
    classes: Annotated[NDArray[Any], LABELS, "C"]
    heads: Annotated[tuple[LinearHead | QuadraticHead | FeatureHead | NeighbourHead, ...], "H"]
    """A head that looks at the objects themselves comes first."""
    pool: Pool
    baseline: Annotated[Array, "m"]
    """The values of an average object to the landmarks, where explanations start."""
    landmarks: Landmarks
    second_look: SecondLook | None = None
    reference: Reference | None = None
    certain: Annotated[float, Within(0.0, infinite=(np.inf,))] = np.inf
    """The features alone decide, without a comparison, if their largest probability is this."""
    comparisons: Annotated[float, Within(0.0)] = 0.0
    """Estimated mean number of comparisons per prediction."""
    n_objects: Annotated[int, Within(1)] = 1
    """Number of training objects that the landmarks were chosen from."""
    feature_names: Annotated[NDArray[np.str_], "d"] | None = None
    """Names of the columns, if the objects are vectors from a data frame."""
    ambiguous_below: Annotated[float, SHARE] = 0.8
    novel_below: Annotated[float, SHARE] = 0.01

    # -- answers ----------------------------------------------------------------------------------

    def predict(self, X: Any, run: Comparisons | None = None) -> Any:
        """Return the most probable class of each object."""
        return self._map(X, partial(_labels, self), (), self.classes.dtype, run)

    def predict_proba(self, X: Any, run: Comparisons | None = None) -> Any:
        """Return the probability (n, C) of each class."""
        return self._map(X, _probabilities, (len(self.classes),), run=run)

    def predict_log_proba(self, X: Any, run: Comparisons | None = None) -> Any:
        """Return the logarithm of the probabilities (n, C)."""
        return self._map(X, _log_probabilities, (len(self.classes),), run=run)

    def decision_function(self, X: Any, run: Comparisons | None = None) -> Any:
        """Return scores: (n,) for two classes, positive for the second; (n, C) for more.

        These are the scores of the only head, or pooled log-probabilities.
        """
        C = len(self.classes)
        return self._map(X, partial(_decisions, self), () if C == 2 else (C,), run=run)

    def rank_labels(self, X: Any, run: Comparisons | None = None) -> Any:
        """Return all labels for each object (n, C), most probable first."""
        shape = (len(self.classes),)
        return self._map(X, partial(_ranked, self), shape, self.classes.dtype, run)

    def novelty(self, X: Any, run: Comparisons | None = None) -> Any:
        """Return the novelty p-value of each object: small if it resembles none of the classes."""
        self._reference()
        return self._map(X, self._novelty, (), run=run, compare_all=True)

    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        by_class: bool = True,
        run: Comparisons | None = None,
    ) -> Any:
        """Return which labels cannot be ruled out: a Boolean array (n, C)."""
        sets = partial(self._sets, _checked_coverage(coverage), by_class)
        self._reference()
        return self._map(X, sets, (len(self.classes),), np.bool_, run)

    def select(
        self,
        X: Any,
        fdr: float = 0.1,
        *,
        labels: Any = None,
        novel: bool = False,
        run: Comparisons | None = None,
    ) -> NDArray[np.bool_]:
        """Return which labels can be trusted, or which objects are `novel`: a Boolean array (n,).

        In expectation, at most a share `fdr` of the selected objects have a wrong label, or belong
        to a known class. All p-values are needed first, so the result is one array for any X.
        """
        if not 0 < fdr < 1:
            raise ValueError(f"fdr must be between 0 and 1; got {fdr!r}")
        self._reference()
        wanted = self._wanted(labels)
        if novel and wanted is not None:
            raise ValueError("labels cannot be chosen among novel objects: they have none")
        function = self._novelty if novel else partial(self._doubt, wanted)
        found = self._map(X, function, (), run=run, compare_all=novel)
        if isinstance(found, Iterator):  # a file
            found = np.concatenate([np.empty(0), *found])
        return benjamini_hochberg(np.asarray(found), fdr)

    def _wanted(self, labels: Any) -> NDArray[np.bool_] | None:
        """Return a mask (C,) of these labels; None for all."""
        if labels is None:
            return None
        labels = np.atleast_1d(np.asarray(labels))
        unknown = labels[~np.isin(labels, self.classes)].tolist()
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a class of this model")
        found: NDArray[np.bool_] = np.isin(self.classes, labels)
        return found

    def explain(self, X: Any, n: int = 3, run: Comparisons | None = None) -> Any:
        """Return an `Explanation` of each label, with the `n` nearest known objects."""
        explain = partial(self._explain, _checked_number(n))
        return self._map(X, explain, (), object, run, compare_all=True)

    def assess(
        self,
        X: Any,
        *,
        coverage: float | None = None,
        evidence: int | None = None,
        run: Comparisons | None = None,
    ) -> Any:
        """Return label, probabilities, p-values and status of each object, in one pass.

        The result is a structured array; `coverage` adds the field `set`, and `evidence` the field
        `why`, the result of `explain` with this many known objects.
        """
        self._reference()
        C = len(self.classes)
        fields: list[Any] = [
            ("label", self.classes.dtype),
            ("probabilities", np.float64, (C,)),
            ("novelty", np.float64),
            ("doubt", np.float64),
            ("chance", np.float64),
            ("status", "<U9"),
        ]
        if coverage is not None:
            fields.append(("set", np.bool_, (C,)))
            coverage = _checked_coverage(coverage)
        if evidence is not None:
            fields.append(("why", object))
            evidence = _checked_number(evidence)
        dtype = np.dtype(fields)
        assess = partial(self._assess, dtype, coverage, evidence)
        return self._map(X, assess, (), dtype, run, compare_all=True)

    # -- both looks at some objects ----------------------------------------------------------------

    def look(
        self,
        chunk: Chunk,
        landmarks: LandmarkColumns,
        known: LandmarkColumns | None,
        counter: Counter,
        *,
        compare_all: bool = False,
    ) -> Answer:
        """Return both looks at the objects of a chunk.

        With `compare_all`, all objects are compared with their candidates; probabilities stay the
        same. Objects of another kind are not compared at all: all classes are equally probable.
        """
        chunk = replace(chunk, objects=chunk.in_form(self.measure), checked=True)
        n, zero, C = len(chunk), self.look_zero, len(self.classes)
        foreign = self._foreign(chunk.objects)
        alike = np.ones(n, dtype=bool)
        alike[foreign] = False
        sure, opinion, points = np.zeros(n, dtype=bool), np.empty((n, C)), no_points(n)
        if zero is not None:
            scores, points = zero.look(self.measure.contents(chunk.objects))
            opinion = zero.to_log_proba(scores)
            sure = alike & (np.exp(self.pool.bounded(opinion).max(axis=1)) >= self.certain)
        rows = np.flatnonzero(alike if compare_all else alike & ~sure)
        part = chunk if len(rows) == n else chunk.picked(rows)
        values = np.tile(self.baseline, (n, 1))
        unbounded, looked = np.full((n, C), -np.log(C)), np.zeros(n, dtype=bool)
        near, candidates = None, np.zeros((n, 0), dtype=np.intp)
        if len(rows):
            found = landmarks.values(part)
            counter.add(found.compared, found.reused)
            values[rows] = found.value
            unsure = ~sure[rows]  # the others are compared, but do not change their minds
            heads = self.heads if zero is None else self.heads[1:]
            few = found.value if unsure.all() else found.value[unsure]
            opinions = [head.to_log_proba(head.scores(few, None)) for head in heads]
            opinions = opinions if zero is None else [opinion[rows[unsure]], *opinions]
            unbounded[rows[unsure]] = self.pool(opinions)
        if len(rows) and self.second_look is not None and known is not None:
            candidates = np.zeros((n, self.second_look.known.n_found), dtype=np.intp)
            search = self.second_look.known.candidates
            candidates[rows], apart = search(found.value, points[rows])
            confidence = np.exp(self.pool.bounded(unbounded[rows]).max(axis=1))
            again = unsure & self.second_look.looks_again(confidence, apart)
            looked[rows] = again
            some = np.arange(len(rows)) if compare_all else np.flatnonzero(again)
            exact = np.empty((len(some), 0))
            if len(some) and candidates.shape[1]:
                second = known.each(part, some, candidates[rows[some]])
                counter.add(second.compared, second.reused)
                exact = second.value
            if len(some):
                near = self._neighbours(found.value[some], exact, candidates[rows[some]])
                pooled = [one[again[unsure]] for one in opinions]
                unbounded[rows[again]] = self.second_look.pool(pooled, near.at(again[some]))
        unbounded[sure] = opinion[sure]
        if near is not None and compare_all:
            near = near.spread(rows, n)
        return Answer(
            chunk.objects,
            values,
            self.pool.bounded(unbounded),
            unbounded,
            sure,
            looked,
            near if compare_all else None,
            candidates,
            foreign,
        )

    @property
    def look_zero(self) -> FeatureHead | NeighbourHead | None:
        """The head that looks at the objects themselves, if there is one."""
        first = self.heads[0]
        return None if isinstance(first, LinearHead | QuadraticHead) else first

    def _foreign(self, objects: Any) -> Indices:
        """Return the positions of objects of another kind."""
        found = {} if self.profile is None else self.profile.foreign(objects)
        return np.array(sorted(row for rows in found.values() for row in rows), dtype=np.intp)

    def opinions(self, values: Array, objects: Any) -> list[Array]:
        """Return the log-probabilities (n, C) of each head."""
        own = self.measure.contents(objects)
        return [head.to_log_proba(head.scores(values, own)) for head in self.heads]

    def points(self, objects: Any) -> Points:
        """Return the points (n, r) of the features of objects; (n, 0) if they have none."""
        zero = self.look_zero
        if zero is None:
            return no_points(len(objects))
        return zero.look(self.measure.contents(objects))[1]

    def _neighbours(self, values: Array, exact: Array, candidates: Indices) -> Neighbours:
        assert self.second_look is not None
        kind = self.measure.kind
        return self.second_look.known.neighbours(
            squared(values, kind), self.landmarks.codes, squared(exact, kind), candidates
        )

    def _map(
        self,
        X: Any,
        function: Callable[[Answer], NDArray[Any]],
        shape: tuple[int, ...],
        dtype: Any = np.float64,
        run: Comparisons | None = None,
        *,
        compare_all: bool = False,
    ) -> Any:
        """Return `function(answer)` of new objects; `shape` and `dtype` are those of one object."""
        if is_empty(X):
            return np.empty((0, *shape), dtype=dtype)
        run = run or Comparisons(self.measure, self.symmetrize)
        second = self.second_look
        known = None if second is None else run.columns(second.objects, second.known.indices)
        landmarks = run.columns(self.landmarks.objects, self.landmarks.indices)
        return map_objects(
            X,
            partial(_answered, self, landmarks, known, run.counter, compare_all, function),
            measure=self.measure,
            block_rows=block_rows(self.measure, len(self.landmarks.indices)),
            shape=shape,
            dtype=dtype,
            n_jobs=run.n_jobs,
            profile=self.profile,
        )

    @cached_property
    def profile(self) -> ObjectProfile | None:
        """What the training objects look like; None if they have neither letters nor a length.

        It is derived from the objects that the model keeps.
        """
        if self.measure.accepts != "objects":
            return None
        kept = [self.landmarks.objects]
        if self.second_look is not None:
            kept.append(self.second_look.objects)
        return ObjectProfile.of(kept)

    # -- functions of an answer --------------------------------------------------------------------

    def _reference(self) -> Reference:
        if self.reference is None:
            raise ValueError(
                "this model has no held-out scores to rank new objects among: fit it with "
                "calibrate=True, or use KreinClassifier"
            )
        return self.reference

    def _near(self, answer: Answer) -> Neighbours:
        """Return the nearest of all objects that each one was compared with."""
        if answer.near is not None:
            return answer.near
        return nearest_landmarks(squared(answer.values, self.measure.kind), self.landmarks.codes)

    def novelty_scores(self, answer: Answer) -> Array:
        """Return the novelty score (n,) of each object."""
        return novelty_scores(self._near(answer).apart, self.measure.kind)

    def _log_sizes(self, answer: Answer) -> Array | None:
        """Return the log size (n,) of each object; None if sizes do not matter."""
        if self._reference().log_sizes is None:
            return None
        return log_sizes(self.measure, answer.objects)

    def _novelty(self, answer: Answer) -> Array:
        found = self._reference().novelty(
            self.novelty_scores(answer), answer.unbounded.argmax(axis=1), self._log_sizes(answer)
        )
        found[answer.foreign] = 0.0
        return found

    def _by_chance(self, answer: Answer) -> Array:
        found = self._reference().by_chance(self.novelty_scores(answer), self._log_sizes(answer))
        found[answer.foreign] = 1.0
        return found

    def _doubt(self, wanted: NDArray[np.bool_] | None, answer: Answer) -> Array:
        predicted, odds = answer.unbounded.argmax(axis=1), log_odds(answer.unbounded)
        certainty = odds[np.arange(len(odds)), predicted]
        found = self._reference().doubt(certainty, predicted, wanted)
        found[answer.foreign] = 1.0
        return found

    def _sets(self, coverage: float, by_class: bool, answer: Answer) -> NDArray[np.bool_]:
        odds = log_odds(answer.unbounded)
        found = self._reference().sets(odds, coverage=coverage, by_class=by_class)
        empty = np.flatnonzero(~found.any(axis=1))
        found[empty, odds[empty].argmax(axis=1)] = True
        found[answer.foreign] = False
        return found

    def _assess(
        self, dtype: np.dtype[Any], coverage: float | None, evidence: int | None, answer: Answer
    ) -> NDArray[Any]:
        P = np.exp(answer.log_proba)
        found = np.empty(len(P), dtype=dtype)
        found["label"] = self.classes[P.argmax(axis=1)]
        found["probabilities"] = P
        found["novelty"] = p = self._novelty(answer)
        found["doubt"] = self._doubt(None, answer)
        found["chance"] = by_chance = self._by_chance(answer)
        found["status"] = status_of(
            P.max(axis=1), p, self.ambiguous_below, self.novel_below, by_chance
        )
        if coverage is not None:
            found["set"] = self._sets(coverage, True, answer)
        if evidence is not None:
            found["why"] = self._explain(evidence, answer)
        return found

    def _explain(self, n: int, answer: Answer) -> NDArray[Any]:
        order = np.argsort(-answer.unbounded, axis=1, kind="stable")
        second, near = self.second_look, self._near(answer)
        found = np.empty(len(order), dtype=object)
        evidence = None if second is None else second.pool.evidence(near, len(self.classes))
        foreign = set(answer.foreign.tolist())
        contents = self.measure.contents(answer.objects)
        for i, (c, r) in enumerate(order[:, :2].tolist()):
            if i in foreign:
                label, other, zeros = self.classes[c], self.classes[r], np.zeros(len(self.baseline))
                found[i] = Explanation(label, other, 0.0, 0.0, zeros, 0.0, ())
                continue
            weights, vote = self.pool.weights, 0.0
            if answer.sure[i]:
                weights = np.append(1.0, np.zeros(len(weights) - 1))
            elif second is not None and evidence is not None and answer.looked[i]:
                weights, vote = second.pool.weights, float(evidence[i, c] - evidence[i, r])
            start, parts = self.contributions(weights, answer.values[i], c, r)
            own = FeatureExplanation(0.0, 0.0)
            if self.look_zero is not None and contents is not None and weights[0]:
                own = self.look_zero.explain(contents[i], c, r, float(weights[0]))
            found[i] = Explanation(
                self.classes[c],
                self.classes[r],
                float(answer.unbounded[i, c] - answer.unbounded[i, r]),
                start + own.bias,
                parts,
                vote,
                self._nearest(near, answer.candidates, i, n),
                own.total,
                own.listed,
                own.along,
                bool(answer.sure[i]),
            )
        return found

    def contributions(
        self, weights: Array, values: Array, label: int, other: int
    ) -> tuple[float, Array]:
        """Return the score of the baseline, and the contribution of each landmark (m,).

        `values` (m,) are those of one object. The heads are pooled with these weights. O(m²).
        """
        start, parts = 0.0, np.zeros(len(values))
        # the last weights may belong to the evidence
        for head, a in zip(self.heads, weights, strict=False):
            if a and isinstance(head, LinearHead | QuadraticHead):
                at_baseline = head.to_log_proba(head.scores(self.baseline[None], None))[0]
                start += float(a * (at_baseline[label] - at_baseline[other]))
                parts += a * head.contributions(values, self.baseline, label, other)
        return start, parts

    def _nearest(
        self, near: Neighbours, candidates: Indices, i: int, n: int
    ) -> tuple[KnownNeighbour, ...]:
        """Return the n nearest objects to object i; landmarks come first among the columns."""
        assert near.columns is not None
        m, found = len(self.landmarks.indices), []
        for column, apart, code in zip(
            near.columns[i, :n], near.apart[i], near.codes[i], strict=False
        ):
            if apart >= FAR:
                break
            place, indices, names = column, self.landmarks.indices, self.landmarks.names
            if column >= m:
                assert self.second_look is not None
                place = candidates[i, column - m]
                indices, names = self.second_look.known.indices, self.second_look.names
            value = np.sqrt(apart) if self.measure.kind == "dissimilarity" else -apart / 2
            name = None if names is None else str(names[place])
            found.append(
                KnownNeighbour(int(indices[place]), name, self.classes[code], float(value))
            )
        return tuple(found)

    # -- the model itself --------------------------------------------------------------------------

    def with_names(self, names: Any) -> Model:
        """Return the model with the names of the training objects, for use by `explain`."""
        names = np.asarray(names, dtype=np.str_)
        if names.shape != (self.n_objects,):
            raise ValueError(
                f"expected one name for each of {self.n_objects} objects; got shape {names.shape}"
            )
        landmarks = replace(self.landmarks, names=names[self.landmarks.indices])
        second = self.second_look
        if second is not None:
            second = replace(second, names=names[second.known.indices])
        return replace(self, landmarks=landmarks, second_look=second)

    def check(self) -> None:
        """Raise an error if the parts do not fit together, e.g. in a forged file."""
        values, one = self.baseline[None], self.landmarks.objects[:1]
        with np.errstate(all="ignore"):
            found = self.opinions(values, one)
            found.append(self.pool(found))
            if self.second_look is not None:
                search = self.second_look.known.candidates
                candidates, apart = search(values, self.points(one))
                near = self._neighbours(values, apart, candidates)
                found.append(self.second_look.pool(found[:-1], near))
        if any(each.shape != (1, len(self.classes)) for each in found):
            raise ValueError(f"it does not return {len(self.classes)} probabilities per object")
        if any(np.isnan(each).any() for each in found):
            raise ValueError("it returns probabilities that are not numbers")


@dataclass(frozen=True)
class LandmarkMap:
    """What a transformer has: the map from objects to vectors, by their values to the landmarks."""

    measure: Measure
    symmetrize: bool
    space: LandmarkSpace
    embedding: Embedding | None  # None for the coordinates of the landmark space
    landmarks: Landmarks

    @property
    def signs(self) -> Array:
        """+1 or −1 for each coordinate."""
        return self.space.signs if self.embedding is None else self.embedding.signs

    def transform(self, X: Any, run: Comparisons | None = None) -> Any:
        """Return the vectors (n, r) of objects: m comparisons each."""
        shape = (len(self.signs),)
        if is_empty(X):
            return np.empty((0, *shape))
        run = run or Comparisons(self.measure, self.symmetrize)
        columns = run.columns(self.landmarks.objects, self.landmarks.indices)
        return map_objects(
            X,
            partial(_vectors, self, columns),
            measure=self.measure,
            block_rows=block_rows(self.measure, len(columns)),
            shape=shape,
            dtype=np.float64,
            n_jobs=run.n_jobs,
        )

    def vectors(self, values: Array) -> Array:
        """Return the vectors (n, r) of objects with these values (n, m) to the landmarks."""
        B = self.space.coordinates(values)
        return B if self.embedding is None else self.embedding.coordinates(B)

    def check(self) -> None:
        """Raise an error if the parts do not fit together, e.g. in a forged file."""
        self.vectors(self.space.landmark_values[:1])


def _vectors(model: LandmarkMap, columns: LandmarkColumns, chunk: Chunk) -> Array:
    with limit_blas_threads():
        return model.vectors(columns.values(chunk).value)


def _answered(
    model: Model,
    landmarks: LandmarkColumns,
    known: LandmarkColumns | None,
    counter: Counter,
    compare_all: bool,
    function: Callable[[Answer], NDArray[Any]],
    chunk: Chunk,
) -> NDArray[Any]:
    """Return a function of both looks at a chunk; it may run in another process."""
    with limit_blas_threads():
        return function(model.look(chunk, landmarks, known, counter, compare_all=compare_all))


def _log_probabilities(answer: Answer) -> Array:
    return answer.log_proba


def _probabilities(answer: Answer) -> Array:
    return np.exp(answer.log_proba)


def _labels(model: Model, answer: Answer) -> NDArray[Any]:
    return model.classes[np.argmax(_probabilities(answer), axis=1)]


def _ranked(model: Model, answer: Answer) -> NDArray[Any]:
    return model.classes[np.argsort(-_probabilities(answer), axis=1, kind="stable")]


def _decisions(model: Model, answer: Answer) -> Array:
    scores = answer.log_proba
    if len(model.heads) == 1 and model.second_look is None:
        scores = model.heads[0].scores(answer.values, None)
        scores[answer.foreign] = 0.0
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def _checked_coverage(coverage: float) -> float:
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1; got {coverage!r}")
    return coverage


def _checked_number(n: int) -> int:
    if n != int(n) or n < 1:
        raise ValueError(
            f"the number of nearest objects must be a whole number, at least 1; got {n!r}"
        )
    return n
