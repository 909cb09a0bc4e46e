"""Transformers from objects to vectors, and the simplest of them: the Nyström map."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from ..compare.pairs import Counter, block_rows
from ..core.checks import Array, check_labels
from ..core.moments import ClassMoments
from ..core.space import LandmarkSpace, signed_eigen
from ..data.dataset import Chunk, Counted, LandmarkColumns
from ..data.memory import Memory
from ..data.opening import open_data
from ..landmarks import get_rule
from ..measures import get_measure
from .base import LandmarkEstimator, all_or_nothing
from .schema import Schema, floats
from .selection import Comparing, choose_landmarks


@dataclass(frozen=True)
class GramTerm:
    """Moments of a chunk's coordinates, as one class."""

    columns: LandmarkColumns
    space: LandmarkSpace
    origin: Array

    def __call__(self, chunk: Chunk) -> Counted[ClassMoments]:
        """Compare the chunk with the landmarks."""
        found = self.columns.values(chunk)
        B = self.space.coordinates(found.value)
        one = np.zeros(len(B), dtype=np.intp)
        return found.holding(ClassMoments.of(B, one, 1, origin=self.origin))


class LandmarkTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LandmarkEstimator):
    """A transformer that needs only one Gram matrix of the data."""

    signs_: Array

    _fitted: ClassVar[Schema] = {**LandmarkEstimator._fitted, "signs_": floats("r")}

    def _gram(self, X: Any, y: Any) -> ClassMoments:
        """Choose landmarks and return the moments of all objects, as one class."""
        measure = get_measure(self.measure, self.measure_params)
        X = self._validated(X, measure, reset=True)
        data = open_data(
            X,
            measure=measure,
            n_jobs=self.n_jobs,
            cache=self.cache,
            verbose=self.verbose,
            symmetrize=self.symmetrize,
        )
        if not isinstance(data, Memory):
            raise TypeError(f"{type(self).__name__} needs objects in memory")
        self.measure_ = measure = data.measure
        classes = None
        data.labels = np.zeros(len(data), dtype=np.intp)
        # a target that does not consist of classes is ignored
        if y is not None and type_of_target(y) in ("binary", "multiclass"):
            classes, data.labels = np.unique(
                check_labels(column_or_1d(y), len(data)), return_inverse=True
            )
            classes = np.arange(len(classes))
        chosen = choose_landmarks(
            data,
            get_rule(self.landmarks, self.n_landmarks),
            Comparing(measure, self.symmetrize, self.cache, self.n_jobs, self.verbose),
            self._rng(),
            classes=classes,
            rank=self.rank,
        )
        self.n_objects_ = self.n_samples_seen_ = len(data)
        self.selection_ = chosen.selection
        self._use_landmarks(chosen.landmarks)
        space, m = self.space_, len(self.landmarks_)
        term = GramTerm(chosen.columns, space, space.origin())
        counter = Counter()
        moments: ClassMoments = data.reduce(term, add, block_rows(measure, m), m, counter)
        self.kernel_evaluations_ = chosen.counter.compared + counter.compared
        self.kernel_reused_ = chosen.counter.reused + counter.reused
        return moments

    def _try(self) -> None:
        self._coordinates(self.space_.landmark_values[:1])

    @abstractmethod
    def _coordinates(self, values: Array) -> Array:
        """Return the vectors of objects from their values to the landmarks."""

    @property
    def _n_features_out(self) -> int:
        return len(self.signs_)


class NystromMap(LandmarkTransformer):
    """Coordinates B of objects such that (B * signs_) @ B.T is the Nyström approximation of K.

    scikit-learn's `Nystroem` returns |K| for an indefinite K; here the signs are kept.

    Parameters
    ----------
    measure : str, Measure or callable, default="elm"
        How two objects are compared: a name from `krein.measures.available()`, a `Measure`, a
        function of two objects, "precomputed" (X contains similarities) or "precomputed-distance".
    measure_params : dict or None, default=None
        Parameters of a measure given by name. For a function, pass {"kind": "dissimilarity"} if
        larger values mean less similar.
    landmarks : str, Rule or array of int, default="meb"
        Which objects represent the others: "all", "meb", "kmeans", "entropy", "random", "leverage",
        "stratified", "auto" (as many as lower the loss by more than their price), a rule from
        `krein.landmarks`, or row indices. Rules that use labels take them from `y`; without `y`,
        all objects are one class.
    n_landmarks : int or None, default=None
        Number of landmarks, for rules that take one. None uses as many as "meb" would choose.
    rank : int or None, default=None
        Number of dimensions of the landmark space to keep, largest |λ| first. None keeps all.
    symmetrize : bool, default=False
        Average both directions of a measure or matrix that is not symmetric. Values passed to
        `transform` are used unchanged.
    n_jobs : int or None, default=None
        Number of workers that compare pairs. None uses all processors for measures that release
        Python's lock, and one process for a plain function.
    cache : path or None, default=None
        Folder for finished blocks of comparisons, so that an interrupted run can resume.
    verbose : int, default=0
        Above 0, show a progress bar if standard error is a terminal.
    random_state : int, RandomState or None, default=None
        Seed for the choice of landmarks.

    Attributes
    ----------
    signs_ : array (r,)
        +1 or −1 for each coordinate.
    eigenvalues_ : array
        Non-zero eigenvalues of the approximation with their signs, largest magnitude first.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues.
    landmarks_ : array (m,)
        Rows of the training objects that became landmarks.
    kernel_evaluations_ : int
        Number of pairs compared during fit.

    See Also
    --------
    PseudoEuclideanEmbedding : Vectors along a chosen number of principal axes.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import NystromMap
    >>> K = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> map = NystromMap(measure="precomputed", landmarks="all").fit(K)
    >>> B = map.transform(K)
    >>> np.round((B * map.signs_) @ B.T, 10) + 0.0
    array([[0., 2.],
           [2., 0.]])
    >>> map.signature_
    Signature(positive=1, negative=1, zero=0)
    """

    def __init__(
        self,
        measure: Any = "elm",
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "meb",
        n_landmarks: int | None = None,
        rank: int | None = None,
        symmetrize: bool = False,
        n_jobs: int | None = None,
        cache: Any = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.measure = measure
        self.measure_params = measure_params
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks among the objects X; labels y are used by rules that need them."""
        with all_or_nothing(self):
            moments = self._gram(X, y)
            self.signs_ = self.space_.signs
            self._set_spectrum(signed_eigen(moments.gram(), self.signs_).values)
        return self

    def transform(self, X: Any) -> Array:
        """Return the coordinates (n, r) of objects: m comparisons each."""
        self._check_fitted()
        found: Array = self._map_new(X, self._coordinates, (len(self.signs_),))
        return found

    def _coordinates(self, values: Array) -> Array:
        return self.space_.coordinates(values)
