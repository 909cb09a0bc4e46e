"""Vectors along the principal axes of a kernel: pseudo-Euclidean embedding, kernel PCA."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

from ..core.checks import Array
from ..core.space import Embedding, embed
from .base import all_or_nothing
from .compound import Value
from .maps import LandmarkTransformer
from .schema import Schema, floats


class PseudoEuclideanEmbedding(LandmarkTransformer):
    """Vectors V with V J Vᵀ ≈ K along the principal axes of K, largest |λ| first (paper, eq. 1).

    Parameters
    ----------
    n_components : int or None, default=None
        Number of axes; None keeps all with a non-zero eigenvalue.
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
        +1 or −1 for each axis.
    eigenvalues_ : array (r,)
        Eigenvalues of the axes with their signs, largest magnitude first.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues.
    landmarks_ : array (m,)
        Rows of the training objects that became landmarks.
    kernel_evaluations_ : int
        Number of pairs compared during fit.

    See Also
    --------
    IndefiniteKernelPCA : The same after centring on the mean of the objects.
    NystromMap : Coordinates that reproduce the approximated kernel, without principal axes.

    Examples
    --------
    >>> from krein import PseudoEuclideanEmbedding
    >>> words = ["house", "mouse", "horse", "haus", "maus", "ross"]
    >>> embedding = PseudoEuclideanEmbedding(2, measure="levenshtein", landmarks="all")
    >>> embedding.fit_transform(words).shape
    (6, 2)
    """

    _centred = False
    embedding_: Embedding

    _fitted: ClassVar[Schema] = {
        **LandmarkTransformer._fitted,
        "signs_": floats("s"),
        "embedding_": Value(
            Embedding, {"eigenvalues": floats("s"), "mean": floats("r"), "A": floats("r", "s")}
        ),
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        measure: Any = "elm",
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
            raise ValueError(
                f"n_components must be a whole number, at least 1, or None; got {n!r} (pass "
                f"the measure by keyword: "
                "measure=...)"
            )
        with all_or_nothing(self):
            moments = self._gram(X, y)
            self.embedding_ = embed(
                moments.within() if self._centred else moments.gram(),
                self.space_.signs,
                mean=moments.means[0] if self._centred else None,
                n_components=self.n_components,
            )
            self.signs_ = self.embedding_.signs
            self._set_spectrum(self.embedding_.eigenvalues)
        return self

    def transform(self, X: Any) -> Array:
        """Return the vectors (n, n_components) of objects: m comparisons each."""
        self._check_fitted()
        found: Array = self._map_new(X, self._coordinates, (len(self.signs_),))
        return found

    def _coordinates(self, values: Array) -> Array:
        return self.embedding_.coordinates(self.space_.coordinates(values))


class IndefiniteKernelPCA(PseudoEuclideanEmbedding):
    """Principal axes about the mean of the objects: kernel PCA for kernels that are not psd.

    The same as `PseudoEuclideanEmbedding` after centring. Along an axis of negative sign, squared
    distances are negative.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of axes; None keeps all with a non-zero eigenvalue.
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
        +1 or −1 for each axis.
    eigenvalues_ : array (r,)
        Eigenvalues of the axes with their signs, largest magnitude first.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues.
    landmarks_ : array (m,)
        Rows of the training objects that became landmarks.
    kernel_evaluations_ : int
        Number of pairs compared during fit.

    See Also
    --------
    PseudoEuclideanEmbedding : The same without centring.

    Examples
    --------
    >>> from krein import IndefiniteKernelPCA
    >>> words = ["house", "mouse", "horse", "haus", "maus", "ross"]
    >>> pca = IndefiniteKernelPCA(2, measure="levenshtein", landmarks="all").fit(words)
    >>> pca.transform(["laus"]).shape
    (1, 2)
    """

    _centred = True
