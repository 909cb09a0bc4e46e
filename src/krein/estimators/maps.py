"""Transformers from objects to vectors: Nyström map, pseudo-Euclidean embedding, kernel PCA."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral
from operator import add
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from ..compare.pairs import block_rows
from ..core.moments import ClassMoments
from ..core.shapes import Array
from ..core.space import Embedding, LandmarkSpace, embed, signed_eigen, stable_rank
from ..data.chunks import Chunk, Costed, LandmarkColumns
from ..data.labelling import check_labels
from ..data.local import Memory
from ..data.opening import open_data
from ..landmarks import get_rule
from ..measures import get_measure
from ..model.landmark_map import LandmarkMap
from ..model.parts import Comparisons
from .choosing import LandmarkChoice, choose_landmarks
from .fitting import LandmarkEstimator, all_or_nothing


def gram_of(
    columns: LandmarkColumns, space: LandmarkSpace, origin: Array, chunk: Chunk
) -> Costed[ClassMoments]:
    """Compare a chunk with the landmarks; return the moments of its coordinates, as one class."""
    values, cost = columns.values(chunk)
    B = space.coordinates(values)
    one = np.zeros(len(B), dtype=np.intp)
    return ClassMoments.of(B, one, 1, origin=origin), cost


class LandmarkTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LandmarkEstimator):
    """A transformer that needs only one Gram matrix of the data."""

    model_: LandmarkMap

    @property
    def signs_(self) -> Array:
        """+1 or −1 for each coordinate."""
        return self._fitted().signs

    def transform(self, X: Any) -> Array:
        """Return the vectors (n, r) of objects: m comparisons each."""
        model = self._fitted()
        X = self._validated(X, model.measure, reset=False)
        found: Array = model.transform(X, self._comparisons(model.measure))
        return found

    @property
    def _n_features_out(self) -> int:
        return len(self.signs_)

    def _gram(self, X: Any, y: Any) -> tuple[ClassMoments, LandmarkChoice, Comparisons]:
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
        run = self._comparisons(data.measure)
        classes = None
        labels = np.zeros(len(data), dtype=np.intp)
        # a target that does not consist of classes is ignored
        if y is not None and type_of_target(y) in ("binary", "multiclass"):
            known, labels = np.unique(check_labels(column_or_1d(y), len(data)), return_inverse=True)
            classes = np.arange(len(known))
        data = replace(data, labels=labels)
        rule = get_rule(self.landmarks, self.n_landmarks)
        choice = choose_landmarks(data, rule, run, self._rng(), classes=classes, rank=self.rank)
        self.n_samples_seen_ = len(data)
        space, m = choice.space, len(choice.landmarks.indices)
        term = partial(gram_of, choice.columns, space, space.origin())
        moments = data.reduce(term, add, block_rows(data.measure, m), m, run.counter)
        return moments, choice, run

    def _set_map(
        self,
        choice: LandmarkChoice,
        run: Comparisons,
        eigenvalues: Array,
        embedding: Embedding | None,
    ) -> None:
        codes = choice.landmarks.codes
        self.model_ = LandmarkMap(
            run.measure,
            self.symmetrize,
            choice.space,
            embedding,
            choice.landmarks,
            int(codes.max(initial=0)) + 1,
            self.n_samples_seen_,
        )
        self._set_fit(choice, choice.space, eigenvalues, run.counter)


class NystromMap(LandmarkTransformer):
    """Coordinates B of objects such that (B * signs_) @ B.T is the Nyström approximation of K.

    scikit-learn's `Nystroem` returns |K| for an indefinite K; here the signs are kept.

    Parameters
    ----------
    measure : str, Measure or callable
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
    verbose : int or None, default=None
        If standard error is a terminal, None shows a progress bar for work that takes longer than
        two seconds, 1 always shows one, and 0 never does. If it is not, 1 announces how many pairs
        will be compared, and about how long it will take, if that is longer than ten seconds.
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
    comparisons_to_fit_ : int
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
        measure: Any,
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "meb",
        n_landmarks: int | None = None,
        rank: int | None = None,
        symmetrize: bool = False,
        n_jobs: int | None = None,
        cache: Any = None,
        verbose: int | None = None,
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
            moments, choice, run = self._gram(X, y)
            G, signs = moments.gram(), choice.space.signs
            self._set_map(choice, run, signed_eigen(G, signs).values, None)
            stable = stable_rank(G, signs)
            if stable < len(signs):
                share = abs(choice.space.lam[stable] / choice.space.lam[0])
                warnings.warn(
                    f"the approximation is unstable: eigenvalue {stable + 1} of the landmarks' "
                    f"matrix, {share:.1e} of the largest, contributes more than all larger ones "
                    f"together. Set rank={stable}, or choose other landmarks",
                    UserWarning,
                    stacklevel=2,
                )
        return self


class PseudoEuclideanEmbedding(LandmarkTransformer):
    """Vectors V with V J Vᵀ ≈ K along the principal axes of K, largest |λ| first (paper, eq. 1).

    Parameters
    ----------
    measure : str, Measure or callable
        How two objects are compared: a name from `krein.measures.available()`, a `Measure`, a
        function of two objects, "precomputed" (X contains similarities) or "precomputed-distance".
    n_components : int or None, default=None
        Number of axes; None keeps all with a non-zero eigenvalue.
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
    verbose : int or None, default=None
        If standard error is a terminal, None shows a progress bar for work that takes longer than
        two seconds, 1 always shows one, and 0 never does. If it is not, 1 announces how many pairs
        will be compared, and about how long it will take, if that is longer than ten seconds.
    random_state : int, RandomState or None, default=None
        Seed for the choice of landmarks.

    Attributes
    ----------
    signs_ : array (r,)
        +1 or −1 for each axis.
    eigenvalues_ : array (r,)
        Eigenvalues of the axes with their signs, largest magnitude first.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues.
    landmarks_ : array (m,)
        Rows of the training objects that became landmarks.
    comparisons_to_fit_ : int
        Number of pairs compared during fit.

    See Also
    --------
    IndefiniteKernelPCA : The same after centring on the mean of the objects.
    NystromMap : Coordinates that reproduce the approximated kernel, without principal axes.

    Examples
    --------
    >>> from krein import PseudoEuclideanEmbedding
    >>> words = ["house", "mouse", "horse", "haus", "maus", "ross"]
    >>> embedding = PseudoEuclideanEmbedding("levenshtein", n_components=2, landmarks="all")
    >>> embedding.fit_transform(words).shape
    (6, 2)
    """

    _centred = False

    def __init__(
        self,
        measure: Any,
        *,
        n_components: int | None = None,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "meb",
        n_landmarks: int | None = None,
        rank: int | None = None,
        symmetrize: bool = False,
        n_jobs: int | None = None,
        cache: Any = None,
        verbose: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
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
        """Find the axes from objects X; labels y are used by rules that need them."""
        n = self.n_components
        if n is not None and not (isinstance(n, Integral) and n >= 1):
            raise ValueError(f"n_components must be a whole number, at least 1, or None; got {n!r}")
        with all_or_nothing(self):
            moments, choice, run = self._gram(X, y)
            embedding = embed(
                moments.within() if self._centred else moments.gram(),
                choice.space.signs,
                mean=moments.means[0] if self._centred else None,
                n_components=self.n_components,
            )
            self._set_map(choice, run, embedding.eigenvalues, embedding)
        return self


class IndefiniteKernelPCA(PseudoEuclideanEmbedding):
    """Principal axes about the mean of the objects: kernel PCA for kernels that are not psd.

    The same as `PseudoEuclideanEmbedding` after centring. Along an axis of negative sign, squared
    distances are negative.

    Parameters
    ----------
    measure : str, Measure or callable
        How two objects are compared: a name from `krein.measures.available()`, a `Measure`, a
        function of two objects, "precomputed" (X contains similarities) or "precomputed-distance".
    n_components : int or None, default=None
        Number of axes; None keeps all with a non-zero eigenvalue.
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
    verbose : int or None, default=None
        If standard error is a terminal, None shows a progress bar for work that takes longer than
        two seconds, 1 always shows one, and 0 never does. If it is not, 1 announces how many pairs
        will be compared, and about how long it will take, if that is longer than ten seconds.
    random_state : int, RandomState or None, default=None
        Seed for the choice of landmarks.

    Attributes
    ----------
    signs_ : array (r,)
        +1 or −1 for each axis.
    eigenvalues_ : array (r,)
        Eigenvalues of the axes with their signs, largest magnitude first.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues.
    landmarks_ : array (m,)
        Rows of the training objects that became landmarks.
    comparisons_to_fit_ : int
        Number of pairs compared during fit.

    See Also
    --------
    PseudoEuclideanEmbedding : The same without centring.

    Examples
    --------
    >>> from krein import IndefiniteKernelPCA
    >>> words = ["house", "mouse", "horse", "haus", "maus", "ross"]
    >>> pca = IndefiniteKernelPCA("levenshtein", n_components=2, landmarks="all").fit(words)
    >>> pca.transform(["laus"]).shape
    (1, 2)
    """

    _centred = True
