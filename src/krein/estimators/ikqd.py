"""IKQD: the indefinite kernel quadratic discriminant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

from ..core.checks import Array
from ..core.gaussian import FamilyShrinkage, QuadraticFamily
from ..core.nystrom import signed_eigen
from ..core.quadratic import QuadraticDiscriminant
from .compound import Value
from .gaussian import TARGET, GaussianClassifier, target_of
from .schema import Schema, floats


class IKQD(GaussianClassifier):
    """Indefinite kernel quadratic discriminant: a covariance for each class.

    As `IKFD`, with curved boundaries between the classes. Each class covariance is shrunk
    towards the shared one, as far as the number of its objects asks for.

    Parameters
    ----------
    measure, measure_params, landmarks, n_landmarks, rank : as for `IKFD`
    shrinkage : "auto", "oas" or float, default="auto"
        Shrinkage of the shared covariance, as for `IKFD`. "auto" also chooses how many objects the
        shared covariance counts for in each class.
    priors, class_weight, calibrate : as for `IKFD`
    symmetrize, n_jobs, cache, verbose, random_state : as for `IKFD`

    Attributes
    ----------
    classes_, landmarks_, signature_, eigenvalues_ : as for `IKFD`
    kernel_evaluations_, temperature_, target_, power_ : as for `IKFD`
    discriminant_ : QuadraticDiscriminant
        Means, covariances and how far each was shrunk towards the shared one.

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

    discriminant_: QuadraticDiscriminant
    target_: str | list[str]

    _fitted: ClassVar[Schema] = {
        **GaussianClassifier._fitted,
        "target_": TARGET,
        "discriminant_": Value(
            QuadraticDiscriminant,
            {
                "centre": floats("r"),
                "whiten": floats("r", "s"),
                "means": floats("C", "s"),
                "roots": floats("C", "s", "s"),
                "intercept": floats("C", minus_infinity=True),
                "shrinkage": floats("C"),
            },
        ),
    }

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

    def _set_model(self, shrinkage: FamilyShrinkage) -> None:
        landmarks, moments = self.stream_.landmarks, self.stream_.moments
        self._use_landmarks(landmarks)
        family = replace(self._family(), shrinkage=shrinkage)
        self.discriminant_ = family.discriminant(moments)
        self.target_ = target_of(family)
        self._set_spectrum(signed_eigen(moments.gram(), landmarks.space.signs).values)

    def _scores(self, values: Array) -> Array:
        return self.discriminant_.scores(self.space_.coordinates(values))
