"""IKFD: the indefinite kernel Fisher discriminant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ..core.checks import Array
from ..core.fisher import LinearDiscriminant
from ..core.gaussian import FamilyShrinkage, FisherFamily, GaussianFamily, Sample
from ..core.left_out import LeftOutObjects
from ..core.nystrom import signed_eigen
from ..core.prune import left_out_on, prune_landmarks
from ..core.within import ChosenCovariance
from .fittedmodels import FittedIKFD
from .gaussian import GaussianClassifier, target_of


class IKFD(FittedIKFD, GaussianClassifier):
    """Indefinite kernel Fisher discriminant: probabilistic, linear in N, nothing to tune.

    With `landmarks="all"` the dense method, otherwise its Nyström version: one pass over
    blocks of similarities, of which only class counts, sums and one Gram matrix are kept.

    Parameters
    ----------
    measure : str, Measure or callable, default="elm"
        How two objects are compared: a name out of `krein.measures.available()`, a `Measure`, a
        function of two objects, "precomputed" (X holds similarities) or "precomputed-distance".
    measure_params : dict or None, default=None
        Parameters of a measure given by name; of a function, {"kind": "dissimilarity"} where a
        larger value means less alike.
    landmarks : str, Rule or array of int, default="meb"
        Which objects stand for all: "all", "meb", "kmeans", "entropy", "random", "leverage",
        "auto" (grown until more no longer help), a rule out of `krein.landmarks`, or indices.
    n_landmarks : int or None, default=None
        How many, for rules that take a number; None takes as many as "meb" would.
    rank : int or None, default=None
        Keep so many dimensions of the landmark space, the largest |λ|. Not with `prune`.
    shrinkage : "auto", "oas" or float, default="auto"
        How the shared covariance is shrunk. "auto" chooses target, amount, scale and class offsets
        by the left-out log-loss, which is known in closed form, and for a dissimilarity d whether
        similarities are made of d², d or √d. "oas", or a share from 0 to 1, shrinks towards a
        multiple of the identity in the landmark coordinates, with d². At 0 a singular covariance
        has its pseudo-inverse, as in the paper.
    multiclass : {"joint", "ovr"}, default="joint"
        One model of all classes with a shared covariance, or one class against the rest.
    priors : "uniform", dict, array or None, default=None
        Probability of each class before its objects are seen; None takes their frequencies.
    class_weight : dict, "balanced" or None, default=None
        What an error on each class costs, as in scikit-learn: a factor of its prior.
    prune : bool, default=False
        Drop landmarks that the discriminant does not need, so that a prediction costs fewer
        comparisons. With `multiclass="joint"`.
    calibrate : bool, default=False
        Fit a temperature to left-out scores, known in closed form: no pair is compared again. With
        more than 5,000 objects, about 5,000 that are not landmarks have a say. Changes little
        where `shrinkage="auto"` has chosen the scale.
    symmetrize : bool, default=False
        Average both directions of a measure or matrix that is not symmetric. At predict, given
        values are used as they are.
    n_jobs : int or None, default=None
        Workers that compare pairs. None: all processors for measures that release Python's
        lock, one process for a plain function.
    cache : path or None, default=None
        Folder that keeps finished blocks of one measure, so that a killed run goes on where it
        stopped. A block is reused where the same objects meet the same landmarks again.
    verbose : int, default=0
        Above 0, a progress bar where standard error is a terminal.
    random_state : int, RandomState or None, default=None
        Seed of everything random in the choice of landmarks.

    Attributes
    ----------
    classes_ : array (C,)
        Class labels, sorted.
    landmarks_ : array (m,)
        Rows of the training objects that a new object is compared with.
    dual_coef_, intercept_ : arrays (m, C) and (C,)
        Scores are similarities to the landmarks times `dual_coef_`, plus `intercept_`.
    signature_ : Signature
        Positive, negative and vanishing eigenvalues of the approximated kernel.
    eigenvalues_ : array
        The non-zero ones with their signs, largest magnitude first.
    shrinkage_ : float or array (C,)
        The share that was used, for each class where `multiclass="ovr"`.
    target_ : str, or list of C
        What the covariance was shrunk towards: "similarities" (the identity in similarities to
        the landmarks), "identity" (that in landmark coordinates), "landmarks" (their own scatter)
        or "diagonal".
    power_ : float or None
        1, 1/2 or 1/4: similarities are made of d², d or √d. None where the measure is a similarity.
    kernel_evaluations_ : int
        How many pairs were compared to fit.
    kernel_reused_ : int
        How many values the cache had from an earlier run.
    temperature_ : float
        What scores are multiplied by before they become probabilities: the inverse temperature.

    See Also
    --------
    IKQD : A covariance for each class: curved boundaries.
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
        return FisherFamily(
            len(self.classes_),
            self.shrinkage,
            self._priors(),
            one_against_rest=self.multiclass == "ovr",
            rank=self.rank,
        )

    def _set_model(self, shrinkage: FamilyShrinkage) -> None:
        landmarks, moments = self.stream_.landmarks, self.stream_.moments
        space = landmarks.space
        family = replace(self._family(), shrinkage=shrinkage)
        model = family.discriminant(moments)
        rho = model.shrinkage
        self.shrinkage_ = float(rho[0]) if len(rho) == 1 else rho
        if self.prune:
            if self.multiclass != "joint":
                raise ValueError("prune=True goes with multiclass='joint'")
            if self.rank is not None:
                raise ValueError("prune=True drops landmarks, rank= dimensions: use one of them")
            assert not isinstance(family.shrinkage, tuple)
            assert family.shrinkage != "auto"
            pruned = prune_landmarks(space, moments, model, family.shrinkage)
            landmarks = landmarks.restricted(pruned.kept)
            self.dual_coef_, self.intercept_ = pruned.dual_coef, pruned.intercept
        else:
            self.dual_coef_ = space.basis.T @ model.coef
            self.intercept_ = model.intercept - model.centre @ model.coef
        self.target_ = target_of(family)
        self._use_landmarks(landmarks)
        self._set_spectrum(signed_eigen(moments.gram(), space.signs).values)

    def _left_out_scores(
        self, family: GaussianFamily, sample: Sample
    ) -> tuple[Array, LeftOutObjects]:
        if not self.prune:
            return super()._left_out_scores(family, sample)
        landmarks, moments = self.stream_.landmarks, self.stream_.moments
        model = family.discriminant(moments)
        assert isinstance(model, LinearDiscriminant)
        assert not isinstance(family.shrinkage, tuple)
        assert family.shrinkage != "auto"
        objects = family.left_out_objects(landmarks.space, moments, sample)
        places = sample.landmarks[objects.rows][objects.places]
        kept = np.flatnonzero(np.isin(landmarks.indices, self.landmarks_))
        scores = left_out_on(
            kept, landmarks.space, moments, model, family.shrinkage, objects, places
        )
        offsets = family.prior_ratio(moments)
        if isinstance(family.shrinkage, ChosenCovariance):
            offsets = offsets + family.shrinkage.offsets
        return scores + objects.log_priors() + offsets, objects
