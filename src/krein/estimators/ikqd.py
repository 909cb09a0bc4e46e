"""IKQD: the indefinite kernel quadratic discriminant."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.checks import Array
from ..core.covariance import Shrinkage
from ..core.gaussian import QuadraticFamily
from ..core.nystrom import signed_eigen
from ..core.quadratic import QuadraticDiscriminant
from .compound import Value
from .gaussian import GaussianClassifier
from .schema import Schema, floats


class IKQD(GaussianClassifier):
    """Indefinite kernel quadratic discriminant: a covariance for each class.

    As `IKFD`, with curved boundaries between the classes. Each class covariance is shrunk
    towards the shared one, as far as the number of its objects asks for.

    Parameters
    ----------
    measure, measure_params, landmarks, n_landmarks, rank : as for `IKFD`
    shrinkage : "oas" or float, default="oas"
        Shrinkage of the shared covariance, as for `IKFD`.
    priors, class_weight, calibrate : as for `IKFD`
    symmetrize, n_jobs, cache, verbose, random_state : as for `IKFD`

    Attributes
    ----------
    classes_, landmarks_, signature_, eigenvalues_ : as for `IKFD`
    kernel_evaluations_, temperature_ : as for `IKFD`
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

    _fitted: ClassVar[Schema] = {
        **GaussianClassifier._fitted,
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
        shrinkage: Shrinkage = "oas",
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

    def _set_model(self) -> None:
        landmarks, moments = self.stream_.landmarks, self.stream_.moments
        self._use_landmarks(landmarks)
        self.discriminant_ = self._family().discriminant(moments)
        self._set_spectrum(signed_eigen(moments.gram(), landmarks.space.signs).values)

    def _scores(self, values: Array) -> Array:
        return self.discriminant_.scores(self.space_.coordinates(values))
