"""IKQD: the indefinite kernel quadratic discriminant."""

from __future__ import annotations

from typing import Any, Literal

from ..core.gaussian import GaussianFamily, LabelledValues, QuadraticFamily
from ..core.space import signed_eigen
from .fittedmodels import FittedIKQD
from .gaussian import GaussianClassifier, target_of


class IKQD(FittedIKQD, GaussianClassifier):
    """Indefinite kernel quadratic discriminant: one covariance per class.

    It works like `IKFD`, but with curved boundaries between the classes. Each class covariance is
    shrunk towards the shared one, more strongly for smaller classes.

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
        `krein.landmarks`, or row indices.
    n_landmarks : int or None, default=None
        Number of landmarks, for rules that take one. None uses as many as "meb" would choose.
    rank : int or None, default=None
        Number of dimensions of the landmark space to keep, largest |λ| first. None keeps all.
    shrinkage : "auto", "oas" or float, default="auto"
        How far the shared covariance is shrunk. "auto" chooses target and amount, and how many
        objects the shared covariance counts for in each class, by the left-out log-loss; "oas" is
        the OAS formula towards the identity; a number is a fraction from 0 to 1.
    priors : "uniform", dict, array or None, default=None
        Prior probability of each class. None uses the class frequencies.
    class_weight : dict, "balanced" or None, default=None
        Cost of an error on each class, as in scikit-learn: a factor on the prior.
    calibrate : bool, default=False
        Fit a temperature to left-out scores, known in closed form, without comparing any pair
        again. With more than 5,000 objects, a sample of about 5,000 that are not landmarks is used.
    symmetrize : bool, default=False
        Average both directions of a measure or matrix that is not symmetric. Values passed to
        `predict` are used unchanged.
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
    classes_ : array (C,)
        Class labels, sorted.
    landmarks_ : array (m,)
        Rows of the training objects that a new object is compared with.
    discriminant_ : QuadraticDiscriminant
        Means, covariances and how far each was shrunk towards the shared one.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues of the approximated kernel.
    eigenvalues_ : array
        Its non-zero eigenvalues with their signs, largest magnitude first.
    kernel_evaluations_ : int
        Number of pairs compared during fit.
    kernel_reused_ : int
        Number of values read from the cache instead.
    temperature_ : float
        Factor on the scores before they become probabilities (an inverse temperature); 1 unless
        `calibrate=True`.
    target_ : str or list of str
        What the covariance was shrunk towards.
    power_ : float or None
        Power of a dissimilarity that was chosen; None for similarities.

    See Also
    --------
    IKFD : One covariance shared by all classes: straight boundaries, fewer parameters.
    KreinClassifier : Combines IKQD with IKFD and PCVM; the recommended default.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import IKQD
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(80, 2)), 4 * rng.normal(size=(80, 2))])
    >>> y = np.repeat(["narrow", "wide"], 80)
    >>> IKQD(random_state=0).fit(X, y).predict([[0.1, 0.2], [6.0, -5.0]])
    array(['narrow', 'wide'], dtype='<U6')
    """

    multiclass = "joint"

    def __init__(
        self,
        measure: Any = "elm",
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "meb",
        n_landmarks: int | None = None,
        rank: int | None = None,
        shrinkage: float | Literal["auto", "oas"] = "auto",
        priors: Any = None,
        class_weight: Any = None,
        calibrate: bool = False,
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
        self.shrinkage = shrinkage
        self.priors = priors
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    def _family(self) -> QuadraticFamily:
        return QuadraticFamily(len(self.classes_), self.shrinkage, self._priors(), rank=self.rank)

    def _set_model(self, family: GaussianFamily, sample: LabelledValues) -> GaussianFamily:
        landmarks, moments = self.stream_.landmarks, self.stream_.moments
        self._use_landmarks(landmarks)
        assert isinstance(family, QuadraticFamily)
        self.discriminant_ = family.discriminant(moments)
        self.target_ = target_of(family)
        self._set_spectrum(signed_eigen(moments.gram(), landmarks.space.signs).values)
        return family
