"""The model: what predicts, explains, and is what a model file contains.

    features ▶ values to the landmarks ▶ nearest known objects ▶ answer

A model takes up to three looks at an object (`krein.core.cascade`). Look zero sees its features.
The first look compares it with the landmarks, and every head turns the values into probabilities.
The second look compares it with training objects that have similar features and values, and their
labels are evidence. An object that is certain enough goes no further. Every answer (labels,
probabilities, novelty, label sets, explanations) is a function of the result.

A model needs numpy, scipy and its measure. Estimators fit models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Counter, block_rows
from ..compare.workers import limit_blas_threads
from ..core.candidates import KnownObjects, Points, no_points
from ..core.cascade import Cascade
from ..core.conformal import (
    FOUND_BY_CHANCE,
    Reference,
    benjamini_hochberg,
    log_odds,
    novelty_scores,
    status_of,
)
from ..core.evidence import FAR, Neighbours, nearest_landmarks, squared
from ..core.hits import KnownHits
from ..core.ranks import Rank, RankAnswers, RankPool, Seen
from ..core.shapes import SHARE, Array, Indices, Within
from ..data.chunks import Chunk, LandmarkColumns
from ..data.foreign import ObjectProfile, log_sizes
from ..data.opening import is_empty, map_objects
from ..measures import Measure
from ..measures.precomputed import GraphRows
from .heads import (
    FeatureExplanation,
    FeatureHead,
    LinearHead,
    LookZero,
    NeighbourHead,
    QuadraticHead,
)
from .parts import (
    CLASS_SIZES,
    FIRST_LOOK,
    HITS,
    LOOK_ZERO,
    SECOND_LOOK,
    Answer,
    Comparisons,
    Explanation,
    KnownNeighbour,
    Landmarks,
    SecondLook,
)
from .schema import LABELS


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
    cascade: Cascade
    """Its terms are the heads in their order, then those of the evidence."""
    baseline: Annotated[Array, "m"]
    """The values of an average object to the landmarks, where explanations start."""
    landmarks: Landmarks
    second_look: SecondLook | None = None
    reference: Reference | None = None
    comparisons: Annotated[float, Within(0.0)] = 0.0
    """Estimated mean number of comparisons per prediction."""
    n_objects: Annotated[int, "n_objects", Within(1, 2**53)] = 1
    """Number of training objects that the landmarks were chosen from."""
    feature_names: Annotated[NDArray[np.str_], "d"] | None = None
    """Names of the columns, if the objects are vectors from a data frame."""
    ambiguous_below: Annotated[float, SHARE] = 0.8
    novel_below: Annotated[float, SHARE] = 0.01
    ranks: RankPool | None = None
    """If labels are paths in a taxonomy: what was learned about each rank."""

    # -- answers ----------------------------------------------------------------------------------

    def predict(self, X: Any, run: Comparisons | None = None) -> Any:
        """Return the most probable class of each object."""
        return self._map(X, self._labels, (), self.classes.dtype, run)

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
        return self._map(X, self._decisions, () if C == 2 else (C,), run=run)

    def rank_labels(self, X: Any, run: Comparisons | None = None) -> Any:
        """Return all labels for each object (n, C), most probable first."""
        shape = (len(self.classes),)
        return self._map(X, self._ranked, shape, self.classes.dtype, run)

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
        ranks: bool = False,
        compare_all: bool = False,
        run: Comparisons | None = None,
    ) -> Any:
        """Return label, probabilities, p-values and status of each object, in one pass.

        The result is a structured array; `coverage` adds the field `set`, `evidence` the field
        `why`, the result of `explain` with this many known objects, and `ranks` the fields of
        `RankAnswers`: `rank_nodes`, `rank_probabilities`, `rank_unknown` and `rank_novelty`.

        Ranks have p-values of their own. So with `ranks`, an object that an early look answers is
        not compared further: its `novelty` is `unfit`, and `far` is 1. All objects are compared
        with `compare_all`, for `evidence`, and if random objects get early answers, too.
        """
        reference = self._reference()
        C = len(self.classes)
        fields: list[Any] = [
            ("label", self.classes.dtype),
            ("probabilities", np.float64, (C,)),
            ("novelty", np.float64),
            ("far", np.float64),
            ("unfit", np.float64),
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
        if ranks:
            if self.ranks is None:
                raise ValueError("this model has no ranks: its labels are not paths in a taxonomy")
            R = len(self.taxonomy)
            fields += [("rank_nodes", np.intp, (R, 2)), ("rank_probabilities", np.float64, (R, 2))]
            fields += [("rank_unknown", np.float64, (R,)), ("rank_novelty", np.float64, (R,))]
        dtype = np.dtype(fields)
        assess = partial(self._assess, dtype, coverage, evidence, ranks)
        needed = not ranks or evidence is not None or not reference.trusts_early_answers
        return self._map(X, assess, (), dtype, run, compare_all=compare_all or needed)

    # -- the looks at some objects -----------------------------------------------------------------

    def look(
        self,
        chunk: Chunk,
        landmarks: LandmarkColumns,
        known: LandmarkColumns | None,
        counter: Counter,
        *,
        compare_all: bool = False,
    ) -> Answer:
        """Return what the looks at the objects of a chunk find.

        With `compare_all`, all objects are compared with their candidates; probabilities stay the
        same. Objects of another kind are not compared at all: all classes are equally probable.
        """
        chunk = replace(chunk, objects=chunk.in_form(self.measure), checked=True)
        n, C = len(chunk), len(self.classes)
        foreign = self._foreign(chunk.objects)
        rows = np.setdiff1d(np.arange(n), foreign)
        part = chunk if len(rows) == n else chunk.picked(rows)
        looks = Looks(self, part, landmarks, known, counter)
        if compare_all and len(rows):
            looks.compare_all()
        log_proba, depth = self.cascade.run(len(rows), C, looks.take)
        near, compared = looks.near_of_all, looks.all_compared | (depth == len(self.look_names) - 1)
        if near is None and looks.near is not None:
            near = looks.near.spread(np.flatnonzero(compared), len(rows))
        values, candidates = looks.values, looks.candidates
        if len(rows) < n:
            near = None if near is None else near.spread(rows, n)
            log_proba = _spread(log_proba, rows, n, -np.log(C))
            depth, compared = _spread(depth, rows, n, -1), _spread(compared, rows, n, False)
            values = _spread(values, rows, n, self.baseline)
            candidates = _spread(candidates, rows, n, 0)
        return Answer(
            objects=chunk.objects,
            values=values,
            log_proba=self.cascade.bounded(log_proba),
            unbounded=log_proba,
            depth=depth,
            near=near,
            candidates=candidates,
            foreign=foreign,
            compared=compared,
            seen=() if self.ranks is None else looks.seen(rows, depth),
        )

    @property
    def look_names(self) -> tuple[str, ...]:
        """The looks of the cascade, in their order."""
        if self.hits is not None:
            return CLASS_SIZES, HITS
        zero = () if self.look_zero is None else (LOOK_ZERO,)
        second = () if self.second_look is None else (SECOND_LOOK,)
        return (*zero, FIRST_LOOK, *second)

    @property
    def hits(self) -> KnownHits | None:
        """The known objects, if hits among them are given instead of compared."""
        known = None if self.second_look is None else self.second_look.known
        return known if isinstance(known, KnownHits) else None

    def terms(self, values: Array, objects: Any, near: Neighbours | None) -> list[list[Array]]:
        """Return the terms (n, C) of each look at objects with these values and neighbours."""
        zero, found = self.look_zero, []
        if zero is not None:
            scores = zero.scores(self.measure.contents(objects))
            found.append([zero.to_log_proba(scores)])
        found.append(self.value_terms(values))
        if self.second_look is not None and near is not None:
            found.append(self.second_look.evidence.terms(near, len(self.classes)))
        return found

    def value_terms(self, values: Array) -> list[Array]:
        """Return the terms (n, C) of objects with these values to the landmarks."""
        return [head.to_log_proba(head.scores(values)) for head in self.value_heads]

    @property
    def value_heads(self) -> tuple[LinearHead | QuadraticHead, ...]:
        """The heads that look at the values to the landmarks."""
        return tuple(head for head in self.heads if not isinstance(head, LookZero))

    @property
    def look_zero(self) -> FeatureHead | NeighbourHead | None:
        """The head that looks at the objects themselves, if there is one."""
        first = self.heads[0]
        return first if isinstance(first, LookZero) else None

    def _foreign(self, objects: Any) -> Indices:
        """Return the positions of objects of another kind."""
        found = {} if self.profile is None else self.profile.foreign(objects)
        return np.array(sorted(row for rows in found.values() for row in rows), dtype=np.intp)

    def points(self, objects: Any) -> Points:
        """Return the points (n, r) of the features of objects; (n, 0) if they have none."""
        zero = self.look_zero
        if zero is None:
            return no_points(len(objects))
        return zero.look(self.measure.contents(objects))[1]

    def neighbours(self, values: Array, exact: Array, candidates: Indices) -> Neighbours:
        """Return the nearest of the landmarks and candidates (n, k), given all values."""
        assert self.second_look is not None
        assert isinstance(self.second_look.known, KnownObjects)
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
            block_rows=block_rows(
                self.measure, len(self.classes if self.hits else self.landmarks.indices)
            ),
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
        return novelty_scores(self._near(answer).filled, self.measure.kind)

    def _log_sizes(self, answer: Answer) -> Array | None:
        """Return the log size (n,) of each object; None if sizes do not matter."""
        if self._reference().log_sizes is None:
            return None
        return log_sizes(self.measure, answer.objects)

    def _labels(self, answer: Answer) -> NDArray[Any]:
        return self.classes[np.argmax(_probabilities(answer), axis=1)]

    def _ranked(self, answer: Answer) -> NDArray[Any]:
        return self.classes[np.argsort(-_probabilities(answer), axis=1, kind="stable")]

    def _decisions(self, answer: Answer) -> Array:
        scores = answer.log_proba
        if len(self.heads) == 1 and self.second_look is None:
            scores = self.heads[0].scores(answer.values)
            scores[answer.foreign] = 0.0
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _novelty(self, answer: Answer) -> Array:
        return self._novelty_parts(answer)[0]

    def _novelty_parts(self, answer: Answer) -> tuple[Array, Array, Array]:
        """Return the p-values of novelty, of the distance, and of how well a class fits."""
        predicted, certainty = _certainty(answer)
        found = self._reference().novelty_parts(
            self.novelty_scores(answer), certainty, predicted, self._log_sizes(answer)
        )
        p, far, unfit = found
        p[~answer.compared], far[~answer.compared] = unfit[~answer.compared], 1.0
        for each in found:
            each[answer.foreign] = 0.0
        return found

    def _by_chance(self, answer: Answer) -> Array:
        found = self._reference().by_chance(
            self.novelty_scores(answer), self._log_sizes(answer), answer.compared
        )
        found[answer.foreign] = 1.0
        return found

    def _doubt(self, wanted: NDArray[np.bool_] | None, answer: Answer) -> Array:
        predicted, certainty = _certainty(answer)
        found = self._reference().doubt(certainty, predicted, wanted)
        found[answer.foreign] = 1.0
        found[self._without_hit(answer)] = 1.0  # nothing speaks for their label
        return found

    def _without_hit(self, answer: Answer) -> NDArray[np.bool_]:
        """Return which objects (n,) have no hit; none if they were compared."""
        if self.hits is None:
            return np.zeros(len(answer.log_proba), dtype=bool)
        return ~np.asarray(np.isfinite(self._near(answer).apart).any(axis=1))

    def _sets(self, coverage: float, by_class: bool, answer: Answer) -> NDArray[np.bool_]:
        odds = log_odds(answer.unbounded)
        found = self._reference().sets(odds, coverage=coverage, by_class=by_class)
        empty = np.flatnonzero(~found.any(axis=1))
        found[empty, odds[empty].argmax(axis=1)] = True
        found[answer.foreign] = False
        return found

    def _assess(
        self,
        dtype: np.dtype[Any],
        coverage: float | None,
        evidence: int | None,
        ranks: bool,
        answer: Answer,
    ) -> NDArray[Any]:
        P = np.exp(answer.log_proba)
        found = np.empty(len(P), dtype=dtype)
        found["label"] = self.classes[P.argmax(axis=1)]
        found["probabilities"] = P
        found["novelty"], found["far"], found["unfit"] = self._novelty_parts(answer)
        found["doubt"] = self._doubt(None, answer)
        found["chance"] = by_chance = self._by_chance(answer)
        found["status"] = status_of(
            P.max(axis=1), found["novelty"], self.ambiguous_below, self.novel_below, by_chance
        )
        # whatever the share of known objects that have no hit either
        found["status"][self._without_hit(answer)] = "novel"
        if coverage is not None:
            found["set"] = self._sets(coverage, True, answer)
        if evidence is not None:
            found["why"] = self._explain(evidence, answer)
        if ranks:
            path = self.rank_answers(answer)
            found["rank_nodes"], found["rank_probabilities"] = path.nodes, path.probabilities
            found["rank_unknown"], found["rank_novelty"] = path.unknown, path.novelty
        return found

    def rank_answers(self, answer: Answer) -> RankAnswers:
        """Return the path of each object down the taxonomy."""
        assert self.ranks is not None
        evidence = None if self.second_look is None else self.second_look.evidence
        return self.ranks.answers(self.taxonomy, len(answer.depth), answer.seen, evidence)

    def rank_depths(self, assessed: Any, answers: RankAnswers) -> Indices:
        """Return the number of ranks of each answer: those that are certain enough.

        An object that is no nearer than random ones has none. Without probabilities of ranks, a
        novel object has none either.
        """
        depths = answers.deepest(self.ambiguous_below, self.novel_below)
        names = assessed.dtype.names
        if "chance" in names:
            depths[assessed["chance"] > FOUND_BY_CHANCE] = 0
            if "rank_nodes" not in names:
                depths[assessed["status"] == "novel"] = 0
        return depths

    @cached_property
    def taxonomy(self) -> list[Rank]:
        """The ranks of the labels; none if they are not paths."""
        if self.ranks is None:
            return []
        return Rank.each(self.classes.tolist(), self.ranks.separator)

    def _explain(self, n: int, answer: Answer) -> NDArray[Any]:
        order = np.argsort(-answer.unbounded, axis=1, kind="stable")
        second, near = self.second_look, self._near(answer)
        found = np.empty(len(order), dtype=object)
        evidence = [] if second is None else second.evidence.terms(near, len(self.classes))
        foreign = set(answer.foreign.tolist())
        contents = self.measure.contents(answer.objects)
        for i, (c, r) in enumerate(order[:, :2].tolist()):
            if i in foreign:
                found[i] = Explanation(
                    label=self.classes[c],
                    runner_up=self.classes[r],
                    score=0.0,
                    baseline=0.0,
                    contributions=np.zeros(len(self.baseline)),
                    evidence=0.0,
                    nearest=(),
                )
                continue
            weights, last = self.cascade.looks[answer.depth[i]].weights, len(self.heads)
            votes = zip(weights[last:], evidence, strict=False)
            vote = float(sum(a * (term[i, c] - term[i, r]) for a, term in votes))
            start, parts = self.contributions(weights, answer.values[i], c, r)
            own = FeatureExplanation(0.0, 0.0)
            if self.look_zero is not None and contents is not None and weights[0]:
                own = self.look_zero.explain(contents[i], c, r, float(weights[0]))
            found[i] = Explanation(
                label=self.classes[c],
                runner_up=self.classes[r],
                score=float(answer.unbounded[i, c] - answer.unbounded[i, r]),
                baseline=start + own.bias,
                contributions=parts,
                evidence=vote,
                nearest=self._nearest(near, answer.candidates, i, n),
                from_features=own.total,
                features=own.listed,
                along=own.along,
                sure=self.look_zero is not None and answer.depth[i] == 0,
            )
        return found

    def contributions(
        self, weights: Array, values: Array, label: int, other: int
    ) -> tuple[float, Array]:
        """Return the score of the baseline, and the contribution of each landmark (m,).

        `values` (m,) are those of one object. The heads are pooled with these weights. O(m²).
        """
        start, parts = 0.0, np.zeros(len(values))
        first = len(self.heads) - len(self.value_heads)
        # the last weights may belong to the evidence
        for head, a in zip(self.value_heads, weights[first:], strict=False):
            if a:
                at_baseline = head.to_log_proba(head.scores(self.baseline[None]))[0]
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
        if not self.heads:
            raise ValueError("it has no heads")
        if len(self.cascade.looks) != len(self.look_names):
            raise ValueError(f"its cascade does not have {len(self.look_names)} looks")
        if self.hits is not None:
            width = getattr(self.landmarks.objects, "width", None)
            if len(self.landmarks.indices) or width != len(self.hits.codes):
                raise ValueError("its hits are not among the objects that it knows")
        near = None
        with np.errstate(all="ignore"):
            if self.hits is not None:
                nothing = np.empty(0, dtype=np.intp)
                near, _ = self.hits.neighbours(np.zeros(2, np.intp), nothing, np.empty(0))
            elif self.second_look is not None:
                assert isinstance(self.second_look.known, KnownObjects)
                candidates, apart = self.second_look.known.candidates(values, self.points(one))
                near = self.neighbours(values, apart, candidates)
            found = self.cascade.after_each(self.terms(values, one, near))
        if any(each.shape != (1, len(self.classes)) for each in found):
            raise ValueError(f"it does not return {len(self.classes)} probabilities per object")
        if any(np.isnan(each).any() for each in found):
            raise ValueError("it returns probabilities that are not numbers")
        if self.ranks is not None:
            if self.hits is not None:
                raise ValueError("it has ranks, which hits do not tell about")
            self.ranks.check(len(self.taxonomy), [len(look.weights) for look in self.cascade.looks])


class Looks:
    """The looks of a model at the objects of a chunk: the terms that each adds, and what it finds.

    Only objects that get a look are compared, unless `compare_all` was called before.
    """

    def __init__(
        self,
        model: Model,
        chunk: Chunk,
        landmarks: LandmarkColumns,
        known: LandmarkColumns | None,
        counter: Counter,
    ) -> None:
        self.model, self.chunk, self.counter = model, chunk, counter
        self.columns, self.known = landmarks, known
        n, second = len(chunk), model.second_look
        steps = {
            LOOK_ZERO: self._features,
            FIRST_LOOK: self._landmarks,
            SECOND_LOOK: self._neighbours,
            CLASS_SIZES: self._landmarks,
            HITS: self._neighbours,
        }
        self.steps = [steps[name] for name in model.look_names]
        self.opinion: Array | None = None  # of look zero
        self.points = no_points(n)
        self.values = np.tile(model.baseline, (n, 1))
        n_found = 0 if second is None else second.known.n_found
        self.candidates = np.zeros((n, n_found), dtype=np.intp)
        self.all_compared = False
        self.near_of_all: Neighbours | None = None  # if all are compared
        self.near: Neighbours | None = None  # of the objects that got the second look
        self.taken: list[tuple[Indices, list[Array]]] = []

    def take(self, k: int, rows: Indices) -> list[Array]:
        """Take look k at some objects, and return its terms."""
        found = self.steps[k](rows)
        if self.model.ranks is not None:
            self.taken.append((rows, found))
        return found

    def seen(self, places: Indices, depth: Indices) -> tuple[Seen, ...]:
        """Return what each look, and those before it, found about the objects that it answers.

        `places` are those of the objects of the chunk among all, and `depth` is that of all.
        """
        found = []
        for k in range(len(self.model.look_names)):
            rows = np.flatnonzero(depth[places] == k)
            terms, near = list[Array](), None
            for taken, (own, added) in enumerate(self.taken[: k + 1]):
                at = np.searchsorted(own, rows)
                if self.model.look_names[taken] != SECOND_LOOK:
                    terms += [term[at] for term in added]
                elif self.near is not None:
                    near = self.near.at(at)
            if len(rows):
                found.append(Seen(places[rows], terms, near))
            else:
                found.append(Seen(rows, []))
        return tuple(found)

    def compare_all(self) -> None:
        """Compare all objects with the landmarks and with their candidates."""
        everyone = np.arange(len(self.chunk))
        if self.model.look_zero is not None:
            self._features(everyone)
        self._compare_with_landmarks(everyone)
        if self.model.second_look is not None:
            self.near_of_all = self._compare_with_candidates(everyone)
        self.all_compared = True

    def _features(self, rows: Indices) -> list[Array]:
        """Return the term of look zero; also find out where similar objects can be searched."""
        zero = self.model.look_zero
        assert zero is not None
        if self.opinion is None:
            scores, self.points = zero.look(self.model.measure.contents(self.chunk.objects))
            self.opinion = zero.to_log_proba(scores)
        return [self.opinion[rows]]

    def _landmarks(self, rows: Indices) -> list[Array]:
        """Return the terms of the values to the landmarks; with hits, there are none."""
        if not self.all_compared:
            self._compare_with_landmarks(rows)
        return self.model.value_terms(self.values[rows])

    def _compare_with_landmarks(self, rows: Indices) -> None:
        part = self.chunk if len(rows) == len(self.chunk) else self.chunk.picked(rows)
        self.values[rows], cost = self.columns.values(part)
        self.counter.include(cost)

    def _neighbours(self, rows: Indices) -> list[Array]:
        """Return the terms of the nearest known objects."""
        second = self.model.second_look
        assert second is not None
        if self.near_of_all is None:
            self.near = self._compare_with_candidates(rows)
        else:
            self.near = self.near_of_all.at(rows)
        return second.evidence.terms(self.near, len(self.model.classes))

    def _compare_with_candidates(self, rows: Indices) -> Neighbours:
        second = self.model.second_look
        assert second is not None
        if isinstance(second.known, KnownHits):
            return self._take_hits(second.known, rows)
        values, exact = self.values[rows], np.empty((len(rows), 0))
        candidates, _ = second.known.candidates(values, self.points[rows])
        self.candidates[rows] = candidates
        if candidates.shape[1]:
            assert self.known is not None
            exact, cost = self.known.each(self.chunk, rows, candidates)
            self.counter.include(cost)
        return self.model.neighbours(values, exact, candidates)

    def _take_hits(self, known: KnownHits, rows: Indices) -> Neighbours:
        """Take what somebody else's search found."""
        starts, columns, values = GraphRows.of(self.chunk.objects)[rows].lists
        apart = squared(values, self.model.measure.kind)
        near, self.candidates[rows] = known.neighbours(starts, columns, apart)
        return near


def _spread(some: NDArray[Any], rows: Indices, n: int, fill: Any) -> NDArray[Any]:
    """Return an array of n objects, of which `some` are these rows; the others are `fill`."""
    everyone = np.empty((n, *some.shape[1:]), dtype=some.dtype)
    everyone[:] = fill
    everyone[rows] = some
    return everyone


def _answered(
    model: Model,
    landmarks: LandmarkColumns,
    known: LandmarkColumns | None,
    counter: Counter,
    compare_all: bool,
    function: Callable[[Answer], NDArray[Any]],
    chunk: Chunk,
) -> NDArray[Any]:
    """Return a function of the looks at a chunk; it may run in another process."""
    with limit_blas_threads():
        return function(model.look(chunk, landmarks, known, counter, compare_all=compare_all))


def _certainty(answer: Answer) -> tuple[Indices, Array]:
    """Return the predicted classes (n,) and their log-odds."""
    predicted, odds = answer.unbounded.argmax(axis=1), log_odds(answer.unbounded)
    return predicted, odds[np.arange(len(odds)), predicted]


def _log_probabilities(answer: Answer) -> Array:
    return answer.log_proba


def _probabilities(answer: Answer) -> Array:
    return np.exp(answer.log_proba)


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
