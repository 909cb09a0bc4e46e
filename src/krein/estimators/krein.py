"""KreinClassifier, the recommended classifier: up to two looks at every object, nothing to tune."""

from __future__ import annotations

from typing import Any, Self

from ..compare.pairs import Counter
from ..core.family import Priors
from ..core.gaussian import FisherFamily
from ..data.dataset import Dataset
from ..landmarks import Rule, Stratified
from ..landmarks.random import default_number
from .base import all_or_nothing
from .classifier import FeatureTerm, LandmarkClassifier
from .learning import KeptValues, Settings, learn
from .secondlook import default_neighbours
from .selection import LandmarkChoice
from .twolooks import FittedTwoLooks


class KreinClassifier(FittedTwoLooks, LandmarkClassifier):
    """Classify objects by a similarity or dissimilarity, with nothing to tune.

    The first look compares an object with a few landmarks, and pools the probabilities of three
    models of those values: `IKFD`, `IKQD` and `PCVM`. If the result is not certain enough, the
    second look compares the object with training objects that have similar values to the landmarks,
    and adds the labels of the nearest ones as evidence. How far to trust each model and the
    evidence, and when to take a second look, is learned from held-out training objects. A
    prediction takes about a twentieth of the comparisons of nearest neighbours, at the same
    accuracy or better.

    Parameters
    ----------
    measure : str, Measure or callable, default="elm"
        How two objects are compared: a name from `krein.measures.available()`, a `Measure`, a
        function of two objects, "precomputed" (X contains similarities) or "precomputed-distance".
    measure_params : dict or None, default=None
        Parameters of a measure given by name. For a function, pass {"kind": "dissimilarity"} if
        larger values mean less similar.
    landmarks : str, Rule or array of indices, default="stratified"
        How landmarks are chosen; see `krein.landmarks`.
    n_landmarks : int or None, default=None
        Number of landmarks. None uses all objects if there are at most 200. Otherwise, it draws
        2 √N or N/40, whichever is larger, but at most 500, and keeps as many as are worth their
        `price`.
    neighbours : int or None, default=None
        Number of candidates that an object is compared with in the second look; 0 turns the second
        look off. None uses a third of the number of landmarks, at least 30 and at most 100.
    price : float, default=1e-4
        How much each additional comparison per prediction must lower the held-out log-loss.
        Landmarks that are not worth it are dropped, up to half of them.
    max_comparisons : float or None, default=None
        Budget for the mean number of comparisons per prediction. None uses as many as needed to
        come within 1 % of the loss of always taking a second look.
    max_kept : int, default=100_000
        Maximum number of training objects that the model keeps as candidates. If there are more,
        objects that the first look gets wrong are preferred, and every class is represented.
    novel_below : float, default=0.01
        `assess` calls an object novel (none of the classes) if its p-value is at most this. About
        this share of objects from known classes is called novel too. With n held-out objects, no
        p-value is below 1/(n + 1), so 1 % needs 99 of them.
    ambiguous_below : float, default=0.8
        `assess` calls an object ambiguous if no class has at least this probability.
    class_weight : dict, "balanced" or None, default=None
        Cost of an error on each class.
    symmetrize : bool, default=False
        Average both directions of a measure that is not symmetric, at twice the comparisons.
    n_jobs : int or None, default=None
        Number of workers that compare pairs. None uses all processors for measures that release
        Python's lock, and one process for a plain function. −1 always uses all processors.
    cache : path or None, default=None
        Folder for finished blocks of comparisons, so that an interrupted run can resume.
    verbose : int, default=0
        Above 0, show progress bars if standard error is a terminal.
    random_state : int, RandomState or None, default=0
        Seed for the choice of landmarks. The same number gives the same model, in any order of the
        rows.

    Attributes
    ----------
    classes_ : array (C,)
        Class labels, sorted.
    landmarks_ : array (m,)
        Rows of the training objects that every object is compared with.
    comparisons_ : float
        Estimated mean number of comparisons per prediction.
    last_comparisons_ : int
        Number of comparisons in the last call on objects in memory.
    kernel_evaluations_ : int
        Number of pairs compared during fit.
    kernel_reused_ : int
        Number of values read from the cache instead.
    looks_ : TwoLooks
        Heads, their weights (`first`, `second`), and the `threshold` for a second look.
    known_ : KnownObjects
        The objects that may be candidates, and their coordinates.
    known_objects_ : sequence
        Those objects, in the measure's form.
    reference_ : Reference
        The scores of held-out training objects, among which new objects are ranked.
    size_curve_ : SizeCurve
        Loss and cost of each number of landmarks considered. Absent if there was no choice: the
        number was given, `price` or `neighbours` is 0, the objects cannot be compared again, or
        there are too few or too many of them.
    signature_ : Signature
        Number of positive, negative and zero eigenvalues of the approximated kernel.
    eigenvalues_ : array
        Its non-zero eigenvalues with their signs, largest magnitude first.

    See Also
    --------
    IKFD : Linear model fitted in one pass with constant memory, for streams.
    PCVM : Sparse model with weights on basis objects.

    Notes
    -----
    A fit compares every object with m landmarks, and up to 2,500 training objects with `neighbours`
    others each. If `n_landmarks` is None, m is the largest number considered, and up to 500 objects
    get a second look with each smaller number. The model keeps the training objects, and
    4·min(m, 128) bytes for each.

    Examples
    --------
    >>> from krein import KreinClassifier
    >>> from krein.datasets import make_protein_families
    >>> X, y = make_protein_families(60, random_state=0)
    >>> clf = KreinClassifier("smith-waterman").fit(X[:-5], y[:-5])
    >>> bool((clf.predict(X[-5:]) == y[-5:]).all())
    True
    """

    multiclass = "joint"
    calibrate = True
    rank = None

    def __init__(
        self,
        measure: Any = "elm",
        *,
        measure_params: dict[str, Any] | None = None,
        landmarks: Any = "stratified",
        n_landmarks: int | None = None,
        neighbours: int | None = None,
        price: float = 1e-4,
        max_comparisons: float | None = None,
        max_kept: int = 100_000,
        novel_below: float = 0.01,
        ambiguous_below: float = 0.8,
        class_weight: Any = None,
        symmetrize: bool = False,
        n_jobs: int | None = None,
        cache: Any = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.measure = measure
        self.measure_params = measure_params
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.neighbours = neighbours
        self.price = price
        self.max_comparisons = max_comparisons
        self.max_kept = max_kept
        self.novel_below = novel_below
        self.ambiguous_below = ambiguous_below
        self.class_weight = class_weight
        self.symmetrize = symmetrize
        self.n_jobs = n_jobs
        self.cache = cache
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to objects X with labels y.

        Parameters
        ----------
        X : sequence of N objects, or an N×N matrix of values
            The objects to compare; for a precomputed measure, the values. Objects need not be in
            memory: X may be the path of a file, a source from `krein.io` (with its labels), a
            memory map, or a Dask collection. Landmarks are then chosen among about 20,000 objects.
        y : array of N labels, or None if X contains them
        sample_weight : array of N numbers, optional
            How many objects each one counts for; objects of weight 0 are ignored.

        Returns
        -------
        self
        """
        self._check()
        with all_or_nothing(self), self._open(X, y, sample_weight) as data:
            self._survey(data)
            choice = self._choose(data)
            self.kernel_evaluations_ = choice.counter.compared
            self.kernel_reused_ = choice.counter.reused
            kept = self._keep_values(data, choice)
            try:
                learned = learn(data, choice, kept, self._settings(len(choice.landmarks.indices)))
            finally:
                kept.features.close()
            self._use_landmarks(learned.landmarks)
            self._set_spectrum(learned.eigenvalues)
            self.looks_, self.known_ = learned.looks, learned.known
            self.known_objects_, self.reference_ = learned.known_objects, learned.reference
            self.landmark_names_ = self.known_names_ = None
            self.comparisons_ = learned.comparisons
            self.__dict__.pop("size_curve_", None)  # of an earlier fit
            if learned.curve is not None:
                self.size_curve_ = learned.curve
            self.kernel_evaluations_ += learned.counter.compared
            self.kernel_reused_ += learned.counter.reused
            self._last_call = Counter()
            self.__dict__.pop("_likeness", None)
        return self

    def _check(self) -> None:
        k = self.neighbours
        if k is not None and (k != int(k) or k < 0):
            raise ValueError(f"neighbours must be a whole number (0 for none) or None; got {k!r}")
        if self.max_kept != int(self.max_kept) or self.max_kept < 1:
            raise ValueError(f"max_kept must be a whole number, at least 1; got {self.max_kept!r}")
        if not self.price >= 0:
            raise ValueError(f"price must be a number, at least 0; got {self.price!r}")
        for name in ("novel_below", "ambiguous_below"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a share from 0 to 1; got {getattr(self, name)!r}")
        if self.max_comparisons is not None and not self.max_comparisons >= 1:
            raise ValueError(
                f"max_comparisons must be a number, at least 1, or None; got "
                f"{self.max_comparisons!r}"
            )

    def _family(self) -> FisherFamily:
        return FisherFamily(
            len(self.classes_), shrinkage="oas", priors=Priors(None, self._class_weights())
        )

    def _rule(self, data: Dataset) -> Rule:
        """Return the landmark rule, with the number that suits all objects and the budget."""
        rule = super()._rule(data)
        if isinstance(rule, Stratified) and rule.n_landmarks is None:
            known = data.survey()
            number = default_number(known.weighted, len(known.classes))
            if self.max_comparisons is not None:
                number = min(number, max(1, int(self.max_comparisons)))
            rule.set_params(n_landmarks=number)
        return rule

    def _settings(self, n_landmarks: int) -> Settings:
        """Return the settings of a fit with this many landmarks."""
        k = default_neighbours(n_landmarks) if self.neighbours is None else self.neighbours
        return Settings(
            comparing=self._comparing(self.measure_),
            priors=self._family().priors,
            neighbours=k,
            price=self.price if self.n_landmarks is None else 0.0,
            max_comparisons=self.max_comparisons,
            max_kept=self.max_kept,
        )

    def _keep_values(self, data: Dataset, choice: LandmarkChoice) -> KeptValues:
        """Compare all objects with the landmarks once, for all heads."""
        space, m = choice.landmarks.space, len(choice.landmarks.indices)
        each = self._class_weights().of_objects(data.survey().weights)
        term = FeatureTerm(
            choice.columns, space, space.origin(), self.classes_, each, by_class=True
        )
        counter = Counter()
        kept, moments = data.keep(term, m, self._block_rows(m), counter)
        self.kernel_evaluations_ += counter.compared
        self.kernel_reused_ += counter.reused
        return KeptValues(kept, moments, each)
