"""IKFD: the indefinite kernel Fisher discriminant."""

from __future__ import annotations

from typing import Any, Literal

from ..core.gaussian import FisherFamily, GaussianFamily, LabelledValues, LinearDiscriminant
from ..core.space import signed_eigen
from .fittedmodels import FittedIKFD
from .gaussian import GaussianClassifier, target_of


class IKFD(FittedIKFD, GaussianClassifier):
    """Indefinite kernel Fisher discriminant: probabilistic, linear in N, nothing to tune.

    With `landmarks="all"`, this is the dense method; otherwise its Nyström version, which makes one
    pass over blocks of similarities and keeps only class counts, sums and one Gram matrix.

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
        How the shared covariance is shrunk. "auto" chooses the target, amount, scale and class
        offsets by the left-out log-loss, which is known in closed form. For a dissimilarity d, it
        also chooses whether similarities are computed from d², d or √d. "oas", or a fraction from 0
        to 1, shrinks towards a multiple of the identity in the landmark coordinates, with d². At 0,
        the pseudo-inverse of a singular covariance is used, as in the paper.
    multiclass : {"joint", "ovr"}, default="joint"
        One model of all classes with a shared covariance, or one class against the rest.
    priors : "uniform", dict, array or None, default=None
        Prior probability of each class. None uses the class frequencies.
    class_weight : dict, "balanced" or None, default=None
        Cost of an error on each class, as in scikit-learn: a factor on the prior.
    prune : bool, default=False
        No longer available; True is refused.
    calibrate : bool, default=False
        Fit a temperature to left-out scores, known in closed form, without comparing any pair
        again. With more than 5,000 objects, a sample of about 5,000 that are not landmarks is used.
        It changes little if `shrinkage="auto"` has chosen the scale.
    symmetrize : bool, default=False
        Average both directions of a measure or matrix that is not symmetric. Values passed to
        `predict` are used unchanged.
    n_jobs : int or None, default=None
        Number of workers that compare pairs. None uses all processors for measures that release
        Python's lock, and one process for a plain function.
    cache : path or None, default=None
        Folder for finished blocks of comparisons, so that an interrupted run can resume. A block is
        reused if the same objects meet the same landmarks again.
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
    dual_coef_, intercept_ : arrays (m, C) and (C,)
        Scores are similarities to the landmarks times `dual_coef_`, plus `intercept_`.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues of the approximated kernel.
    eigenvalues_ : array
        Its non-zero eigenvalues with their signs, largest magnitude first.
    shrinkage_ : float or array (C,)
        The amount of shrinkage used; one per class with `multiclass="ovr"`.
    target_ : str or list of str
        What the covariance was shrunk towards: "similarities" (the identity in similarities to
        the landmarks), "identity" (the identity in landmark coordinates), "landmarks" (the
        landmarks' own scatter) or "diagonal".
    power_ : float or None
        1, 1/2 or 1/4: similarities are computed from d², d or √d. None if the measure is a
        similarity.
    kernel_evaluations_ : int
        Number of pairs compared during fit.
    kernel_reused_ : int
        Number of values read from the cache instead.
    temperature_ : float
        Factor on the scores before they become probabilities (an inverse temperature); 1 unless
        `calibrate=True`.

    See Also
    --------
    IKQD : One covariance per class: curved boundaries.
    KreinClassifier : Combines IKFD with IKQD and PCVM; the recommended default.

    Examples
    --------
    >>> import numpy as np
    >>> from krein import IKFD
    >>> words = ["house", "mouse", "horse", "haus", "maus", "ross"]
    >>> languages = ["en", "en", "en", "de", "de", "de"]
    >>> clf = IKFD(measure="levenshtein", landmarks="all").fit(words, languages)
    >>> clf.predict(["louse", "laus"])
    array(['en', 'de'], dtype='<U2')
    """

    def __init__(
        self,
        measure: Any = "elm",
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "meb",
        n_landmarks: int | None = None,
        rank: int | None = None,
        shrinkage: float | Literal["auto", "oas"] = "auto",
        multiclass: str = "joint",
        priors: Any = None,
        class_weight: Any = None,
        prune: bool = False,
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
        self.multiclass = multiclass
        self.priors = priors
        self.class_weight = class_weight
        self.prune = prune
        self.calibrate = calibrate
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    def _family(self) -> FisherFamily:
        if self.prune:
            raise ValueError(
                "prune=True is no longer available: use landmarks='auto' or PCVM(sparse=True)"
            )
        return FisherFamily(
            len(self.classes_),
            self.shrinkage,
            self._priors(),
            one_against_rest=self.multiclass == "ovr",
            rank=self.rank,
        )

    def _set_model(self, family: GaussianFamily, sample: LabelledValues) -> GaussianFamily:
        landmarks, moments = self.stream_.landmarks, self.stream_.moments
        space = landmarks.space
        model = family.discriminant(moments)
        assert isinstance(model, LinearDiscriminant)
        rho = model.shrinkage
        self.shrinkage_ = float(rho[0]) if len(rho) == 1 else rho
        self.dual_coef_ = space.basis.T @ model.coef
        self.intercept_ = model.intercept - model.centre @ model.coef
        self.target_ = target_of(family)
        self._use_landmarks(landmarks)
        self._set_spectrum(signed_eigen(moments.gram(), space.signs).values)
        return family
