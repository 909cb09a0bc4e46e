"""The parts of a model, what its looks find, and how objects are compared."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Counter, Pairs, averages, open_cache
from ..core.candidates import KnownObjects
from ..core.evidence import Evidence, Neighbours
from ..core.hits import HitEvidence, KnownHits
from ..core.ranks import Seen
from ..core.shapes import CODE, ROW, Array, Codes, Indices, Mask
from ..data.chunks import LandmarkColumns
from ..measures import Measure
from ..measures.objects import excerpt
from .heads import FeatureShare
from .schema import OBJECTS

NO_ROWS: Indices = np.empty(0, dtype=np.intp)

LOOK_ZERO, FIRST_LOOK, SECOND_LOOK = "look zero", "first look", "second look"
CLASS_SIZES, HITS = "class sizes", "hits"
"""Names of the looks, with comparisons or with hits."""


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
        self, objects: Any, indices: Indices, compared_rows: Indices = NO_ROWS, compared: Any = None
    ) -> LandmarkColumns:
        """Return objects as columns: other objects are compared with them, chunk by chunk.

        The objects at `compared_rows` have been `compared` before: these are their values (k, m).
        """
        compared = np.empty((0, len(indices))) if compared is None else compared
        return LandmarkColumns(
            self.measure,
            objects,
            indices,
            compared_rows,
            compared,
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
    """The known objects that an object may be compared with, and the evidence of their labels."""

    known: KnownObjects | KnownHits
    evidence: Evidence | HitEvidence
    names: Annotated[NDArray[np.str_], "n_known"] | None
    objects: Annotated[Any, OBJECTS, "n_known"]


@dataclass(frozen=True)
class Answer:
    """What the looks at some objects found."""

    objects: Any  # in the measure's form
    values: Array  # (n, m): with the landmarks; the baseline for an object that was not compared
    log_proba: Array  # (n, C)
    unbounded: Array  # (n, C): same order, and distinct even if probabilities round to 1
    depth: Indices  # (n,): which look of the cascade answered; −1 for foreign objects
    near: Neighbours | None  # the nearest known objects, of those compared with candidates
    candidates: Indices  # (n, k), among the known objects
    foreign: Indices  # positions of objects of another kind
    compared: Mask  # (n,): whether all comparisons were made
    seen: tuple[Seen, ...] = ()  # what each look tells about those it answers, if ranks need it


@dataclass(frozen=True)
class KnownNeighbour:
    """A known object that a new one was compared with."""

    index: int  # among the training objects
    name: str | None
    label: Any
    value: float  # of the measure


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        """Return one line; all fields of many landmarks would fill a terminal."""
        first = self.nearest[0] if self.nearest else None
        name = "" if first is None else excerpt(first.name or f"object {first.index}", 20)
        nearest = "" if first is None else f"; nearest: {name} ({first.label})"
        return (
            f"<Explanation: {self.label} rather than {self.runner_up}, log-odds "
            f"{self.score:.3g}{nearest}>"
        )
