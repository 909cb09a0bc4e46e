"""What a model of two looks says of new objects: labels, novelty, sets of labels, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..compare.pairs import Counter, block_rows
from ..core.checks import Array, Indices
from ..core.looks import TwoLooks
from ..data.chunk import LandmarkColumns
from ..data.opening import is_empty, map_objects
from ..measures import Measure
from .answers import Assess, Explained, Novelty, OfLogProba, Sets
from .base import NO_ROWS
from .classifier import LandmarkClassifier
from .reference import Reference
from .secondlook import Answer, KnownObjects, LookTwice


class TwoLookClassifier(LandmarkClassifier):
    """Both looks at new objects; a subclass learns them."""

    neighbours: int | None
    novel_below: float
    ambiguous_below: float

    looks_: TwoLooks
    known_: KnownObjects | None
    known_objects_: Any
    reference_: Reference
    landmark_names_: NDArray[np.str_] | None
    known_names_: NDArray[np.str_] | None

    @property
    def last_comparisons_(self) -> int:
        """Comparisons that the last call on objects in memory took."""
        check_is_fitted(self)
        return self._last_call.compared

    def novelty(self, X: Any) -> Any:
        """Return the p-value of each object: small where it is like none of the classes.

        How far the object is from the three nearest of all that it is compared with, ranked among
        the same number for held-out training objects with the same predicted label. Of objects
        that are drawn like the training objects, a share of at most t has a p-value of t or less.
        Every object takes the second look, which costs up to `neighbours` comparisons more.

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
        """Return label, probabilities, novelty and status of each object, in one pass.

        The status is "novel" where the p-value of `novelty` is at most `novel_below`, else
        "ambiguous" where no class reaches the probability `ambiguous_below`, else "known".

        Parameters
        ----------
        X : objects
        coverage : float or None, default=None
            Add the field `set`, as `predict_set` gives it for this coverage.
        evidence : int or None, default=None
            Add the field `why`, as `explain` gives it with so many known objects.

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
        """Return which labels cannot be ruled out (n, C), in the order of `classes_`.

        The true label is among them for a share of about `coverage` of objects like the training
        objects. A set may hold several labels, and none where no label fits.

        Parameters
        ----------
        X : objects
        coverage : float, default=0.9
            Between 0 and 1.
        by_class : bool, default=True
            Reach the coverage within each class, where it has at least 100 held-out objects;
            smaller classes share theirs. Otherwise reach it over all objects, with smaller sets.

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
        """Return for each object why it got its label: an array of `Explanation`.

        Each holds the `n` nearest known objects with the value of the measure, and what each
        landmark contributed to the log-odds of the label against the runner-up.

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
        """Keep the names of the training objects, one for each in order: `explain` gives them.

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
                f"one name for each of {self.n_objects_} objects is wanted; got {names.shape}"
            )
        self.landmark_names_ = names[self.landmarks_]
        self.known_names_ = None if self.known_ is None else names[self.known_.indices]
        return self

    # -- how ------------------------------------------------------------------------------------

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
        check_is_fitted(self)
        if is_empty(X):
            return np.empty((0, *shape), dtype=dtype)
        measure = self.measure_
        counter = self.__dict__.setdefault("_last_call", Counter())
        counter.reset()
        return map_objects(
            self._validated(X, measure, reset=False),
            LookTwice(
                self._columns(measure),
                _known_columns(self, measure),
                self.known_,
                self.looks_,
                function,
                counter,
                everyone,
            ),
            measure=measure,
            block_rows=block_rows(measure, len(self.landmarks_)),
            shape=shape,
            dtype=dtype,
            n_jobs=self.n_jobs,
        )

    def _map_new(
        self,
        X: Any,
        function: Callable[[Array], NDArray[Any]],
        shape: tuple[int, ...],
        dtype: Any = np.float64,
    ) -> Any:
        # log-probabilities take the place of values to the landmarks
        return self._answers(X, OfLogProba(function), shape, dtype)

    def _scores(self, log_proba: Array) -> Array:
        return log_proba

    def _log_probabilities(self, log_proba: Array) -> Array:
        return log_proba


def _novelty(model: TwoLookClassifier) -> Novelty:
    reference = model.reference_
    return Novelty(model.space_.kind, reference.landmark_codes, reference.novelty)


def _sets(model: TwoLookClassifier, coverage: float, by_class: bool) -> Sets:
    if not 0 < coverage < 1:
        raise ValueError(f"coverage is a share between 0 and 1; got {coverage!r}")
    return Sets(model.reference_.labels, coverage, by_class)


def _explained(model: TwoLookClassifier, n: int) -> Explained:
    if n != int(n) or n < 1:
        raise ValueError(f"explanations take a whole number of objects, at least 1; got {n!r}")
    return Explained(
        _novelty(model),
        model.looks_,
        model.classes_,
        model.reference_.baseline,
        (model.landmarks_, NO_ROWS if model.known_ is None else model.known_.indices),
        (model.landmark_names_, model.known_names_),
        n,
    )


def _known_columns(model: TwoLookClassifier, measure: Measure) -> LandmarkColumns:
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
