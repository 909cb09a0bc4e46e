"""Functions of an `Answer`, the result of both looks; they can be sent to other processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..core.checks import Array, Indices
from ..core.conformal import LabelReference, NoveltyReference, log_odds, novelty_scores, status_of
from ..core.contributions import head_contributions
from ..core.family import Codes
from ..core.looks import Neighbours, TwoLooks
from .secondlook import Answer, nearest_landmarks


@dataclass(frozen=True)
class OfLogProba:
    """A function of the log-probabilities."""

    function: Callable[[Array], NDArray[Any]]

    def __call__(self, answer: Answer) -> NDArray[Any]:
        """Return the function of the log-probabilities."""
        return self.function(answer.log_proba)


@dataclass(frozen=True)
class Novelty:
    """The p-value for "none of the classes"; 0 for objects of another kind."""

    kind: Literal["similarity", "dissimilarity"]
    landmark_codes: Codes
    reference: NoveltyReference

    def __call__(self, answer: Answer) -> NDArray[Any]:
        """Return p-values (n,)."""
        scores = novelty_scores(self.near(answer).apart, self.kind)
        found = self.reference.p_values(scores, answer.unbounded.argmax(axis=1))
        found[answer.foreign] = 0.0
        return found

    def near(self, answer: Answer) -> Neighbours:
        """Return the nearest of all objects that each one was compared with."""
        if answer.near is not None:
            return answer.near
        return nearest_landmarks(answer.values, self.kind, self.landmark_codes)


@dataclass(frozen=True)
class Assess:
    """Label, probabilities, novelty and status."""

    novelty: Novelty
    classes: NDArray[Any]
    ambiguous_below: float
    novel_below: float
    sets: Sets | None = None
    explained: Explained | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the structured array."""
        C = len(self.classes)
        fields: list[Any] = [
            ("label", self.classes.dtype),
            ("probabilities", np.float64, (C,)),
            ("novelty", np.float64),
            ("status", "<U9"),
        ]
        fields += [("set", np.bool_, (C,))] if self.sets is not None else []
        fields += [("why", object)] if self.explained is not None else []
        return np.dtype(fields)

    def __call__(self, answer: Answer) -> NDArray[Any]:
        """Return a structured array (n,)."""
        P = np.exp(answer.log_proba)
        found = np.empty(len(P), dtype=self.dtype)
        found["label"] = self.classes[P.argmax(axis=1)]
        found["probabilities"] = P
        found["novelty"] = p = self.novelty(answer)
        found["status"] = status_of(P.max(axis=1), p, self.ambiguous_below, self.novel_below)
        if self.sets is not None:
            found["set"] = self.sets(answer)
        if self.explained is not None:
            found["why"] = self.explained(answer)
        return found


@dataclass(frozen=True)
class Sets:
    """Labels that cannot be ruled out."""

    reference: LabelReference
    coverage: float
    by_class: bool

    def __call__(self, answer: Answer) -> NDArray[Any]:
        """Return which labels are in the set (n, C)."""
        odds = log_odds(answer.unbounded)
        return self.reference.sets(odds, coverage=self.coverage, by_class=self.by_class)


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
    `contributions` of the landmarks, and the `evidence` of the nearest known objects.
    """

    label: Any
    runner_up: Any
    score: float
    baseline: float
    contributions: Array  # (m,): in the order of `landmarks_`
    evidence: float  # 0 if the first look was certain enough
    nearest: tuple[KnownNeighbour, ...]


@dataclass(frozen=True)
class Explained:
    """Explanations, each with `n` neighbours."""

    novelty: Novelty
    looks: TwoLooks
    classes: NDArray[Any]
    baseline: Array  # (m,)
    indices: tuple[Indices, Indices]  # of landmarks and of known objects
    names: tuple[NDArray[np.str_] | None, NDArray[np.str_] | None]
    n: int

    def __call__(self, answer: Answer) -> NDArray[Any]:
        """Return an array of explanations (n,)."""
        near = self.novelty.near(answer)
        order = np.argsort(-answer.unbounded, axis=1, kind="stable")
        evidence = self.looks.evidence(near, len(self.classes))
        found = np.empty(len(order), dtype=object)
        for i, (c, r) in enumerate(order[:, :2].tolist()):
            looked = bool(answer.looked[i])
            weights = self.looks.second if looked else self.looks.first
            start, parts = head_contributions(
                self.looks.heads, weights, answer.values[i], self.baseline, c, r
            )
            vote = float(evidence[i, c] - evidence[i, r]) if looked else 0.0
            found[i] = Explanation(
                self.classes[c],
                self.classes[r],
                float(answer.unbounded[i, c] - answer.unbounded[i, r]),
                start,
                parts,
                vote,
                self._nearest(near, answer.candidates, i),
            )
        return found

    def _nearest(self, near: Neighbours, candidates: Indices, i: int) -> tuple[KnownNeighbour, ...]:
        """Return the nearest objects to object i; columns are landmarks first, then candidates."""
        assert near.columns is not None
        m, found = len(self.indices[0]), []
        for column, apart, code in zip(
            near.columns[i, : self.n], near.apart[i], near.codes[i], strict=False
        ):
            group = int(column >= m)
            place = candidates[i, column - m] if group else column
            names = self.names[group]
            value = np.sqrt(apart) if self.novelty.kind == "dissimilarity" else -apart / 2
            found.append(
                KnownNeighbour(
                    int(self.indices[group][place]),
                    None if names is None else str(names[place]),
                    self.classes[code],
                    float(value),
                )
            )
        return tuple(found)
