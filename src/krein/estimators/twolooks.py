"""Predictions of a two-look model: labels, novelty, label sets, and explanations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..compare.pairs import Counter, block_rows
from ..core.checks import Array, Indices
from ..core.looks import TwoLooks
from ..data.dataset import LandmarkColumns
from ..data.opening import is_empty, map_objects
from ..measures import Measure
from ..measures.foreign import Likeness
from .answers import Assess, Explained, Novelty, OfLogProba, Sets
from .compound import IfThere, Objects, Optional
from .declared import KNOWN_OBJECTS, REFERENCE, SIZE_CURVE, TWO_LOOKS
from .fitted import NO_ROWS, FittedClassifier, FittedModel
from .reference import Reference
from .schema import LabelArray, Names, Real, Schema
from .secondlook import Answer, KnownObjects, LookTwice
from .sizing import SizeCurve


class FittedTwoLooks(FittedClassifier):
    """Both looks at new objects: the fitted model of `KreinClassifier`."""

    neighbours: int | None
    novel_below: float
    ambiguous_below: float

    looks_: TwoLooks
    known_: KnownObjects | None
    known_objects_: Any
    reference_: Reference
    landmark_names_: NDArray[np.str_] | None
    known_names_: NDArray[np.str_] | None
    comparisons_: float
    size_curve_: SizeCurve

    _last_call: Counter
    _likeness: Likeness | None

    _parameters: ClassVar[tuple[str, ...]] = (
        *FittedModel._parameters,
        "novel_below",
        "ambiguous_below",
    )
    _fitted: ClassVar[Schema] = {
        **FittedModel._fitted,
        "classes_": LabelArray("C"),
        "looks_": TWO_LOOKS,
        "known_": Optional(KNOWN_OBJECTS),
        "known_objects_": Optional(Objects("n_known")),
        "comparisons_": Real(0.0),
        "size_curve_": IfThere(SIZE_CURVE),
        "reference_": REFERENCE,
        "landmark_names_": Optional(Names("m")),
        "known_names_": Optional(Names("n_known")),
    }

    @property
    def last_comparisons_(self) -> int:
        """Number of comparisons in the last call on objects in memory."""
        self._check_fitted()
        return self._last_call.compared

    def novelty(self, X: Any) -> Any:
        """Return the novelty p-value of each object: small if it resembles none of the classes.

        The score of an object is its mean distance to the three nearest of all objects that it is
        compared with, ranked among the scores of held-out training objects with the same predicted
        label. Among objects from the same source as the training objects, at most a share t has a
        p-value of t or less. An object of another kind, such as DNA for a model of proteins, gets
        0 (`OtherKindWarning`). Every object gets a second look, which costs up to `neighbours`
        additional comparisons.

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> from krein.datasets import make_protein_families
        >>> X, y = make_protein_families(150, divergence=0.3, random_state=0)
        >>> clf = KreinClassifier("smith-waterman").fit(X[:-1], y[:-1])
        >>> p = clf.novelty([X[-1], "GSGSGSGSGSGSGSGSGSGSGSGS"])
        >>> bool(p[0] > 0.05), bool(p[1] < 0.01)
        (True, True)
        """
        self._n_classes()
        return self._answers(X, _novelty(self), (), everyone=True)

    def assess(self, X: Any, *, coverage: float | None = None, evidence: int | None = None) -> Any:
        """Return the label, probabilities, novelty and status of each object, in one pass.

        The status is "novel" if the novelty p-value is at most `novel_below`, otherwise "ambiguous"
        if no class has a probability of at least `ambiguous_below`, otherwise "known".

        Parameters
        ----------
        X : objects
        coverage : float or None, default=None
            Add the field `set`, the result of `predict_set` for this coverage.
        evidence : int or None, default=None
            Add the field `why`, the result of `explain` with this many known objects.

        Returns
        -------
        structured array (n,) with fields `label`, `probabilities`, `novelty` and `status`

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> from krein.datasets import make_protein_families
        >>> X, y = make_protein_families(150, divergence=0.3, random_state=0)
        >>> clf = KreinClassifier("smith-waterman").fit(X, y)
        >>> clf.assess(["GSGSGSGSGSGSGSGSGSGSGSGS"])["status"]
        array(['novel'], dtype='<U9')
        """
        self._n_classes()
        assess = Assess(
            _novelty(self),
            self.classes_,
            self.ambiguous_below,
            self.novel_below,
            None if coverage is None else _sets(self, coverage, by_class=True),
            None if evidence is None else _explained(self, evidence),
        )
        return self._answers(X, assess, (), assess.dtype, everyone=True)

    def predict_set(self, X: Any, coverage: float = 0.9, *, by_class: bool = True) -> Any:
        """Return which labels cannot be ruled out: a Boolean array (n, C), in the order of
        `classes_`.

        The set contains the true label for about a share `coverage` of objects from the same source
        as the training objects. A set may contain several labels, or none if no label fits.

        Parameters
        ----------
        X : objects
        coverage : float, default=0.9
            Between 0 and 1.
        by_class : bool, default=True
            Reach the coverage within each class that has at least 30 held-out objects, and jointly
            over the smaller classes. Otherwise reach it over all objects, with smaller sets.

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> from krein.datasets import make_protein_families
        >>> X, y = make_protein_families(150, random_state=0)
        >>> clf = KreinClassifier("smith-waterman").fit(X[:-1], y[:-1])
        >>> sets = clf.predict_set(X[-1:], coverage=0.99)
        >>> y[-1] in clf.classes_[sets[0]]
        True
        """
        shape = (self._n_classes(),)
        return self._answers(X, _sets(self, coverage, by_class), shape, np.bool_)

    def explain(self, X: Any, n: int = 3) -> Any:
        """Explain the label of each object; return an array of `Explanation`.

        Each contains the `n` nearest known objects with their values of the measure, and the
        contribution of each landmark to the log-odds of the label against the runner-up.

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> from krein.datasets import make_protein_families
        >>> X, y = make_protein_families(150, random_state=0)
        >>> clf = KreinClassifier("smith-waterman").fit(X[:-1], y[:-1])
        >>> why = clf.explain(X[-1:])[0]
        >>> bool(all(near.label == why.label for near in why.nearest))
        True
        >>> total = why.baseline + why.contributions.sum() + why.evidence
        >>> bool(abs(total - why.score) < 1e-9)
        True
        """
        self._n_classes()
        return self._answers(X, _explained(self, n), (), object, everyone=True)

    def name_objects(self, names: Any) -> Self:
        """Store the names of the training objects, one per object in order, for use by `explain`.

        Examples
        --------
        >>> from krein import KreinClassifier
        >>> words, labels = ["house", "mouse", "haus", "maus"], ["en", "en", "de", "de"]
        >>> clf = KreinClassifier("levenshtein").fit(words, labels).name_objects(words)
        >>> clf.explain(["louse"], n=2)[0].nearest[1].name
        'mouse'
        """
        self._n_classes()
        names = np.asarray(names, dtype=np.str_)
        if names.shape != (self.n_objects_,):
            raise ValueError(
                f"expected one name for each of {self.n_objects_} objects; got shape {names.shape}"
            )
        self.landmark_names_ = names[self.landmarks_]
        self.known_names_ = None if self.known_ is None else names[self.known_.indices]
        return self

    # -- implementation -------------------------------------------------------------------------

    def _answers(
        self,
        X: Any,
        function: Callable[[Answer], NDArray[Any]],
        shape: tuple[int, ...],
        dtype: Any = np.float64,
        *,
        everyone: bool = False,
    ) -> Any:
        """Return `function(answer)` of new objects, as `_map_new` does."""
        self._check_fitted()
        if is_empty(X):
            return np.empty((0, *shape), dtype=dtype)
        measure = self.measure_
        likeness = likeness_of(self)
        counter = self.__dict__.setdefault("_last_call", Counter())
        counter.reset()
        return map_objects(
            self._checked(X),
            LookTwice(
                self._columns(measure),
                _known_columns(self, measure),
                self.known_,
                self.looks_,
                function,
                counter,
                everyone,
                likeness,
            ),
            measure=measure,
            block_rows=block_rows(measure, len(self.landmarks_)),
            shape=shape,
            dtype=dtype,
            n_jobs=self.n_jobs,
            profile=likeness,
        )

    def _map_new(
        self,
        X: Any,
        function: Callable[[Array], NDArray[Any]],
        shape: tuple[int, ...],
        dtype: Any = np.float64,
    ) -> Any:
        # pass log-probabilities in place of values to the landmarks
        return self._answers(X, OfLogProba(function), shape, dtype)

    def _log_probabilities(self, log_proba: Array) -> Array:
        return log_proba

    def _scores(self, log_proba: Array) -> Array:
        return log_proba

    def _try(self) -> None:
        if (self.known_ is None) != (self.known_objects_ is None):
            raise ValueError("known_ and known_objects_ must both be present or both be None")
        values = self.space_.landmark_values[:1]
        with np.errstate(all="ignore"):
            opinions = self.looks_.opinions(values)
            found = [*opinions, self.looks_.first_look(opinions)]
            if self.known_ is not None:
                candidates, apart = self.known_.candidates(values)
                near = self.known_.neighbours(values, apart, candidates)
                found.append(self.looks_.second_look(opinions, near))
        if not opinions or any(each.shape != (1, len(self.classes_)) for each in found):
            raise ValueError(f"it does not return {len(self.classes_)} probabilities per object")


def likeness_of(model: FittedTwoLooks) -> Likeness | None:
    """Return what the training objects look like; None if they have neither letters nor a length.

    The model contains training objects, so it does not store this summary.
    """
    if model.measure_.accepts != "objects":
        return None
    if "_likeness" not in model.__dict__:
        kept = [model.landmark_objects_, model.known_objects_]
        model._likeness = Likeness.of([part for part in kept if part is not None])
    return model._likeness


def _novelty(model: FittedTwoLooks) -> Novelty:
    reference = model.reference_
    return Novelty(model.space_.kind, reference.landmark_codes, reference.novelty)


def _sets(model: FittedTwoLooks, coverage: float, by_class: bool) -> Sets:
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1; got {coverage!r}")
    return Sets(model.reference_.labels, coverage, by_class)


def _explained(model: FittedTwoLooks, n: int) -> Explained:
    if n != int(n) or n < 1:
        raise ValueError(
            f"the number of nearest objects must be a whole number, at least 1; got {n!r}"
        )
    return Explained(
        _novelty(model),
        model.looks_,
        model.classes_,
        model.reference_.baseline,
        (model.landmarks_, NO_ROWS if model.known_ is None else model.known_.indices),
        (model.landmark_names_, model.known_names_),
        n,
    )


def _known_columns(model: FittedTwoLooks, measure: Measure) -> LandmarkColumns:
    """Return the known objects that new ones may be compared with."""
    indices: Indices = NO_ROWS if model.known_ is None else model.known_.indices
    return LandmarkColumns(
        measure,
        model.known_objects_,
        indices,
        NO_ROWS,
        np.empty((0, len(indices))),
        model.symmetrize,
        model.cache,
        model.n_jobs,
    )
